//! Backups and restores on a real API server, with states that real runtimes wrote.
//!
//! There is no controller on the test ground: `driver` plays its side of a restore, with the runtime's own
//! `state push -force` and `state list`.

mod driver;
pub mod fixture;
mod limits;
mod refusals;
mod write;

use driver::{Driver, Ending};
use fixture::{CANARY, Fixture};

use crate::ground::ground;
use crate::ground::runtime::Runtime;

/// A restore of the older serial over the newer one; returns what the plugin printed.
fn restores(runtime: &Runtime, big: usize) {
    let ground = ground();
    let namespace = ground.namespace("restore");
    let fixture = Fixture::new(&namespace, runtime, "demo");
    fixture.apply(&["web", "db"], big);
    let old = fixture.backup();
    let list_of_old = fixture.state_list();
    fixture.apply(&["web", "db", "cache", "queue"], big);
    let new = fixture.backup();
    assert!(new > old, "serials grow: {old} {new}");
    assert_eq!(fixture.state_secrets().len() > 1, big > 0, "chunks as asked for");

    let list = fixture.plugin(&["backups", "list", "terraformcluster/demo", "-o", "json"]);
    assert_eq!(list.json()["backups"].as_array().map(Vec::len), Some(2), "{}", list.text());
    assert_eq!(fixture.plugin(&["backups", "verify", "terraformcluster/demo"]).code, 0);
    let inspect = fixture.plugin(&["state", "inspect", "terraformcluster/demo", "-o", "json"]);
    assert_eq!(inspect.json()["state"]["serial"], new, "{}", inspect.text());
    assert_eq!(inspect.json()["state"]["reason"], "StateRead", "{}", inspect.text());
    let diff = fixture.plugin(&["backups", "diff", "terraformcluster/demo", &old.to_string(), "-o", "json"]);
    let difference = diff.json();
    let forgotten = &difference["diff"]["forgotten"][0]["addresses"];
    assert_eq!(
        *forgotten,
        serde_json::json!(["terraform_data.main[\"cache\"]", "terraform_data.main[\"queue\"]"]),
        "{}",
        diff.text()
    );
    let dry = fixture.plugin(&["restore", &old.to_string(), "terraformcluster/demo", "--dry-run=server", "-o", "json"]);
    assert_eq!(dry.code, 10, "{}", dry.text());
    assert_eq!(dry.json()["restore"]["serverSays"], "would accept the patch");
    assert!(fixture.annotation().is_none(), "a dry run changes nothing");

    let driver = Driver::start(&fixture, vec![Ending::Success]);
    let words = ["restore", &old.to_string(), "--yes-forget-resources=2", "--without-claim", "-o", "json"];
    let run = fixture.plugin(&words);
    assert_eq!(run.code, 0, "{}", run.text());
    driver.finish();
    assert_eq!(run.codes(), ["restore-succeeded"], "{}", run.text());
    assert_eq!(run.json()["diff"]["forgotten"][0]["addresses"], *forgotten, "what is to be imported or deleted");
    assert_eq!(fixture.state_list(), list_of_old, "the state is the backup's");
    let status = fixture.plugin(&["restore", "status", "terraformcluster/demo"]);
    assert!(status.text().contains("restore-succeeded"), "{}", status.text());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn terraform_restores_an_older_serial() {
    restores(&Runtime::terraform(), 0);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn opentofu_restores_an_older_serial() {
    restores(&Runtime::tofu(), 0);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn terraform_restores_a_state_of_several_chunks() {
    restores(&Runtime::terraform(), 1_500_000);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_failed_serial_is_tried_again_in_the_only_order_that_works() {
    let ground = ground();
    let namespace = ground.namespace("retry");
    let fixture = Fixture::new(&namespace, &Runtime::terraform(), "demo");
    fixture.apply(&["web"], 0);
    let old = fixture.backup().to_string();
    let list_of_old = fixture.state_list();
    fixture.apply(&["web", "db"], 0);
    fixture.backup();

    let driver = Driver::start(&fixture, vec![Ending::Failure, Ending::Success]);
    let words = ["terraformcluster/demo", "--yes-forget-resources=1", "--without-claim"];
    let failed = fixture.plugin(&[&["restore", &old][..], &words].concat());
    assert_eq!(failed.code, 1, "{}", failed.text());
    assert!(failed.text().contains("restore-failed"), "{}", failed.text());
    assert!(failed.text().contains("error[step-failed]"), "the cause as `jobs why` names it: {}", failed.text());
    assert!(failed.text().contains("Step state-push of Job"), "{}", failed.text());
    let burnt = fixture.plugin(&[&["restore", &old][..], &words].concat());
    assert_eq!(burnt.code, 4, "{}", burnt.text());
    assert!(burnt.text().contains("restore-consumed"), "{}", burnt.text());

    let retry = fixture.plugin(&[&["restore", "retry"][..], &words].concat());
    assert_eq!(retry.code, 0, "{}", retry.text());
    driver.finish();
    assert_eq!(fixture.state_list(), list_of_old);
    let again = fixture.plugin(&[&["restore", "retry"][..], &words].concat());
    assert_eq!(again.code, 4, "nothing is left to retry: {}", again.text());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn saved_files_hold_the_state_and_copies_join_nothing() {
    let ground = ground();
    let namespace = ground.namespace("save");
    let fixture = Fixture::new(&namespace, &Runtime::terraform(), "demo");
    fixture.apply(&["web"], 0);
    let serial = fixture.backup().to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();

    let state = path("state.json");
    let saved = fixture.plugin(&["backups", "save", "terraformcluster/demo", "--live", "--to", &state]);
    assert_eq!(saved.code, 0, "{}", saved.text());
    let text = std::fs::read_to_string(&state).expect("the file");
    assert!(text.contains(CANARY), "the file is the state itself");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["serial"].to_string(), serial);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&state).expect("the file").permissions());
    assert_eq!(mode & 0o777, 0o600);
    let again = fixture.plugin(&["backups", "save", "terraformcluster/demo", &serial, "--to", &state]);
    assert_eq!(again.code, 4, "never over an existing file: {}", again.text());
    assert_eq!(std::fs::read_to_string(&state).expect("the file"), text);

    // The older of two sets with one serial is reached by its name alone.
    let set = format!("captf-state-backup-{}-{serial}", fixture.workspace.suffix);
    let mut older = ground.get("Secret", &fixture.namespace, &set);
    let (name, mut notes) = (format!("{set}-older"), older["metadata"]["annotations"].clone());
    notes["captf.io/state-backup-set"] = serde_json::json!(name);
    notes["captf.io/state-backup-taken-at"] = serde_json::json!("2020-01-01T00:00:00Z");
    older["metadata"] = serde_json::json!({"name": name, "namespace": fixture.namespace,
        "labels": older["metadata"]["labels"], "annotations": notes});
    older["data"]["tfstate"] = fixture::encode(&fixture::gzip(br#"{"version":4,"serial":7}"#));
    ground.apply_value(older);
    let by_name = path("older.json");
    let saved = fixture.plugin(&["backups", "save", "terraformcluster/demo", "--set", &name, "--to", &by_name]);
    assert_eq!(saved.code, 0, "{}", saved.text());
    assert_eq!(std::fs::read_to_string(&by_name).expect("the file"), r#"{"version":4,"serial":7}"#);
    let both = fixture.plugin(&["backups", "save", "tfc/demo", &serial, "--set", &name, "--to", &path("no.json")]);
    assert_eq!(both.code, 2, "{}", both.text());
    let nothing = fixture.plugin(&["backups", "save", "tfc/demo", "--set", "other", "--to", &path("no.json")]);
    assert_eq!(nothing.code, 1, "{}", nothing.text());
    ground.delete("Secret", &fixture.namespace, &name);

    for which in ["--live", serial.as_str()] {
        let yaml = path(&format!("secrets{which}.yaml"));
        let saved = fixture.plugin(&["backups", "save", "tfc", "demo", which, "--secrets", "--to", &yaml]);
        assert_eq!(saved.code, 0, "{}", saved.text());
        ground.apply(&std::fs::read_to_string(&yaml).expect("the file"));
    }
    let list = fixture.plugin(&["backups", "list", "terraformcluster/demo", "-o", "json"]);
    assert_eq!(list.json()["backups"].as_array().map(Vec::len), Some(1), "{}", list.text());
    assert_eq!(list.json()["backups"][0]["complete"], true, "{}", list.text());
    let inspect = fixture.plugin(&["state", "inspect", "terraformcluster/demo", "-o", "json"]);
    assert_eq!(inspect.json()["state"]["reason"], "StateRead", "{}", inspect.text());
    assert_eq!(fixture.state_list().len(), 1, "the runtime still reads the state");
}

/// What the refusal rests on, measured: OpenTofu neither loads a state in chunks nor writes a large one.
#[test]
#[ignore = "needs the test ground (make test)"]
fn opentofu_is_not_asked_to_restore_what_it_cannot_hold() {
    let ground = ground();
    let namespace = ground.namespace("too-large");
    let fixture = Fixture::new(&namespace, &Runtime::terraform(), "demo");
    fixture.apply(&["web"], 0);
    let small = fixture.backup();
    fixture.apply(&["web", "db"], 1_500_000);
    let large = fixture.backup();
    let chunked = fixture.state();
    let dry = |serial: i64| {
        let words = ["restore", &serial.to_string(), "terraformcluster/demo", "--dry-run", "-o", "json"];
        fixture.plugin(&words).codes()
    };
    let has = |codes: &[String], code: &str| codes.iter().any(|c| c == code);
    let image = |name: &str| fixture.patch(&serde_json::json!({"spec": {"source": {"image": name}}}));
    assert!(has(&dry(small), "restore-too-large-if-opentofu"), "{:?}", dry(small));
    image("registry.test/terraform:1");
    assert!(has(&dry(small), "restore-ready"), "{:?}", dry(small));
    image("registry.test/opentofu:1");
    assert!(has(&dry(small), "restore-too-large-for-opentofu"), "{:?}", dry(small));

    let tofu = Runtime::tofu().object(&namespace, "TerraformCluster", "demo");
    tofu.root(&serde_json::json!({}));
    // The first chunk alone is no whole gzip stream.
    let over_chunks = tofu.try_init();
    let said = String::from_utf8_lossy(&over_chunks.stderr).into_owned();
    assert!(!over_chunks.status.success() && said.contains("Error loading state"), "{said}");
    // A large state over none in chunks.
    for secret in fixture.state_secrets().iter().skip(1) {
        ground.delete("Secret", &fixture.namespace, secret["metadata"]["name"].as_str().expect("a name"));
    }
    ground.delete("Secret", &fixture.namespace, &fixture.workspace.secret());
    tofu.init();
    std::fs::write(tofu.folder().join("push.tfstate"), chunked.to_string()).expect("write the state to push");
    let too_large = tofu.run(&["state", "push", "-force", "push.tfstate"]);
    let said = String::from_utf8_lossy(&too_large.stderr).into_owned();
    assert!(!too_large.status.success() && said.contains("Too long") && said.contains("1048576"), "{said}");
    assert!(has(&dry(large), "restore-too-large-for-opentofu"), "{:?}", dry(large));
}
