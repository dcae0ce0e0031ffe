//! Locks that may live, states that could be harmed, and words that do not fit.

use super::*;

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_live_lock_is_refused_by_every_method() {
    let ground = ground();
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let workspace = Runtime::terraform().object(&namespace, "TerraformCluster", "prod");
    workspace.apply(&json!({}));
    // Its own runner's pod: live by the controller's rule.
    let pod = "captf-c-prod-apply-a1-abc123-x7k2p";
    ground.apply_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": name},
        "spec": {"containers": [{"name": "source", "image": "x"}]}, "status": {"phase": "Running"},
    }));
    let running = workspace.apply_running(pod);
    let id = running.lock.clone();
    for method in ["runtime", "job", "lease"] {
        let more = ["--method", method, "--do-not-wait", "--without-claim"];
        refused(engines(), &workspace, &id, &more, &["error[unlock-refused-live]", pod]);
    }
    running.finish();
    workspace.apply(&json!({}));
    // A foreign host whose pod is there, in another namespace.
    let elsewhere = ground.namespace("elsewhere");
    ground.apply_value(json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "app2-tf-runner", "namespace": elsewhere.name()},
        "spec": {"containers": [{"name": "tf", "image": "x"}]}, "status": {"phase": "Running"},
    }));
    let id = workspace.apply_and_kill("app2-tf-runner");
    for method in ["runtime", "lease"] {
        let words = refused(engines(), &workspace, &id, &["--method", method], &["error[unlock-holder-seen]"]);
        assert!(words.contains(&format!("{}/app2-tf-runner", elsewhere.name())), "{words}");
    }
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn wrong_labels_and_copies_are_refused_by_every_method() {
    let ground = ground();
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let secret = ground.get("Secret", name, &workspace.secret());
    let mut changed = secret.clone();
    changed["metadata"]["labels"]["captf.io/managed"] = json!("false");
    replace(ground, "Secret", &changed);
    for method in ["runtime", "lease"] {
        let needles = ["error[unlock-state-unprotected]", "captf.io/managed"];
        refused(engines(), &workspace, &id, &["--method", method], &needles);
    }
    let mut repaired = secret.clone();
    repaired["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    replace(ground, "Secret", &repaired);
    ground.apply_value(json!({
        "apiVersion": "v1", "kind": "Secret", "data": secret["data"],
        "metadata": {"name": "copy-of-state-1", "namespace": name, "labels": secret["metadata"]["labels"]},
    }));
    refused(engines(), &workspace, &id, &[], &["error[unlock-state-unprotected]", "copy-of-state-1"]);
    assert_eq!(engines().ours(&engines().docker, name), Vec::<String>::new());
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn wrong_words_are_refused() {
    let ground = ground();
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    refused(engines(), &workspace, "00000000-0000-4000-8000-000000000000", &[], &["the lock has the ID"]);
    let mut other = captf(ground);
    other.args(["lock", "force-unlock", "tfc/prod", "-n", name, "--lock-id", &id, "--holder", "unknown"]);
    exits(&run(other.args(["--holder-is-dead", "--reason", "r"])), 4, &["is held by root@"]);
    let mut nobody = captf(ground);
    nobody.args(["lock", "force-unlock", "tfc/prod", "-n", name, "--method", "lease"]);
    exits(&run(&mut nobody), 4, &["no terminal"]);
    let line = format!("lock force-unlock tfc/prod -n {name} --method lease");
    exits(&on_terminal(ground, &line, "yes\n"), 4, &["something else"]);
    exits(&on_terminal(ground, &line, "\x04"), 4, &["end of input"]);
    assert_eq!(workspace.holder(), Some(id));
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_lock_that_changes_hands_between_question_and_run_is_left_alone() {
    let (ground, all) = (ground(), engines());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let line = format!("lock force-unlock tfc/prod -n {name} --engine {} --service-account captf-unlocker", all.docker);
    let other = "11111111-2222-4333-8444-555555555555";
    let taken = || {
        let mut lease = ground.get("Lease", name, &workspace.lease());
        lease["spec"]["holderIdentity"] = json!(other);
        replace(ground, "Lease", &lease);
    };
    let output = interrupted_by(ground, &line, "Type the lock ID", taken, &format!("{id}\n"));
    exits(&output, 4, &["warning[unlock-someone-was-first]", other]);
    assert_eq!(workspace.holder().as_deref(), Some(other));
    // Released in the meantime: nothing is run on a free lock.
    let released = || {
        let mut lease = ground.get("Lease", name, &workspace.lease());
        lease["spec"].as_object_mut().expect("a spec").remove("holderIdentity");
        replace(ground, "Lease", &lease);
    };
    let before = state_version(ground, &workspace);
    let output = interrupted_by(ground, &line, "Type the lock ID", released, &format!("{other}\n"));
    exits(&output, 0, &["warning[unlock-someone-was-first]", "free"]);
    assert_eq!(state_version(ground, &workspace), before);
    let claim = format!("captf-claim-{}", workspace.suffix);
    assert!(ground.find("Lease", name, &claim).is_none(), "the claim stays");
    assert_eq!(all.ours(&all.docker, name), Vec::<String>::new());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn the_gap_after_a_job_is_waited_for_and_a_change_while_watching_refuses() {
    let ground = ground();
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let uid = ground.get("TerraformCluster", name, "prod")["metadata"]["uid"].clone();
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "captf-c-prod-refresh-a1-abc123", "namespace": name,
            "labels": {"captf.infrastructure.cluster.x-k8s.io/owner-kind": "TerraformCluster",
                "captf.infrastructure.cluster.x-k8s.io/owner-name": "prod",
                "captf.infrastructure.cluster.x-k8s.io/op": "refresh"},
            "ownerReferences": [{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
                "kind": "TerraformCluster", "name": "prod", "uid": uid, "controller": true}]},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "source", "image": "x"}]}}},
    });
    ground.apply_value(job.clone());
    let at_once = Call { namespace: name, engine: "", id: &id, more: &["--method", "lease"] };
    exits(&run(&mut unlock(ground, &at_once)), 4, &["warning[unlock-waits-for-job]", "--wait"]);
    // Something writes to the Lease while it is watched.
    let start = |more: &[&str]| {
        let mut command = unlock(ground, &Call { more, ..at_once });
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start")
    };
    let waiting = start(&["--method", "lease", "--wait", "--observe", "8s"]);
    thread::sleep(Duration::from_secs(3));
    let mut ended = ground.get("Job", name, "captf-c-prod-refresh-a1-abc123");
    let at = "2026-01-10T08:10:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": at});
    ended["status"] =
        json!({"failed": 1, "startTime": at, "conditions": [condition("FailureTarget"), condition("Failed")]});
    let path = format!("/apis/batch/v1/namespaces/{name}/jobs/captf-c-prod-refresh-a1-abc123/status");
    ground.request("PUT", &path, Some(&ended)).unwrap_or_else(|refused| panic!("PUT {path}: {refused:?}"));
    thread::sleep(Duration::from_secs(5));
    let mut lease = ground.get("Lease", name, &workspace.lease());
    lease["metadata"]["annotations"]["touched"] = json!("yes");
    replace(ground, "Lease", &lease);
    let output = waiting.wait_with_output().expect("wait");
    exits(&output, 4, &["Waiting for Job captf-c-prod-refresh", "error[unlock-holder-seen]", "the Lease: version"]);
    // Nothing changes: it goes on.
    let output = start(&["--method", "lease", "--wait", "--observe", "3s"]).wait_with_output().expect("wait");
    exits(&output, 0, &["info[unlock-done]"]);
    assert_eq!(workspace.holder(), None);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn whoever_may_not_claim_is_told_the_verbs() {
    let ground = ground();
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let rules = json!([
        {"apiGroups": ["infrastructure.cluster.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters"], "verbs": ["get"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": ["get", "list"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]},
    ]);
    let kubeconfig = ground.service_account_kubeconfig(name, "half", &rules);
    let call = Call { namespace: name, engine: "", id: &id, more: &["--method", "lease"] };
    let output = run(unlock(ground, &call).env("KUBECONFIG", &kubeconfig));
    exits(&output, 4, &["you may not create, delete leases", "--without-claim"]);
    assert_eq!(workspace.holder().as_deref(), Some(id.as_str()));
    let call = Call { more: &["--method", "lease", "--without-claim"], ..call };
    let output = run(unlock(ground, &call).env("KUBECONFIG", &kubeconfig));
    exits(&output, 0, &["info[unlock-done]", "not created: forbidden", "not read  Pods in all namespaces"]);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn an_apply_that_is_not_bookkept_yet_keeps_its_proof() {
    let ground = ground();
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let uid = ground.get("TerraformCluster", name, "prod")["metadata"]["uid"].clone();
    ground.apply_value(json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "captf-c-prod-apply-a1-abc123", "namespace": name,
            "labels": {"captf.infrastructure.cluster.x-k8s.io/owner-kind": "TerraformCluster",
                "captf.infrastructure.cluster.x-k8s.io/owner-name": "prod",
                "captf.infrastructure.cluster.x-k8s.io/op": "apply"},
            "annotations": {"captf.io/state-lock-version": "17"},
            "ownerReferences": [{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
                "kind": "TerraformCluster", "name": "prod", "uid": uid, "controller": true}]},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "source", "image": "x"}]}}},
        "status": {"failed": 1, "startTime": "2026-01-10T08:00:00Z", "conditions": [
            {"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded",
                "lastTransitionTime": "2026-01-10T08:10:00Z"},
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
                "lastTransitionTime": "2026-01-10T08:10:00Z"}]},
    }));
    for method in ["runtime", "lease"] {
        refused(engines(), &workspace, &id, &["--method", method], &["warning[unlock-waits-for-bookkeeping]"]);
    }
}
