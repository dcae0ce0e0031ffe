//! `jobs why`: how the Jobs of one object stand, the cause, and when the next attempt comes.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding, Severity};
use super::job_attempts::attempts;
use super::job_case::{Case, RunSummary, summary};
use super::job_focus::bad_conditions;
use super::job_outcome::Outcome;
use super::next_attempt::Attempt;
use super::{job_end, job_slow, job_start, job_wait, lock_inspect};
use crate::captf::names::Operation;
use crate::facts::job_why::{JobWhyFacts, RunFacts};
use crate::facts::object::Condition;
use crate::facts::reading::{Gap, Reading};

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
                run.missing_now.as_ref().and_then(|(_, read)| read.gap()),
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
    let attempts = attempts(facts, ops, now);
    for gap in attempts.iter().filter_map(|a| a.gap.as_ref()) {
        if !gaps.contains(gap) {
            gaps.push(gap.clone());
        }
    }
    gaps.dedup();
    JobJudgement { attempts, runs, findings, gaps }
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
