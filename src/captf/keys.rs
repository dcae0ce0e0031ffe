//! The label and annotation keys that CAPTF and the `kubernetes` backend put on objects.

/// API group of the Terraform* kinds.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The only served version of [`GROUP`].
pub const VERSION: &str = "v1alpha1";
/// API group of Cluster API's own kinds.
pub const CAPI_GROUP: &str = "cluster.x-k8s.io";

pub const OWNER_KIND: &str = "captf.infrastructure.cluster.x-k8s.io/owner-kind";
pub const OWNER_NAME: &str = "captf.infrastructure.cluster.x-k8s.io/owner-name";
pub const OP: &str = "captf.infrastructure.cluster.x-k8s.io/op";
pub const ATTEMPT: &str = "captf.infrastructure.cluster.x-k8s.io/attempt";
pub const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
pub const MANAGED: &str = "captf.io/managed";
pub const MOVE: &str = "clusterctl.cluster.x-k8s.io/move";
pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";

pub const LOCK_INFO: &str = "app.terraform.io/lock-info";
pub const STATE_LOCK_VERSION: &str = "captf.io/state-lock-version";
pub const BOOKKEPT: &str = "captf.io/bookkept";
pub const INTERRUPTED: &str = "captf.io/interrupted";
pub const PLAN_BLOCKED: &str = "captf.io/destructive-plan-blocked";
pub const PLAN_CHANGED: &str = "captf.io/plan-changed";
pub const PLAN_UNREADABLE: &str = "captf.io/plan-unreadable";
pub const LEASE_KIND: &str = "captf.io/lease";
pub const LEASE_ACQUIRED_AT: &str = "captf.io/lease-acquired-at";
pub const DRIFT_REMEDIATION: &str = "captf.io/drift-remediation";
pub const PLAN: &str = "captf.io/plan";
pub const IMAGE_FALLBACKS: &str = "captf.io/image-fallbacks";
pub const LEASE_OP: &str = "captf.io/lease-op";
pub const RETAINED_FROM: &str = "captf.io/retained-from-uid";

pub const PAUSED: &str = "cluster.x-k8s.io/paused";
pub const MANAGED_BY: &str = "cluster.x-k8s.io/managed-by";

pub const TFSTATE: &str = "tfstate";
pub const TFSTATE_SUFFIX: &str = "tfstateSecretSuffix";
pub const TFSTATE_WORKSPACE: &str = "tfstateWorkspace";
pub const K8S_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
