//! A claim that is lost while a container runs: it is stopped, nothing more is started, nothing more is written.

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
            let output = end_of(child);
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
            let output = end_of(child);
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
            let output = end_of(child);
            gate.cut();
            let needles =
                ["the claim was lost", "force-unlock was running and was stopped", "still held, by the same ID"];
            exits(&output, 1, &needles);
            assert!(scene.held());
            assert_eq!(scene.left(engine), Vec::<String>::new());
        });
        // While a Job of the cluster runs: it is deleted, which touches nothing that is shared.
        scope.spawn(|| {
            let scene = Scene::new(engine, terraform_nonroot());
            may_run_jobs(&scene);
            let child = scene.start(&["--method", "job"]);
            let jobs = || ground().list("Job", scene.name(), "kubectl.captf.io/force-unlock");
            let start = Instant::now();
            while jobs().is_empty() {
                assert!(start.elapsed() < Duration::from_secs(60), "no Job was created");
                thread::sleep(Duration::from_millis(100));
            }
            scene.take_claim_away();
            let output = end_of(child);
            let needles = ["the claim was lost", "the Job was running; it is deleted", "still held, by the same ID"];
            exits(&output, 1, &needles);
            let gone = |j: &Value| !j["metadata"]["deletionTimestamp"].is_null();
            assert!(jobs().iter().all(gone), "the Job stays");
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
            let output = end_of(child);
            exits(&output, 0, &["info[unlock-done]", "no Event was created: the claim was lost", "other@elsewhere"]);
            assert_eq!(scene.workspace.holder(), None);
            assert_eq!(writes_since(&scene, start), Vec::<String>::new());
        });
    });
}

/// What `--method job` needs beyond the shipped Role.
fn may_run_jobs(scene: &Scene) {
    let metadata = json!({"name": "jobs", "namespace": scene.name()});
    ground().apply_value(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
        "rules": [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get", "delete"]}],
    }));
    ground().apply_value(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "jobs"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": scene.name()}],
    }));
}

fn stopped_before_the_lock(scene: &Scene, engine: &str) {
    let started = scene.engine.requests().iter().filter(|r| r.is("POST", "/start")).count();
    assert_eq!(started, 1, "a container was started under a lost claim");
    assert!(scene.held(), "the lock was touched");
    assert_eq!(scene.left(engine), Vec::<String>::new(), "something stays in the engine");
}
