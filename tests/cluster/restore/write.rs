//! What can happen around the one write: consent, a conflict, a change of mind, a deletion, an outage, an interrupt.

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::driver::{Driver, Ending};
use super::fixture::{Fixture, Ran, two_serials};
use crate::ground::{Ground, ground};

/// Starts the plugin on a terminal of its own, through `script`.
fn on_a_terminal(fixture: &Fixture<'_>, words: &[&str]) -> Child {
    let command = fixture.command(words);
    let quoted = |text: &std::ffi::OsStr| format!("'{}'", text.to_string_lossy().replace('\'', r"'\''"));
    let mut line = quoted(command.get_program());
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&quoted(argument));
    }
    Command::new("script")
        .args(["--quiet", "--return", "--flush", "--command", &line, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the plugin through script")
}

/// Types a line once the plugin asks, after `before`.
fn answer(mut child: Child, text: &str, before: impl FnOnce()) -> Ran {
    use std::io::Read as _;
    let mut out = child.stdout.take().expect("the terminal");
    let mut seen = Vec::new();
    let mut byte = [0; 1];
    while !String::from_utf8_lossy(&seen).contains("type the object's name") {
        assert_eq!(out.read(&mut byte).expect("read the terminal"), 1, "{}", String::from_utf8_lossy(&seen));
        seen.push(byte[0]);
    }
    before();
    let mut input = child.stdin.take().expect("the keyboard");
    writeln!(input, "{text}").expect("type");
    out.read_to_end(&mut seen).expect("read the terminal");
    drop(input);
    let status = child.wait().expect("wait for the plugin");
    let ran = Ran {
        code: status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&seen).into_owned(),
        stderr: String::new(),
    };
    assert!(!ran.text().contains(super::CANARY), "{}", ran.text());
    ran
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn consent_is_typed_or_counted_and_nothing_else() {
    let namespace = ground().namespace("consent");
    let (fixture, old) = two_serials(&namespace);
    let object = "terraformcluster/demo";
    for (words, why) in [
        (vec!["restore", &old, object, "--without-claim"], "no terminal"),
        (vec!["restore", &old, object, "--without-claim", "--yes"], "--yes is not enough"),
        (vec!["restore", &old, object, "--without-claim", "--yes-forget-resources=2"], "another number"),
    ] {
        let ran = fixture.plugin(&words);
        assert_eq!(ran.code, 4, "{why}: {}", ran.text());
        assert!(ran.stderr.contains("refused"), "{why}: {}", ran.text());
    }
    let claim = format!("captf-claim-{}", fixture.workspace.suffix);
    fixture.ground.apply_value(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": claim, "namespace": fixture.namespace},
        "spec": {"holderIdentity": "bob@laptop/1/0123456789abcdef", "leaseDurationSeconds": 60},
    }));
    let claimed = fixture.plugin(&["restore", &old, object, "--yes-forget-resources=1"]);
    assert_eq!(claimed.code, 4, "somebody else's claim: {}", claimed.text());
    assert!(claimed.stderr.contains("bob@laptop"), "{}", claimed.text());
    fixture.ground.delete("Lease", &fixture.namespace, &claim);
    let json = fixture.plugin(&["restore", &old, object, "--without-claim", "-o", "json"]);
    assert_eq!((json.code, &json.json()["exitCode"]), (4, &json!(4)), "{}", json.text());
    let words = ["restore", old.as_str(), object, "--without-claim", "--wait=false"];
    let wrong = answer(on_a_terminal(&fixture, &words), "yes", || {});
    assert_eq!(wrong.code, 4, "{}", wrong.text());
    assert_eq!(fixture.annotation(), None, "nothing of this changed the object");
    let right = answer(on_a_terminal(&fixture, &words), &format!("demo {old}"), || {});
    assert_eq!(right.code, 0, "{}", right.text());
    assert_eq!(fixture.annotation(), Some(old.clone()));
    let again = fixture.plugin(&words);
    assert_eq!(again.code, 0, "a request that stands is not written again: {}", again.text());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_conflict_is_judged_again() {
    let namespace = ground().namespace("conflict");
    let (fixture, old) = two_serials(&namespace);
    let words = ["restore", old.as_str(), "terraformcluster/demo", "--without-claim", "--wait=false"];
    let typed = format!("demo {old}");
    // The same judgement after an unrelated change: no second question.
    let unrelated = || fixture.patch(&json!({"metadata": {"labels": {"changed": "meanwhile"}}}));
    let ran = answer(on_a_terminal(&fixture, &words), &typed, unrelated);
    assert_eq!(ran.code, 0, "{}", ran.text());
    assert!(ran.text().contains("judging again"), "{}", ran.text());
    assert_eq!(fixture.annotation(), Some(old.clone()));
    fixture.patch(&json!({"metadata": {"annotations": {"captf.io/restore-state": null}}}));
    // A change that refuses.
    let pause = || fixture.patch(&json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": "true"}}}));
    let ran = answer(on_a_terminal(&fixture, &words), &typed, pause);
    assert_eq!(ran.code, 4, "{}", ran.text());
    assert!(ran.text().contains("restore-paused"), "{}", ran.text());
    assert_eq!(fixture.annotation(), None);
    // Gone before the write.
    fixture.patch(&json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": null}}}));
    let delete = || fixture.ground.delete("TerraformCluster", &fixture.namespace, "demo");
    let ran = answer(on_a_terminal(&fixture, &words), &typed, delete);
    assert_eq!(ran.code, 1, "{}", ran.text());
    assert!(ran.text().contains("deleted meanwhile"), "{}", ran.text());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn an_object_that_is_deleted_in_the_middle_ends_the_wait() {
    let namespace = ground().namespace("deleted");
    let (fixture, old) = two_serials(&namespace);
    let driver = Driver::start(&fixture, vec![Ending::ObjectDeleted]);
    let ran = fixture.plugin(&["restore", &old, "tfc", "demo", "--yes-forget-resources=1", "--without-claim"]);
    assert_eq!(ran.code, 1, "{}", ran.text());
    assert!(ran.stderr.contains("is gone"), "{}", ran.text());
    driver.finish();
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_wait_ends_at_its_limit_or_at_an_interrupt_and_the_restore_goes_on() {
    let namespace = ground().namespace("leave");
    let (fixture, old) = two_serials(&namespace);
    let words = ["restore", old.as_str(), "tfc/demo", "--yes-forget-resources=1", "--without-claim"];
    let ran = fixture.plugin(&[&words[..], &["--timeout=2s"]].concat());
    assert_eq!(ran.code, 124, "{}", ran.text());
    assert!(ran.stderr.contains("restore status"), "{}", ran.text());
    for signal in ["-INT", "-TERM"] {
        let child = fixture.command(&["restore", "status", "tfc/demo", "--wait"]).spawn().expect("start the plugin");
        thread::sleep(Duration::from_secs(3));
        let pid = child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("send a signal").success());
        let ran = Ran::of(&child.wait_with_output().expect("wait for the plugin"));
        assert_eq!(ran.code, 130, "{signal}: {}", ran.text());
    }
    assert_eq!(fixture.annotation(), Some(old));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn an_outage_of_the_api_server_is_waited_out() {
    let own: &'static Ground = Box::leak(Box::new(Ground::start()));
    let namespace = own.namespace("outage");
    let (fixture, old) = two_serials(&namespace);
    let child = fixture
        .command(&["restore", &old, "tfc/demo", "--yes-forget-resources=1", "--without-claim", "--request-timeout=2s"])
        .spawn()
        .expect("start the plugin");
    let start = Instant::now();
    while fixture.annotation().is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "the plugin asked for nothing");
        thread::sleep(Duration::from_millis(100));
    }
    thread::sleep(Duration::from_millis(1500));
    own.stop_apiserver();
    thread::sleep(Duration::from_secs(4));
    own.start_apiserver();
    let driver = Driver::start(&fixture, vec![Ending::Success]);
    let ran = Ran::of(&child.wait_with_output().expect("wait for the plugin"));
    assert_eq!(ran.code, 0, "{}", ran.text());
    assert!(ran.stderr.contains("no answer"), "the outage was seen: {}", ran.text());
    driver.finish();
    assert_eq!(fixture.state_list(), ["terraform_data.main[\"web\"]"]);
    own.stop_apiserver();
}
