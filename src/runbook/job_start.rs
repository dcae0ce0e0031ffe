//! A Job whose pod is not scheduled, does not start or does not end.

use jiff::Timestamp;

use super::code::Code;
use super::death::from_event;
use super::finding::{Evidence, Finding};
use super::job_case::Case;
use super::job_image;
use super::job_no_pod;
use crate::captf::time::seconds_between;
use crate::facts::event::EventFacts;
use crate::facts::pod::{ContainerFacts, ContainerState, PodFacts};
use crate::facts::reading::Reading;

/// Why the run of an unfinished Job, or of one that ended before it ran, did not start. Empty when it did.
pub fn findings(case: &Case<'_>) -> Vec<Finding> {
    let Some(pod) = case.newest_pod() else {
        return job_no_pod::no_pod(case).into_iter().collect();
    };
    let pulls = job_image::findings(case.job, pod, case.events);
    if !pulls.is_empty() {
        return pulls;
    }
    unscheduled(pod)
        .or_else(|| init_failed(pod))
        .or_else(|| cannot_start(case, pod))
        .or_else(|| no_volume(case, pod))
        .into_iter()
        .collect()
}

fn unscheduled(pod: &PodFacts) -> Option<Finding> {
    let condition = pod.unscheduled.as_ref().filter(|_| !pod.has_ended() && pod.node.is_none())?;
    let code = if condition.reason == "SchedulingGated" { Code::PodSchedulingGated } else { Code::PodUnschedulable };
    let source = format!("Pod/{} .status.conditions[PodScheduled]", pod.name);
    let value = format!("{}: {}", condition.reason, condition.message);
    Some(
        Finding::new(code, Evidence::new(source, value).at(condition.at))
            .with("pod", pod.name.clone())
            .with("because", constraint(&condition.message)),
    )
}

/// `0/5 nodes are available: 3 Insufficient memory, 2 ... preemption: ...` without its ends.
fn constraint(message: &str) -> String {
    let message = message.split(" preemption:").next().unwrap_or(message);
    let message = message.split_once("nodes are available: ").map_or(message, |(_, why)| why);
    message.trim().trim_end_matches('.').to_string()
}

fn init_failed(pod: &PodFacts) -> Option<Finding> {
    pod.containers.iter().filter(|c| c.init && !c.sidecar).find_map(|c| match &c.state {
        ContainerState::Terminated { reason, exit_code, finished, message, .. }
            if *exit_code != 0 && reason != "OOMKilled" =>
        {
            let source = format!("Pod/{} .status.initContainerStatuses[{}].state.terminated", pod.name, c.name);
            let said = if message.is_empty() { String::new() } else { format!(": {message}") };
            let value = format!("{reason}, exit code {exit_code}{said}");
            Some(
                Finding::new(Code::InitContainerFailed, Evidence::new(source, value).at(*finished))
                    .with("container", c.name.clone())
                    .with("pod", pod.name.clone()),
            )
        }
        _ => None,
    })
}

fn cannot_start(case: &Case<'_>, pod: &PodFacts) -> Option<Finding> {
    let (container, reason, message) = pod.containers.iter().find_map(|c| match &c.state {
        ContainerState::Waiting { reason, message }
            if !matches!(reason.as_str(), "" | "ContainerCreating" | "PodInitializing") =>
        {
            Some((c, reason.as_str(), message.as_str()))
        }
        _ => None,
    })?;
    let list = if container.init { "initContainerStatuses" } else { "containerStatuses" };
    let value = if message.is_empty() { reason.to_string() } else { format!("{reason}: {message}") };
    let seen = Evidence::new(format!("Pod/{} .status.{list}[{}].state.waiting", pod.name, container.name), value);
    let finding = |code| {
        Finding::new(code, seen.clone())
            .with("container", container.name.clone())
            .with("pod", pod.name.clone())
            .with("reason", reason)
    };
    let starts = matches!(
        reason,
        "CreateContainerError"
            | "RunContainerError"
            | "PreCreateHookError"
            | "PreStartHookError"
            | "PostStartHookError"
    );
    if starts {
        return Some(finding(Code::ContainerCannotRun));
    }
    if reason != "CreateContainerConfigError" {
        return Some(finding(Code::ContainerWaitingOther));
    }
    if message.contains("couldn't find key") {
        let (key, object) = missing_key(message)?;
        return Some(finding(Code::ConfigKeyMissing).with("key", key).with("missing", object));
    }
    if message.contains("runAsNonRoot") || message.contains("will run as root") || message.contains("non-numeric user")
    {
        return Some(finding(Code::ConfigRunsAsRoot).with("image", container.image.clone().unwrap_or_default()));
    }
    match missing_object(message) {
        Some(missing) if is_there_now(case, &missing) => {
            Some(finding(Code::ConfigObjectThere).seen_all(there_now(case, &missing)).with("missing", missing))
        }
        Some(missing) => {
            Some(finding(Code::ConfigObjectMissing).seen_all(there_now(case, &missing)).with("missing", missing))
        }
        None => Some(finding(Code::ContainerConfigOther)),
    }
}

fn is_there_now(case: &Case<'_>, missing: &str) -> bool {
    case.run.missing_now.as_ref().is_some_and(|(name, read)| name == missing && matches!(read, Reading::Found(())))
}

/// What was looked up about an object that a container could not find.
fn there_now(case: &Case<'_>, missing: &str) -> Option<Evidence> {
    let (name, reading) = case.run.missing_now.as_ref().filter(|(name, _)| name == missing)?;
    let value = match reading {
        Reading::Found(()) => "is there now; the kubelet tries again by itself".to_string(),
        Reading::Absent => "still not there".to_string(),
        Reading::Unreadable(gap) => gap.reason.as_str().to_string(),
    };
    Some(Evidence::new(name.clone(), value))
}

/// `secret/x` or `configmap/x` of `secret "x" not found`.
pub fn missing_object(message: &str) -> Option<String> {
    ["secret", "configmap"].iter().find_map(|kind| {
        let (_, after) = message.split_once(&format!("{kind} \""))?;
        let (name, tail) = after.split_once('"')?;
        let name = name.rsplit('/').next().unwrap_or(name);
        (tail.trim_start().starts_with("not found") || tail.trim_start().starts_with("not registered"))
            .then(|| format!("{kind}/{name}"))
    })
}

/// Key and object of `couldn't find key token in Secret ns/creds`.
fn missing_key(message: &str) -> Option<(String, String)> {
    let (_, after) = message.split_once("couldn't find key ")?;
    let (key, object) = after.split_once(" in ")?;
    let mut words = object.split_whitespace();
    let kind = words.next()?.to_lowercase();
    let name = words.next()?.trim_end_matches([',', ';', ':']);
    Some((key.trim_matches('"').to_string(), format!("{kind}/{}", name.rsplit('/').next().unwrap_or(name))))
}

fn no_volume(case: &Case<'_>, pod: &PodFacts) -> Option<Finding> {
    if pod.source_started().is_some() {
        return None;
    }
    let on_pod = |e: &&EventFacts| e.about == ("Pod".to_string(), pod.name.clone());
    let newest = |reasons: &[&str]| {
        case.events.iter().filter(on_pod).filter(|e| reasons.contains(&e.reason.as_str())).max_by_key(|e| e.at)
    };
    let volume = newest(&["FailedMount", "FailedAttachVolume", "FailedMapVolume"]);
    let sandbox = newest(&["FailedCreatePodSandBox", "NetworkNotReady", "FailedPodSandBoxStatus"]);
    let (code, event) = match (volume, sandbox) {
        (Some(v), s) if s.is_none_or(|s| s.at <= v.at) => (Code::VolumeNotMounted, v),
        (_, Some(s)) => (Code::PodSandboxFailed, s),
        _ => return None,
    };
    let mut finding = Finding::new(code, from_event(event)).with("pod", pod.name.clone());
    if let Some(missing) = missing_object(&event.message) {
        finding = finding.seen_all(there_now(case, &missing)).with("missing", missing);
    }
    Some(finding)
}

/// A container that is not ours keeps a pod open whose `source` has ended, or the pod does not go away.
pub fn held_open(pod: &PodFacts, now: Timestamp) -> Option<Finding> {
    let ended = pod.source().and_then(|c| match &c.state {
        ContainerState::Terminated { finished, .. } => Some(*finished),
        _ => None,
    })?;
    if pod.has_ended() {
        return None;
    }
    let running = |c: &&ContainerFacts| !c.init && matches!(c.state, ContainerState::Running { .. });
    let other = pod.containers.iter().find(running)?;
    let source = format!("Pod/{} .status.containerStatuses[{}]", pod.name, other.name);
    let ago = ended.map(|t| format!("{} ago", crate::captf::time::short_duration(seconds_between(t, now))));
    Some(
        Finding::new(Code::ContainerHoldsPod, Evidence::new(source, "still running"))
            .seen(
                Evidence::new(
                    format!("Pod/{} container source", pod.name),
                    format!("ended {}", ago.unwrap_or_default()),
                )
                .at(ended),
            )
            .with("container", other.name.clone())
            .with("pod", pod.name.clone()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(missing_object("secret \"captf-creds-aws\" not found").as_deref(), Some("secret/captf-creds-aws"));
        assert_eq!(
            missing_object("MountVolume.SetUp failed for volume \"config\" : secret \"captf-run-x\" not found")
                .as_deref(),
            Some("secret/captf-run-x")
        );
        assert_eq!(missing_object("configmap \"a\" not found").as_deref(), Some("configmap/a"));
        assert_eq!(missing_object("secret \"a\" is immutable"), None);
        assert_eq!(
            missing_key("couldn't find key token in Secret team-a/creds"),
            Some(("token".to_string(), "secret/creds".to_string()))
        );
        assert_eq!(
            constraint(
                "0/5 nodes are available: 3 Insufficient memory, 2 node(s) had untolerated taint {x: y}. preemption: 0/5 nodes are available: 5 No preemption victims found."
            ),
            "3 Insufficient memory, 2 node(s) had untolerated taint {x: y}"
        );
    }
}
