//! Our own process, killed with SIGKILL in every phase: what stays, and what the next run makes of it.

use kubectl_captf::claim::lease::LeaseKey;
use kubectl_captf::claim::reclaim::Reclaimed;

use super::super::claim::reclaim_soon;
use super::*;

/// A point in the run, and what is there when the process dies at it.
struct Phase {
    name: &'static str,
    engine: &'static str,
    /// Lets the run come so far and no further.
    stop: fn(&Scene) -> Gate,
    containers: usize,
    volumes: usize,
    /// The lock is free in the end.
    freed: bool,
}

const PHASES: [Phase; 8] = [
    Phase {
        name: "the claim was taken",
        engine: "docker",
        stop: |s| s.engine.at(Act::Hold, |r| r.is("GET", "/images/")),
        containers: 0,
        volumes: 0,
        freed: false,
    },
    Phase {
        name: "the volume was made",
        engine: "docker",
        stop: |s| s.engine.at(Act::Hold, |r| r.is("POST", "/containers/create")),
        containers: 0,
        volumes: 1,
        freed: false,
    },
    Phase {
        name: "the credentials went in",
        engine: "docker",
        stop: |s| s.engine.at(Act::Hold, |r| r.is("GET", "/archive")),
        containers: 1,
        volumes: 1,
        freed: false,
    },
    Phase {
        name: "during init",
        engine: "docker",
        stop: |s| s.server.at(Act::Hold, |r| r.of_the_runtime() && r.is("GET", "/secrets")),
        containers: 1,
        volumes: 1,
        freed: false,
    },
    Phase {
        name: "during init",
        engine: "podman",
        stop: |s| s.server.at(Act::Hold, |r| r.of_the_runtime() && r.is("GET", "/secrets")),
        containers: 1,
        volumes: 1,
        freed: false,
    },
    Phase {
        name: "between init and force-unlock",
        engine: "docker",
        stop: |s| s.engine.after(1, Act::Hold, |r| r.is("POST", "/containers/create")),
        containers: 1,
        volumes: 1,
        freed: false,
    },
    Phase {
        name: "during force-unlock",
        engine: "docker",
        stop: |s| s.server.at(Act::Hold, |r| r.of_the_runtime() && r.is("PUT", "/leases/lock-")),
        containers: 2,
        volumes: 1,
        freed: true,
    },
    Phase {
        name: "the lock is cleared and nothing is removed",
        engine: "podman",
        stop: |s| s.engine.at(Act::Hold, |r| r.is("DELETE", "/containers/")),
        containers: 2,
        volumes: 1,
        freed: true,
    },
];

#[test]
#[ignore = "needs the test ground and root for Docker and Podman (make test)"]
fn whenever_it_is_killed_the_next_run_cleans_and_the_claim_can_be_reclaimed() {
    terraform_nonroot();
    thread::scope(|scope| {
        let all: Vec<_> = PHASES.iter().map(|phase| scope.spawn(|| killed_at(phase))).collect();
        for (phase, run) in PHASES.iter().zip(all) {
            assert!(run.join().is_ok(), "killed when: {} on {}", phase.name, phase.engine);
        }
    });
}

fn killed_at(phase: &Phase) {
    let engine = if phase.engine == "docker" { &engines().docker } else { &engines().podman };
    let scene = Scene::new(engine, terraform_nonroot());
    let before = state_version(ground(), &scene.workspace);
    let gate = (phase.stop)(&scene);
    let mut child = scene.start(&[]);
    gate.reached();
    child.kill().expect("kill");
    let said = text(&child.wait_with_output().expect("wait"));
    // A request of ours dies with us; the unlock of a container is on its way and arrives.
    match phase.name {
        "during force-unlock" => gate.open(),
        _ => gate.cut(),
    }

    let claim = scene.claim_lease().expect("a killed run cannot release its claim");
    assert!(claim["spec"]["holderIdentity"].as_str().expect("a holder").starts_with("tester@"), "{claim}");
    let left = scene.left(engine);
    assert_eq!(left.len(), phase.containers + phase.volumes, "{left:?}: {said}");
    token_is_short_and_nowhere_else(&scene, engine, &left, phase);
    while phase.freed && scene.held() {
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(scene.held(), !phase.freed, "the lock");

    // Under the dead run's claim the next one touches nothing.
    if phase.freed {
        exits(&run(&mut scene.command(&[])), 0, &["info[unlock-nothing-to-do]", "claim-"]);
    } else {
        exits(&run(&mut scene.command(&[])), 4, &["is being worked on by tester@"]);
    }
    assert_eq!(scene.left(engine).len(), left.len(), "a run without the claim cleaned");
    let key = LeaseKey { namespace: scene.name().to_string(), name: scene.claim() };
    let holder = claim["spec"]["holderIdentity"].as_str().expect("a holder");
    let ended = reclaim_soon(ground(), &key, holder);
    assert!(matches!(ended, Reclaimed::Freed { .. }), "{ended:?}");

    let verdict = if phase.freed { "info[unlock-nothing-to-do]" } else { "info[unlock-done]" };
    let words = exits(&run(&mut scene.command(&[])), 0, &[verdict]);
    assert_eq!(words.contains("Removed what an earlier run left"), !left.is_empty(), "{words}");
    assert_eq!(scene.left(engine), Vec::<String>::new(), "something stays in the engine");
    assert_eq!(scene.claim_lease(), None, "the claim stays");
    assert_eq!(scene.workspace.holder(), None, "the lock is held");
    assert_eq!(state_version(ground(), &scene.workspace), before, "the state was written");
}

/// The token that was put into the volume: for ten minutes, of the unlocker, and in nothing that an engine shows.
fn token_is_short_and_nowhere_else(scene: &Scene, engine: &str, left: &[String], phase: &Phase) {
    let asked: Vec<Request> =
        scene.server.requests().into_iter().filter(|r| r.is("POST", "/serviceaccounts/")).collect();
    let expected = usize::from(phase.volumes > 0);
    assert_eq!(asked.len(), expected, "tokens asked for when {}", phase.name);
    for request in &asked {
        assert!(request.path.ends_with("/captf-unlocker/token"), "{}", request.path);
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        assert_eq!(body["spec"]["expirationSeconds"], 600);
    }
    for request in scene.engine.requests() {
        let sent = String::from_utf8_lossy(&request.body);
        if request.is("PUT", "/archive") {
            let token = credentials::claims_of(&credentials::in_archive(&request.body, "unlock/token"));
            let life = token["exp"].as_i64().expect("an end") - token["iat"].as_i64().expect("a start");
            assert!(life <= 600, "a token for {life} s");
            assert_eq!(token["kubernetes.io"]["serviceaccount"]["name"], "captf-unlocker");
        } else {
            assert!(!sent.contains("eyJ") && !request.path.contains("eyJ"), "a token in {}", request.path);
        }
    }
    for id in left {
        for args in [["inspect", id], ["logs", id]] {
            let shown = text(&engines().cli(engine, &args));
            assert!(!shown.contains("eyJ"), "a token is shown by {args:?}");
        }
    }
}
