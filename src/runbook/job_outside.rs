//! What ended a run from outside: a drain, an eviction, preemption, a lost node.

use super::code::Code;
use super::death::{from_event, from_node};
use super::finding::{Evidence, Finding};
use super::job_case::Case;
use crate::facts::event::EventFacts;
use crate::facts::reading::Reading;

/// What ended the run from outside: a condition of the pod is a cause only once the pod has ended.
pub fn from_outside(case: &Case<'_>) -> Option<Finding> {
    let pod = case.newest_pod();
    let of_pod = pod.and_then(|p| {
        let field = |f: &str| format!("Pod/{} {f}", p.name);
        let said = |reason: &str, message: &str| {
            if message.is_empty() { reason.to_string() } else { format!("{reason}: {message}") }
        };
        if p.reason == "Evicted" {
            return Some((Code::RunEvicted, Evidence::new(field(".status.reason"), said("Evicted", &p.message))));
        }
        let ended = p.has_ended() || p.deletion_deadline.is_some();
        let d = p.disruption.as_ref().filter(|_| ended)?;
        let code = match d.reason.as_str() {
            "EvictionByEvictionAPI" => Code::RunDrained,
            "PreemptionByScheduler" => Code::RunPreempted,
            "DeletionByTaintManager" => Code::RunNodeTainted,
            "DeletionByPodGC" => Code::RunNodeGone,
            "TerminationByKubelet" => Code::RunEvicted,
            _ => Code::RunDisruptedOther,
        };
        Some((code, Evidence::new(field(".status.conditions[DisruptionTarget]"), said(&d.reason, &d.message)).at(d.at)))
    });
    let of_reason = || {
        let p = pod.filter(|p| !p.reason.is_empty() && p.reason != "DeadlineExceeded")?;
        let lost = matches!(p.reason.as_str(), "NodeLost" | "NodeStatusUnknown");
        let code = if lost { Code::RunNodeGone } else { Code::RunDisruptedOther };
        let value = if p.message.is_empty() { p.reason.clone() } else { format!("{}: {}", p.reason, p.message) };
        Some((code, Evidence::new(format!("Pod/{} .status.reason", p.name), value)))
    };
    let of_events = || {
        const SIGNS: [(&str, Code); 5] = [
            ("Evicted", Code::RunEvicted),
            ("Preempted", Code::RunPreempted),
            ("TaintManagerEviction", Code::RunNodeTainted),
            ("NodeNotReady", Code::RunNodeGone),
            ("NodeShutdown", Code::RunEvicted),
        ];
        SIGNS.iter().find_map(|(reason, code)| {
            let event = case.events.iter().find(|e: &&EventFacts| e.reason == *reason)?;
            Some((*code, from_event(event)))
        })
    };
    let (code, evidence) = of_pod.or_else(of_reason).or_else(of_events)?;
    let mut finding = Finding::new(code, evidence).with("job", case.job.name.clone());
    if let Some(pod) = pod {
        finding = finding
            .with("pod", pod.name.clone())
            .with("reason", pod.disruption.as_ref().map_or(pod.reason.clone(), |d| d.reason.clone()));
        if let Some(node) = &pod.node {
            finding = finding.with("node", node.clone());
        }
    }
    match &case.run.node {
        Some(Reading::Found(node)) => finding = finding.seen(from_node(node)),
        Some(Reading::Absent) => finding = finding.seen(Evidence::new("Node of the pod", "not found")),
        _ => {}
    }
    if case.job.marks.interrupted {
        finding = finding.seen(
            Evidence::new(format!("Job/{}", case.job.name), "interrupted: not counted as a failure")
                .at(case.job.finished),
        );
    }
    Some(finding)
}
