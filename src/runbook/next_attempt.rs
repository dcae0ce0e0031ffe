//! When an operation is tried again, by the controller's arithmetic, and what holds it besides backoff.
//!
//! Each operation has its own count. The time is the backoff's; whatever else has to happen first is
//! listed beside it and never folded into it.

use jiff::{SignedDuration, Timestamp};

use super::finding::Evidence;
use super::next_run::{
    GATES, Inputs, NextRun, condition_evidence, held_by_state, policy_gap, restore_serial, retry_of, scheduled_drift,
    stopped_entirely, waits_for_a_person,
};
use crate::captf::backoff::{Ended, delay_seconds};
use crate::captf::names::Operation;
use crate::facts::job::{JobFacts, active_job, finished_newest_first};
use crate::facts::reading::Gap;

/// A blocked apply that left no plan to approve is tried again after this time.
const BLOCKED_SECONDS: i64 = 600;

/// How the next attempt stands. The words are public and stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptState {
    /// A Job of the operation is unfinished.
    Running,
    /// Backoff or a schedule ends at a known time.
    Scheduled,
    /// Nothing is left to wait for but the next reconcile.
    Due,
    /// Something else has to happen first.
    Held,
    /// There is none by itself.
    Never,
    /// It rests on something that could not be read.
    Unknown,
}

impl AttemptState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Scheduled => "scheduled",
            Self::Due => "due",
            Self::Held => "held",
            Self::Never => "never",
            Self::Unknown => "unknown",
        }
    }
}

/// The next attempt of one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub op: Operation,
    pub state: AttemptState,
    /// Not before this time, as far as backoff and schedule go; while a Job of the operation is unfinished,
    /// the time at which its deadline ends it.
    pub at: Option<Timestamp>,
    pub failures: u32,
    /// Effective `failedJobsHistoryLimit`, and where it comes from.
    pub limit: Option<(i64, &'static str)>,
    /// Seconds of backoff after the newest failure that counts.
    pub delay_seconds: Option<i64>,
    pub last_failure: Option<Timestamp>,
    pub why: Vec<Evidence>,
    pub gap: Option<Gap>,
}

/// The next attempt of `op` as of `now`.
pub fn next_attempt(inputs: &Inputs<'_>, op: Operation, now: Timestamp) -> Attempt {
    let limit = inputs.policy.failed_history_limit().map(|l| (l.value, l.from));
    let mut attempt = Attempt {
        op,
        state: AttemptState::Due,
        at: None,
        failures: 0,
        limit,
        delay_seconds: None,
        last_failure: None,
        why: Vec::new(),
        gap: None,
    };
    if op == Operation::Restore {
        return restore(inputs, attempt);
    }
    match retry_of(inputs, op) {
        Ok(Some(retry)) => {
            attempt.failures = retry.failures;
            attempt.last_failure = Some(retry.last_failure);
            attempt.delay_seconds = limit.map(|(value, _)| delay_seconds(retry.failures, value));
            attempt.at = Some(retry.at);
        }
        Ok(None) => {}
        Err(gap) => {
            attempt.state = AttemptState::Unknown;
            attempt.gap = Some(gap);
        }
    }
    if op == Operation::Drift
        && let Some(NextRun::Due { at: Some(at), why, .. }) = scheduled_drift(inputs, now)
        && attempt.at.is_none_or(|retry| at > retry.max(now))
    {
        attempt.at = Some(at);
        attempt.why.extend(why);
    }
    blocked_without_plan(inputs, &mut attempt);
    hold(inputs, &mut attempt);
    if let Some(active) = active_job(inputs.jobs) {
        let seen = Evidence::new(format!("Job/{}", active.name), "unfinished").at(active.started.or(active.created));
        if active.op == Some(op) {
            attempt.state = AttemptState::Running;
            attempt.at = deadline_of(active);
            return attempt;
        }
        attempt.state = AttemptState::Held;
        attempt.why.insert(0, seen);
    }
    if attempt.state == AttemptState::Due && attempt.at.is_some_and(|at| at > now) {
        attempt.state = AttemptState::Scheduled;
    }
    attempt
}

fn restore(inputs: &Inputs<'_>, mut attempt: Attempt) -> Attempt {
    let resource = inputs.object.resource();
    match active_job(inputs.jobs).filter(|j| j.op == Some(Operation::Restore)) {
        Some(active) => {
            attempt.state = AttemptState::Running;
            attempt.at = deadline_of(active);
        }
        None if restore_serial(inputs).is_some() => hold(inputs, &mut attempt),
        None => {
            attempt.state = AttemptState::Never;
            let serial = inputs.about.last_restored_serial.map_or("unset".to_string(), |s| s.to_string());
            attempt.why.push(Evidence::new(format!("{resource} .status.lastRestoredSerial"), serial));
        }
    }
    attempt
}

/// When the deadline ends an unfinished Job.
fn deadline_of(job: &JobFacts) -> Option<Timestamp> {
    Some(job.started? + SignedDuration::from_secs(job.active_deadline_seconds?))
}

/// A blocked apply has no backoff; with no plan to approve it is repeated after ten minutes.
fn blocked_without_plan(inputs: &Inputs<'_>, attempt: &mut Attempt) {
    if attempt.op != Operation::Apply || inputs.about.pending_plan.is_some() {
        return;
    }
    let newest = finished_newest_first(inputs.jobs, Operation::Apply).first().copied();
    if let Some((job, finished)) = newest.filter(|j| j.marks.blocked).and_then(|j| Some((j, j.finished?))) {
        let at = finished + SignedDuration::from_secs(BLOCKED_SECONDS);
        attempt.at = Some(attempt.at.map_or(at, |retry| retry.max(at)));
        attempt.why.push(Evidence::new(format!("Job/{}", job.name), "blocked, no plan to approve").at(Some(finished)));
    }
}

/// Everything besides backoff that has to happen first.
fn hold(inputs: &Inputs<'_>, attempt: &mut Attempt) {
    let about = inputs.about;
    let mut held = Vec::new();
    for answer in [stopped_entirely(inputs), held_by_state(inputs)].into_iter().flatten() {
        match answer {
            NextRun::Nothing { why } => held.extend(why),
            NextRun::Unknown(gap) => {
                attempt.state = AttemptState::Unknown;
                attempt.gap.get_or_insert(gap);
            }
            NextRun::Due { .. } => {}
        }
    }
    let destroys = attempt.op == Operation::Destroy;
    if destroys && about.deleting.is_none() || !destroys && about.deleting.is_some() && attempt.op != Operation::Restore
    {
        let source = format!("{} .metadata.deletionTimestamp", inputs.object.resource());
        let value = if destroys { "not set: nothing is destroyed any more" } else { "set: only the destroy runs" };
        attempt.state = AttemptState::Never;
        attempt.why.push(Evidence::new(source, value).at(about.deleting));
        return;
    }
    // The owner's gates are skipped while the object is deleted; its credentials are not.
    let gates = GATES.iter().filter(|g| !destroys || **g != "DependenciesReady");
    for gate in gates.filter(|g| about.condition(g).is_some_and(|c| c.status != "True")) {
        held.push(condition_evidence(inputs, gate, "no Job starts before this gate opens"));
    }
    if matches!(attempt.op, Operation::Apply | Operation::Plan)
        && let Some(NextRun::Nothing { why }) = waits_for_a_person(inputs)
        && !(about.pending_plan.is_none() && about.has("ApplyJobSucceeded", "False", "DestructivePlanBlocked"))
    {
        held.extend(why);
    }
    held.extend(refused(inputs, attempt.op));
    held.extend(wait_of(inputs, attempt.op));
    held.extend(remediation_cap(inputs, attempt));
    if !held.is_empty() {
        if attempt.state != AttemptState::Unknown {
            attempt.state = AttemptState::Held;
        }
        attempt.why.extend(held);
    }
    if attempt.state == AttemptState::Unknown && attempt.gap.is_none() {
        attempt.gap = Some(policy_gap(inputs));
    }
}

/// A reason of the operation's condition with which no Job starts, whatever the clock says.
fn refused(inputs: &Inputs<'_>, op: Operation) -> Option<Evidence> {
    let (kind, _) = super::job_focus::CONDITIONS.iter().find(|(_, ops)| ops.contains(&op))?;
    let why = match (op, inputs.about.condition(kind)?.reason.as_str()) {
        (Operation::Restore, "RestoreBackupNotFound") => "there is no complete backup of that serial",
        (Operation::Drift | Operation::Refresh, "DurableInputsMissing") => "the inputs of the last apply are gone",
        (Operation::Destroy, "IdentityNotAllowed") => "the identity is not allowed here",
        _ => return None,
    };
    Some(condition_evidence(inputs, kind, why))
}

/// The wait (lease, slot) that the operation's condition reports.
fn wait_of(inputs: &Inputs<'_>, op: Operation) -> Option<Evidence> {
    let (kind, _) = super::job_focus::CONDITIONS.iter().find(|(_, ops)| ops.contains(&op))?;
    let waits = inputs.about.condition(kind).is_some_and(|c| c.reason.starts_with("WaitingFor"));
    waits.then(|| condition_evidence(inputs, kind, "waits for its turn"))
}

/// Applies that put drift right stop at the limit until a drift check has succeeded.
fn remediation_cap(inputs: &Inputs<'_>, attempt: &Attempt) -> Option<Evidence> {
    if attempt.op != Operation::Apply {
        return None;
    }
    let (limit, _) = attempt.limit?;
    let since = finished_newest_first(inputs.jobs, Operation::Drift)
        .into_iter()
        .find(|j| j.ended() == Some(Ended::Succeeded))
        .and_then(|j| j.finished);
    let applies = finished_newest_first(inputs.jobs, Operation::Apply);
    let newest = applies.first().filter(|j| j.remediation && j.ended() == Some(Ended::Failed))?;
    let failed = applies
        .iter()
        .filter(|j| j.remediation && j.ended() == Some(Ended::Failed) && since.is_none_or(|t| j.finished > Some(t)))
        .count();
    (i64::try_from(failed).unwrap_or(i64::MAX) >= limit.max(1)).then(|| {
        let value = format!("{failed} failed applies against drift since the last drift check: stopped until the next");
        Evidence::new(format!("Job/{}", newest.name), value).at(newest.finished)
    })
}
