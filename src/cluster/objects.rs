//! The three Terraform* kinds that run Jobs.

use serde_json::Value;

use super::api::{Api, Resource, Selector};
use super::json::{annotation, at, int, is_true, items, label, owned, text, time};
use crate::captf::keys;
use crate::captf::kind::WorkloadKind;
use crate::captf::mask::mask;
use crate::facts::object::{ActiveJob, Condition, JobPolicy, LastRun, ObjectFacts, ObjectRef};
use crate::facts::reading::Reading;
use crate::facts::run::{RunError, RunStep};

/// The REST resource of a kind.
pub fn resource(kind: WorkloadKind) -> Resource {
    Resource { group: keys::GROUP, version: keys::VERSION, plural: kind.plural(), kind: kind.kind(), namespaced: true }
}

/// GET of one object.
pub async fn read_object(api: &Api, object: &ObjectRef) -> Reading<ObjectFacts> {
    let read = api.get(&resource(object.kind), Some(&object.namespace), &object.name).await;
    read.map(|value| facts_from_object(&value))
}

/// LIST of one kind in a namespace, or in all with `None`.
pub async fn read_objects(
    api: &Api,
    kind: WorkloadKind,
    namespace: Option<&str>,
    selector: &Selector,
) -> Reading<Vec<(ObjectRef, ObjectFacts)>> {
    let read = api.list(&resource(kind), namespace, selector).await;
    read.map(|list| list.iter().map(|value| (reference(kind, value), facts_from_object(value))).collect())
}

fn reference(kind: WorkloadKind, value: &Value) -> ObjectRef {
    ObjectRef { kind, namespace: owned(value, &["metadata", "namespace"]), name: owned(value, &["metadata", "name"]) }
}

/// What an object says about itself; unknown fields and values pass through.
pub fn facts_from_object(value: &Value) -> ObjectFacts {
    let spec = |path: &[&str]| int(value, &[&["spec"], path].concat());
    ObjectFacts {
        uid: owned(value, &["metadata", "uid"]),
        created: time(value, &["metadata", "creationTimestamp"]),
        deleting: time(value, &["metadata", "deletionTimestamp"]),
        cluster_name: cluster_name(value),
        paused_annotation: annotation(value, keys::PAUSED).is_some(),
        managed_by: annotation(value, keys::MANAGED_BY).is_some(),
        conditions: items(value, &["status", "conditions"]).iter().map(condition).collect(),
        jobs: policy(value, &["spec", "jobs"]),
        default_jobs: policy(value, &["spec", "defaults", "jobs"]),
        drift_interval_seconds: spec(&["drift", "intervalSeconds"]),
        default_drift_interval_seconds: spec(&["defaults", "drift", "intervalSeconds"]),
        refresh_interval_seconds: refresh_interval(value),
        deletion_policy: text(value, &["spec", "deletionPolicy"]).map(str::to_string),
        default_deletion_policy: text(value, &["spec", "defaults", "deletionPolicy"]).map(str::to_string),
        last_drift_check: time(value, &["status", "lastDriftCheck"]),
        provisioned: is_true(value, &["status", "initialization", "provisioned"]),
        observed_serial: int(value, &["status", "observedStateSerial"]),
        last_restored_serial: int(value, &["status", "lastRestoredSerial"]),
        restore_request: annotation(value, "captf.io/restore-state").map(str::to_string),
        backups_in_status: items(value, &["status", "stateBackups"]).len(),
        last_run: at(value, &["status", "lastRun"]).map(|run| LastRun {
            job: owned(run, &["job"]),
            operation: owned(run, &["operation"]),
            error_kind: text(run, &["error", "kind"]).map(str::to_string),
            steps: items(run, &["steps"])
                .iter()
                .map(|s| RunStep {
                    name: owned(s, &["name"]),
                    exit_code: int(s, &["exitCode"]).unwrap_or_default(),
                    millis: int(s, &["durationMilliseconds"]).unwrap_or_default(),
                })
                .collect(),
            error: at(run, &["error"]).map(|e| RunError {
                kind: owned(e, &["kind"]),
                step: text(e, &["step"]).map(str::to_string),
                summary: mask(&owned(e, &["summary"])),
                resources: items(e, &["resources"]).iter().filter_map(Value::as_str).map(mask).collect(),
            }),
        }),
        pending_plan: text(value, &["status", "pendingPlanRef", "name"]).map(str::to_string),
        image: text(value, &["status", "source", "image"])
            .or_else(|| text(value, &["spec", "source", "image"]))
            .map(str::to_string),
        runtime_version: text(value, &["status", "source", "runtimeVersion"]).map(str::to_string),
        active_job: at(value, &["status", "activeJob"]).map(|job| ActiveJob {
            name: owned(job, &["name"]),
            operation: owned(job, &["operation"]),
            started: time(job, &["startTime"]),
        }),
        image_digest: text(value, &["status", "source", "imageDigest"]).map(str::to_string),
        drift_remediates: text(value, &["spec", "drift", "action"]) == Some("Remediate"),
    }
}

fn cluster_name(value: &Value) -> Option<String> {
    let by_label = label(value, keys::CLUSTER_NAME).filter(|n| !n.is_empty());
    let by_owner = || {
        items(value, &["metadata", "ownerReferences"])
            .iter()
            .find(|r| {
                text(r, &["kind"]) == Some("Cluster")
                    && text(r, &["apiVersion"]).is_some_and(|v| v.starts_with("cluster.x-k8s.io/"))
            })
            .and_then(|r| text(r, &["name"]))
    };
    by_label.or_else(by_owner).map(str::to_string)
}

fn condition(value: &Value) -> Condition {
    Condition {
        kind: owned(value, &["type"]),
        status: owned(value, &["status"]),
        reason: owned(value, &["reason"]),
        message: owned(value, &["message"]),
        since: time(value, &["lastTransitionTime"]),
    }
}

fn policy(value: &Value, path: &[&str]) -> JobPolicy {
    let field = |name: &str| int(value, &[path, &[name]].concat());
    JobPolicy {
        active_deadline_seconds: field("activeDeadlineSeconds"),
        lock_timeout_seconds: field("lockTimeoutSeconds"),
        failed_history_limit: field("failedJobsHistoryLimit"),
        service_account: text(value, &[path, &["serviceAccountName"]].concat()).map(str::to_string),
    }
}

/// The shortest regular refresh of a provisioned object: pool membership, or a machine's health check.
fn refresh_interval(value: &Value) -> Option<i64> {
    if text(value, &["kind"]) == Some(WorkloadKind::MachinePool.kind()) {
        return Some(int(value, &["spec", "membershipRefreshIntervalSeconds"]).unwrap_or(60));
    }
    is_true(value, &["spec", "remediation", "annotateMachine"])
        .then(|| int(value, &["spec", "remediation", "healthCheckIntervalSeconds"]).unwrap_or(300))
}
