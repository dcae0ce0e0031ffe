//! Freeing a claim whose holder does not renew any more.
//!
//! Read, wait on our own clock, read again: any change means that the holder lives. The steal carries
//! the resourceVersion of the second read and is released at once. It proves that nothing renewed, not that nothing
//! will: a stopped process looks the same as a dead one.

use std::time::Duration;

use super::lease::{ClaimLease, Clock, LeaseKey, Leases};
use super::protocol::Terms;
use crate::facts::reading::{Gap, Reading};
use crate::facts::write::WriteFailure;

/// How a reclaim ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Reclaimed {
    /// Freed, after watching for so long.
    Freed { watched: Duration },
    /// It was gone before anything was written.
    WasFree,
    /// The holder renewed, or woke up: nothing was taken from it.
    Alive(Box<ClaimLease>),
    /// Another holder than the one that was confirmed.
    AnotherHolder(Box<ClaimLease>),
    /// A read or write failed before anything was taken.
    Failed(Gap),
    /// The claim names us now and could not be deleted.
    Stays(Gap),
}

/// How long a claim has to be silent: its own duration, never less than the terms say.
pub fn watch_time(lease: &ClaimLease, terms: Terms) -> Duration {
    let own = lease.duration_seconds.and_then(|s| u64::try_from(s).ok()).map_or(Duration::ZERO, Duration::from_secs);
    own.max(terms.watch_at_least)
}

/// Reclaims a claim whose holder was typed back as `holder` (empty for none).
pub async fn reclaim<L: Leases, C: Clock>(
    leases: &L,
    clock: &C,
    key: &LeaseKey,
    holder: &str,
    me: &str,
    terms: Terms,
) -> Reclaimed {
    let first = match leases.read(key).await {
        Reading::Found(lease) => lease,
        Reading::Absent => return Reclaimed::WasFree,
        Reading::Unreadable(gap) => return Reclaimed::Failed(gap),
    };
    if first.holder.as_deref().unwrap_or_default() != holder {
        return Reclaimed::AnotherHolder(Box::new(first));
    }
    let watched = watch_time(&first, terms);
    clock.sleep(watched).await;
    let second = match leases.read(key).await {
        Reading::Found(lease) => lease,
        Reading::Absent => return Reclaimed::WasFree,
        Reading::Unreadable(gap) => return Reclaimed::Failed(gap),
    };
    if second.uid != first.uid || second.resource_version != first.resource_version {
        return Reclaimed::Alive(Box::new(second));
    }
    match steal(leases, clock, second, me).await {
        Ok(stolen) => free(leases, stolen, watched).await,
        Err(ended) => ended,
    }
}

/// The steal: exactly what was confirmed becomes ours, or nothing does.
async fn steal<L: Leases, C: Clock>(
    leases: &L,
    clock: &C,
    confirmed: ClaimLease,
    me: &str,
) -> Result<ClaimLease, Reclaimed> {
    let now = clock.now();
    let mut ours = confirmed;
    ours.holder = Some(me.to_string());
    ours.transitions = Some(ours.transitions.unwrap_or(0).saturating_add(1));
    (ours.acquired, ours.renewed) = (Some(now), Some(now));
    match leases.update(&ours).await {
        Ok(stolen) => Ok(stolen),
        Err(WriteFailure::Refused(gap)) => Err(Reclaimed::Failed(gap)),
        Err(WriteFailure::NotFound) => Err(Reclaimed::WasFree),
        Err(WriteFailure::Conflict | WriteFailure::Exists) => Err(after_conflict(leases, &ours.key).await),
        // Whether it went through shows only in the Lease.
        Err(WriteFailure::NoAnswer(gap)) => match leases.read(&ours.key).await {
            Reading::Found(lease) if lease.holder.as_deref() == Some(me) => Ok(lease),
            Reading::Found(lease) if lease.resource_version != ours.resource_version => {
                Err(Reclaimed::Alive(Box::new(lease)))
            }
            Reading::Absent => Err(Reclaimed::WasFree),
            Reading::Found(_) | Reading::Unreadable(_) => Err(Reclaimed::Failed(gap)),
        },
    }
}

async fn after_conflict<L: Leases>(leases: &L, key: &LeaseKey) -> Reclaimed {
    match leases.read(key).await {
        Reading::Found(lease) => Reclaimed::Alive(Box::new(lease)),
        Reading::Absent => Reclaimed::WasFree,
        Reading::Unreadable(gap) => Reclaimed::Failed(gap),
    }
}

async fn free<L: Leases>(leases: &L, stolen: ClaimLease, watched: Duration) -> Reclaimed {
    match leases.delete(&stolen).await {
        Ok(()) | Err(WriteFailure::NotFound) => Reclaimed::Freed { watched },
        Err(WriteFailure::Conflict | WriteFailure::Exists) => after_conflict(leases, &stolen.key).await,
        Err(WriteFailure::Refused(gap)) => Reclaimed::Stays(gap),
        Err(WriteFailure::NoAnswer(gap)) => match leases.read(&stolen.key).await {
            Reading::Absent => Reclaimed::Freed { watched },
            Reading::Found(lease) if lease.uid != stolen.uid => Reclaimed::Freed { watched },
            Reading::Found(_) | Reading::Unreadable(_) => Reclaimed::Stays(gap),
        },
    }
}
