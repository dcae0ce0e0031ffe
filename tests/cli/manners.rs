//! Manners of a command: help, pipes, colour, streams.

use std::process::{Command, Stdio};

use super::run::{binary, run, shown};

fn fleet() -> assert_cmd::Command {
    let mut command = binary();
    command.args(["lock", "inspect", "--from", "testdata/lock/fleet"]);
    command
}

#[test]
fn help_says_kubectl_captf_and_the_exit_codes_and_needs_no_cluster() {
    for line in [
        "--help",
        "lock --help",
        "lock inspect --help",
        "lock list --help",
        "lock history --help",
        "backups --help",
        "backups list --help",
        "backups verify --help",
        "backups diff --help",
        "backups save --help",
        "restore --help",
        "restore status --help",
        "restore retry --help",
        "state inspect --help",
        "explain --help",
        "runbook --help",
        "version --help",
    ] {
        let output = run(line);
        let text = shown(&output);
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert!(text.contains("Usage: kubectl captf"), "{line}: {text}");
        assert!(!text.contains("kubectl-captf"), "{line}: {text}");
    }
    let top = shown(&run("--help"));
    assert!(top.contains("Exit codes:") && top.contains("Flags go after the plugin's name"), "{top}");
    assert!(shown(&run("lock inspect --help")).contains("Reads only"));
}

#[test]
fn colour_follows_the_flag_and_the_environment() {
    let coloured = |command: &mut assert_cmd::Command| {
        let output = command.output().expect("run");
        String::from_utf8(output.stdout).expect("UTF-8").contains('\u{1b}')
    };
    assert!(!coloured(&mut fleet()), "a pipe is not coloured");
    assert!(coloured(fleet().args(["--color", "always"])));
    assert!(!coloured(fleet().args(["--color", "never"]).env("CLICOLOR_FORCE", "1")));
    assert!(coloured(fleet().env("CLICOLOR_FORCE", "1")));
    assert!(!coloured(fleet().env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")), "NO_COLOR wins");
    assert!(!coloured(fleet().env("CLICOLOR_FORCE", "0")));
    let mut list = binary();
    list.args(["lock", "list", "--from", "testdata/lock/fleet", "--color", "always"]);
    assert!(coloured(&mut list));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    for line in [
        "lock inspect --from testdata/lock/fleet",
        "runbook show stale-lock",
        "--help",
        "lock list --all --from testdata/lock/fleet -o json",
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kubectl-captf"))
            .args(line.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert!(output.stderr.is_empty(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.code().is_some_and(|c| c != 101), "{line}: {:?}", output.status);
    }
}

#[test]
fn progress_and_logs_go_to_standard_error() {
    let output = run("lock inspect tfc/prod --from testdata/lock/free -v");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(text.starts_with("TerraformCluster team-a/prod"), "{text}");
}

#[test]
fn version_says_which_and_touches_no_cluster_with_client() {
    let output = run("version --client -o json");
    let view: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(view["clientVersion"]["version"], concat!("v", env!("CARGO_PKG_VERSION")));
    assert_eq!(run("version --client").status.code(), Some(0));
    assert_eq!(run("version").status.code(), Some(1), "no kubeconfig");
}
