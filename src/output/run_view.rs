//! The part of the view that tells of Jobs: runs with their steps, next attempts, the cause in one line.

use jiff::Timestamp;
use serde::Serialize;

use super::view::EvidenceView;
use crate::captf::time::{relative, utc};
use crate::report::{RunLog, Runs};
use crate::runbook::finding::{Evidence, Finding};
use crate::runbook::job_case::RunSummary;
use crate::runbook::job_outcome::Outcome;
use crate::runbook::job_why::{main_cause, waiting_may_cure};
use crate::runbook::next_attempt::{Attempt, AttemptState};
use crate::runbook::timeline::{Entry, Lane};

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunsView {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub next_attempts: Vec<AttemptView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<CauseView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<EntryView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogView>,
}

/// The log of one container.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogView {
    pub job: String,
    pub pod: String,
    pub container: String,
    pub masked: bool,
    pub lines: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,
    pub outcome: &'static str,
    /// Whether backoff counts it as a failure; absent while it is unfinished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_step: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepTimeView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepTimeView {
    pub name: String,
    pub exit_code: i64,
    pub milliseconds: i64,
    pub percent: i64,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    pub operation: &'static str,
    /// `scheduled`, `due`, `running`, `held`, `never` or `unknown`.
    pub state: &'static str,
    /// Not before this time, as far as backoff and schedule go; with `running` the deadline of the Job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// `in 4m10s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<String>,
    pub failures: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_from: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<EvidenceView>,
}

/// The finding that stands for the object in one line.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CauseView {
    pub code: &'static str,
    /// The operation that is concerned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    /// Since when the condition says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<String>,
    /// The reason in a few words: what the line about the object shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// False: it fails the same way again until somebody acts.
    pub waiting_may_cure: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryView {
    pub at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// `job`, `step`, `event`, `lock`, `lease` or `condition`.
    pub lane: &'static str,
    pub what: String,
    pub text: String,
    #[serde(skip)]
    pub span: Option<(Timestamp, Timestamp)>,
}

/// Builds the part of one item.
pub fn runs_view(runs: &Runs, findings: &[Finding], now: Timestamp) -> RunsView {
    RunsView {
        jobs: runs.runs.iter().map(job_view).collect(),
        next_attempts: runs.attempts.iter().map(|a| attempt_view(a, now)).collect(),
        cause: main_cause(findings).map(|f| CauseView {
            code: f.code.as_str(),
            operation: runs.operation.map(|op| op.as_str()),
            since: runs.since.map(utc),
            age: runs.since.map(|t| relative(t, now)),
            detail: detail(f),
            waiting_may_cure: waiting_may_cure(f.code),
        }),
        timeline: runs.timeline.iter().map(entry_view).collect(),
        logs: runs.logs.iter().map(log_view).collect(),
    }
}

/// Why, without the names that stand on the same line anyway.
fn detail(finding: &Finding) -> Option<String> {
    let value = |key: &str| finding.values.get(key);
    let because = value("because")?;
    Some(value("step").map_or_else(|| because.clone(), |step| format!("step {step}: {because}")))
}

fn job_view(run: &RunSummary) -> JobView {
    JobView {
        name: run.job.clone(),
        operation: run.op.map(|op| op.as_str()),
        attempt: run.attempt,
        outcome: run.outcome.as_str(),
        counted: run.counted,
        condition: run.condition.clone(),
        started_at: run.started.map(utc),
        finished_at: run.finished.map(utc),
        duration_seconds: run.duration_seconds,
        image: run.image.clone(),
        image_digest: run.image_digest.clone(),
        failed_step: run.failed_step.clone(),
        steps: run
            .steps
            .iter()
            .map(|s| StepTimeView {
                name: s.name.clone(),
                exit_code: s.exit_code,
                milliseconds: s.millis,
                percent: s.percent,
            })
            .collect(),
        why: run.why.clone().filter(|_| run.outcome != Outcome::Succeeded),
    }
}

fn attempt_view(attempt: &Attempt, now: Timestamp) -> AttemptView {
    // A time that backoff gave is shown as it is, also when it has passed.
    let at = attempt.at.filter(|_| attempt.state != AttemptState::Never);
    let gap = attempt.gap.iter().map(|g| Evidence::new(g.what.clone(), g.reason.as_str()));
    AttemptView {
        operation: attempt.op.as_str(),
        state: attempt.state.as_str(),
        at: at.map(utc),
        relative: at.map(|at| match attempt.state {
            AttemptState::Running => relative(at, now),
            _ if at <= now => "now due".to_string(),
            _ => relative(at, now),
        }),
        failures: attempt.failures,
        limit: attempt.limit.map(|(value, _)| value),
        limit_from: attempt.limit.map(|(_, from)| from),
        delay_seconds: attempt.delay_seconds,
        last_failure_at: attempt.last_failure.map(utc),
        because: attempt
            .why
            .iter()
            .cloned()
            .chain(gap)
            .map(|e| EvidenceView { source: e.source, value: e.value, at: e.at.map(utc) })
            .collect(),
    }
}

fn log_view(log: &RunLog) -> LogView {
    LogView {
        job: log.job.clone(),
        pod: log.pod.clone(),
        container: log.container.clone(),
        masked: log.masked,
        lines: log.lines.clone(),
    }
}

fn entry_view(entry: &Entry) -> EntryView {
    EntryView {
        at: utc(entry.at),
        until: entry.until.map(utc),
        lane: match entry.lane {
            Lane::Job => "job",
            Lane::Step => "step",
            Lane::Event => "event",
            Lane::Lock => "lock",
            Lane::Lease => "lease",
            Lane::Condition => "condition",
        },
        what: entry.what.clone(),
        text: entry.text.clone(),
        span: entry.until.map(|until| (entry.at, until)),
    }
}
