//! The view of backup, state and restore commands: the report's own, and beside it what they show.
//!
//! Addresses, serials, sizes and names only; nothing here can hold state content.

use jiff::Timestamp;
use serde::Serialize;

use super::view::ReportView;
use crate::captf::time::{relative, utc};
use crate::facts::backup::{BackupSet, StatusBackup};
use crate::facts::restore::{Baseline, PayloadFacts};
use crate::facts::state::StateContent;
use crate::facts::state_diff::{Address, StateDiff};
use crate::runbook::backup_sets::{choose, is_shadowed};

/// The whole answer of a command.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateReportView {
    #[serde(flatten)]
    pub report: ReportView,
    #[serde(flatten)]
    pub parts: Parts,
}

/// What a command shows beside its findings.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backups: Option<Vec<BackupView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<DiffView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore: Option<RestoreView>,
    /// Files that were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<SavedView>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupView {
    pub set: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lineage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<String>,
    /// Chunks that are there and that should be.
    pub chunks: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks_expected: Option<u32>,
    pub complete: bool,
    /// Compressed bytes; nothing when it is not known without reading the payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_resources: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_job: Option<String>,
    pub has_inputs_hash: bool,
    /// Its serial is the one that the object observed last.
    pub live: bool,
    /// A restore of its serial takes this set.
    pub restorable: bool,
    /// Complete, and hidden behind a newer set of the same serial.
    pub unreachable: bool,
    pub problems: Vec<String>,
    pub secrets: Vec<String>,
}

/// Views of all sets; sizes come from what the object lists, or from `sizes` by set name.
pub fn backup_views(
    sets: &[BackupSet],
    status: &[StatusBackup],
    sizes: &[(String, u64)],
    observed: Option<i64>,
    now: Timestamp,
) -> Vec<BackupView> {
    let view = |set: &BackupSet| {
        let listed = status.iter().find(|b| Some(b.serial) == set.serial && b.taken == set.taken && set.is_complete());
        let read = sizes.iter().find(|(name, _)| *name == set.name).map(|(_, bytes)| *bytes);
        BackupView {
            set: set.name.clone(),
            serial: set.serial,
            lineage: set.lineage.clone(),
            taken_at: set.taken.map(utc),
            age: set.taken.map(|t| relative(t, now)),
            chunks: set.secrets.len(),
            chunks_expected: set.expected,
            complete: set.is_complete(),
            bytes: read.or(listed.and_then(|b| b.bytes)),
            managed_resources: set.resources,
            source_job: set.source_job.clone(),
            has_inputs_hash: set.inputs_hash.is_some(),
            live: observed.is_some() && set.serial == observed,
            restorable: set.serial.and_then(|s| choose(sets, s)).is_some_and(|c| c.name == set.name),
            unreachable: is_shadowed(sets, set),
            problems: set.problems.clone(),
            secrets: set.secrets.iter().map(|s| s.name.clone()).collect(),
        }
    };
    sets.iter().map(view).collect()
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateView {
    /// The StateReadable reason that the controller's rules give; nothing when it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the object says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// `readable`, `encrypted`, `corrupt`, `inconsistent`, `absent` or `unknown`.
    pub content: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lineage: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_resources: Option<u64>,
    pub instances: u64,
    pub types: Vec<TypeView>,
    pub secrets: Vec<String>,
    pub compressed_bytes: u64,
    pub decompressed_bytes: u64,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TypeView {
    #[serde(rename = "type")]
    pub kind: String,
    pub instances: u64,
}

impl StateView {
    /// Of a payload that was read, or nothing of one that is not there.
    pub fn of(payload: Option<&PayloadFacts>, secrets: Vec<String>) -> Self {
        let mut view = Self {
            reason: None,
            condition: None,
            content: "absent",
            serial: None,
            lineage: None,
            runtime_version: None,
            managed_resources: None,
            instances: 0,
            types: Vec::new(),
            secrets,
            compressed_bytes: 0,
            decompressed_bytes: 0,
        };
        let Some(payload) = payload else {
            return view;
        };
        view.instances = payload.instances;
        view.compressed_bytes = payload.compressed;
        view.decompressed_bytes = payload.decompressed;
        view.types = payload.types.iter().map(|(kind, n)| TypeView { kind: kind.clone(), instances: *n }).collect();
        view.content = match &payload.content {
            StateContent::Readable { serial, lineage, terraform_version, managed_resources, .. } => {
                view.serial = Some(*serial);
                view.lineage = Some(lineage.clone());
                view.runtime_version = Some(terraform_version.clone()).filter(|v| !v.is_empty());
                view.managed_resources = Some(*managed_resources);
                "readable"
            }
            StateContent::Encrypted => "encrypted",
            StateContent::Corrupt(_) => "corrupt",
            StateContent::Inconsistent(_) => "inconsistent",
        };
        view
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffView {
    /// What is live now (or stands in for it), and the backup that would take its place.
    pub from: String,
    pub to: String,
    pub forgotten: Vec<GroupView>,
    pub returning: Vec<GroupView>,
    pub other_id: Vec<GroupView>,
    pub instance_counts: Vec<CountView>,
    pub forgotten_count: u64,
    pub returning_count: u64,
    pub other_id_count: u64,
    pub same_count: u64,
    /// At most so many addresses of a group are written as text; JSON has all.
    #[serde(skip)]
    pub text_limit: usize,
}

/// Addresses of one type.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupView {
    #[serde(rename = "type")]
    pub kind: String,
    pub addresses: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountView {
    #[serde(rename = "type")]
    pub kind: String,
    pub resource: String,
    pub before: u64,
    pub after: u64,
}

impl DiffView {
    /// Grouped by type, the largest group first.
    pub fn of(diff: &StateDiff, from: String, to: String, text_limit: usize) -> Self {
        Self {
            from,
            to,
            forgotten: groups(&diff.forgotten),
            returning: groups(&diff.returning),
            other_id: groups(&diff.other_id),
            instance_counts: diff
                .counts
                .iter()
                .map(|c| CountView {
                    kind: c.kind.clone(),
                    resource: c.resource.clone(),
                    before: c.before,
                    after: c.after,
                })
                .collect(),
            forgotten_count: diff.forgotten.len() as u64,
            returning_count: diff.returning.len() as u64,
            other_id_count: diff.other_id.len() as u64,
            same_count: diff.same,
            text_limit,
        }
    }
}

/// What a restore is compared with, in words.
pub fn baseline_words(baseline: &Baseline, live: Option<&PayloadFacts>) -> String {
    match (baseline, live.map(|l| &l.content)) {
        (Baseline::Live, Some(StateContent::Readable { serial, .. })) => format!("the live state (serial {serial})"),
        (Baseline::Backup { serial }, _) => format!("the backup of serial {serial}, as the live state does not read"),
        _ => "the live state".to_string(),
    }
}

fn groups(addresses: &[Address]) -> Vec<GroupView> {
    let mut groups: Vec<GroupView> = Vec::new();
    for address in addresses {
        match groups.last_mut() {
            Some(group) if group.kind == address.kind => group.addresses.push(address.address.clone()),
            _ => groups.push(GroupView { kind: address.kind.clone(), addresses: vec![address.address.clone()] }),
        }
    }
    groups.sort_by(|a, b| b.addresses.len().cmp(&a.addresses.len()).then_with(|| a.kind.cmp(&b.kind)));
    groups
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoreView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<i64>,
    /// The set that the controller would take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<String>,
    /// Whether the judgement refuses it; nothing when nothing was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<bool>,
    /// `client` or `server`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<&'static str>,
    /// The merge patch that is, or would be, sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<serde_json::Value>,
    /// What the server said to a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_says: Option<String>,
    /// How far a restore is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedView {
    pub path: String,
    pub bytes: u64,
    /// `state` or `secrets`.
    pub content: &'static str,
}
