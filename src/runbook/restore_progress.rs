//! Where a restore stands. Its end is read from the condition, the annotation, the consumed serial, the observed
//! serial and the Job together, never from one of them.

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::restore::parse_serial;
use crate::captf::time::relative;
use crate::facts::job::{JobFacts, JobOutcome};
use crate::facts::object::Condition;
use crate::facts::pod::ContainerState;
use crate::facts::reading::{Gap, Reading};
use crate::facts::restore::ProgressFacts;

/// The stage, in the words of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Nothing is asked for and nothing runs.
    Idle,
    Requested,
    /// The controller says what it waits for.
    Waiting(String),
    Running {
        job: String,
        doing: String,
    },
    /// The push went well; the controller has not read the state back yet.
    ReadingBack,
    Succeeded,
    Failed,
    /// The controller knows no complete backup of that serial.
    BackupNotFound,
    /// The request was taken away before its end.
    Withdrawn,
}

impl Stage {
    /// The word in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Requested => "requested",
            Self::Waiting(_) => "waiting",
            Self::Running { .. } => "running",
            Self::ReadingBack => "reading-back",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::BackupNotFound => "backup-not-found",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// Whether nothing more will happen by itself.
    pub fn is_end(&self) -> bool {
        matches!(self, Self::Idle | Self::Succeeded | Self::Failed | Self::BackupNotFound | Self::Withdrawn)
    }

    /// One line for a person who waits.
    pub fn line(&self) -> String {
        match self {
            Self::Idle => "no restore is under way".to_string(),
            Self::Requested => "requested; the controller has not started it yet".to_string(),
            Self::Waiting(why) => format!("waiting: {why}"),
            Self::Running { job, doing } => format!("Job {job}: {doing}"),
            Self::ReadingBack => "the state was pushed; waiting until the controller has read it".to_string(),
            Self::Succeeded => "restored".to_string(),
            Self::Failed => "failed".to_string(),
            Self::BackupNotFound => "the controller found no complete backup of that serial".to_string(),
            Self::Withdrawn => "the request was taken away".to_string(),
        }
    }
}

/// A stage with what it is read from.
#[derive(Debug, Clone)]
pub struct Progress {
    pub serial: Option<i64>,
    pub stage: Stage,
    pub job: Option<String>,
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
}

/// The watcher's own knowledge: which serial it asked for, and which Jobs were there before.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    pub serial: i64,
    pub known_jobs: Vec<String>,
}

/// Judges the progress; with `asked` only what happened since counts.
pub fn judge(facts: &ProgressFacts, asked: Option<&Asked>, now: Timestamp) -> Progress {
    let about = &facts.about;
    let request = about.restore_request.as_deref().and_then(parse_serial);
    let newest = newest_job(facts, asked);
    let serial = asked.map(|a| a.serial).or(request).or(newest.and_then(|(_, s)| s)).or(about.last_restored_serial);
    let job = newest.map(|(job, _)| job);
    let beside = [facts.cluster_lease.as_ref().and_then(Reading::gap), facts.pod.as_ref().and_then(Reading::gap)];
    let gaps = [facts.jobs.gap(), facts.run_lease.gap()].into_iter().chain(beside).flatten().cloned().collect();
    let mut progress = Progress {
        serial,
        stage: stage(facts, serial, request, job, asked.is_some()),
        job: job.map(|j| j.name.clone()),
        findings: Vec::new(),
        gaps,
    };
    progress.findings.push(finding(facts, &progress, job, now));
    progress
}

fn newest_job<'a>(facts: &'a ProgressFacts, asked: Option<&Asked>) -> Option<(&'a JobFacts, Option<i64>)> {
    let jobs = facts.jobs.found()?;
    let new = |job: &JobFacts| asked.is_none_or(|a| !a.known_jobs.contains(&job.uid));
    jobs.iter().find(|(job, serial)| new(job) && asked.is_none_or(|a| *serial == Some(a.serial))).map(|(j, s)| (j, *s))
}

fn condition(facts: &ProgressFacts) -> Option<&Condition> {
    facts.about.condition("RestoreJobSucceeded")
}

fn stage(
    facts: &ProgressFacts,
    serial: Option<i64>,
    request: Option<i64>,
    job: Option<&JobFacts>,
    asked: bool,
) -> Stage {
    let about = &facts.about;
    let says = |status: &str, reason: &str| condition(facts).is_some_and(|c| c.status == status && c.reason == reason);
    if let Some(job) = job.filter(|j| j.outcome == JobOutcome::Unfinished) {
        return Stage::Running { job: job.name.clone(), doing: doing(facts) };
    }
    let requested = request.is_some() && request == serial;
    let consumed = serial.is_some() && about.last_restored_serial == serial;
    let succeeded = job.is_some_and(|j| j.outcome == JobOutcome::Succeeded);
    if requested {
        if consumed {
            // Success takes the annotation away in the same pass or the next.
            return if succeeded { Stage::ReadingBack } else { Stage::Failed };
        }
        if says("False", "RestoreBackupNotFound") {
            return Stage::BackupNotFound;
        }
        if let Some(c) = condition(facts).filter(|c| c.status == "Unknown") {
            return Stage::Waiting(waits_for(facts, c));
        }
        if let Some(other) = &facts.other_job {
            return Stage::Waiting(format!("Job {other} runs first"));
        }
        return Stage::Requested;
    }
    let restored = says("True", "StateRestored") && (succeeded || !matches!(facts.jobs, Reading::Found(_)));
    if restored {
        let read = about.observed_serial.zip(serial).is_some_and(|(observed, serial)| observed >= serial);
        return if read { Stage::Succeeded } else { Stage::ReadingBack };
    }
    if succeeded {
        return Stage::ReadingBack;
    }
    if job.is_some_and(|j| j.outcome == JobOutcome::Failed) && (asked || consumed) {
        return Stage::Failed;
    }
    if asked { Stage::Withdrawn } else { Stage::Idle }
}

fn waits_for(facts: &ProgressFacts, condition: &Condition) -> String {
    let holder = |lease: &Reading<Option<String>>| match lease {
        Reading::Found(Some(job)) => format!(" (held by Job {job})"),
        _ => String::new(),
    };
    match condition.reason.as_str() {
        "WaitingForRunLease" => format!("for the run lease{}", holder(&facts.run_lease)),
        "WaitingForClusterOperation" | "WaitingForMachineOperations" => {
            let lease = facts.cluster_lease.as_ref().map(holder).unwrap_or_default();
            format!("{}{lease}", condition.reason)
        }
        reason => reason.to_string(),
    }
}

/// What the pod of the running Job does.
fn doing(facts: &ProgressFacts) -> String {
    let Some(Reading::Found(pod)) = &facts.pod else {
        return "its pod is not there yet".to_string();
    };
    match pod.source().map(|c| &c.state) {
        Some(ContainerState::Running { .. }) => match facts.steps.last() {
            Some((step, _)) => format!("pod {} runs {step}", pod.name),
            None => format!("pod {} runs", pod.name),
        },
        Some(ContainerState::Waiting { reason, .. }) => format!("pod {} waits ({reason})", pod.name),
        Some(ContainerState::Terminated { reason, exit_code, .. }) => {
            format!("pod {} ended ({reason}, exit code {exit_code})", pod.name)
        }
        _ => format!("pod {} is {}", pod.name, pod.phase),
    }
}

fn finding(facts: &ProgressFacts, progress: &Progress, job: Option<&JobFacts>, now: Timestamp) -> Finding {
    let resource = facts.object.resource();
    let about = &facts.about;
    let code = match &progress.stage {
        Stage::Idle | Stage::Withdrawn => Code::RestoreNone,
        Stage::Requested => Code::RestoreRequested,
        Stage::Waiting(_) => Code::RestoreWaiting,
        Stage::Running { .. } => Code::RestoreRunning,
        Stage::ReadingBack => Code::RestoreReadingBack,
        Stage::Succeeded => Code::RestoreSucceeded,
        Stage::Failed => Code::RestoreFailed,
        Stage::BackupNotFound => Code::RestoreBackupNotFound,
    };
    let request = about.restore_request.clone().unwrap_or_else(|| "absent".to_string());
    let asked_at = facts.requested_at.filter(|_| about.restore_request.is_some());
    let annotation = Evidence::new(format!("{resource} annotation captf.io/restore-state"), request).at(asked_at);
    let mut finding = Finding::new(code, annotation);
    if let Some(c) = condition(facts) {
        let value = format!("{}/{}", c.status, c.reason);
        finding = finding.seen(Evidence::new(format!("{resource} RestoreJobSucceeded"), value).at(c.since));
    }
    for (field, value) in
        [("lastRestoredSerial", about.last_restored_serial), ("observedStateSerial", about.observed_serial)]
    {
        let value = value.map_or("not set".to_string(), |v| v.to_string());
        finding = finding.seen(Evidence::new(format!("{resource} .status.{field}"), value));
    }
    if let Some(job) = job {
        let outcome = match (job.outcome, job.hit_deadline()) {
            (JobOutcome::Unfinished, _) => "unfinished",
            (JobOutcome::Succeeded, _) => "succeeded",
            (JobOutcome::Failed, true) => "failed at its deadline",
            (JobOutcome::Failed, false) => "failed",
        };
        let age = job.created.map(|t| format!(", created {}", relative(t, now))).unwrap_or_default();
        finding = finding.seen(Evidence::new(format!("Job/{}", job.name), format!("{outcome}{age}")).at(job.finished));
        finding = finding.with("job", job.name.clone());
    }
    match &progress.stage {
        Stage::Waiting(why) => finding = finding.with("what", why.clone()),
        Stage::Running { doing, .. } => finding = finding.with("what", doing.clone()),
        _ => {}
    }
    match progress.serial {
        Some(serial) => finding.with("serial", serial.to_string()),
        None => finding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captf::kind::WorkloadKind;
    use crate::facts::object::{ObjectFacts, ObjectRef};

    fn job(outcome: JobOutcome) -> (JobFacts, Option<i64>) {
        let job = JobFacts {
            name: "captf-c-prod-restore-a1-000000".to_string(),
            uid: "j1".to_string(),
            created: Some(Timestamp::UNIX_EPOCH),
            op: Some(crate::captf::names::Operation::Restore),
            attempt: Some(1),
            outcome,
            ..JobFacts::default()
        };
        (job, Some(41))
    }

    struct Row {
        request: Option<&'static str>,
        last: Option<i64>,
        observed: Option<i64>,
        condition: Option<(&'static str, &'static str)>,
        job: Option<JobOutcome>,
    }

    fn facts(row: &Row) -> ProgressFacts {
        let conditions = row.condition.map(|(status, reason)| Condition {
            kind: "RestoreJobSucceeded".to_string(),
            status: status.to_string(),
            reason: reason.to_string(),
            message: String::new(),
            since: None,
        });
        ProgressFacts {
            object: ObjectRef { kind: WorkloadKind::Cluster, namespace: "a".to_string(), name: "prod".to_string() },
            about: ObjectFacts {
                restore_request: row.request.map(str::to_string),
                last_restored_serial: row.last,
                observed_serial: row.observed,
                conditions: conditions.into_iter().collect(),
                ..ObjectFacts::default()
            },
            jobs: Reading::Found(row.job.map(job).into_iter().collect()),
            other_job: None,
            run_lease: Reading::Found(None),
            cluster_lease: None,
            pod: None,
            steps: Vec::new(),
            requested_at: None,
        }
    }

    #[test]
    fn the_end_rests_on_no_single_sign() {
        let restored = Some(("True", "StateRestored"));
        let failed = Some(("False", "RestoreFailed"));
        let row = |request, last, observed, condition, job| Row { request, last, observed, condition, job };
        let done = Some(JobOutcome::Succeeded);
        for (case, row, expected) in [
            ("just asked", row(Some("41"), None, Some(57), None, None), "requested"),
            ("an old success does not count", row(Some("41"), None, Some(57), restored, None), "requested"),
            ("lease", row(Some("41"), None, Some(57), Some(("Unknown", "WaitingForRunLease")), None), "waiting"),
            ("runs", row(Some("41"), None, Some(57), None, Some(JobOutcome::Unfinished)), "running"),
            ("job done, nothing else", row(Some("41"), Some(41), Some(57), None, done), "reading-back"),
            ("condition alone", row(None, Some(41), Some(12), restored, done), "reading-back"),
            ("all", row(None, Some(41), Some(41), restored, done), "succeeded"),
            ("an apply came after it", row(None, None, Some(43), restored, done), "succeeded"),
            ("failed", row(Some("41"), Some(41), Some(57), failed, Some(JobOutcome::Failed)), "failed"),
            ("burnt, Job gone", row(Some("41"), Some(41), Some(57), failed, None), "failed"),
            (
                "no backup",
                row(Some("41"), None, Some(57), Some(("False", "RestoreBackupNotFound")), None),
                "backup-not-found",
            ),
            ("withdrawn", row(None, None, Some(57), restored, None), "withdrawn"),
        ] {
            let asked = Asked { serial: 41, known_jobs: Vec::new() };
            let progress = judge(&facts(&row), Some(&asked), Timestamp::UNIX_EPOCH);
            assert_eq!(progress.stage.as_str(), expected, "{case}");
        }
        let idle = judge(&facts(&row(None, None, Some(57), None, None)), None, Timestamp::UNIX_EPOCH);
        assert_eq!(idle.stage, Stage::Idle);
    }

    #[test]
    fn a_job_from_before_is_not_the_one_asked_for() {
        let row = Row {
            request: None,
            last: None,
            observed: Some(41),
            condition: Some(("True", "StateRestored")),
            job: Some(JobOutcome::Succeeded),
        };
        let asked = Asked { serial: 41, known_jobs: vec!["j1".to_string()] };
        assert_eq!(judge(&facts(&row), Some(&asked), Timestamp::UNIX_EPOCH).stage, Stage::Withdrawn);
    }
}
