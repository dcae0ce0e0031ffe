//! Secrets of backups and states by their metadata, and the backup sets they make up.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// A Secret without its data. Of its annotations only CAPTF's own are kept: others may repeat the data
/// (`kubectl.kubernetes.io/last-applied-configuration` does).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretMeta {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub created: Option<Timestamp>,
    pub deleting: bool,
    /// How many data keys it has, if that could be told without reading them.
    pub keys: Option<i64>,
}

/// One backup: all Secrets that name the same set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupSet {
    pub name: String,
    /// From the annotation; below 1 or unparsable reads as `None`.
    pub serial: Option<i64>,
    pub lineage: Option<String>,
    /// The annotation, else the creation of the first Secret.
    pub taken: Option<Timestamp>,
    pub source_job: Option<String>,
    /// Managed resources as counted when it was taken.
    pub resources: Option<u64>,
    /// SHA-256 of the compressed payload as annotated; compared, never shown.
    pub digest: Option<String>,
    pub inputs_hash: Option<String>,
    /// How many chunks its Secrets say there are.
    pub expected: Option<u32>,
    /// In order of their chunk index; strays at the end.
    pub secrets: Vec<SecretMeta>,
    /// Why the controller would not take it; nothing when it is complete.
    pub problems: Vec<String>,
}

impl BackupSet {
    /// Whether the controller lists it and would restore it.
    pub fn is_complete(&self) -> bool {
        self.problems.is_empty()
    }
}

/// An entry of `status.stateBackups`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusBackup {
    pub serial: i64,
    pub taken: Option<Timestamp>,
    pub bytes: Option<u64>,
}
