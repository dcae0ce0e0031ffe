//! Taking, renewing, fencing and releasing a claim.
//!
//! Taking is a create, so that of two racers one gets AlreadyExists. A renewal updates with the
//! resourceVersion it read. A claim is lost when the Lease is gone, names somebody else, or was not renewed for a
//! whole duration by our own clock; a lost claim stays lost, and its run writes nothing more.

use std::sync::Mutex;
use std::time::Duration;

use futures::future::select;

use super::lease::{ClaimLease, Clock, LeaseKey, Leases, NewClaim};
use crate::facts::reading::{Gap, Reading};
use crate::facts::write::WriteFailure;

/// How often a read and the write that rests on it are tried while others interfere.
const ATTEMPTS: u32 = 3;

/// Durations of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Without a renewal for so long, the claim is lost. In whole seconds on the Lease.
    pub duration: Duration,
    pub renew_every: Duration,
    /// The least time that a reclaim watches before it believes that nobody renews.
    pub watch_at_least: Duration,
}

impl Terms {
    /// 60 s, renewed every 10 s; a reclaim watches for at least 60 s.
    pub const STANDARD: Self = Self {
        duration: Duration::from_secs(60),
        renew_every: Duration::from_secs(10),
        watch_at_least: Duration::from_secs(60),
    };
}

/// How a claim was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lost {
    /// The Lease is not there any more.
    Gone,
    /// The Lease names this holder (empty: nobody).
    TakenBy(String),
    /// No renewal went through for a whole duration.
    NotRenewed,
}

/// Why a claim was not taken.
#[derive(Debug, Clone, PartialEq)]
pub enum TakeError {
    /// Somebody holds it.
    Held(Box<ClaimLease>),
    /// It was held a moment ago and is free now.
    JustReleased,
    Refused(Gap),
    /// Whether it was taken is unknown; it may appear yet, and then nobody renews it.
    Unknown(Gap),
}

/// Why a step must not be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FenceError {
    Lost(Lost),
    /// The Lease could not be read, so nothing may be written.
    Unreadable(Gap),
}

/// How a release ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Released {
    Deleted,
    /// The claim was lost; nothing was written.
    NotOurs(Lost),
    /// The Lease stays and nobody renews it.
    Stays(Option<Gap>),
}

/// A claim that we took.
pub struct Held<L, C> {
    leases: L,
    clock: C,
    pub key: LeaseKey,
    pub me: String,
    pub terms: Terms,
    inner: Mutex<Inner>,
}

struct Inner {
    /// When the newest write that went through was sent.
    confirmed: Duration,
    lost: Option<Lost>,
}

/// What a read of the Lease says of our claim.
enum Seen {
    Ours(Box<ClaimLease>),
    Lost(Lost),
    Unreadable(Gap),
}

impl<L: Leases, C: Clock> Held<L, C> {
    /// Takes the claim, or says who has it. Nothing that exists is ever taken over.
    pub async fn take(
        leases: L,
        clock: C,
        key: LeaseKey,
        me: String,
        operation: &str,
        terms: Terms,
    ) -> Result<Self, TakeError> {
        let sent = clock.elapsed();
        let claim = NewClaim {
            key: key.clone(),
            holder: me.clone(),
            duration_seconds: i64::try_from(terms.duration.as_secs()).unwrap_or(i64::MAX),
            operation: operation.to_string(),
            at: clock.now(),
        };
        let doubt = match leases.create(&claim).await {
            Ok(_) => None,
            Err(WriteFailure::Refused(gap)) => return Err(TakeError::Refused(gap)),
            Err(WriteFailure::NoAnswer(gap)) => Some(gap),
            // A create whose first answer was lost on the way meets itself here.
            Err(WriteFailure::Exists | WriteFailure::Conflict | WriteFailure::NotFound) => {
                match leases.read(&key).await {
                    Reading::Found(lease) if lease.holder.as_deref() == Some(&me) => None,
                    Reading::Found(lease) => return Err(TakeError::Held(Box::new(lease))),
                    Reading::Absent => return Err(TakeError::JustReleased),
                    Reading::Unreadable(gap) => return Err(TakeError::Unknown(gap)),
                }
            }
        };
        if let Some(gap) = doubt {
            match leases.read(&key).await {
                Reading::Found(lease) if lease.holder.as_deref() == Some(&me) => {}
                Reading::Found(lease) => return Err(TakeError::Held(Box::new(lease))),
                Reading::Absent | Reading::Unreadable(_) => return Err(TakeError::Unknown(gap)),
            }
        }
        Ok(Self { leases, clock, key, me, terms, inner: Mutex::new(Inner { confirmed: sent, lost: None }) })
    }

    /// Renews once. An `Err` that is not a loss is tried again by the next renewal.
    pub async fn renew(&self) -> Result<(), FenceError> {
        for _ in 0..ATTEMPTS {
            let mut lease = match self.look().await {
                Seen::Ours(lease) => lease,
                Seen::Lost(lost) => return Err(FenceError::Lost(lost)),
                Seen::Unreadable(gap) => return Err(FenceError::Unreadable(gap)),
            };
            let sent = self.clock.elapsed();
            lease.renewed = Some(self.clock.now());
            match self.leases.update(&lease).await {
                Ok(_) => {
                    self.confirm(sent);
                    return self.lost().map_or(Ok(()), |lost| Err(FenceError::Lost(lost)));
                }
                Err(WriteFailure::Conflict | WriteFailure::NotFound | WriteFailure::Exists) => {}
                Err(WriteFailure::Refused(gap) | WriteFailure::NoAnswer(gap)) => {
                    return Err(self.lost().map_or(FenceError::Unreadable(gap), FenceError::Lost));
                }
            }
        }
        self.lost().map_or(Ok(()), |lost| Err(FenceError::Lost(lost)))
    }

    /// Renews until the claim is lost, and returns how. Run it beside the work.
    pub async fn keep(&self) -> Lost {
        loop {
            self.clock.sleep(self.terms.renew_every.min(self.left())).await;
            // A renewal without an answer must not hide that the time is over.
            let renewal = std::pin::pin!(self.renew());
            let end = std::pin::pin!(self.clock.sleep(self.left()));
            select(renewal, end).await;
            if let Some(lost) = self.lost() {
                return lost;
            }
        }
    }

    /// How long the claim lasts if nothing renews it any more.
    fn left(&self) -> Duration {
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        (inner.confirmed + self.terms.duration).saturating_sub(self.clock.elapsed())
    }

    /// To be passed before each step that changes something: the Lease still names us, and our own clock
    /// agrees that nobody may have reclaimed it.
    pub async fn fence(&self) -> Result<(), FenceError> {
        match self.look().await {
            Seen::Ours(_) => Ok(()),
            Seen::Lost(lost) => Err(FenceError::Lost(lost)),
            Seen::Unreadable(gap) => Err(FenceError::Unreadable(gap)),
        }
    }

    /// Gives the claim back, if it is still ours. Stop renewing first.
    pub async fn release(&self) -> Released {
        let mut trouble = None;
        for _ in 0..ATTEMPTS {
            let lease = match self.look().await {
                Seen::Ours(lease) => lease,
                // Our own delete went through although its answer was lost.
                Seen::Lost(Lost::Gone) if trouble.is_some() => return Released::Deleted,
                Seen::Lost(lost) => return Released::NotOurs(lost),
                Seen::Unreadable(gap) => {
                    trouble = trouble.or(Some(gap));
                    continue;
                }
            };
            match self.leases.delete(&lease).await {
                Ok(()) => return Released::Deleted,
                Err(WriteFailure::Refused(gap)) => return Released::Stays(Some(gap)),
                Err(WriteFailure::NoAnswer(gap)) => trouble = Some(gap),
                Err(WriteFailure::Conflict | WriteFailure::NotFound | WriteFailure::Exists) => {}
            }
        }
        Released::Stays(trouble)
    }

    /// How the claim was lost, if it was.
    pub fn lost(&self) -> Option<Lost> {
        let now = self.clock.elapsed();
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if inner.lost.is_none() && now.saturating_sub(inner.confirmed) >= self.terms.duration {
            inner.lost = Some(Lost::NotRenewed);
        }
        inner.lost.clone()
    }

    fn confirm(&self, sent: Duration) {
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        inner.confirmed = inner.confirmed.max(sent);
    }

    fn lose(&self, lost: Lost) -> Lost {
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        inner.lost.get_or_insert(lost).clone()
    }

    async fn look(&self) -> Seen {
        if let Some(lost) = self.lost() {
            return Seen::Lost(lost);
        }
        let read = self.leases.read(&self.key).await;
        // The answer may have taken so long that the claim ran out over it.
        if let Some(lost) = self.lost() {
            return Seen::Lost(lost);
        }
        match read {
            Reading::Found(lease) if lease.holder.as_deref() == Some(&self.me) => Seen::Ours(Box::new(lease)),
            Reading::Found(lease) => Seen::Lost(self.lose(Lost::TakenBy(lease.holder.unwrap_or_default()))),
            Reading::Absent => Seen::Lost(self.lose(Lost::Gone)),
            Reading::Unreadable(gap) => Seen::Unreadable(gap),
        }
    }
}
