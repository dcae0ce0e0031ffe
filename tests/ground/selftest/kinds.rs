//! Every kind that tests write is accepted with the status they need.

use serde_json::{Value, json};

use super::super::{Ground, ground};

const DOCUMENTS: &str = "
apiVersion: v1
kind: Node
metadata: {name: NODE}
status:
  conditions: [{type: Ready, status: Unknown, reason: NodeStatusUnknown}]
---
apiVersion: v1
kind: Secret
metadata: {name: demo}
data: {tfstate: H4sIAAAAAAAA/wMAAAAAAAAAAAA=}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: demo, labels: {captf.io/variables: 'true'}}
data: {region: here}
---
apiVersion: v1
kind: Event
metadata: {name: demo.1}
involvedObject: {kind: TerraformCluster, name: demo, namespace: NAMESPACE}
reason: ForceUnlocked
type: Normal
lastTimestamp: '2026-01-01T00:00:00Z'
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: lock-tfstate-default-demo, annotations: {app.terraform.io/lock-info: '{}'}}
spec: {holderIdentity: some-id}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformClusterIdentity
metadata: {name: IDENTITY}
spec:
  allowedNamespaces: {list: [NAMESPACE]}
  secretRef: {name: demo, namespace: NAMESPACE}
status: {namespaces: [NAMESPACE]}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformMachine
metadata: {name: demo}
spec: {source: {image: 'registry.test/demo:1'}}
status: {stateSecretSuffix: 0123456789abcdef-m}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformMachinePool
metadata: {name: demo}
spec: {source: {image: 'registry.test/demo:1'}}
status: {stateSecretSuffix: 0123456789abcdef-mp}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1
kind: TerraformPlan
metadata: {name: demo}
spec:
  inputsHash: 'h2:0'
  planHash: '0'
  reason: Manual
  summary: {create: 1}
  targetRef: {kind: TerraformCluster, name: demo}
status: {phase: Pending}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo}
spec: {paused: true, infrastructureRef: {kind: TerraformCluster, name: demo}}
status: {phase: Provisioned}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata: {name: demo}
spec: {clusterName: demo}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachinePool
metadata: {name: demo}
spec: {clusterName: demo}
";

#[test]
#[ignore = "needs the test ground (make test)"]
fn every_kind_can_be_written() {
    let ground = ground();
    let namespace = ground.namespace("kinds");
    let name = namespace.name();
    let documents = DOCUMENTS
        .replace("metadata: {name: demo", "metadata: {namespace: NAMESPACE, name: demo")
        .replace("metadata: {name: lock", "metadata: {namespace: NAMESPACE, name: lock")
        .replace("NAMESPACE", name)
        .replace("NODE", &format!("{name}-node"))
        .replace("IDENTITY", &format!("{name}-identity"));
    for round in ["create", "replace"] {
        let stored = ground.apply(&documents);
        assert_eq!(stored.len(), 12, "{round}");
        assert_eq!(stored[0]["status"]["conditions"][0]["status"], "Unknown");
        assert_eq!(stored[5]["status"]["namespaces"], json!([name]));
        assert_eq!(stored[8]["status"]["phase"], "Pending");
        assert_eq!(stored[9]["status"]["phase"], "Provisioned");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn jobs_can_be_in_every_state() {
    let ground = ground();
    let namespace = ground.namespace("jobs");
    let started = "2026-01-01T00:00:00Z";
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": started});
    let complete = json!({
        "startTime": started,
        "completionTime": "2026-01-01T00:01:00Z",
        "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    });
    let failed = json!({
        "startTime": started,
        "failed": 1,
        "conditions": [condition("FailureTarget"), condition("Failed")],
    });
    let active = json!({"startTime": started, "active": 1});
    for (name, status) in [("complete", complete), ("failed", failed), ("active", active)] {
        let stored = job(ground, namespace.name(), name, &status);
        assert_eq!(stored["status"]["startTime"], started, "{name}");
    }
}

fn job(ground: &Ground, namespace: &str, name: &str, status: &Value) -> Value {
    ground.apply_value(json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"backoffLimit": 0, "template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "registry.test/demo:1"}],
        }}},
        "status": status,
    }))
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_plan_is_approved_once_and_for_all() {
    let ground = ground();
    let namespace = ground.namespace("plan");
    ground.apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "TerraformPlan",
        "metadata": {"name": "demo", "namespace": namespace.name()},
        "spec": {
            "inputsHash": "h2:0", "planHash": "0", "reason": "Manual", "summary": {"create": 1},
            "targetRef": {"kind": "TerraformCluster", "name": "demo"},
        },
    }));
    let path =
        format!("/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{}/terraformplans/demo", namespace.name());
    let patch = |spec: Value| ground.request("PATCH", &path, Some(&json!({"spec": spec})));
    let refused = patch(json!({"approved": true})).expect_err("approve a plan without a name");
    assert_eq!(refused.code, 422, "{}", refused.message);
    patch(json!({"approved": true, "approvedBy": "me"})).expect("approve a plan");
    for wrong in
        [json!({"approved": false, "approvedBy": null}), json!({"approvedBy": "you"}), json!({"planHash": "1"})]
    {
        let refused = patch(wrong).expect_err("change an approved plan");
        assert_eq!(refused.code, 422, "{}", refused.message);
    }
}
