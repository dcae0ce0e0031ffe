//! `state inspect`: the reason that the controller's reader would give, and what else is odd about a state.

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::lock_verdict::{Ruling, rule};
use crate::captf::keys;
use crate::captf::kind::WorkloadKind;
use crate::captf::names::state_secret;
use crate::facts::backup::{BackupSet, SecretMeta};
use crate::facts::job::active_job;
use crate::facts::reading::{Gap, Reading};
use crate::facts::restore::RestoreFacts;
use crate::facts::state::StateContent;

/// Most bytes in one Secret, and the size from which the alert fires.
const SECRET_LIMIT: u64 = 1024 * 1024;
const NEAR_LIMIT: u64 = 900 * 1024;
/// Most Secrets of one state, and from when to warn.
const CHUNK_LIMIT: usize = 32;
const NEAR_CHUNKS: usize = 28;
const INPUTS_HASH: &str = "captf.io/inputs-hash";

/// The judgement of a state.
pub struct StateJudgement {
    /// The StateReadable reason that the controller would give now; `None` when it cannot be told, or while
    /// a Job is unfinished and the controller would give none.
    pub reason: Option<&'static str>,
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
}

/// Judges the state of one object.
pub fn diagnose(facts: &RestoreFacts) -> StateJudgement {
    let mut gaps = gaps_of(facts);
    let mut findings = Vec::new();
    let main = main_finding(facts, &mut gaps);
    let reason = main.as_ref().and_then(|(reason, _)| *reason);
    let overwritten = overwritten(facts);
    // A state that is another's does not "read well", whatever the controller says.
    let main = main.map(|(_, finding)| finding);
    findings.extend(main.filter(|f| overwritten.is_none() || f.code != Code::StateReadable));
    let mut beside: Vec<Finding> = Vec::new();
    beside.extend(overwritten);
    beside.extend(strays(facts));
    beside.extend(size(facts));
    beside.extend(without_hash(facts));
    beside.extend(reason.and_then(|r| disagrees(facts, r)));
    beside.sort_by_key(|f| std::cmp::Reverse(f.code.severity()));
    findings.extend(beside);
    gaps.dedup();
    StateJudgement { reason, findings, gaps }
}

fn gaps_of(facts: &RestoreFacts) -> Vec<Gap> {
    let s = &facts.secrets;
    let gaps = [facts.live.gap(), facts.sets.gap(), s.selected.gap(), s.base.gap(), facts.lock.jobs.gap()];
    gaps.into_iter().flatten().cloned().collect()
}

/// The Secret that proves another object's claim on the state, if there is one.
pub fn retained(facts: &RestoreFacts) -> Option<&SecretMeta> {
    let s = &facts.secrets;
    let sets = facts.sets.found().map(Vec::as_slice).unwrap_or_default();
    let all = s.selected.found().into_iter().flatten().chain(s.base.found()).chain(s.attempt.found());
    let all = all.chain(s.applied.found()).chain(sets.iter().flat_map(|set| &set.secrets));
    let mut all = all;
    all.find(|m| m.labels.get(keys::RETAINED_FROM).is_some_and(|uid| *uid != facts.extra.uid))
}

type Main = (Option<&'static str>, Finding);

fn main_finding(facts: &RestoreFacts, gaps: &mut Vec<Gap>) -> Option<Main> {
    if let Some(secret) = retained(facts) {
        let source = format!("Secret/{} label {}", secret.name, keys::RETAINED_FROM);
        let uid = secret.labels.get(keys::RETAINED_FROM).cloned().unwrap_or_default();
        let finding = Finding::new(Code::StateRetained, Evidence::new(source, uid)).with("secret", secret.name.clone());
        return Some((Some("RetainedStateFound"), finding));
    }
    if let Some(job) = facts.lock.jobs.found().and_then(|j| active_job(j)) {
        let finding = Finding::new(
            Code::StateNotEvaluated,
            Evidence::new(format!("Job/{}", job.name), "unfinished").at(job.started.or(job.created)),
        );
        return Some((None, finding.with("job", job.name.clone())));
    }
    let base = state_secret(&facts.object.suffix());
    match &facts.live {
        Reading::Unreadable(_) => None,
        Reading::Absent => absent(facts, &base, gaps),
        Reading::Found(live) => Some(match &live.content {
            StateContent::Readable { serial, managed_resources, .. } => {
                readable(facts, *serial, *managed_resources, &base, gaps)
            }
            StateContent::Encrypted => {
                let finding = Finding::new(
                    Code::StateEncrypted,
                    Evidence::new(format!("Secret/{base}"), "has an encryption_version"),
                );
                (Some("StateEncrypted"), finding)
            }
            StateContent::Corrupt(why) => (Some("StateCorrupt"), broken(facts, Code::StateCorrupt, &base, why)),
            StateContent::Inconsistent(why) => {
                (Some("StateInconsistent"), broken(facts, Code::StateInconsistent, &base, why))
            }
        }),
    }
}

fn broken(facts: &RestoreFacts, code: Code, base: &str, why: &str) -> Finding {
    let finding = Finding::new(code, Evidence::new(format!("Secret/{base}"), why));
    with_newest(facts, finding)
}

/// Names the newest complete backup, the way out.
fn with_newest(facts: &RestoreFacts, finding: Finding) -> Finding {
    match newest_complete(facts) {
        Some(set) => {
            let serial = set.serial.unwrap_or_default();
            finding
                .seen(Evidence::new("the newest complete backup", format!("serial {serial}")).at(set.taken))
                .with("serial", serial.to_string())
        }
        None if matches!(facts.sets, Reading::Unreadable(_)) => finding,
        None => finding.seen(Evidence::new("complete backups", "none")),
    }
}

fn newest_complete(facts: &RestoreFacts) -> Option<&BackupSet> {
    facts.sets.found()?.iter().find(|s| s.is_complete())
}

fn absent(facts: &RestoreFacts, base: &str, gaps: &mut Vec<Gap>) -> Option<Main> {
    let evidence = Evidence::new(format!("Secret/{base}"), "no Secret is selected");
    let resource = facts.object.resource();
    let note = |key: &str| facts.secrets.attempt.found().and_then(|a| a.annotations.get(key).cloned());
    let mut proof = Vec::new();
    if facts.about.provisioned {
        proof.push(Evidence::new(format!("{resource} .status.initialization.provisioned"), "true"));
    }
    if note("captf.io/applied").as_deref() == Some("true") {
        proof.push(Evidence::new("the record of the newest apply", "says that an apply succeeded once"));
    }
    if let Reading::Found(applied) = &facts.secrets.applied {
        proof.push(Evidence::new(format!("Secret/{}", applied.name), "the record of a successful apply"));
    }
    let sets = facts.sets.found().map_or(0, Vec::len);
    if sets > 0 {
        proof.push(Evidence::new("backup sets", format!("{sets}, complete or not")));
    }
    if !proof.is_empty() {
        return Some((Some("StateLost"), with_newest(facts, Finding::new(Code::StateLost, evidence).seen_all(proof))));
    }
    let unknown: Vec<Gap> = [facts.sets.gap(), facts.secrets.attempt.gap(), facts.secrets.applied.gap()]
        .into_iter()
        .flatten()
        .cloned()
        .collect();
    if !unknown.is_empty() {
        gaps.extend(unknown);
        return None;
    }
    let unconfirmed = note("captf.io/unconfirmed-apply").or_else(|| note("captf.io/interrupted-apply"));
    if let Some(job) = unconfirmed {
        let finding = Finding::new(Code::StateOutcomeUnknown, evidence)
            .seen(Evidence::new("the record of the newest apply, annotation captf.io/unconfirmed-apply", job.clone()));
        return Some((Some("ApplyOutcomeUnknown"), finding.with("job", job)));
    }
    Some((Some("StateNotFound"), Finding::new(Code::StateNotFound, evidence)))
}

fn readable(facts: &RestoreFacts, serial: i64, managed: u64, base: &str, gaps: &mut Vec<Gap>) -> Main {
    let evidence = Evidence::new(format!("Secret/{base}"), format!("serial {serial}, {managed} managed resources"));
    let machine = facts.object.kind == WorkloadKind::Machine && facts.about.provisioned;
    if machine && inputs_hash(facts).is_none() && facts.secrets.base.found().is_some() {
        let finding = Finding::new(Code::StateLost, evidence)
            .seen(Evidence::new(format!("Secret/{base} annotation {INPUTS_HASH}"), "missing on a provisioned machine"));
        return (Some("StateLost"), with_newest(facts, finding));
    }
    match rule(&facts.lock) {
        Ruling::Foreign(_) => {
            let lease = facts.lock.lease_name();
            let finding = Finding::new(Code::StateLocked, Evidence::new(format!("Lease/{lease}"), "a foreign lock"))
                .seen(evidence);
            (Some("StateLocked"), finding)
        }
        // Whether a foreign lock makes the controller give another reason is not known then.
        Ruling::Undetermined(unread) => {
            gaps.extend(unread);
            (None, Finding::new(Code::StateReadable, evidence))
        }
        _ => (Some("StateRead"), Finding::new(Code::StateReadable, evidence)),
    }
}

/// The inputs hash of the live state, as the controller recorded it.
pub fn inputs_hash(facts: &RestoreFacts) -> Option<&str> {
    let hash = facts.secrets.base.found()?.annotations.get(INPUTS_HASH)?;
    (!hash.is_empty()).then_some(hash.as_str())
}

/// A state that reads well and is not the object's: empty with a lower serial, or of another lineage.
fn overwritten(facts: &RestoreFacts) -> Option<Finding> {
    let StateContent::Readable { serial, lineage, managed_resources, .. } = &facts.live.found()?.content else {
        return None;
    };
    let newest = newest_complete(facts)?;
    let newest_serial = newest.serial?;
    let emptied = *managed_resources == 0 && *serial < newest_serial && newest.resources.is_some_and(|r| r > 0);
    let other = newest.lineage.as_ref().is_some_and(|l| l != lineage);
    if !emptied && !other {
        return None;
    }
    let base = state_secret(&facts.object.suffix());
    let mut finding = Finding::new(
        Code::StateOverwritten,
        Evidence::new(
            format!("Secret/{base}"),
            format!("serial {serial}, lineage {lineage}, {managed_resources} managed resources"),
        ),
    );
    let resources = newest.resources.map_or("an unknown number of".to_string(), |r| r.to_string());
    let their = newest.lineage.clone().unwrap_or_else(|| "unknown".to_string());
    finding = finding.seen(
        Evidence::new(
            format!("Secret/{}", newest.name),
            format!("serial {newest_serial}, lineage {their}, {resources} managed resources"),
        )
        .at(newest.taken),
    );
    Some(finding.with("serial", newest_serial.to_string()))
}

fn strays(facts: &RestoreFacts) -> Option<Finding> {
    let strays = facts.secrets.unlabelled.found()?;
    let first = strays.first()?;
    let say = |s: &SecretMeta| {
        Evidence::new(format!("Secret/{}", s.name), "has a name of this state and not its labels").at(s.created)
    };
    let finding = Finding::new(Code::StateStraySecrets, say(first)).with("secret", first.name.clone());
    Some(finding.seen_all(strays.iter().skip(1).map(say)))
}

fn size(facts: &RestoreFacts) -> Option<Finding> {
    let live = facts.live.found().filter(|l| matches!(l.content, StateContent::Readable { .. }))?;
    let image = facts.about.image.as_deref().unwrap_or_default().to_ascii_lowercase();
    let chunks_on = image.contains("terraform") && !image.contains("tofu");
    let near = if live.chunks > 1 || chunks_on { live.chunks >= NEAR_CHUNKS } else { live.compressed > NEAR_LIMIT };
    near.then(|| {
        let value = format!(
            "{} bytes compressed in {} of at most {CHUNK_LIMIT} Secrets of {SECRET_LIMIT} bytes",
            live.compressed, live.chunks
        );
        Finding::new(
            Code::StateNearLimit,
            Evidence::new(format!("Secret/{}", state_secret(&facts.object.suffix())), value),
        )
    })
}

fn without_hash(facts: &RestoreFacts) -> Option<Finding> {
    let readable = matches!(facts.live.found()?.content, StateContent::Readable { .. });
    let base = facts.secrets.base.found()?;
    let immutable = facts.object.kind == WorkloadKind::Machine && facts.about.provisioned;
    (readable && inputs_hash(facts).is_none() && !immutable).then(|| {
        let source = format!("Secret/{} annotation {INPUTS_HASH}", base.name);
        Finding::new(Code::StateWithoutHash, Evidence::new(source, "missing"))
    })
}

fn disagrees(facts: &RestoreFacts, reason: &str) -> Option<Finding> {
    let condition = facts.about.condition("StateReadable")?;
    (condition.reason != reason).then(|| {
        let source = format!("{} StateReadable", facts.object.resource());
        let value = format!("{}/{}", condition.status, condition.reason);
        Finding::new(Code::StateReasonDiffers, Evidence::new(source, value).at(condition.since))
            .seen(Evidence::new("the reader's rules give now", reason))
            .with("reason", reason)
    })
}
