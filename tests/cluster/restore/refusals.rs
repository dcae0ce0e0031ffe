//! Every refusal on a live object: something is changed, the judgement refuses by its code, the change is undone.

use serde_json::{Value, json};

use super::fixture::{Fixture, encode, two_serials};
use crate::ground::ground;

fn dry(fixture: &Fixture<'_>, serial: &str) -> super::fixture::Ran {
    fixture.plugin(&["restore", serial, "terraformcluster/demo", "--dry-run", "-o", "json"])
}

fn refuses(fixture: &Fixture<'_>, serial: &str, code: &str) {
    let ran = dry(fixture, serial);
    assert!(ran.codes().iter().any(|c| c == code), "{code}: {}", ran.text());
    assert_eq!(ran.code, 4, "{code}: {}", ran.text());
    assert_eq!(ran.json()["exitCode"], 4);
}

fn allows(fixture: &Fixture<'_>, serial: &str, case: &str) {
    let ran = dry(fixture, serial);
    assert!(ran.codes().iter().any(|c| c == "restore-ready"), "{case}: {}", ran.text());
    assert_eq!(ran.code, 10, "{case}: {}", ran.text());
}

fn annotate(key: &str, value: Value) -> Value {
    json!({"metadata": {"annotations": {key: value}}})
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn gates_of_the_object_refuse() {
    let namespace = ground().namespace("gates");
    let (fixture, old) = two_serials(&namespace);
    allows(&fixture, &old, "at first");
    refuses(&fixture, "soon", "restore-not-a-serial");
    refuses(&fixture, "4096", "restore-no-backup");
    for (key, value, code) in [
        ("cluster.x-k8s.io/paused", "true", "restore-paused"),
        ("cluster.x-k8s.io/managed-by", "x", "restore-externally-managed"),
        ("captf.io/restore-state", "4096", "restore-other-pending"),
    ] {
        fixture.patch(&annotate(key, json!(value)));
        refuses(&fixture, &old, code);
        fixture.patch(&annotate(key, Value::Null));
    }
    let pause = |paused: bool| {
        fixture.ground.patch("Cluster", &fixture.namespace, "demo", None, &json!({"spec": {"paused": paused}}))
    };
    pause(true);
    refuses(&fixture, &old, "restore-paused");
    pause(false);
    let owners = fixture.object()["metadata"]["ownerReferences"].clone();
    fixture.patch(&json!({"metadata": {"ownerReferences": null}}));
    refuses(&fixture, &old, "restore-no-owner");
    fixture.patch(&json!({"metadata": {"ownerReferences": owners}}));
    let conditions = fixture.object()["status"]["conditions"].clone();
    let mut closed = conditions.clone();
    closed[1]["status"] = json!("False");
    fixture.patch_status(&json!({"conditions": closed}));
    refuses(&fixture, &old, "restore-gate-closed");
    fixture.patch_status(&json!({"conditions": conditions}));
    let serial: i64 = old.parse().expect("a serial");
    fixture.patch_status(&json!({"lastRestoredSerial": serial}));
    refuses(&fixture, &old, "restore-consumed");
    fixture.patch_status(&json!({"lastRestoredSerial": null}));
    allows(&fixture, &old, "at the end");
    fixture.patch(&json!({"metadata": {"finalizers": ["captf.test/held"]}}));
    fixture.ground.delete("TerraformCluster", &fixture.namespace, "demo");
    refuses(&fixture, &old, "restore-deleting-ignored");
    for secret in fixture.state_secrets() {
        fixture.ground.delete("Secret", &fixture.namespace, secret["metadata"]["name"].as_str().expect("a name"));
    }
    let held = dry(&fixture, &old);
    assert!(held.codes().iter().any(|c| c == "restore-deleting-held"), "{}", held.text());
    fixture.patch(&json!({"spec": {"deletionPolicy": "Retain"}}));
    refuses(&fixture, &old, "restore-deleting-ignored");
    fixture.patch(&json!({"metadata": {"finalizers": null}}));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn broken_backups_and_strange_secrets_refuse() {
    let namespace = ground().namespace("secrets");
    let (fixture, old) = two_serials(&namespace);
    let set = format!("captf-state-backup-{}-{old}", fixture.workspace.suffix);
    let patch = |name: &str, patch: &Value| fixture.ground.patch("Secret", &fixture.namespace, name, None, patch);
    let original = fixture.ground.get("Secret", &fixture.namespace, &set);
    let notes = &original["metadata"]["annotations"];
    for (key, value, code) in [
        ("captf.io/state-backup-digest", "00", "backup-digest-differs"),
        ("captf.io/state-backup-chunks", "2", "restore-set-incomplete"),
        ("captf.io/state-backup-lineage", "another", "backup-annotations-differ"),
    ] {
        patch(&set, &annotate(key, json!(value)));
        refuses(&fixture, &old, code);
        patch(&set, &annotate(key, notes[key].clone()));
    }
    patch(&set, &json!({"data": {"tfstate": encode(b"no state")}}));
    refuses(&fixture, &old, "backup-payload-broken");
    patch(&set, &json!({"data": original["data"]}));
    allows(&fixture, &old, "mended");

    let base = fixture.workspace.secret();
    let label = |value: Value| json!({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": value}}});
    patch(&base, &label(json!("other")));
    refuses(&fixture, &old, "restore-labels-differ");
    patch(&base, &label(json!("demo")));
    patch(&base, &json!({"metadata": {"labels": {"captf.io/retained-from-uid": "another"}}}));
    refuses(&fixture, &old, "restore-retained");
    patch(&base, &json!({"metadata": {"labels": {"captf.io/retained-from-uid": null}}}));
    let mut copy = fixture.ground.get("Secret", &fixture.namespace, &base);
    copy["metadata"] =
        json!({"name": format!("{base}-backup"), "namespace": fixture.namespace, "labels": copy["metadata"]["labels"]});
    fixture.ground.apply_value(copy);
    refuses(&fixture, &old, "restore-second-secret");
    let inspect = fixture.plugin(&["state", "inspect", "terraformcluster/demo", "-o", "json"]);
    assert_eq!(inspect.json()["state"]["reason"], "StateInconsistent", "{}", inspect.text());
    fixture.ground.delete("Secret", &fixture.namespace, &format!("{base}-backup"));
    allows(&fixture, &old, "at the end");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn locks_of_real_processes_refuse() {
    let namespace = ground().namespace("locks");
    let (fixture, old) = two_serials(&namespace);
    let lease = fixture.workspace.lease();
    let holder = |value: Value| {
        let patch = json!({"spec": {"holderIdentity": value}});
        fixture.ground.patch("Lease", &fixture.namespace, &lease, None, &patch);
    };
    let free = || {
        holder(Value::Null);
        fixture.ground.patch(
            "Lease",
            &fixture.namespace,
            &lease,
            None,
            &annotate("app.terraform.io/lock-info", Value::Null),
        );
    };
    fixture.workspace.apply_and_kill("laptop");
    refuses(&fixture, &old, "restore-lock-foreign");
    holder(json!(""));
    refuses(&fixture, &old, "restore-lock-empty-holder");
    free();
    let pod = "captf-c-demo-apply-a1-0a1b2c-x7k2p";
    let id = fixture.workspace.apply_and_kill(pod);
    let stale = dry(&fixture, &old);
    assert!(stale.codes().iter().any(|c| c == "restore-lock-stale"), "{}", stale.text());
    assert_eq!(stale.code, 10, "the Job clears it: {}", stale.text());
    holder(json!("another-id"));
    refuses(&fixture, &old, "restore-stale-ids-differ");
    holder(json!(id));
    fixture.ground.apply_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": fixture.namespace},
        "spec": {"containers": [{"name": "source", "image": "x"}]}, "status": {"phase": "Running"},
    }));
    refuses(&fixture, &old, "restore-lock-live");
    fixture.ground.delete("Pod", &fixture.namespace, pod);
    let base = fixture.workspace.secret();
    let good = fixture.ground.get("Secret", &fixture.namespace, &base)["data"].clone();
    let data = |value: &Value| fixture.ground.patch("Secret", &fixture.namespace, &base, None, &json!({"data": value}));
    data(&json!({"tfstate": encode(b"damaged")}));
    refuses(&fixture, &old, "restore-stale-unlock-fails");
    data(&good);
    fixture.ground.delete("Secret", &fixture.namespace, &base);
    refuses(&fixture, &old, "restore-stale-no-state");
    free();
    let lost = dry(&fixture, &old);
    assert_eq!(lost.code, 10, "a lost state under a free lock is what a restore is for: {}", lost.text());
}
