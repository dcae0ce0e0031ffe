//! How a Job ended, by the controller's own rules and in their order of precedence.
//!
//! Bookkept annotations win over pods; the newest pod counts, not the last one; a pull failure is looked
//! for before the deadline, because it ends at the deadline too.

use crate::captf::names::Operation;
use crate::facts::job::{JobFacts, JobMarks, JobOutcome};
use crate::facts::object::LastRun;
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::run::{RunError, RunStep};

/// How a Job stands. The words are public and stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    Suspended,
    Starting,
    Running,
    Ending,
    Succeeded,
    PlanUnreadable,
    Blocked,
    PlanChanged,
    ImagePull,
    Deadline,
    ImageInvalid,
    Interrupted,
    StepFailed,
    NoResult,
}

impl Outcome {
    /// The word in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Ending => "ending",
            Self::Succeeded => "succeeded",
            Self::PlanUnreadable => "plan-unreadable",
            Self::Blocked => "blocked",
            Self::PlanChanged => "plan-changed",
            Self::ImagePull => "image-pull-failed",
            Self::Deadline => "deadline-exceeded",
            Self::ImageInvalid => "image-invalid",
            Self::Interrupted => "interrupted",
            Self::StepFailed => "step-failed",
            Self::NoResult => "no-result",
        }
    }
}

/// What is known of the steps and the error of one Job, and from where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    pub steps: Vec<RunStep>,
    pub error: Option<RunError>,
    pub from: String,
}

/// The pods of one Job, newest first.
pub fn pods_of<'a>(pods: &'a [PodFacts], job: &str) -> Vec<&'a PodFacts> {
    pods.iter().filter(|p| p.job.as_deref() == Some(job)).collect()
}

/// The Job with the marks that count: of its annotations once it is bookkept, else of its newest pod.
pub fn with_marks(mut job: JobFacts, newest_pod: Option<&PodFacts>) -> JobFacts {
    if job.marks.bookkept {
        return job;
    }
    let result = newest_pod.and_then(|p| p.result.found());
    let kind = result.and_then(|r| r.error.as_ref()).map(|e| e.kind.as_str());
    let failed = job.outcome == JobOutcome::Failed;
    let failed_apply = failed && job.op == Some(Operation::Apply);
    job.marks = JobMarks {
        bookkept: false,
        interrupted: failed && !job.hit_deadline() && kind == Some("interrupted"),
        blocked: failed_apply && kind == Some("blocked"),
        plan_changed: failed_apply && kind == Some("plan-changed"),
        plan_unreadable: job.outcome == JobOutcome::Succeeded
            && job.op == Some(Operation::Plan)
            && newest_pod.is_some()
            && !result.is_some_and(|r| r.has_plan),
    };
    job
}

/// Steps and error: of the status where it is about this Job and says something, else of the newest pod.
pub fn details(job: &JobFacts, newest_pod: Option<&PodFacts>, last_run: Option<&LastRun>) -> Details {
    if let Some(run) = last_run.filter(|r| r.job == job.name && (!r.steps.is_empty() || r.error.is_some())) {
        return Details { steps: run.steps.clone(), error: run.error.clone(), from: "status.lastRun".to_string() };
    }
    match newest_pod.and_then(|p| Some((p, p.result.found()?))) {
        Some((pod, result)) => Details {
            steps: result.steps.clone(),
            error: result.error.clone(),
            from: format!("Pod/{} container source, termination message", pod.name),
        },
        None => Details::default(),
    }
}

/// How the Job stands. `job` carries the marks that count.
pub fn outcome(job: &JobFacts, newest_pod: Option<&PodFacts>, details: &Details) -> Outcome {
    let kind = details.error.as_ref().map(|e| e.kind.as_str());
    match job.outcome {
        JobOutcome::Unfinished if job.suspended => Outcome::Suspended,
        JobOutcome::Unfinished if job.failure_target.is_some() => Outcome::Ending,
        JobOutcome::Unfinished if newest_pod.is_some_and(|p| p.source_started().is_some()) => Outcome::Running,
        JobOutcome::Unfinished => Outcome::Starting,
        JobOutcome::Succeeded if job.marks.plan_unreadable => Outcome::PlanUnreadable,
        JobOutcome::Succeeded => Outcome::Succeeded,
        JobOutcome::Failed if job.marks.blocked => Outcome::Blocked,
        JobOutcome::Failed if job.marks.plan_changed => Outcome::PlanChanged,
        JobOutcome::Failed if newest_pod.is_some_and(waits_for_image) => Outcome::ImagePull,
        JobOutcome::Failed if job.hit_deadline() => Outcome::Deadline,
        JobOutcome::Failed if kind == Some("image-layout") => Outcome::ImageInvalid,
        JobOutcome::Failed if job.marks.interrupted => Outcome::Interrupted,
        JobOutcome::Failed if details.error.is_some() => Outcome::StepFailed,
        JobOutcome::Failed => Outcome::NoResult,
    }
}

/// Whether any container waits for its image in one of the three reasons that the controller looks for.
pub fn waits_for_image(pod: &PodFacts) -> bool {
    pod.containers.iter().any(|c| match &c.state {
        ContainerState::Waiting { reason, .. } => {
            matches!(reason.as_str(), "ErrImagePull" | "ImagePullBackOff" | "InvalidImageName")
        }
        _ => false,
    })
}
