//! The engines and the registry of `tests/engines.sh`, with images of the real runtimes in the registry.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::ground::runtime::Runtime;

/// Everything that runs; it ends when this process ends, because its standard input does.
pub struct Engines {
    pub docker: String,
    pub podman: String,
    /// A Podman of a user without rights.
    pub rootless: String,
    /// The same Docker behind TLS; what a client needs is in `certs` of `dir`.
    pub tls: String,
    pub registry: String,
    /// The same images behind a login as `tester`.
    pub guarded: String,
    pub password: String,
    docker_pid: Mutex<u64>,
    pub dir: PathBuf,
    talk: Mutex<(Option<ChildStdin>, BufReader<ChildStdout>)>,
    process: Child,
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
        let pid = self.docker_pid.lock().expect("the process ID").to_string();
        let status = Command::new("kill").args(["-KILL", &pid]).status().expect("run kill");
        assert!(status.success(), "the daemon was gone already");
    }

    /// Starts it again, and returns when it answers.
    pub fn restart_docker(&self) {
        let mut talk = self.talk.lock().expect("the script");
        talk.0.as_mut().expect("open").write_all(b"restart-docker\n").expect("ask for a restart");
        let mut line = String::new();
        talk.1.read_line(&mut line).expect("what tests/engines.sh prints");
        *self.docker_pid.lock().expect("the process ID") = line.trim().parse().expect("a process ID");
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
        let stdin = child.stdin.take().expect("a pipe");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        stdout.read_line(&mut line).expect("what tests/engines.sh prints");
        let said: Value =
            serde_json::from_str(&line).unwrap_or_else(|e| panic!("tests/engines.sh failed: {e}: {line}"));
        let text = |key: &str| said[key].as_str().expect("a text").to_string();
        Self {
            docker: text("docker"),
            podman: text("podman"),
            rootless: text("rootless"),
            tls: text("tls"),
            registry: text("registry"),
            guarded: text("guarded"),
            password: text("password"),
            docker_pid: Mutex::new(said["docker_pid"].as_u64().expect("a process ID")),
            dir: folder.path().to_path_buf(),
            talk: Mutex::new((Some(stdin), stdout)),
            process: child,
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

    /// An image of the registry under another name there, so that no engine has it. With an architecture its
    /// configuration is changed to claim that one.
    pub fn copy(&self, image: &Image, name: &str, architecture: Option<&str>) -> Image {
        const KIND: &str = "application/vnd.docker.distribution.manifest.v2+json";
        let from = image.repository.split_once('/').expect("a repository").1;
        let (base, dir) =
            (format!("http://{}/v2", self.registry), self.dir.join(format!("copy-{}", name.replace('/', "-"))));
        std::fs::create_dir_all(&dir).expect("a folder");
        let digest = |bytes: &[u8]| -> String {
            let hex: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
            format!("sha256:{hex}")
        };
        let accept = format!("Accept: {KIND}");
        let manifest = curl(&["-H", &accept, &format!("{base}/{from}/manifests/{}", image.digest)]);
        let mut manifest: Value = serde_json::from_slice(&manifest).expect("a manifest");
        let text = |value: &Value| value.as_str().expect("a text").to_string();
        let layers = manifest["layers"].as_array().expect("layers").iter().map(|l| text(&l["digest"]));
        let blobs: Vec<String> = layers.chain([text(&manifest["config"]["digest"])]).collect();
        for blob in &blobs {
            curl(&["-X", "POST", "-d", "", &format!("{base}/{name}/blobs/uploads/?mount={blob}&from={from}")]);
        }
        if let Some(architecture) = architecture {
            let config = curl(&[&format!("{base}/{from}/blobs/{}", text(&manifest["config"]["digest"]))]);
            let mut config: Value = serde_json::from_slice(&config).expect("a configuration");
            config["architecture"] = json!(architecture);
            let bytes = config.to_string();
            std::fs::write(dir.join("config"), &bytes).expect("write");
            let started = curl(&["-i", "-X", "POST", "-d", "", &format!("{base}/{name}/blobs/uploads/")]);
            let started = String::from_utf8_lossy(&started).into_owned();
            let place = started.lines().find_map(|l| l.strip_prefix("Location: ")).expect("a place").trim();
            let mark = if place.contains('?') { '&' } else { '?' };
            let place = format!("{place}{mark}digest={}", digest(bytes.as_bytes()));
            let data = format!("@{}", dir.join("config").display());
            curl(&["-X", "PUT", "-H", "Content-Type: application/octet-stream", "--data-binary", &data, &place]);
            manifest["config"]["digest"] = json!(digest(bytes.as_bytes()));
            manifest["config"]["size"] = json!(bytes.len());
        }
        self.put_manifest(name, KIND, &manifest)
    }

    /// Stores a manifest in the registry.
    pub fn put_manifest(&self, name: &str, kind: &str, manifest: &Value) -> Image {
        let bytes = manifest.to_string();
        let digest: String = Sha256::digest(bytes.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
        let url = format!("http://{}/v2/{name}/manifests/1", self.registry);
        curl(&["-X", "PUT", "-H", &format!("Content-Type: {kind}"), "--data-binary", &bytes, &url]);
        Image { repository: format!("{}/{name}", self.registry), digest: format!("sha256:{digest}") }
    }
}

impl Drop for Engines {
    /// The script stops what it started while its folder is still there.
    fn drop(&mut self) {
        if let Ok(mut talk) = self.talk.lock() {
            talk.0 = None;
        }
        // A script that ended by itself is as good.
        let _ = self.process.wait();
    }
}

/// What a request to the registry answers.
#[track_caller]
fn curl(args: &[&str]) -> Vec<u8> {
    let output = Command::new("curl").args(["-sS", "--fail-with-body"]).args(args).output().expect("run curl");
    assert!(output.status.success(), "curl {args:?}: {}", String::from_utf8_lossy(&output.stdout));
    output.stdout
}
