//! Signs of life of a foreign holder. One that lives refuses; their absence is evidence and no proof, and
//! what could not be read is named.

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding};
use crate::captf::time::relative;
use crate::facts::lock::LockFacts;
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::reading::{Gap, Reading};
use crate::facts::unlock::Signs;

/// What the signs amount to.
pub struct SignsOfLife {
    pub refusal: Option<Finding>,
    pub evidence: Vec<Evidence>,
    pub gaps: Vec<Gap>,
    pub look_at: Vec<String>,
}

/// Judges the signs.
pub fn signs_of_life(facts: &LockFacts, signs: &Signs, now: Timestamp) -> SignsOfLife {
    let taken = facts.lease.found().and_then(|l| l.info.info()).and_then(|i| i.created);
    let mut evidence = Vec::new();
    let mut alive = Vec::new();
    let mut gaps = Vec::new();
    let near = facts.around.host.pod.as_ref().and_then(Reading::found);
    match &signs.pods {
        Some(Reading::Found(pods)) => {
            if pods.is_empty() {
                evidence.push(Evidence::new("pods of the host's name in any namespace", "none, which proves nothing"));
            }
            for (namespace, pod) in pods {
                judge_pod(namespace, pod, taken, now, &mut alive, &mut evidence);
            }
        }
        Some(Reading::Unreadable(gap)) => {
            gaps.push(gap.clone());
            if let Some(pod) = near {
                judge_pod(&facts.object.namespace, pod, taken, now, &mut alive, &mut evidence);
            }
        }
        Some(Reading::Absent) | None => {}
    }
    for (what, at) in [("the Lease last changed", signs.lease_changed), ("the state last changed", signs.state_changed)]
    {
        if let Some(at) = at {
            evidence.push(Evidence::new(what, relative(at, now)).at(Some(at)));
        }
    }
    match &signs.watched {
        Some(watched) if watched.changes.is_empty() => evidence.push(Evidence::new(
            format!("watched for {}s", watched.seconds),
            "nothing changed; a lock is never renewed, so that proves nothing",
        )),
        Some(watched) => {
            let seen =
                |change: &String| Evidence::new(format!("while watching for {}s", watched.seconds), change.clone());
            alive.extend(watched.changes.iter().map(seen));
        }
        None => {}
    }
    let mut alive = alive.into_iter();
    let refusal = alive.next().map(|first| Finding::new(Code::UnlockHolderSeen, first).seen_all(alive));
    SignsOfLife { refusal, evidence, gaps, look_at: look_at(facts) }
}

fn judge_pod(
    namespace: &str,
    pod: &PodFacts,
    taken: Option<Timestamp>,
    now: Timestamp,
    alive: &mut Vec<Evidence>,
    evidence: &mut Vec<Evidence>,
) {
    let source = format!("Pod {namespace}/{} .status.phase", pod.name);
    let phase = if pod.phase.is_empty() { "not set" } else { &pod.phase };
    let seen = Evidence::new(source, phase).at(pod.created);
    if pod.has_ended() {
        evidence.push(seen);
        return;
    }
    alive.push(seen);
    for container in pod.containers.iter().filter(|c| !c.init) {
        let ContainerState::Running { started: Some(started) } = container.state else {
            continue;
        };
        let order = match taken {
            Some(taken) if started > taken => ", after the lock was taken",
            Some(_) => ", before the lock was taken",
            None => "",
        };
        let source = format!("Pod {namespace}/{} container {}", pod.name, container.name);
        alive.push(Evidence::new(source, format!("started {}{order}", relative(started, now))).at(Some(started)));
    }
}

/// What only a person can look at.
fn look_at(facts: &LockFacts) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(Reading::Found(node)) = &facts.around.host.node {
        let state = if node.is_lost() { "not reachable" } else { "ready or known" };
        all.push(format!("Node {} has the name of the holder's host ({state})", node.name));
    }
    let holders = facts.around.host.holders_of_address();
    all.extend(holders.into_iter().map(|h| format!("the holder's host is an address of {h}")));
    let cut = facts.around.host.pods_cut_to_host.as_ref().and_then(Reading::found).into_iter().flatten();
    all.extend(
        cut.map(|pod| format!("Pod {}/{pod} has a name that is cut to the holder's host", facts.object.namespace)),
    );
    all
}
