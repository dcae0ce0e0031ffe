//! `jobs logs -f`: waits for the start of the container, across pods, and tells its end from a stream that was cut.

use std::time::Duration;

use futures::AsyncBufReadExt;

use super::error::{CommandError, OK};
use super::jobs_logs::{GAP, JobsLogsArgs, container_of, part, read, redactor_for, say_gap, shown};
use super::render::write_stdout;
use super::session::Session;
use crate::captf::mask::{LineMasker, Redactor};
use crate::captf::run_log::without_colours;
use crate::cluster::api::LogPart;
use crate::cluster::pods::read_pod;
use crate::facts::job::JobOutcome;
use crate::facts::object::ObjectRef;
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::reading::Reading;
use crate::output::stderr_line;
use crate::runbook::job_outcome::pods_of;

/// Time between two looks for a pod that has not started.
const POLL: Duration = Duration::from_secs(2);
/// Looks for the container's end after its stream ended, a second apart: the status comes a little later.
const LOOKS_FOR_END: u32 = 10;

/// Follows the log of a Job from the start of its container, for which it waits.
pub(super) async fn follow(
    session: &Session,
    object: &ObjectRef,
    job: &str,
    args: &JobsLogsArgs,
) -> Result<u8, CommandError> {
    let (pod, container) = wait_for_start(session, object, job).await?;
    stderr_line(&format!("Job {job}, pod {}, container {container}", pod.name));
    let (redactor, gaps) = redactor_for(session, object, &pod, args).await;
    gaps.iter().for_each(say_gap);
    let part = LogPart { limit_bytes: None, ..part(container.clone(), args) };
    if let Some(gap) = print_stream(session, object, &pod, &part, redactor, args).await? {
        say_gap(&gap);
        return Ok(GAP);
    }
    how_it_ended(session, object, &pod.name, &container).await?;
    Ok(if gaps.is_empty() { OK } else { GAP })
}

/// The pod whose container has started, whichever pod of the Job that is by then.
async fn wait_for_start(session: &Session, object: &ObjectRef, job: &str) -> Result<(PodFacts, String), CommandError> {
    let mut said = String::new();
    loop {
        let facts = read(session, object).await?;
        let pods = facts.pods.found().map(Vec::as_slice).unwrap_or_default();
        let newest = pods_of(pods, job).first().map(|p| (*p).clone());
        let starts = match newest {
            Some(pod) => {
                let container = container_of(&pod);
                match not_started(&pod, &container) {
                    Some(why) => format!("pod {} starts ({why})", pod.name),
                    None => return Ok((pod, container)),
                }
            }
            None => "its pod is created".to_string(),
        };
        let of_job = facts.jobs.found().and_then(|jobs| jobs.iter().find(|j| j.name == job));
        if of_job.is_none_or(|j| j.outcome != JobOutcome::Unfinished) {
            let how = if of_job.is_some() { "has ended, and no container of it started" } else { "is gone" };
            let why = format!("`kubectl captf jobs why {} -n {}` says why", object.resource(), object.namespace);
            return Err(CommandError::failed(format!("Job `{job}` {how}")).hint(why));
        }
        if starts != said {
            stderr_line(&format!("Job {job}: waiting until {starts}"));
            said = starts;
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Why a container has no log yet; none once it has started, or its pod has ended.
pub(super) fn not_started(pod: &PodFacts, container: &str) -> Option<String> {
    let started = pod.containers.iter().any(|c| {
        c.name == container && matches!(c.state, ContainerState::Running { .. } | ContainerState::Terminated { .. })
    });
    (!started && !pod.has_ended()).then(|| waiting_reason(pod))
}

/// Prints a stream until it ends; a gap when there is none.
async fn print_stream(
    session: &Session,
    object: &ObjectRef,
    pod: &PodFacts,
    part: &LogPart,
    redactor: Redactor,
    args: &JobsLogsArgs,
) -> Result<Option<crate::facts::reading::Gap>, CommandError> {
    let stream = match session.api.follow_log(&object.namespace, &pod.name, part).await {
        Reading::Found(stream) => stream,
        Reading::Absent => return Err(CommandError::failed(format!("pod `{}` is gone", pod.name))),
        Reading::Unreadable(gap) => return Ok(Some(gap)),
    };
    let mut stream = std::pin::pin!(stream);
    let mut masker = LineMasker::new(redactor);
    let mut line = Vec::new();
    loop {
        line.clear();
        match stream.read_until(b'\n', &mut line).await {
            Ok(0) => return Ok(None),
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_end_matches(['\n', '\r']);
                let text = if args.raw { text.to_string() } else { masker.mask(&without_colours(text)) };
                write_stdout(shown(&text, args.raw).as_bytes())?;
            }
            Err(e) => {
                return Err(
                    CommandError::failed(format!("follow the log of pod `{}`", pod.name)).caused_by(e.to_string())
                );
            }
        }
    }
}

/// Says how the container ended. A stream that ends while the container runs was cut on its way.
async fn how_it_ended(session: &Session, object: &ObjectRef, pod: &str, container: &str) -> Result<(), CommandError> {
    for look in 1..=LOOKS_FOR_END {
        let found = match read_pod(&session.api, &object.namespace, pod).await {
            Reading::Found(found) => found,
            Reading::Absent => {
                stderr_line(&format!("Pod {pod} is gone."));
                return Ok(());
            }
            Reading::Unreadable(_) => return Ok(()),
        };
        let state = found.containers.iter().find(|c| c.name == container).map(|c| &c.state);
        match state {
            Some(ContainerState::Running { .. }) if look < LOOKS_FOR_END => {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Some(ContainerState::Running { .. }) => break,
            Some(ContainerState::Terminated { reason, exit_code, .. }) => {
                stderr_line(&format!("Container {container} ended with exit code {exit_code} ({reason})."));
                return Ok(());
            }
            _ => return Ok(()),
        }
    }
    let error = CommandError::failed(format!("the stream ended although container `{container}` of pod `{pod}` runs"));
    Err(error.hint("run it again; `--since 1m` leaves out what is older"))
}

fn waiting_reason(pod: &PodFacts) -> String {
    let waiting = pod.containers.iter().find_map(|c| match &c.state {
        ContainerState::Waiting { reason, .. } if !reason.is_empty() && reason != "PodInitializing" => {
            Some(format!("{}: {reason}", c.name))
        }
        _ => None,
    });
    waiting.or_else(|| pod.unscheduled.as_ref().map(|c| c.reason.clone())).unwrap_or_else(|| pod.phase.clone())
}
