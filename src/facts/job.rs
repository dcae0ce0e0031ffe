//! A Job of an object, with the marks that the controller's bookkeeping left on it.

use jiff::Timestamp;

use crate::captf::backoff::Ended;
use crate::captf::names::Operation;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobOutcome {
    #[default]
    Unfinished,
    Succeeded,
    Failed,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFacts {
    pub name: String,
    pub uid: String,
    pub created: Option<Timestamp>,
    pub op: Option<Operation>,
    pub attempt: Option<i32>,
    pub outcome: JobOutcome,
    /// When it finished: the condition's transition, else completionTime, else creation.
    pub finished: Option<Timestamp>,
    /// Reason and message of the condition Failed, if True.
    pub failure: Option<(String, String)>,
    /// Reason and time of FailureTarget, if True: ending, but not yet finished.
    pub failure_target: Option<(String, Option<Timestamp>)>,
    pub marks: JobMarks,
    /// `captf.io/state-lock-version`: the lock Lease's version when the Job was created.
    pub state_lock_version: Option<String>,
    pub started: Option<Timestamp>,
    pub active_deadline_seconds: Option<i64>,
    /// `--lock-timeout` and `--force-unlock` of the runner's arguments.
    pub lock_timeout_seconds: Option<i64>,
    pub force_unlock: Option<String>,
    pub image: Option<String>,
    pub suspended: bool,
    pub deleting: Option<Timestamp>,
    /// `captf.io/drift-remediation`: the apply puts drift right.
    pub remediation: bool,
    /// `captf.io/plan`: the TerraformPlan that it makes or applies.
    pub plan: Option<String>,
    /// Images that are left to try, of `captf.io/image-fallbacks`.
    pub image_fallbacks: Option<usize>,
    pub service_account: Option<String>,
}

/// Annotations of bookkeeping.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobMarks {
    pub bookkept: bool,
    pub interrupted: bool,
    pub blocked: bool,
    pub plan_changed: bool,
    pub plan_unreadable: bool,
}

impl JobFacts {
    /// Whether the Job ended at its deadline.
    pub fn hit_deadline(&self) -> bool {
        self.outcome == JobOutcome::Failed
            && self.failure.as_ref().is_some_and(|(reason, _)| reason == "DeadlineExceeded")
    }

    /// How backoff counts the Job; `None` while it is unfinished.
    pub fn ended(&self) -> Option<Ended> {
        match self.outcome {
            JobOutcome::Unfinished => None,
            JobOutcome::Succeeded if self.marks.plan_unreadable => Some(Ended::Failed),
            JobOutcome::Succeeded => Some(Ended::Succeeded),
            JobOutcome::Failed => {
                let m = self.marks;
                let looked_past = (m.interrupted && !self.hit_deadline()) || m.blocked || m.plan_changed;
                Some(if looked_past { Ended::NotCounted } else { Ended::Failed })
            }
        }
    }
}

/// The newest unfinished Job by creation, which the controller calls active.
pub fn active_job(jobs: &[JobFacts]) -> Option<&JobFacts> {
    jobs.iter().filter(|j| j.outcome == JobOutcome::Unfinished).max_by_key(|j| (j.created, &j.name))
}

/// Finished Jobs of one operation, newest first, ties by name descending.
pub fn finished_newest_first(jobs: &[JobFacts], op: Operation) -> Vec<&JobFacts> {
    let mut finished: Vec<&JobFacts> =
        jobs.iter().filter(|j| j.op == Some(op) && j.outcome != JobOutcome::Unfinished).collect();
    finished.sort_by(|a, b| (b.finished, &b.name).cmp(&(a.finished, &a.name)));
    finished
}
