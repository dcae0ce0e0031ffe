//! The Jobs of machines and pools for which a cluster waits: what each does in a line, and which does not get on.

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding, Severity};
use super::job_case::Case;
use super::job_outcome::Outcome;
use super::job_why::{main_cause, of_job};
use crate::captf::time::{seconds_between, short_duration, utc};
use crate::facts::job_why::{JobWhyFacts, NamedJob};
use crate::facts::pod::PodFacts;
use crate::facts::reading::{Gap, Reading};

/// The wait with a line a Job, then a finding for each Job that does not get on.
pub fn findings(facts: &JobWhyFacts, mut wait: Finding, now: Timestamp, gaps: &mut Vec<Gap>) -> Vec<Finding> {
    let mut stuck = Vec::new();
    for named in &facts.machine_jobs {
        let source = format!("Job/{}", named.job);
        match &named.run {
            Reading::Found(other) => {
                let Some(case) = case_of(other, now) else { continue };
                gaps.extend([other.pods.gap(), case.run.events.gap()].into_iter().flatten().cloned());
                wait = wait.seen(Evidence::new(source, stands(&case)).at(case.job.started.or(case.job.created)));
                stuck.extend(not_getting_on(&case, named));
            }
            Reading::Absent => {
                wait = wait.seen(Evidence::new(source, "not found; only a pod of it that still runs can be in the way"))
            }
            Reading::Unreadable(gap) => gaps.push(gap.clone()),
        }
    }
    let mut all = vec![wait];
    all.extend(stuck);
    all
}

fn case_of(other: &JobWhyFacts, now: Timestamp) -> Option<Case<'_>> {
    let (run, job) = (other.runs.first()?, other.jobs.found()?.first()?);
    Some(Case::new(other, run, job, now))
}

/// What a Job does, in a line.
fn stands(case: &Case<'_>) -> String {
    let job = case.job;
    let what = format!("{} of {}", job.op.map_or("run", |op| op.as_str()), case.facts.object.resource());
    let since = |at: Option<Timestamp>| at.map_or("an unknown time".to_string(), |at| ago(at, case.now));
    if let Some(at) = job.finished.filter(|_| !case.job_is_unfinished()) {
        let then = match (case.pods.iter().all(|p| p.has_ended()), case.pods_are_known()) {
            (true, true) => "so no longer in the way",
            (false, _) => "but a pod of it has not ended and keeps its Lease held",
            (true, false) => "and whether its pods have ended is not known",
        };
        return format!("{what}: {} {} ago, {then}", case.outcome.as_str(), ago(at, case.now));
    }
    let started = case.newest_pod().and_then(PodFacts::source_started);
    let until = job.started.zip(job.active_deadline_seconds).map(|(start, limit)| {
        format!(", ends at {} at the latest", utc(start + jiff::SignedDuration::from_secs(limit)))
    });
    let until = until.unwrap_or_default();
    match case.outcome {
        Outcome::Running => format!("{what}: runs for {}{until}", since(started)),
        Outcome::Starting => format!("{what}: has not started for {}{until}", since(job.created)),
        other => format!("{what}: {} since {}", other.as_str(), since(job.started.or(job.created))),
    }
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    short_duration(seconds_between(at, now))
}

/// A Job that is unfinished and has a cause that is worse than a remark.
fn not_getting_on(case: &Case<'_>, named: &NamedJob) -> Option<Finding> {
    let found = of_job(case);
    let cause = main_cause(&found).filter(|c| case.job_is_unfinished() && c.code.severity() >= Severity::Warning)?;
    let mut evidence = cause.evidence.iter().cloned();
    let finding = Finding::new(Code::MachineOperationStuck, evidence.next()?).seen_all(evidence.take(2));
    Some(
        finding
            .with("holder", named.job.clone())
            .with("other", case.facts.object.resource())
            .with("because", cause.code.as_str()),
    )
}
