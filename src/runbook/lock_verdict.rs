//! The controller's verdict on a state lock, step by step as the controller takes them.
//!
//! No Job unfinished, then the Lease, then the pod that the lock names, each read live and in that
//! order. Ages play no role. What could not be read makes the verdict undetermined, never free.

use crate::captf::lock_info::{LockInfo, LockInfoReading};
use crate::captf::own_pod::{RunnerPod, is_own_job, looks_like_runner_pod, own_pod};
use crate::facts::job::{JobFacts, active_job};
use crate::facts::lease::{Holder, LockLease};
use crate::facts::lock::LockFacts;
use crate::facts::object::ObjectRef;
use crate::facts::pod::PodFacts;
use crate::facts::reading::{Gap, Reading};

use super::verdict::Verdict;

/// Who the lock says holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claimant {
    /// A runner pod of this very object.
    Own { pod: String, runner: RunnerPod },
    /// Anybody else, or nobody that can be named.
    Foreign(Foreign),
}

/// Why a lock is foreign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreign {
    NoInfo,
    UnreadableInfo(&'static str),
    /// Who is empty, has no `@`, or nothing after it.
    NoHost,
    /// A runner pod of another object.
    RunnerOfAnother(String),
    /// Looks like one of ours and is not: a Job name, a wrong tail, a rebuilt name that differs.
    Lookalike(String),
    Host(String),
}

/// The ruling, with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling<'a> {
    Free {
        leftover: bool,
    },
    EmptyHolder,
    NotEvaluated {
        job: &'a JobFacts,
    },
    Live {
        pod: &'a PodFacts,
    },
    /// `pod` is there when it ended and is still listed.
    Stale {
        pod: Option<&'a PodFacts>,
    },
    Foreign(Foreign),
    Undetermined(Vec<Gap>),
}

impl Ruling<'_> {
    /// The public word.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Free { .. } => Verdict::Free,
            Self::EmptyHolder => Verdict::EmptyHolder,
            Self::NotEvaluated { .. } => Verdict::NotEvaluated,
            Self::Live { .. } => Verdict::Live,
            Self::Stale { .. } => Verdict::Stale,
            Self::Foreign(_) => Verdict::Foreign,
            Self::Undetermined(_) => Verdict::Undetermined,
        }
    }
}

/// Judges one object's lock.
pub fn rule(facts: &LockFacts) -> Ruling<'_> {
    let jobs = match &facts.jobs {
        Reading::Found(jobs) => jobs.as_slice(),
        Reading::Absent => &[],
        Reading::Unreadable(gap) => return Ruling::Undetermined(with_lease_gap(gap, facts)),
    };
    if let Some(job) = active_job(jobs) {
        return Ruling::NotEvaluated { job };
    }
    let lease = match &facts.lease {
        Reading::Absent => return Ruling::Free { leftover: false },
        Reading::Unreadable(gap) => return Ruling::Undetermined(vec![gap.clone()]),
        Reading::Found(lease) => lease,
    };
    match lease.holder {
        Holder::Nobody => return Ruling::Free { leftover: lease.info != LockInfoReading::Missing },
        Holder::Empty => return Ruling::EmptyHolder,
        Holder::Id(_) => {}
    }
    match claimant(&facts.object, lease) {
        Claimant::Foreign(foreign) => Ruling::Foreign(foreign),
        Claimant::Own { .. } => match &facts.holder_pod {
            Some(Reading::Absent) => Ruling::Stale { pod: None },
            Some(Reading::Found(pod)) if pod.has_ended() => Ruling::Stale { pod: Some(pod) },
            Some(Reading::Found(pod)) => Ruling::Live { pod },
            Some(Reading::Unreadable(gap)) => Ruling::Undetermined(vec![gap.clone()]),
            None => Ruling::Undetermined(Vec::new()),
        },
    }
}

fn with_lease_gap(jobs: &Gap, facts: &LockFacts) -> Vec<Gap> {
    std::iter::once(jobs).chain(facts.lease.gap()).cloned().collect()
}

/// Who the lock-info names, by the own-pod rule.
pub fn claimant(object: &ObjectRef, lease: &LockLease) -> Claimant {
    let info = match &lease.info {
        LockInfoReading::Missing => return Claimant::Foreign(Foreign::NoInfo),
        LockInfoReading::Unreadable(why) => return Claimant::Foreign(Foreign::UnreadableInfo(why)),
        LockInfoReading::Decoded { info, .. } => info,
    };
    let Some(host) = info.host().filter(|h| !h.is_empty()) else {
        return Claimant::Foreign(Foreign::NoHost);
    };
    if let Some(runner) = own_pod(object.kind, &object.name, host) {
        return Claimant::Own { pod: host.to_string(), runner };
    }
    let own_prefix = format!("captf-{}-{}-", object.kind.kindshort(), object.name);
    Claimant::Foreign(if is_own_job(object.kind, &object.name, host) || host.starts_with(&own_prefix) {
        Foreign::Lookalike(host.to_string())
    } else if looks_like_runner_pod(host) {
        Foreign::RunnerOfAnother(host.to_string())
    } else if host.starts_with("captf-") {
        Foreign::Lookalike(host.to_string())
    } else {
        Foreign::Host(host.to_string())
    })
}

/// The ID that the controller would pass to a Job, which is the annotation's where it has one.
pub fn controllers_lock_id(lease: &LockLease) -> Option<&str> {
    let Holder::Id(holder) = &lease.holder else {
        return None;
    };
    let by_info = lease.info.info().map(|i: &LockInfo| i.id.as_str()).filter(|id| !id.is_empty());
    Some(by_info.unwrap_or(holder))
}

/// The annotation's ID where it differs from `holderIdentity`, the one that counts for an unlock.
pub fn differing_id(lease: &LockLease) -> Option<&str> {
    let Holder::Id(holder) = &lease.holder else {
        return None;
    };
    controllers_lock_id(lease).filter(|id| id != holder)
}
