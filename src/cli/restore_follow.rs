//! Follows a restore to its end: one line on standard error whenever something changed.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::error::CommandError;
use super::session::Session;
use crate::captf::time::short_duration;
use crate::cluster::restore::read_progress;
use crate::cluster::restore_log::read_steps;
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::runbook::restore_progress::{Asked, Progress, Stage, judge};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long the controller may take to read the state back before that is called the end of the waiting.
const MISSING_LIMIT: u32 = 3;

/// How following ended.
pub enum Outcome {
    End(Box<Progress>),
    TimedOut(Box<Progress>),
    Interrupted,
}

/// One look. `None` when the cluster did not answer; that was said.
pub async fn look(
    session: &Session,
    object: &ObjectRef,
    asked: Option<&Asked>,
) -> Result<Option<Progress>, CommandError> {
    match read_progress(&session.api, object).await {
        Reading::Found(mut facts) => {
            // While a Job runs, the status still tells of the run before it.
            let told = facts.about.last_run.as_ref().map(|r| r.job.clone());
            if let Some(pod) = facts.pod.as_ref().and_then(Reading::found)
                && told != pod.job
            {
                let newest = facts.jobs.found().and_then(|jobs| jobs.first());
                let unlocks = newest.is_some_and(|(job, _)| job.force_unlock.is_some());
                let steps = read_steps(&session.api, &object.namespace, &pod.name, unlocks).await;
                facts.steps = steps.unwrap_or_default();
            }
            Ok(Some(judge(&facts, asked, now(session))))
        }
        Reading::Absent => Err(CommandError::failed(format!(
            "{} `{}` in {} is gone: it was deleted while the restore was under way",
            object.kind, object.name, object.namespace
        ))
        .hint("its backups go with it unless they were retained; look at once with `kubectl get secret -l captf.io/state-backup=true`")),
        Reading::Unreadable(gap) => {
            stderr_line(&format!("no answer about {}", visible(&gap.to_string())));
            Ok(None)
        }
    }
}

fn now(session: &Session) -> Timestamp {
    session.now()
}

/// Looks until the restore has ended, the time is up, or somebody interrupts.
pub async fn follow(
    session: &Session,
    object: &ObjectRef,
    asked: Option<&Asked>,
    timeout: Option<Duration>,
) -> Result<Outcome, CommandError> {
    let began = Instant::now();
    let mut shown = String::new();
    let mut last: Option<Progress> = None;
    let mut withdrawn = 0;
    // One listener for the whole wait: an interrupt counts during a slow request as well.
    let interrupt = stop_asked();
    tokio::pin!(interrupt);
    loop {
        let looked = tokio::select! {
            looked = look(session, object, asked) => looked?,
            () = &mut interrupt => return Ok(Outcome::Interrupted),
        };
        if let Some(progress) = looked {
            let line = progress.stage.line();
            if line != shown {
                let seconds = i64::try_from(began.elapsed().as_secs()).unwrap_or(i64::MAX);
                stderr_line(&format!("{:>6}  {line}", short_duration(seconds)));
                shown = line;
            }
            // A success is written in several steps; what looks withdrawn may be one of them.
            withdrawn = if progress.stage == Stage::Withdrawn { withdrawn + 1 } else { 0 };
            let ended = progress.stage.is_end() && (progress.stage != Stage::Withdrawn || withdrawn > MISSING_LIMIT);
            if ended {
                return Ok(Outcome::End(Box::new(progress)));
            }
            last = Some(progress);
        }
        if timeout.is_some_and(|limit| began.elapsed() >= limit) {
            return match last {
                Some(progress) => Ok(Outcome::TimedOut(Box::new(progress))),
                None => Err(CommandError::failed(format!("{} did not answer in time", object.resource()))),
            };
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = &mut interrupt => return Ok(Outcome::Interrupted),
        }
    }
}

/// Ends at Ctrl-C or SIGTERM. The claim took over both signals for the whole process, so both are listened to.
async fn stop_asked() {
    #[cfg(unix)]
    if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        return;
    }
    let _ = tokio::signal::ctrl_c().await; // without a listener there is nothing to wait for
}

/// What is said to somebody who leaves or whose time is up.
pub fn leaving(object: &ObjectRef, why: &str) {
    stderr_line(&format!("{why}; the restore goes on in the cluster"));
    stderr_line(&format!(
        "hint: `kubectl captf restore status {} -n {} --wait` looks at it again",
        object.resource(),
        object.namespace
    ));
}
