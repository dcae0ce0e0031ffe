//! An image that cannot be pulled: which container waits, and for what kind of fault.
//!
//! The words come from the kubelet and the registry; the newest `Failed` event says more than the waiting
//! message, which turns generic after the first try.

use super::code::Code;
use super::death::from_event;
use super::finding::{Evidence, Finding};
use crate::captf::names::Operation;
use crate::facts::event::EventFacts;
use crate::facts::job::{JobFacts, JobOutcome};
use crate::facts::pod::{ContainerFacts, ContainerState, PodFacts};

/// Waiting reasons that mean that the image is not there.
const REASONS: [&str; 7] = [
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
];

/// The container that waits for its image, init containers first.
pub fn waiting_container(pod: &PodFacts) -> Option<(&ContainerFacts, &str, &str)> {
    pod.containers.iter().find_map(|c| match &c.state {
        ContainerState::Waiting { reason, message } if REASONS.contains(&reason.as_str()) => {
            Some((c, reason.as_str(), message.as_str()))
        }
        _ => None,
    })
}

/// Findings about the image of a pod; none when no container waits for one.
pub fn findings(job: &JobFacts, pod: &PodFacts, events: &[EventFacts]) -> Vec<Finding> {
    let Some((container, reason, message)) = waiting_container(pod) else {
        return Vec::new();
    };
    let list = if container.init { "initContainerStatuses" } else { "containerStatuses" };
    let source = format!("Pod/{} .status.{list}[{}].state.waiting", pod.name, container.name);
    let event = newest_failure(pod, events);
    let code = fault(reason, &format!("{message}\n{}", event.map(|e| e.message.as_str()).unwrap_or_default()));
    let value = if message.is_empty() { reason.to_string() } else { format!("{reason}: {message}") };
    let mut finding = Finding::new(code, Evidence::new(source.clone(), value))
        .with("container", container.name.clone())
        .with("job", job.name.clone())
        .with("pod", pod.name.clone())
        .with("reason", reason);
    match event {
        Some(event) => finding = finding.seen(from_event(event)),
        None => finding = finding.seen(Evidence::new("events", "none left about the pull (they last about an hour)")),
    }
    if let Some(image) = &container.image {
        finding = finding
            .seen(Evidence::new(format!("Pod/{} container {} .image", pod.name, container.name), image.clone()))
            .with("image", image.clone());
    }
    if let Some(node) = &pod.node {
        finding = finding.with("node", node.clone());
    }
    let mut findings = vec![finding];
    if container.init && container.name == "runner" {
        findings.push(
            Finding::new(Code::RunnerImageClusterWide, Evidence::new(source, reason)).with("pod", pod.name.clone()),
        );
    }
    let falls_back =
        matches!(job.op, Some(Operation::Destroy | Operation::Refresh | Operation::Drift | Operation::Restore));
    if falls_back
        && !container.init
        && job.outcome == JobOutcome::Unfinished
        && let Some(left) = job.image_fallbacks.filter(|n| *n > 0)
    {
        let source = format!("Job/{} annotation captf.io/image-fallbacks", job.name);
        findings.push(Finding::new(Code::ImageFallbackLeft, Evidence::new(source, format!("{left} left to try"))));
    }
    findings
}

fn newest_failure<'a>(pod: &PodFacts, events: &'a [EventFacts]) -> Option<&'a EventFacts> {
    let about_pull = |e: &&EventFacts| {
        e.about == ("Pod".to_string(), pod.name.clone())
            && matches!(e.reason.as_str(), "Failed" | "InspectFailed" | "ErrImageNeverPull")
            && (e.message.contains("pull image") || e.message.contains("image") && !e.message.starts_with("Error:"))
    };
    events.iter().find(about_pull)
}

/// The kind of fault. What a registry says about rights comes before what it says about existence, because it
/// hides the one behind the other.
fn fault(reason: &str, text: &str) -> Code {
    let text = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|w| text.contains(w));
    if reason == "ErrImageNeverPull" {
        Code::PullNever
    } else if reason == "InvalidImageName" || says(&["invalid reference format", "couldn't parse image"]) {
        Code::PullNameInvalid
    } else if says(&["toomanyrequests", "too many requests", "rate limit", " 429"]) {
        Code::PullRateLimited
    } else if says(&["no match for platform", "no matching manifest", "exec format error", "image operating system"]) {
        Code::PullPlatform
    } else if says(&["x509:", "tls: ", "certificate", "http response to https client"]) {
        Code::PullTls
    } else if says(&["no such host", "server misbehaving", "name resolution", "lookup "]) && !says(&["i/o timeout"]) {
        Code::PullDns
    } else if says(&["unauthorized", " 401", "authentication required", "no basic auth"]) {
        Code::PullUnauthorized
    } else if says(&["forbidden", " 403", "access denied", "denied:", "insufficient_scope"]) {
        Code::PullDenied
    } else if says(&["not found", "manifest unknown", "name unknown", " 404", "does not exist"]) {
        Code::PullNotFound
    } else if says(&[
        "timeout",
        "deadline exceeded",
        "connection refused",
        "connection reset",
        "no route to host",
        "unreachable",
        " 50",
        "eof",
    ]) {
        Code::PullUnreachable
    } else {
        Code::PullOther
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fault_is_told_by_the_registrys_own_words() {
        let pull = |tail: &str| {
            format!(
                "Failed to pull image \"registry.example.com/t/r:1\": rpc error: code = Unknown desc = failed to pull and unpack image: {tail}"
            )
        };
        for (tail, code) in [
            ("registry.example.com/t/r:1: not found", Code::PullNotFound),
            ("manifest unknown: manifest tagged by \"1\" is not found", Code::PullNotFound),
            (
                "unexpected status from HEAD request to https://registry.example.com/v2/t/r/manifests/1: 401 Unauthorized",
                Code::PullUnauthorized,
            ),
            (
                "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
                Code::PullDenied,
            ),
            ("unexpected status: 403 Forbidden", Code::PullDenied),
            (
                "429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit",
                Code::PullRateLimited,
            ),
            ("tls: failed to verify certificate: x509: certificate signed by unknown authority", Code::PullTls),
            ("http: server gave HTTP response to HTTPS client", Code::PullTls),
            ("dial tcp: lookup registry.example.com on 10.96.0.10:53: no such host", Code::PullDns),
            ("dial tcp: lookup registry.example.com on 10.96.0.10:53: read udp: i/o timeout", Code::PullUnreachable),
            ("dial tcp 203.0.113.9:443: i/o timeout", Code::PullUnreachable),
            ("dial tcp 203.0.113.9:443: connect: connection refused", Code::PullUnreachable),
            ("unexpected status: 503 Service Unavailable", Code::PullUnreachable),
            ("no match for platform in manifest: not found", Code::PullPlatform),
            ("something new", Code::PullOther),
        ] {
            assert_eq!(fault("ErrImagePull", &pull(tail)), code, "{tail}");
        }
        assert_eq!(
            fault("InvalidImageName", "Failed to apply default image tag \"A:b:c\": couldn't parse image name"),
            Code::PullNameInvalid
        );
        assert_eq!(
            fault("ErrImageNeverPull", "Container image \"x\" is not present with pull policy of Never"),
            Code::PullNever
        );
        assert_eq!(fault("SignatureValidationFailed", "SignatureValidationFailed"), Code::PullOther);
    }
}
