//! Registries that want a login, lack the image, are down, or have it for another machine.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

/// A lock to release, and a docker configuration of one's own.
struct Pulls {
    scene: Scene,
    engine: String,
    config: tempfile::TempDir,
}

impl Pulls {
    fn new(engine: &str) -> Self {
        let scene = Scene::new(engine, terraform_image());
        Self { scene, engine: engine.to_string(), config: tempfile::tempdir().expect("a folder") }
    }

    fn configure(&self, config: &Value) {
        std::fs::write(self.config.path().join("config.json"), config.to_string()).expect("write");
    }

    /// A credential helper that says this and ends so.
    fn helper(&self, script: &str) {
        let file = self.config.path().join("docker-credential-testhelper");
        std::fs::write(&file, format!("#!/bin/sh\ncat >/dev/null\n{script}\n")).expect("write");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("make it a program");
    }

    fn pull(&self, reference: &str) -> Output {
        let mut command = self.scene.command(&["--image", reference]);
        let path = format!("{}:/usr/bin:/bin:/usr/sbin:/sbin", self.config.path().display());
        run(command.env("DOCKER_CONFIG", self.config.path()).env("PATH", path))
    }

    /// The pull fails, nothing is left, and the lock is as it was.
    #[track_caller]
    fn fails(&self, reference: &str, needles: &[&str]) -> String {
        let words = exits(&self.pull(reference), 1, needles);
        let engine = if self.engine == engines().docker { "docker" } else { "podman" };
        assert!(words.contains("error: ") && words.contains("hint: "), "{engine}: {words}");
        assert!(self.scene.held());
        assert_eq!(self.scene.claim_lease(), None, "the claim stays");
        assert_eq!(self.scene.left(&self.engine), Vec::<String>::new());
        words
    }
}

fn base64(text: &str) -> String {
    let bytes = k8s_openapi::ByteString(text.as_bytes().to_vec());
    serde_json::to_value(bytes).expect("base64").as_str().expect("a text").to_string()
}

fn at(registry: &str, name: &str, image: &Image) -> String {
    format!("{registry}/{name}@{}", image.digest)
}

fn every_login(engine: &str, own: &str) {
    let all = engines();
    let image = all.copy(terraform_image(), own, None);
    let pulls = Pulls::new(engine);
    let (registry, reference) = (&all.guarded, at(&all.guarded, own, &image));
    let login = |password: &str| json!({"auths": {registry: {"auth": base64(&format!("tester:{password}"))}}});
    let wants = format!("{registry} wants a login");
    let hint = format!("docker login {registry}");
    pulls.configure(&json!({}));
    pulls.fails(&reference, &[&wants, "the docker configuration has no login for it", &hint]);
    pulls.configure(&login("CANARY-WRONG"));
    pulls.fails(&reference, &[&wants, "a login of the docker configuration", &hint]);
    pulls.configure(&json!({"credHelpers": {registry: "testhelper"}}));
    pulls.fails(&reference, &[&wants, "docker-credential-testhelper could not be run"]);
    pulls.helper("echo CANARY-STDOUT; echo CANARY-STDERR >&2; exit 1");
    pulls.fails(&reference, &[&wants, "docker-credential-testhelper failed"]);
    // The helper is asked for this registry, and answers as helpers do.
    pulls.helper(&format!(r#"echo '{{"ServerURL":"{registry}","Username":"tester","Secret":"{}"}}'"#, all.password));
    exits(&pulls.pull(&reference), 0, &["info[unlock-done]", &image.digest]);
    // It is there now, and nobody has to log in for it.
    let id = pulls.scene.workspace.apply_and_kill(HOST);
    let pulls = Pulls { scene: Scene { id, ..pulls.scene }, ..pulls };
    pulls.configure(&json!({}));
    exits(&pulls.pull(&reference), 0, &["info[unlock-done]"]);
    // A plain login, for another name of the same image.
    let again = format!("{own}-again");
    let image = all.copy(terraform_image(), &again, None);
    let id = pulls.scene.workspace.apply_and_kill(HOST);
    let pulls = Pulls { scene: Scene { id, ..pulls.scene }, ..pulls };
    pulls.configure(&login(&all.password));
    exits(&pulls.pull(&at(registry, &again, &image)), 0, &["info[unlock-done]"]);
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn logins_are_those_of_the_docker_configuration_on_docker() {
    every_login(&engines().docker, "team/login-docker");
}

#[test]
#[ignore = "needs the test ground and root for Podman (make test)"]
fn logins_are_those_of_the_docker_configuration_on_podman() {
    every_login(&engines().podman, "team/login-podman");
}

/// An index that has the image for another platform only.
fn index_of(image: &Image, name: &str) -> Image {
    const LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
    let entry = json!({"mediaType": "application/vnd.docker.distribution.manifest.v2+json", "digest": image.digest,
        "size": 700, "platform": {"architecture": "arm64", "os": "linux"}});
    engines().put_manifest(name, LIST, &json!({"schemaVersion": 2, "mediaType": LIST, "manifests": [entry]}))
}

fn every_failure(engine: &str) {
    let all = engines();
    let foreign = all.copy(terraform_image(), "team/arm", Some("arm64"));
    let index = index_of(&foreign, "team/arm");
    let pulls = Pulls::new(engine);
    let gone = Image { digest: format!("sha256:{}", "0".repeat(64)), ..foreign.clone() };
    pulls.fails(&at(&all.registry, "team/arm", &gone), &["does not hold that digest", "--method lease"]);
    pulls.fails(&at("127.0.0.1:9", "team/arm", &foreign), &["connection refused", "cannot reach the registry"]);
    // A loopback address that no engine takes for one: it expects TLS there.
    let plain = all.registry.replace("127.0.0.1", "0.0.0.0");
    pulls.fails(&at(&plain, "team/arm", &foreign), &["speaks plain HTTP", "insecure"]);
    pulls.fails(&at("registry.invalid", "team/arm", &foreign), &["cannot reach the registry"]);
    let seen = pulls.scene.engine.requests().len();
    let words = pulls
        .fails(&at(&all.registry, "team/arm", &foreign), &["is for arm64, and the engine runs on", "--method job"]);
    assert!(words.contains("amd64") || words.contains("x86_64") || words.contains("aarch64"), "{words}");
    pulls.fails(&at(&all.registry, "team/arm", &index), &["platform", "--method job"]);
    let after = pulls.scene.engine.requests().split_off(seen);
    assert!(!after.iter().any(|r| r.is("POST", "/containers")), "a container was made of a foreign image");
    assert!(Path::new(&all.dir).exists());
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn pull_errors_and_foreign_platforms_are_put_into_words_on_docker() {
    every_failure(&engines().docker);
}

#[test]
#[ignore = "needs the test ground and root for Podman (make test)"]
fn pull_errors_and_foreign_platforms_are_put_into_words_on_podman() {
    every_failure(&engines().podman);
}
