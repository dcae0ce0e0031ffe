//! Bad input against a real server: names, namespaces, credentials, addresses.

use crate::ground::ground;
use crate::objects::{cluster, machine};
use crate::plugin::{captf, run};

#[test]
#[ignore = "needs the test ground (make test)"]
fn wrong_names_are_answered_with_the_close_ones() {
    let ns = ground().namespace("names");
    cluster(&ns, "prod");
    machine(&ns, "web-1", "prod");
    for (line, code, words) in [
        ("lock inspect tfc/prdo", 1, "did you mean `prod`?"),
        ("lock inspect terraformclustr/prod", 2, "did you mean `terraformcluster`?"),
        ("lock inspect machine/web-1", 1, "Machine `web-1` not found"),
        ("lock inspect 00000009-0000-4000-8000-000000000001", 1, "no lock in"),
        ("lock inspect tfm/zzz", 1, "lists what is there"),
        ("lock history", 2, "required"),
    ] {
        let answer = captf(&ns, line);
        assert_eq!(answer.code, Some(code), "{line}: {answer:?}");
        assert!(answer.stderr.contains(words), "{line}: {answer:?}");
        assert_eq!(answer.stdout, "", "{line}");
    }
    let other = run(ns.ground(), &ns.ground().kubeconfig, &["captf", "lock", "inspect", "-n", "no-such-namespace"]);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.stderr.contains("namespace `no-such-namespace` does not exist"), "{other:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn an_empty_namespace_is_said_to_be_empty() {
    let ns = ground().namespace("empty");
    for line in ["lock inspect", "lock list"] {
        let answer = captf(&ns, line);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), ""), "{line}: {answer:?}");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn connections_that_cannot_work_are_one_line_with_a_hint() {
    let ns = ground().namespace("connect");
    let config = ns.ground().kubeconfig.clone();
    let server = ns.ground().server.clone();
    let ca = ns.ground().ca.display().to_string();
    for (words, expected) in [
        (vec!["--server", "https://127.0.0.1:1"], "the read failed at https://127.0.0.1:1"),
        (
            vec!["--server", &server, "--certificate-authority", &ca, "--token", "expired"],
            "does not accept the credentials",
        ),
        (vec!["--context", "nowhere"], "context `nowhere` does not exist"),
        (vec!["--kubeconfig", "/nonexistent/config"], "kubeconfig /nonexistent/config"),
        (vec!["--user", "nobody"], "user `nobody` does not exist"),
        (vec!["--tls-server-name", "wrong.example.com"], "the read failed"),
    ] {
        let line = [&["captf", "lock", "inspect", "tfc/prod", "-n", ns.name()], words.as_slice()].concat();
        let answer = run(ns.ground(), &config, &line);
        assert_eq!(answer.code, Some(1), "{words:?}: {answer:?}");
        assert!(answer.stderr.contains(expected), "{words:?}: {answer:?}");
        assert!(answer.stderr.contains("hint: ") || words[0] == "--tls-server-name", "{words:?}: {answer:?}");
        assert!(!answer.stderr.contains("expired") || words[0] == "--server", "{answer:?}");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn kubectls_own_flags_choose_the_connection() {
    let ns = ground().namespace("flags");
    cluster(&ns, "prod");
    let token = ns.ground().service_account_kubeconfig(
        ns.name(),
        "viewer",
        &serde_json::json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]),
    );
    let config = std::fs::read_to_string(&token).expect("a kubeconfig");
    let bearer = config
        .split("token")
        .nth(1)
        .and_then(|t| t.split(['"', '\n', ',', ' ', ':']).find(|w| w.len() > 40))
        .expect("a token")
        .to_string();
    let server = ns.ground().server.clone();
    let ca = ns.ground().ca.display().to_string();
    let empty = ns.ground().dir.join("empty-kubeconfig");
    std::fs::write(&empty, "").expect("write a file");
    let line = [
        "captf",
        "lock",
        "inspect",
        "tfc/prod",
        "-n",
        ns.name(),
        "--server",
        &server,
        "--certificate-authority",
        &ca,
        "--token",
        &bearer,
    ];
    let answer = run(ns.ground(), &empty, &line);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(!answer.stdout.contains(&bearer) && !answer.stderr.contains(&bearer), "the token is never printed");
    assert!(
        answer.stdout.contains(&format!("--server {server}")),
        "printed commands repeat the connection: {answer:?}"
    );
    let insecure = [
        "captf",
        "lock",
        "inspect",
        "tfc/prod",
        "-n",
        ns.name(),
        "--server",
        &server,
        "--insecure-skip-tls-verify",
        "--token",
        &bearer,
    ];
    assert_eq!(run(ns.ground(), &empty, &insecure).code, Some(0));
    let group =
        ["captf", "lock", "inspect", "tfc/prod", "-n", ns.name(), "--as", "somebody", "--as-group", "system:masters"];
    assert_eq!(run(ns.ground(), &ns.ground().kubeconfig, &group).code, Some(0));
    let somebody = ["captf", "lock", "inspect", "tfc/prod", "-n", ns.name(), "--as", "somebody"];
    let refused = run(ns.ground(), &ns.ground().kubeconfig, &somebody);
    assert!(refused.code == Some(1) && refused.stderr.contains("somebody"), "{refused:?}");
}
