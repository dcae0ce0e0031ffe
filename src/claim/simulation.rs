//! Property tests: holders, rivals and reclaimers on a simulated API server that drops, delays and reorders
//! requests and replies, under a clock that only the simulation moves.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::lease::{ClaimLease, Clock, LeaseKey, Leases, NewClaim};
use super::protocol::{FenceError, Held, Lost, Released, TakeError, Terms};
use super::reclaim::{Reclaimed, reclaim};
use crate::facts::reading::{Gap, GapReason, Reading};
use crate::facts::write::WriteFailure;

const SEEDS: u64 = 400;
/// After this a client gives a request up.
const TIMEOUT: Duration = Duration::from_secs(10);

type Task = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
struct World {
    now: Duration,
    wakes: Vec<Duration>,
    late: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    stored: Option<ClaimLease>,
    version: u64,
    random: u64,
    /// Of 100 requests, so many go wrong.
    trouble: u64,
    /// Writes that were sent, by name of the sender.
    sent: Vec<String>,
    /// Every holder that the Lease had, with the time from which on.
    history: Vec<(Duration, Option<String>)>,
}

impl World {
    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    fn store(&mut self, lease: Option<ClaimLease>) -> Option<ClaimLease> {
        self.version += 1;
        let version = self.version.to_string();
        self.stored = lease.map(|l| ClaimLease { resource_version: version, ..l });
        self.history.push((self.now, self.holder()));
        self.stored.clone()
    }

    fn holder(&self) -> Option<String> {
        self.stored.as_ref().and_then(|l| l.holder.clone())
    }
}

#[derive(Clone)]
struct Server {
    world: Arc<Mutex<World>>,
    name: &'static str,
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
    fn new(seed: u64, trouble: u64) -> Self {
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self { world: Arc::new(Mutex::new(World { random, trouble, ..World::default() })), name: "" }
    }

    fn named(&self, name: &'static str) -> Self {
        Self { name, ..self.clone() }
    }

    fn world(&self) -> MutexGuard<'_, World> {
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
fn run(server: &Server, tasks: Vec<Task>) {
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

fn key() -> LeaseKey {
    LeaseKey { namespace: "team-a".into(), name: "captf-claim-f66792f9106e7299-c".into() }
}

async fn take(server: &Server, who: &str) -> Result<Held<Server, Server>, TakeError> {
    Held::take(server.clone(), server.clone(), key(), who.to_string(), "force-unlock", Terms::STANDARD).await
}

/// A run that works for a while under its claim: fence, then a step, again and again. Every step is checked
/// against the truth of the server.
async fn work(server: Server, me: &'static str, steps: u32) {
    let Ok(held) = take(&server, me).await else {
        return;
    };
    let worker = async {
        for _ in 0..steps {
            match held.fence().await {
                Ok(()) => {
                    let holder = server.world().holder();
                    assert_eq!(holder.as_deref(), Some(me), "a step of {me} under somebody else's claim");
                }
                Err(FenceError::Lost(lost)) => {
                    let sent = server.world().sent.iter().filter(|n| *n == server.name).count();
                    assert_eq!(held.lost(), Some(lost), "a claim that is lost stays lost");
                    assert!(matches!(held.release().await, Released::NotOurs(_)));
                    assert!(matches!(held.renew().await, Err(FenceError::Lost(_))));
                    let after = server.world().sent.iter().filter(|n| *n == server.name).count();
                    assert_eq!(sent, after, "a run that lost its claim wrote");
                    return;
                }
                Err(FenceError::Unreadable(_)) => {}
            }
            let pause = Duration::from_millis(server.world().random(9000));
            server.sleep(pause).await;
        }
    };
    let keeper = std::pin::pin!(held.keep());
    futures::future::select(std::pin::pin!(worker), keeper).await;
    if held.release().await == Released::Deleted {
        assert_ne!(server.world().holder().as_deref(), Some(me), "a released claim still names {me}");
    }
}

async fn reclaimer(server: Server, holder: &'static str, me: &'static str, after: u64) {
    server.sleep(Duration::from_secs(after)).await;
    let _ = reclaim(&server, &server, &key(), holder, me, Terms::STANDARD).await;
}

#[test]
fn no_step_is_taken_under_a_claim_that_somebody_else_has() {
    let mut reclaimed = 0;
    for seed in 1..=SEEDS {
        let server = Server::new(seed, 15 + seed % 60);
        let reclaims = (0..6).map(|n| -> Task { Box::pin(reclaimer(server.named("c"), "a", "c", n * 20 + seed % 17)) });
        let mut tasks: Vec<Task> = vec![Box::pin(work(server.named("a"), "a", 40))];
        tasks.extend(reclaims);
        for (n, me) in (0..).zip(["b1", "b2", "b3", "b4"]) {
            let rival = server.named(me);
            tasks.push(Box::pin(async move {
                rival.sleep(Duration::from_secs(30 + n * 60)).await;
                work(rival, me, 10).await;
            }));
        }
        run(&server, tasks);
        reclaimed += server.world().history.iter().filter(|(_, h)| h.as_deref() == Some("c")).count();
    }
    // The property would be idle if no claim were ever stolen.
    assert!(reclaimed > 20, "only {reclaimed} steals in {SEEDS} runs");
}

#[test]
fn of_racing_creates_one_succeeds() {
    for seed in 1..=SEEDS {
        let server = Server::new(seed, 0);
        let won = Arc::new(Mutex::new(Vec::new()));
        let tasks = ["a", "b", "c"].map(|me| -> Task {
            let (server, won) = (server.named(me), won.clone());
            Box::pin(async move {
                match take(&server, me).await {
                    Ok(_) => won.lock().expect("not poisoned").push(me),
                    Err(TakeError::Held(lease)) => assert_ne!(lease.holder.as_deref(), Some(me)),
                    Err(other) => panic!("{other:?}"),
                }
            })
        });
        run(&server, tasks.into());
        assert_eq!(won.lock().expect("not poisoned").len(), 1, "seed {seed}");
    }
}

#[test]
fn a_holder_that_renews_is_never_reclaimed_and_releases_in_the_end() {
    for seed in 1..=SEEDS / 4 {
        let server = Server::new(seed, 0);
        let outcome = server.named("c");
        let tasks: Vec<Task> = vec![
            Box::pin(work(server.named("a"), "a", 60)),
            Box::pin(async move {
                outcome.sleep(Duration::from_secs(5)).await;
                let ended = reclaim(&outcome, &outcome, &key(), "a", "c", Terms::STANDARD).await;
                assert!(matches!(ended, Reclaimed::Alive(_)), "seed {seed}: {ended:?}");
            }),
        ];
        run(&server, tasks);
        assert_eq!(server.world().stored, None, "seed {seed}");
        assert!(!server.world().history.iter().any(|(_, h)| h.as_deref() == Some("c")), "seed {seed}");
    }
}

#[test]
fn a_dead_holders_claim_is_freed_after_a_whole_watch_and_counted() {
    for (duration, expected) in [(Some(0), 60), (Some(1), 60), (None, 60), (Some(60), 60), (Some(300), 300)] {
        let server = Server::new(7, 0);
        let task: Task = {
            let server = server.named("c");
            Box::pin(async move {
                drop(take(&server, "a").await.expect("a free claim"));
                server.world().stored.as_mut().expect("a claim").duration_seconds = duration;
                let ended = reclaim(&server, &server, &key(), "a", "c", Terms::STANDARD).await;
                assert_eq!(ended, Reclaimed::Freed { watched: Duration::from_secs(expected) });
                let again = reclaim(&server, &server, &key(), "a", "c", Terms::STANDARD).await;
                assert_eq!(again, Reclaimed::WasFree);
            })
        };
        run(&server, vec![task]);
    }
}

#[test]
fn only_the_holder_that_was_confirmed_is_reclaimed() {
    let server = Server::new(3, 0);
    let task: Task = {
        let server = server.named("c");
        Box::pin(async move {
            drop(take(&server, "a").await.expect("a free claim"));
            let ended = reclaim(&server, &server, &key(), "b", "c", Terms::STANDARD).await;
            assert!(matches!(ended, Reclaimed::AnotherHolder(_)), "{ended:?}");
        })
    };
    run(&server, vec![task]);
    assert_eq!(server.world().holder().as_deref(), Some("a"));
}

#[test]
fn a_claim_that_cannot_be_renewed_is_lost_by_our_own_clock() {
    let server = Server::new(5, 0);
    let task: Task = {
        let server = server.named("a");
        Box::pin(async move {
            let held = take(&server, "a").await.expect("a free claim");
            server.sleep(Duration::from_secs(30)).await;
            held.renew().await.expect("a renewal");
            server.world().trouble = 0;
            server.sleep(Duration::from_secs(59)).await;
            // The renewal was sent up to 2 s before the sleep began.
            server.sleep(Duration::from_secs(1)).await;
            assert_eq!(held.lost(), Some(Lost::NotRenewed));
            assert_eq!(held.fence().await, Err(FenceError::Lost(Lost::NotRenewed)));
            assert_eq!(held.release().await, Released::NotOurs(Lost::NotRenewed));
        })
    };
    run(&server, vec![task]);
    assert_eq!(server.world().holder().as_deref(), Some("a"), "a lost claim is not released");
}

#[test]
fn another_holder_or_none_is_a_loss() {
    for (change, expected) in [(Some("z"), Lost::TakenBy("z".into())), (None, Lost::Gone)] {
        let server = Server::new(5, 0);
        let task: Task = {
            let server = server.named("a");
            Box::pin(async move {
                let held = take(&server, "a").await.expect("a free claim");
                let lease = server.world().stored.clone().expect("a claim");
                let changed = change.map(|who| ClaimLease { holder: Some(who.to_string()), ..lease });
                server.world().store(changed);
                assert_eq!(held.renew().await, Err(FenceError::Lost(expected.clone())));
                assert_eq!(held.release().await, Released::NotOurs(expected));
            })
        };
        run(&server, vec![task]);
    }
}
