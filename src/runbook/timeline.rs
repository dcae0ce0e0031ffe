//! What happened around an object's runs, in order of time: Jobs, steps, events, lock, leases, conditions.

use jiff::{SignedDuration, Timestamp};

use super::job_outcome::{details, outcome, pods_of};
use crate::facts::event::EventFacts;
use crate::facts::job_why::{JobWhyFacts, LeaseWait};
use crate::facts::lease::{Holder, LockLease};
use crate::facts::pod::{ContainerState, PodFacts};

/// What kind of entry it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Job,
    Step,
    Event,
    Lock,
    Lease,
    Condition,
}

/// One line of the timeline; with an end it is a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub at: Timestamp,
    pub until: Option<Timestamp>,
    pub lane: Lane,
    pub what: String,
    pub text: String,
}

/// All entries, oldest first.
pub fn timeline(
    facts: &JobWhyFacts,
    events: &[EventFacts],
    lock: Option<&LockLease>,
    leases: &[LeaseWait],
    now: Timestamp,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    let jobs = facts.jobs.found().map(Vec::as_slice).unwrap_or_default();
    let pods = facts.pods.found().map(Vec::as_slice).unwrap_or_default();
    for job in jobs {
        let of_job = pods_of(pods, &job.name);
        let newest = of_job.first().copied();
        let known = details(job, newest, facts.about.last_run.as_ref());
        let Some(at) = job.created.or(job.started) else { continue };
        let attempt = job.attempt.map(|a| format!(" attempt {a}")).unwrap_or_default();
        entries.push(Entry {
            at,
            until: Some(job.finished.unwrap_or(now)),
            lane: Lane::Job,
            what: job.name.clone(),
            text: format!(
                "{}{attempt}: {}",
                job.op.map_or("run", |o| o.as_str()),
                outcome(job, newest, &known).as_str()
            ),
        });
        entries.extend(steps(newest, &known.steps));
    }
    entries.extend(events.iter().filter_map(|e| {
        Some(Entry {
            at: e.at?,
            until: None,
            lane: Lane::Event,
            what: format!("{}/{}", e.about.0, e.about.1),
            text: format!("{}: {}", e.reason, e.message),
        })
    }));
    if let Some(lock) = lock
        && let (Holder::Id(id), Some(info)) = (&lock.holder, lock.info.info())
        && let Some(at) = info.created
    {
        entries.push(Entry {
            at,
            until: Some(now),
            lane: Lane::Lock,
            what: lock.name.clone(),
            text: format!("taken by {} for {}, lock {id}", info.who, info.operation),
        });
    }
    for lease in leases.iter().filter_map(|w| w.lease.found()).filter(|l| !l.holder.is_empty()) {
        if let Some(at) = lease.acquired {
            entries.push(Entry {
                at,
                until: Some(now),
                lane: Lane::Lease,
                what: lease.name.clone(),
                text: format!("held by {}", lease.holder),
            });
        }
    }
    for condition in facts.about.conditions.iter() {
        if let Some(at) = condition.since {
            entries.push(Entry {
                at,
                until: None,
                lane: Lane::Condition,
                what: condition.kind.clone(),
                text: format!("{}/{}", condition.status, condition.reason),
            });
        }
    }
    entries.sort_by_key(|e| (e.at, order(e.lane)));
    entries
}

fn order(lane: Lane) -> u8 {
    match lane {
        Lane::Lease => 0,
        Lane::Job => 1,
        Lane::Event => 2,
        Lane::Step => 3,
        Lane::Lock => 4,
        Lane::Condition => 5,
    }
}

/// Steps follow each other from the start of `source`; the runner reports lengths only.
fn steps(pod: Option<&PodFacts>, steps: &[crate::facts::run::RunStep]) -> Vec<Entry> {
    let Some(mut at) = pod.and_then(PodFacts::source_started) else {
        return Vec::new();
    };
    let end = pod.and_then(PodFacts::source).and_then(|c| match &c.state {
        ContainerState::Terminated { finished, .. } => *finished,
        _ => None,
    });
    let mut entries = Vec::new();
    for step in steps {
        let mut until = at + SignedDuration::from_millis(step.millis);
        until = end.map_or(until, |end| until.min(end.max(at)));
        let exit = if step.exit_code == 0 { String::new() } else { format!(", exit code {}", step.exit_code) };
        let took = crate::captf::time::short_millis(step.millis);
        entries.push(Entry {
            at,
            until: Some(until),
            lane: Lane::Step,
            what: step.name.clone(),
            text: format!("took {took}{exit}"),
        });
        at = until;
    }
    entries
}
