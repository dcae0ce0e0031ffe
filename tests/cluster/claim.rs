//! The operator claim on a real API server, with short durations where time matters.

use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kubectl_captf::claim::lease::{LeaseKey, Leases};
use kubectl_captf::claim::protocol::FenceError;
use kubectl_captf::claim::reclaim::{Reclaimed, reclaim};
use kubectl_captf::claim::{Held, Lost, Released, TakeError, Terms};
use kubectl_captf::cluster::claim::{KubeLeases, SystemClock};
use kubectl_captf::cluster::client::{Connection, connect};
use kubectl_captf::cluster::meter::Meter;
use serde_json::json;

use crate::ground::{Ground, Namespace, ground};

const SHORT: Terms = Terms {
    duration: Duration::from_secs(5),
    renew_every: Duration::from_millis(400),
    watch_at_least: Duration::from_secs(5),
};

/// Reclaims a claim as `claim reclaim` does, after a second instead of a minute.
pub fn reclaim_soon(ground: &Ground, key: &LeaseKey, holder: &str) -> Reclaimed {
    let mut lease = ground.get("Lease", &key.namespace, &key.name);
    lease["spec"]["leaseDurationSeconds"] = json!(1);
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}", key.namespace, key.name);
    ground.request("PUT", &path, Some(&lease)).unwrap_or_else(|refused| panic!("PUT {path}: {refused:?}"));
    let terms = Terms { watch_at_least: Duration::from_secs(1), ..SHORT };
    let me = "c@h/3/0000000000000003";
    block_on(async { reclaim(&leases(ground), &SystemClock::default(), key, holder, me, terms).await })
}

fn leases(ground: &Ground) -> KubeLeases {
    let connection = Connection { kubeconfig: Some(ground.kubeconfig.clone()), ..Connection::default() };
    KubeLeases::new(&connect(&connection, &Meter::new(false)).expect("a client").api)
}

fn key(namespace: &Namespace<'_>) -> LeaseKey {
    LeaseKey { namespace: namespace.name().to_string(), name: "captf-claim-f66792f9106e7299-c".to_string() }
}

async fn take(ground: &Ground, key: &LeaseKey, me: &str) -> Result<Held<KubeLeases, SystemClock>, TakeError> {
    Held::take(leases(ground), SystemClock::default(), key.clone(), me.to_string(), "force-unlock", SHORT).await
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(future)
}

/// The ground's own calls block, and may not do so inside a runtime.
fn outside<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(call).join().expect("a call outside"))
}

/// The binary as the admin, without the developer's environment.
pub fn captf(ground: &Ground) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-captf"));
    command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", &ground.dir).env("USER", "tester");
    command.env("KUBECONFIG", &ground.kubeconfig).stdin(Stdio::null());
    command
}

/// The same on a terminal of its own, started.
pub fn started_on_terminal(ground: &Ground, line: &str) -> std::process::Child {
    let binary = env!("CARGO_BIN_EXE_kubectl-captf");
    let mut command = Command::new("script");
    command.args(["-qefc", &format!("{binary} {line}"), "/dev/null"]);
    command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", &ground.dir).env("USER", "tester");
    command.env("KUBECONFIG", &ground.kubeconfig).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("run script")
}

/// The same on a terminal of its own, with `typed` as what a person types.
pub fn on_terminal(ground: &Ground, line: &str, typed: &str) -> Output {
    let mut child = started_on_terminal(ground, line);
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, typed.as_bytes()).expect("type");
    let output = child.wait_with_output().expect("wait for script");
    drop(stdin);
    output
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_claim_is_taken_renewed_and_released() {
    let ground = ground();
    let namespace = ground.namespace("claim");
    let key = key(&namespace);
    block_on(async {
        let held = take(ground, &key, "a@h/1/0000000000000001").await.expect("a free claim");
        let first = outside(|| ground.get("Lease", &key.namespace, &key.name));
        assert_eq!(first["spec"]["holderIdentity"], "a@h/1/0000000000000001");
        assert_eq!(first["spec"]["leaseDurationSeconds"], 5);
        assert_eq!(first["metadata"]["annotations"]["kubectl.captf.io/operation"], "force-unlock");
        assert!(first["metadata"]["labels"].is_null(), "the manager would take it for its own");
        held.renew().await.expect("a renewal");
        let second = outside(|| ground.get("Lease", &key.namespace, &key.name));
        assert_ne!(first["spec"]["renewTime"], second["spec"]["renewTime"]);
        assert_eq!(first["spec"]["acquireTime"], second["spec"]["acquireTime"]);
        held.fence().await.expect("our own claim");
        match take(ground, &key, "b@h/2/0000000000000002").await {
            Err(TakeError::Held(lease)) => assert_eq!(lease.holder.as_deref(), Some("a@h/1/0000000000000001")),
            other => panic!("{:?}", other.err()),
        }
        assert_eq!(held.release().await, Released::Deleted);
    });
    assert!(ground.find("Lease", &key.namespace, &key.name).is_none());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn of_a_hundred_races_each_has_one_winner() {
    let ground = ground();
    let namespace = ground.namespace("claim");
    for round in 0..100 {
        let key = LeaseKey { namespace: namespace.name().to_string(), name: format!("captf-claim-{round}") };
        let won = AtomicU32::new(0);
        thread::scope(|scope| {
            for me in ["a@h/1/0000000000000001", "b@h/2/0000000000000002"] {
                let (key, won) = (&key, &won);
                scope.spawn(move || {
                    block_on(async {
                        match take(ground, key, me).await {
                            Ok(_) => drop(won.fetch_add(1, Ordering::SeqCst)),
                            Err(TakeError::Held(_)) => {}
                            Err(other) => panic!("{other:?}"),
                        }
                    });
                });
            }
        });
        assert_eq!(won.into_inner(), 1, "round {round}");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_silent_claim_is_reclaimed_and_its_holder_notices() {
    let ground = ground();
    let namespace = ground.namespace("claim");
    let key = key(&namespace);
    block_on(async {
        let (a, c) = ("a@h/1/0000000000000001", "c@h/3/0000000000000003");
        let held = take(ground, &key, a).await.expect("a free claim");
        let start = Instant::now();
        let ended = reclaim(&leases(ground), &SystemClock::default(), &key, a, c, SHORT).await;
        assert_eq!(ended, Reclaimed::Freed { watched: Duration::from_secs(5) });
        assert!(start.elapsed() >= Duration::from_secs(5));
        assert!(matches!(held.fence().await, Err(FenceError::Lost(_))));
        assert!(matches!(held.release().await, Released::NotOurs(_)));
        let again = take(ground, &key, c).await.expect("a freed claim");
        assert_eq!(again.release().await, Released::Deleted);
    });
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_renewing_claim_is_not_reclaimed() {
    let ground = ground();
    let namespace = ground.namespace("claim");
    let key = key(&namespace);
    block_on(async {
        let (a, c) = ("a@h/1/0000000000000001", "c@h/3/0000000000000003");
        let held = take(ground, &key, a).await.expect("a free claim");
        let (leases, clock) = (leases(ground), SystemClock::default());
        let ended = tokio::select! {
            lost = held.keep() => panic!("{lost:?}"),
            ended = reclaim(&leases, &clock, &key, a, c, SHORT) => ended,
        };
        assert!(matches!(ended, Reclaimed::Alive(_)), "{ended:?}");
        held.fence().await.expect("still ours");
        assert_eq!(held.release().await, Released::Deleted);
    });
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_server_that_is_away_costs_the_claim_by_our_own_clock() {
    let ground = Ground::start();
    let namespace = ground.namespace("claim");
    let key = key(&namespace);
    block_on(async {
        let held = take(&ground, &key, "a@h/1/0000000000000001").await.expect("a free claim");
        ground.stop_apiserver();
        let lost = tokio::time::timeout(Duration::from_secs(30), held.keep()).await.expect("an end");
        assert_eq!(lost, Lost::NotRenewed);
        ground.start_apiserver();
        assert_eq!(held.fence().await, Err(FenceError::Lost(Lost::NotRenewed)));
        assert_eq!(held.release().await, Released::NotOurs(Lost::NotRenewed));
    });
    assert!(ground.find("Lease", &key.namespace, &key.name).is_some(), "a lost claim is not touched");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn deviceschains_lock_is_read_and_reclaimed_by_the_same_rules() {
    let ground = ground();
    let namespace = ground.namespace("dcctl");
    let name = namespace.name();
    let holder = "ops@bastion/4711/00112233445566ff";
    ground.apply_value(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "dcctl", "namespace": name,
            "annotations": {"core.devicechain.io/instance": "prod-1"}},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 1, "leaseTransitions": 2,
            "renewTime": "2026-01-10T08:00:00.000000Z", "acquireTime": "2026-01-10T07:00:00.000000Z"},
    }));
    let shown = captf(ground).args(["claim", "inspect", "--lease", "dcctl", "-n", name]).output().expect("run");
    let words = text(&shown);
    assert_eq!(shown.status.code(), Some(10), "{words}");
    assert!(
        words.contains(holder) && words.contains("prod-1") && words.contains("claim reclaim --lease dcctl"),
        "{words}"
    );

    let refused = captf(ground).args(["claim", "reclaim", "--lease", "dcctl", "-n", name]).output().expect("run");
    assert_eq!(refused.status.code(), Some(4), "{}", text(&refused));
    for (typed, why) in [("\x04", "end of input"), ("yes\n", "something else")] {
        let refused = on_terminal(ground, &format!("claim reclaim --lease dcctl -n {name}"), typed);
        assert_eq!(refused.status.code(), Some(4), "{}", text(&refused));
        assert!(text(&refused).contains(why), "{}", text(&refused));
    }
    assert_eq!(ground.get("Lease", name, "dcctl")["spec"]["holderIdentity"], holder);

    // Duration 1 is watched for a minute all the same.
    let start = Instant::now();
    let freed = on_terminal(ground, &format!("claim reclaim --lease dcctl -n {name}"), &format!("{holder}\n"));
    assert_eq!(freed.status.code(), Some(0), "{}", text(&freed));
    assert!(start.elapsed() >= Duration::from_secs(60));
    assert!(text(&freed).contains("renewed nothing for 60s"), "{}", text(&freed));
    assert!(ground.find("Lease", name, "dcctl").is_none());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_claim_is_listed_with_its_object_and_met_by_lock_inspect() {
    let ground = ground();
    let namespace = ground.namespace("claim");
    let name = namespace.name();
    ground.apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformCluster",
        "metadata": {"name": "prod", "namespace": name},
        "spec": {"source": {"image": "registry.example.com/team/prod:1"},
            "identityRef": {"kind": "Secret", "name": "creds"}},
    }));
    let suffix = crate::ground::runtime::suffix(name, "TerraformCluster", "prod");
    let key = LeaseKey { namespace: name.to_string(), name: format!("captf-claim-{suffix}") };
    block_on(async {
        let _held = take(ground, &key, "a@h/1/0000000000000001").await.expect("a free claim");
        for line in [
            vec!["claim", "list", "-n", name],
            vec!["lock", "inspect", "-n", name],
            vec!["lock", "inspect", "tfc/prod", "-n", name],
        ] {
            let shown = captf(ground).args(&line).output().expect("run");
            let words = text(&shown);
            assert!(words.contains("TerraformCluster") && words.contains("info[claim-held]"), "{line:?}: {words}");
            assert!(words.contains("a@h/1/0000000000000001"), "{line:?}: {words}");
        }
        assert!(leases(ground).read(&key).await.found().is_some());
    });
}
