//! Tests of the test ground itself: what the other tests rely on.

mod kinds;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::process::Command;

use serde_json::{Value, json};

use super::runtime::{Runtime, Workspace, labels, succeeded, suffix};
use super::{Ground, ground};

/// A TerraformCluster with a status, for a namespace.
fn cluster(namespace: &str) -> String {
    format!(
        "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformCluster
metadata: {{name: demo, namespace: {namespace}, labels: {{cluster.x-k8s.io/cluster-name: demo}}}}
spec:
  source: {{image: registry.test/demo:1}}
  identityRef: {{name: demo}}
  variables: {{region: here, deep: {{list: [1, 2]}}}}
status:
  stateSecretSuffix: {}
  initialization: {{provisioned: true}}
  conditions:
  - {{type: Ready, status: 'True', reason: Ready, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}}
---
apiVersion: v1
kind: Pod
metadata: {{name: captf-c-demo-apply-a1-0a1b2c-xxxxx, namespace: {namespace}}}
spec: {{containers: [{{name: main, image: registry.test/demo:1}}]}}
status: {{phase: Running}}
",
        suffix(namespace, "TerraformCluster", "demo")
    )
}

#[test]
fn names_follow_the_documented_rules() {
    // printf %s team-a/TerraformCluster/demo | sha256sum
    assert_eq!(suffix("team-a", "TerraformCluster", "demo"), "6d0be5af00180804-c");
    assert!(suffix("team-a", "TerraformMachinePool", "demo").ends_with("-mp"));
    let long = "a".repeat(64);
    let hashed = &labels("TerraformMachine", &long, "demo")[1].1;
    assert_eq!(hashed.len(), 16, "a long owner-name is hashed: {hashed}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn objects_are_stored_with_their_status() {
    let ground = ground();
    let namespace = ground.namespace("stored");
    let stored = ground.apply(&cluster(namespace.name()));
    assert_eq!(stored.len(), 2);
    assert_eq!(stored[0]["status"]["initialization"]["provisioned"], true);
    assert_eq!(stored[0]["spec"]["variables"]["deep"]["list"][1], 2);
    let pod = ground.get("Pod", namespace.name(), "captf-c-demo-apply-a1-0a1b2c-xxxxx");
    assert_eq!(pod["status"]["phase"], "Running");

    let again = ground.apply(&cluster(namespace.name()).replace("demo:1", "demo:2"));
    assert_eq!(again[0]["metadata"]["uid"], stored[0]["metadata"]["uid"]);
    assert_eq!(again[0]["spec"]["source"]["image"], "registry.test/demo:2");

    let patch = json!({"status": {"observedGeneration": 7}});
    let patched = ground.patch("TerraformCluster", namespace.name(), "demo", Some("status"), &patch);
    assert_eq!(patched["status"]["observedGeneration"], 7);
    let listed = ground.list("TerraformCluster", namespace.name(), "cluster.x-k8s.io/cluster-name=demo");
    assert_eq!(listed.len(), 1);
    ground.delete("TerraformCluster", namespace.name(), "demo");
    assert!(ground.find("TerraformCluster", namespace.name(), "demo").is_none());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn schemas_refuse_what_captf_refuses() {
    let ground = ground();
    let namespace = ground.namespace("schema");
    ground.apply(&cluster(namespace.name()));
    let path = format!(
        "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{}/terraformclusters/demo",
        namespace.name()
    );
    for wrong in [
        json!({"spec": {"deletionPolicy": "Keep"}}),
        json!({"spec": {"jobs": {"activeDeadlineSeconds": 0}}}),
        json!({"spec": {"controlPlaneEndpoint": {"host": "only.test"}}}),
        json!({"spec": {"identityRef": null}}),
    ] {
        let refused =
            ground.request("PATCH", &path, Some(&wrong)).expect_err("patch a TerraformCluster with a wrong value");
        assert_eq!(refused.code, 422, "{wrong}: {}", refused.message);
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_service_account_may_only_do_what_its_rules_say() {
    let ground = ground();
    let namespace = ground.namespace("rbac");
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}]);
    let kubeconfig = ground.service_account_kubeconfig(namespace.name(), "reader", &rules);
    let kubectl = |arguments: &[&str]| {
        Command::new(&ground.kubectl)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .args(arguments)
            .output()
            .unwrap_or_else(|error| panic!("run kubectl: {error}"))
    };
    succeeded("list secrets", &kubectl(&["get", "secrets"]));
    for forbidden in [
        vec!["get", "leases"],
        vec!["get", "secrets", "--namespace", "default"],
        vec!["create", "secret", "generic", "new"],
    ] {
        let output = kubectl(&forbidden);
        let error = String::from_utf8_lossy(&output.stderr).to_lowercase();
        assert!(error.contains("forbidden"), "{forbidden:?}: {error}");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_killed_terraform_leaves_its_lock() {
    killed_runtime_leaves_its_lock(&Runtime::terraform(), "killed-terraform");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_killed_tofu_leaves_its_lock() {
    killed_runtime_leaves_its_lock(&Runtime::tofu(), "killed-tofu");
}

fn killed_runtime_leaves_its_lock(runtime: &Runtime, stem: &str) {
    let ground = ground();
    let namespace = ground.namespace(stem);
    let workspace = runtime.object(&namespace, "TerraformCluster", "demo");
    workspace.apply(&json!({"output": {"answer": {"value": 42}}}));
    assert_eq!(workspace.holder(), None, "a clean end releases the lock");
    let secret = ground.get("Secret", namespace.name(), &workspace.secret());
    for (key, value) in &workspace.labels {
        assert_eq!(secret["metadata"]["labels"][key], **value, "label {key}");
    }

    let pod = "captf-c-demo-apply-a1-0a1b2c-xxxxx";
    let lock = workspace.apply_and_kill(pod);
    assert_eq!(workspace.holder().as_deref(), Some(lock.as_str()));
    let info = workspace.lock_info().expect("find the lock-info");
    assert_eq!(info["ID"], lock);
    assert_eq!(info["Operation"], "OperationTypeApply");
    let who = info["Who"].as_str().expect("read Who of the lock-info");
    assert!(who.ends_with(&format!("@{pod}")), "{who}");

    let refused = workspace.try_apply();
    assert!(!refused.status.success(), "the lock is held");
    succeeded("force-unlock", &workspace.run(&["force-unlock", "-force", &lock]));
    assert_eq!(workspace.holder(), None);
    assert!(workspace.lock_info().is_none());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_running_apply_ends_cleanly() {
    let ground = ground();
    for (runtime, stem) in [(Runtime::terraform(), "clean-terraform"), (Runtime::tofu(), "clean-tofu")] {
        let namespace = ground.namespace(stem);
        let workspace = runtime.object_in(&namespace, "TerraformMachine", "worker-1", "demo");
        let running = workspace.apply_running("some-pod");
        assert_eq!(workspace.holder().as_deref(), Some(running.lock.as_str()));
        running.finish();
        assert_eq!(workspace.holder(), None);
        assert!(ground.find("Lease", namespace.name(), &workspace.lease()).is_some(), "the Lease stays");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_runtime_can_work_with_the_rights_of_a_job() {
    let ground = ground();
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"],
         "verbs": ["get", "list", "create", "update", "delete"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
         "verbs": ["get", "create", "update"]},
    ]);
    for (runtime, stem) in [(Runtime::terraform(), "rights-terraform"), (Runtime::tofu(), "rights-tofu")] {
        let namespace = ground.namespace(stem);
        let kubeconfig = ground.service_account_kubeconfig(namespace.name(), "captf-runner", &rules);
        let workspace =
            runtime.object(&namespace, "TerraformMachinePool", "demo").credentials(&kubeconfig).lock_timeout(1);
        workspace.apply(&json!({}));
        assert_eq!(workspace.holder(), None);
    }
}

/// Applies a state of which more than 1 MiB is left when it is compressed.
fn large_state(workspace: &Workspace<'_>) -> std::process::Output {
    let random = RandomState::new();
    let text: String = (0..200_000_u32).map(|number| format!("{:016x}", random.hash_one(number))).collect();
    workspace.root(&json!({"output": {"large": {"value": text}}}));
    workspace.init();
    workspace.try_apply()
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn terraform_splits_a_large_state_and_tofu_cannot_store_it() {
    let ground = ground();
    let namespace = ground.namespace("large");
    let terraform = Runtime::terraform().object(&namespace, "TerraformCluster", "terraform");
    succeeded("apply", &large_state(&terraform));
    let selector = format!("tfstate=true,tfstateSecretSuffix={}", terraform.suffix);
    let mut names: Vec<Value> = ground
        .list("Secret", namespace.name(), &selector)
        .into_iter()
        .map(|secret| secret["metadata"]["name"].clone())
        .collect();
    names.sort_by_key(Value::to_string);
    let part = format!("{}-part-1", terraform.secret());
    assert_eq!(names, [json!(terraform.secret()), json!(part)]);

    let tofu = Runtime::tofu().object(&namespace, "TerraformCluster", "tofu");
    let output = large_state(&tofu);
    assert!(!output.status.success(), "OpenTofu stored more than 1 MiB");
    assert!(tofu.folder().join("errored.tfstate").exists());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn the_api_server_can_be_away_for_a_while() {
    let ground = Ground::start_audited();
    let namespace = ground.namespace("outage");
    ground.apply(&cluster(namespace.name()));
    ground.stop_apiserver();
    let gone = ground.request("GET", "/version", None);
    assert_eq!(gone.expect_err("reach a stopped API server").code, 0);
    ground.start_apiserver();
    let back = ground.get("TerraformCluster", namespace.name(), "demo");
    assert_eq!(back["status"]["initialization"]["provisioned"], true);
    let log = ground.audit.as_ref().expect("find the path of the audit log");
    let text = std::fs::read_to_string(log).expect("read the audit log");
    assert!(text.contains("terraformclusters"), "{text}");
}
