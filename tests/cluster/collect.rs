//! A bundle judges as the live cluster did, holds no secret, and never replaces a file.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use serde_json::{Value, json};

use crate::ground::{Namespace, ground};
use crate::objects::{cluster, job, lock, machine, running_pod};
use crate::permissions::world::world;
use crate::plugin::{Ran, captf, captf_as, run};
use kubectl_captf::captf::kind::WorkloadKind;
use kubectl_captf::captf::names::{backend_labels, state_secret, state_suffix};

const CANARY: &str = "CANARY-77aa-never-in-a-bundle";
const OWN: &str = "captf-m-web-apply-a1-5e1f00-x7k2p";

fn id(number: u8) -> String {
    format!("0000000{number}-0000-4000-8000-000000000001")
}

/// The state Secret of an object, as the backend labels it.
fn state(ns: &Namespace<'_>, kind: WorkloadKind, name: &str, payload: &str) {
    let suffix = state_suffix(ns.name(), kind, name);
    let mut labels = json!({"tfstate": "true", "tfstateSecretSuffix": suffix, "tfstateWorkspace": "default",
        "app.kubernetes.io/managed-by": "terraform"});
    for (key, value) in backend_labels(kind, name, "prod") {
        labels[key] = json!(value);
    }
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": state_secret(&suffix), "namespace": ns.name(), "labels": labels,
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": format!("{{\"data\":\"{CANARY}\"}}")}},
        "stringData": {"tfstate": payload}}));
}

/// One object of every verdict; all share a label, as a selector would leave them.
fn prepared(stem: &str) -> Namespace<'static> {
    let ns = ground().namespace(stem);
    let owner = cluster(&ns, "prod");
    for name in ["web", "stale", "free", "foreign", "address", "empty"] {
        machine(&ns, name, "prod");
        ns.ground().patch("TerraformMachine", ns.name(), name, None, &json!({"metadata": {"labels": {"team": "a"}}}));
        state(&ns, WorkloadKind::Machine, name, &format!("not a state {CANARY}"));
    }
    job(&ns, &owner, "captf-c-prod-apply-a1-5e1f00", "apply", false);
    running_pod(&ns, OWN);
    lock(&ns, "TerraformMachine", "web", &id(1), &format!("@{OWN}"));
    lock(&ns, "TerraformMachine", "stale", &id(2), "@captf-m-stale-apply-a1-5e1f00-gone1");
    lock(&ns, "TerraformMachine", "foreign", &id(3), "root@desktop-1");
    lock(&ns, "TerraformMachine", "address", &id(4), "root@192.168.10.20");
    lock(&ns, "TerraformMachine", "empty", "", "root@desktop-1");
    lock(&ns, "TerraformMachine", "gone", &id(5), "root@desktop-1");
    ns.ground().apply_value(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other", "namespace": ns.name()},
        "spec": {"containers": [{"name": "c", "image": "i", "env": [{"name": "DB_PASSWORD", "value": CANARY}],
                                 "args": [format!("--token={CANARY}")]}]}}),
    );
    ns
}

/// Verdict and codes by object.
fn judged(ran: &Ran) -> BTreeMap<String, (String, BTreeSet<String>)> {
    let json = ran.json();
    let items = json["items"].as_array().cloned().unwrap_or_default();
    items
        .iter()
        .map(|item| {
            let codes = item["findings"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|f| f["code"].as_str().unwrap_or_default().to_string());
            let name = format!("{}/{}", item["object"]["kind"], item["object"]["name"]);
            (name, (item["verdict"].as_str().unwrap_or_default().to_string(), codes.collect()))
        })
        .collect()
}

fn collect(ns: &Namespace<'_>, line: &str) -> (Ran, std::path::PathBuf) {
    let file = ns.ground().dir.join(format!("{}.tar.gz", ns.name()));
    (captf(ns, &format!("collect {line} --to {}", file.display())), file)
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_bundle_gives_the_verdicts_of_the_live_cluster() {
    let ns = prepared("bundle");
    let live = captf(&ns, "lock inspect -o json");
    let (ran, file) = collect(&ns, "tfm/web -o json");
    assert_eq!((ran.code, &ran.json()["unreadable"]), (Some(0), &json!([])), "{ran:?}");
    let needs: BTreeSet<String> = ran.json()["needsPayload"]
        .as_array()
        .expect("codes")
        .iter()
        .map(|c| c.as_str().unwrap_or_default().to_string())
        .collect();
    let words = ["captf", "lock", "inspect", "--from", &file.display().to_string(), "-o", "json"].map(str::to_string);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let offline = run(ns.ground(), std::path::Path::new("/nonexistent"), &words);
    let (live, offline_judged) = (judged(&live), judged(&offline));
    let verdicts: BTreeSet<&str> = live.values().map(|(v, _)| v.as_str()).collect();
    for verdict in ["free", "live", "stale", "foreign", "empty-holder", "orphan", "not-evaluated"] {
        assert!(verdicts.contains(verdict), "the test has no {verdict}: {live:?}");
    }
    assert_eq!(live.keys().collect::<Vec<_>>(), offline_judged.keys().collect::<Vec<_>>());
    let mut missing = BTreeSet::new();
    for (name, (verdict, codes)) in &live {
        let (word, told) = &offline_judged[name];
        assert_eq!(word, verdict, "{name}: {offline:?}");
        missing.extend(codes.difference(told).filter(|c| *c != "lock-stale").cloned());
    }
    assert!(!missing.is_empty(), "the live cluster saw a corrupt state, the bundle cannot");
    assert!(missing.is_subset(&needs), "{missing:?} are missing and not announced: {needs:?}");
}

/// Commands that judge, and those whose findings rest on payloads among them.
const JUDGED: &[&str] = &[
    "lock list --all",
    "lock history tfm/broken",
    "jobs why",
    "jobs why tfm/broken tfm/evicted tfm/no-secret tfm/waits tfm/blocked tfc/approval",
    "backups list tfc/shop",
    "backups list tfm/disk",
    "backups verify tfc/shop",
    "state inspect tfc/shop",
    "state inspect tfm/blocked",
    "restore 3 tfc/shop --dry-run",
    "restore 9 tfc/shop --dry-run",
    "restore status tfm/undisk",
    "restore status tfc/shop",
    "claim list",
    "claim inspect tfc/shop",
    "claim inspect tfm/web",
    "lock force-unlock tfc/locked --dry-run",
    "lock force-unlock tfm/web --dry-run",
];

#[test]
#[ignore = "needs the test ground (make test)"]
fn every_judgement_from_a_bundle_is_that_of_the_live_cluster() {
    let ns = world("support");
    let (ran, file) = collect(&ns, "-o json");
    assert_eq!(ran.code, Some(3), "no kubelet serves logs here: {ran:?}");
    let needs: BTreeSet<String> = serde_json::from_value(ran.json()["needsPayload"].clone()).expect("codes");
    let from = file.display().to_string();
    let (mut lost, mut compared) = (BTreeSet::new(), 0);
    for line in JUDGED {
        let live = judged(&captf(&ns, &format!("{line} -o json")));
        let words: Vec<&str> = ["captf"]
            .into_iter()
            .chain(line.split(' '))
            .chain(["-n", ns.name(), "-o", "json", "--from", &from])
            .collect();
        let ran = run(ns.ground(), std::path::Path::new("/nonexistent"), &words);
        let offline = judged(&ran);
        assert_eq!(live.keys().collect::<Vec<_>>(), offline.keys().collect::<Vec<_>>(), "{line}: {ran:?}");
        for (name, (verdict, codes)) in &live {
            let (word, told) = &offline[name];
            assert_eq!(word, verdict, "{line}: {name}: {ran:?}");
            let missing: BTreeSet<String> = codes.difference(told).filter(|c| *c != "lock-stale").cloned().collect();
            assert!(missing.is_subset(&needs), "{line}: {name}: {missing:?} are missing and not announced: {ran:?}");
            // What stands in the place of what a snapshot cannot tell.
            let more: Vec<&String> = told.difference(codes).collect();
            let known = ["stale-from-snapshot", "restore-undetermined", "unlock-state-not-proven"];
            assert!(more.iter().all(|c| known.contains(&c.as_str())), "{line}: {name}: {more:?} only offline: {ran:?}");
            lost.extend(missing);
            compared += codes.len();
        }
    }
    assert!(compared > 30, "{compared} findings");
    for code in ["backup-verified", "state-readable", "restore-ready", "unlock-ready"] {
        assert!(lost.contains(code), "{code} needs payloads, and was not compared: {lost:?}");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_bundle_holds_no_secret_is_private_and_replaces_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let ns = prepared("canary");
    let (ran, file) = collect(&ns, "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.contains("terraformmachines.infrastructure.cluster.x-k8s.io") && ran.stdout.contains("no values"),
        "{ran:?}"
    );
    let metadata = std::fs::metadata(&file).expect("the bundle");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(std::fs::File::open(&file).expect("the bundle")).read_to_end(&mut text).expect("gzip");
    let text = String::from_utf8_lossy(&text);
    assert!(text.contains("TerraformMachine") && text.contains("snapshot-data-sizes"), "it holds what it says");
    assert!(!text.contains(CANARY) && !text.contains("bm90IGEgc3RhdGU"), "a secret is in the bundle");
    assert!(!ran.stdout.contains(CANARY) && !ran.stderr.contains(CANARY));
    let before = std::fs::read(&file).expect("the bundle");
    let (again, _) = collect(&ns, "");
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(again.stderr.contains("exists and is not written over"), "{again:?}");
    assert_eq!(std::fs::read(&file).expect("the bundle"), before);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn what_may_not_be_read_is_said_and_not_absent_in_the_bundle() {
    let ns = prepared("partial");
    let rules: Value = json!([
        {"apiGroups": ["infrastructure.cluster.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["secrets", "events"], "verbs": ["list"]}]);
    let kubeconfig = ns.ground().service_account_kubeconfig(ns.name(), "no-pods", &rules);
    let file = ns.ground().dir.join(format!("{}.tar.gz", ns.name()));
    let ran = captf_as(&ns, &kubeconfig, &format!("collect --to {}", file.display()));
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.stdout.contains(&format!("not taken: Pods in {}", ns.name())) && ran.stdout.contains("list pods"),
        "{ran:?}"
    );
    let words = ["captf", "lock", "inspect", "tfm/stale", "--from", &file.display().to_string(), "-o", "json"]
        .map(str::to_string);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let offline = run(ns.ground(), std::path::Path::new("/nonexistent"), &words);
    assert_eq!(offline.verdict(), "undetermined", "pods that were not read are not absent: {offline:?}");
}
