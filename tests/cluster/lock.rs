//! `lock inspect` and `lock list` on a real API server: requests, order of reads, fleets, watching.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::ground::{Ground, ground};
use crate::objects::{cluster, lock, machine, running_pod, state};
use crate::plugin::{captf, kubectl, run};

const OWN: &str = "captf-c-prod-apply-a1-5e1f00-x7k2p";
const ID: &str = "00000001-0000-4000-8000-000000000001";

#[test]
#[ignore = "needs the test ground (make test)"]
fn the_pod_is_read_after_the_lease_and_the_lease_after_the_jobs() {
    let ns = ground().namespace("order");
    cluster(&ns, "prod");
    state(&ns, "TerraformCluster", "prod", "prod");
    state(&ns, "TerraformCluster", "prod", "prod");
    running_pod(&ns, OWN);
    lock(&ns, "TerraformCluster", "prod", ID, &format!("@{OWN}"));
    let live = captf(&ns, "lock inspect tfc/prod -o json -v 6");
    assert_eq!(live.verdict(), "live", "{live:?}");
    let at = |part: &str| {
        live.requests().iter().position(|l| l.contains(part)).unwrap_or_else(|| panic!("{part}: {live:?}"))
    };
    assert!(at("/jobs?") < at("/leases/lock-tfstate"), "{:?}", live.requests());
    assert!(at("/leases/lock-tfstate") < at(&format!("/pods/{OWN}")), "{:?}", live.requests());
    assert!(live.requests().len() <= 6, "{:?}", live.requests());
    assert!(!live.requests().iter().any(|l| l.contains("resourceVersion=")), "{:?}", live.requests());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn requests_stay_within_the_budget() {
    let ns = ground().namespace("budget");
    cluster(&ns, "prod");
    let free = captf(&ns, "lock inspect tfc/prod -o json -v 6");
    assert_eq!(free.verdict(), "free");
    assert!(free.requests().len() <= 6, "{:?}", free.requests());
    lock(&ns, "TerraformCluster", "prod", ID, &format!("@{OWN}"));
    let stale = captf(&ns, "lock inspect tfc/prod -o json -v 6");
    assert_eq!(stale.verdict(), "stale");
    assert!(stale.requests().len() <= 14, "{:?}", stale.requests());
    machine(&ns, "web", "prod");
    lock(&ns, "TerraformMachine", "web", ID, "root@192.168.10.20");
    let foreign = captf(&ns, "lock inspect tfm/web -o json -v 6");
    assert_eq!(foreign.verdict(), "foreign");
    assert!(foreign.requests().len() <= 14, "{:?}", foreign.requests());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_fleet_is_listed_with_few_requests_and_orphans_are_found() {
    let ns = ground().namespace("fleet");
    cluster(&ns, "prod");
    for index in 0..30 {
        machine(&ns, &format!("web-{index:02}"), "prod");
    }
    lock(&ns, "TerraformMachine", "web-07", ID, "root@desktop-1");
    lock(&ns, "TerraformMachine", "gone", "00000002-0000-4000-8000-000000000001", "root@desktop-1");
    let listed = captf(&ns, "lock list -o json -v 6");
    let verdicts: Vec<(String, String)> = listed.json()["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|i| {
            (i["object"]["kind"].as_str().unwrap_or_default().into(), i["verdict"].as_str().unwrap_or_default().into())
        })
        .collect();
    assert_eq!(verdicts, [("TerraformMachine".into(), "foreign".into()), ("Lease".into(), "orphan".into())]);
    // Three kinds, Jobs, Leases, Secrets, then a base Secret by name for each of the 31 objects without one, and the stranger.
    assert!(listed.requests().len() <= 6 + 31 + 8, "{}", listed.requests().len());
    let all = captf(&ns, "lock list --all --no-headers");
    assert_eq!(all.stdout.lines().count(), 32, "{all:?}");
    let selected = captf(&ns, "lock list -l cluster.x-k8s.io/cluster-name=other --all");
    assert!(!selected.stdout.contains("orphan"), "a selector hides objects, so nothing is an orphan: {selected:?}");
    let everywhere = run(ns.ground(), &ns.ground().kubeconfig, &["captf", "lock", "list", "-A", "-o", "json"]);
    assert!(everywhere.stdout.contains("web-07"), "{everywhere:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_recreated_object_does_not_inherit_its_forerunners_jobs() {
    let ns = ground().namespace("recreated");
    let mut earlier = cluster(&ns, "prod");
    earlier["metadata"]["uid"] = json!("00000000-0000-4000-8000-00000000dead");
    crate::objects::job(&ns, &earlier, "captf-c-prod-apply-a1-5e1f00", "apply", false);
    let judged = captf(&ns, "lock inspect tfc/prod -o json");
    assert_eq!(judged.verdict(), "free", "trap 40: {judged:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn watch_prints_again_when_the_lock_changes() {
    let ns = ground().namespace("watch");
    cluster(&ns, "prod");
    let mut child = kubectl(ns.ground(), &ns.ground().kubeconfig)
        .args(["captf", "lock", "inspect", "tfc/prod", "-w", "-n", ns.name()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start kubectl captf");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok);
    let mut next = |verdict: &str| lines.by_ref().any(|l| l.starts_with("TerraformCluster") && l.ends_with(verdict));
    assert!(next("free"));
    lock(&ns, "TerraformCluster", "prod", ID, "root@desktop-1");
    assert!(next("foreign"));
    child.kill().expect("stop the watch");
    child.wait().expect("the watch ended");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_cluster_without_captf_says_so() {
    let private = Ground::start();
    private.delete("CustomResourceDefinition", "", "terraformclusters.infrastructure.cluster.x-k8s.io");
    let kubeconfig = private.kubeconfig.clone();
    let mut answer = run(&private, &kubeconfig, &["captf", "lock", "inspect", "tfc/prod"]);
    for _ in 0..50 {
        if answer.stderr.contains("not installed") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        answer = run(&private, &kubeconfig, &["captf", "lock", "inspect", "tfc/prod"]);
    }
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("CAPTF is not installed in this cluster"), "{answer:?}");
}
