//! A simulated API server that drops, delays and reorders requests and replies, under a clock that only the
//! simulation moves.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::lease::{ClaimLease, Clock, LeaseKey, Leases, NewClaim};
use crate::facts::reading::{Gap, GapReason, Reading};
use crate::facts::write::WriteFailure;

/// After this a client gives a request up.
const TIMEOUT: Duration = Duration::from_secs(10);

pub type Task = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
pub struct World {
    pub now: Duration,
    wakes: Vec<Duration>,
    late: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pub stored: Option<ClaimLease>,
    version: u64,
    random: u64,
    /// Of 100 requests, so many go wrong.
    pub trouble: u64,
    /// Writes that were sent, by name of the sender.
    pub sent: Vec<String>,
    /// Every holder that the Lease had, with the time from which on.
    pub history: Vec<(Duration, Option<String>)>,
}

impl World {
    pub fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    pub fn store(&mut self, lease: Option<ClaimLease>) -> Option<ClaimLease> {
        self.version += 1;
        let version = self.version.to_string();
        self.stored = lease.map(|l| ClaimLease { resource_version: version, ..l });
        self.history.push((self.now, self.holder()));
        self.stored.clone()
    }

    pub fn holder(&self) -> Option<String> {
        self.stored.as_ref().and_then(|l| l.holder.clone())
    }
}

#[derive(Clone)]
pub struct Server {
    world: Arc<Mutex<World>>,
    pub name: &'static str,
}

struct Until(Server, Duration);

impl Future for Until {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        let mut world = self.0.world();
        if world.now >= self.1 {
            return Poll::Ready(());
        }
        world.wakes.push(self.1);
        Poll::Pending
    }
}

fn unanswered() -> Gap {
    Gap { what: "Lease".into(), reason: GapReason::TimedOut, detail: String::new(), permission: None }
}

impl Server {
    pub fn new(seed: u64, trouble: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { world: Arc::new(Mutex::new(World { random, trouble, ..World::default() })), name: "" }
    }

    pub fn named(&self, name: &'static str) -> Self {
        Self { name, ..self.clone() }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no test panics while it holds the world")
    }

    fn sleep_for(&self, time: Duration) -> Until {
        let at = self.world().now + time;
        Until(self.clone(), at)
    }

    /// One request: what can happen to it on the way there and on the way back.
    async fn request<T: Send + 'static>(
        &self,
        apply: impl FnOnce(&mut World) -> Result<T, WriteFailure> + Send + 'static,
    ) -> Result<T, WriteFailure> {
        let (fate, there, back) = {
            let mut w = self.world();
            let fate = if w.random(100) < w.trouble { w.random(4) } else { 9 };
            (fate, Duration::from_millis(w.random(900)), Duration::from_millis(w.random(900)))
        };
        self.sleep_for(there).await;
        match fate {
            // Lost on the way there.
            0 => {}
            // Arrives long after the client gave up, so that it overtakes nothing and is overtaken.
            1 => {
                let delay = Duration::from_millis(self.world().random(90_000));
                let at = self.sleep_for(TIMEOUT + delay);
                let server = self.clone();
                self.world().late.push(Box::pin(async move {
                    at.await;
                    drop(apply(&mut server.world()));
                }));
            }
            // Done, and the answer is lost.
            2 => drop(apply(&mut self.world())),
            // Done, and the answer is slow, but in time.
            3 => {
                let result = apply(&mut self.world());
                self.sleep_for(Duration::from_millis(8500)).await;
                return result;
            }
            _ => {
                let result = apply(&mut self.world());
                self.sleep_for(back).await;
                return result;
            }
        }
        self.sleep_for(TIMEOUT).await;
        Err(WriteFailure::NoAnswer(unanswered()))
    }

    fn count(&self) {
        let mut world = self.world();
        world.sent.push(self.name.to_string());
    }
}

impl Leases for Server {
    async fn read(&self, _: &LeaseKey) -> Reading<ClaimLease> {
        match self.request(|w| Ok(w.stored.clone())).await {
            Ok(Some(lease)) => Reading::Found(lease),
            Ok(None) => Reading::Absent,
            Err(_) => Reading::Unreadable(unanswered()),
        }
    }

    async fn create(&self, claim: &NewClaim) -> Result<ClaimLease, WriteFailure> {
        self.count();
        let claim = claim.clone();
        self.request(move |w| {
            if w.stored.is_some() {
                return Err(WriteFailure::Exists);
            }
            let lease = ClaimLease {
                key: claim.key,
                uid: format!("uid-{}", w.version),
                resource_version: String::new(),
                holder: Some(claim.holder),
                duration_seconds: Some(claim.duration_seconds),
                acquired: Some(claim.at),
                renewed: Some(claim.at),
                transitions: None,
                operation: Some(claim.operation),
                instance: None,
                object: Value::Null,
            };
            Ok(w.store(Some(lease)).expect("just stored"))
        })
        .await
    }

    async fn update(&self, lease: &ClaimLease) -> Result<ClaimLease, WriteFailure> {
        self.count();
        let lease = lease.clone();
        self.request(move |w| match &w.stored {
            None => Err(WriteFailure::NotFound),
            Some(now) if now.resource_version != lease.resource_version => Err(WriteFailure::Conflict),
            Some(_) => Ok(w.store(Some(lease)).expect("just stored")),
        })
        .await
    }

    async fn delete(&self, lease: &ClaimLease) -> Result<(), WriteFailure> {
        self.count();
        let lease = lease.clone();
        self.request(move |w| match &w.stored {
            None => Err(WriteFailure::NotFound),
            Some(now) if now.resource_version != lease.resource_version || now.uid != lease.uid => {
                Err(WriteFailure::Conflict)
            }
            Some(_) => {
                w.store(None);
                Ok(())
            }
        })
        .await
    }
}

impl Clock for Server {
    fn elapsed(&self) -> Duration {
        self.world().now
    }
    fn now(&self) -> Timestamp {
        let seconds = i64::try_from(self.world().now.as_secs()).expect("a small time");
        Timestamp::from_second(1_700_000_000 + seconds).expect("a time")
    }
    async fn sleep(&self, time: Duration) {
        self.sleep_for(time).await;
    }
}

/// Runs tasks to their ends, moving the clock from one wake-up to the next.
pub fn run(server: &Server, tasks: Vec<Task>) {
    let mut tasks: Vec<Option<Task>> = tasks.into_iter().map(Some).collect();
    let mut late: Vec<Pin<Box<dyn Future<Output = ()> + Send>>> = Vec::new();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000_000 {
        for slot in &mut tasks {
            if slot.as_mut().is_some_and(|t| t.as_mut().poll(&mut context).is_ready()) {
                *slot = None;
            }
        }
        late.append(&mut server.world().late);
        late.retain_mut(|t| t.as_mut().poll(&mut context).is_pending());
        if tasks.iter().all(Option::is_none) {
            return;
        }
        let mut world = server.world();
        let now = world.now;
        let next = world.wakes.drain(..).filter(|w| *w > now).min();
        world.now = next.expect("a pending task waits for some time");
    }
    panic!("the simulation does not end");
}
