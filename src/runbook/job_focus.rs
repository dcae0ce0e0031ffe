//! Which Jobs of an object are triaged: those that its bad conditions are about, and the active one.

use crate::captf::names::Operation;
use crate::captf::own_pod::is_own_job;
use crate::facts::job::{JobFacts, JobOutcome, active_job};
use crate::facts::object::{Condition, ObjectFacts, ObjectRef};

/// The conditions that tell of Jobs, with the operations that each is about.
pub const CONDITIONS: [(&str, &[Operation]); 3] = [
    ("ApplyJobSucceeded", &[Operation::Apply, Operation::Destroy, Operation::Plan]),
    ("DriftJobSucceeded", &[Operation::Drift, Operation::Refresh]),
    ("RestoreJobSucceeded", &[Operation::Restore]),
];

/// A Job to triage, and the condition that is about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Focus {
    pub job: String,
    pub condition: Option<String>,
}

/// The conditions that are present and not True, among those about an operation of `ops` (empty = all).
pub fn bad_conditions<'a>(about: &'a ObjectFacts, ops: &[Operation]) -> Vec<&'a Condition> {
    CONDITIONS
        .iter()
        .filter(|(_, about_ops)| ops.is_empty() || about_ops.iter().any(|op| ops.contains(op)))
        .filter_map(|(kind, _)| about.condition(kind))
        .filter(|c| c.status != "True")
        .collect()
}

/// The operations that a condition is about.
pub fn operations_of(condition: &str) -> &'static [Operation] {
    CONDITIONS.iter().find(|(kind, _)| *kind == condition).map_or(&[], |(_, ops)| ops)
}

/// The Job that a condition's message names (`Job captf-m-web-apply-a1-4f88b3: ...`).
pub fn named_in(message: &str) -> Option<&str> {
    let at = message.find("captf-")?;
    let name = message[at..]
        .split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.'))
        .next()?;
    Some(name.trim_end_matches(['.', '-'])).filter(|n| n.len() > "captf-".len())
}

/// The Jobs that a message names, each once, at most `limit`.
pub fn all_named_in(message: &str, limit: usize) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, _) in message.match_indices("captf-") {
        let name = named_in(&message[at..]).filter(|n| n.contains("-a") && !found.contains(n));
        found.extend(name.filter(|_| found.len() < limit));
    }
    found
}

/// Whether a reason says that no Job is behind the condition at the moment.
fn is_about_no_job(reason: &str) -> bool {
    const REASONS: [&str; 10] = [
        "NoApplyYet",
        "JobPolicyInvalid",
        "InputsTooLarge",
        "IdentityNotAllowed",
        "PlanAwaitingApproval",
        "DriftNotChecked",
        "DriftJobRunning",
        "DurableInputsMissing",
        "RestoreBackupNotFound",
        "WaitingForBootstrapData",
    ];
    reason.starts_with("WaitingFor") || REASONS.contains(&reason)
}

/// The Jobs to triage. With `fallback` and nothing bad, the newest finished Job stands in.
pub fn focus(
    object: &ObjectRef,
    about: &ObjectFacts,
    jobs: &[JobFacts],
    ops: &[Operation],
    fallback: bool,
) -> Vec<Focus> {
    let wanted = |op: Option<Operation>| ops.is_empty() || op.is_some_and(|op| ops.contains(&op));
    let mut found: Vec<Focus> = Vec::new();
    let mut add = |job: &str, condition: Option<&Condition>| {
        if !found.iter().any(|f| f.job == job) {
            found.push(Focus { job: job.to_string(), condition: condition.map(|c| c.kind.clone()) });
        }
    };
    for condition in bad_conditions(about, ops).into_iter().filter(|c| !is_about_no_job(&c.reason)) {
        // A Job that the condition names and that is gone is what it is about, not an older one that is left.
        let named = named_in(&condition.message).filter(|n| is_own_job(object.kind, &object.name, n));
        match (named.filter(|n| !jobs.iter().any(|j| j.name == *n)), newest_of(jobs, operations_of(&condition.kind))) {
            (Some(gone), _) => add(gone, Some(condition)),
            (None, Some(job)) if wanted(job.op) => add(&job.name, Some(condition)),
            (None, _) => {}
        }
    }
    if let Some(job) = active_job(jobs).filter(|j| wanted(j.op)) {
        let about_it = bad_conditions(about, ops)
            .into_iter()
            .find(|c| operations_of(&c.kind).iter().any(|op| job.op == Some(*op)));
        add(&job.name, about_it);
    }
    // A Job that the status calls active and that is not there has vanished while it ran.
    if let Some(active) = about.active_job.as_ref().filter(|a| wanted(Operation::parse(&a.operation)))
        && !active.name.is_empty()
        && !jobs.iter().any(|j| j.name == active.name)
    {
        add(&active.name, None);
    }
    if found.is_empty() && fallback && bad_conditions(about, ops).is_empty() {
        let newest = jobs
            .iter()
            .filter(|j| j.outcome != JobOutcome::Unfinished && wanted(j.op))
            .max_by_key(|j| (j.finished, &j.name));
        found.extend(newest.map(|j| Focus { job: j.name.clone(), condition: None }));
    }
    found
}

/// The newest finished Job that a condition is about: for ApplyJobSucceeded the newest apply or destroy, or
/// a plan Job that failed after it.
fn newest_of<'a>(jobs: &'a [JobFacts], ops: &[Operation]) -> Option<&'a JobFacts> {
    let counts = |j: &&JobFacts| {
        j.outcome != JobOutcome::Unfinished
            && j.op.is_some_and(|op| ops.contains(&op))
            && (j.op != Some(Operation::Plan) || j.outcome == JobOutcome::Failed || j.marks.plan_unreadable)
    };
    jobs.iter().filter(counts).max_by_key(|j| (j.finished, &j.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captf::kind::WorkloadKind;

    #[test]
    fn a_job_is_named_by_its_condition() {
        for (message, name) in [
            ("Job captf-m-web-apply-a1-4f88b3: step apply failed: x", Some("captf-m-web-apply-a1-4f88b3")),
            ("Job captf-m-web-apply-a1-4f88b3 disappeared.", Some("captf-m-web-apply-a1-4f88b3")),
            ("captf-", None),
            ("nothing here", None),
        ] {
            assert_eq!(named_in(message), name, "{message}");
        }
    }

    #[test]
    fn every_job_of_a_list_is_named_once() {
        let message = "waits for captf-m-a-apply-a1-5e1f00, captf-mp-b-destroy-a2-5e1f00 (captf-m-a-apply-a1-5e1f00).";
        assert_eq!(all_named_in(message, 5), ["captf-m-a-apply-a1-5e1f00", "captf-mp-b-destroy-a2-5e1f00"]);
        assert_eq!(all_named_in(message, 1).len(), 1);
        assert!(all_named_in("Lease captf-run-0123 is held", 5).is_empty());
    }

    #[test]
    fn a_named_job_that_is_gone_is_what_the_condition_is_about() {
        let object = ObjectRef { kind: WorkloadKind::Machine, namespace: "team-a".into(), name: "web".into() };
        let about = |message: &str| ObjectFacts {
            conditions: vec![Condition {
                kind: "ApplyJobSucceeded".into(),
                status: "False".into(),
                reason: "ApplyFailed".into(),
                message: message.into(),
                since: None,
            }],
            ..ObjectFacts::default()
        };
        let found = |message: &str| {
            focus(&object, &about(message), &[], &[], false).into_iter().map(|f| f.job).collect::<Vec<_>>()
        };
        assert_eq!(found("Job captf-m-web-apply-a1-4f88b3: gone"), ["captf-m-web-apply-a1-4f88b3"]);
        assert!(found("Job captf-m-other-apply-a1-4f88b3: gone").is_empty());
    }
}
