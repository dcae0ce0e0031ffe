//! A lock that is not one of the object's own runner pods': which kind of stranger, and what can be
//! seen of its host. What is seen is evidence for a person; it never makes the lock safe to break.

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::lock_inspect::holder_evidence;
use super::lock_verdict::Foreign;
use crate::captf::time::relative;
use crate::facts::lock::LockFacts;
use crate::facts::reading::Reading;

/// The finding of a foreign lock.
pub fn finding(facts: &LockFacts, foreign: &Foreign, now: Timestamp) -> Finding {
    let Some(lease) = facts.lease.found() else {
        return Finding::new(Code::LockForeignNoInfo, Evidence::new(facts.lease_name(), "unreadable"));
    };
    let pod_is_there = matches!(facts.around.host.pod, Some(Reading::Found(_)));
    let code = match foreign {
        Foreign::NoInfo => Code::LockForeignNoInfo,
        Foreign::UnreadableInfo(_) => Code::LockForeignBadInfo,
        Foreign::NoHost => Code::LockForeignNoHost,
        Foreign::Lookalike(_) => Code::LockForeignLookalike,
        Foreign::RunnerOfAnother(_) => Code::LockForeignPod,
        Foreign::Host(_) if pod_is_there => Code::LockForeignPod,
        Foreign::Host(_) => Code::LockForeignHost,
    };
    let mut finding = Finding::new(code, holder_evidence(lease));
    let annotation = format!("Lease/{} annotation app.terraform.io/lock-info", lease.name);
    match foreign {
        Foreign::NoInfo => finding = finding.seen(Evidence::new(annotation, "absent or empty")),
        Foreign::UnreadableInfo(why) => finding = finding.seen(Evidence::new(annotation, *why)),
        _ => {}
    }
    if let Some(info) = lease.info.info() {
        let source = format!("Lease/{} lock-info", lease.name);
        finding = finding.seen(Evidence::new(format!("{source} Who"), info.who.clone()));
        finding = finding.with("who", info.who.clone());
        if let Some(host) = info.host().filter(|h| !h.is_empty()) {
            finding = finding.with("host", host);
        }
        if let Some(created) = info.created {
            finding =
                finding.seen(Evidence::new(format!("{source} Created"), relative(created, now)).at(Some(created)));
        }
    }
    host_signs(facts, finding, now)
}

fn host_signs(facts: &LockFacts, mut finding: Finding, now: Timestamp) -> Finding {
    let namespace = &facts.object.namespace;
    match &facts.around.host.pod {
        Some(Reading::Found(pod)) => {
            let age = pod.created.map(|t| format!(", created {}", relative(t, now))).unwrap_or_default();
            let source = format!("Pod {namespace}/{}", pod.name);
            finding = finding
                .seen(Evidence::new(source, format!("{}{age}", pod.phase)).at(pod.created))
                .with("host_pod", pod.name.clone());
        }
        Some(Reading::Absent) => {
            finding = finding
                .seen(Evidence::new(format!("a pod of that name in {namespace}"), "not found, which proves nothing"));
        }
        Some(Reading::Unreadable(_)) | None => {}
    }
    match &facts.around.host.node {
        Some(Reading::Found(node)) => {
            let state = if node.is_lost() { "not reachable" } else { "exists" };
            finding = finding
                .seen(Evidence::new(format!("Node {}", node.name), state).at(node.last_heartbeat))
                .with("host_node", node.name.clone());
        }
        Some(Reading::Absent | Reading::Unreadable(_)) | None => {}
    }
    if let Some(Reading::Found(places)) = &facts.around.host.pods_elsewhere
        && !places.is_empty()
    {
        finding = finding.seen(Evidence::new("pods of that name in other namespaces", places.join(", ")));
    }
    if let Some(Reading::Found(pods)) = &facts.around.host.pods_cut_to_host
        && !pods.is_empty()
    {
        let value = format!("{}: the host is a cut form of that name, which is a hint and no proof", pods.join(", "));
        finding = finding.seen(Evidence::new(format!("Pods in {namespace}"), value));
    }
    let holders = facts.around.host.holders_of_address();
    if !holders.is_empty() {
        finding = finding.seen(Evidence::new("the host is an address of", holders.join(", ")));
    } else if facts.around.host.nodes_with_address.is_some() {
        finding = finding.seen(Evidence::new("the host as an address", "of no pod or node that can be seen"));
    }
    let waiting =
        facts.jobs.found().into_iter().flatten().filter(|j| j.outcome == crate::facts::job::JobOutcome::Failed);
    if let Some(job) = waiting.max_by_key(|j| j.finished) {
        finding =
            finding.seen(Evidence::new(format!("Job/{}", job.name), "failed, the newest that did").at(job.finished));
    }
    finding
}
