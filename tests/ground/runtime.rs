//! A real Terraform or OpenTofu on the API server of the test ground, through
//! its real `kubernetes` backend, with the names and labels that CAPTF uses.

mod running;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::{Ground, Namespace, required};
pub use running::Running;

/// One runtime binary.
#[derive(Clone, Debug)]
pub struct Runtime {
    binary: PathBuf,
}

/// An object's working folder for a runtime, and its names in the cluster.
pub struct Workspace<'ground> {
    ground: &'ground Ground,
    binary: PathBuf,
    folder: TempDir,
    kubeconfig: PathBuf,
    lock_timeout: u32,
    /// The namespace of the object and of its state.
    pub namespace: String,
    /// What state Secret and Lease are named after.
    pub suffix: String,
    /// The five labels that CAPTF hands to the backend.
    pub labels: Vec<(String, String)>,
}

impl Runtime {
    /// Terraform, as `tests/setup.sh` found or built it.
    pub fn terraform() -> Self {
        let binary = PathBuf::from(required("CAPTF_TEST_TERRAFORM"));
        Self { binary }
    }

    /// OpenTofu, as `tests/setup.sh` found or built it.
    pub fn tofu() -> Self {
        let binary = PathBuf::from(required("CAPTF_TEST_TOFU"));
        Self { binary }
    }

    /// The binary, for instance to put it into a container image.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The runtime's version, like `1.11.4`.
    pub fn version(&self) -> String {
        let output = clean(Command::new(&self.binary).args(["version", "-json"]))
            .output()
            .unwrap_or_else(|error| panic!("run {}: {error}", self.binary.display()));
        let answer: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("read the version of the runtime: {error}"));
        let version = answer["terraform_version"].as_str();
        version.expect("find terraform_version in what the runtime printed").to_owned()
    }

    /// A working folder for an object of a Cluster API cluster that has the
    /// object's own name.
    pub fn object<'ground>(&self, namespace: &Namespace<'ground>, kind: &str, name: &str) -> Workspace<'ground> {
        self.object_in(namespace, kind, name, name)
    }

    /// Like [`Runtime::object`] for an object of the named cluster. The
    /// object itself need not exist; nothing is written to the API server yet.
    pub fn object_in<'ground>(
        &self,
        namespace: &Namespace<'ground>,
        kind: &str,
        name: &str,
        cluster: &str,
    ) -> Workspace<'ground> {
        let ground = namespace.ground();
        let workspace = Workspace {
            ground,
            binary: self.binary.clone(),
            folder: TempDir::new().expect("make a working folder for the runtime"),
            kubeconfig: ground.kubeconfig.clone(),
            lock_timeout: 0,
            namespace: namespace.name().to_owned(),
            suffix: suffix(namespace.name(), kind, name),
            labels: labels(kind, name, cluster),
        };
        workspace.root(&json!({}));
        workspace
    }
}

impl Workspace<'_> {
    /// Waits up to so many seconds for a lock that is held, instead of failing
    /// at once.
    pub fn lock_timeout(mut self, seconds: u32) -> Self {
        self.lock_timeout = seconds;
        self
    }

    /// Uses other credentials than the admin's.
    pub fn credentials(mut self, kubeconfig: &Path) -> Self {
        self.kubeconfig = kubeconfig.to_owned();
        self
    }

    /// The name of the base state Secret.
    pub fn secret(&self) -> String {
        format!("tfstate-default-{}", self.suffix)
    }

    /// The name of the Lease that is the state lock.
    pub fn lease(&self) -> String {
        format!("lock-{}", self.secret())
    }

    /// The folder that the runtime works in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The ID that holds the lock, as the Lease names it.
    pub fn holder(&self) -> Option<String> {
        let lease = self.ground.find("Lease", &self.namespace, &self.lease())?;
        let holder = lease["spec"]["holderIdentity"].as_str()?;
        (!holder.is_empty()).then(|| holder.to_owned())
    }

    /// The content of the annotation `app.terraform.io/lock-info`.
    pub fn lock_info(&self) -> Option<Value> {
        let lease = self.ground.find("Lease", &self.namespace, &self.lease())?;
        let text = lease["metadata"]["annotations"]["app.terraform.io/lock-info"].as_str()?;
        let info = serde_json::from_str(text);
        Some(info.unwrap_or_else(|error| panic!("read the lock-info {text}: {error}")))
    }

    /// Replaces the root module, beside the backend, by a configuration in
    /// JSON: `json!({"output": {"a": {"value": 1}}})`. Only what is built into
    /// the runtime works, like `terraform_data`.
    pub fn root(&self, root: &Value) {
        let mut file = root.clone();
        file["terraform"]["backend"]["kubernetes"] = json!({});
        self.write("main.tf.json", &file.to_string());
    }

    /// `init` with the backend flags that CAPTF gives. Takes the lock and
    /// writes an empty state if it finds none.
    pub fn init(&self) {
        succeeded("init", &self.try_init());
    }

    /// Like [`Workspace::init`], for an init that may fail.
    pub fn try_init(&self) -> Output {
        let labels: Vec<String> =
            self.labels.iter().map(|(key, value)| format!("{}={}", json!(key), json!(value))).collect();
        let mut flags = vec!["init".to_owned(), "-input=false".to_owned(), "-no-color".to_owned()];
        flags.push(self.timeout_flag());
        flags.push(format!("-backend-config=secret_suffix={}", self.suffix));
        flags.push(format!("-backend-config=namespace={}", self.namespace));
        flags.push(format!("-backend-config=labels={{{}}}", labels.join(",")));
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        self.run(&flags)
    }

    /// `init`, then an apply of the root module.
    pub fn apply(&self, root: &Value) {
        self.root(root);
        self.init();
        succeeded("apply", &self.try_apply());
    }

    /// An apply that may fail, in a folder where `init` ran.
    pub fn try_apply(&self) -> Output {
        let timeout = self.timeout_flag();
        self.run(&["apply", "-auto-approve", "-input=false", "-no-color", &timeout])
    }

    /// Runs the runtime with any arguments in the folder.
    pub fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(&self.binary);
        self.prepare(command.args(arguments))
            .output()
            .unwrap_or_else(|error| panic!("run {}: {error}", self.binary.display()))
    }

    fn timeout_flag(&self) -> String {
        format!("-lock-timeout={}s", self.lock_timeout)
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.folder().join(name);
        fs::write(&file, text).unwrap_or_else(|error| panic!("write {}: {error}", file.display()));
    }

    /// Sets folder, environment and credentials of a command.
    fn prepare<'command>(&self, command: &'command mut Command) -> &'command mut Command {
        clean(command).current_dir(self.folder()).env("HOME", self.folder()).env("KUBE_CONFIG_PATH", &self.kubeconfig)
    }
}

/// Takes away every variable that changes what a runtime does.
fn clean(command: &mut Command) -> &mut Command {
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("TF_") || text.starts_with("KUBE_") || text == "KUBECONFIG" {
            command.env_remove(&name);
        }
    }
    command.env("CHECKPOINT_DISABLE", "1")
}

/// Stops the test unless a command of the runtime went well.
#[track_caller]
pub fn succeeded(what: &str, output: &Output) {
    assert!(
        output.status.success(),
        "{what} ended with {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The state suffix of an object.
pub fn suffix(namespace: &str, kind: &str, name: &str) -> String {
    let short = match kind {
        "TerraformCluster" => "c",
        "TerraformMachine" => "m",
        "TerraformMachinePool" => "mp",
        other => panic!("a {other} has no state"),
    };
    format!("{}-{short}", digest(&format!("{namespace}/{kind}/{name}")))
}

/// The five labels that CAPTF hands to the backend for an object.
pub fn labels(kind: &str, name: &str, cluster: &str) -> Vec<(String, String)> {
    let owner = "captf.infrastructure.cluster.x-k8s.io";
    vec![
        (format!("{owner}/owner-kind"), kind.to_owned()),
        (format!("{owner}/owner-name"), label_value(name)),
        ("cluster.x-k8s.io/cluster-name".to_owned(), label_value(cluster)),
        ("captf.io/managed".to_owned(), "true".to_owned()),
        ("clusterctl.cluster.x-k8s.io/move".to_owned(), String::new()),
    ]
}

fn label_value(name: &str) -> String {
    if name.len() > 63 { digest(name) } else { name.to_owned() }
}

/// The first 16 hex digits of a SHA-256.
fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
