//! The engines and the registry of `tests/engines.sh`, with images of the real runtimes in the registry.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::ground::runtime::Runtime;

/// Everything that runs; it ends when this process ends, because its standard input does.
pub struct Engines {
    pub docker: String,
    pub podman: String,
    pub registry: String,
    docker_pid: u64,
    pub dir: PathBuf,
    _process: Child,
    _folder: tempfile::TempDir,
}

/// An image in the registry.
#[derive(Clone, Debug)]
pub struct Image {
    pub repository: String,
    pub digest: String,
}

/// The engines that all tests of this process share.
pub fn engines() -> &'static Engines {
    static ENGINES: OnceLock<Engines> = OnceLock::new();
    ENGINES.get_or_init(Engines::start)
}

impl Engines {
    /// Kills this Docker's daemon. For engines of one's own only.
    pub fn kill_docker(&self) {
        let status = Command::new("kill").args(["-KILL", &self.docker_pid.to_string()]).status().expect("run kill");
        assert!(status.success(), "the daemon was gone already");
    }

    /// Engines of one's own, for tests that kill them.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("captf-engines-").tempdir().expect("a folder for the engines");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines.sh");
        let mut child = Command::new(script)
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start tests/engines.sh");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("what tests/engines.sh prints");
        let said: Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("tests/engines.sh failed: {e}: {line}"));
        let text = |key: &str| said[key].as_str().expect("a text").to_string();
        Self {
            docker: text("docker"),
            podman: text("podman"),
            registry: text("registry"),
            docker_pid: said["docker_pid"].as_u64().expect("a process ID"),
            dir: folder.path().to_path_buf(),
            _process: child,
            _folder: folder,
        }
    }

    /// The docker CLI on the private Docker.
    pub fn docker(&self, args: &[&str]) -> Output {
        self.cli(&self.docker, args)
    }

    /// The docker CLI on an engine, for looking at it from outside.
    pub fn cli(&self, engine: &str, args: &[&str]) -> Output {
        let mut command = Command::new("docker");
        command.env("DOCKER_BUILDKIT", "0").env("DOCKER_CONFIG", &self.dir).env("DOCKER_API_VERSION", "1.41");
        command.args(["-H", engine]).args(args).output().expect("run the docker CLI")
    }

    /// What our own labels mark in an engine for objects of a namespace: containers and volumes.
    pub fn ours(&self, engine: &str, namespace: &str) -> Vec<String> {
        let label = "label=io.captf.kubectl";
        let format = |key: &str| format!("{{{{.{key}}}}} {{{{.Label \"io.captf.kubectl.object\"}}}}");
        let containers = self.cli(engine, &["ps", "-a", "--filter", label, "--format", &format("ID")]);
        let volumes = self.cli(engine, &["volume", "ls", "--filter", label, "--format", &format("Name")]);
        let mut all = Vec::new();
        for output in [containers, volumes] {
            for line in String::from_utf8_lossy(&output.stdout).lines() {
                let (id, object) = line.split_once(' ').unwrap_or((line, ""));
                all.extend(object.starts_with(&format!("{namespace}/")).then(|| id.to_string()));
            }
        }
        all
    }

    /// An image from scratch with a runtime as `/captf/runtime`, run as `user`, in the registry and in no engine.
    pub fn image(&self, runtime: &Runtime, name: &str, user: &str) -> Image {
        let folder = tempfile::tempdir_in(&self.dir).expect("a folder");
        std::fs::copy(runtime.binary(), folder.path().join("runtime")).expect("copy the runtime");
        let user = if user.is_empty() { String::new() } else { format!("USER {user}\n") };
        let recipe = format!("FROM scratch\nCOPY runtime /captf/runtime\n{user}ENTRYPOINT [\"/captf/runtime\"]\n");
        std::fs::write(folder.path().join("Dockerfile"), recipe).expect("write the Dockerfile");
        let repository = format!("{}/{name}", self.registry);
        let tag = format!("{repository}:1");
        let must = |args: &[&str]| {
            let output = self.docker(args);
            assert!(output.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_string()
        };
        must(&["build", "-q", "-t", &tag, &folder.path().display().to_string()]);
        must(&["push", "-q", &tag]);
        let digest = must(&["inspect", "--format", "{{index .RepoDigests 0}}", &tag]);
        let digest = digest.rsplit_once('@').expect("a digest").1.to_string();
        must(&["rmi", "-f", &tag]);
        Image { repository, digest }
    }
}
