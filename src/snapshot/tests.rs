//! The module as commands see it: through a real `kube::Client`, on directories, archives and bytes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, Pod, Secret};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, LogParams, PostParams, WatchParams};
use kube::{Client, Error};
use serde_json::{Value, json};

use super::{Snapshot, SnapshotError, SnapshotSource, load, load_bytes};

fn client(snapshot: Snapshot) -> Client {
    Arc::new(snapshot).into_client("default")
}

fn of(name: &str, text: &str) -> Client {
    client(load_bytes(name, text.as_bytes().to_vec()).unwrap())
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    dir
}

fn at(dir: &Path) -> Snapshot {
    load(&SnapshotSource::Path(dir.to_owned())).unwrap()
}

fn in_directory(files: &[(&str, &str)]) -> Client {
    client(at(directory(files).path()))
}

/// "found", "absent" (404 with a name), "version" (404 without), or the message of a 424.
fn outcome<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "found".to_owned(),
        Err(Error::Api(status)) if status.code == 404 && status.details.is_some() => "absent".to_owned(),
        Err(Error::Api(status)) if status.code == 404 => "version".to_owned(),
        Err(Error::Api(status)) if status.code == 424 => {
            assert_eq!(status.reason, "NotInSnapshot");
            assert!(!status.message.contains('\n'));
            status.message
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn pod(ns: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns}})
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}).to_string()
}

fn typed(version: &str, kind: &str, items: &[Value]) -> String {
    json!({"apiVersion": version, "kind": kind, "metadata": {"resourceVersion": "7"}, "items": items}).to_string()
}

async fn pods(client: &Client, ns: &str) -> String {
    outcome(Api::<Pod>::namespaced(client.clone(), ns).list(&ListParams::default()).await)
}

async fn get_pod(client: &Client, ns: &str, name: &str) -> String {
    outcome(Api::<Pod>::namespaced(client.clone(), ns).get(name).await)
}

async fn get_lease(client: &Client, ns: &str, name: &str) -> String {
    outcome(Api::<Lease>::namespaced(client.clone(), ns).get(name).await)
}

#[tokio::test]
async fn absent_needs_coverage() {
    let one = list(&[pod("a", "x")]);
    let both = list(&[pod("a", "x"), pod("b", "y")]);
    let mut cut: Value = serde_json::from_str(&one).unwrap();
    cut["metadata"]["continue"] = json!("token");
    let mut labelled = vec![pod("a", "x"), pod("a", "y")];
    labelled.iter_mut().for_each(|pod| pod["metadata"]["labels"] = json!({"app": "x"}));
    let cut = cut.to_string();
    let labelled = list(&labelled);
    let single = pod("a", "x").to_string();
    let broken = format!("{one}\n{{\"a\": ]");
    let table: &[(&str, &str, &str, &str)] = &[
        (&one, "a", "absent", "found"),
        (&one, "b", "pods of namespace b are not in the snapshot", "pods of namespace b are not in the snapshot"),
        (&both, "c", "absent", "found"),
        (
            &single,
            "a",
            "pods of namespace a are not in the snapshot",
            "pods of namespace a are not in the snapshot as a whole (1 held)",
        ),
        (
            &cut,
            "a",
            "pods of namespace a may be incomplete: f.json: the list was cut (continue token)",
            "pods of namespace a may be incomplete: f.json: the list was cut (continue token) (1 held)",
        ),
        (
            &labelled,
            "a",
            "pods of namespace a may be incomplete: f.json looks like it was taken with a selector (app=x)",
            "pods of namespace a may be incomplete: f.json looks like it was taken with a selector (app=x) (2 held)",
        ),
        (
            &broken,
            "a",
            "pods of namespace a may be incomplete: f.json line 2 could not be parsed",
            "pods of namespace a may be incomplete: f.json line 2 could not be parsed (1 held)",
        ),
    ];
    for (text, ns, get, listed) in table {
        let client = of("f.json", text);
        assert_eq!(get_pod(&client, ns, "nope").await, *get, "{text}");
        assert_eq!(pods(&client, ns).await, *listed, "{text}");
        assert_eq!(get_pod(&client, "a", "x").await, "found", "{text}");
    }
    let client = of("f.json", &both);
    assert_eq!(Api::<Pod>::all(client.clone()).list(&ListParams::default()).await.unwrap().items.len(), 2);
    assert!(Api::<Pod>::namespaced(client, "a").get_opt("nope").await.unwrap().is_none());
    let client = of("f.json", &one);
    let all = outcome(Api::<Pod>::all(client).list(&ListParams::default()).await);
    assert_eq!(all, "pods of all namespaces are not in the snapshot as a whole (1 held)");
}

#[tokio::test]
async fn empty_lists() {
    let pods_a = list(&[pod("a", "x")]);
    let pods_ab = list(&[pod("a", "x"), pod("b", "x")]);
    let leases = typed("coordination.k8s.io/v1", "LeaseList", &[]);
    let untyped = list(&[]);
    type Files<'a> = Vec<(&'a str, &'a str)>;
    let absent = [
        vec![("d/pods.json", pods_a.as_str()), ("d/whatever.json", &leases)],
        vec![("d/pods.json", &pods_a), ("d/leases.json", &untyped)],
        vec![("d/pods.json", &pods_a), ("d/leases.coordination.k8s.io.yaml", &untyped)],
        vec![("x/pods.json", &pods_ab), ("a/leases.json", &leases)],
        vec![("nodes.json", &pods_ab), ("a/leases.json", &untyped)],
        vec![("mg/namespaces/a/coordination.k8s.io/leases.yaml", &leases), ("mg/p.yaml", &pods_a)],
        vec![("mg/namespaces/a/coordination.k8s.io/leases.yaml", &untyped), ("mg/p.yaml", &pods_ab)],
    ];
    for files in absent as [Files; 7] {
        assert_eq!(get_lease(&in_directory(&files), "a", "l").await, "absent", "{files:?}");
        assert_ne!(get_lease(&in_directory(&files), "b", "l").await, "absent", "{files:?}");
    }
    let unknown: [Files; 6] = [
        vec![("d/pods.json", &pods_ab), ("d/leases.json", &leases)],
        vec![("d/pods.json", &pods_a), ("e/leases.json", &leases)],
        vec![("d/pods.json", &pods_a), ("d/stuff.json", &untyped)],
        vec![("a/pods.json", &pods_ab), ("a/leases.json", &leases)],
        vec![("d/pods.json", &pods_a), ("d/other.json", &pods_ab), ("d/leases.json", &untyped)],
        vec![("mg/namespaces/a/batch/leases.yaml", &untyped), ("mg/p.yaml", &pods_ab)],
    ];
    for files in unknown {
        let got = get_lease(&in_directory(&files), "a", "l").await;
        assert!(got.starts_with("leases.coordination.k8s.io of namespace a "), "{files:?}: {got}");
    }
}

#[tokio::test]
async fn must_gather_directories_cover() {
    let a = pod("a", "x").to_string();
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}).to_string();
    let client = in_directory(&[
        ("namespaces/a/core/pods/x.yaml", &a),
        ("cluster-scoped-resources/core/nodes/n.yaml", &node),
        ("namespaces/b/pods/y/y.yaml", &pod("b", "y").to_string()),
    ]);
    assert_eq!(get_pod(&client, "a", "nope").await, "absent");
    assert_eq!(pods(&client, "a").await, "found");
    assert_eq!(get_pod(&client, "b", "nope").await, "pods of namespace b are not in the snapshot");
    assert_eq!(outcome(Api::<Node>::all(client.clone()).get("nope").await), "absent");
    assert_eq!(outcome(Api::<Namespace>::all(client).get("a").await), "namespaces are not in the snapshot");
}

#[tokio::test]
async fn all_namespaces_may_be_covered_one_by_one() {
    let ns = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let (a, b) = (list(&[pod("a", "x")]), list(&[pod("b", "x")]));
    for (namespaces, want) in [(vec![ns("a"), ns("b")], "found"), (vec![ns("a"), ns("b"), ns("c")], "pods of all")] {
        let client = in_directory(&[("a.json", &a), ("b.json", &b), ("ns.json", &list(&namespaces))]);
        let got = outcome(Api::<Pod>::all(client).list(&ListParams::default()).await);
        assert!(got.starts_with(want), "{got}");
    }
}

#[tokio::test]
async fn copies() {
    let mut managed = pod("a", "x");
    managed["metadata"]["managedFields"] = json!([{"time": "2024-01-01T00:00:00Z"}]);
    let mut other = pod("a", "x");
    other["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
    let base = list(&[pod("a", "x"), pod("a", "y")]);
    let client = in_directory(&[("1.json", &base), ("2.json", &managed.to_string())]);
    assert_eq!(pods(&client, "a").await, "found");
    let client = in_directory(&[("1.json", &base), ("2.json", &other.to_string())]);
    assert_eq!(get_pod(&client, "a", "x").await, "pods a/x differs between 1.json and 2.json");
    assert_eq!(pods(&client, "a").await, "pods a/x differs between 1.json and 2.json");
    assert_eq!(get_pod(&client, "a", "y").await, "found");
    assert_eq!(get_pod(&client, "a", "nope").await, "absent");
}

#[tokio::test]
async fn versions_and_events() {
    let machine = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "metadata": {"name": "m", "namespace": "a"}});
    let event = json!({"kind": "Event", "apiVersion": "v1", "metadata": {"name": "e", "namespace": "a"}, "message": "hi",
        "involvedObject": {"name": "x", "kind": "Pod"}, "count": 3});
    let client = of("f.json", &list(&[machine, event]));
    let api = |group: &str, version: &str, kind: &str| -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(client.clone(), "a", &resource)
    };
    let (v1, v2) = (api("cluster.x-k8s.io", "v1beta1", "Machine"), api("cluster.x-k8s.io", "v1beta2", "Machine"));
    assert_eq!(v1.get("m").await.unwrap().types.unwrap().kind, "Machine");
    assert_eq!(outcome(v1.get("nope").await), "absent");
    assert_eq!(outcome(v2.get("m").await), "version");
    assert_eq!(outcome(v2.list(&ListParams::default()).await), "version");
    let pools = api("cluster.x-k8s.io", "v1beta2", "MachinePool");
    assert_eq!(outcome(pools.get("m").await), "machinepools.cluster.x-k8s.io of namespace a are not in the snapshot");
    let new = api("events.k8s.io", "v1", "Event");
    let params = ListParams::default().fields("regarding.name=x");
    let found = new.list(&params).await.unwrap();
    assert_eq!(
        (found.items[0].data["note"].as_str(), found.items[0].data["deprecatedCount"].as_i64()),
        (Some("hi"), Some(3))
    );
    let old = Api::<Event>::namespaced(client.clone(), "a")
        .list(&ListParams::default().fields("involvedObject.name=y"))
        .await;
    assert_eq!(old.unwrap().items.len(), 0);
}

#[tokio::test]
async fn typed_items_paging_and_forms() {
    let items: Vec<Value> = (0..5)
        .map(|n| json!({"metadata": {"name": format!("s{n}"), "namespace": "a", "labels": {"n": n.to_string()}}, "type": "T", "data": {"k": "Q0FOQVJZ", "l": ""}}))
        .collect();
    let client = of("f.json", &typed("v1", "SecretList", &items));
    let api = Api::<Secret>::namespaced(client.clone(), "a");
    let page = api.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!((page.items.len(), page.metadata.remaining_item_count), (2, Some(3)));
    let next = page.metadata.continue_.unwrap();
    let rest = api.list(&ListParams::default().limit(9).continue_token(&next)).await.unwrap();
    assert_eq!((rest.items[0].metadata.name.as_deref(), rest.items.len()), (Some("s2"), 3));
    let some = api.list(&ListParams::default().labels("n in (1,4)")).await.unwrap();
    assert_eq!(some.items.len(), 2);
    let metadata = api.list_metadata(&ListParams::default()).await.unwrap();
    assert_eq!(metadata.items.len(), 5);
    assert_eq!(api.get_metadata("s1").await.unwrap().metadata.name.as_deref(), Some("s1"));
    let raw = |accept: &str, path: &str| {
        let request = http::Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
        let client = client.clone();
        async move { client.request_text(request).await.unwrap() }
    };
    let path = "/api/v1/namespaces/a/secrets";
    for accept in [
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    ] {
        assert!(!raw(accept, path).await.contains("Q0FOQVJZ"));
    }
    let table: Value = serde_json::from_str(&raw("application/json;as=Table;v=v1;g=meta.k8s.io", path).await).unwrap();
    assert_eq!(table["rows"][0]["cells"], json!(["s0", "T", 2, "<unknown>"]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

#[tokio::test]
async fn withheld_secrets() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "T", "metadata": {"name": "s", "namespace": "a",
        "annotations": {"captf.io/snapshot-data": "withheld", "captf.io/snapshot-data-keys": "a,b,c"}}});
    let api = Api::<Secret>::namespaced(of("f.json", &list(&[secret])), "a");
    assert_eq!(outcome(api.get("s").await), "the data of secret a/s is not in the snapshot: it was withheld");
    assert_eq!(
        outcome(api.list(&ListParams::default()).await),
        "the data of secret a/s is not in the snapshot: it was withheld"
    );
    assert!(api.get_metadata("s").await.is_ok());
}

#[tokio::test]
async fn nothing_can_be_changed_or_watched() {
    let api = Api::<Pod>::namespaced(of("f.json", &list(&[pod("a", "x")])), "a");
    for result in [
        api.create(&PostParams::default(), &Pod::default()).await.map(drop),
        api.delete("x", &Default::default()).await.map(drop),
        api.watch(&WatchParams::default(), "0").await.map(drop),
    ] {
        assert!(
            matches!(result, Err(Error::Api(status)) if status.code == 405 && status.message.starts_with("a snapshot cannot be "))
        );
    }
}

#[tokio::test]
async fn discovery_is_not_in_it() {
    let client = of("f.json", &list(&[pod("a", "x")]));
    assert!(outcome(client.apiserver_version().await).contains("/version"));
    assert!(outcome(client.list_api_groups().await).contains("/apis"));
    assert!(outcome(client.list_api_group_resources("batch/v1").await).contains("not in the snapshot"));
}

fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, text.as_bytes()).unwrap();
    }
    tar.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn archives() {
    let pods_a = list(&[pod("a", "x")]);
    let tar = archive(&[("../../etc/d/pods.json", &pods_a), ("d/logs/a/x/c.log", "one\ntwo\n"), ("d/readme.md", "{{")]);
    for bytes in [tar.clone(), gzip(&tar)] {
        let snapshot = load_bytes("x.tgz", bytes).unwrap();
        assert_eq!(snapshot.description(), "snapshot x.tgz: 1 object in 1 file");
        assert_eq!(snapshot.problems(), []);
        let client = client(snapshot);
        assert_eq!(get_pod(&client, "a", "nope").await, "absent");
        let api = Api::<Pod>::namespaced(client, "a");
        let params = LogParams { tail_lines: Some(1), container: Some("c".into()), ..LogParams::default() };
        assert_eq!(api.logs("x", &params).await.unwrap(), "two\n");
        assert!(outcome(api.logs("y", &params).await).contains("not in the snapshot"));
    }
    let zipped = client(load_bytes("pods.json.gz", gzip(pods_a.as_bytes())).unwrap());
    assert_eq!(get_pod(&zipped, "a", "nope").await, "absent");
    let whole = gzip(&tar);
    for end in 0..whole.len() {
        let whole_enough = end + 40 > whole.len();
        let loaded = load_bytes("x.tgz", whole[..end].to_vec());
        assert!(whole_enough || loaded.is_err() || !loaded.unwrap().problems().is_empty(), "{end}");
    }
    for end in 0..tar.len() - 1024 {
        let loaded = load_bytes("x.tar", tar[..end].to_vec());
        assert!(loaded.is_err() || !loaded.unwrap().problems().is_empty(), "{end}");
    }
}

#[tokio::test]
async fn files_on_disk() {
    let pods_a = list(&[pod("a", "x")]);
    let outside = directory(&[("secret.yaml", &pod("a", "out").to_string())]);
    let dir = directory(&[
        ("d/pods.json", &pods_a),
        ("chart/Chart.yaml", "name: x\n"),
        ("chart/templates/t.yaml", "a: {{ .b }}\n{{ if }}\n"),
        ("values.yaml", "replicas: 1\n"),
        ("kustomization.yaml", "resources: [a]\n"),
        ("note.txt", "{{"),
    ]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.path(), dir.path().join("d/loop")).unwrap();
    let snapshot = at(dir.path());
    assert_eq!((snapshot.object_count(), snapshot.problems()), (1, &[][..]));
    assert_eq!(snapshot.namespaces(), ["a"]);
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside.path().join("secret.yaml"), dir.path().join("d/out.yaml")).unwrap();
    assert!(at(dir.path()).problems()[0].to_string().starts_with("d/out.yaml: a symbolic link"));
    fs::write(dir.path().join("t.yaml"), "a: {{ .b }}\n{{ if }}\n").unwrap();
    assert_eq!(at(dir.path()).problems().len(), 2);
    let missing = load(&SnapshotSource::Path(dir.path().join("nope")));
    assert!(matches!(missing, Err(SnapshotError::Missing { .. })));
    for bytes in [vec![], vec![0xff, 0x00, 0xd8, 0x7f, 0x45], b"replicas: 1\n".to_vec(), list(&[]).into_bytes()] {
        assert!(matches!(load_bytes("x", bytes), Err(SnapshotError::Empty { .. })));
    }
}

const SAMPLE: &str = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata:\n    name: s\n    namespace: a\n  data:\n    \
    k: Q0FOQVJZ\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: x\n    namespace: a\n  spec:\n    text: |\n      CANARY\n      ---\n      more\nkind: List\nmetadata:\n  resourceVersion: \"\"\n";

#[tokio::test]
async fn a_list_cut_short_never_answers_absent() {
    let complete = SAMPLE.find("kind: List\n").unwrap() + "kind: List".len();
    for end in 0..=SAMPLE.len() {
        let Ok(snapshot) = load_bytes("f.yaml", SAMPLE.as_bytes()[..end].to_vec()) else {
            continue;
        };
        let client = client(snapshot);
        let got = get_pod(&client, "a", "nope").await;
        assert_eq!(got == "absent", end >= complete, "cut at {end}: {got}");
    }
    assert_eq!(get_pod(&of("f.yaml", SAMPLE), "a", "nope").await, "absent");
}

#[tokio::test]
async fn no_message_quotes_a_document() {
    // Every byte of the sample is broken in turn, in both forms; no canary may come out.
    let value: Value = serde_json::from_str(&list(&[
        pod("a", "x"),
        json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "namespace": "a"}, "data": {"CANARY": "CANARY", "k": "Q0FOQVJZ"}}),
    ]))
    .unwrap();
    let pretty = serde_json::to_string_pretty(&value).unwrap();
    for text in [SAMPLE, &pretty] {
        for at in 0..text.len() {
            for byte in [b'"', b'{', b'\t', b':', b'&', b'*', 0xff, 0] {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                let said = match load_bytes("f", bytes) {
                    Err(error) => format!("{error} {error:?}"),
                    Ok(snapshot) => {
                        let problems = format!("{:?} {}", snapshot.problems(), snapshot.description());
                        if at % 16 == 0 {
                            let client = client(snapshot);
                            problems + &get_pod(&client, "a", "nope").await + &pods(&client, "a").await
                        } else {
                            problems
                        }
                    }
                };
                assert!(!said.contains("CANARY") && !said.contains("Q0FO"), "{at}: {said}");
            }
        }
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let alphabet = b"-:{}[]&*!|>'\"%@`#,?\n\n  \tab1.~\xff\x00<=";
    for _ in 0..3000 {
        let mut bytes = Vec::new();
        for _ in 0..64 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.push(alphabet[usize::try_from(state % alphabet.len() as u64).unwrap()]);
        }
        drop(load_bytes("x.yaml", bytes.clone()));
        drop(load_bytes("x.tgz", [&[0x1f, 0x8b, 8, 0][..], &bytes].concat()));
    }
}

#[tokio::test]
async fn jobs_in_kubectl_yaml() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: batch/v1\n  kind: Job\n  metadata: {name: j, namespace: a}\n---\n\
        apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: a}\n";
    let snapshot = load_bytes("f.yaml", text.as_bytes().to_vec()).unwrap();
    assert_eq!(snapshot.object_count(), 2);
    let client = client(snapshot);
    assert!(Api::<Job>::namespaced(client.clone(), "a").get_opt("nope").await.unwrap().is_none());
    assert_eq!(get_pod(&client, "a", "nope").await, "pods of namespace a are not in the snapshot");
}
