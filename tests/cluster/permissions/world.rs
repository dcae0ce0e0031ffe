//! One namespace in which every command has something to read, judge and change, and accounts in it.

use std::path::PathBuf;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::ground::runtime::{labels, suffix};
use crate::ground::{Namespace, ground};
use crate::objects::{ago, cluster, job, lock, machine, pod, running_pod};
use crate::restore::fixture::{encode, gzip};

pub const OWN: &str = "captf-c-prod-apply-a1-5e1f00-x7k2p";
/// Kind, name and the Cluster API owner of objects whose state and backups are whole.
pub const WITH_BACKUPS: [(&str, &str, &str); 3] = [
    ("TerraformCluster", "shop", "Cluster"),
    ("TerraformMachine", "disk", "Machine"),
    ("TerraformMachinePool", "crew", "MachinePool"),
];

fn id(number: usize) -> String {
    format!("{number:08}-0000-4000-8000-000000000001")
}

/// An owner in Cluster API's group, which leads to the object.
fn owner(ns: &Namespace<'_>, kind: &str, name: &str, object: &str) -> Value {
    let reference = json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": object, "name": name});
    let bootstrap = json!({"dataSecretName": "x"});
    let spec = match kind {
        "Cluster" => json!({"infrastructureRef": reference}),
        "Machine" => json!({"clusterName": "prod", "bootstrap": bootstrap, "infrastructureRef": reference}),
        _ => {
            json!({"clusterName": "prod", "template": {"spec": {"clusterName": "prod", "bootstrap": bootstrap, "infrastructureRef": reference}}})
        }
    };
    ns.ground().apply_value(json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind,
        "metadata": {"name": name, "namespace": ns.name()}, "spec": spec}))
}

/// A state with so many resources, as a runtime compresses it.
fn payload(serial: i64, resources: usize) -> Vec<u8> {
    let all: Vec<Value> = (0..resources)
        .map(|i| {
            json!({"mode": "managed", "type": "terraform_data", "name": format!("n{i}"),
                "provider": "provider[\"terraform.io/builtin/terraform\"]",
                "instances": [{"schema_version": 0, "attributes": {"id": format!("id-{i}")}}]})
        })
        .collect();
    gzip(json!({"version": 4, "serial": serial, "lineage": "l-1", "terraform_version": "1.8.5", "outputs": {}, "resources": all}).to_string().as_bytes())
}

fn secret(ns: &Namespace<'_>, name: &str, labels: Value, annotations: Value, payload: &[u8]) {
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Secret", "data": {"tfstate": encode(payload)},
        "metadata": {"name": name, "namespace": ns.name(), "labels": labels, "annotations": annotations}}));
}

/// An object that could be restored: open gates, an owner, a state of serial 5, backups 3 and 5.
pub fn restorable(ns: &Namespace<'_>, kind: &str, name: &str, owner_kind: &str) -> Value {
    let of = if owner_kind == "Cluster" { name } else { "prod" };
    let uid = owner(ns, owner_kind, name, kind)["metadata"]["uid"].clone();
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": ago(600)});
    let mut spec = json!({"source": {"image": "registry.example.com/team-a/shop:1.4"}});
    if owner_kind == "Cluster" {
        spec["identityRef"] = json!({"name": "team-a-cloud"});
    }
    let object = ns.ground().apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": ns.name(), "labels": {"cluster.x-k8s.io/cluster-name": of},
            "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": owner_kind, "name": name, "uid": uid, "controller": true}]},
        "spec": spec,
        "status": {"initialization": {"provisioned": true}, "observedStateSerial": 5, "lastDriftCheck": ago(60), "conditions": [
            condition("IdentityAllowed", "IdentityAllowed"), condition("CredentialsMirrored", "Mirrored"),
            condition("RunnerRBACReady", "RBACReady"), condition("InputsApplied", "InputsApplied"), condition("StateReadable", "StateRead")]}}));
    with_state(ns, kind, name, of);
    object
}

/// A readable state of serial 5, and whole backups of the serials 3 and 5.
pub fn with_state(ns: &Namespace<'_>, kind: &str, name: &str, cluster: &str) {
    let suffix = suffix(ns.name(), kind, name);
    let own: serde_json::Map<String, Value> =
        labels(kind, name, cluster).into_iter().map(|(k, v)| (k, json!(v))).collect();
    let mut state = own.clone();
    for (key, value) in [
        ("tfstate", "true"),
        ("tfstateSecretSuffix", &suffix),
        ("tfstateWorkspace", "default"),
        ("app.kubernetes.io/managed-by", "terraform"),
    ] {
        state.insert(key.to_string(), json!(value));
    }
    let hash = json!({"captf.io/inputs-hash": "h2:one"});
    secret(ns, &format!("tfstate-default-{suffix}"), Value::Object(state), hash, &payload(5, 2));
    for (serial, resources) in [(3, 1), (5, 2)] {
        let data = payload(serial, resources);
        let digest: String = Sha256::digest(&data).iter().map(|b| format!("{b:02x}")).collect();
        let set = format!("captf-state-backup-{suffix}-{serial}");
        let mut labels = own.clone();
        labels.insert("captf.io/state-backup".into(), json!("true"));
        labels.insert("captf.io/state-backup-suffix".into(), json!(suffix));
        let notes = json!({
            "captf.io/state-backup-serial": serial.to_string(), "captf.io/state-backup-lineage": "l-1",
            "captf.io/state-backup-taken-at": ago(3600 / serial), "captf.io/state-backup-digest": digest,
            "captf.io/state-backup-resources": resources.to_string(), "captf.io/state-backup-set": set,
            "captf.io/state-backup-chunk": "0", "captf.io/state-backup-chunks": "1", "captf.io/inputs-hash": "h2:one"});
        secret(ns, &set, Value::Object(labels), notes, &data);
    }
}

/// An object whose lock a dead host left, with a state that the binary finds and a pinned image.
pub fn unlockable(ns: &Namespace<'_>, name: &str) -> String {
    let kind = "TerraformCluster";
    ns.ground().apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": ns.name(), "labels": {"cluster.x-k8s.io/cluster-name": name}},
        "spec": {"source": {"image": "registry.example.com/team-a/shop:1"}, "identityRef": {"name": "team-a-cloud"}}}));
    owner(ns, "Cluster", name, kind);
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("captf-applied-c-{name}"), "namespace": ns.name(), "annotations": {
            "captf.io/image": "registry.example.com/team-a/shop:1", "captf.io/image-digest": format!("sha256:{}", "ab".repeat(32))}}}));
    with_state(ns, kind, name, name);
    let digits =
        Sha256::digest(name.as_bytes()).iter().fold(0usize, |all, b| (all * 31 + usize::from(*b)) % 90_000_000);
    lock(ns, kind, name, &id(10_000_000 + digits), "root@builder-7.example.com");
    id(10_000_000 + digits)
}

/// A restorable object whose restore of serial 3 failed, and the pod of its Job.
pub fn restore_failed(ns: &Namespace<'_>, kind: &str, name: &str, owner_kind: &str) {
    let owner = restorable(ns, kind, name, owner_kind);
    let run = format!("captf-{}-restore-a1-5e1f00", name);
    job(ns, &owner, &run, "restore", true);
    let labels = json!({"batch.kubernetes.io/job-name": run, "job-name": run});
    pod(ns, &format!("{run}-x7k2p"), json!({"phase": "Failed"}));
    let ground = ns.ground();
    ground.patch("Pod", ns.name(), &format!("{run}-x7k2p"), None, &json!({"metadata": {"labels": labels}}));
    ground.patch("Job", ns.name(), &run, None, &json!({"metadata": {"annotations": {"captf.io/restore-serial": "3"}}}));
    let mut conditions = owner["status"]["conditions"].as_array().expect("conditions").clone();
    conditions.push(json!({"type": "RestoreJobSucceeded", "status": "False", "reason": "RestoreFailed", "message": "", "lastTransitionTime": ago(10)}));
    let status = json!({"status": {"conditions": conditions, "lastRestoredSerial": 3,
        "lastRun": {"job": run, "operation": "restore", "error": {"kind": "step", "step": "state-push"}}}});
    ground.patch(kind, ns.name(), name, Some("status"), &status);
    let asked = json!({"metadata": {"annotations": {"captf.io/restore-state": "3"}}});
    ground.patch(kind, ns.name(), name, None, &asked);
}

/// A claim whose holder last renewed it long ago.
pub fn old_claim(ns: &Namespace<'_>, kind: &str, name: &str) {
    let at = |seconds: i64| ago(seconds).replace('Z', ".000000Z");
    ns.ground().apply_value(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": format!("captf-claim-{}", suffix(ns.name(), kind, name)), "namespace": ns.name(),
            "annotations": {"kubectl.captf.io/operation": "restore"}},
        "spec": {"holderIdentity": "bob@laptop/1/0123456789abcdef", "leaseDurationSeconds": 60,
            "acquireTime": at(7200), "renewTime": at(7200)}}));
}

/// Everything that commands which only read have to do with.
pub fn world(stem: &str) -> Namespace<'static> {
    let ns = ground().namespace(stem);
    cluster(&ns, "prod");
    machine(&ns, "web", "prod");
    owner(&ns, "Machine", "web", "TerraformMachine");
    let pool = ns.ground().apply_value(
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformMachinePool",
        "metadata": {"name": "workers", "namespace": ns.name(), "labels": {"cluster.x-k8s.io/cluster-name": "prod"}},
        "spec": {"source": {"image": "registry.example.com/team-a/pool:1.4"}}}),
    );
    owner(&ns, "MachinePool", "workers", "TerraformMachinePool");
    // An unfinished Job, whose pods are looked for.
    let run = "captf-mp-workers-apply-a1-5e1f00";
    job(&ns, &pool, run, "apply", false);
    running_pod(&ns, &format!("{run}-q9w8e"));
    ns.ground().patch(
        "Pod",
        ns.name(),
        &format!("{run}-q9w8e"),
        None,
        &json!({"metadata": {"labels": {
        "batch.kubernetes.io/job-name": run, "captf.infrastructure.cluster.x-k8s.io/owner-kind": "TerraformMachinePool",
        "captf.infrastructure.cluster.x-k8s.io/owner-name": "workers"}}}),
    );
    running_pod(&ns, OWN);
    lock(&ns, "TerraformCluster", "prod", &id(1), "@captf-c-prod-apply-a1-5e1f00-gone1");
    lock(&ns, "TerraformMachine", "web", &id(2), &format!("@{OWN}"));
    lock(&ns, "TerraformMachinePool", "workers", &id(4), "root@desktop-1");
    // A holder that is an address is looked for among the pods.
    machine(&ns, "db", "prod");
    lock(&ns, "TerraformMachine", "db", &id(3), "root@192.168.10.20");
    for (kind, name, owner) in WITH_BACKUPS {
        restorable(&ns, kind, name, owner);
        old_claim(&ns, kind, name);
        restore_failed(&ns, kind, &format!("un{name}"), owner);
    }
    lock(&ns, "TerraformMachine", "undisk", &id(8), "@captf-m-undisk-apply-a1-5e1f00-gone1");
    causes(&ns);
    unlockable(&ns, "locked");
    ns
}

/// A machine with conditions and whatever else its status says.
fn machine_with(ns: &Namespace<'_>, name: &str, (kind, status, reason): (&str, &str, &str), more: &Value) -> Value {
    let mut whole = json!({"initialization": {"provisioned": true}, "lastDriftCheck": ago(3000), "conditions": [
        {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": ago(300)}]});
    for (key, value) in more.as_object().expect("an object") {
        whole[key] = value.clone();
    }
    ns.ground().apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformMachine",
        "metadata": {"name": name, "namespace": ns.name(), "labels": {"cluster.x-k8s.io/cluster-name": "prod"}},
        "spec": {"source": {"image": "registry.example.com/team-a/machine:1.4"}}, "status": whole}))
}

/// A Job of the machine with its pod.
fn run_of(ns: &Namespace<'_>, owner: &Value, failed: bool, status: Value) {
    let machine = owner["metadata"]["name"].as_str().expect("a name");
    let name = format!("captf-m-{machine}-apply-a1-5e1f00");
    job(ns, owner, &name, "apply", failed);
    let labels = json!({"batch.kubernetes.io/job-name": name, "job-name": name,
        "captf.infrastructure.cluster.x-k8s.io/owner-kind": "TerraformMachine", "captf.infrastructure.cluster.x-k8s.io/owner-name": machine});
    pod(ns, &format!("{name}-x7k2p"), status);
    ns.ground().patch("Pod", ns.name(), &format!("{name}-x7k2p"), None, &json!({"metadata": {"labels": labels}}));
}

/// Machines each of whose causes leads to another read.
fn causes(ns: &Namespace<'_>) {
    let source = |state: Value| json!([{"name": "source", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state}]);
    let failed = ("ApplyJobSucceeded", "False", "ApplyFailed");
    let ended =
        source(json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": ago(50), "finishedAt": ago(20)}}));
    let broken = machine_with(ns, "broken", failed, &json!({}));
    run_of(ns, &broken, true, json!({"phase": "Failed", "containerStatuses": ended}));
    let evicted = machine_with(ns, "evicted", failed, &json!({}));
    run_of(
        ns,
        &evicted,
        true,
        json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}),
    );
    // Its node says elsewhere, in namespace `default`, how much memory was in use.
    let killed = source(
        json!({"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": ago(50), "finishedAt": ago(20)}}),
    );
    let oom = machine_with(ns, "oom", failed, &json!({}));
    run_of(ns, &oom, true, json!({"phase": "Failed", "containerStatuses": killed}));
    for (name, message) in
        [("no-secret", "secret \"missing\" not found"), ("no-map", "configmap \"missing\" not found")]
    {
        let object = machine_with(ns, name, ("ApplyJobSucceeded", "Unknown", "ApplyRunning"), &json!({}));
        let state = source(json!({"waiting": {"reason": "CreateContainerConfigError", "message": message}}));
        run_of(ns, &object, false, json!({"phase": "Pending", "containerStatuses": state}));
    }
    ns.ground().apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformCluster",
        "metadata": {"name": "approval", "namespace": ns.name(), "labels": {"cluster.x-k8s.io/cluster-name": "prod"}},
        "spec": {"source": {"image": "registry.example.com/team-a/cluster:1.4"}, "identityRef": {"name": "team-a-cloud"}},
        "status": {"pendingPlanRef": {"name": "plan-1"}, "conditions": [{"type": "ApplyJobSucceeded", "status": "Unknown",
            "reason": "PlanAwaitingApproval", "message": "", "lastTransitionTime": ago(300)}]}}));
    machine_with(ns, "waits", ("ApplyJobSucceeded", "Unknown", "WaitingForRunLease"), &json!({}));
    let run = format!("captf-run-{}", suffix(ns.name(), "TerraformMachine", "waits"));
    ns.ground().apply_value(json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": run, "namespace": ns.name()},
        "spec": {"holderIdentity": "captf-m-waits-drift-a1-5e1f00"}}));
    machine_with(ns, "blocked", ("StateReadable", "False", "StateLocked"), &json!({}));
    lock(ns, "TerraformMachine", "blocked", &id(6), "@captf-m-blocked-apply-a1-5e1f00-gone1");
    machine_with(ns, "blocked-from-afar", ("StateReadable", "False", "StateLocked"), &json!({}));
    lock(ns, "TerraformMachine", "blocked-from-afar", &id(7), "root@192.168.10.21");
    with_state(ns, "TerraformMachine", "blocked", "prod");
    with_state(ns, "TerraformMachine", "blocked-from-afar", "prod");
}

/// The documents that `permissions` prints for a command in the namespace, as JSON.
pub fn printed(ns: &Namespace<'_>, command: &str) -> Vec<Value> {
    let words: Vec<&str> =
        ["captf", "permissions"].into_iter().chain(command.split(' ')).chain(["-n", ns.name(), "-o", "json"]).collect();
    let value = crate::plugin::run(ns.ground(), &ns.ground().kubeconfig, &words).json();
    value["items"].as_array().cloned().unwrap_or_else(|| vec![value])
}

/// A ServiceAccount that holds these roles and no other.
pub fn account(ns: &Namespace<'_>, name: &str, roles: &[Value]) -> PathBuf {
    let own = |role: &Value| role["kind"] == "Role";
    let rules: Vec<Value> =
        roles.iter().filter(|r| own(r)).filter_map(|r| r["rules"].as_array().cloned()).flatten().collect();
    let kubeconfig = ns.ground().service_account_kubeconfig(ns.name(), name, &json!(rules));
    for role in roles.iter().filter(|r| !own(r)) {
        let metadata = json!({"name": format!("{}-{name}", ns.name())});
        ns.ground().apply_value(json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": role["rules"]}));
        ns.ground().apply_value(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": ns.name()}]}));
    }
    kubeconfig
}

/// The roles without one verb on one resource; what lies `outside` is taken from the ClusterRole alone, as what it
/// gives everywhere it gives in the namespace too.
pub fn without(roles: &[Value], group: &str, resource: &str, verb: &str, outside: bool) -> Vec<Value> {
    let mut roles = roles.to_vec();
    for role in roles.iter_mut().filter(|r| !outside || r["kind"] == "ClusterRole") {
        let mut rules = Vec::new();
        for rule in role["rules"].as_array().expect("rules") {
            for name in rule["resources"].as_array().expect("resources") {
                let it = *name == resource && rule["apiGroups"][0] == group;
                let verbs: Vec<&Value> =
                    rule["verbs"].as_array().expect("verbs").iter().filter(|v| !it || **v != verb).collect();
                if !verbs.is_empty() {
                    rules.push(json!({"apiGroups": rule["apiGroups"], "resources": [name], "verbs": verbs}));
                }
            }
        }
        role["rules"] = json!(rules);
    }
    roles
}
