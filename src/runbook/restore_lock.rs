//! The lock before a restore: a live or foreign one, or one that the Job cannot clear, burns the serial.

use jiff::Timestamp;

use super::backup_sets::choose;
use super::code::Code;
use super::finding::{Evidence, Finding};
use super::lock_beside::{self, Runtime, pinned_runtime};
use super::lock_inspect::{holder_evidence, pod_evidence};
use super::lock_verdict::{Ruling, differing_id, rule};
use crate::facts::reading::{Gap, Reading};
use crate::facts::restore::RestoreFacts;
use crate::facts::state::StateContent;

/// Bytes that one Secret holds: the API server's own limit.
const SECRET_LIMIT: u64 = 1 << 20;

/// Findings about the lock and about labels that the Job's `init` selects by.
pub fn findings(facts: &RestoreFacts, serial: i64, gaps: &mut Vec<Gap>) -> Vec<Finding> {
    let lock = &facts.lock;
    let ruling = rule(lock);
    let lease = || match lock.lease.found() {
        Some(lease) => holder_evidence(lease),
        None => Evidence::new(format!("Lease/{}", lock.lease_name()), "not found"),
    };
    let mut found = Vec::new();
    match &ruling {
        Ruling::Free { .. } | Ruling::NotEvaluated { .. } => {}
        Ruling::EmptyHolder => found.push(Finding::new(Code::RestoreLockEmptyHolder, lease())),
        Ruling::Undetermined(missing) => {
            for gap in missing {
                if !gaps.contains(gap) {
                    gaps.push(gap.clone());
                }
            }
        }
        Ruling::Live { pod } => found.push(
            Finding::new(Code::RestoreLockLive, lease())
                .seen_all(pod_evidence(lock.holder_pod.as_ref()))
                .with("pod", pod.name.clone()),
        ),
        Ruling::Foreign(_) => {
            let who = lock.lease.found().and_then(|l| l.info.info()).map(|i| i.who.clone()).filter(|w| !w.is_empty());
            let who = who.unwrap_or_else(|| "somebody unknown".to_string());
            found.push(Finding::new(Code::RestoreLockForeign, lease()).with("who", who));
        }
        Ruling::Stale { .. } => found.extend(stale(facts, lease())),
    }
    found.extend(selected_by_init(facts, &ruling));
    found.extend(too_large(facts, serial));
    found
}

/// OpenTofu keeps a state in one Secret: its `init` cannot load one in several chunks, and its push cannot write
/// one of more than 1 MiB. Either burns the serial.
fn too_large(facts: &RestoreFacts, serial: i64) -> Option<Finding> {
    let base = crate::captf::names::state_secret(&facts.object.suffix());
    let chunks = facts.secrets.selected.found().map_or(0, Vec::len);
    let live = (chunks > 1).then(|| {
        Evidence::new(format!("Secret/{base}"), format!("the first of {chunks} chunks, which `init` loads alone"))
    });
    let set = facts.sets.found().and_then(|sets| choose(sets, serial));
    let bytes = facts.backup.as_ref().and_then(Reading::found).map_or(0, |b| b.compressed);
    let backup = set.filter(|s| s.secrets.len() > 1 || bytes > SECRET_LIMIT).map(|s| {
        let size = if bytes > 0 { format!(", {bytes} bytes compressed") } else { String::new() };
        let value = format!("{} chunks{size}; one Secret holds {SECRET_LIMIT} bytes", s.secrets.len());
        Evidence::new(format!("Secret/{}", s.name), value)
    });
    let mut seen = live.into_iter().chain(backup);
    let first = seen.next()?;
    let code = match pinned_runtime(&facts.lock) {
        Some(Runtime::OpenTofu) => Code::RestoreTooLargeForTofu,
        Some(Runtime::Terraform) => return None,
        None => Code::RestoreTooLargeIfTofu,
    };
    let image = facts.about.image.clone().unwrap_or_else(|| "unknown".to_string());
    let image = Evidence::new(format!("the image of {}", facts.object.resource()), image);
    Some(Finding::new(code, first).seen_all(seen).seen(image))
}

fn stale(facts: &RestoreFacts, lease: Evidence) -> Vec<Finding> {
    let lock = &facts.lock;
    let differing = lock.lease.found().and_then(differing_id);
    if let Some(id) = differing {
        let seen = Evidence::new(format!("Lease/{} lock-info ID", lock.lease_name()), id);
        return vec![Finding::new(Code::RestoreStaleIdsDiffer, lease).seen(seen)];
    }
    let none = lock.state.selected.found().is_some_and(Vec::is_empty);
    if matches!(lock.state.base, Reading::Absent) && none {
        let name = crate::captf::names::state_secret(&facts.object.suffix());
        return vec![
            Finding::new(Code::RestoreStaleNoState, lease).seen(Evidence::new(format!("Secret/{name}"), "not found")),
        ];
    }
    // The unlock loads the state first, so a state that the runtime cannot load keeps the lock.
    let unloadable = match facts.live.found().map(|l| &l.content) {
        Some(StateContent::Corrupt(why) | StateContent::Inconsistent(why)) => Some(why.clone()),
        Some(StateContent::Encrypted) => Some("it is encrypted".to_string()),
        _ => None,
    };
    if let Some(why) = unloadable {
        let seen = Evidence::new("the live state, which the unlock loads first", why);
        return vec![Finding::new(Code::RestoreStaleUnlockFails, lease).seen(seen)];
    }
    let ruling = rule(lock);
    let beside = lock_beside::findings(lock, &ruling, Timestamp::UNIX_EPOCH);
    let fails = beside
        .into_iter()
        .find(|f| matches!(f.code, Code::StateKeyMissing | Code::ReleaseChunkedTofu | Code::ReleaseBadInfo));
    if let Some(fails) = fails {
        return vec![Finding::new(Code::RestoreStaleUnlockFails, lease).seen_all(fails.evidence)];
    }
    vec![Finding::new(Code::RestoreLockStale, lease)]
}

/// With other labels, or a second match, the Job's `init` sees no state: it fails on a held lock, and on a free
/// one it writes an empty state first.
fn selected_by_init(facts: &RestoreFacts, ruling: &Ruling<'_>) -> Vec<Finding> {
    let beside = lock_beside::findings(&facts.lock, ruling, Timestamp::UNIX_EPOCH);
    let mut found = Vec::new();
    for problem in beside {
        let code = match problem.code {
            Code::StateLabelsDiffer => Code::RestoreLabelsDiffer,
            Code::StateSecretTwice => Code::RestoreSecondSecret,
            _ => continue,
        };
        found.push(Finding { code, evidence: problem.evidence, values: problem.values });
    }
    found
}
