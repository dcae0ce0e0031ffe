//! `lock force-unlock` on a real API server, with locks that killed real runtimes left, in a real Docker and a
//! real Podman.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::claim::{captf, on_terminal, text};
use super::engines::{Engines, Image, engines};
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
    let shipped = include_str!("../../deploy/rbac/force-unlock-account.yaml");
    ground.apply(&shipped.replace("team-a", namespace));
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

fn cleared(engine: &str, runtime: &Runtime, image: &Image) {
    let (ground, all) = (ground(), engines());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, image);
    let (workspace, id) = foreign(&namespace, runtime);
    let before = state_version(ground, &workspace);
    let output = run(&mut unlock(ground, &Call { namespace: name, engine, id: &id, more: &[] }));
    exits(&output, 0, &["info[unlock-done]", &id, "free", &image.digest, "captf-unlocker"]);
    let lease = ground.get("Lease", name, &workspace.lease());
    assert!(lease["spec"]["holderIdentity"].is_null(), "{lease}");
    assert!(lease["metadata"]["annotations"]["app.terraform.io/lock-info"].is_null(), "{lease}");
    assert_eq!(state_version(ground, &workspace), before, "the state was written");
    let claim = format!("captf-claim-{}", workspace.suffix);
    assert!(ground.find("Lease", name, &claim).is_none(), "the claim stays");
    let events = ground.list("Event", name, "");
    let event = events.iter().find(|e| e["reason"] == "UnlockedByHand").expect("an Event");
    let message = event["message"].as_str().expect("a message");
    assert!(message.contains(&id) && message.contains("INC-4711") && message.contains(&who()), "{message}");
    assert_eq!(all.ours(engine, name), Vec::<String>::new(), "something was left in the engine");
    workspace.apply(&json!({"output": {"after": {"value": 2}}}));
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_foreign_lock_is_cleared_on_docker_by_an_image_that_runs_as_root() {
    cleared(&engines().docker, &Runtime::terraform(), terraform_image());
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_foreign_lock_is_cleared_on_docker_by_an_image_that_runs_as_65532() {
    cleared(&engines().docker, &Runtime::terraform(), terraform_nonroot());
}

#[test]
#[ignore = "needs the test ground and root for Podman (make test)"]
fn a_foreign_lock_is_cleared_on_podman() {
    cleared(&engines().podman, &Runtime::terraform(), terraform_nonroot());
}

#[test]
#[ignore = "needs the test ground and root for Podman (make test)"]
fn a_foreign_lock_is_cleared_on_podman_by_an_image_that_runs_as_root() {
    cleared(&engines().podman, &Runtime::terraform(), terraform_image());
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_foreign_lock_is_cleared_by_opentofu() {
    cleared(&engines().docker, &Runtime::tofu(), tofu_image());
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
#[ignore = "needs the test ground (make test)"]
fn what_the_binary_cannot_release_is_released_on_the_lease() {
    let ground = ground();
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    // No state Secret at all.
    ground.request("DELETE", &format!("/api/v1/namespaces/{name}/secrets/{}", workspace.secret()), None).expect("gone");
    refused(engines(), &workspace, &id, &[], &["error[unlock-binary-cannot]", "--method lease"]);
    let by_lease = Call { namespace: name, engine: "", id: &id, more: &["--method", "lease"] };
    exits(&run(&mut unlock(ground, &by_lease)), 0, &["info[unlock-done]"]);
    assert_eq!(workspace.holder(), None);

    // The empty string: held for the runtime, and no ID can name it.
    workspace.apply(&json!({}));
    let mut lease = ground.get("Lease", name, &workspace.lease());
    lease["spec"]["holderIdentity"] = json!("");
    replace(ground, "Lease", &lease);
    let mut empty = captf(ground);
    empty.args(["lock", "force-unlock", "tfc/prod", "-n", name, "--lock-id", "", "--holder", "unknown"]);
    empty.args(["--holder-is-dead", "--reason", "r", "--method", "lease"]);
    exits(&run(&mut empty), 0, &["info[unlock-done]"]);
    assert!(ground.get("Lease", name, &workspace.lease())["spec"]["holderIdentity"].is_null());
    workspace.apply(&json!({}));
    // Free: nothing to do.
    exits(&run(&mut unlock(ground, &by_lease)), 0, &["info[unlock-nothing-to-do]"]);
}

/// Starts a command on a terminal, waits for a question, does something, and types.
fn interrupted_by(ground: &Ground, line: &str, question: &str, meanwhile: impl FnOnce(), typed: &str) -> Output {
    let binary = env!("CARGO_BIN_EXE_kubectl-captf");
    let mut command = Command::new("script");
    command.args(["-qefc", &format!("{binary} {line}"), "/dev/null"]);
    command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("HOME", &ground.dir).env("USER", "tester");
    command.env("KUBECONFIG", &ground.kubeconfig).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("run script");
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
#[ignore = "needs the test ground and root for Docker (make test)"]
fn an_engine_that_is_down_and_an_image_that_is_gone_are_named() {
    let (ground, all) = (ground(), engines());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    let gone = Image { digest: format!("sha256:{}", "0".repeat(64)), ..terraform_image().clone() };
    object(ground, name, &gone);
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let down = Call { namespace: name, engine: "unix:///nonexistent/docker.sock", id: &id, more: &[] };
    exits(&run(&mut unlock(ground, &down)), 1, &["/nonexistent/docker.sock", "--method lease"]);
    let none = Call { namespace: name, engine: "", id: &id, more: &[] };
    exits(&run(unlock(ground, &none).env("DOCKER_HOST", "ssh://u@h")), 1, &["DOCKER_HOST", "ssh is not supported"]);
    let missing = Call { namespace: name, engine: &all.docker, id: &id, more: &[] };
    exits(&run(&mut unlock(ground, &missing)), 1, &["pull", &gone.digest]);
    assert_eq!(workspace.holder(), Some(id));
    assert!(ground.find("Lease", name, &format!("captf-claim-{}", workspace.suffix)).is_none());
}

#[test]
#[ignore = "needs the test ground and root for Docker and Podman (make test)"]
fn the_credential_is_in_no_argument_variable_log_or_output() {
    let (ground, all) = (ground(), engines());
    for engine in [&all.docker, &all.podman] {
        let namespace = ground.namespace("unlock");
        let name = namespace.name();
        object(ground, name, terraform_nonroot());
        let (_workspace, id) = foreign(&namespace, &Runtime::terraform());
        let done = AtomicBool::new(false);
        let seen = thread::scope(|scope| {
            let looker = scope.spawn(|| {
                let mut seen = String::new();
                while !done.load(Ordering::SeqCst) {
                    for id in all.ours(engine, name) {
                        for args in [["inspect", &id], ["logs", &id]] {
                            let output = all.cli(engine, &args);
                            seen.push_str(&text(&output));
                        }
                    }
                    let arguments = Command::new("ps").args(["axww", "-o", "args"]).output().expect("run ps");
                    seen.push_str(&text(&arguments));
                }
                seen
            });
            let call = Call { namespace: name, engine, id: &id, more: &["-v", "9"] };
            let output = run(&mut unlock(ground, &call));
            done.store(true, Ordering::SeqCst);
            exits(&output, 0, &["info[unlock-done]"]);
            looker.join().expect("the looker")
        });
        assert!(seen.contains("/captf/work/unlock/kubeconfig"), "no container was seen on {engine}");
        assert!(!seen.contains("eyJhbGciOi"), "a token was seen on {engine}");
        assert_eq!(all.ours(engine, name), Vec::<String>::new());
    }
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn what_a_killed_run_left_is_removed_by_the_next() {
    let (ground, all) = (ground(), engines());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let call = Call { namespace: name, engine: &all.docker, id: &id, more: &[] };
    let mut child = unlock(ground, &call).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start");
    let start = Instant::now();
    while all.ours(&all.docker, name).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(120), "nothing appeared in the engine");
        assert!(child.try_wait().expect("look").is_none(), "it ended before it could be killed");
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
    let claim = format!("captf-claim-{}", workspace.suffix);
    assert!(ground.find("Lease", name, &claim).is_some(), "a killed run cannot release its claim");
    // It was killed long before the second command, so the lock is held still.
    exits(&run(&mut unlock(ground, &call)), 4, &["is being worked on by tester@", "which renewed"]);
    let again = Call { more: &["--without-claim"], ..call };
    exits(&run(&mut unlock(ground, &again)), 0, &["Removed what an earlier run left", "info[unlock-done]"]);
    assert_eq!(all.ours(&all.docker, name), Vec::<String>::new());
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn the_printed_commands_do_the_same_by_hand() {
    let (ground, all) = (ground(), engines());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_nonroot());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let mut dry = captf(ground);
    dry.args(["lock", "force-unlock", "tfc/prod", "-n", name, "--dry-run", "-o", "json"]);
    let output = run(dry.args(["--service-account", "captf-unlocker"]));
    exits(&output, 0, &[&id, "unlock-ready"]);
    assert!(
        ground.find("Lease", name, &format!("captf-claim-{}", workspace.suffix)).is_none(),
        "a dry run claims nothing"
    );
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let ready = &report["items"][0]["findings"][0];
    let steps = ready["nextSteps"].as_array().expect("steps");
    let commands: Vec<&str> =
        steps.iter().filter_map(|s| s["command"].as_str()).filter(|c| !c.contains("captf lock")).collect();
    assert_eq!(commands.len(), 6, "{commands:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let kubectl = ground.kubectl.parent().expect("a folder").display().to_string();
    for command in commands {
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", command]).current_dir(folder.path());
        shell.env("PATH", format!("{kubectl}:/usr/local/bin:/usr/bin:/bin")).env("KUBECONFIG", &ground.kubeconfig);
        shell.env("DOCKER_HOST", &all.docker).env("DOCKER_CONFIG", &all.dir).env("DOCKER_API_VERSION", "1.41");
        let output = run(&mut shell);
        assert!(output.status.success(), "{command}: {}", text(&output));
    }
    assert_eq!(workspace.holder(), None);
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn an_interruption_cleans_up_and_a_second_one_leaves_at_once() {
    let (ground, all) = (ground(), engines());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let claim = format!("captf-claim-{}", workspace.suffix);
    let call = Call { namespace: name, engine: &all.docker, id: &id, more: &[] };
    let start = |ours: bool| {
        let mut command = unlock(ground, &call);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start");
        let begin = Instant::now();
        while if ours { all.ours(&all.docker, name).is_empty() } else { ground.find("Lease", name, &claim).is_none() } {
            assert!(begin.elapsed() < Duration::from_secs(60), "it did not come so far");
        }
        child
    };
    let signal = |child: &std::process::Child| {
        let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("run kill");
        assert!(status.success());
    };
    let child = start(true);
    signal(&child);
    let output = child.wait_with_output().expect("wait");
    exits(&output, 130, &["interrupted"]);
    assert!(ground.find("Lease", name, &claim).is_none(), "the claim stays");
    assert_eq!(all.ours(&all.docker, name), Vec::<String>::new());
    assert_eq!(workspace.holder().as_deref(), Some(id.as_str()));

    // An engine that then stands still: only the second interruption gets out.
    let silent = std::os::unix::net::UnixListener::bind(all.dir.join("silent.sock")).expect("a socket");
    thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in silent.incoming().flatten() {
            kept.push(thread::spawn(move || only_introduces_itself(stream)));
        }
    });
    let url = format!("unix://{}", all.dir.join("silent.sock").display());
    let mut command = unlock(ground, &Call { engine: &url, ..call });
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start");
    let begin = Instant::now();
    while ground.find("Lease", name, &claim).is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "it did not come so far");
    }
    thread::sleep(Duration::from_secs(1));
    signal(&child);
    thread::sleep(Duration::from_millis(500));
    signal(&child);
    let output = child.wait_with_output().expect("wait");
    exits(&output, 130, &["once more to leave at once", "the claim stays", "claim reclaim terraformcluster/prod"]);
    assert!(ground.find("Lease", name, &claim).is_some());
}

/// An engine that answers `/version`, `/info` and for any image, and leaves every other request waiting.
fn only_introduces_itself(mut stream: std::os::unix::net::UnixStream) {
    let mut head = Vec::new();
    let mut byte = [0];
    loop {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
        if head.ends_with(b"\r\n\r\n") {
            let request = String::from_utf8_lossy(&std::mem::take(&mut head)).into_owned();
            let line = request.lines().next().unwrap_or_default().to_string();
            if line.contains("/version ") || line.contains("/info ") || line.contains("/images/") {
                let body = r#"{"ApiVersion":"1.41","Version":"0","Arch":"amd64","OperatingSystem":"none","Id":"x"}"#;
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).expect("answer");
            }
        }
    }
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_daemon_that_is_killed_at_work_is_named_and_the_claim_is_given_back() {
    let (ground, own) = (ground(), Engines::start());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    let image = own.image(&Runtime::terraform(), "team/terraform", "");
    object(ground, name, &image);
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let call = Call { namespace: name, engine: &own.docker, id: &id, more: &[] };
    let child = unlock(ground, &call).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start");
    let begin = Instant::now();
    while own.ours(&own.docker, name).is_empty() {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing appeared in the engine");
    }
    own.kill_docker();
    let output = child.wait_with_output().expect("wait");
    exits(&output, 1, &["error: ", "the next force-unlock removes it"]);
    assert_eq!(workspace.holder().as_deref(), Some(id.as_str()));
    assert!(ground.find("Lease", name, &format!("captf-claim-{}", workspace.suffix)).is_none(), "the claim stays");
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

/// What a kubelet would do with the Job's pod: init container, then container, in a real Docker.
fn kubelet(ground: &Ground, engines: &Engines, namespace: &str) -> Vec<String> {
    let start = Instant::now();
    let job = loop {
        let jobs = ground.list("Job", namespace, "kubectl.captf.io/force-unlock");
        if let Some(job) = jobs.first() {
            break job.clone();
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no Job was created");
    };
    let pod = &job["spec"]["template"];
    let folder = tempfile::tempdir_in(&engines.dir).expect("a folder");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, text).expect("a file");
    };
    let account = pod["spec"]["serviceAccountName"].as_str().expect("a ServiceAccount");
    let kubeconfig = std::fs::read_to_string(ground.token_kubeconfig(namespace, account)).expect("a kubeconfig");
    let kubeconfig: Value = serde_json::from_str(&kubeconfig).expect("JSON");
    write("account/token", kubeconfig["users"][0]["user"]["token"].as_str().expect("a token"));
    write("account/ca.crt", &std::fs::read_to_string(&ground.ca).expect("the authority"));
    write("account/namespace", namespace);
    let main = pod["metadata"]["annotations"]["kubectl.captf.io/main.tf.json"].as_str().expect("the root module");
    write("root/main.tf.json", main);
    write("work/.keep", "");
    let port = ground.server.rsplit_once(':').expect("a port").1.to_string();
    let mount = |from: &str, to: &str| format!("{}:{to}", folder.path().join(from).display());
    let mut outputs = Vec::new();
    for container in [&pod["spec"]["initContainers"][0], &pod["spec"]["containers"][0]] {
        let word = |value: &Value| value.as_str().expect("a text").to_string();
        let mut args: Vec<String> = ["run", "--rm", "--network", "host", "--cap-drop", "ALL"].map(String::from).into();
        for (from, to) in [
            ("root", "/captf/root:ro"),
            ("work", "/captf/work"),
            ("account", "/var/run/secrets/kubernetes.io/serviceaccount:ro"),
        ] {
            args.extend(["-v".to_string(), mount(from, to)]);
        }
        args.extend(["-e".to_string(), "KUBERNETES_SERVICE_HOST=127.0.0.1".to_string()]);
        args.extend(["-e".to_string(), format!("KUBERNETES_SERVICE_PORT={port}")]);
        for variable in container["env"].as_array().expect("an environment") {
            args.extend(["-e".to_string(), format!("{}={}", word(&variable["name"]), word(&variable["value"]))]);
        }
        args.extend(["-w".to_string(), word(&container["workingDir"]), "--entrypoint".to_string()]);
        args.extend([word(&container["command"][0]), word(&container["image"])]);
        args.extend(container["args"].as_array().expect("arguments").iter().map(word));
        let output = engines.docker(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.status.success(), "{args:?}: {}", text(&output));
        outputs.push(text(&output));
    }
    let name = job["metadata"]["name"].as_str().expect("a name");
    let mut done = ground.get("Job", namespace, name);
    let at = "2026-01-10T08:00:00Z";
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": at});
    done["status"] = json!({"startTime": at, "completionTime": at, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
    let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status");
    ground.request("PUT", &path, Some(&done)).unwrap_or_else(|refused| panic!("PUT {path}: {refused:?}"));
    outputs
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_job_of_the_cluster_releases_the_lock_too() {
    let (ground, all) = (ground(), engines());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let before = state_version(ground, &workspace);
    let call = Call { namespace: name, engine: "unix:///nonexistent.sock", id: &id, more: &["--method", "job"] };
    let output = thread::scope(|scope| {
        let pod = scope.spawn(|| kubelet(ground, all, name));
        let output = run(&mut unlock(ground, &call));
        let outputs = pod.join().expect("the pod");
        assert!(outputs[1].contains("successfully unlocked"), "{outputs:?}");
        output
    });
    exits(&output, 0, &["info[unlock-done]", "Job captf-unlock-", "ServiceAccount"]);
    assert_eq!(workspace.holder(), None);
    assert_eq!(state_version(ground, &workspace), before);
    assert!(
        ground.list("Job", name, "").iter().all(|j| !j["metadata"]["deletionTimestamp"].is_null()),
        "the Job stays"
    );
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn of_two_operators_at_once_exactly_one_acts_in_each_of_a_hundred_rounds() {
    let ground = ground();
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let held = ground.get("Lease", name, &workspace.lease());
    for round in 0..100 {
        let outputs: Vec<Output> = thread::scope(|scope| {
            let call = || {
                run(&mut unlock(ground, &Call { namespace: name, engine: "", id: &id, more: &["--method", "lease"] }))
            };
            let both = [scope.spawn(call), scope.spawn(call)];
            both.map(|b| b.join().expect("a run")).into()
        });
        let acted = outputs.iter().filter(|o| text(o).contains("info[unlock-done]")).count();
        assert_eq!(acted, 1, "round {round}: {}\n{}", text(&outputs[0]), text(&outputs[1]));
        assert_eq!(workspace.holder(), None);
        let mut again = held.clone();
        let now = ground.get("Lease", name, &workspace.lease());
        again["metadata"]["resourceVersion"] = now["metadata"]["resourceVersion"].clone();
        replace(ground, "Lease", &again);
    }
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
