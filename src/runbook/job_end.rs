//! Why a Job that ran has failed: its step, its deadline, what ended it from outside, memory, or nothing said.

use super::code::Code;
use super::death::from_event;
use super::finding::{Evidence, Finding};
use super::job_case::Case;
use super::job_deadline;
use super::job_image;
use super::job_memory;
use super::job_outcome::Outcome;
use super::job_outside;
use super::job_start;
use crate::captf::run_log::names_state_lock;
use crate::captf::time::{seconds_between, short_duration, short_millis, utc};
use crate::facts::event::EventFacts;
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::run::{LogFacts, RunError};

/// The causes of a finished Job that failed, most telling first.
pub fn findings(case: &Case<'_>) -> Vec<Finding> {
    match case.outcome {
        Outcome::Blocked => vec![job(case, Code::DestructivePlanBlocked)],
        Outcome::PlanChanged => vec![job(case, Code::PlanChanged)],
        Outcome::PlanUnreadable => vec![job(case, Code::PlanUnreadable)],
        Outcome::ImagePull => {
            case.newest_pod().map(|p| job_image::findings(case.job, p, case.events)).unwrap_or_default()
        }
        Outcome::Deadline => job_deadline::deadline(case),
        Outcome::ImageInvalid => vec![with_error(case, job(case, Code::ImageLayoutWrong))],
        Outcome::Interrupted => {
            vec![job_outside::from_outside(case).unwrap_or_else(|| job(case, Code::RunInterrupted))]
        }
        Outcome::StepFailed => step_failed(case),
        Outcome::NoResult => no_result(case),
        _ => Vec::new(),
    }
}

/// A finding whose first evidence is how the Job ended.
pub fn job(case: &Case<'_>, code: Code) -> Finding {
    let job = case.job;
    let marks = [
        (job.marks.interrupted, "captf.io/interrupted"),
        (job.marks.blocked, "captf.io/destructive-plan-blocked"),
        (job.marks.plan_changed, "captf.io/plan-changed"),
        (job.marks.plan_unreadable, "captf.io/plan-unreadable"),
    ];
    let (source, value) = match (&job.failure, marks.iter().find(|(set, _)| *set && job.marks.bookkept)) {
        (_, Some((_, key))) => (format!("Job/{} annotation {key}", job.name), "true".to_string()),
        (Some((reason, message)), None) => {
            let said = if message.is_empty() { String::new() } else { format!(": {message}") };
            (format!("Job/{} .status.conditions[Failed]", job.name), format!("{reason}{said}"))
        }
        (None, None) => (format!("Job/{}", job.name), case.outcome.as_str().to_string()),
    };
    let mut finding = Finding::new(code, Evidence::new(source, value).at(job.finished)).with("job", job.name.clone());
    finding = finding.with("op", job.op.map_or("run", |op| op.as_str()));
    if let Some(pod) = case.newest_pod() {
        finding = finding.with("pod", pod.name.clone());
    }
    if let Some(plan) = case.facts.about.pending_plan.as_ref().or(job.plan.as_ref()) {
        finding = finding.with("plan", plan.clone());
    }
    if let Some(image) = &job.image {
        finding = finding.with("image", image.clone());
    }
    finding
}

/// Adds the runner's own summary, the failing resources, and the error blocks of the log.
fn with_error(case: &Case<'_>, mut finding: Finding) -> Finding {
    if let Some(error) = &case.details.error {
        if !error.summary.is_empty() {
            finding =
                finding.seen(Evidence::new(format!("{} error.summary", case.details.from), error.summary.clone()));
        }
        for resource in &error.resources {
            finding = finding.seen(Evidence::new("error.resources", resource.clone()));
        }
    }
    finding.seen_all(log_errors(case))
}

fn log_errors(case: &Case<'_>) -> Vec<Evidence> {
    let Some(log) = case.log() else {
        return Vec::new();
    };
    log.errors.iter().map(|block| Evidence::new(format!("log of {}", log_place(case)), block.clone())).collect()
}

pub fn log_place(case: &Case<'_>) -> String {
    case.newest_pod().map_or("the pod".to_string(), |p| format!("Pod/{} container source", p.name))
}

pub fn last_lines(case: &Case<'_>, log: &LogFacts) -> Vec<Evidence> {
    let lines: Vec<&str> = log.last_lines.iter().rev().take(3).rev().map(String::as_str).collect();
    let source = format!("log of {}, last lines", log_place(case));
    if lines.is_empty() { Vec::new() } else { vec![Evidence::new(source, lines.join("\n"))] }
}

fn step_failed(case: &Case<'_>) -> Vec<Finding> {
    let step = failing_step(case);
    let error = case.details.error.as_ref();
    let mut findings = Vec::new();
    if let Some(refused) = runner_refused(case) {
        findings.push(refused);
    }
    if let Some(outside) = job_outside::from_outside(case) {
        findings.push(outside);
    }
    findings.extend(job_memory::findings(case));
    let code = match step.as_deref() {
        _ if waited_for_lock(case, error) => Code::StateLockTimeout,
        Some("init") => Code::InitStepFailed,
        Some("force-unlock") => Code::ForceUnlockFailed,
        Some("prepare" | "flags") => Code::PrepareFailed,
        _ => Code::StepFailed,
    };
    let because = because(case, error);
    let mut finding =
        job(case, code).with("step", step.unwrap_or_else(|| "unknown".to_string())).with("because", because);
    if let Some(seen) = step_evidence(case) {
        finding = finding.seen(seen);
    }
    findings.push(with_error(case, finding));
    findings
}

/// The runner's summary; where it quotes no error of the runtime, the newest error block of the log instead.
fn because(case: &Case<'_>, error: Option<&RunError>) -> String {
    let summary = error.and_then(|e| e.summary.lines().next()).filter(|s| !s.is_empty());
    let quotes = summary.is_some_and(|s| s.starts_with("Error: "));
    let of_log = || case.log()?.errors.last()?.lines().next().map(str::to_string);
    let found = if quotes { None } else { of_log() };
    found.or(summary.map(str::to_string)).unwrap_or_else(|| "no summary was left".to_string())
}

/// The step that failed: what the error names, never simply the last one.
pub fn failing_step(case: &Case<'_>) -> Option<String> {
    let error = case.details.error.as_ref()?;
    error.step.clone().filter(|s| !s.is_empty())
}

fn step_evidence(case: &Case<'_>) -> Option<Evidence> {
    let name = failing_step(case)?;
    let step = case.details.steps.iter().rfind(|s| s.name == name)?;
    let took = short_millis(step.millis);
    Some(Evidence::new(
        format!("{} steps[{name}]", case.details.from),
        format!("exit code {}, after {took}", step.exit_code),
    ))
}

pub fn waited_for_lock(case: &Case<'_>, error: Option<&RunError>) -> bool {
    error.is_some_and(|e| names_state_lock(&e.summary)) || case.log().is_some_and(|l| l.lock_error)
}

/// The API server refused the runner itself, as the log or the summary says.
fn runner_refused(case: &Case<'_>) -> Option<Finding> {
    let in_log = case.log().and_then(|l| l.forbidden.clone());
    let in_summary =
        || crate::captf::run_log::read_log(&case.details.error.as_ref()?.summary, false, &Default::default()).forbidden;
    let (refusal, source) = match in_log {
        Some(refusal) => (refusal, format!("log of {}", log_place(case))),
        None => (in_summary()?, format!("{} error.summary", case.details.from)),
    };
    let elsewhere = refusal.namespace.as_deref().is_some_and(|ns| ns != case.facts.object.namespace);
    let code = if elsewhere { Code::RunnerOtherNamespace } else { Code::RunnerForbidden };
    let account = case.job.service_account.clone().unwrap_or_else(|| "captf-runner".to_string());
    Some(
        Finding::new(code, Evidence::new(source, refusal.line.clone()))
            .seen(Evidence::new(
                format!("Job/{} .spec.template.spec.serviceAccountName", case.job.name),
                account.clone(),
            ))
            .with("what", refusal.resource)
            .with("account", account)
            .with("job", case.job.name.clone()),
    )
}

fn no_result(case: &Case<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = job_outside::from_outside(case).into_iter().collect();
    findings.extend(job_memory::findings(case));
    if !findings.is_empty() {
        return findings;
    }
    let Some(pod) = case.newest_pod() else {
        if let Some((reason, _)) =
            case.job.failure.as_ref().filter(|(r, _)| r != "BackoffLimitExceeded" && !r.is_empty())
        {
            return vec![job(case, Code::JobFailedOther).with("reason", reason.clone())];
        }
        let start = job_start::findings(case);
        if !start.is_empty() {
            return start;
        }
        if !case.pods_are_known() {
            return Vec::new();
        }
        let gone = Evidence::new(format!("Pods of Job/{}", case.job.name), "none left");
        return vec![job(case, Code::PodsGone).seen(gone)];
    };
    let start = job_start::findings(case);
    if !start.is_empty() {
        return start;
    }
    let ended = pod.source().map(|c| &c.state);
    if let Some(ContainerState::Terminated { reason, exit_code, finished, message, .. }) = ended {
        let source = format!("Pod/{} .status.containerStatuses[source].state.terminated", pod.name);
        let said = if message.is_empty() { String::new() } else { format!(": {message}") };
        let seen = Evidence::new(source, format!("{reason}, exit code {exit_code}{said}")).at(*finished);
        let code = match (reason.as_str(), exit_code) {
            ("StartError" | "ContainerCannotRun", _) => Code::ContainerCannotRun,
            ("ContainerStatusUnknown", _) => Code::RunNodeGone,
            (_, 137) => Code::KilledUnexplained,
            _ => Code::NoResult,
        };
        let why = match &pod.result {
            crate::facts::run::ResultReading::Nothing(why) => *why,
            _ => "none",
        };
        let lasted = pod.source_started().zip(*finished).map(|(from, to)| short_duration(seconds_between(from, to)));
        let mut finding = Finding::new(code, seen)
            .seen(Evidence::new("the runner's result", why))
            .with("container", "source")
            .with("job", case.job.name.clone())
            .with("pod", pod.name.clone())
            .with("reason", reason.clone());
        if let Some(lasted) = lasted {
            finding = finding.seen(Evidence::new("container source ran for", lasted));
        }
        if let Some(node) = &pod.node {
            finding = finding.with("node", node.clone());
        }
        if code == Code::KilledUnexplained {
            finding = finding.seen_all(job_memory::usage(case, *finished));
        }
        return vec![finding.seen_all(log_errors(case))];
    }
    let state = Evidence::new(
        format!("Pod/{} .status", pod.name),
        format!("phase {}, no end of container source reported", pod.phase),
    );
    vec![job(case, Code::NoResult).seen(state).seen_all(log_errors(case))]
}

/// A Job that the status or a condition names and that the API server does not have.
pub fn vanished(case_name: &str, source: Evidence, events: &[EventFacts]) -> Finding {
    let traces =
        events.iter().filter(|e| e.about.1 == case_name || e.about.1.starts_with(&format!("{case_name}-"))).take(3);
    Finding::new(Code::JobVanished, Evidence::new(format!("Job/{case_name}"), "not found"))
        .seen(source)
        .seen_all(traces.map(from_event))
        .with("job", case_name)
}

/// `running since ...`: how an unfinished Job whose pod runs stands.
pub fn in_progress(case: &Case<'_>) -> Finding {
    let job = case.job;
    let since = case.newest_pod().and_then(PodFacts::source_started);
    let mut finding = Finding::new(
        Code::RunInProgress,
        Evidence::new(format!("Job/{}", job.name), "unfinished").at(job.started.or(job.created)),
    )
    .with("job", job.name.clone())
    .with("op", job.op.map_or("run", |op| op.as_str()));
    if let Some(pod) = case.newest_pod() {
        finding = finding
            .seen(
                Evidence::new(
                    format!("Pod/{} container source", pod.name),
                    if since.is_some() { "running" } else { "not started yet" },
                )
                .at(since),
            )
            .with("pod", pod.name.clone());
    }
    if let Some((start, limit)) = job.started.zip(job.active_deadline_seconds) {
        let end = start + jiff::SignedDuration::from_secs(limit);
        finding = finding.seen(Evidence::new("deadline", utc(end)));
    }
    finding
}
