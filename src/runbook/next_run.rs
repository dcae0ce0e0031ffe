//! What the controller runs next for an object, and when: that is when a stale lock is cleared.
//!
//! Follows the controller's order: gates first, then restore, deletion, apply with backoff, then
//! the schedule. Where an input could not be read, the answer is unknown, never a guess.

use jiff::{SignedDuration, Timestamp};

use super::finding::Evidence;
use super::policy::{Deletion, Policy};
use crate::captf::backoff::{Ended, Retry, next_retry};
use crate::captf::names::Operation;
use crate::facts::job::{JobFacts, JobOutcome, finished_newest_first};
use crate::facts::object::{ObjectFacts, ObjectRef, OwnerClusterFacts};
use crate::facts::reading::{Gap, Reading};

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextRun {
    /// A Job is due. `at` is `None` when only its order is known (it waits for a lease or a slot).
    Due { what: String, at: Option<Timestamp>, why: Vec<Evidence> },
    /// Nothing starts a Job until somebody acts.
    Nothing { why: Vec<Evidence> },
    /// It rests on something that could not be read.
    Unknown(Gap),
}

/// What the answer is made from.
pub struct Inputs<'a> {
    pub object: &'a ObjectRef,
    pub about: &'a ObjectFacts,
    pub jobs: &'a [JobFacts],
    pub owner_cluster: Option<&'a Reading<OwnerClusterFacts>>,
    pub policy: Policy<'a>,
}

/// Conditions that must be True before an apply, a plan or a drift check starts.
pub(super) const GATES: [&str; 4] = ["DependenciesReady", "IdentityAllowed", "CredentialsMirrored", "RunnerRBACReady"];

/// What runs next as of `now`.
pub fn next_run(inputs: &Inputs<'_>, now: Timestamp) -> NextRun {
    if let Some(stopped) = stopped_entirely(inputs) {
        return stopped;
    }
    if inputs.about.deleting.is_some() {
        return deletion(inputs, now);
    }
    if let Some(held) = held_by_state(inputs) {
        return held;
    }
    if let Some(restore) = pending_restore(inputs) {
        return restore;
    }
    if let Some(gate) = closed_gate(inputs) {
        return gate;
    }
    if let Some(wait) = waits_for_a_person(inputs) {
        return wait;
    }
    let mut candidates: Vec<(Timestamp, NextRun)> = Vec::new();
    let mut unknown = None;
    for due in [retry_after_apply(inputs, now), scheduled_drift(inputs, now), scheduled_refresh(inputs, now)] {
        match due {
            Some(NextRun::Due { what, at, why }) => {
                let order = at.unwrap_or(now);
                candidates.push((order, NextRun::Due { what, at, why }));
            }
            Some(other) => unknown = Some(other),
            None => {}
        }
    }
    candidates.sort_by_key(|(at, _)| *at);
    let first = candidates.into_iter().next().map(|(_, due)| due);
    first.or(unknown).unwrap_or_else(|| NextRun::Nothing {
        why: vec![Evidence::new(
            inputs.object.resource(),
            "no failed apply to repeat and no periodic check is enabled",
        )],
    })
}

pub(super) fn stopped_entirely(inputs: &Inputs<'_>) -> Option<NextRun> {
    let about = inputs.about;
    let resource = inputs.object.resource();
    let nothing = |source: String, value: &str| Some(NextRun::Nothing { why: vec![Evidence::new(source, value)] });
    if about.paused_annotation {
        return nothing(format!("{resource} annotation cluster.x-k8s.io/paused"), "present: the object is paused");
    }
    match inputs.owner_cluster {
        Some(Reading::Found(cluster)) if cluster.paused => {
            let name = about.cluster_name.clone().unwrap_or_default();
            return nothing(format!("Cluster/{name} .spec.paused"), "true: the cluster is paused");
        }
        Some(Reading::Unreadable(gap)) => return Some(NextRun::Unknown(gap.clone())),
        _ => {}
    }
    if about.managed_by && about.deleting.is_none() {
        return nothing(format!("{resource} annotation cluster.x-k8s.io/managed-by"), "present: externally managed");
    }
    None
}

/// Whether `StateReadable` says that no Job but a restore may run.
fn is_held_by_state(about: &ObjectFacts) -> bool {
    const HELD: [&str; 6] = [
        "StateLost",
        "StateCorrupt",
        "StateEncrypted",
        "StateInconsistent",
        "ApplyOutcomeUnknown",
        "RetainedStateFound",
    ];
    about.condition("StateReadable").is_some_and(|c| c.status == "False" && HELD.contains(&c.reason.as_str()))
}

pub(super) fn held_by_state(inputs: &Inputs<'_>) -> Option<NextRun> {
    (is_held_by_state(inputs.about) && restore_serial(inputs).is_none()).then(|| NextRun::Nothing {
        why: vec![condition_evidence(inputs, "StateReadable", "no Job but a restore starts until the state reads")],
    })
}

pub(super) fn restore_serial(inputs: &Inputs<'_>) -> Option<i64> {
    let serial: i64 = inputs.about.restore_request.as_deref()?.trim().parse().ok()?;
    (serial >= 1 && inputs.about.last_restored_serial != Some(serial)).then_some(serial)
}

fn pending_restore(inputs: &Inputs<'_>) -> Option<NextRun> {
    let serial = restore_serial(inputs)?;
    let source = format!("{} annotation captf.io/restore-state", inputs.object.resource());
    Some(NextRun::Due {
        what: format!("the restore of serial {serial}"),
        at: None,
        why: vec![Evidence::new(source, serial.to_string())],
    })
}

/// The controller's order of a deletion: dependents, the policy, what another object retained, release, then
/// a restore where the state does not read, and the destroy last.
fn deletion(inputs: &Inputs<'_>, now: Timestamp) -> NextRun {
    let about = inputs.about;
    let resource = inputs.object.resource();
    if about.condition("DeletionBlocked").is_some_and(|c| c.status == "True") {
        return NextRun::Nothing {
            why: vec![condition_evidence(inputs, "DeletionBlocked", "its machines or pools must go first")],
        };
    }
    if about.has("Deleting", "True", "DeletionPolicyUnresolved") {
        return NextRun::Nothing { why: vec![condition_evidence(inputs, "Deleting", "no deletion policy resolves")] };
    }
    let release = |what: &str, source: String, value: &str| NextRun::Due {
        what: format!("the release under {what}, which deletes the lock Lease"),
        at: None,
        why: vec![Evidence::new(source, value)],
    };
    if about.managed_by {
        let source = format!("{resource} annotation cluster.x-k8s.io/managed-by");
        return release("external management", source, "present");
    }
    if about.has("StateReadable", "False", "RetainedStateFound") {
        let why = "the object is released at once, and its state and lock are not touched";
        return NextRun::Nothing { why: vec![condition_evidence(inputs, "StateReadable", why)] };
    }
    match inputs.policy.deletion() {
        Deletion::Retain { from } => {
            let source = if from.starts_with('.') { format!("{resource} {from}") } else { from.to_string() };
            return release("deletionPolicy Retain", source, "Retain");
        }
        Deletion::Unresolved => {
            let source = format!("{resource} .spec.deletionPolicy");
            let value = "not set, and there is no cluster to inherit from";
            return NextRun::Nothing { why: vec![Evidence::new(source, value)] };
        }
        Deletion::Unknown => return NextRun::Unknown(policy_gap(inputs)),
        Deletion::Destroy => {}
    }
    // With a state that reads, a restore request is ignored: the destroy goes on.
    let restore = pending_restore(inputs).filter(|_| is_held_by_state(about));
    if let Some(first) = held_by_state(inputs).or(restore) {
        return first;
    }
    match retry_of(inputs, Operation::Destroy) {
        Ok(Some(retry)) => due_after(inputs, "the next destroy", retry, now),
        Ok(None) => NextRun::Due {
            what: "the destroy".to_string(),
            at: Some(now),
            why: vec![Evidence::new(format!("{resource} .metadata.deletionTimestamp"), "set").at(about.deleting)],
        },
        Err(gap) => NextRun::Unknown(gap),
    }
}

fn closed_gate(inputs: &Inputs<'_>) -> Option<NextRun> {
    let gate = GATES.into_iter().find(|g| inputs.about.condition(g).is_some_and(|c| c.status != "True"))?;
    Some(NextRun::Nothing { why: vec![condition_evidence(inputs, gate, "no Job starts before this gate opens")] })
}

pub(super) fn waits_for_a_person(inputs: &Inputs<'_>) -> Option<NextRun> {
    let condition = inputs.about.condition("ApplyJobSucceeded")?;
    let why = match condition.reason.as_str() {
        "PlanAwaitingApproval" | "DestructivePlanBlocked" | "PlanChanged" => "a plan waits for approval",
        "JobPolicyInvalid" => "the Job policy is invalid",
        "InputsTooLarge" => "the inputs are too large",
        "IdentityNotAllowed" => "the identity is not allowed here",
        _ => return None,
    };
    let mut evidence = vec![condition_evidence(inputs, "ApplyJobSucceeded", why)];
    if let Some(plan) = &inputs.about.pending_plan {
        evidence.push(Evidence::new(format!("{} .status.pendingPlanRef.name", inputs.object.resource()), plan.clone()));
    }
    Some(NextRun::Nothing { why: evidence })
}

fn retry_after_apply(inputs: &Inputs<'_>, now: Timestamp) -> Option<NextRun> {
    let resource = inputs.object.resource();
    if let Some(wait) = inputs.about.condition("ApplyJobSucceeded").filter(|c| c.reason.starts_with("WaitingFor")) {
        return Some(NextRun::Due {
            what: "the apply that waits".to_string(),
            at: None,
            why: vec![Evidence::new(format!("{resource} ApplyJobSucceeded"), wait.reason.clone()).at(wait.since)],
        });
    }
    let op = [Operation::Apply, Operation::Plan]
        .into_iter()
        .filter_map(|op| finished_newest_first(inputs.jobs, op).first().map(|j| (j.finished, op)))
        .max()?
        .1;
    let newest = *finished_newest_first(inputs.jobs, op).first()?;
    if newest.outcome == JobOutcome::Succeeded && !newest.marks.plan_unreadable {
        return None;
    }
    match retry_of(inputs, op) {
        Ok(Some(retry)) if newest.ended() != Some(Ended::NotCounted) => {
            Some(due_after(inputs, &format!("the next {}", op.as_str()), retry, now))
        }
        Ok(_) => Some(NextRun::Due {
            what: format!("the next {}", op.as_str()),
            at: Some(now),
            why: vec![Evidence::new(format!("Job/{}", newest.name), "failed without counting").at(newest.finished)],
        }),
        Err(gap) => Some(NextRun::Unknown(gap)),
    }
}

pub(super) fn scheduled_drift(inputs: &Inputs<'_>, now: Timestamp) -> Option<NextRun> {
    let last = inputs.about.last_drift_check;
    if !inputs.about.provisioned && last.is_none() {
        return None;
    }
    let Some(interval) = inputs.policy.drift_interval() else {
        return unknown_policy(inputs);
    };
    if interval.value <= 0 {
        return None;
    }
    let scheduled = last.map_or(now, |t| t + SignedDuration::from_secs(interval.value));
    let at = match retry_of(inputs, Operation::Drift) {
        Ok(retry) => retry.map_or(scheduled, |r| scheduled.max(r.at)),
        Err(gap) => return Some(NextRun::Unknown(gap)),
    };
    let source = format!("{} .status.lastDriftCheck", inputs.object.resource());
    let every = crate::captf::time::short_duration(interval.value);
    Some(NextRun::Due {
        what: "the next drift check".to_string(),
        at: Some(at.max(now)),
        why: vec![Evidence::new(source, format!("every {every} ({}), up to 10% later", interval.from)).at(last)],
    })
}

fn scheduled_refresh(inputs: &Inputs<'_>, now: Timestamp) -> Option<NextRun> {
    let every = inputs.about.refresh_interval_seconds.filter(|_| inputs.about.provisioned)?;
    let refreshes = finished_newest_first(inputs.jobs, Operation::Refresh);
    let last = refreshes.first().and_then(|j| j.finished)?;
    let scheduled = last + SignedDuration::from_secs(every);
    let at = match retry_of(inputs, Operation::Refresh) {
        Ok(retry) => retry.map_or(scheduled, |r| scheduled.max(r.at)),
        Err(gap) => return Some(NextRun::Unknown(gap)),
    };
    let every = crate::captf::time::short_duration(every);
    Some(NextRun::Due {
        what: "the next refresh".to_string(),
        at: Some(at.max(now)),
        why: vec![Evidence::new("the newest refresh Job", format!("finished; repeated every {every}")).at(Some(last))],
    })
}

/// The backoff of one operation. `Err` when the limit is inherited from what could not be read and
/// there is a failure to which it matters.
pub(super) fn retry_of(inputs: &Inputs<'_>, op: Operation) -> Result<Option<Retry>, Gap> {
    let finished =
        || finished_newest_first(inputs.jobs, op).into_iter().filter_map(|j| Some((j.ended()?, j.finished?)));
    match inputs.policy.failed_history_limit() {
        Some(limit) => Ok(next_retry(finished(), limit.value)),
        None if next_retry(finished(), 1).is_none() => Ok(None),
        None => Err(policy_gap(inputs)),
    }
}

fn due_after(inputs: &Inputs<'_>, what: &str, retry: Retry, now: Timestamp) -> NextRun {
    let limit = inputs.policy.failed_history_limit();
    let limit = limit.map(|l| format!(", limit {} ({})", l.value, l.from)).unwrap_or_default();
    let failures = if retry.failures == 1 { "1 failure".to_string() } else { format!("{} failures", retry.failures) };
    NextRun::Due {
        what: what.to_string(),
        at: Some(retry.at.max(now)),
        why: vec![Evidence::new("backoff", format!("{failures} in a row{limit}")).at(Some(retry.last_failure))],
    }
}

fn unknown_policy(inputs: &Inputs<'_>) -> Option<NextRun> {
    Some(NextRun::Unknown(policy_gap(inputs)))
}

pub(super) fn policy_gap(inputs: &Inputs<'_>) -> Gap {
    inputs.policy.gap().cloned().unwrap_or_else(|| Gap {
        what: format!("the TerraformCluster of {}", inputs.object.resource()),
        reason: crate::facts::reading::GapReason::Failed,
        detail: "it was not read".to_string(),
        permission: None,
    })
}

pub(super) fn condition_evidence(inputs: &Inputs<'_>, kind: &str, why: &str) -> Evidence {
    let (value, since) = inputs
        .about
        .condition(kind)
        .map(|c| (format!("{}/{}: {why}", c.status, c.reason), c.since))
        .unwrap_or_else(|| (why.to_string(), None));
    Evidence::new(format!("{} {kind}", inputs.object.resource()), value).at(since)
}
