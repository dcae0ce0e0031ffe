//! `jobs why`: how the Jobs of one object stand, the cause, and when the next attempt comes.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding, Severity};
use super::job_focus::{bad_conditions, operations_of};
use super::job_outcome::{Details, Outcome, details, outcome, pods_of};
use super::next_attempt::{Attempt, next_attempt};
use super::next_run::Inputs;
use super::policy::Policy;
use super::{job_end, job_slow, job_start, job_wait, lock_inspect};
use crate::captf::names::Operation;
use crate::captf::time::seconds_between;
use crate::facts::event::EventFacts;
use crate::facts::job::{JobFacts, JobOutcome, active_job, finished_newest_first};
use crate::facts::job_why::{JobWhyFacts, RunFacts};
use crate::facts::object::Condition;
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

/// What `jobs why` says of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobJudgement {
    pub runs: Vec<RunSummary>,
    pub attempts: Vec<Attempt>,
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
}

/// Judges the Jobs of one object as of `now`, for some operations (none = all).
pub fn diagnose(facts: &JobWhyFacts, ops: &[Operation], now: Timestamp) -> JobJudgement {
    let jobs = facts.jobs.found().map(Vec::as_slice).unwrap_or_default();
    let mut gaps: Vec<Gap> = facts.jobs.gap().into_iter().chain(facts.pods.gap()).cloned().collect();
    let mut findings = Vec::new();
    let mut runs = Vec::new();
    let mut explained = BTreeSet::new();
    for run in &facts.runs {
        gaps.extend(
            [
                run.events.gap(),
                run.log.as_ref().and_then(Reading::gap),
                run.node.as_ref().and_then(Reading::gap),
                run.node_events.as_ref().and_then(Reading::gap),
            ]
            .into_iter()
            .flatten()
            .chain(&run.not_masked)
            .cloned(),
        );
        let Some(job) = jobs.iter().find(|j| j.name == run.name) else {
            // Jobs that could not be listed are not gone.
            if facts.jobs.gap().is_none() {
                findings.push(vanished(facts, run));
                explained.extend(run.condition.clone());
            }
            continue;
        };
        let case = Case::new(facts, run, job, now);
        let found = of_job(&case);
        if !found.is_empty() && !is_only_running(&found) {
            explained.extend(run.condition.clone());
        }
        findings.extend(found);
        runs.push(summary(&case));
    }
    for condition in bad_conditions(&facts.about, ops) {
        let found = job_wait::findings(facts, condition, now, &mut gaps);
        if found.is_empty() && !explained.contains(&condition.kind) && facts.jobs.gap().is_none() {
            findings.push(other(facts, condition));
        }
        findings.extend(found);
    }
    if !bad_conditions(&facts.about, ops).is_empty() || facts.runs.is_empty() {
        findings.extend(job_wait::gates(facts));
    }
    findings.extend(restore_is_final(facts, &runs));
    for finding in findings.iter_mut().filter(|f| matches!(f.code, Code::DestructivePlanBlocked | Code::PlanChanged)) {
        *finding = job_wait::approval(facts, finding.clone(), &mut gaps);
    }
    if let Some(lock) = &facts.lock {
        let judgement = lock_inspect::diagnose(lock, now);
        gaps.extend(judgement.gaps);
        findings.extend(judgement.findings);
    }
    if findings.is_empty() && gaps.is_empty() {
        findings.push(healthy(facts, &runs));
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.code.severity()));
    findings.dedup_by(|a, b| a.code == b.code && a.evidence == b.evidence);
    gaps.dedup();
    JobJudgement { attempts: attempts(facts, ops, now), runs, findings, gaps }
}

fn is_only_running(found: &[Finding]) -> bool {
    found.iter().all(|f| f.code == Code::RunInProgress)
}

/// The findings about one Job, most telling first.
pub fn of_job(case: &Case<'_>) -> Vec<Finding> {
    let mut found = match case.outcome {
        Outcome::Suspended => vec![
            Finding::new(Code::JobSuspended, Evidence::new(format!("Job/{} .spec.suspend", case.job.name), "true"))
                .with("job", case.job.name.clone()),
        ],
        Outcome::Ending => vec![ending(case)],
        Outcome::Starting | Outcome::Running => unfinished(case),
        Outcome::Succeeded => Vec::new(),
        _ => job_end::findings(case),
    };
    // What keeps a run from starting explains that it starts late.
    if found.is_empty() || is_only_running(&found) {
        found.extend(job_slow::findings(case));
    }
    found
}

fn unfinished(case: &Case<'_>) -> Vec<Finding> {
    let mut found = job_start::findings(case);
    found.extend(case.newest_pod().and_then(|p| job_start::held_open(p, case.now)));
    if found.is_empty() {
        found.push(job_end::in_progress(case));
    }
    found
}

fn ending(case: &Case<'_>) -> Finding {
    let (reason, at) = case.job.failure_target.clone().unwrap_or_default();
    let source = format!("Job/{} .status.conditions[FailureTarget]", case.job.name);
    let mut finding = Finding::new(Code::RunEnding, Evidence::new(source, reason.clone()).at(at))
        .with("job", case.job.name.clone())
        .with("reason", reason);
    if let Some(at) = at {
        finding = finding.with("until", crate::captf::time::utc(at + jiff::SignedDuration::from_secs(600)));
    }
    if let Some(pod) = case.newest_pod() {
        finding = finding.seen(Evidence::new(format!("Pod/{} .status.phase", pod.name), pod.phase.clone()));
    }
    finding
}

fn vanished(facts: &JobWhyFacts, run: &RunFacts) -> Finding {
    let resource = facts.object.resource();
    let by_status = facts.about.active_job.as_ref().filter(|a| a.name == run.name);
    let source = match (by_status, run.condition.as_deref().and_then(|c| facts.about.condition(c))) {
        (Some(active), _) => {
            Evidence::new(format!("{resource} .status.activeJob.name"), active.name.clone()).at(active.started)
        }
        (None, Some(condition)) => job_wait::seen(facts, condition),
        (None, None) => Evidence::new(resource, "names it"),
    };
    job_end::vanished(&run.name, source, run.events.found().map(Vec::as_slice).unwrap_or_default())
}

/// A condition that nothing explains is quoted as it stands.
fn other(facts: &JobWhyFacts, condition: &Condition) -> Finding {
    Finding::new(Code::ConditionOther, job_wait::seen(facts, condition)).with("reason", condition.reason.clone())
}

fn restore_is_final(facts: &JobWhyFacts, runs: &[RunSummary]) -> Option<Finding> {
    let condition = facts
        .about
        .condition("RestoreJobSucceeded")
        .filter(|c| c.status == "False" && c.reason != "RestoreBackupNotFound")?;
    let failed = runs.iter().any(|r| r.op == Some(Operation::Restore) && r.finished.is_some());
    let serial = facts.about.last_restored_serial.map_or("unknown".to_string(), |s| s.to_string());
    failed.then(|| {
        Finding::new(Code::RestoreNotRetried, job_wait::seen(facts, condition))
            .seen(Evidence::new(format!("{} .status.lastRestoredSerial", facts.object.resource()), serial.clone()))
            .with("serial", serial)
    })
}

fn healthy(facts: &JobWhyFacts, runs: &[RunSummary]) -> Finding {
    let condition = facts.about.condition("ApplyJobSucceeded");
    let seen = match (condition, runs.first()) {
        (Some(condition), _) => job_wait::seen(facts, condition),
        (None, Some(run)) => Evidence::new(format!("Job/{}", run.job), run.outcome.as_str()).at(run.finished),
        (None, None) => {
            Evidence::new(facts.object.resource(), "no condition tells of a failed Job, and no Job is kept")
        }
    };
    Finding::new(Code::RunHealthy, seen)
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

fn summary(case: &Case<'_>) -> RunSummary {
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

/// The next attempt of every operation that is failing, waiting or running.
fn attempts(facts: &JobWhyFacts, ops: &[Operation], now: Timestamp) -> Vec<Attempt> {
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

/// The finding that stands for an object in one line: the first of the worst.
pub fn main_cause(findings: &[Finding]) -> Option<&Finding> {
    let worst = findings.iter().map(|f| f.code.severity()).max()?;
    findings.iter().find(|f| f.code.severity() == worst)
}

/// Whether waiting alone may cure a cause: what comes from outside and passes. Everything else fails the
/// same way again until somebody acts.
pub fn waiting_may_cure(code: Code) -> bool {
    code.severity() != Severity::Error
        || matches!(
            code,
            Code::PullRateLimited
                | Code::PullUnreachable
                | Code::PullDns
                | Code::StepFailed
                | Code::InitStepFailed
                | Code::DeadlineHungCall
                | Code::StateLockTimeout
                | Code::DeadlineLockWait
                | Code::KilledUnexplained
                | Code::NoResult
                | Code::PodsGone
                | Code::PodWebhookDown
                | Code::PodUnschedulable
                | Code::PodQuotaExceeded
                | Code::DeadlineUnknown
                | Code::DeadlineNeverStarted
                | Code::JobVanished
                | Code::JobFailedOther
        )
}
