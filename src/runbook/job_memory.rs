//! Memory: a container that the kernel killed for lack of it, a child process that was killed, and how much was in
//! use, which only the kernel tells: its message, where the node passes it on as an event.

use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;

use super::code::Code;
use super::death::from_event;
use super::finding::{Evidence, Finding};
use super::job_case::Case;
use super::job_end::log_place;
use crate::facts::event::EventFacts;
use crate::facts::pod::{ContainerFacts, ContainerState, PodFacts};
use crate::facts::reading::Reading;

/// An event of the node this far from the end of the container is taken to be about it, which is likely.
const NEAR_SECONDS: i64 = 120;

/// `Killed process 4242 (terraform) total-vm:9kB, anon-rss:9kB, file-rss:9kB, shmem-rss:9kB`, as the kernel writes it.
static KILLED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"Killed process \d+ \((?P<name>[^)]*)\).*?anon-rss:(?P<anon>\d+)kB(?:, file-rss:(?P<file>\d+)kB)?(?:, shmem-rss:(?P<shmem>\d+)kB)?",
    )
    .expect("the pattern is fixed and its test compiles it")
});

/// An OOM kill with any exit code, or a child process that was killed.
pub fn findings(case: &Case<'_>) -> Option<Finding> {
    let pod = case.newest_pod();
    pod.and_then(|pod| out_of_memory(case, pod)).or_else(|| {
        let line = case.log()?.killed.clone()?;
        let source = pod.and_then(PodFacts::source);
        let limit = source.and_then(|c| c.memory_limit.clone());
        let memory = limit.map(|l| Evidence::new("memory limit of container source", l));
        let finding = Finding::new(Code::ChildKilled, Evidence::new(format!("log of {}", log_place(case)), line))
            .seen_all(memory)
            .with("job", case.job.name.clone());
        Some(finding.seen_all(usage(case, source.and_then(ended_at))))
    })
}

fn out_of_memory(case: &Case<'_>, pod: &PodFacts) -> Option<Finding> {
    let (container, exit_code, finished) = pod.containers.iter().find_map(|c| match &c.state {
        ContainerState::Terminated { reason, exit_code, finished, .. } if reason == "OOMKilled" => {
            Some((c, exit_code, *finished))
        }
        _ => None,
    })?;
    let list = if container.init { "initContainerStatuses" } else { "containerStatuses" };
    let source = format!("Pod/{} .status.{list}[{}].state.terminated", pod.name, container.name);
    let limit = container.memory_limit.clone();
    let memory = Evidence::new(
        format!("Pod/{} container {} memory limit", pod.name, container.name),
        limit.clone().unwrap_or_else(|| "none: the node ran out".to_string()),
    );
    let seen = Evidence::new(source, format!("OOMKilled, exit code {exit_code}")).at(finished);
    let mut usage = usage(case, finished);
    match usage.len() {
        0 => usage.push(Evidence::new("memory in use at the end", unknown(case, pod))),
        1 => usage.push(Evidence::new("memory in use at the end", "unknown: the event names no size")),
        _ => {}
    }
    Some(
        Finding::new(Code::OutOfMemory, seen)
            .seen(memory)
            .seen_all(usage)
            .with("container", container.name.clone())
            .with("pod", pod.name.clone())
            .with("limit", limit.unwrap_or_else(|| "no limit".to_string())),
    )
}

/// Why the use of memory is not known.
fn unknown(case: &Case<'_>, pod: &PodFacts) -> String {
    let node = pod.node.as_deref().unwrap_or("unknown");
    match &case.run.node_events {
        Some(Reading::Found(_)) => format!("unknown: no event on Node {node} tells, and they last about an hour"),
        Some(Reading::Unreadable(_)) => format!("unknown: the events on Node {node} could not be read"),
        _ => "unknown: nothing was read that tells".to_string(),
    }
}

/// The node's event about a kill near that time, and the memory that it names.
pub fn usage(case: &Case<'_>, finished: Option<Timestamp>) -> Vec<Evidence> {
    let events = case.run.node_events.as_ref().and_then(Reading::found).map(Vec::as_slice).unwrap_or_default();
    let distance = |event: &EventFacts| {
        let seconds = finished?.duration_since(event.at?).as_secs().abs();
        (seconds <= NEAR_SECONDS).then_some(seconds)
    };
    let mut near: Vec<(i64, &EventFacts)> = events
        .iter()
        .filter(|e| matches!(e.reason.as_str(), "OOMKilling" | "SystemOOM"))
        .filter_map(|e| Some((distance(e)?, e)))
        .collect();
    near.sort_by_key(|(seconds, _)| *seconds);
    let Some((_, nearest)) = near.first() else {
        return Vec::new();
    };
    let mut seen = vec![from_event(nearest)];
    if let Some((process, kib)) = resident(&nearest.message) {
        let of = match near.len() {
            1 => "the only kill on the node at that time".to_string(),
            n => format!("the nearest of {n} kills on the node at that time"),
        };
        seen.push(Evidence::new(
            "memory in use at the end, likely",
            format!("{} by process {process} ({of})", binary_size(kib)),
        ));
    }
    seen
}

/// When a container ended.
pub fn ended_at(container: &ContainerFacts) -> Option<Timestamp> {
    match &container.state {
        ContainerState::Terminated { finished, .. } => *finished,
        _ => None,
    }
}

/// The process of a kernel message and its resident memory in KiB: anonymous, of files and shared.
fn resident(message: &str) -> Option<(String, i64)> {
    let found = KILLED.captures(message)?;
    let kib = |name: &str| found.name(name).and_then(|m| m.as_str().parse::<i64>().ok()).unwrap_or_default();
    Some((found["name"].to_string(), kib("anon").saturating_add(kib("file")).saturating_add(kib("shmem"))))
}

/// `512Ki`, `310.5Mi`, `1.9Gi`.
fn binary_size(kib: i64) -> String {
    let tenths = |unit: i64, name: &str| format!("{}.{}{name}", kib / unit, kib % unit * 10 / unit).replace(".0", "");
    match kib {
        ..1024 => format!("{kib}Ki"),
        1024..1_048_576 => tenths(1024, "Mi"),
        _ => tenths(1_048_576, "Gi"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_read() {
        let cgroup = "Memory cgroup out of memory: Killed process 4242 (terraform-provi) total-vm:6123456kB, anon-rss:2031616kB, file-rss:1024kB, shmem-rss:0kB, UID:65532 pgtables:4321kB oom_score_adj:999";
        for (message, read) in [
            (cgroup, Some(("terraform-provi", 2_032_640))),
            ("Killed process 1 (x) total-vm:3kB, anon-rss:2kB, file-rss:1kB", Some(("x", 3))),
            ("Killed process 1 (x) total-vm:3kB, anon-rss:2kB", Some(("x", 2))),
            ("System OOM encountered, victim process: terraform, pid: 4242", None),
            ("Killed process 1 (x)", None),
        ] {
            assert_eq!(resident(message), read.map(|(name, kib)| (name.to_string(), kib)), "{message}");
        }
        let sizes = [(512, "512Ki"), (1024, "1Mi"), (317_952, "310.5Mi"), (2_032_640, "1.9Gi"), (2_097_152, "2Gi")];
        for (kib, text) in sizes {
            assert_eq!(binary_size(kib), text);
        }
    }
}
