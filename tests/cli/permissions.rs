//! Roles in `deploy/rbac` are what the binary prints, and help says what each command does, shows and needs.

use clap::{Command, CommandFactory};
use kubectl_captf::cli::app::Cli;

use super::run::{root, run, shown};

const HEADER: &str = "# Made from the table of src/cli/permissions/table.rs by `kubectl captf permissions --role";

/// With `UPDATE_RBAC=1` the files are written instead.
#[test]
fn the_roles_in_deploy_are_those_of_the_table() {
    for role in ["viewer", "operator", "unlocker"] {
        let output = run(&format!("permissions --role {role}"));
        assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
        let made = format!("{HEADER} {role}`.\n{}", String::from_utf8_lossy(&output.stdout));
        let file = root().join(format!("deploy/rbac/{role}.yaml"));
        if std::env::var_os("UPDATE_RBAC").is_some() {
            std::fs::write(&file, &made).expect("write the role");
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(kept == made, "{}: run `UPDATE_RBAC=1 cargo test --test cli permissions`", file.display());
    }
}

#[test]
fn a_role_is_printed_for_a_command_and_for_a_group() {
    let role = |line: &str| -> serde_json::Value {
        serde_json::from_slice(&run(&format!("permissions {line} -o json")).stdout).expect("JSON")
    };
    let one = role("lock history -n team-a");
    assert_eq!(one["items"][0]["metadata"]["namespace"], "team-a", "{one}");
    assert_eq!(one["items"][1]["kind"], "ClusterRole", "{one}");
    assert!(!one.to_string().contains("secrets"), "`lock history` reads no Secret: {one}");
    let group = role("lock -A");
    assert_eq!((&group["kind"], &group["metadata"]["name"]), (&"ClusterRole".into(), &"captf-lock".into()), "{group}");
    assert!(shown(&run("permissions lock inspec")).contains("did you mean `lock inspect`"));
    assert_eq!(run("permissions nonsense").status.code(), Some(2));
    assert_eq!(run("permissions check --from testdata/lock/free").status.code(), Some(2));
}

fn runnable(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
    for next in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let path = format!("{path} {}", next.get_name()).trim().to_string();
        if !next.is_subcommand_required_set() {
            all.push((path.clone(), next.clone()));
        }
        runnable(next, &path, all);
    }
}

#[test]
fn help_begins_with_what_a_command_does_and_has_examples_and_permissions() {
    let mut all = Vec::new();
    runnable(&Cli::command(), "", &mut all);
    assert!(all.len() > 8, "{}", all.len());
    for (path, command) in all {
        let long = command.get_long_about().map(ToString::to_string).unwrap_or_default();
        let body = long.split_once("\n\n").map_or("", |(_, body)| body);
        let does = ["Reads only", "Reads nothing", "Changes", "Needs no cluster"];
        assert!(does.iter().any(|d| body.starts_with(d)), "`{path}` --help must begin with what it does: {body:?}");
        assert!(long.contains("Needs"), "`{path}` --help lists no permissions");
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = after.lines().filter(|l| l.trim_start().starts_with("kubectl captf")).count();
        assert!(after.starts_with("Examples:") && examples >= 2, "`{path}` --help has {examples} examples");
    }
}
