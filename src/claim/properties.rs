//! Property tests: holders, rivals and reclaimers on the simulated API server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::lease::{ClaimLease, Clock, LeaseKey};
use super::protocol::{FenceError, Held, Lost, Released, TakeError, Terms};
use super::reclaim::{Reclaimed, reclaim};
use super::simulation::{Server, Task, run};

const SEEDS: u64 = 400;

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

#[test]
fn a_renewal_without_an_answer_does_not_hide_the_end_of_the_claim() {
    for seed in 1..=SEEDS / 4 {
        let server = Server::new(seed, 0);
        let task: Task = {
            let server = server.named("a");
            Box::pin(async move {
                let held = take(&server, "a").await.expect("a free claim");
                let taken = server.elapsed();
                server.sleep(Duration::from_secs(seed % 8)).await;
                server.world().trouble = 100;
                assert_eq!(held.keep().await, Lost::NotRenewed);
                // Fates of a request that answers all the same may have renewed it; none may outlast a duration.
                let renewed = server.world().stored.as_ref().and_then(|l| l.renewed).expect("a renewal");
                let since = server.now().duration_since(renewed).as_secs();
                assert!(since <= 62, "seed {seed}: noticed {since} s after the newest renewal");
                assert!(server.elapsed() - taken >= Duration::from_secs(58), "seed {seed}: lost too early");
            })
        };
        run(&server, vec![task]);
    }
}
