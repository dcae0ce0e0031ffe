//! Whether a run lease or a cluster write lease is free, by the controller's rule. `renewTime` plays no role.

use jiff::{SignedDuration, Timestamp};

use crate::captf::time::seconds_between;
use crate::facts::job::JobOutcome;
use crate::facts::job_why::LeaseWait;
use crate::facts::reading::{Gap, Reading};

/// A holder whose Job does not exist yet is believed for this long.
pub const GRACE_SECONDS: i64 = 60;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseRuling {
    Free(&'static str),
    Held {
        job: String,
        why: &'static str,
        until: Option<Timestamp>,
    },
    /// A read failed, so there is no verdict.
    Unknown(Gap),
}

/// Judges one lease as of `now`, in the controller's order.
pub fn rule(wait: &LeaseWait, now: Timestamp) -> LeaseRuling {
    let lease = match &wait.lease {
        Reading::Found(lease) => lease,
        Reading::Absent => return LeaseRuling::Free("the Lease does not exist"),
        Reading::Unreadable(gap) => return LeaseRuling::Unknown(gap.clone()),
    };
    if lease.holder.is_empty() {
        return LeaseRuling::Free("it has no holder");
    }
    let age = lease.acquired.map(|at| seconds_between(at, now));
    if age.is_some_and(|age| age > lease.backstop_seconds) {
        return LeaseRuling::Free("it is older than its backstop");
    }
    let backstop = lease.acquired.map(|at| at + SignedDuration::from_secs(lease.backstop_seconds));
    let held = |why, until| LeaseRuling::Held { job: lease.holder.clone(), why, until };
    match &wait.holder {
        Reading::Unreadable(gap) => return LeaseRuling::Unknown(gap.clone()),
        Reading::Absent if age.is_none_or(|age| age <= GRACE_SECONDS) => {
            let until = lease.acquired.map(|at| at + SignedDuration::from_secs(GRACE_SECONDS + 1));
            return held("its Job does not exist yet, and it was taken less than a minute ago", until);
        }
        Reading::Found(job) if job.outcome == JobOutcome::Unfinished => return held("its Job is unfinished", backstop),
        _ => {}
    }
    match &wait.holder_pods {
        Reading::Unreadable(gap) => LeaseRuling::Unknown(gap.clone()),
        Reading::Found(pods) if pods.iter().any(|p| !p.has_ended()) => held("a pod of its Job has not ended", backstop),
        _ => LeaseRuling::Free("its Job has ended or is gone, and so have its pods"),
    }
}
