//! What a caller may not read is said, and never read as absent.

use serde_json::{Value, json};

use crate::ground::{Namespace, ground};
use crate::objects::{cluster, lock};
use crate::plugin::{Ran, captf_as};

const OWN: &str = "captf-c-prod-apply-a1-5e1f00-x7k2p";

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": resources, "verbs": verbs})
}

/// Everything that `lock inspect` asks for in a namespace.
fn viewer() -> Vec<Value> {
    vec![
        rule(
            "infrastructure.cluster.x-k8s.io",
            &["terraformclusters", "terraformmachines", "terraformmachinepools"],
            &["get", "list"],
        ),
        rule("cluster.x-k8s.io", &["clusters"], &["get"]),
        rule("coordination.k8s.io", &["leases"], &["get", "list"]),
        rule("batch", &["jobs"], &["list"]),
        rule("", &["pods"], &["get", "list"]),
        rule("", &["secrets"], &["get", "list"]),
        rule("", &["events"], &["list"]),
    ]
}

fn judged(ns: &Namespace<'_>, account: &str, rules: &[Value]) -> Ran {
    let kubeconfig = ns.ground().service_account_kubeconfig(ns.name(), account, &json!(rules));
    captf_as(ns, &kubeconfig, "lock inspect tfc/prod -o json")
}

fn without(resource: &str) -> Vec<Value> {
    viewer().into_iter().filter(|r| r["resources"][0] != resource).collect()
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn with_the_documented_rights_nothing_is_missing_and_with_one_less_it_is_named() {
    let ns = ground().namespace("rights");
    cluster(&ns, "prod");
    lock(&ns, "TerraformCluster", "prod", "00000001-0000-4000-8000-000000000001", &format!("@{OWN}"));
    let whole = judged(&ns, "viewer", &viewer());
    assert_eq!(
        (whole.verdict(), whole.code),
        ("stale".to_string(), Some(11)),
        "no state Secret is an error: {whole:?}"
    );
    assert_eq!(whole.json()["unreadable"], json!([]), "{whole:?}");

    for (resource, verdict, permission) in [
        ("pods", "undetermined", "get pods"),
        ("leases", "undetermined", "get leases.coordination.k8s.io"),
        ("jobs", "undetermined", "list jobs.batch"),
        ("secrets", "stale", "get secrets"),
        ("events", "stale", "list events"),
        ("clusters", "stale", "get clusters.cluster.x-k8s.io"),
    ] {
        let less = judged(&ns, &format!("no-{resource}"), &without(resource));
        assert_eq!(less.verdict(), verdict, "without {resource}: {less:?}");
        let gaps = less.json()["unreadable"].to_string();
        assert!(gaps.contains(permission), "without {resource}: {gaps}");
        if verdict == "undetermined" {
            let text = captf_as(
                &ns,
                &ns.ground().token_kubeconfig(ns.name(), &format!("no-{resource}")),
                "lock inspect tfc/prod",
            );
            assert!(text.stdout.contains("undetermined") && !text.stdout.contains("lock-stale"), "{text:?}");
            assert!(text.stdout.contains(&format!("auth can-i {permission} -n {}", ns.name())), "{text:?}");
        }
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn undetermined_exits_3_and_an_unreadable_object_1() {
    let ns = ground().namespace("exits");
    cluster(&ns, "prod");
    let no_jobs = judged(&ns, "no-jobs", &without("jobs"));
    assert_eq!((no_jobs.verdict(), no_jobs.code), ("undetermined".to_string(), Some(3)), "{no_jobs:?}");
    let nothing = judged(&ns, "nobody", &[rule("", &["configmaps"], &["get"])]);
    assert_eq!(nothing.code, Some(1), "{nothing:?}");
    assert!(
        nothing.stderr.contains("forbidden") && nothing.stderr.contains("auth can-i get terraformclusters"),
        "{nothing:?}"
    );
}
