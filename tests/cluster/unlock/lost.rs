//! A claim that is lost while a container runs: it is stopped, nothing more is started, nothing more is written.

use std::thread;
use std::time::{Duration, Instant};

use super::*;

fn of_the_claim(request: &Request) -> bool {
    request.path.contains("/leases/captf-claim-")
}

/// Requests of the command that change something in the cluster, after a moment.
fn writes_since(scene: &Scene, since: Instant) -> Vec<String> {
    let all = scene.server.requests().into_iter();
    let ours = all.filter(|r| r.at > since && !r.of_the_runtime() && r.method != "GET" && !of_the_claim(r));
    ours.map(|r| format!("{} {}", r.method, r.path)).collect()
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_lost_claim_stops_the_container_that_runs() {
    let engine = &engines().docker;
    terraform_nonroot();
    thread::scope(|scope| {
        // During init, by renewals that do not get through for a minute.
        scope.spawn(|| {
            let scene = Scene::new(engine, terraform_nonroot());
            let gate = scene.server.at(Act::Hold, |r| r.of_the_runtime() && r.is("GET", "/secrets"));
            let child = scene.start(&[]);
            gate.reached();
            let renewals = scene.server.always(Act::Cut, of_the_claim);
            let start = Instant::now();
            let output = child.wait_with_output().expect("wait");
            let took = start.elapsed();
            assert!(took > Duration::from_secs(45) && took < Duration::from_secs(75), "{took:?}");
            assert!(renewals.seen() > 3, "{} renewals were tried", renewals.seen());
            let needles =
                ["the claim was lost", "could not be renewed for a whole minute", "init was running and was stopped"];
            exits(&output, 1, &needles);
            assert_eq!(writes_since(&scene, start), Vec::<String>::new());
            stopped_before_the_lock(&scene, engine);
            assert!(scene.claim_lease().is_some(), "a lost claim is not touched");
        });
        // During init, by somebody who has it.
        scope.spawn(|| {
            let scene = Scene::new(engine, terraform_nonroot());
            let gate = scene.server.at(Act::Hold, |r| r.of_the_runtime() && r.is("GET", "/secrets"));
            let child = scene.start(&[]);
            gate.reached();
            scene.take_claim_away();
            let output = child.wait_with_output().expect("wait");
            exits(&output, 1, &["the claim was lost", "held by other@elsewhere", "the lock was not touched"]);
            stopped_before_the_lock(&scene, engine);
        });
        // During force-unlock.
        scope.spawn(|| {
            let scene = Scene::new(engine, terraform_nonroot());
            let gate = scene.server.at(Act::Hold, |r| r.of_the_runtime() && r.is("PUT", "/leases/lock-"));
            let child = scene.start(&[]);
            gate.reached();
            scene.take_claim_away();
            let output = child.wait_with_output().expect("wait");
            gate.cut();
            let needles =
                ["the claim was lost", "force-unlock was running and was stopped", "still held, by the same ID"];
            exits(&output, 1, &needles);
            assert!(scene.held());
            assert_eq!(scene.left(engine), Vec::<String>::new());
        });
        // After the unlock: what was done is said, and no Event is written any more.
        scope.spawn(|| {
            let scene = Scene::new(engine, terraform_nonroot());
            let put = scene.server.at(Act::Hold, |r| r.of_the_runtime() && r.is("PUT", "/leases/lock-"));
            let child = scene.start(&[]);
            put.reached();
            let read = scene.server.at(Act::Hold, |r| !r.of_the_runtime() && r.is("GET", "/leases/lock-"));
            put.open();
            read.reached();
            scene.take_claim_away();
            let start = Instant::now();
            read.open();
            let output = child.wait_with_output().expect("wait");
            exits(&output, 0, &["info[unlock-done]", "no Event was created: the claim was lost", "other@elsewhere"]);
            assert_eq!(scene.workspace.holder(), None);
            assert_eq!(writes_since(&scene, start), Vec::<String>::new());
        });
    });
}

fn stopped_before_the_lock(scene: &Scene, engine: &str) {
    let started = scene.engine.requests().iter().filter(|r| r.is("POST", "/start")).count();
    assert_eq!(started, 1, "a container was started under a lost claim");
    assert!(scene.held(), "the lock was touched");
    assert_eq!(scene.left(engine), Vec::<String>::new(), "something stays in the engine");
}
