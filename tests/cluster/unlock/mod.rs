//! `lock force-unlock` on a real API server, with locks that killed real runtimes left, in a real Docker and a
//! real Podman.

mod cleared;
mod credentials;
mod engine;
mod job;
mod killed;
mod lease;
mod lost;
mod refused;
mod registry;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::claim::{captf, on_terminal, started_on_terminal, text};
use super::engines::{Engines, Image, engines};
use super::proxy::{Act, Gate, Proxy, Request};
use crate::ground::runtime::{Runtime, Workspace};
use crate::ground::{Ground, Namespace, ground};

const HOST: &str = "builder-7.example.com";

pub fn terraform_image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| engines().image(&Runtime::terraform(), "team/terraform", ""))
}

fn terraform_nonroot() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| engines().image(&Runtime::terraform(), "team/terraform-nonroot", "65532:65532"))
}

fn tofu_image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| engines().image(&Runtime::tofu(), "team/tofu", "65532"))
}

/// An object with a pinned image and the ServiceAccount that its Jobs would run as.
pub fn object(ground: &Ground, namespace: &str, image: &Image) {
    ground.apply_value(json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformCluster",
        "metadata": {"name": "prod", "namespace": namespace, "labels": {"cluster.x-k8s.io/cluster-name": "prod"}},
        "spec": {"source": {"image": format!("{}:1", image.repository)},
            "identityRef": {"kind": "Secret", "name": "creds"}},
    }));
    // The digest stands where the newest controller keeps it.
    ground.apply_value(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "captf-applied-c-prod", "namespace": namespace, "annotations": {
            "captf.io/image": format!("{}:1", image.repository), "captf.io/image-digest": image.digest}},
        "stringData": {"main.tf.json": "CANARY-INPUTS"},
    }));
    unlocker(ground, namespace);
}

/// `deploy/rbac/force-unlock-account.yaml`, as shipped, in the namespace of the test.
fn unlocker(ground: &Ground, namespace: &str) {
    let shipped = include_str!("../../../deploy/rbac/force-unlock-account.yaml");
    ground.apply(&shipped.replace("team-a", namespace));
}

/// A kubeconfig of a person with the shipped Role of an operator and nothing else. Its context is in the namespace.
fn operator(ground: &Ground, namespace: &str) -> PathBuf {
    let metadata = json!({"name": "operator", "namespace": namespace});
    ground.apply_value(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}));
    ground.apply_value(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "captf-unlock-operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": namespace}],
    }));
    ground.token_kubeconfig(namespace, "operator")
}

/// A namespace with a pinned object and a lock that a killed apply left, and proxies to it for a person with the
/// shipped Role.
struct Scene {
    namespace: Namespace<'static>,
    workspace: Workspace<'static>,
    id: String,
    engine: Proxy,
    server: Proxy,
    kubeconfig: PathBuf,
}

impl Scene {
    fn new(engine: &str, image: &Image) -> Self {
        let ground = ground();
        let namespace = ground.namespace("unlock");
        object(ground, namespace.name(), image);
        let (workspace, id) = foreign(&namespace, &Runtime::terraform());
        let (engine, server) = (Proxy::of_engine(engine), Proxy::of_server(ground));
        let kubeconfig = server.kubeconfig(&operator(ground, namespace.name()));
        Self { namespace, workspace, id, engine, server, kubeconfig }
    }

    fn name(&self) -> &str {
        self.namespace.name()
    }

    /// The command, through both proxies.
    fn command(&self, more: &[&str]) -> Command {
        let call = Call { namespace: self.name(), engine: &self.engine.url, id: &self.id, more };
        let mut command = unlock(ground(), &call);
        command.env("KUBECONFIG", &self.kubeconfig).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, more: &[&str]) -> Child {
        self.command(more).spawn().expect("start")
    }

    /// The name of the claim's Lease.
    fn claim(&self) -> String {
        format!("captf-claim-{}", self.workspace.suffix)
    }

    fn claim_lease(&self) -> Option<Value> {
        ground().find("Lease", self.name(), &self.claim())
    }

    /// Somebody else has the claim all at once.
    fn take_claim_away(&self) {
        let mut lease = self.claim_lease().expect("a claim");
        lease["spec"]["holderIdentity"] = json!("other@elsewhere/1/0000000000000001");
        while ground().request("PUT", &lease_path(&lease), Some(&lease)).is_err() {
            // It was renewed between.
            lease["metadata"]["resourceVersion"] =
                self.claim_lease().expect("a claim")["metadata"]["resourceVersion"].clone();
        }
    }

    /// Containers and volumes of ours in the engine, looked at without the proxy.
    fn left(&self, engine: &str) -> Vec<String> {
        engines().ours(engine, self.name())
    }

    fn held(&self) -> bool {
        self.workspace.holder().as_deref() == Some(&self.id)
    }
}

fn lease_path(lease: &Value) -> String {
    let text = |key: &str| lease["metadata"][key].as_str().expect("a text").to_string();
    format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{}", text("namespace"), text("name"))
}

/// A lock that a killed apply left, by a runtime on another host.
pub fn foreign<'g>(namespace: &Namespace<'g>, runtime: &Runtime) -> (Workspace<'g>, String) {
    let workspace = runtime.object(namespace, "TerraformCluster", "prod");
    workspace.apply(&json!({"output": {"canary": {"value": "CANARY-STATE"}}}));
    let id = workspace.apply_and_kill(HOST);
    (workspace, id)
}

/// PUT of an object as it was read and changed.
fn replace(ground: &Ground, kind: &str, object: &Value) {
    let text = |key: &str| object["metadata"][key].as_str().expect("a text").to_string();
    let api = if kind == "Lease" { "apis/coordination.k8s.io/v1" } else { "api/v1" };
    let path = format!("/{api}/namespaces/{}/{}s/{}", text("namespace"), kind.to_lowercase(), text("name"));
    ground.request("PUT", &path, Some(object)).unwrap_or_else(|refused| panic!("PUT {path}: {refused:?}"));
}

fn state_version(ground: &Ground, workspace: &Workspace<'_>) -> Value {
    ground.get("Secret", &workspace.namespace, &workspace.secret())["metadata"]["resourceVersion"].clone()
}

pub struct Call<'a> {
    pub namespace: &'a str,
    pub engine: &'a str,
    pub id: &'a str,
    pub more: &'a [&'a str],
}

fn who() -> String {
    format!("root@{HOST}")
}

pub fn unlock(ground: &Ground, call: &Call<'_>) -> Command {
    let mut command = captf(ground);
    command.args(["lock", "force-unlock", "tfc/prod", "-n", call.namespace]);
    if !call.engine.is_empty() {
        command.args(["--engine", call.engine]);
    }
    command.args(["--service-account", "captf-unlocker", "--lock-id", call.id, "--holder", &who()]);
    command.args(["--holder-is-dead", "--reason", "INC-4711: the builder was scrapped"]).args(call.more);
    command
}

/// Waits for the end of a command that has to end by itself.
#[track_caller]
fn end_of(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().expect("look").is_none() {
        if start.elapsed() > Duration::from_secs(120) {
            child.kill().expect("kill");
            panic!("it did not end: {}", text(&child.wait_with_output().expect("wait")));
        }
        thread::sleep(Duration::from_millis(50));
    }
    child.wait_with_output().expect("wait")
}

pub fn run(command: &mut Command) -> Output {
    command.output().expect("run the binary")
}

#[track_caller]
fn exits(output: &Output, code: i32, needles: &[&str]) -> String {
    let words = text(output);
    assert_eq!(output.status.code(), Some(code), "{words}");
    for needle in needles {
        assert!(words.contains(needle), "`{needle}` is not in: {words}");
    }
    for secret in ["eyJhbGciOi", "CANARY"] {
        assert!(!words.contains(secret), "{secret} is in: {words}");
    }
    words
}

/// What is refused: whatever flags are given, nothing in the cluster and nothing in the engine changes.
#[track_caller]
fn refused(engines: &Engines, workspace: &Workspace<'_>, id: &str, more: &[&str], needles: &[&str]) -> String {
    let ground = ground();
    let lease = || ground.find("Lease", &workspace.namespace, &workspace.lease());
    let before = lease();
    let call = Call { namespace: &workspace.namespace, engine: &engines.docker, id, more };
    let words = exits(&run(&mut unlock(ground, &call)), 4, needles);
    assert_eq!(lease(), before, "a refusal wrote to the Lease");
    words
}

/// Starts a command on a terminal, waits for a question, does something, and types.
fn interrupted_by(ground: &Ground, line: &str, question: &str, meanwhile: impl FnOnce(), typed: &str) -> Output {
    let mut child = started_on_terminal(ground, line);
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut seen = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&seen).contains(question) {
        let n = stdout.read(&mut byte).expect("read the terminal");
        assert!(n > 0, "no question: {}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    meanwhile();
    stdin.write_all(typed.as_bytes()).expect("type");
    stdout.read_to_end(&mut seen).expect("read the terminal");
    let status = child.wait().expect("wait for script");
    Output { status, stdout: seen, stderr: Vec::new() }
}
