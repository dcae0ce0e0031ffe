//! What a restore brings about: resources that are forgotten, applies that follow, another lineage.

use jiff::Timestamp;

use super::backup_sets::choose;
use super::backups::set_evidence;
use super::code::Code;
use super::finding::{Evidence, Finding};
use super::restore::Wish;
use super::state_inspect::inputs_hash;
use crate::captf::kind::WorkloadKind;
use crate::facts::backup::BackupSet;
use crate::facts::reading::Reading;
use crate::facts::restore::{Baseline, InputsCompare, RestoreFacts};
use crate::facts::state::StateContent;

fn chosen(facts: &RestoreFacts, serial: i64) -> Option<&BackupSet> {
    facts.sets.found().and_then(|sets| choose(sets, serial))
}

/// What Terraform would know no more.
pub fn forgets(facts: &RestoreFacts, wish: &Wish<'_>) -> Option<Finding> {
    facts.backup.as_ref()?.found()?;
    let Some(diff) = &facts.diff else {
        let value = "neither the live state nor a newer backup can be compared";
        return Some(Finding::new(Code::RestoreForgetsUnknown, Evidence::new("what would be forgotten", value)));
    };
    let against = match facts.baseline {
        Baseline::Backup { serial } => {
            format!("compared with the backup of serial {serial}; the live state does not read")
        }
        Baseline::Live | Baseline::Nothing => "compared with the live state".to_string(),
    };
    let count = diff.forgotten.len() as u64;
    if count == 0 {
        return None;
    }
    let many = count > wish.forget_limit && wish.may_forget != Some(count);
    let code = if many { Code::RestoreForgetsMany } else { Code::RestoreForgets };
    let mut finding = Finding::new(code, Evidence::new(format!("{count} resource instances"), against))
        .with("count", count.to_string());
    for address in diff.forgotten.iter().take(10) {
        finding = finding.seen(Evidence::new("forgotten", address.address.clone()));
    }
    if count > 10 {
        finding = finding.seen(Evidence::new("and", format!("{} more", count - 10)));
    }
    Some(finding)
}

/// How the inputs of now compare with those of the backup.
pub fn compare_inputs(facts: &RestoreFacts, set: &BackupSet) -> InputsCompare {
    let Some(of_backup) = &set.inputs_hash else {
        return InputsCompare::BackupHasNone;
    };
    let of_attempt = || {
        let hash = facts.secrets.attempt.found()?.annotations.get("captf.io/inputs-hash")?;
        (!hash.is_empty()).then_some(hash.as_str())
    };
    let current = match facts.about.condition("InputsApplied") {
        Some(c) if c.status == "True" => inputs_hash(facts).or_else(of_attempt),
        // Newer inputs wait that nobody has recorded yet.
        Some(c) if c.reason == "ApplyPending" || c.reason == "AwaitingApproval" => None,
        _ => of_attempt(),
    };
    match current {
        Some(current) if current == of_backup => InputsCompare::Same,
        Some(_) => InputsCompare::Differ,
        None => InputsCompare::Unknown,
    }
}

/// What follows from the inputs.
pub fn inputs(facts: &RestoreFacts, serial: i64) -> Option<Finding> {
    let set = chosen(facts, serial)?;
    let compare = compare_inputs(facts, set);
    let source = format!("Secret/{} annotation captf.io/inputs-hash", set.name);
    let kind = facts.object.kind;
    let immutable = kind == WorkloadKind::Machine;
    let guarded = || {
        let policy = facts.extra.apply_policy.as_deref().unwrap_or("Automatic");
        let seen = Evidence::new(source.clone(), "is not that of the current inputs");
        let code = if kind == WorkloadKind::Cluster { Code::RestoreThenGuardedApply } else { Code::RestoreThenApply };
        let mut finding = Finding::new(code, seen);
        if kind == WorkloadKind::Cluster {
            let field = format!("{} .spec.applyPolicy", facts.object.resource());
            finding = finding.seen(Evidence::new(field, policy.to_string()));
        }
        finding
    };
    match compare {
        InputsCompare::Same => None,
        InputsCompare::BackupHasNone if immutable && facts.about.provisioned => {
            Some(Finding::new(Code::RestoreMachineTurnsLost, Evidence::new(source, "missing")))
        }
        InputsCompare::BackupHasNone => Some(Finding::new(Code::RestoreHashMissing, Evidence::new(source, "missing"))),
        InputsCompare::Differ | InputsCompare::Unknown if immutable => None,
        InputsCompare::Differ => Some(guarded()),
        InputsCompare::Unknown => Some(
            Finding::new(
                Code::RestoreInputsUnknown,
                Evidence::new(format!("{} InputsApplied", facts.object.resource()), condition_words(facts)),
            )
            .seen(Evidence::new(
                "inputs hash of the live state",
                if inputs_hash(facts).is_some() { "of inputs that may be out of date" } else { "missing" },
            )),
        ),
    }
}

fn condition_words(facts: &RestoreFacts) -> String {
    facts.about.condition("InputsApplied").map_or("not set".to_string(), |c| format!("{}/{}", c.status, c.reason))
}

/// A backup of another lineage than the live state.
pub fn lineage(facts: &RestoreFacts, serial: i64) -> Option<Finding> {
    let set = chosen(facts, serial)?;
    let StateContent::Readable { lineage, .. } = &facts.live.found()?.content else {
        return None;
    };
    let theirs = set.lineage.as_ref().filter(|l| *l != lineage)?;
    let source = format!("Secret/{} annotation captf.io/state-backup-lineage", set.name);
    Some(
        Finding::new(Code::RestoreLineageDiffers, Evidence::new(source, theirs.clone()).at(set.taken))
            .seen(Evidence::new("lineage of the live state", lineage.clone())),
    )
}

/// A backup that is what is live already.
pub fn same_as_live(facts: &RestoreFacts, serial: i64) -> Option<Finding> {
    let StateContent::Readable { serial: live, .. } = &facts.live.found()?.content else {
        return None;
    };
    let same = *live == serial && facts.baseline == Baseline::Live && facts.diff.as_ref().is_some_and(|d| d.is_empty());
    same.then(|| Finding::new(Code::RestoreIsLive, Evidence::new("serial of the live state", live.to_string())))
}

/// Nothing refuses: what is about to happen.
pub fn ready(facts: &RestoreFacts, serial: i64, now: Timestamp) -> Finding {
    let set = chosen(facts, serial);
    let first = set.map_or_else(|| Evidence::new("serial", serial.to_string()), |s| set_evidence(s, now));
    let what = if facts.about.deleting.is_some() {
        "the restored state is destroyed as soon as it reads"
    } else {
        match set.map(|s| compare_inputs(facts, s)) {
            Some(InputsCompare::Same) => "no apply follows by itself, because the inputs are those of the backup",
            Some(InputsCompare::Differ | InputsCompare::BackupHasNone)
                if facts.object.kind == WorkloadKind::Machine =>
            {
                "a machine is not applied again"
            }
            Some(InputsCompare::Unknown) => "an apply may follow at once",
            Some(InputsCompare::Differ | InputsCompare::BackupHasNone)
                if facts.object.kind == WorkloadKind::Cluster =>
            {
                "a guarded apply of the current inputs follows at once"
            }
            _ => "an apply of the current inputs follows at once",
        }
    };
    let mut finding = Finding::new(Code::RestoreReady, first).with("serial", serial.to_string()).with("what", what);
    if let Reading::Found(live) = &facts.live
        && let StateContent::Readable { serial, managed_resources, .. } = &live.content
    {
        let value = format!("serial {serial}, {managed_resources} managed resources");
        finding = finding.seen(Evidence::new("the live state", value));
    }
    if !facts.lock.live {
        let value = "this is a snapshot; only a judgement of the live cluster counts";
        finding = finding.seen(Evidence::new("read from", value));
    }
    finding
}
