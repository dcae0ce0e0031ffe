//! An object with a state that a real runtime wrote, backups copied as the manager does, and the plugin.

use std::io::{Read as _, Write as _};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::ground::runtime::{Runtime, Workspace, succeeded};
use crate::ground::{Ground, Namespace};

/// A value in every state that must be in no output.
pub const CANARY: &str = "canary-5ecret-attribute";

pub struct Fixture<'a> {
    pub ground: &'a Ground,
    pub namespace: String,
    pub name: String,
    pub workspace: Workspace<'a>,
    runtime: Runtime,
}

/// What a run of the plugin gave.
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let ran = Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        };
        assert!(!ran.text().contains(CANARY), "a state attribute came out:\n{}", ran.text());
        ran
    }

    pub fn text(&self) -> String {
        format!("exit {}\n{}{}", self.code, self.stdout, self.stderr)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("read JSON: {e}\n{}", self.text()))
    }

    /// The codes of all findings.
    pub fn codes(&self) -> Vec<String> {
        let json = self.json();
        let findings = json["items"][0]["findings"].as_array().cloned().unwrap_or_default();
        findings.iter().filter_map(|f| f["code"].as_str()).map(str::to_string).collect()
    }
}

impl<'a> Fixture<'a> {
    /// A TerraformCluster with open gates, its Cluster, and no state yet.
    pub fn new(namespace: &Namespace<'a>, runtime: &Runtime, name: &str) -> Self {
        let ground = namespace.ground();
        let workspace = runtime.object(namespace, "TerraformCluster", name);
        let namespace = namespace.name().to_string();
        let cluster = ground.apply_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TerraformCluster", "name": name}},
        }));
        let fixture = Self { ground, namespace, name: name.to_string(), workspace, runtime: runtime.clone() };
        fixture.create(&cluster);
        fixture
    }

    fn create(&self, cluster: &Value) {
        let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        self.ground.apply_value(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformCluster",
            "metadata": {
                "name": self.name, "namespace": self.namespace,
                "labels": {"cluster.x-k8s.io/cluster-name": self.name},
                "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": self.name,
                    "uid": cluster["metadata"]["uid"], "controller": true}],
            },
            "spec": {"source": {"image": "registry.test/demo:1"}, "identityRef": {"name": "demo"}},
            "status": {
                "initialization": {"provisioned": true},
                "conditions": [
                    condition("IdentityAllowed", "IdentityAllowed"), condition("CredentialsMirrored", "Mirrored"),
                    condition("RunnerRBACReady", "RBACReady"), condition("InputsApplied", "InputsApplied"),
                    condition("StateReadable", "StateRead"),
                ],
            },
        }));
    }

    /// Applies a root module with one resource a key, each with the canary, and `big` random bytes in all.
    pub fn apply(&self, keys: &[&str], big: usize) {
        let noise = noise(big / keys.len());
        let each: serde_json::Map<String, Value> = keys
            .iter()
            .map(|key| (key.to_string(), json!(format!("{CANARY}-{key}-{}", noise.replace('0', &key[..1])))))
            .collect();
        self.workspace
            .apply(&json!({"resource": {"terraform_data": {"main": {"for_each": each, "input": "${each.value}"}}}}));
        let serial = self.serial();
        self.patch_status(&json!({"observedStateSerial": serial}));
        // The manager records with which inputs the state was made.
        let hash = json!({"metadata": {"annotations": {"captf.io/inputs-hash": "h2:one"}}});
        self.ground.patch("Secret", &self.namespace, &self.workspace.secret(), None, &hash);
    }

    /// The state Secrets in order of their chunks.
    pub fn state_secrets(&self) -> Vec<Value> {
        let selector = format!("tfstate=true,tfstateSecretSuffix={},tfstateWorkspace=default", self.workspace.suffix);
        let mut secrets = self.ground.list("Secret", &self.namespace, &selector);
        secrets.sort_by_key(|s| {
            let name = s["metadata"]["name"].as_str().unwrap_or_default().to_string();
            (name.len(), name)
        });
        secrets
    }

    pub fn state(&self) -> Value {
        let data: Vec<u8> = self.state_secrets().iter().flat_map(|s| decode(&s["data"]["tfstate"])).collect();
        let mut text = String::new();
        flate2::read::GzDecoder::new(data.as_slice()).read_to_string(&mut text).expect("gunzip the state");
        serde_json::from_str(&text).expect("the state is JSON")
    }

    pub fn serial(&self) -> i64 {
        self.state()["serial"].as_i64().expect("a serial")
    }

    /// Copies the live state as the manager does. Returns the serial.
    pub fn backup(&self) -> i64 {
        let state = self.state();
        let serial = state["serial"].as_i64().expect("a serial");
        let resources =
            state["resources"].as_array().expect("resources").iter().filter(|r| r["mode"] == "managed").count();
        let secrets = self.state_secrets();
        let payload: Vec<u8> = secrets.iter().flat_map(|s| decode(&s["data"]["tfstate"])).collect();
        let digest: String = Sha256::digest(&payload).iter().map(|b| format!("{b:02x}")).collect();
        let set = format!("captf-state-backup-{}-{serial}", self.workspace.suffix);
        let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).expect("now").to_string();
        for (index, secret) in secrets.iter().enumerate() {
            let mut labels: serde_json::Map<String, Value> =
                self.workspace.labels.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
            labels.insert("captf.io/state-backup".into(), json!("true"));
            labels.insert("captf.io/state-backup-suffix".into(), json!(self.workspace.suffix));
            let mut notes = json!({
                "captf.io/state-backup-serial": serial.to_string(), "captf.io/state-backup-lineage": state["lineage"],
                "captf.io/state-backup-taken-at": now, "captf.io/state-backup-digest": digest,
                "captf.io/state-backup-resources": resources.to_string(), "captf.io/state-backup-set": set,
                "captf.io/state-backup-chunk": index.to_string(), "captf.io/state-backup-chunks": secrets.len().to_string(),
            });
            if index == 0 {
                notes["captf.io/inputs-hash"] = json!("h2:one");
            }
            let name = if index == 0 { set.clone() } else { format!("{set}-part-{index}") };
            self.ground.apply_value(json!({
                "apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": secret["data"],
                "metadata": {"name": name, "namespace": self.namespace, "labels": labels, "annotations": notes},
            }));
        }
        serial
    }

    /// What the runtime lists.
    pub fn state_list(&self) -> Vec<String> {
        let output = self.workspace.run(&["state", "list"]);
        succeeded("state list", &output);
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect()
    }

    pub fn object(&self) -> Value {
        self.ground.get("TerraformCluster", &self.namespace, &self.name)
    }

    pub fn annotation(&self) -> Option<String> {
        self.object()["metadata"]["annotations"]["captf.io/restore-state"].as_str().map(str::to_string)
    }

    pub fn patch(&self, patch: &Value) {
        self.ground.patch("TerraformCluster", &self.namespace, &self.name, None, patch);
    }

    pub fn patch_status(&self, status: &Value) {
        let patch = json!({"status": status});
        self.ground.patch("TerraformCluster", &self.namespace, &self.name, Some("status"), &patch);
    }

    /// The runtime's binary.
    pub fn binary(&self) -> std::path::PathBuf {
        self.runtime.binary().to_path_buf()
    }

    /// A command line of the plugin on this namespace, not yet started.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-captf"));
        command
            .env_clear()
            .env("HOME", "/nonexistent")
            .env("PATH", "/usr/bin:/bin")
            .arg("--kubeconfig")
            .arg(&self.ground.kubeconfig)
            .args(["-n", &self.namespace])
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn plugin(&self, words: &[&str]) -> Ran {
        Ran::of(&self.command(words).output().expect("run the plugin"))
    }
}

/// An object with two serials; the older one.
pub fn two_serials<'a>(namespace: &Namespace<'a>) -> (Fixture<'a>, String) {
    let fixture = Fixture::new(namespace, &Runtime::terraform(), "demo");
    fixture.apply(&["web"], 0);
    let old = fixture.backup().to_string();
    fixture.apply(&["web", "db"], 0);
    fixture.backup();
    (fixture, old)
}

pub fn decode(value: &Value) -> Vec<u8> {
    let bytes: k8s_openapi::ByteString =
        serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("base64: {e}"));
    bytes.0
}

pub fn encode(bytes: &[u8]) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(bytes.to_vec())).expect("base64")
}

/// Hex digits that compress to little more than half.
pub fn noise(length: usize) -> String {
    let mut out = String::with_capacity(length);
    let mut x: u64 = 0x9e37_79b9_7f4a_7c15;
    while out.len() < length {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out.push_str(&format!("{x:016x}"));
    }
    out.truncate(length);
    out
}

/// Compressed as the backend does.
pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).expect("compress");
    encoder.finish().expect("compress")
}
