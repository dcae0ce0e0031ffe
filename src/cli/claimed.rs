//! Running a change under the operator claim: take, renew beside the work, fence, release on every way out.
//!
//! The first Ctrl-C (or SIGTERM) lets the work stop at its next fence and clean up; the second leaves at once and
//! says that the claim stays.

use std::sync::Arc;

use tokio::sync::watch;

use super::error::CommandError;
use super::session::Session;
use crate::captf::time::relative;
use crate::claim::lease::{ClaimLease, claim_lease};
use crate::claim::protocol::FenceError;
use crate::claim::{Held, HolderId, LeaseKey, Lost, Released, TakeError, Terms};
use crate::cluster::api::{Api, LEASES, Resource};
use crate::cluster::claim::{KubeLeases, SystemClock};
use crate::cluster::rights::{Question, may};
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, Reading};
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::runbook::code::Code;
use crate::runbook::words::shell_quote;

/// Verbs on Leases that holding a claim needs.
const VERBS: [&str; 4] = ["get", "create", "update", "delete"];

/// A claim that is held while a change is made. [`with_claim`] makes and ends it.
pub struct Claim {
    held: Option<Arc<Held<KubeLeases, SystemClock>>>,
    interrupted: watch::Receiver<bool>,
    lost: watch::Receiver<Option<Lost>>,
}

impl Claim {
    /// To be called before each step that changes something. Fails when the claim is lost, when it cannot
    /// be read, and after an interruption.
    pub async fn fence(&self) -> Result<(), CommandError> {
        if self.is_interrupted() {
            return Err(CommandError::interrupted("interrupted"));
        }
        let Some(held) = &self.held else {
            return Ok(());
        };
        held.fence().await.map_err(|error| match error {
            FenceError::Lost(lost) => lost_error(&lost),
            FenceError::Unreadable(gap) => CommandError::failed("the claim cannot be read, so nothing more is changed")
                .caused_by(visible(&gap.to_string())),
        })
    }

    /// Ends when the person at the keyboard wants to stop; for long waits beside the work.
    pub async fn interrupted(&self) {
        let mut flag = self.interrupted.clone();
        if flag.wait_for(|stop| *stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Ends when work that is under way has to stop, and says why: an interruption, or a claim that was lost. For
    /// long waits beside what others than this process carry out.
    pub async fn stopped(&self) -> CommandError {
        let mut lost = self.lost.clone();
        let loss = async {
            match lost.wait_for(Option::is_some).await.as_deref() {
                Ok(Some(lost)) => lost_error(lost),
                // Nobody keeps a claim that was not taken.
                Ok(None) | Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            error = loss => error,
            () = self.interrupted() => CommandError::interrupted("interrupted"),
        }
    }

    /// Whether the person at the keyboard wants to stop.
    pub fn is_interrupted(&self) -> bool {
        *self.interrupted.borrow()
    }

    /// Who we are in the claim, for an audit trail.
    pub fn holder(&self) -> Option<&str> {
        self.held.as_ref().map(|h| h.me.as_str())
    }
}

/// Runs `work` under a claim on the object, or without one when `without` says so. Whatever way the work
/// ends, the claim is released.
pub async fn with_claim<T>(
    session: &Session,
    object: &ObjectRef,
    operation: &str,
    without: bool,
    work: impl AsyncFnOnce(&Claim) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let key = LeaseKey { namespace: object.namespace.clone(), name: claim_lease(&object.suffix()) };
    let (stop, interrupted) = watch::channel(false);
    let captf = session.values.get("captf").map_or("kubectl captf", String::as_str);
    let reclaim = format!("{captf} claim reclaim {} -n {}", object.resource(), shell_quote(&object.namespace));
    let signals = tokio::spawn(watch_signals(stop, (!without).then_some(reclaim)));
    // The handlers have to stand before there is something to clean up.
    tokio::task::yield_now().await;
    let held = if without { None } else { Some(Arc::new(take(session, &key, object, operation).await?)) };
    let (tell, lost) = watch::channel(None);
    let keeper = held.clone().map(|held| {
        tokio::spawn(async move {
            let how = held.keep().await;
            // Nobody listens any more when the work is done.
            let _ = tell.send(Some(how));
        })
    });
    let claim = Claim { held, interrupted, lost };
    let result = work(&claim).await;
    if let Some(keeper) = keeper {
        keeper.abort();
        // Wait until it is gone: a renewal in flight would conflict with the release.
        let _ = keeper.await;
    }
    if let Some(held) = &claim.held {
        say_released(&held.release().await, object);
    }
    signals.abort();
    result
}

async fn take(
    session: &Session,
    key: &LeaseKey,
    object: &ObjectRef,
    operation: &str,
) -> Result<Held<KubeLeases, SystemClock>, CommandError> {
    let missing = missing_verbs(&session.api, &LEASES, &VERBS, &key.namespace).await;
    if !missing.is_empty() {
        return Err(may_not_claim(&missing, &key.namespace));
    }
    let me = HolderId::of_this_process().to_string();
    let leases = KubeLeases::new(&session.api);
    let taken = Held::take(leases, SystemClock::default(), key.clone(), me, operation, Terms::STANDARD).await;
    taken.map_err(|error| match error {
        TakeError::Held(lease) => held_by(session, object, &lease),
        TakeError::JustReleased => {
            CommandError::refused(format!("{} was claimed a moment ago and is free now", object.resource()))
                .hint("run the command again")
        }
        TakeError::Refused(gap) => {
            let error = CommandError::refused(format!("no claim can be taken on {}", object.resource()));
            error.caused_by(visible(&gap.to_string())).caused_by(visible(&gap.detail)).hint(WITHOUT)
        }
        TakeError::Unknown(gap) => {
            CommandError::failed(format!("whether {} was claimed is not known; nothing was changed", object.resource()))
                .caused_by(visible(&gap.to_string()))
                .hint("look with `kubectl captf claim inspect`; a claim that appears late is freed by `claim reclaim`")
        }
    })
}

const WITHOUT: &str = "`--without-claim` goes on without one; make sure that nobody else acts on the object";

/// The refusal for want of verbs.
pub fn may_not(what: &str, resource: &Resource, missing: &[&str], namespace: &str) -> CommandError {
    let (verbs, resource) = (missing.join(", "), resource.qualified());
    CommandError::refused(format!("{what}: you may not {verbs} {resource} in {namespace}"))
        .hint(format!("run `kubectl auth can-i {} {resource} -n {namespace}`", missing[0]))
}

fn may_not_claim(missing: &[&str], namespace: &str) -> CommandError {
    may_not("no claim can be taken", &LEASES, missing, namespace).hint(WITHOUT)
}

/// Those of the verbs that the API server says we lack; what it does not answer is left to the request itself.
pub async fn missing_verbs(
    api: &Api,
    resource: &Resource,
    verbs: &[&'static str],
    namespace: &str,
) -> Vec<&'static str> {
    let mut missing = Vec::new();
    for &verb in verbs {
        let namespace = Some(namespace.to_string());
        let question = Question { verb, group: resource.group, resource: resource.plural, namespace };
        if may(api, &question).await == Reading::Found(false) {
            missing.push(verb);
        }
    }
    missing
}

/// The refusal for somebody else's claim, in the form that its age calls for.
pub fn held_by(session: &Session, object: &ObjectRef, lease: &ClaimLease) -> CommandError {
    let finding = crate::runbook::claim::finding(lease, &object.resource(), session.now());
    let holder = visible(lease.holder.as_deref().unwrap_or("nobody")).into_owned();
    let what = lease.operation.as_deref().map(|o| format!(" for {}", visible(o))).unwrap_or_default();
    let age = lease.renewed.or(lease.acquired).map(|t| relative(t, session.now()));
    let age = age.unwrap_or_else(|| "never".to_string());
    let captf = session.values.get("captf").map_or("kubectl captf", String::as_str);
    let target = format!("{} -n {}", object.resource(), shell_quote(&object.namespace));
    match finding.code {
        Code::ClaimHeld => CommandError::refused(format!(
            "{} is being worked on by {holder}{what}, which renewed {age}; wait",
            object.resource()
        ))
        .hint(format!("`{captf} claim inspect {target}` shows when it is free")),
        _ => CommandError::refused(format!(
            "{} is claimed by {holder}{what}, last renewed {age}; by this machine's clock that looks stale, but a \
             clock that disagrees looks the same",
            object.resource()
        ))
        .hint(format!("`{captf} claim reclaim {target}` checks properly")),
    }
}

fn lost_error(lost: &Lost) -> CommandError {
    let error = CommandError::failed("the claim was lost, so nothing more is changed");
    match lost {
        Lost::Gone => error.caused_by("its Lease is gone"),
        Lost::TakenBy(holder) if holder.is_empty() => error.caused_by("its Lease names nobody any more"),
        Lost::TakenBy(holder) => error.caused_by(format!("it is held by {} now", visible(holder))),
        Lost::NotRenewed => error.caused_by("it could not be renewed for a whole minute"),
    }
}

fn say_released(released: &Released, object: &ObjectRef) {
    match released {
        Released::Deleted => {}
        Released::NotOurs(lost) => {
            for cause in lost_error(lost).causes {
                stderr_line(&format!("warning: the claim was lost while this ran: {cause}"));
            }
        }
        Released::Stays(gap) => {
            let why = gap.as_ref().map(Gap::to_string).unwrap_or_default();
            stderr_line(&format!("warning: the claim on {} could not be released and stays: {why}", object.resource()));
            stderr_line("hint: `kubectl captf claim reclaim` frees it");
        }
    }
}

/// Passes the first interruption on, and leaves at the second.
async fn watch_signals(stop: watch::Sender<bool>, reclaim: Option<String>) {
    next_signal().await;
    stderr_line("interrupted: stopping and cleaning up; once more to leave at once");
    let _ = stop.send(true);
    next_signal().await;
    match reclaim {
        Some(command) => stderr_line(&format!("left at once; the claim stays. To free it: {command}")),
        None => stderr_line("left at once"),
    }
    #[expect(clippy::exit, reason = "the second interruption leaves without any cleaning up, by design")]
    std::process::exit(i32::from(super::error::INTERRUPTED));
}

#[cfg(unix)]
async fn next_signal() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminate = async {
        match signal(SignalKind::terminate()) {
            Ok(mut stream) => stream.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate => {}
    }
}

#[cfg(not(unix))]
async fn next_signal() {
    let _ = tokio::signal::ctrl_c().await;
}
