//! What is read of one Job: its events, its node, the end of its log, and what the node says of a kill.

use super::api::Api;
use super::run_logs::read_log_facts;
use super::run_source::{Source, node_matters, wanted};
use crate::captf::run_log::names_state_lock;
use crate::facts::event::EventFacts;
use crate::facts::job::{JobFacts, JobOutcome};
use crate::facts::job_why::RunFacts;
use crate::facts::object::ObjectFacts;
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::reading::{Gap, Reading};
use crate::facts::run::LogFacts;
use crate::runbook::job_focus::Focus;
use crate::runbook::job_outcome::pods_of;
use crate::runbook::job_start::missing_object;

/// Where events about nodes are kept, which have no namespace.
const NODE_EVENTS: &str = "default";

/// One Job's run. `full` = also the end of the log, and what the node says of a kill.
pub async fn read_run(
    source: Source<'_>,
    namespace: &str,
    focus: &Focus,
    jobs: &Reading<Vec<JobFacts>>,
    pods: &[PodFacts],
    full: bool,
) -> RunFacts {
    let newest = pods_of(pods, &focus.job).first().copied();
    let job = jobs.found().and_then(|all| all.iter().find(|j| j.name == focus.job));
    let (on_job, on_pod, node, log) = tokio::join!(
        source.events(namespace, "Job", &focus.job),
        async {
            match newest {
                Some(pod) => source.events(namespace, "Pod", &pod.name).await,
                None => Reading::Found(Vec::new()),
            }
        },
        async {
            match newest.and_then(|p| p.node.as_deref().filter(|_| node_matters(p))) {
                Some(node) => Some(source.node(node).await),
                None => None,
            }
        },
        wanted(full, read_log(source.api, namespace, newest, job)),
    );
    let events = on_job.and_then(|mut events| {
        on_pod.map(|more| {
            events.extend(more);
            events.sort_by_key(|e| std::cmp::Reverse(e.at));
            events
        })
    });
    let missing = newest.and_then(|p| missing_of(p, events.found().map(Vec::as_slice).unwrap_or_default()));
    let missing_now = match missing {
        Some(missing) => source.exists(namespace, &missing).await.map(|there| (missing, there)),
        None => None,
    };
    let (log, not_masked) = log.flatten().unzip();
    let killed = full && newest.is_some_and(|pod| was_killed(pod, log.as_ref()));
    let node_events = match newest.and_then(|p| p.node.as_deref()).filter(|_| killed) {
        Some(node) => Some(match source.events(NODE_EVENTS, "Node", node).await {
            Reading::Unreadable(gap) => Reading::Unreadable(Gap { what: format!("Events on Node {node}"), ..gap }),
            read => read,
        }),
        None => None,
    };
    RunFacts {
        condition: focus.condition.clone(),
        events,
        node,
        node_events,
        log,
        not_masked: not_masked.unwrap_or_default(),
        missing_now,
        ..RunFacts::named(&focus.job)
    }
}

async fn read_log(
    api: &Api,
    namespace: &str,
    pod: Option<&PodFacts>,
    job: Option<&JobFacts>,
) -> Option<(Reading<LogFacts>, Vec<Gap>)> {
    let pod = pod?;
    job.filter(|j| j.outcome != JobOutcome::Succeeded)?;
    let init_failed = pod.containers.iter().find(|c| {
        c.init
            && c.name == "runner"
            && matches!(c.state, ContainerState::Terminated { exit_code, .. } if exit_code != 0)
    });
    let container = match (init_failed, pod.source_started()) {
        (Some(_), _) => "runner",
        (None, Some(_)) => "source",
        (None, None) => return None,
    };
    Some(read_log_facts(api, namespace, pod, container).await)
}

fn missing_of(pod: &PodFacts, events: &[EventFacts]) -> Option<String> {
    let of_state = pod.containers.iter().find_map(|c| match &c.state {
        ContainerState::Waiting { message, .. } => missing_object(message),
        _ => None,
    });
    let of_event = || events.iter().filter(|e| e.reason == "FailedMount").find_map(|e| missing_object(&e.message));
    of_state.or_else(of_event)
}

/// Whether something of the pod was killed, so that the node may tell why and how much memory was in use.
fn was_killed(pod: &PodFacts, log: Option<&Reading<LogFacts>>) -> bool {
    let container = |state: &ContainerState| match state {
        ContainerState::Terminated { reason, exit_code, .. } => reason == "OOMKilled" || *exit_code == 137,
        _ => false,
    };
    pod.containers.iter().any(|c| container(&c.state))
        || log.and_then(Reading::found).is_some_and(|l| l.killed.is_some())
}

/// Whether a run failed on the lock or waits for it, so that the lock has to be judged beside it.
pub fn touches_lock(about: &ObjectFacts, runs: &[RunFacts], pods: &[PodFacts]) -> bool {
    let by_log =
        runs.iter().any(|r| r.log.as_ref().and_then(Reading::found).is_some_and(|l| l.waits_for_lock || l.lock_error));
    let error = about.last_run.as_ref().and_then(|r| r.error.as_ref());
    let by_status = error.is_some_and(|e| names_state_lock(&e.summary) || e.step.as_deref() == Some("force-unlock"));
    let by_result = runs
        .iter()
        .flat_map(|r| pods_of(pods, &r.name))
        .filter_map(|p| p.result.found()?.error.as_ref())
        .any(|e| names_state_lock(&e.summary));
    by_log || by_status || by_result || about.has("StateReadable", "False", "StateLocked")
}
