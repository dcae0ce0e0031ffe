//! A foreign lock, released with the pinned binary, and what is left behind.

use super::*;

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
#[ignore = "needs the test ground and root for Podman (make test)"]
fn a_foreign_lock_is_cleared_on_a_rootless_podman() {
    cleared(&engines().rootless, &Runtime::terraform(), terraform_nonroot());
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_foreign_lock_is_cleared_by_opentofu() {
    cleared(&engines().docker, &Runtime::tofu(), tofu_image());
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
