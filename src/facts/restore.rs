//! What the restore and backup commands look at, for one object.

use jiff::Timestamp;

use super::backup::{BackupSet, SecretMeta, StatusBackup};
use super::job::JobFacts;
use super::lock::LockFacts;
use super::object::{ObjectFacts, ObjectRef, OwnerClusterFacts};
use super::reading::Reading;
use super::state::StateContent;
use super::state_diff::StateDiff;

/// What an object says that only a restore needs. Read before everything else, so that a write that carries
/// its version fails when anything judged since has changed on the object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreObject {
    pub resource_version: String,
    pub uid: String,
    pub status_backups: Vec<StatusBackup>,
    /// Whether a Cluster API object owns it.
    pub has_owner: bool,
    /// `spec.applyPolicy` of a cluster.
    pub apply_policy: Option<String>,
    pub adopt_retained: bool,
    pub finalizers: usize,
}

/// A state or backup payload after it was read through, without anything of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadFacts {
    pub content: StateContent,
    /// Bytes of all chunks, compressed.
    pub compressed: u64,
    /// Bytes of the first gzip member after decompression, as far as it was read.
    pub decompressed: u64,
    /// Whether the payload has the annotated digest; nothing when none is annotated.
    pub digest_matches: Option<bool>,
    /// Managed instances by resource type, most first.
    pub types: Vec<(String, u64)>,
    /// Managed instances in all.
    pub instances: u64,
    pub chunks: usize,
}

/// Secrets around a state, all by metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSecrets {
    /// By the controller's selector.
    pub selected: Reading<Vec<SecretMeta>>,
    /// The base Secret by name.
    pub base: Reading<SecretMeta>,
    /// Secrets in the namespace whose names are those of this state but that the selector misses.
    pub unlabelled: Reading<Vec<SecretMeta>>,
    /// The records of the newest and of the newest successful apply.
    pub attempt: Reading<SecretMeta>,
    pub applied: Reading<SecretMeta>,
}

/// How the current inputs compare with those that the backup was made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputsCompare {
    Same,
    Differ,
    /// The backup has no inputs hash.
    BackupHasNone,
    /// It cannot be told which inputs are current.
    Unknown,
}

/// What a restore is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    Live,
    /// The live state cannot be read; the newest readable backup stands in for it.
    Backup {
        serial: i64,
    },
    /// Nothing to compare with.
    Nothing,
}

/// Everything that the judgement of a restore rests on.
#[derive(Debug, Clone)]
pub struct RestoreFacts {
    pub object: ObjectRef,
    pub about: ObjectFacts,
    pub extra: RestoreObject,
    pub lock: LockFacts,
    pub owner_cluster: Option<Reading<OwnerClusterFacts>>,
    /// The TerraformCluster from which a machine or pool inherits; read only when its deletion policy matters.
    pub terraform_cluster: Option<Reading<ObjectFacts>>,
    pub sets: Reading<Vec<BackupSet>>,
    pub secrets: StateSecrets,
    /// The payload of the set that the controller would take; `None` when there is none.
    pub backup: Option<Reading<PayloadFacts>>,
    pub live: Reading<PayloadFacts>,
    pub baseline: Baseline,
    pub diff: Option<StateDiff>,
}

/// How far a restore has come, as the cluster shows it.
#[derive(Debug, Clone)]
pub struct ProgressFacts {
    pub object: ObjectRef,
    pub about: ObjectFacts,
    /// Restore Jobs of the object, newest first, each with the serial that it pushes.
    pub jobs: Reading<Vec<(JobFacts, Option<i64>)>>,
    /// Other unfinished Jobs.
    pub other_job: Option<String>,
    /// Who holds the run Lease and, for a cluster, the cluster write Lease.
    pub run_lease: Reading<Option<String>>,
    pub cluster_lease: Option<Reading<Option<String>>>,
    /// Pod of the newest restore Job.
    pub pod: Option<Reading<super::pod::PodFacts>>,
    /// Steps of the newest restore Job with their exit codes, from status.lastRun.
    pub steps: Vec<(String, i64)>,
    pub requested_at: Option<Timestamp>,
}
