//! `jobs why` on a real API server: runs as controller, scheduler and kubelet leave them, the cause of each and the
//! time of its next attempt; what a viewer without rights on logs and Secrets gets; the fleet.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::ground::{Namespace, ground};
use crate::objects::{ago, cluster};
use crate::plugin::{captf, captf_as, kubectl};

pub const IMAGE: &str = "registry.example.com/team-a/machine:1.4";
const CAPTF: &str = "captf.infrastructure.cluster.x-k8s.io";

/// Seconds ago at which the Jobs of these tests end.
pub const ENDED: i64 = 30;

pub fn job_name(machine: &str, op: &str, attempt: u32) -> String {
    format!("captf-m-{machine}-{op}-a{attempt}-5e1f00")
}

pub fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": ago(ENDED)})
}

/// A machine of cluster prod with conditions and whatever else its status says.
pub fn machine(ns: &Namespace<'_>, name: &str, conditions: &[Value], status: Value) -> Value {
    let mut whole =
        json!({"initialization": {"provisioned": true}, "lastDriftCheck": ago(3000), "conditions": conditions});
    for (key, value) in status.as_object().expect("an object") {
        whole[key] = value.clone();
    }
    ns.ground().apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformMachine",
        "metadata": {"name": name, "namespace": ns.name(), "labels": {"cluster.x-k8s.io/cluster-name": "prod"}},
        "spec": {"source": {"image": IMAGE}}, "status": whole}))
}

pub fn labels(owner: &Value, op: &str, attempt: u32) -> Value {
    json!({format!("{CAPTF}/owner-kind"): "TerraformMachine", format!("{CAPTF}/owner-name"): owner["metadata"]["name"],
           format!("{CAPTF}/op"): op, format!("{CAPTF}/attempt"): attempt.to_string(), "captf.io/managed": "true"})
}

/// A Job; `ended` is the reason of its condition Failed, `Complete`, or nothing while it is unfinished.
pub fn job(
    ns: &Namespace<'_>,
    owner: &Value,
    op: &str,
    attempt: u32,
    ended: Option<&str>,
    finished: i64,
    annotations: Value,
) -> String {
    let machine = owner["metadata"]["name"].as_str().expect("a name");
    let name = job_name(machine, op, attempt);
    let started = if ended == Some("DeadlineExceeded") { finished + 3600 } else { finished + 60 };
    let at = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": ago(finished), "lastProbeTime": ago(finished)});
    let status = match ended {
        None => json!({"startTime": ago(started), "active": 1}),
        Some("Complete") => {
            json!({"startTime": ago(started), "completionTime": ago(finished), "succeeded": 1, "uncountedTerminatedPods": {},
            "conditions": [at("SuccessCriteriaMet", "CompletionsReached"), at("Complete", "CompletionsReached")]})
        }
        Some(reason) => {
            json!({"startTime": ago(started), "failed": 1, "uncountedTerminatedPods": {}, "conditions": [at("FailureTarget", reason), at("Failed", reason)]})
        }
    };
    let mut marks = annotations;
    if ended.is_some() && marks["captf.io/bookkept"].is_null() {
        marks["captf.io/bookkept"] = json!("true");
    }
    ns.ground().apply_value(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": ns.name(), "labels": labels(owner, op, attempt), "annotations": marks,
                     "ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": machine, "uid": owner["metadata"]["uid"], "controller": true}]},
        "spec": {"backoffLimit": 0, "activeDeadlineSeconds": 3600, "template": {"metadata": {"labels": labels(owner, op, attempt)}, "spec": {
            "restartPolicy": "Never", "containers": [{"name": "source", "image": IMAGE}]}}},
        "status": status}));
    name
}

/// A pod of a Job with the status that kubelet and scheduler gave it.
pub fn pod(ns: &Namespace<'_>, owner: &Value, job: &str, on: &str, status: Value) -> String {
    let name = format!("{job}-x7k2p");
    let mut labels = labels(owner, "apply", 1);
    labels["batch.kubernetes.io/job-name"] = json!(job);
    let mut spec = json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 600,
        "initContainers": [{"name": "runner", "image": "registry.example.com/captf/manager:0.1"}],
        "containers": [{"name": "source", "image": IMAGE, "resources": {"limits": {"memory": "2Gi"}}}]});
    if !on.is_empty() {
        spec["nodeName"] = json!(on);
    }
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns.name(), "labels": labels}, "spec": spec, "status": status}));
    name
}

pub fn event(ns: &Namespace<'_>, kind: &str, name: &str, reason: &str, message: &str) {
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{name}.{}", reason.to_lowercase()), "namespace": ns.name()},
        "involvedObject": {"kind": kind, "name": name, "namespace": ns.name()}, "type": "Warning", "reason": reason, "message": message,
        "firstTimestamp": ago(20), "lastTimestamp": ago(20), "count": 1, "source": {"component": "test"}}));
}

pub fn container(name: &str, state: Value) -> Value {
    json!({"name": name, "image": IMAGE, "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

pub fn waiting(reason: &str, message: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": message}})
}

pub fn terminated(code: i64, reason: &str, message: &str) -> Value {
    json!({"terminated": {"exitCode": code, "reason": reason, "message": message, "startedAt": ago(90), "finishedAt": ago(ENDED)}})
}

pub fn result(step: &str, kind: &str, tail: &str) -> String {
    json!({"version": 1, "op": "apply", "image": {}, "runtime": {}, "steps": [{"name": "init", "exit": 0, "seconds": 3.0}, {"name": step, "exit": 1, "seconds": 50.0}],
           "error": {"kind": kind, "step": step, "tail": tail}}).to_string()
}

/// What is expected of one machine.
struct Expected {
    machine: &'static str,
    code: &'static str,
    /// Operation, state, and the seconds after the end of the last Job at which it is tried again.
    next: (&'static str, &'static str, Option<i64>),
}

pub fn failed(ns: &Namespace<'_>, name: &str, reason: &str, ended: &str, annotations: Value) -> (Value, String) {
    let owner = machine(ns, name, &[condition("ApplyJobSucceeded", "False", reason)], json!({}));
    let job = job(ns, &owner, "apply", 1, Some(ended), ENDED, annotations);
    (owner, job)
}

pub fn running(ns: &Namespace<'_>, name: &str) -> (Value, String) {
    let owner = machine(ns, name, &[], json!({}));
    let job = job(ns, &owner, "apply", 1, None, ENDED, json!({}));
    (owner, job)
}

/// Writes every case and returns what is expected of it.
fn write_all(ns: &Namespace<'_>) -> Vec<Expected> {
    const RETRY: (&str, &str, Option<i64>) = ("apply", "scheduled", Some(60));
    const NOW: (&str, &str, Option<i64>) = ("apply", "due", None);
    const BUSY: (&str, &str, Option<i64>) = ("apply", "running", None);
    const HELD: (&str, &str, Option<i64>) = ("apply", "held", None);
    let mut all = Vec::new();
    let mut expect = |machine, code, next| all.push(Expected { machine, code, next });
    // Steps: from a pod that is not bookkept yet, and from the status.
    for (name, code, message) in [
        ("step", "step-failed", result("apply", "step", "Error: no quota")),
        ("init", "init-step-failed", result("init", "step", "Error: no provider")),
        ("lock", "state-lock-timeout", result("apply", "step", "Error: Error acquiring the state lock")),
        ("layout", "image-layout-wrong", result("prepare", "image-layout", "no /captf/runtime")),
    ] {
        let (owner, job) =
            failed(ns, name, "ApplyFailed", "BackoffLimitExceeded", json!({"captf.io/bookkept": "false"}));
        pod(
            ns,
            &owner,
            &job,
            "node-1",
            json!({"phase": "Failed", "containerStatuses": [container("source", terminated(1, "Error", &message))]}),
        );
        expect(name, code, RETRY);
    }
    // What the runner reports itself is not counted, before and after bookkeeping.
    for (name, code, kind, annotations) in [
        ("interrupted", "run-interrupted", "interrupted", json!({"captf.io/bookkept": "false"})),
        ("blocked", "destructive-plan-blocked", "blocked", json!({"captf.io/bookkept": "false"})),
        ("marked", "run-interrupted", "step", json!({"captf.io/interrupted": "true"})),
    ] {
        let (owner, job) = failed(
            ns,
            name,
            if kind == "blocked" { "DestructivePlanBlocked" } else { "ApplyFailed" },
            "BackoffLimitExceeded",
            annotations,
        );
        pod(
            ns,
            &owner,
            &job,
            "node-1",
            json!({"phase": "Failed", "containerStatuses": [container("source", terminated(1, "Error", &result("apply", kind, "")))]}),
        );
        expect(name, code, if kind == "blocked" { ("apply", "scheduled", Some(600)) } else { NOW });
    }
    // Ended from outside.
    for (name, code, reason) in [
        ("drained", "run-drained", "EvictionByEvictionAPI"),
        ("preempted", "run-preempted", "PreemptionByScheduler"),
        ("tainted", "run-node-tainted", "DeletionByTaintManager"),
        ("shutdown", "run-evicted", "TerminationByKubelet"),
    ] {
        let (owner, job) =
            failed(ns, name, "ApplyFailed", "BackoffLimitExceeded", json!({"captf.io/interrupted": "true"}));
        pod(
            ns,
            &owner,
            &job,
            "node-1",
            json!({"phase": "Failed", "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": ago(40)}],
            "containerStatuses": [container("source", terminated(1, "Error", ""))]}),
        );
        expect(name, code, NOW);
    }
    let (owner, job_) = failed(ns, "evicted", "ApplyFailed", "BackoffLimitExceeded", json!({}));
    pod(
        ns,
        &owner,
        &job_,
        "node-1",
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory. "}),
    );
    expect("evicted", "run-evicted", RETRY);
    // Memory and kills.
    for (name, code, state) in [
        ("oom", "out-of-memory", terminated(137, "OOMKilled", "")),
        ("oom-exit-0", "out-of-memory", terminated(0, "OOMKilled", "")),
        ("killed", "killed-unexplained", terminated(137, "Error", "")),
        ("start-error", "container-cannot-run", terminated(128, "StartError", "exec: no such file or directory")),
        ("usage", "no-result", terminated(2, "Error", "flag provided but not defined")),
    ] {
        let (owner, job) = failed(ns, name, "ApplyFailed", "BackoffLimitExceeded", json!({}));
        pod(ns, &owner, &job, "node-1", json!({"phase": "Failed", "containerStatuses": [container("source", state)]}));
        expect(name, code, RETRY);
    }
    failed(ns, "gone", "ApplyFailed", "BackoffLimitExceeded", json!({}));
    expect("gone", "pods-gone", RETRY);
    failed(ns, "deadline", "JobDeadlineExceeded", "DeadlineExceeded", json!({"captf.io/interrupted": "true"}));
    expect("deadline", "deadline-unknown", RETRY);
    let (owner, job_) = failed(ns, "pull-at-deadline", "ImagePullFailed", "DeadlineExceeded", json!({}));
    pod(
        ns,
        &owner,
        &job_,
        "node-1",
        json!({"phase": "Pending", "containerStatuses": [container("source", waiting("ImagePullBackOff", "401 Unauthorized"))]}),
    );
    expect("pull-at-deadline", "image-pull-unauthorized", RETRY);
    // Not started.
    for (name, code, init, state, message) in [
        (
            "pull",
            "image-pull-not-found",
            json!({}),
            waiting("ErrImagePull", ""),
            "Failed to pull image \"x\": not found",
        ),
        (
            "pull-init",
            "image-pull-denied",
            waiting("ImagePullBackOff", "403 Forbidden"),
            waiting("PodInitializing", ""),
            "",
        ),
        (
            "config",
            "config-object-missing",
            json!({}),
            waiting("CreateContainerConfigError", "secret \"captf-creds-a\" not found"),
            "",
        ),
        (
            "key",
            "config-key-missing",
            json!({}),
            waiting("CreateContainerConfigError", "couldn't find key token in Secret x/creds"),
            "",
        ),
        ("init-failed", "init-container-failed", terminated(1, "Error", ""), waiting("PodInitializing", ""), ""),
    ] {
        let (owner, job) = running(ns, name);
        let inits =
            if init.as_object().is_some_and(|o| o.is_empty()) { json!([]) } else { json!([container("runner", init)]) };
        let made = pod(
            ns,
            &owner,
            &job,
            "node-1",
            json!({"phase": "Pending", "initContainerStatuses": inits, "containerStatuses": [container("source", state)]}),
        );
        if !message.is_empty() {
            event(ns, "Pod", &made, "Failed", message);
        }
        expect(name, code, BUSY);
    }
    let (owner, job_) = running(ns, "unschedulable");
    pod(
        ns,
        &owner,
        &job_,
        "",
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu.", "lastTransitionTime": ago(40)}]}),
    );
    expect("unschedulable", "pod-unschedulable", BUSY);
    for (name, code, message) in [
        (
            "quota",
            "pod-quota-exceeded",
            "Error creating: pods \"x-\" is forbidden: exceeded quota: compute, requested: limits.memory=2Gi",
        ),
        ("webhook", "pod-webhook-denied", "Error creating: admission webhook \"p.example.com\" denied the request: no"),
        (
            "account",
            "pod-no-service-account",
            "Error creating: pods \"x-\" is forbidden: error looking up service account a/captf-runner: serviceaccount \"captf-runner\" not found",
        ),
    ] {
        let (_, job) = running(ns, name);
        event(ns, "Job", &job, "FailedCreate", message);
        expect(name, code, BUSY);
    }
    // No Job at all.
    for (name, code, kind, status, reason, next) in [
        ("slot", "waits-job-slot", "ApplyJobSucceeded", "Unknown", "WaitingForJobSlot", HELD),
        ("large", "inputs-too-large", "ApplyJobSucceeded", "False", "InputsTooLarge", HELD),
        ("policy", "job-policy-invalid", "ApplyJobSucceeded", "False", "JobPolicyInvalid", HELD),
        (
            "inputs",
            "durable-inputs-missing",
            "DriftJobSucceeded",
            "Unknown",
            "DurableInputsMissing",
            ("drift", "held", None),
        ),
    ] {
        machine(ns, name, &[condition(kind, status, reason)], json!({}));
        expect(name, code, next);
    }
    machine(
        ns,
        "vanished",
        &[],
        json!({"activeJob": {"name": job_name("vanished", "apply", 4), "operation": "apply", "attempt": 4, "startTime": ago(60)}}),
    );
    expect("vanished", "job-vanished", NOW);
    // A drift failure beside an apply success: each operation counts for itself.
    let owner = machine(
        ns,
        "drift",
        &[
            condition("ApplyJobSucceeded", "True", "ApplySucceeded"),
            condition("DriftJobSucceeded", "False", "DriftJobFailed"),
        ],
        json!({}),
    );
    job(ns, &owner, "apply", 1, Some("Complete"), 10, json!({}));
    job(ns, &owner, "drift", 1, Some("BackoffLimitExceeded"), 400, json!({}));
    job(ns, &owner, "drift", 2, Some("BackoffLimitExceeded"), ENDED, json!({}));
    expect("drift", "pods-gone", ("drift", "scheduled", Some(120)));
    // Failures before a success do not count, those of a deleted namesake neither.
    let mut owner = machine(ns, "counted", &[condition("ApplyJobSucceeded", "False", "ApplyFailed")], json!({}));
    job(ns, &owner, "apply", 1, Some("BackoffLimitExceeded"), 900, json!({}));
    job(ns, &owner, "apply", 2, Some("Complete"), 600, json!({}));
    job(ns, &owner, "apply", 3, Some("BackoffLimitExceeded"), 300, json!({}));
    job(ns, &owner, "apply", 4, Some("BackoffLimitExceeded"), 200, json!({"captf.io/interrupted": "true"}));
    job(ns, &owner, "apply", 5, Some("BackoffLimitExceeded"), ENDED, json!({}));
    owner["metadata"]["uid"] = json!("00000000-0000-4000-8000-00000000dead");
    job(ns, &owner, "apply", 6, Some("BackoffLimitExceeded"), 5, json!({}));
    expect("counted", "pods-gone", ("apply", "scheduled", Some(120)));
    all
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn every_cause_and_its_next_attempt_are_right_on_a_real_api_server() {
    let ns = ground().namespace("causes");
    cluster(&ns, "prod");
    let expected = write_all(&ns);
    assert!(expected.len() >= 25, "{}", expected.len());
    let names: Vec<String> = expected.iter().map(|e| format!("tfm/{}", e.machine)).collect();
    let ran = captf(&ns, &format!("jobs why -o json {}", names.join(" ")));
    assert_eq!(ran.code, Some(11), "{ran:?}");
    let report = ran.json();
    let mut wrong = Vec::new();
    for (item, expected) in report["items"].as_array().expect("items").iter().zip(&expected) {
        assert_eq!(item["object"]["name"], expected.machine);
        let codes: Vec<&str> =
            item["findings"].as_array().expect("findings").iter().filter_map(|f| f["code"].as_str()).collect();
        if codes.first() != Some(&expected.code) || item["runs"]["cause"]["code"] != expected.code {
            wrong.push(format!("{}: {codes:?} instead of {}", expected.machine, expected.code));
        }
        let (op, state, after) = expected.next;
        let attempts = item["runs"]["nextAttempts"].as_array().cloned().unwrap_or_default();
        let Some(next) = attempts.iter().find(|a| a["operation"] == op) else {
            wrong.push(format!("{}: no next {op} in {attempts:?}", expected.machine));
            continue;
        };
        if next["state"] != state {
            wrong.push(format!("{}: {next} instead of {state}", expected.machine));
        }
        if let Some(after) = after {
            let finished = item["runs"]["jobs"]
                .as_array()
                .expect("jobs")
                .iter()
                .filter_map(|j| j["finishedAt"].as_str())
                .max()
                .expect("a finished Job");
            let due = finished.parse::<Timestamp>().expect("a time") + SignedDuration::from_secs(after);
            if next["at"] != due.to_string() {
                wrong.push(format!("{}: {} instead of {due}", expected.machine, next["at"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn the_fleet_is_worst_first_and_takes_the_alerts_labels() {
    let ns = ground().namespace("fleet-jobs");
    cluster(&ns, "prod");
    let expected = write_all(&ns);
    machine(&ns, "fine", &[condition("ApplyJobSucceeded", "True", "ApplySucceeded")], json!({}));
    let ran = captf(&ns, "jobs why -o json -v 6");
    let report = ran.json();
    let items = report["items"].as_array().expect("items");
    let names: Vec<&str> = items.iter().filter_map(|i| i["object"]["name"].as_str()).collect();
    assert!(!names.contains(&"fine") && names.contains(&"slot") && names.contains(&"drift"), "{names:?}");
    // Running without a bad condition is no reason to be listed.
    assert!(!names.contains(&"quota"), "{names:?}");
    let rank = |i: &Value| match i["findings"][0]["severity"].as_str() {
        Some("error") => 2,
        Some("warning") => 1,
        _ => 0,
    };
    let ranks: Vec<i32> = items.iter().map(rank).collect();
    assert!(ranks.is_sorted_by(|a, b| a >= b), "{ranks:?}");
    assert!(!ran.requests().iter().any(|r| r.contains("/log?")), "a fleet reads no logs: {:?}", ran.requests());
    // Out of lists the causes are the same as one by one.
    for item in items {
        let one = expected.iter().find(|e| item["object"]["name"] == e.machine).expect("it was written");
        assert_eq!(item["runs"]["cause"]["code"], one.code, "{}", one.machine);
    }
    // Lists, however many objects there are: 3 kinds, Jobs, pods, Clusters, TerraformClusters, events on two kinds,
    // leases and nodes.
    assert!(items.len() > 25 && ran.requests().len() <= 12, "{} of {:?}", items.len(), ran.requests());
    let drift = captf(&ns, "jobs why --op drift --kind TerraformMachine -o name");
    let mut listed: Vec<&str> = drift.stdout.lines().collect();
    listed.sort_unstable();
    assert_eq!(
        listed,
        [
            "terraformmachine.infrastructure.cluster.x-k8s.io/drift",
            "terraformmachine.infrastructure.cluster.x-k8s.io/inputs"
        ]
    );
    let pools = captf(&ns, "jobs why --kind TerraformMachinePool");
    assert_eq!((pools.code, pools.stdout.as_str()), (Some(0), ""), "{pools:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_viewer_without_logs_and_secrets_is_told_what_was_not_seen() {
    let ns = ground().namespace("viewer-jobs");
    cluster(&ns, "prod");
    let (owner, job) = failed(&ns, "step", "ApplyFailed", "BackoffLimitExceeded", json!({}));
    pod(
        &ns,
        &owner,
        &job,
        "node-1",
        json!({"phase": "Failed", "containerStatuses": [container("source", terminated(1, "Error", &result("apply", "step", "Error: no quota")))]}),
    );
    let rules = json!([
        {"apiGroups": ["infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list"]}]);
    let viewer = ns.ground().service_account_kubeconfig(ns.name(), "viewer", &rules);
    let ran = captf_as(&ns, &viewer, "jobs why tfm/step -o json");
    assert_eq!(ran.code, Some(11), "{ran:?}");
    assert_eq!(ran.codes(), ["step-failed"], "{ran:?}");
    let gaps: Vec<String> = ran.json()["unreadable"]
        .as_array()
        .expect("gaps")
        .iter()
        .map(|g| format!("{} {}", g["what"], g["permission"]))
        .collect();
    assert!(gaps.iter().any(|g| g.contains("log of Pod") && g.contains("get pods/log")), "{gaps:?}");
    let logs = captf_as(&ns, &viewer, "jobs logs tfm/step");
    assert_eq!(logs.code, Some(3), "{logs:?}");
    assert!(logs.stderr.contains("forbidden"), "{logs:?}");
    // Without Jobs nothing is claimed about them.
    let rules =
        json!([{"apiGroups": ["infrastructure.cluster.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list"]}]);
    let blind = ns.ground().service_account_kubeconfig(ns.name(), "blind", &rules);
    let ran = captf_as(&ns, &blind, "jobs why tfm/step -o json");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.codes().is_empty(), "{ran:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_cluster_is_told_what_keeps_the_machines_that_it_waits_for() {
    let ns = ground().namespace("waits-jobs");
    let owner = cluster(&ns, "prod");
    let (stuck, job) = running(&ns, "stuck");
    let state = json!({"phase": "Pending", "containerStatuses": [container("source", waiting("ErrImagePull", "401 Unauthorized"))]});
    pod(&ns, &stuck, &job, "node-1", state);
    let (_, busy) = running(&ns, "busy");
    let mut waits = condition("ApplyJobSucceeded", "Unknown", "WaitingForMachineOperations");
    waits["message"] = json!(format!("waiting for Jobs {job}, {busy}, {}", job_name("gone", "apply", 3)));
    let status = json!({"status": {"conditions": [waits], "initialization": {"provisioned": true}}});
    ns.ground().patch(
        "TerraformCluster",
        ns.name(),
        owner["metadata"]["name"].as_str().expect("a name"),
        Some("status"),
        &status,
    );
    let ran = captf(&ns, "jobs why tfc/prod -o json");
    assert_eq!(ran.codes(), ["machine-operation-stuck", "waits-machine-operations"], "{ran:?}");
    let findings = ran.json()["items"][0]["findings"].clone();
    assert!(
        findings[0]["summary"]
            .as_str()
            .is_some_and(|s| s.contains("terraformmachine/stuck") && s.contains("image-pull-unauthorized")),
        "{findings}"
    );
    let lines = findings[1]["evidence"].to_string();
    for text in ["terraformmachine/stuck: has not started", "terraformmachine/busy: has not started", "not found"] {
        assert!(lines.contains(text), "{text}: {lines}");
    }
    // The fleet says the same from its lists.
    let fleet = captf(&ns, "jobs why -o json");
    assert_eq!(fleet.json()["items"][0]["runs"]["cause"]["code"], "machine-operation-stuck", "{fleet:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_kill_for_memory_is_told_with_what_the_node_says_of_it() {
    let ns = ground().namespace("memory-jobs");
    cluster(&ns, "prod");
    let node = format!("node-{}", ns.name());
    let (owner, job) = failed(&ns, "oom", "ApplyFailed", "BackoffLimitExceeded", json!({}));
    let state =
        json!({"phase": "Failed", "containerStatuses": [container("source", terminated(137, "OOMKilled", ""))]});
    pod(&ns, &owner, &job, &node, state);
    let usage = |kubeconfig: Option<&std::path::Path>| {
        let line = "jobs why tfm/oom -o json";
        let ran = kubeconfig.map_or_else(|| captf(&ns, line), |k| captf_as(&ns, k, line));
        assert_eq!(ran.codes()[0], "out-of-memory", "{ran:?}");
        let evidence = ran.json()["items"][0]["findings"][0]["evidence"].as_array().cloned().expect("evidence");
        let of = evidence.iter().find(|e| e["source"].as_str().is_some_and(|s| s.starts_with("memory in use")));
        (of.expect("what is known of the memory")["value"].as_str().expect("a text").to_string(), ran)
    };
    assert!(usage(None).0.starts_with("unknown: no event on Node"));
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": format!("{node}.1"), "namespace": "default"},
        "involvedObject": {"kind": "Node", "name": node}, "type": "Warning", "reason": "OOMKilling", "count": 1,
        "message": "Memory cgroup out of memory: Killed process 4242 (terraform-provi) total-vm:6123456kB, anon-rss:2031616kB, file-rss:1024kB",
        "firstTimestamp": ago(ENDED), "lastTimestamp": ago(ENDED), "source": {"component": "kernel-monitor"}}));
    assert!(usage(None).0.starts_with("1.9Gi by process terraform-provi"));
    // Events of namespace default are not a namespaced viewer's to read.
    let rules = json!([
        {"apiGroups": ["infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list"]}]);
    let viewer = ns.ground().service_account_kubeconfig(ns.name(), "viewer", &rules);
    let (value, ran) = usage(Some(&viewer));
    assert!(value.contains("could not be read"), "{value}");
    let gaps = ran.json()["unreadable"].to_string();
    assert!(gaps.contains(&format!("Events on Node {node}")) && gaps.contains("list events"), "{gaps}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn watch_prints_again_when_the_run_changes() {
    let ns = ground().namespace("watch-jobs");
    cluster(&ns, "prod");
    let (owner, job) = running(&ns, "web");
    let mut child = kubectl(ns.ground(), &ns.ground().kubeconfig)
        .args(["captf", "jobs", "why", "tfm/web", "-w", "-n", ns.name()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("start kubectl captf");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok);
    let mut next = |text: &str| lines.by_ref().any(|l| l.contains(text));
    assert!(next("starting"));
    pod(
        &ns,
        &owner,
        &job,
        "node-1",
        json!({"phase": "Pending", "containerStatuses": [container("source", waiting("ErrImagePull", "not found"))]}),
    );
    assert!(next("error[image-pull-not-found]"));
    child.kill().expect("stop the watch");
    child.wait().expect("the watch ended");
}
