//! The lock's Lease in an unlock: clearing it by one update, looking at it between the steps, and what it says in
//! the end.

use std::time::Duration;

use super::error::CommandError;
use super::force_unlock::Outcome;
use super::session::Session;
use crate::cluster::leases::read_lock;
use crate::cluster::unlock_write::{JudgedLock, clear_lease};
use crate::facts::lease::{Holder, LockLease};
use crate::facts::object::ObjectRef;
use crate::facts::reading::{GapReason, Reading};
use crate::facts::write::WriteFailure;
use crate::output::escape::visible;
use crate::runbook::finding::Evidence;
use crate::runbook::force_unlock::Plan;
use crate::runbook::lock_inspect::holder_evidence;

/// How often a server that does not answer is asked what became of the lock, and the pause between.
const SETTLE_ATTEMPTS: u32 = 6;
const SETTLE_PAUSE: Duration = Duration::from_secs(3);

/// Releases the lock by one guarded update of the Lease.
pub async fn by_lease(session: &Session, object: &ObjectRef, plan: &Plan) -> Result<Outcome, CommandError> {
    let lock = JudgedLock {
        namespace: object.namespace.clone(),
        lease: plan.lease.clone(),
        uid: plan.uid.clone(),
        resource_version: plan.resource_version.clone(),
        lock_id: plan.lock_id.clone(),
    };
    let released = |how: &str| vec![Evidence::new("released by", how)];
    match clear_lease(&session.api, &lock).await {
        Ok(()) => {
            let how = released("one update of the Lease, with the version that was judged");
            confirm(session, object, plan, true, how, String::new).await
        }
        // Whether it happened is decided by what is read now.
        Err(WriteFailure::NoAnswer(gap)) => {
            let how = released("one update of the Lease, whose answer was lost; the lock is free now");
            let said = || format!("the answer to the write was lost: {gap}");
            confirm(session, object, plan, true, how, said).await.map_err(|error| {
                error
                    .hint("run the command again; should the write still arrive, it clears this very lock and no other")
            })
        }
        Err(WriteFailure::Conflict | WriteFailure::NotFound | WriteFailure::Exists) => {
            confirm(session, object, plan, false, Vec::new(), String::new).await
        }
        Err(WriteFailure::Refused(gap)) => {
            Err(super::error::unreadable("release the lock", &gap, session.source.server.as_deref()))
        }
    }
}

/// The Lease decides. `acted` says whether we may have been the ones.
pub async fn confirm(
    session: &Session,
    object: &ObjectRef,
    plan: &Plan,
    acted: bool,
    evidence: Vec<Evidence>,
    said: impl FnOnce() -> String,
) -> Result<Outcome, CommandError> {
    let seen = match settled(session, object, plan).await {
        Reading::Found(lease) if lease.holder == Holder::Nobody && acted => return Ok(Outcome::Released(evidence)),
        Reading::Found(lease) if holds(&lease, plan) => {
            let error = CommandError::failed("the lock is still held; nothing was released");
            let said = said();
            return Err(if said.is_empty() { error } else { error.caused_by(visible(&said)) });
        }
        Reading::Found(lease) => holder_evidence(&lease),
        Reading::Absent => Evidence::new(format!("Lease/{}", plan.lease), "not found"),
        Reading::Unreadable(gap) => {
            return Err(CommandError::failed("whether the lock was released could not be read")
                .caused_by(visible(&gap.to_string()))
                .hint("look with `kubectl captf lock inspect`"));
        }
    };
    Ok(Outcome::SomeoneWasFirst(seen))
}

/// Reads the Lease after a write. A server that does not answer for a moment is waited for.
async fn settled(session: &Session, object: &ObjectRef, plan: &Plan) -> Reading<LockLease> {
    for _ in 1..SETTLE_ATTEMPTS {
        match read_lock(&session.api, &object.namespace, &plan.lease).await {
            Reading::Unreadable(gap) if matches!(gap.reason, GapReason::Failed | GapReason::TimedOut) => {
                tokio::time::sleep(SETTLE_PAUSE).await;
            }
            read => return read,
        }
    }
    read_lock(&session.api, &object.namespace, &plan.lease).await
}

/// Whether the Lease still names the lock that was judged.
fn holds(lease: &LockLease, plan: &Plan) -> bool {
    match &lease.holder {
        Holder::Id(id) => *id == plan.lock_id,
        Holder::Empty => plan.lock_id.is_empty(),
        Holder::Nobody => false,
    }
}

/// Adds to an error what the Lease says now, once a step that releases the lock was started.
pub async fn with_lock_now(session: &Session, object: &ObjectRef, plan: &Plan, error: CommandError) -> CommandError {
    let now = match read_lock(&session.api, &object.namespace, &plan.lease).await {
        Reading::Found(lease) if lease.holder == Holder::Nobody => {
            "the lock is free now; no Event was created".to_string()
        }
        Reading::Found(lease) if holds(&lease, plan) => "the lock is still held, by the same ID".to_string(),
        Reading::Found(_) => "the lock is held by another ID now".to_string(),
        Reading::Absent => "the Lease of the lock is gone".to_string(),
        Reading::Unreadable(gap) => format!("whether the lock was released could not be read: {gap}"),
    };
    error.caused_by(visible(&now)).hint("judge it again with `kubectl captf lock inspect`")
}

/// The Lease is exactly as it was judged, or nothing is run: on a free lock `init` could write.
pub async fn still_the_lock(session: &Session, object: &ObjectRef, plan: &Plan) -> Result<(), CommandError> {
    match read_lock(&session.api, &object.namespace, &plan.lease).await {
        Reading::Found(lease) if lease.resource_version == plan.resource_version && lease.uid == plan.uid => Ok(()),
        Reading::Found(_) | Reading::Absent => {
            Err(CommandError::refused("the lock changed at the last moment; somebody else was first")
                .hint("judge it again with `kubectl captf lock inspect`"))
        }
        Reading::Unreadable(gap) => {
            Err(CommandError::failed("read the lock once more").caused_by(visible(&gap.to_string())))
        }
    }
}
