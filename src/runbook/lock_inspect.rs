//! `lock inspect`: the verdict in findings, and everything that stands beside it.

use jiff::Timestamp;

use super::code::Code;
use super::death::{death_of, from_event, from_node, unseen_end};
use super::finding::{Evidence, Finding};
use super::lock_beside;
use super::lock_foreign;
use super::lock_verdict::{Claimant, Ruling, claimant, rule};
use super::next_run::{Inputs, NextRun, next_run};
use super::policy::Policy;
use super::verdict::Verdict;
use crate::captf::time::{relative, seconds_between, short_duration, utc};
use crate::facts::job::JobFacts;
use crate::facts::lease::{Holder, LockLease};
use crate::facts::lock::LockFacts;
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::reading::{Gap, Reading};

/// What `lock inspect` says of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
    pub waiting: Vec<WaitingJob>,
}

/// A Job that waits for this lock now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingJob {
    pub job: String,
    /// `lockTimeoutSeconds` in force, and where it comes from.
    pub timeout_seconds: Option<i64>,
    pub timeout_from: String,
    /// The earliest time at which it can give up: its container's start plus the timeout.
    pub gives_up_after: Option<Timestamp>,
    /// The time at which its deadline ends it.
    pub deadline: Option<Timestamp>,
}

/// Judges the lock of one object as of `now`.
pub fn diagnose(facts: &LockFacts, now: Timestamp) -> Judgement {
    let ruling = rule(facts);
    let mut waiting = Vec::new();
    let mut findings = match &ruling {
        Ruling::Free { leftover } => vec![free(facts, *leftover)],
        Ruling::EmptyHolder => vec![empty_holder(facts)],
        Ruling::NotEvaluated { job } => not_evaluated(facts, job, now, &mut waiting),
        Ruling::Live { pod } => vec![live(facts, pod, now)],
        Ruling::Stale { pod } => stale(facts, *pod, now),
        Ruling::Foreign(foreign) => vec![lock_foreign::finding(facts, foreign, now)],
        Ruling::Undetermined(_) => Vec::new(),
    };
    // The finding of the verdict comes first, the others by severity.
    let mut beside: Vec<Finding> = findings.split_off(findings.len().min(1));
    beside.extend(lock_beside::findings(facts, &ruling, now));
    beside.sort_by_key(|f| std::cmp::Reverse(f.code.severity()));
    findings.extend(beside);
    let verdict = ruling.verdict();
    Judgement { verdict, findings, gaps: facts.gaps(), waiting }
}

/// Evidence of what the Lease says of its holder.
pub fn holder_evidence(lease: &LockLease) -> Evidence {
    let value = match &lease.holder {
        Holder::Nobody => "absent".to_string(),
        Holder::Empty => "\"\"".to_string(),
        Holder::Id(id) => id.clone(),
    };
    Evidence::new(format!("Lease/{} .spec.holderIdentity", lease.name), value)
}

fn lease_evidence(facts: &LockFacts) -> Evidence {
    match &facts.lease {
        Reading::Found(lease) => holder_evidence(lease),
        Reading::Absent => Evidence::new(format!("Lease/{}", facts.lease_name()), "not found"),
        Reading::Unreadable(gap) => Evidence::new(format!("Lease/{}", facts.lease_name()), gap.reason.as_str()),
    }
}

fn who_evidence(lease: &LockLease) -> Option<Evidence> {
    let info = lease.info.info()?;
    let source = format!("Lease/{} lock-info Who", lease.name);
    Some(Evidence::new(source, info.who.clone()).at(info.created))
}

fn free(facts: &LockFacts, leftover: bool) -> Finding {
    let code = if leftover { Code::LockFreeLeftoverInfo } else { Code::LockFree };
    let finding = Finding::new(code, lease_evidence(facts));
    match facts.lease.found().filter(|_| leftover) {
        Some(lease) => finding.seen(Evidence::new(
            format!("Lease/{} annotation app.terraform.io/lock-info", lease.name),
            "still there from an earlier lock",
        )),
        None => finding,
    }
}

fn empty_holder(facts: &LockFacts) -> Finding {
    Finding::new(Code::LockEmptyHolder, lease_evidence(facts))
}

fn not_evaluated(facts: &LockFacts, job: &JobFacts, now: Timestamp, waiting: &mut Vec<WaitingJob>) -> Vec<Finding> {
    let started = job.started.or(job.created);
    let state = match &job.failure_target {
        Some((reason, at)) => {
            let since = at.map(|t| format!(" since {}", utc(t))).unwrap_or_default();
            format!("ending ({reason}{since}), its pod has up to 10m to stop")
        }
        None => "unfinished".to_string(),
    };
    let job_seen = Evidence::new(format!("Job/{}", job.name), state).at(started);
    let base = |code| Finding::new(code, job_seen.clone()).seen(lease_evidence(facts)).with("job", job.name.clone());
    let Some(lease) = facts.lease.found() else {
        let code =
            if matches!(facts.lease, Reading::Absent) { Code::LockFreeJobRunning } else { Code::LockOfRunningJob };
        return vec![base(code)];
    };
    let code = match &lease.holder {
        Holder::Nobody => Code::LockFreeJobRunning,
        Holder::Empty => Code::JobWaitsForForeignLock,
        Holder::Id(_) => match claimant(&facts.object, lease) {
            Claimant::Own { runner, .. } if runner.job == job.name => Code::LockOfRunningJob,
            Claimant::Own { .. } => Code::LockOfEarlierPod,
            Claimant::Foreign(_) => Code::JobWaitsForForeignLock,
        },
    };
    let mut finding = base(code).seen_all(who_evidence(lease));
    if matches!(code, Code::JobWaitsForForeignLock | Code::LockOfEarlierPod) {
        let wait = waiting_job(facts, job);
        if let Some(at) = wait.gives_up_after {
            finding = finding.with("gives_up", format!("{} ({})", utc(at), relative(at, now)));
        }
        finding = finding.seen(wait_evidence(&wait));
        waiting.push(wait);
    }
    if code == Code::LockOfEarlierPod {
        finding = finding.seen_all(pod_evidence(facts.holder_pod.as_ref()));
        if let Some(id) = &job.force_unlock {
            finding = finding.seen(Evidence::new(format!("Job/{} --force-unlock", job.name), id.clone()));
        }
    }
    vec![finding]
}

fn wait_evidence(wait: &WaitingJob) -> Evidence {
    let timeout = wait.timeout_seconds.map_or("unknown".to_string(), short_duration);
    let mut value = format!("waits up to {timeout} for the lock in each step ({})", wait.timeout_from);
    if let Some(at) = wait.gives_up_after {
        value.push_str(&format!("; gives up {} at the earliest", utc(at)));
    }
    if let Some(at) = wait.deadline {
        value.push_str(&format!("; its deadline is {}", utc(at)));
    }
    Evidence::new(format!("Job/{} lock timeout", wait.job), value)
}

fn waiting_job(facts: &LockFacts, job: &JobFacts) -> WaitingJob {
    let policy = Policy::new(facts.object.kind, &facts.about, facts.around.terraform_cluster.as_ref());
    let (timeout_seconds, timeout_from) = match job.lock_timeout_seconds {
        Some(seconds) => (Some(seconds), "the Job's arguments".to_string()),
        None => match policy.lock_timeout() {
            Some(effective) => (Some(effective.value), effective.from.to_string()),
            None => (None, "inherited from a cluster that could not be read".to_string()),
        },
    };
    let pods = facts.around.active_pods.as_ref().and_then(Reading::found);
    let running_since = pods.and_then(|p| p.first()).and_then(PodFacts::source).and_then(|c| match &c.state {
        ContainerState::Running { started } => *started,
        _ => None,
    });
    let plus = |t: Timestamp, seconds: i64| t + jiff::SignedDuration::from_secs(seconds);
    WaitingJob {
        job: job.name.clone(),
        timeout_seconds,
        timeout_from,
        gives_up_after: running_since.zip(timeout_seconds).map(|(t, s)| plus(t, s)),
        deadline: job.started.zip(job.active_deadline_seconds).map(|(t, s)| plus(t, s)),
    }
}

/// What was seen of the pod that the lock names.
pub fn pod_evidence(pod: Option<&Reading<PodFacts>>) -> Option<Evidence> {
    match pod? {
        Reading::Found(pod) => {
            let node = pod.node.as_deref().map(|n| format!(" on node {n}")).unwrap_or_default();
            Some(
                Evidence::new(format!("Pod/{} .status.phase", pod.name), format!("{}{node}", pod.phase))
                    .at(pod.created),
            )
        }
        Reading::Absent => Some(Evidence::new("the pod that the lock names", "not found")),
        Reading::Unreadable(gap) => Some(Evidence::new(gap.what.clone(), gap.reason.as_str())),
    }
}

fn live(facts: &LockFacts, pod: &PodFacts, now: Timestamp) -> Finding {
    let node = facts.around.holder_node.as_ref();
    let node_is_lost = match node {
        Some(Reading::Found(node)) => node.is_lost(),
        Some(Reading::Absent) => true,
        _ => false,
    };
    let code = if pod.phase == "Unknown" || pod.reason == "NodeLost" || node_is_lost {
        Code::LockLiveNodeLost
    } else {
        match pod.deletion_deadline {
            Some(end) if end > now => Code::LockLiveTerminating,
            Some(_) => Code::LockLivePastGrace,
            None => Code::LockLive,
        }
    };
    let mut finding = Finding::new(code, lease_evidence(facts))
        .seen_all(facts.lease.found().and_then(who_evidence))
        .seen_all(pod_evidence(facts.holder_pod.as_ref()))
        .with("pod", pod.name.clone());
    if let Some(end) = pod.deletion_deadline {
        let source = format!("Pod/{} .metadata.deletionTimestamp", pod.name);
        let grace = pod.grace_seconds.map_or("600s".to_string(), |s| format!("{s}s"));
        let left = if end > now {
            format!("{} of its {grace} left", short_duration(seconds_between(now, end)))
        } else {
            format!("its {grace} ended {} ago", short_duration(seconds_between(end, now)))
        };
        finding = finding.seen(Evidence::new(source, left.clone()).at(Some(end))).with("left", left);
    }
    if let Some(name) = &pod.node {
        finding = finding.with("node", name.clone());
    }
    match node {
        Some(Reading::Found(node)) => finding.seen(from_node(node)),
        Some(Reading::Absent) => finding.seen(Evidence::new(
            format!("Node/{}", pod.node.clone().unwrap_or_default()),
            "not found (deleting a Node object does not stop a machine)",
        )),
        _ => finding,
    }
}

fn stale(facts: &LockFacts, pod: Option<&PodFacts>, now: Timestamp) -> Vec<Finding> {
    let Some(lease) = facts.lease.found() else {
        return Vec::new();
    };
    let no_events = Vec::new();
    let events = facts.around.holder_events.as_ref().and_then(Reading::found).unwrap_or(&no_events);
    let Claimant::Own { runner, pod: pod_name } = claimant(&facts.object, lease) else {
        return Vec::new();
    };
    let jobs = facts.jobs.found().map(Vec::as_slice).unwrap_or_default();
    let job = jobs.iter().find(|j| j.name == runner.job);
    let death = death_of(pod, job, events);
    let died = match &death {
        Some(death) => death.cause.to_string(),
        None => "how it ended is no longer to be seen".to_string(),
    };
    let common = |code| {
        Finding::new(code, holder_evidence(lease))
            .seen_all(who_evidence(lease))
            .seen(match pod {
                Some(pod) => Evidence::new(format!("Pod/{pod_name} .status.phase"), pod.phase.clone()),
                None => Evidence::new(format!("Pod/{pod_name}"), "not found"),
            })
            .with("pod", pod_name.clone())
            .with("job", runner.job.clone())
            .with("died", died.clone())
    };
    let mut findings = Vec::new();
    let run = when_cleared(facts, now);
    let blocked = lock_beside::blocks_the_controllers_unlock(facts);
    let main = match (&run, blocked) {
        (_, Some(why)) => common(Code::LockStaleKept).seen(why),
        (NextRun::Due { what, at, why }, None) => {
            let when = at.map_or("as soon as its turn comes".to_string(), |at| {
                if at <= now { "now due".to_string() } else { format!("{} ({})", utc(at), relative(at, now)) }
            });
            common(Code::LockStale)
                .seen(Evidence::new("cleared by", what.clone()).at(*at))
                .seen_all(why.clone())
                .with("what", what.clone())
                .with("when", when)
        }
        (NextRun::Nothing { why }, None) => common(Code::LockStaleKept).seen_all(why.clone()),
        (NextRun::Unknown(gap), None) => common(Code::LockStaleKept).seen(Evidence::new(
            gap.what.clone(),
            format!("{}, so when it is cleared is unknown", gap.reason.as_str()),
        )),
    };
    findings.push(main.seen_all(death.iter().flat_map(|d| d.evidence.clone())));
    let signs = unseen_end(pod, facts.around.holder_node.as_ref(), events);
    if !signs.is_empty() {
        findings.push(common(Code::LockStaleNodeLost).seen_all(signs));
    }
    if !facts.live {
        let source = format!("Lease/{} and Pod/{pod_name}", lease.name);
        findings.push(Finding::new(
            Code::LockStaleSnapshot,
            Evidence::new(source, "read from a snapshot, in an unknown order"),
        ));
    }
    findings
}

/// What runs next for the object, as the controller would decide.
pub fn when_cleared(facts: &LockFacts, now: Timestamp) -> NextRun {
    let jobs = facts.jobs.found().map(Vec::as_slice).unwrap_or_default();
    let inputs = Inputs {
        object: &facts.object,
        about: &facts.about,
        jobs,
        owner_cluster: facts.around.owner_cluster.as_ref(),
        policy: Policy::new(facts.object.kind, &facts.about, facts.around.terraform_cluster.as_ref()),
    };
    next_run(&inputs, now)
}

/// Events worth showing with a lock, oldest first.
pub fn shown_events<'a>(events: impl IntoIterator<Item = &'a crate::facts::event::EventFacts>) -> Vec<Evidence> {
    let mut shown: Vec<_> = events.into_iter().collect();
    shown.sort_by_key(|e| e.at);
    shown.into_iter().map(from_event).collect()
}
