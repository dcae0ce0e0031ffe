//! One Job with everything that its rules look at, and as it is shown.

use jiff::Timestamp;

use super::job_end;
use super::job_outcome::{Details, Outcome, details, outcome, pods_of};
use crate::captf::names::Operation;
use crate::captf::time::seconds_between;
use crate::facts::event::EventFacts;
use crate::facts::job::{JobFacts, JobOutcome};
use crate::facts::job_why::{JobWhyFacts, RunFacts};
use crate::facts::pod::PodFacts;
use crate::facts::reading::{Gap, Reading};
use crate::facts::run::LogFacts;

/// One Job with everything that its rules look at.
pub struct Case<'a> {
    pub facts: &'a JobWhyFacts,
    pub run: &'a RunFacts,
    pub job: &'a JobFacts,
    pub pods: Vec<&'a PodFacts>,
    pub events: &'a [EventFacts],
    pub details: Details,
    pub outcome: Outcome,
    pub now: Timestamp,
}

impl<'a> Case<'a> {
    pub fn new(facts: &'a JobWhyFacts, run: &'a RunFacts, job: &'a JobFacts, now: Timestamp) -> Self {
        let all = facts.pods.found().map(Vec::as_slice).unwrap_or_default();
        let pods = pods_of(all, &job.name);
        let newest = pods.first().copied();
        let details = details(job, newest, facts.about.last_run.as_ref());
        let outcome = outcome(job, newest, &details);
        let events = run.events.found().map(Vec::as_slice).unwrap_or_default();
        Self { facts, run, job, pods, events, details, outcome, now }
    }

    pub fn newest_pod(&self) -> Option<&'a PodFacts> {
        self.pods.first().copied()
    }

    pub fn log(&self) -> Option<&'a LogFacts> {
        self.run.log.as_ref().and_then(Reading::found)
    }

    /// Whether the absence of pods is a reading and not a gap.
    pub fn pods_are_known(&self) -> bool {
        self.facts.pods.gap().is_none()
    }

    pub fn job_is_unfinished(&self) -> bool {
        self.job.outcome == JobOutcome::Unfinished
    }
}

/// One Job as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    pub job: String,
    pub op: Option<Operation>,
    pub attempt: Option<i32>,
    pub outcome: Outcome,
    /// Whether backoff counts it as a failure; none while it is unfinished.
    pub counted: Option<bool>,
    pub condition: Option<String>,
    pub started: Option<Timestamp>,
    pub finished: Option<Timestamp>,
    pub duration_seconds: Option<i64>,
    pub image: Option<String>,
    pub image_digest: Option<String>,
    pub failed_step: Option<String>,
    pub steps: Vec<StepSummary>,
    pub details_from: String,
    /// Why, in a few words.
    pub why: Option<String>,
}

/// A step with its share of all steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSummary {
    pub name: String,
    pub exit_code: i64,
    pub millis: i64,
    pub percent: i64,
}

/// Every kept Job, newest first, and what could not be read.
pub fn history(facts: &JobWhyFacts, ops: &[Operation], now: Timestamp) -> (Vec<RunSummary>, Vec<Gap>) {
    let mut jobs: Vec<&JobFacts> = facts.jobs.found().into_iter().flatten().collect();
    jobs.retain(|j| ops.is_empty() || j.op.is_some_and(|op| ops.contains(&op)));
    jobs.sort_by(|a, b| (b.created, &b.name).cmp(&(a.created, &a.name)));
    let rows = jobs.into_iter().map(|job| {
        let run = RunFacts::named(&job.name);
        summary(&Case::new(facts, &run, job, now))
    });
    (rows.collect(), facts.jobs.gap().into_iter().chain(facts.pods.gap()).cloned().collect())
}

pub fn summary(case: &Case<'_>) -> RunSummary {
    let job = case.job;
    let total: i64 = case.details.steps.iter().map(|s| s.millis).sum();
    let about = &case.facts.about;
    let is_newest = about.last_run.as_ref().is_some_and(|r| r.job == job.name);
    let resolved = case.newest_pod().and_then(|p| p.source()).and_then(|c| c.image_id.clone());
    let started = case.newest_pod().and_then(PodFacts::source_started).or(job.started);
    let finished = job.finished.filter(|_| job.outcome != JobOutcome::Unfinished);
    RunSummary {
        job: job.name.clone(),
        op: job.op,
        attempt: job.attempt,
        outcome: case.outcome,
        counted: job.ended().map(|e| e == crate::captf::backoff::Ended::Failed),
        condition: case.run.condition.clone(),
        started,
        finished,
        duration_seconds: started.or(job.created).map(|from| seconds_between(from, finished.unwrap_or(case.now))),
        image: job.image.clone(),
        image_digest: resolved.or_else(|| about.image_digest.clone().filter(|_| is_newest)),
        failed_step: job_end::failing_step(case),
        steps: case
            .details
            .steps
            .iter()
            .map(|s| StepSummary {
                name: s.name.clone(),
                exit_code: s.exit_code,
                millis: s.millis,
                percent: if total > 0 { s.millis * 100 / total } else { 0 },
            })
            .collect(),
        details_from: case.details.from.clone(),
        why: why_line(case),
    }
}

/// Why, as far as the Job and its newest pod say it themselves.
fn why_line(case: &Case<'_>) -> Option<String> {
    let error =
        case.details.error.as_ref().map(|e| if e.summary.is_empty() { e.kind.clone() } else { e.summary.clone() });
    let pod = case.newest_pod();
    let reason = pod
        .and_then(|p| p.disruption.as_ref().map(|d| d.reason.clone()).or(Some(p.reason.clone())))
        .filter(|r| !r.is_empty());
    let waiting = pod
        .and_then(super::job_image::waiting_container)
        .map(|(c, reason, _)| format!("{} in container {}", reason, c.name));
    let oom = pod.and_then(|p| {
        p.containers.iter().find_map(|c| match &c.state {
            crate::facts::pod::ContainerState::Terminated { reason, exit_code, .. }
                if *exit_code != 0 || reason == "OOMKilled" =>
            {
                Some(format!("{reason}, exit code {exit_code} in container {}", c.name))
            }
            _ => None,
        })
    });
    let failure = case.job.failure.as_ref().map(|(reason, _)| reason.clone());
    error.or(waiting).or(reason).or(oom).or(failure)
}
