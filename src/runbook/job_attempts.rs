//! Which operations of an object have a next attempt to talk about.

use jiff::Timestamp;

use super::job_focus::{bad_conditions, operations_of};
use super::next_attempt::{Attempt, next_attempt};
use super::next_run::Inputs;
use super::policy::Policy;
use crate::captf::names::Operation;
use crate::facts::job::{JobFacts, active_job, finished_newest_first};
use crate::facts::job_why::JobWhyFacts;
use crate::facts::object::Condition;

/// The next attempt of every operation that is failing, waiting or running.
pub fn attempts(facts: &JobWhyFacts, ops: &[Operation], now: Timestamp) -> Vec<Attempt> {
    let Some(jobs) = facts.jobs.found() else {
        return Vec::new();
    };
    let inputs = Inputs {
        object: &facts.object,
        about: &facts.about,
        jobs,
        owner_cluster: facts.owner_cluster.as_ref(),
        policy: Policy::new(facts.object.kind, &facts.about, facts.terraform_cluster.as_ref()),
    };
    let bad: Vec<&Condition> = bad_conditions(&facts.about, ops);
    let concerned = |op: Operation| {
        let newest = finished_newest_first(jobs, op).first().copied();
        let failing = newest.is_some_and(|j| j.ended() != Some(crate::captf::backoff::Ended::Succeeded));
        let about = bad.iter().any(|c| operations_of(&c.kind).contains(&op));
        let waits = about && newest.is_none() && bad.iter().any(|c| default_op(facts, &c.kind) == Some(op));
        let runs = active_job(jobs).is_some_and(|j| j.op == Some(op));
        let active = facts.about.active_job.as_ref();
        let vanished = active
            .is_some_and(|a| Operation::parse(&a.operation) == Some(op) && !jobs.iter().any(|j| j.name == a.name));
        (ops.is_empty() || ops.contains(&op))
            && (failing || waits || runs || vanished || default_waits(facts, jobs, &bad, op))
    };
    Operation::ALL.into_iter().filter(|op| concerned(*op)).map(|op| next_attempt(&inputs, op, now)).collect()
}

/// The operation that a bad condition without a Job is about.
fn default_op(facts: &JobWhyFacts, condition: &str) -> Option<Operation> {
    match condition {
        "ApplyJobSucceeded" if facts.about.deleting.is_some() => Some(Operation::Destroy),
        "ApplyJobSucceeded" => Some(Operation::Apply),
        "DriftJobSucceeded" => Some(Operation::Drift),
        "RestoreJobSucceeded" => Some(Operation::Restore),
        _ => None,
    }
}

/// A condition is bad although no operation that it is about has failed: the one that it means by default.
fn default_waits(facts: &JobWhyFacts, jobs: &[JobFacts], bad: &[&Condition], op: Operation) -> bool {
    let fails = |op: &Operation| {
        let newest = finished_newest_first(jobs, *op).first().copied();
        newest.is_some_and(|j| j.ended() != Some(crate::captf::backoff::Ended::Succeeded))
    };
    bad.iter().any(|c| {
        (c.reason.starts_with("WaitingFor") || c.status == "False")
            && default_op(facts, &c.kind) == Some(op)
            && !operations_of(&c.kind).iter().any(fails)
    })
}
