//! `restore`: may this serial be restored now? An error refuses; nothing else does.
//!
//! Follows the controller's own order of gates, adds what would let its Job fail and burn the serial, and
//! is stricter where the controller would restore something broken.

use jiff::Timestamp;

use super::backup_sets::{choose, is_shadowed};
use super::backups::{diagnose_payload, set_evidence};
use super::code::Code;
use super::finding::{Evidence, Finding, Severity};
use super::policy::{Deletion, Policy};
use super::restore_after;
use super::restore_lock;
use super::state_inspect::retained;
use crate::captf::names::Operation;
use crate::facts::backup::BackupSet;
use crate::facts::job::active_job;
use crate::facts::reading::{Gap, Reading};
use crate::facts::restore::RestoreFacts;
use crate::facts::state::StateContent;

/// Conditions that must be True before a restore Job starts.
const GATES: [&str; 3] = ["IdentityAllowed", "CredentialsMirrored", "RunnerRBACReady"];

/// What the operator asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    pub serial: &'a str,
    /// A failed serial is to be tried again.
    pub retry: bool,
    /// `--yes-forget-resources`.
    pub may_forget: Option<u64>,
    /// More forgotten instances than this need the exact number.
    pub forget_limit: u64,
}

/// The judgement of one wish.
#[derive(Debug, Clone)]
pub struct RestoreJudgement {
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
    /// The serial, when it is one.
    pub serial: Option<i64>,
    /// The annotation is set already, and not consumed.
    pub requested: bool,
    /// Instances that Terraform would forget; unknown when there was nothing to compare with.
    pub forgotten: Option<u64>,
}

impl RestoreJudgement {
    /// Whether it must not be asked for.
    pub fn refused(&self) -> bool {
        self.findings.iter().any(|f| f.code.severity() == Severity::Error)
    }

    /// Whether `--yes` alone may stand for the typed confirmation.
    pub fn needs_number(&self, deleting: bool) -> bool {
        deleting || self.forgotten != Some(0)
    }
}

/// Reads a serial as the controller does; `None` for what it does not take.
pub fn parse_serial(text: &str) -> Option<i64> {
    text.trim().parse::<i64>().ok().filter(|s| *s >= 1)
}

/// Judges a restore as of `now`.
pub fn judge(facts: &RestoreFacts, wish: &Wish<'_>, now: Timestamp) -> RestoreJudgement {
    let mut found = Vec::new();
    let mut gaps = needed_gaps(facts);
    let serial = parse_serial(wish.serial);
    let Some(serial) = serial else {
        let evidence = Evidence::new("the serial asked for", wish.serial.to_string());
        found.push(Finding::new(Code::RestoreNotASerial, evidence));
        return RestoreJudgement { findings: found, gaps, serial: None, requested: false, forgotten: None };
    };
    let forgotten = facts.diff.as_ref().map(|d| d.forgotten.len() as u64);
    found.extend(backup(facts, serial, now));
    found.extend(reached(facts));
    found.extend(restore_lock::findings(facts, serial, &mut gaps));
    let (annotation, requested) = annotation(facts, serial, wish.retry);
    found.extend(annotation);
    found.extend(deleting(facts));
    found.extend(restore_after::forgets(facts, wish));
    found.extend(restore_after::inputs(facts, serial));
    found.extend(restore_after::lineage(facts, serial));
    found.extend(restore_after::same_as_live(facts, serial));
    if !gaps.is_empty() {
        let first = Evidence::new(gaps[0].what.clone(), gaps[0].reason.as_str());
        let rest = gaps.iter().skip(1).map(|g| Evidence::new(g.what.clone(), g.reason.as_str()));
        found.push(Finding::new(Code::RestoreUndetermined, first).seen_all(rest));
    }
    gaps.dedup();
    found.sort_by_key(|f| std::cmp::Reverse(f.code.severity()));
    let mut judgement = RestoreJudgement { findings: found, gaps, serial: Some(serial), requested, forgotten };
    for finding in &mut judgement.findings {
        finding.values.entry("serial").or_insert_with(|| serial.to_string());
    }
    if !judgement.refused() {
        judgement.findings.push(restore_after::ready(facts, serial, now));
    }
    judgement
}

fn needed_gaps(facts: &RestoreFacts) -> Vec<Gap> {
    let cluster = facts.owner_cluster.as_ref().and_then(Reading::gap);
    let parent = facts.terraform_cluster.as_ref().and_then(Reading::gap);
    let backup = facts.backup.as_ref().and_then(Reading::gap);
    let lock = &facts.lock;
    let all = [facts.sets.gap(), backup, facts.live.gap(), lock.jobs.gap(), lock.lease.gap(), cluster, parent];
    let mut gaps: Vec<Gap> = Vec::new();
    for gap in all.into_iter().flatten() {
        if !gaps.contains(gap) {
            gaps.push(gap.clone());
        }
    }
    gaps
}

fn backup(facts: &RestoreFacts, serial: i64, now: Timestamp) -> Vec<Finding> {
    let Some(sets) = facts.sets.found() else {
        return Vec::new();
    };
    let of_serial: Vec<&BackupSet> = sets.iter().filter(|s| s.serial == Some(serial)).collect();
    let Some(chosen) = choose(sets, serial) else {
        let Some(broken) = of_serial.first() else {
            let mut known: Vec<String> =
                sets.iter().filter(|s| s.is_complete()).filter_map(|s| s.serial).map(|s| s.to_string()).collect();
            known.dedup();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            let evidence = Evidence::new("serials of complete backups", known);
            return vec![Finding::new(Code::RestoreNoBackup, evidence)];
        };
        let problems = broken.problems.iter().map(|p| Evidence::new(format!("backup set {}", broken.name), p.clone()));
        return vec![
            Finding::new(Code::RestoreSetIncomplete, set_evidence(broken, now))
                .seen_all(problems)
                .with("set", broken.name.clone()),
        ];
    };
    let mut found = Vec::new();
    for other in of_serial.iter().filter(|s| is_shadowed(sets, s)) {
        found.push(
            Finding::new(Code::BackupSerialTwice, set_evidence(other, now))
                .seen(set_evidence(chosen, now))
                .with("set", other.name.clone()),
        );
    }
    if let Some(payload) = facts.backup.as_ref().and_then(Reading::found) {
        found.extend(diagnose_payload(chosen, payload));
    }
    found
}

/// Gates that keep the controller from judging the request at all.
fn reached(facts: &RestoreFacts) -> Vec<Finding> {
    let resource = facts.object.resource();
    let about = &facts.about;
    let mut found = Vec::new();
    if about.paused_annotation {
        let source = format!("{resource} annotation cluster.x-k8s.io/paused");
        found.push(Finding::new(Code::RestorePaused, Evidence::new(source, "present")));
    }
    if let Some(Reading::Found(cluster)) = &facts.owner_cluster
        && cluster.paused
    {
        let name = about.cluster_name.clone().unwrap_or_default();
        found.push(Finding::new(Code::RestorePaused, Evidence::new(format!("Cluster/{name} .spec.paused"), "true")));
    }
    if about.managed_by {
        let source = format!("{resource} annotation cluster.x-k8s.io/managed-by");
        found.push(Finding::new(Code::RestoreExternallyManaged, Evidence::new(source, "present")));
    }
    if !facts.extra.has_owner && about.deleting.is_none() {
        let source = format!("{resource} .metadata.ownerReferences");
        found.push(Finding::new(Code::RestoreNoOwner, Evidence::new(source, "no Cluster API object")));
    }
    if let Some(secret) = retained(facts) {
        let source = format!("Secret/{} label captf.io/retained-from-uid", secret.name);
        let adopting =
            if facts.extra.adopt_retained { "another object's; adoption is asked for" } else { "another object's" };
        let finding = Finding::new(Code::RestoreRetained, Evidence::new(source, adopting));
        found.push(finding.with("secret", secret.name.clone()));
    }
    if let Some(job) = facts.lock.jobs.found().and_then(|j| active_job(j)) {
        let what = job.op.map_or("an operation", Operation::as_str);
        found.push(
            Finding::new(
                Code::RestoreJobRunning,
                Evidence::new(format!("Job/{}", job.name), format!("{what}, unfinished"))
                    .at(job.started.or(job.created)),
            )
            .with("job", job.name.clone()),
        );
    }
    found.extend(gates(facts));
    found
}

fn gates(facts: &RestoreFacts) -> Vec<Finding> {
    let resource = facts.object.resource();
    let mut found = Vec::new();
    let mut unset = Vec::new();
    for gate in GATES {
        match facts.about.condition(gate) {
            Some(c) if c.status == "True" => {}
            Some(c) => {
                let evidence = Evidence::new(format!("{resource} {gate}"), format!("{}/{}", c.status, c.reason));
                found.push(Finding::new(Code::RestoreGateClosed, evidence.at(c.since)).with("gate", gate));
            }
            None => unset.push(gate),
        }
    }
    if !unset.is_empty() {
        let evidence = Evidence::new(format!("{resource} .status.conditions"), format!("without {}", unset.join(", ")));
        found.push(Finding::new(Code::RestoreGateUnknown, evidence));
    }
    found
}

/// What the annotation and the consumed serial say. The flag tells whether the request stands already.
fn annotation(facts: &RestoreFacts, serial: i64, retry: bool) -> (Vec<Finding>, bool) {
    let resource = facts.object.resource();
    let source = format!("{resource} annotation captf.io/restore-state");
    let about = &facts.about;
    let pending = about.restore_request.as_deref().map(str::trim).filter(|t| !t.is_empty());
    let consumed = about.last_restored_serial == Some(serial);
    let mut found = Vec::new();
    if consumed && !retry {
        let field = format!("{resource} .status.lastRestoredSerial");
        let mut finding = Finding::new(Code::RestoreConsumed, Evidence::new(field, serial.to_string()));
        if let Some(c) = about.condition("RestoreJobSucceeded") {
            let value = format!("{}/{}", c.status, c.reason);
            finding = finding.seen(Evidence::new(format!("{resource} RestoreJobSucceeded"), value).at(c.since));
        }
        found.push(finding);
    }
    let same = pending.and_then(parse_serial) == Some(serial);
    match pending {
        Some(text) if !same => {
            found.push(Finding::new(Code::RestoreOtherPending, Evidence::new(source, text.to_string())));
        }
        Some(_) if !consumed => {
            found.push(Finding::new(Code::RestoreAlreadyRequested, Evidence::new(source, serial.to_string())));
        }
        _ => {}
    }
    (found, same && !consumed)
}

fn deleting(facts: &RestoreFacts) -> Option<Finding> {
    let since = facts.about.deleting?;
    let resource = facts.object.resource();
    let seen = Evidence::new(format!("{resource} .metadata.deletionTimestamp"), "set").at(Some(since));
    let about = &facts.about;
    match Policy::new(facts.object.kind, about, facts.terraform_cluster.as_ref()).deletion() {
        Deletion::Retain { from } => {
            let source = if from.starts_with('.') { format!("{resource} {from}") } else { from.to_string() };
            let why = Evidence::new(source, "Retain: it is released, not restored");
            return Some(Finding::new(Code::RestoreDeletingIgnored, seen).seen(why));
        }
        Deletion::Unresolved => {
            let source = format!("{resource} .spec.deletionPolicy");
            let why = Evidence::new(source, "not set, and there is no cluster to inherit from");
            return Some(Finding::new(Code::RestoreDeletingWaits, seen).seen(why));
        }
        // What could not be read is among the gaps that refuse.
        Deletion::Destroy | Deletion::Unknown => {}
    }
    for (kind, reason) in [("DeletionBlocked", None), ("Deleting", Some("DeletionPolicyUnresolved"))] {
        let stopped = about.condition(kind).filter(|c| c.status == "True" && reason.is_none_or(|r| c.reason == r));
        if let Some(c) = stopped {
            let why = Evidence::new(format!("{resource} {kind}"), format!("{}/{}", c.status, c.reason)).at(c.since);
            return Some(Finding::new(Code::RestoreDeletingWaits, seen).seen(why));
        }
    }
    match &facts.live {
        Reading::Found(live) if matches!(live.content, StateContent::Readable { .. }) => {
            let why = Evidence::new("the live state", "reads, so the destroy goes on with it");
            Some(Finding::new(Code::RestoreDeletingIgnored, seen).seen(why))
        }
        Reading::Unreadable(_) => None,
        _ => Some(Finding::new(Code::RestoreDeletingHeld, seen).seen(Evidence::new("the live state", "does not read"))),
    }
}
