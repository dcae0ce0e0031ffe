//! Objects as CAPTF's controller and the kubelet would write them.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::ground::Namespace;

/// RFC 3339 in UTC, that many seconds ago.
pub fn ago(seconds: i64) -> String {
    let now = Timestamp::now() - SignedDuration::from_secs(seconds);
    Timestamp::from_second(now.as_second()).expect("a time").to_string()
}

/// A Cluster and its TerraformCluster of the same name; returns the latter with its UID.
pub fn cluster(ns: &Namespace<'_>, name: &str) -> Value {
    ns.ground().apply_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name, "namespace": ns.name()},
        "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TerraformCluster", "name": name}}}));
    ns.ground().apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformCluster",
        "metadata": {"name": name, "namespace": ns.name(), "labels": {"cluster.x-k8s.io/cluster-name": name}},
        "spec": {"source": {"image": "registry.example.com/team-a/cluster:1.4"}, "identityRef": {"name": "team-a-cloud"}},
        "status": {"initialization": {"provisioned": true}, "observedStateSerial": 1, "lastDriftCheck": ago(60),
                   "conditions": [{"type": "StateReadable", "status": "True", "reason": "StateRead", "message": "", "lastTransitionTime": ago(600)}]}}))
}

/// A machine of a cluster.
pub fn machine(ns: &Namespace<'_>, name: &str, cluster: &str) -> Value {
    ns.ground().apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformMachine",
        "metadata": {"name": name, "namespace": ns.name(), "labels": {"cluster.x-k8s.io/cluster-name": cluster}},
        "spec": {"source": {"image": "registry.example.com/team-a/machine:1.4"}}}))
}

/// A pod that runs, as the kubelet reports it.
pub fn running_pod(ns: &Namespace<'_>, name: &str) {
    pod(
        ns,
        name,
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "source", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                               "state": {"running": {"startedAt": ago(5)}}}]}),
    );
}

/// A pod with that status.
pub fn pod(ns: &Namespace<'_>, name: &str, status: Value) {
    ns.ground().apply_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns.name()},
        "spec": {"restartPolicy": "Never", "nodeName": "node-1", "terminationGracePeriodSeconds": 600,
                 "containers": [{"name": "source", "image": "registry.example.com/team-a/cluster:1.4"}]},
        "status": status}));
}

/// An unfinished or failed Job of an object.
pub fn job(ns: &Namespace<'_>, owner: &Value, name: &str, op: &str, failed: bool) {
    let kind = owner["kind"].as_str().expect("a kind");
    let owner_name = owner["metadata"]["name"].as_str().expect("a name");
    let labels = json!({"captf.infrastructure.cluster.x-k8s.io/owner-kind": kind, "captf.infrastructure.cluster.x-k8s.io/owner-name": owner_name,
                        "captf.infrastructure.cluster.x-k8s.io/op": op, "captf.infrastructure.cluster.x-k8s.io/attempt": "1"});
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit",
                                        "lastTransitionTime": ago(10), "lastProbeTime": ago(10)})
    };
    let status = if failed {
        json!({"startTime": ago(60), "failed": 1, "conditions": [condition("FailureTarget"), condition("Failed")]})
    } else {
        json!({"startTime": ago(60), "active": 1})
    };
    ns.ground().apply_value(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": ns.name(), "labels": labels,
                     "annotations": if failed { json!({"captf.io/bookkept": "true"}) } else { json!({}) },
                     "ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": kind, "name": owner_name,
                                          "uid": owner["metadata"]["uid"], "controller": true}]},
        "spec": {"backoffLimit": 0, "activeDeadlineSeconds": 3600, "template": {"metadata": {"labels": labels}, "spec": {
            "restartPolicy": "Never", "containers": [{"name": "source", "image": "registry.example.com/team-a/cluster:1.4"}]}}},
        "status": status}));
}

/// A state lock Lease of `kind/name` with a holder and lock-info, written by hand.
pub fn lock(ns: &Namespace<'_>, kind: &str, name: &str, holder: &str, who: &str) {
    let suffix = crate::ground::runtime::suffix(ns.name(), kind, name);
    let info = json!({"ID": holder, "Operation": "OperationTypePlan", "Info": "", "Who": who, "Version": "1.11.4",
                      "Created": ago(30), "Path": ""});
    ns.ground().apply_value(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": format!("lock-tfstate-default-{suffix}"), "namespace": ns.name(),
                     "annotations": {"app.terraform.io/lock-info": info.to_string()}},
        "spec": {"holderIdentity": holder}}));
}

/// A state Secret with the labels that the backend writes. Its content is no state.
pub fn state(ns: &Namespace<'_>, kind: &str, name: &str, cluster: &str) {
    let suffix = crate::ground::runtime::suffix(ns.name(), kind, name);
    let mut labels = json!({"tfstate": "true", "tfstateSecretSuffix": suffix, "tfstateWorkspace": "default",
                            "app.kubernetes.io/managed-by": "terraform"});
    for (key, value) in crate::ground::runtime::labels(kind, name, cluster) {
        labels[key] = json!(value);
    }
    ns.ground().apply_value(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("tfstate-default-{suffix}"), "namespace": ns.name(), "labels": labels},
        "data": {"tfstate": ""}}));
}
