//! Locks that a real Terraform and a real OpenTofu took through the `kubernetes` backend.

use serde_json::json;

use crate::ground::runtime::Runtime;
use crate::ground::{Namespace, ground};
use crate::objects::{cluster, job, machine, pod, running_pod};
use crate::plugin::captf;

const OWN: &str = "captf-c-prod-apply-a1-5e1f00-x7k2p";

fn with_state<'ground>(ns: &Namespace<'ground>, runtime: &Runtime) -> crate::ground::runtime::Workspace<'ground> {
    let object = runtime.object_in(ns, "TerraformCluster", "prod", "prod");
    object.apply(&json!({"output": {"canary": {"value": "CANARY-4c1d-state-value", "sensitive": true}}}));
    object
}

/// The whole life of a lock: free, live, left by SIGKILL, told with the holder's ID and host.
fn a_killed_run_leaves_a_stale_lock(runtime: &Runtime) {
    let ns = ground().namespace("killed");
    cluster(&ns, "prod");
    let object = with_state(&ns, runtime);
    let free = captf(&ns, "lock inspect terraformcluster/prod -o json");
    assert_eq!((free.verdict(), free.code), ("free".to_string(), Some(0)), "{free:?}");

    running_pod(&ns, OWN);
    let running = object.apply_running(OWN);
    let live = captf(&ns, "lock inspect terraformcluster/prod -o json");
    assert_eq!((live.verdict(), live.code), ("live".to_string(), Some(0)), "{live:?}");

    let id = running.kill();
    ns.ground().delete("Pod", ns.name(), OWN);
    let stale = captf(&ns, "lock inspect terraformcluster prod -o json");
    assert_eq!((stale.verdict(), stale.code), ("stale".to_string(), Some(0)), "{stale:?}");
    let lock = &stale.json()["items"][0]["lock"];
    assert_eq!(lock["id"], json!(id));
    assert!(lock["holder"].as_str().expect("a holder").ends_with(&format!("@{OWN}")), "{lock}");
    assert_eq!(lock["operation"], "OperationTypeApply");
    assert!(stale.codes().contains(&"lock-stale".to_string()), "{stale:?}");

    let text = captf(&ns, "lock inspect terraformcluster/prod");
    for run in [&free, &live, &stale, &text] {
        assert!(!run.stdout.contains("CANARY") && !run.stderr.contains("CANARY"), "{run:?}");
    }
    assert!(text.stdout.contains(&id) && text.stdout.contains("stale"), "{text:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn terraform_killed() {
    a_killed_run_leaves_a_stale_lock(&Runtime::terraform());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn tofu_killed() {
    a_killed_run_leaves_a_stale_lock(&Runtime::tofu());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_run_killed_on_a_workstation_leaves_a_foreign_lock_that_its_id_finds() {
    let ns = ground().namespace("foreign");
    cluster(&ns, "prod");
    let object = with_state(&ns, &Runtime::terraform());
    let id = object.apply_and_kill("desktop-1");
    let foreign = captf(&ns, "lock inspect terraformcluster/prod -o json");
    assert_eq!((foreign.verdict(), foreign.code), ("foreign".to_string(), Some(11)), "{foreign:?}");
    assert!(foreign.codes().contains(&"lock-foreign-host".to_string()), "{foreign:?}");
    assert!(!foreign.codes().iter().any(|c| c.starts_with("release-")), "{foreign:?}");
    let by_id = captf(&ns, &format!("lock inspect {id} -o json"));
    assert_eq!(by_id.json()["items"][0]["object"]["name"], "prod");
    let listed = captf(&ns, "lock list --no-headers");
    assert!(listed.stdout.starts_with("terraformcluster/prod"), "{listed:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_clean_exit_leaves_a_free_lease() {
    let ns = ground().namespace("clean");
    cluster(&ns, "prod");
    let object = with_state(&ns, &Runtime::terraform());
    running_pod(&ns, OWN);
    object.apply_running(OWN).finish();
    let free = captf(&ns, "lock inspect cluster/prod -o json");
    assert_eq!((free.verdict(), free.code), ("free".to_string(), Some(0)), "{free:?}");
    assert_eq!(free.codes(), ["lock-free"]);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_run_of_an_unfinished_job_is_not_evaluated() {
    let ns = ground().namespace("running");
    let owner = cluster(&ns, "prod");
    let object = with_state(&ns, &Runtime::terraform());
    job(&ns, &owner, "captf-c-prod-apply-a1-5e1f00", "apply", false);
    running_pod(&ns, OWN);
    let running = object.apply_running(OWN);
    let judged = captf(&ns, "lock inspect tfc/prod -o json");
    assert_eq!(
        (judged.verdict(), judged.codes()),
        ("not-evaluated".to_string(), vec!["lock-of-running-job".to_string()])
    );
    running.finish();
    let between = captf(&ns, "lock inspect tfc/prod -o json");
    assert_eq!(between.codes(), ["lock-free-job-running"]);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn an_ended_pod_of_the_killed_run_is_named_with_its_cause() {
    let ns = ground().namespace("oom");
    let owner = cluster(&ns, "prod");
    let object = with_state(&ns, &Runtime::terraform());
    object.apply_and_kill(OWN);
    job(&ns, &owner, "captf-c-prod-apply-a1-5e1f00", "apply", true);
    pod(
        &ns,
        OWN,
        json!({"phase": "Failed", "containerStatuses": [{"name": "source", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}),
    );
    let judged = captf(&ns, "lock inspect tfc/prod -o json");
    assert_eq!(judged.verdict(), "stale");
    assert!(judged.stdout.contains("OOMKilled"), "{judged:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_machine_inherits_and_hashed_names_are_own_pods() {
    let ns = ground().namespace("hashed");
    cluster(&ns, "prod");
    let name = "prod-eu-control-plane-7d9f8-x2k4q";
    machine(&ns, name, "prod");
    let object = Runtime::terraform().object_in(&ns, "TerraformMachine", name, "prod");
    object.apply(&json!({"output": {"a": {"value": 1}}}));
    object.apply_and_kill("captf-m-f9ab8dd997acab0a-refresh-a1-abc123-x7k2p");
    let judged = captf(&ns, &format!("lock inspect tfm/{name} -o json"));
    assert_eq!(judged.verdict(), "stale", "{judged:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_changed_label_on_a_real_state_is_an_error_on_a_free_lock() {
    let ns = ground().namespace("labels");
    cluster(&ns, "prod");
    let object = with_state(&ns, &Runtime::terraform());
    let patch = json!({"metadata": {"labels": {"cluster.x-k8s.io/cluster-name": "other"}}});
    ns.ground().patch("Secret", ns.name(), &object.secret(), None, &patch);
    let judged = captf(&ns, "lock inspect tfc/prod -o json");
    assert_eq!((judged.verdict(), judged.code), ("free".to_string(), Some(11)), "{judged:?}");
    assert!(judged.codes().contains(&"state-labels-differ".to_string()), "{judged:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn an_empty_state_secret_and_an_empty_holder_are_told_without_reading_payload() {
    let ns = ground().namespace("empty");
    cluster(&ns, "prod");
    let object = with_state(&ns, &Runtime::terraform());
    object.apply_and_kill("desktop-1");
    ns.ground().patch("Secret", ns.name(), &object.secret(), None, &json!({"data": {"tfstate": null}}));
    let clear =
        json!({"spec": {"holderIdentity": ""}, "metadata": {"annotations": {"app.terraform.io/lock-info": null}}});
    ns.ground().patch("Lease", ns.name(), &object.lease(), None, &clear);
    let judged = captf(&ns, "lock inspect tfc/prod -o json -v 6");
    assert_eq!(judged.verdict(), "empty-holder", "{judged:?}");
    let codes = judged.codes();
    assert!(
        codes.contains(&"state-key-missing".to_string()) && codes.contains(&"lock-empty-holder".to_string()),
        "{codes:?}"
    );
}
