//! Shows where a restore stands; a failed one with its cause, judged as `jobs why` does.

use super::args::GlobalArgs;
use super::error::CommandError;
use super::session::Session;
use super::state_render::{render_state, report_of};
use crate::captf::names::Operation;
use crate::cluster::job_why::{Depth, read_job_why};
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, Reading};
use crate::output::state_view::{DiffView, Parts, RestoreView};
use crate::runbook::code::Code;
use crate::runbook::finding::Finding;
use crate::runbook::job_why::diagnose;
use crate::runbook::restore_progress::{Progress, Stage};

/// Whose progress is shown, and by which command.
pub struct Shown<'a> {
    pub session: &'a Session,
    pub global: &'a GlobalArgs,
    pub object: &'a ObjectRef,
    pub command: &'static str,
}

impl Shown<'_> {
    /// Prints the progress. Returns the exit code: the given one, or what follows from the findings.
    pub async fn show(
        &self,
        progress: &Progress,
        exit: Option<u8>,
        diff: Option<DiffView>,
    ) -> Result<u8, CommandError> {
        let view = RestoreView {
            serial: progress.serial,
            stage: Some(progress.stage.as_str()),
            job: progress.job.clone(),
            progress: Some(progress.stage.line()),
            ..RestoreView::default()
        };
        let parts = Parts { restore: Some(view), diff, ..Parts::default() };
        let (mut findings, mut gaps) = (progress.findings.clone(), progress.gaps.clone());
        if let (Stage::Failed, Some(job)) = (&progress.stage, &progress.job) {
            let (causes, unread) = self.causes(job).await;
            findings.extend(causes);
            gaps.extend(unread.into_iter().filter(|g| !progress.gaps.contains(g)));
        }
        let report = report_of(self.session, self.command, self.object, findings, gaps);
        render_state(&report, parts, self.global, exit)
    }

    /// Why that Job failed. That the serial is not tried again stands in the finding of the restore itself.
    async fn causes(&self, job: &str) -> (Vec<Finding>, Vec<Gap>) {
        let depth = Depth { ops: vec![Operation::Restore], full: true, live: self.session.live };
        match read_job_why(&self.session.api, self.object, &depth).await {
            Reading::Found(facts) => {
                let judgement = diagnose(&facts, &depth.ops, self.session.now());
                let about = |f: &Finding| {
                    f.code != Code::RestoreNotRetried && f.values.get("job").is_some_and(|named| named == job)
                };
                (judgement.findings.into_iter().filter(about).collect(), judgement.gaps)
            }
            Reading::Absent => (Vec::new(), Vec::new()),
            Reading::Unreadable(gap) => (Vec::new(), vec![gap]),
        }
    }
}
