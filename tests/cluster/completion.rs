//! TAB in real shells on a pseudo-terminal, through the real kubectl, against a real API server.

use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::ground::{Namespace, ground};
use crate::objects::{ago, cluster, job, lock, machine};
use crate::plugin::run;

const ID: &str = "00000001-0000-4000-8000-000000000001";
const JOB: &str = "captf-m-web-07-apply-a1-5e1f00";
const SERIAL: &str = "47115533";
const CANARY: &str = "CANARY-81c2-never-completed";

/// A folder for PATH with kubectl, the plugin and the script that `completion kubectl` prints.
fn bin(ns: &Namespace<'_>) -> PathBuf {
    let dir = ns.ground().dir.join(format!("bin-{}", ns.name()));
    std::fs::create_dir_all(&dir).expect("create a folder");
    symlink(&ns.ground().kubectl, dir.join("kubectl")).expect("link kubectl");
    symlink(env!("CARGO_BIN_EXE_kubectl-captf"), dir.join("kubectl-captf")).expect("link the plugin");
    let script = run(ns.ground(), &ns.ground().kubeconfig, &["captf", "completion", "kubectl"]);
    assert_eq!(script.code, Some(0), "{script:?}");
    let file = dir.join("kubectl_complete-captf");
    std::fs::write(&file, script.stdout).expect("write the script");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("make it executable");
    dir
}

/// What the shell shows after these keys.
fn press(ns: &Namespace<'_>, bin: &Path, shell: &str, setup: &str, typed: &str) -> String {
    let file = bin.join(format!("setup.{shell}"));
    std::fs::write(&file, setup).expect("write the setup");
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/completion/press.py"))
        .args([shell, &file.display().to_string(), typed])
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("HOME", &ns.ground().dir)
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .env("KUBECONFIG", &ns.ground().kubeconfig)
        .output()
        .expect("run press.py");
    assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn fleet(stem: &str) -> Namespace<'static> {
    let ns = ground().namespace(stem);
    cluster(&ns, "prod");
    machine(&ns, "web-07", "prod");
    machine(&ns, "database", "prod");
    lock(&ns, "TerraformMachine", "web-07", ID, "root@desktop-1");
    let owner = ns.ground().get("TerraformMachine", ns.name(), "web-07");
    job(&ns, &owner, JOB, "apply", true);
    for (serial, taken) in [(SERIAL, 3600), ("47000001", 7200)] {
        backup(&ns, serial, taken);
    }
    ns
}

/// A backup with something in it that no completion may read.
fn backup(ns: &Namespace<'_>, serial: &str, taken: i64) {
    let suffix = crate::ground::runtime::suffix(ns.name(), "TerraformMachine", "web-07");
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"tfstate": CANARY},
        "metadata": {"name": format!("captf-state-backup-{suffix}-{serial}"), "namespace": ns.name(),
            "labels": {"captf.io/state-backup": "true", "captf.io/state-backup-suffix": suffix},
            "annotations": {"captf.io/state-backup-serial": serial, "captf.io/state-backup-taken-at": ago(taken)}}}));
}

/// What must happen in every shell, by the keys typed; `KUBECTL` is `kubectl captf` or `kubectl-captf`.
fn expectations(ns: &str, command: &str) -> Vec<(String, String)> {
    let mut all = vec![
        (format!("{command} lock insp<TAB>"), "inspect".to_string()),
        (format!("{command} -n {ns} lock inspect terraformmachine/we<TAB>"), "web-07".to_string()),
        (format!("{command} lock inspect -n {ns} tfm data<TAB>"), "database".to_string()),
        (format!("{command} lock inspect -n {ns} 0000<TAB>"), ID.to_string()),
        (format!("{command} backups verify -n {ns} tfm/web-07 471<TAB>"), SERIAL.to_string()),
        (format!("{command} lock list --outp<TAB>"), "--output".to_string()),
        (format!("{command} explain lock-sta<TAB>"), "lock-stale".to_string()),
        (format!("{command} lock list --context test<TAB>"), "testground".to_string()),
        (format!("{command} lock list -n {}<TAB>", &ns[..ns.len() - 2]), ns.to_string()),
    ];
    // Other shells take what they are given in the same way; a press of a key is slow in them.
    if ns.starts_with("bash") {
        all.push((format!("{command} backups diff -n {ns} tfm web-07 {SERIAL} 470<TAB>"), "47000001".to_string()));
        all.push((format!("{command} jobs logs -n {ns} tfm/web-07 --job captf<TAB>"), JOB.to_string()));
    }
    all
}

fn check(ns: &Namespace<'_>, shell: &str, setup: &str, command: &str) {
    let bin = bin(ns);
    for (typed, expected) in expectations(ns.name(), command) {
        let shown = press(ns, &bin, shell, setup, &typed);
        // What was typed is echoed, and painted again by some shells; only what came to it counts.
        let typed = typed.trim_end_matches("<TAB>");
        let rest = shown.replace(typed, "");
        let word = typed.rsplit(' ').next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let wanted = expected.strip_prefix(word).unwrap_or(&expected);
        assert!(!wanted.is_empty() && rest.contains(wanted), "{shell}: `{typed}` TAB shows {shown:?}");
    }
    std::fs::remove_dir_all(&bin).expect("remove the folder");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn bash_completes_through_kubectl() {
    let setup = "source /usr/share/bash-completion/bash_completion\nsource <(kubectl completion bash)\n";
    check(&fleet("bash"), "bash", setup, "kubectl captf");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn bash_completes_the_bare_plugin() {
    check(&fleet("bare"), "bash", "source <(kubectl-captf completion bash)\n", "kubectl-captf");
}

#[test]
#[ignore = "needs the test ground (make test) and zsh and fish (apt-get install zsh fish)"]
fn zsh_and_fish_complete() {
    let kubectl_zsh = "autoload -Uz compinit; compinit -u\nsource <(kubectl completion zsh)\n";
    for (shell, setup, command) in [
        ("zsh", kubectl_zsh, "kubectl captf"),
        ("zsh", "autoload -Uz compinit; compinit -u\nsource <(kubectl-captf completion zsh)\n", "kubectl-captf"),
        ("fish", "kubectl completion fish | source\n", "kubectl captf"),
        ("fish", "kubectl-captf completion fish | source\n", "kubectl-captf"),
    ] {
        assert!(installed(shell), "{shell} is not installed (on Debian: apt-get install {shell})");
        // A stem of its own for each, so that one namespace only has the beginning that is typed.
        check(&fleet(&format!("{shell}{}", command.replace(' ', ""))), shell, setup, command);
    }
}

fn complete(kubeconfig: &Path, words: &[&str]) -> (String, String, Duration) {
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_kubectl-captf"))
        .arg("__complete")
        .args(words)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null())
        .output()
        .expect("run the plugin");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(output.status.code(), Some(0));
    (text(&output.stdout), text(&output.stderr), start.elapsed())
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn completion_is_silent_and_quick_when_the_cluster_does_not_answer() {
    let dir = tempfile::tempdir().expect("a folder");
    // A server that takes connections and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("listen");
    let address = silent.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in silent.incoming().flatten() {
            let mut peek = [0u8; 1];
            kept.push(stream.try_clone().expect("a stream"));
            std::thread::spawn(move || (&stream).read(&mut peek).map(|_| ()));
        }
    });
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port");
    for server in [
        format!("https://{address}"),
        format!("http://{address}"),
        format!("http://{closed}"),
        "https://192.0.2.1".to_string(),
    ] {
        let file = dir.path().join("config");
        std::fs::write(&file, format!("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\nclusters: [{{name: x, cluster: {{server: '{server}'}}}}]\nusers: [{{name: x, user: {{token: t}}}}]\n")).expect("write");
        for words in [
            &["lock", "inspect", "tfm/"][..],
            &["backups", "verify", "tfm/web", ""],
            &["jobs", "logs", "machine/web", "--job", ""],
        ] {
            let (out, err, took) = complete(&file, words);
            assert_eq!((out.as_str(), err.as_str()), (":4\n", ""), "{server} {words:?}");
            assert!(took < Duration::from_secs(2), "{server} {words:?}: {took:?}");
        }
    }
    let (out, err, _) = complete(Path::new("/nonexistent"), &["lock", "inspect", "tfm/"]);
    assert_eq!((out.as_str(), err.as_str()), (":4\n", ""));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn every_live_source_offers_what_is_there_with_its_age() {
    let ns = fleet("sources");
    let kubeconfig = &ns.ground().kubeconfig;
    for (words, expected) in [
        (
            &["backups", "verify", "tfm/web-07", ""][..],
            vec![format!("{SERIAL}\ttaken 1h ago"), "47000001\ttaken 2h ago".to_string()],
        ),
        (&["backups", "diff", "tfm/web-07", SERIAL, "470"], vec!["47000001\ttaken 2h ago".to_string()]),
        (&["backups", "save", "tfm", "web-07", "471"], vec![format!("{SERIAL}\ttaken 1h ago")]),
        (&["restore", "retry", "tfm/web-07", "--serial", ""], vec![format!("{SERIAL}\ttaken 1h ago")]),
        (&["jobs", "logs", "tfm/web-07", "--job="], vec![format!("{JOB}\tcreated ")]),
        (
            &["lock", "force-unlock", "tfm/web-07", "--lock-id", ""],
            vec![format!("{ID}\tlock in {}, root@desktop-1", ns.name())],
        ),
        (&["lock", "inspect", "000"], vec![format!("{ID}\tlock in {}", ns.name())]),
        (&["state", "inspect", "tfm/"], vec!["tfm/web-07\tin ".to_string(), "tfm/database\tin ".to_string()]),
        (&["explain", "backup-ver"], vec!["backup-verified\t".to_string()]),
        (&["lock", "list", "--context", ""], vec!["testground".to_string()]),
        (&["lock", "list", "-n", "sources"], vec![format!("{}\tcreated", ns.name())]),
    ] {
        let (out, err, took) = complete(kubeconfig, &[&["-n", ns.name()][..], words].concat());
        assert!(expected.iter().all(|e| out.contains(e)), "{words:?}: {out}");
        assert!(
            err.is_empty() && !out.contains("CANARY") && took < Duration::from_secs(2),
            "{words:?}: {took:?} {err}"
        );
    }
    // Without a right there is nothing, and no word about it.
    let nobody = ns.ground().service_account_kubeconfig(ns.name(), "nobody", &json!([]));
    for words in
        [&["backups", "verify", "tfm/web-07", ""][..], &["lock", "inspect", "tfm/"], &["lock", "list", "-n", "s"]]
    {
        let (out, err, _) = complete(&nobody, words);
        assert_eq!((out.as_str(), err.as_str()), (":4\n", ""), "{words:?}");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_login_program_is_never_started() {
    let ns = fleet("exec");
    let (whole, _, _) = complete(&ns.ground().kubeconfig, &["-n", ns.name(), "lock", "inspect", "tfm/"]);
    assert!(whole.contains("tfm/web-07\t") && whole.contains("tfm/database\t"), "{whole}");
    let dir = tempfile::tempdir().expect("a folder");
    let started = dir.path().join("started");
    let file = dir.path().join("config");
    let exec = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\nclusters: [{{name: x, cluster: {{server: '{}', insecure-skip-tls-verify: true}}}}]\nusers: [{{name: x, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: touch, args: ['{}'], interactiveMode: Never}}}}}}]\n",
        ns.ground().server,
        started.display()
    );
    std::fs::write(&file, exec).expect("write");
    let (out, err, _) = complete(&file, &["-n", ns.name(), "lock", "inspect", "tfm/"]);
    assert_eq!((out.as_str(), err.as_str(), started.exists()), (":4\n", "", false));
}
