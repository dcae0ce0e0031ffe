//! How the process in a pod died, from the pod, its Job and its events: evidence, never a verdict.
//!
//! Conditions and reasons come before exit codes; an exit code alone never names a cause.

use super::finding::Evidence;
use crate::facts::event::EventFacts;
use crate::facts::job::JobFacts;
use crate::facts::node::NodeFacts;
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::reading::Reading;

/// A cause in a few words, and whether the process may be running still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    pub cause: &'static str,
    pub evidence: Vec<Evidence>,
}

/// Pod and Job reasons that mean that nobody saw the process end.
const UNSEEN_ENDS: [&str; 4] = ["NodeLost", "DeletionByPodGC", "DeletionByTaintManager", "NodeStatusUnknown"];

/// What is known of how the pod's process ended, best evidence first. `None` when nothing is.
pub fn death_of(pod: Option<&PodFacts>, job: Option<&JobFacts>, events: &[EventFacts]) -> Option<Death> {
    pod.and_then(death_from_pod).or_else(|| job.and_then(death_from_job)).or_else(|| death_from_events(events))
}

fn death_from_pod(pod: &PodFacts) -> Option<Death> {
    let seen = |field: &str, value: String| Evidence::new(format!("Pod/{} {field}", pod.name), value);
    let with_message = |head: &str, message: &str| {
        if message.is_empty() { head.to_string() } else { format!("{head}: {message}") }
    };
    if pod.reason == "Evicted" {
        let value = with_message("Evicted", &pod.message);
        return Some(Death { cause: "the pod was evicted", evidence: vec![seen(".status.reason", value)] });
    }
    if let Some(oom) = oom_killed(pod) {
        return Some(Death { cause: "the container ran out of memory (OOMKilled)", evidence: vec![oom] });
    }
    if let Some(d) = &pod.disruption
        && pod.has_ended()
    {
        let cause = match d.reason.as_str() {
            "PreemptionByScheduler" => "the pod was preempted",
            "DeletionByTaintManager" => "the pod was deleted because its node was tainted or lost",
            "DeletionByPodGC" => "the pod was collected because its node is gone",
            "EvictionByEvictionAPI" => "the pod was evicted through the API (a drain)",
            "TerminationByKubelet" => "the kubelet ended the pod (node pressure or shutdown)",
            _ => "the pod was disrupted",
        };
        let value = with_message(&d.reason, &d.message);
        return Some(Death { cause, evidence: vec![seen(".status.conditions[DisruptionTarget]", value).at(d.at)] });
    }
    if pod.reason == "DeadlineExceeded" {
        return Some(Death {
            cause: "the deadline was exceeded",
            evidence: vec![seen(".status.reason", with_message("DeadlineExceeded", &pod.message))],
        });
    }
    if !pod.reason.is_empty() {
        let cause = if UNSEEN_ENDS.contains(&pod.reason.as_str()) { "the node was lost" } else { "the pod failed" };
        return Some(Death { cause, evidence: vec![seen(".status.reason", with_message(&pod.reason, &pod.message))] });
    }
    let ended = pod.containers.iter().filter(|c| !c.init).find_map(|c| match &c.state {
        ContainerState::Terminated { reason, exit_code, finished, .. } => Some((c, reason, *exit_code, *finished)),
        _ => None,
    });
    ended.map(|(container, reason, exit_code, finished)| {
        let cause = match exit_code {
            0 => "the container completed",
            137 => "the container was killed (SIGKILL: memory, node or deadline)",
            143 => "the container ended on SIGTERM",
            _ => "the container failed",
        };
        let value = format!("{reason}, exit code {exit_code}");
        let source = format!(".status.containerStatuses[{}].state.terminated", container.name);
        Death { cause, evidence: vec![seen(&source, value).at(finished)] }
    })
}

fn oom_killed(pod: &PodFacts) -> Option<Evidence> {
    pod.containers.iter().find_map(|c| match &c.state {
        ContainerState::Terminated { reason, exit_code, finished, .. } if reason == "OOMKilled" => {
            let limit = c.memory_limit.as_deref().map(|l| format!(", memory limit {l}")).unwrap_or_default();
            let list = if c.init { "initContainerStatuses" } else { "containerStatuses" };
            let source = format!("Pod/{} .status.{list}[{}].state.terminated", pod.name, c.name);
            Some(Evidence::new(source, format!("OOMKilled, exit code {exit_code}{limit}")).at(*finished))
        }
        _ => None,
    })
}

fn death_from_job(job: &JobFacts) -> Option<Death> {
    let source = |field: &str| format!("Job/{} {field}", job.name);
    if job.marks.interrupted && !job.hit_deadline() {
        return Some(Death {
            cause: "the run was interrupted from outside (drain, eviction or deletion)",
            evidence: vec![Evidence::new(source("annotation captf.io/interrupted"), "true").at(job.finished)],
        });
    }
    let (reason, message) = job.failure.as_ref()?;
    let cause = match reason.as_str() {
        "DeadlineExceeded" => "the Job hit its deadline",
        "BackoffLimitExceeded" => "the Job's only pod failed",
        "PodFailurePolicy" => "the Job's pod failure policy ended it",
        _ => "the Job failed",
    };
    let value = if message.is_empty() { reason.clone() } else { format!("{reason}: {message}") };
    Some(Death { cause, evidence: vec![Evidence::new(source(".status.conditions[Failed]"), value).at(job.finished)] })
}

fn death_from_events(events: &[EventFacts]) -> Option<Death> {
    const CAUSES: [(&str, &str); 6] = [
        ("Evicted", "the pod was evicted"),
        ("Preempted", "the pod was preempted"),
        ("OOMKilling", "the container ran out of memory"),
        ("TaintManagerEviction", "the pod was deleted because its node was tainted or lost"),
        ("NodeNotReady", "the node stopped answering"),
        ("Killing", "the kubelet stopped the container"),
    ];
    CAUSES.iter().find_map(|(reason, cause)| {
        let event = events.iter().find(|e| e.reason == *reason)?;
        Some(Death { cause, evidence: vec![from_event(event)] })
    })
}

/// An event as evidence.
pub fn from_event(event: &EventFacts) -> Evidence {
    let (kind, name) = &event.about;
    Evidence::new(format!("Event {} on {kind}/{name}", event.reason), event.message.clone()).at(event.at)
}

/// Signs that nobody saw the process end, so that it may still run on a node that was cut off. A node
/// that is known to be Ready voids the signs that only say that its pod was evicted by a taint.
pub fn unseen_end(pod: Option<&PodFacts>, node: Option<&Reading<NodeFacts>>, events: &[EventFacts]) -> Vec<Evidence> {
    let node_is_ready = node.and_then(Reading::found).is_some_and(|n| n.ready == "True" && !n.unreachable_taint);
    let tells = |reason: &str| UNSEEN_ENDS.contains(&reason) && !(node_is_ready && reason == "DeletionByTaintManager");
    let mut signs = Vec::new();
    if let Some(pod) = pod {
        if tells(&pod.reason) {
            signs.push(Evidence::new(format!("Pod/{} .status.reason", pod.name), pod.reason.clone()));
        }
        if let Some(d) = pod.disruption.as_ref().filter(|d| tells(&d.reason)) {
            let source = format!("Pod/{} .status.conditions[DisruptionTarget]", pod.name);
            signs.push(Evidence::new(source, d.reason.clone()).at(d.at));
        }
        let running = pod.containers.iter().find(|c| matches!(c.state, ContainerState::Running { .. }));
        if let Some(container) = running.filter(|_| pod.has_ended()) {
            let source = format!("Pod/{} .status.containerStatuses[{}]", pod.name, container.name);
            signs.push(Evidence::new(source, format!("still reported running although the pod is {}", pod.phase)));
        }
    }
    match node {
        _ if pod.is_some_and(kubelet_saw_the_end) => {}
        Some(Reading::Found(node)) if node.is_lost() => signs.push(from_node(node)),
        Some(Reading::Absent) => {
            signs.push(Evidence::new("Node of the pod", "not found (deleting a Node object does not stop a machine)"));
        }
        _ => {}
    }
    let lost = |e: &&EventFacts| matches!(e.reason.as_str(), "NodeNotReady" | "TaintManagerEviction");
    signs.extend(events.iter().filter(|e| !node_is_ready && lost(e)).map(from_event));
    signs
}

/// Whether the pod's own kubelet reported that its containers ended, so that what became of the node later
/// does not matter.
fn kubelet_saw_the_end(pod: &PodFacts) -> bool {
    let main = || pod.containers.iter().filter(|c| !c.init);
    let all_ended = main().count() > 0 && main().all(|c| matches!(c.state, ContainerState::Terminated { .. }));
    pod.reason == "Evicted" || all_ended
}

/// A node's readiness as evidence.
pub fn from_node(node: &NodeFacts) -> Evidence {
    let state = if node.unreachable_taint { "unreachable" } else { node.ready.as_str() };
    Evidence::new(format!("Node/{} Ready", node.name), state).at(node.last_heartbeat)
}
