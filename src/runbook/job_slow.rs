//! Where the time of a run goes: steps with their shares, compared with the object's earlier Jobs.

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::job_case::Case;
use super::job_outcome::{Outcome, pods_of};
use crate::captf::time::{seconds_between, short_duration};
use crate::facts::job::JobOutcome;
use crate::facts::pod::PodFacts;

/// The alert CAPTFJobSlow fires at this duration.
const SLOW_SECONDS: i64 = 1800;
/// The alert CAPTFJobQueueSlow fires at this time before the start.
const QUEUE_SECONDS: i64 = 300;
/// A step is worth a word from this length on, and when it takes this many times what it used to.
const STEP_SECONDS: i64 = 60;
const TIMES: i64 = 2;

/// The length of earlier runs of one step, newest first, in seconds.
pub fn earlier(case: &Case<'_>, step: &str) -> Vec<(String, i64)> {
    let jobs = case.facts.jobs.found().map(Vec::as_slice).unwrap_or_default();
    let pods = case.facts.pods.found().map(Vec::as_slice).unwrap_or_default();
    let mut before: Vec<_> = jobs
        .iter()
        .filter(|j| {
            j.name != case.job.name
                && j.op == case.job.op
                && j.outcome == JobOutcome::Succeeded
                && j.created < case.job.created
        })
        .collect();
    before.sort_by_key(|j| std::cmp::Reverse(j.created));
    let length = |pod: &PodFacts| pod.result.found()?.steps.iter().find(|s| s.name == step).map(|s| s.millis / 1000);
    before
        .into_iter()
        .filter_map(|j| Some((j.name.clone(), pods_of(pods, &j.name).first().and_then(|p| length(p))?)))
        .collect()
}

/// Findings about a run that took or takes long, and about one that started late.
pub fn findings(case: &Case<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = slow_run(case).into_iter().collect();
    found.extend(slow_start(case));
    found
}

fn slow_run(case: &Case<'_>) -> Option<Finding> {
    // A Job that failed has a cause of its own; how long it took is shown beside it.
    if !matches!(case.outcome, Outcome::Running | Outcome::Succeeded) {
        return None;
    }
    let started = case.newest_pod().and_then(PodFacts::source_started).or(case.job.started)?;
    let total = seconds_between(started, case.job.finished.unwrap_or(case.now));
    let slowest = case.details.steps.iter().max_by_key(|s| s.millis);
    let before = slowest.map(|s| earlier(case, &s.name)).unwrap_or_default();
    let grown = slowest
        .zip(median(&before))
        .filter(|(s, m)| s.millis / 1000 >= STEP_SECONDS && s.millis / 1000 >= TIMES * (*m).max(1));
    if total < SLOW_SECONDS && grown.is_none() {
        return None;
    }
    let mut finding = Finding::new(
        Code::RunSlow,
        Evidence::new(format!("Job/{} ran for", case.job.name), short_duration(total)).at(Some(started)),
    )
    .with("job", case.job.name.clone())
    .with("took", short_duration(total));
    if let Some(step) = slowest {
        finding = finding
            .seen(Evidence::new(format!("slowest step {}", step.name), short_duration(step.millis / 1000)))
            .with("step", step.name.clone());
    }
    if let Some(usual) = median(&before) {
        let of = before.len();
        finding =
            finding.seen(Evidence::new(format!("the same step in {of} earlier Jobs, median"), short_duration(usual)));
    }
    if let Some(log) = case.log().filter(|_| case.outcome == Outcome::Running) {
        let last = log.last_lines.iter().next_back().map(|l| Evidence::new("last line of the log", l.clone()));
        finding = finding.seen_all(last);
    }
    Some(finding)
}

fn slow_start(case: &Case<'_>) -> Option<Finding> {
    let created = case.job.created?;
    let started = case.newest_pod().and_then(PodFacts::source_started);
    if started.is_none() && case.outcome != Outcome::Starting {
        return None;
    }
    let waited = seconds_between(created, started.unwrap_or(case.now));
    if waited < QUEUE_SECONDS || !matches!(case.outcome, Outcome::Starting | Outcome::Running | Outcome::Succeeded) {
        return None;
    }
    let until =
        started.map_or("not yet".to_string(), |t| format!("after {}", short_duration(seconds_between(created, t))));
    Some(
        Finding::new(
            Code::StartSlow,
            Evidence::new(
                format!("Job/{} created", case.job.name),
                format!("{} ago", short_duration(seconds_between(created, case.now))),
            )
            .at(Some(created)),
        )
        .seen(Evidence::new("container source started", until).at(started))
        .with("job", case.job.name.clone()),
    )
}

fn median(before: &[(String, i64)]) -> Option<i64> {
    let mut lengths: Vec<i64> = before.iter().map(|(_, s)| *s).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len().checked_sub(1)? / 2).copied()
}
