//! A Terraform* object as the rules need it: identity, gates, policy, schedule, last run.

use jiff::Timestamp;

use crate::captf::kind::WorkloadKind;
use crate::captf::names;
use crate::facts::run::{RunError, RunStep};

/// Kind, namespace and name of an object that runs Jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    pub kind: WorkloadKind,
    pub namespace: String,
    pub name: String,
}

impl ObjectRef {
    /// The backend's `secret_suffix`.
    pub fn suffix(&self) -> String {
        names::state_suffix(&self.namespace, self.kind, &self.name)
    }

    /// `terraformcluster/prod`, as kubectl takes and prints it.
    pub fn resource(&self) -> String {
        format!("{}/{}", self.kind.singular(), self.name)
    }
}

/// One entry of `status.conditions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub since: Option<Timestamp>,
}

/// The fields of `spec.jobs` (or of `spec.defaults.jobs`) that matter here; `None` = unset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobPolicy {
    pub active_deadline_seconds: Option<i64>,
    pub lock_timeout_seconds: Option<i64>,
    pub failed_history_limit: Option<i64>,
    pub service_account: Option<String>,
}

/// `status.lastRun`, without text that may be long.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastRun {
    pub job: String,
    pub operation: String,
    pub error_kind: Option<String>,
    pub steps: Vec<RunStep>,
    pub error: Option<RunError>,
}

/// `status.activeJob`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActiveJob {
    pub name: String,
    pub operation: String,
    pub started: Option<Timestamp>,
}

/// What an object says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObjectFacts {
    pub uid: String,
    pub created: Option<Timestamp>,
    pub deleting: Option<Timestamp>,
    /// Label `cluster.x-k8s.io/cluster-name`, else the name of the owner Cluster.
    pub cluster_name: Option<String>,
    pub paused_annotation: bool,
    pub managed_by: bool,
    pub conditions: Vec<Condition>,
    pub jobs: JobPolicy,
    /// `spec.defaults.jobs` of a TerraformCluster.
    pub default_jobs: JobPolicy,
    pub drift_interval_seconds: Option<i64>,
    pub default_drift_interval_seconds: Option<i64>,
    pub refresh_interval_seconds: Option<i64>,
    pub deletion_policy: Option<String>,
    /// `spec.defaults.deletionPolicy` of a TerraformCluster.
    pub default_deletion_policy: Option<String>,
    pub last_drift_check: Option<Timestamp>,
    pub provisioned: bool,
    pub observed_serial: Option<i64>,
    pub last_restored_serial: Option<i64>,
    pub restore_request: Option<String>,
    pub backups_in_status: usize,
    pub last_run: Option<LastRun>,
    pub pending_plan: Option<String>,
    pub image: Option<String>,
    pub runtime_version: Option<String>,
    pub active_job: Option<ActiveJob>,
    /// `status.source.imageDigest`.
    pub image_digest: Option<String>,
    pub drift_remediates: bool,
}

impl ObjectFacts {
    /// The condition of that type, if set.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|c| c.kind == kind)
    }

    /// The first condition of that type with that status and reason.
    pub fn has(&self, kind: &str, status: &str, reason: &str) -> bool {
        self.condition(kind).is_some_and(|c| c.status == status && c.reason == reason)
    }
}

/// What a Cluster (of Cluster API) says that gates its Terraform objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnerClusterFacts {
    pub paused: bool,
    /// The TerraformCluster in its infrastructureRef, from which machines and pools inherit.
    pub infrastructure: Option<ObjectRef>,
}
