//! What stands beside a verdict: the state that the lock protects, what the pinned binary could not
//! do, oddities of the lock itself, and what the object says of it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::lock_verdict::{Claimant, Ruling, claimant, differing_id};
use super::verdict::Verdict;
use crate::captf::names::{chunk_index, state_secret, state_selector_labels};
use crate::captf::time::{relative, utc};
use crate::facts::job::JobOutcome;
use crate::facts::lease::Holder;
use crate::facts::lock::LockFacts;
use crate::facts::reading::Reading;
use crate::facts::state::{KeyPresence, StateContent, StateSecret};

/// How far two clocks, or a lock attempt and the Lease it ends up in, may lie apart unremarked.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);
/// The same for the start of a pod, which always precedes the lock that its process takes.
const POD_TOLERANCE: SignedDuration = SignedDuration::from_mins(1);

/// All findings beside the verdict.
pub fn findings(facts: &LockFacts, ruling: &Ruling<'_>, now: Timestamp) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(replaced_state(facts));
    found.extend(cannot_release(facts, ruling));
    found.extend(ids_differ(facts));
    found.extend(times_disagree(facts, now));
    found.extend(interrupted_init(facts));
    found.extend(apply_cut_short(facts, ruling));
    found.extend(version_is_proof(facts));
    found.extend(object_disagrees(facts, ruling));
    found
}

/// The reason why the unlock of the controller's next Job cannot succeed, if there is one.
pub fn blocks_the_controllers_unlock(facts: &LockFacts) -> Option<Evidence> {
    if let Some(lease) = facts.lease.found()
        && let Some(id) = differing_id(lease)
    {
        let value = format!("{id} differs from holderIdentity, so that unlock does nothing");
        return Some(Evidence::new(format!("Lease/{} lock-info ID", lease.name), value));
    }
    if let Some(problem) = replaced_state(facts).first() {
        return Some(Evidence::new("the next Job's init", format!("fails on the held lock ({})", problem.code)));
    }
    if matches!(facts.state.base, Reading::Absent) && selected(facts).is_some_and(<[_]>::is_empty) {
        return Some(Evidence::new("the next Job's init", "fails on the held lock (there is no state Secret)"));
    }
    facts
        .lease
        .found()
        .filter(|l| l.info.runtime_fails())
        .map(|lease| Evidence::new(format!("Lease/{} lock-info", lease.name), "cannot be decoded by the runtime"))
}

fn selected(facts: &LockFacts) -> Option<&[StateSecret]> {
    facts.state.selected.found().map(Vec::as_slice)
}

fn is_held(facts: &LockFacts) -> bool {
    facts.lease.found().is_some_and(|l| l.holder != Holder::Nobody)
}

/// Labels by which the backend selects; unknown without the Cluster's name.
pub(super) fn expected_labels(facts: &LockFacts) -> Option<BTreeMap<&'static str, String>> {
    let cluster = facts.about.cluster_name.as_deref()?;
    let object = &facts.object;
    Some(state_selector_labels(object.kind, &object.name, cluster, &object.suffix()))
}

/// Row 2 of the runtime's facts: the next `init` would find no state and write an empty one.
fn replaced_state(facts: &LockFacts) -> Vec<Finding> {
    let mut found = Vec::new();
    let protects = if is_held(facts) { "the held lock is all that prevents it" } else { "nothing prevents it" };
    let expected = expected_labels(facts);
    if let (Reading::Found(base), Some(expected)) = (&facts.state.base, &expected) {
        let differing = differing_labels(base, expected);
        if !differing.is_empty() {
            let mut finding =
                Finding::new(Code::StateLabelsDiffer, Evidence::new(format!("Secret/{}", base.name), protects));
            let mut repair = Vec::new();
            for (key, is, should) in differing {
                let source = format!("Secret/{} label {key}", base.name);
                let value = match is {
                    Some(is) => format!("`{is}`, the backend asks for `{should}`"),
                    None => format!("missing, the backend asks for `{should}`"),
                };
                finding = finding.seen(Evidence::new(source, value));
                repair.push(format!("{key}={should}"));
            }
            found.push(finding.with("secret", base.name.clone()).with("labels", repair.join(" ")));
        }
    }
    if let Reading::Found(base) = &facts.state.base
        && base.state_key == KeyPresence::Missing
    {
        let source = format!("Secret/{} .data", base.name);
        found.push(
            Finding::new(Code::StateKeyMissing, Evidence::new(source, "has no key tfstate").at(base.created))
                .seen(Evidence::new("the next init", protects))
                .with("secret", base.name.clone()),
        );
    }
    let base_name = state_secret(&facts.object.suffix());
    for other in selected(facts).unwrap_or_default().iter().filter(|s| chunk_index(&base_name, &s.name).is_none()) {
        let matches_all = expected.as_ref().is_none_or(|e| differing_labels(other, e).is_empty());
        let how = if matches_all { "matches every label of the state" } else { "matches the controller's selector" };
        found.push(
            Finding::new(
                Code::StateSecretTwice,
                Evidence::new(format!("Secret/{}", other.name), how).at(other.created),
            )
            .seen(Evidence::new("the next init", protects))
            .with("secret", other.name.clone()),
        );
    }
    found
}

pub(super) fn differing_labels<'a>(
    secret: &'a StateSecret,
    expected: &'a BTreeMap<&'static str, String>,
) -> Vec<(&'static str, Option<&'a str>, &'a str)> {
    expected
        .iter()
        .filter_map(|(key, should)| {
            let is = secret.labels.get(*key).map(String::as_str);
            (is != Some(should)).then_some((*key, is, should.as_str()))
        })
        .collect()
}

/// Rows 2, 14, 15 and 18: the pinned binary itself fails before it could unlock.
fn cannot_release(facts: &LockFacts, ruling: &Ruling<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    let Some(lease) = facts.lease.found().filter(|l| matches!(l.holder, Holder::Id(_))) else {
        return found;
    };
    if lease.info.runtime_fails() {
        let source = format!("Lease/{} annotation app.terraform.io/lock-info", lease.name);
        found.push(Finding::new(Code::ReleaseBadInfo, Evidence::new(source, "cannot be decoded by the runtime")));
    }
    let holder_is_dead = matches!(ruling, Ruling::Stale { .. } | Ruling::Foreign(_));
    let base_name = state_secret(&facts.object.suffix());
    let no_secret = matches!(facts.state.base, Reading::Absent) && selected(facts).is_some_and(<[_]>::is_empty);
    if no_secret && holder_is_dead {
        let mut finding = Finding::new(Code::ReleaseNoState, Evidence::new(format!("Secret/{base_name}"), "not found"));
        if let Some(serial) = facts.about.observed_serial {
            let source = format!("{} .status.observedStateSerial", facts.object.resource());
            finding = finding.seen(Evidence::new(source, format!("{serial}: there was a state")));
        }
        if let Some(Reading::Found(count)) = &facts.state.backups {
            finding = finding.seen(Evidence::new("Secrets of backups", count.to_string()));
        }
        found.push(finding);
    }
    let chunks =
        selected(facts).unwrap_or_default().iter().filter(|s| chunk_index(&base_name, &s.name).is_some_and(|i| i > 0));
    let chunks: Vec<&str> = chunks.map(|s| s.name.as_str()).collect();
    if let Some(first) = chunks.first() {
        let evidence = Evidence::new(format!("Secret/{first}"), format!("{} further chunks", chunks.len()));
        match pinned_runtime(facts) {
            Some(Runtime::OpenTofu) => {
                let image = facts.about.image.clone().unwrap_or_default();
                found.push(
                    Finding::new(Code::ReleaseChunkedTofu, evidence)
                        .seen(Evidence::new(format!("{} image", facts.object.resource()), image)),
                );
            }
            Some(Runtime::Terraform) => {}
            None => found.push(Finding::new(Code::ReleaseChunkedIfTofu, evidence)),
        }
    }
    match &facts.state.content {
        Some(Reading::Found(StateContent::Corrupt(why) | StateContent::Inconsistent(why))) => {
            found.push(Finding::new(
                Code::ReleaseStateCorrupt,
                Evidence::new(format!("Secret/{base_name}"), why.clone()),
            ));
        }
        Some(Reading::Found(StateContent::Encrypted)) => found.push(Finding::new(
            Code::ReleaseStateEncrypted,
            Evidence::new(format!("Secret/{base_name}"), "has an encryption_version"),
        )),
        _ => {}
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Runtime {
    Terraform,
    OpenTofu,
}

/// Which runtime the image is, where its name says so.
pub(super) fn pinned_runtime(facts: &LockFacts) -> Option<Runtime> {
    let image = facts.about.image.as_deref()?.to_ascii_lowercase();
    match (image.contains("tofu"), image.contains("terraform")) {
        (true, false) => Some(Runtime::OpenTofu),
        (false, true) => Some(Runtime::Terraform),
        _ => None,
    }
}

fn ids_differ(facts: &LockFacts) -> Option<Finding> {
    let lease = facts.lease.found()?;
    let annotated = differing_id(lease)?;
    Some(
        Finding::new(Code::LockIdsDiffer, super::lock_inspect::holder_evidence(lease))
            .seen(Evidence::new(format!("Lease/{} lock-info ID", lease.name), annotated)),
    )
}

fn times_disagree(facts: &LockFacts, now: Timestamp) -> Vec<Finding> {
    let mut found = Vec::new();
    let Some(lease) = facts.lease.found().filter(|l| l.holder != Holder::Nobody) else {
        return found;
    };
    let Some(taken) = lease.info.info().and_then(|i| i.created) else {
        return found;
    };
    let taken_seen =
        Evidence::new(format!("Lease/{} lock-info Created", lease.name), relative(taken, now)).at(Some(taken));
    if let Some(created) = lease.created.filter(|c| taken + TOLERANCE < *c) {
        let source = format!("Lease/{} .metadata.creationTimestamp", lease.name);
        found.push(
            Finding::new(Code::LockOlderThanLease, taken_seen.clone())
                .seen(Evidence::new(source, relative(created, now)).at(Some(created))),
        );
    }
    if let Some(created) = facts.about.created.filter(|c| taken + TOLERANCE < *c) {
        let source = format!("{} .metadata.creationTimestamp", facts.object.resource());
        found.push(
            Finding::new(Code::LockOlderThanObject, taken_seen.clone())
                .seen(Evidence::new(source, relative(created, now)).at(Some(created))),
        );
    }
    let named = [facts.holder_pod.as_ref(), facts.around.host.pod.as_ref()];
    if let Some(pod) = named.into_iter().flatten().find_map(Reading::found)
        && let Some(created) = pod.created.filter(|c| taken + POD_TOLERANCE < *c)
    {
        let source = format!("Pod/{} .metadata.creationTimestamp", pod.name);
        let value = format!("{}, another process than the one that took the lock", utc(created));
        found.push(
            Finding::new(Code::PodYoungerThanLock, taken_seen)
                .seen(Evidence::new(source, value).at(Some(created)))
                .with("pod", pod.name.clone()),
        );
    }
    found
}

fn interrupted_init(facts: &LockFacts) -> Option<Finding> {
    let lease = facts.lease.found().filter(|l| matches!(l.holder, Holder::Id(_)))?;
    let info = lease.info.info().filter(|i| i.operation == "init")?;
    let never_written = match &facts.state.base {
        Reading::Absent => true,
        Reading::Found(base) => base.state_key == KeyPresence::Missing,
        Reading::Unreadable(_) => return None,
    };
    let nothing_before = facts.about.observed_serial.is_none()
        && !facts.about.provisioned
        && facts.about.backups_in_status == 0
        && matches!(facts.state.backups, None | Some(Reading::Found(0)));
    (never_written && nothing_before).then(|| {
        Finding::new(
            Code::LockInterruptedInit,
            Evidence::new(format!("Lease/{} lock-info Operation", lease.name), "init").at(info.created),
        )
        .seen(Evidence::new(format!("Secret/{}", state_secret(&facts.object.suffix())), "was never filled"))
    })
}

fn apply_cut_short(facts: &LockFacts, ruling: &Ruling<'_>) -> Option<Finding> {
    if !matches!(ruling, Ruling::Stale { .. } | Ruling::Foreign(_)) {
        return None;
    }
    let lease = facts.lease.found()?;
    let info = lease.info.info().filter(|i| i.operation == "OperationTypeApply")?;
    Some(Finding::new(
        Code::LockApplyCutShort,
        Evidence::new(format!("Lease/{} lock-info Operation", lease.name), info.operation.clone()).at(info.created),
    ))
}

/// Trap 17: a finished apply whose lock version the controller has not compared yet.
fn version_is_proof(facts: &LockFacts) -> Option<Finding> {
    let job = facts.jobs.found()?.iter().find(|j| {
        j.outcome == JobOutcome::Failed
            && !j.marks.bookkept
            && j.op == Some(crate::captf::names::Operation::Apply)
            && j.state_lock_version.is_some()
    })?;
    let version = job.state_lock_version.clone().unwrap_or_default();
    Some(
        Finding::new(
            Code::LeaseVersionIsProof,
            Evidence::new(format!("Job/{} annotation captf.io/state-lock-version", job.name), version).at(job.finished),
        )
        .with("job", job.name.clone()),
    )
}

/// What StateReadable says of the lock against what was found, and why the two may differ.
fn object_disagrees(facts: &LockFacts, ruling: &Ruling<'_>) -> Option<Finding> {
    let verdict = ruling.verdict();
    if matches!(verdict, Verdict::Undetermined) {
        return None;
    }
    let condition = facts.about.condition("StateReadable")?;
    let says_locked = condition.status == "False" && condition.reason == "StateLocked";
    let foreign = match verdict {
        Verdict::Foreign => true,
        Verdict::NotEvaluated => facts
            .lease
            .found()
            .filter(|l| matches!(l.holder, Holder::Id(_)))
            .is_some_and(|l| matches!(claimant(&facts.object, l), Claimant::Foreign(_))),
        _ => false,
    };
    if says_locked == foreign {
        return None;
    }
    let paused = facts.about.paused_annotation
        || facts.around.owner_cluster.as_ref().and_then(Reading::found).is_some_and(|c| c.paused);
    let why = if verdict == Verdict::NotEvaluated {
        "a Job is unfinished, and the condition keeps its old value until it ends"
    } else if paused {
        "while paused the condition keeps its old value"
    } else if foreign && condition.status == "False" {
        "another problem of the state comes first and hides the lock"
    } else {
        "the controller has not looked since the lock changed"
    };
    let source = format!("{} StateReadable", facts.object.resource());
    let value = format!("{}/{}", condition.status, condition.reason);
    Some(
        Finding::new(Code::StateReadableDisagrees, Evidence::new(source, value).at(condition.since))
            .seen(Evidence::new("the likely reason", why)),
    )
}
