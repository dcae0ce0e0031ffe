//! Where the credentials of an unlock go, and where they never go.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

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

/// A file of a tar, as text.
pub fn in_archive(tar: &[u8], path: &str) -> String {
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries().expect("a tar") {
        let mut entry = entry.expect("an entry");
        if entry.path().expect("a path").to_string_lossy() == path {
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("a text");
            return text;
        }
    }
    panic!("no {path} in the tar")
}

/// What a token says of itself.
pub fn claims_of(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("a token").replace('-', "+").replace('_', "/");
    let padded = format!("{part}{}", "=".repeat((4 - part.len() % 4) % 4));
    let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(padded)).expect("base64");
    serde_json::from_slice(&bytes.0).expect("JSON")
}

/// Everything that a tar holds, as one text.
fn whole(tar: &[u8]) -> String {
    String::from_utf8_lossy(tar).into_owned()
}

/// A kubeconfig with the given user in the chosen context, and a second context whose credentials are a canary.
fn two_contexts(folder: &std::path::Path, user: &Value) -> PathBuf {
    let ground = ground();
    let other = "CANARY-OTHER-CONTEXT";
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "other",
        "clusters": [{"name": "c", "cluster": {"server": ground.server, "certificate-authority": ground.ca}},
            {"name": "other", "cluster": {"server": "https://other.example.com"}}],
        "users": [{"name": "me", "user": user}, {"name": "other", "user": {"token": other}}],
        "contexts": [{"name": "mine", "context": {"cluster": "c", "user": "me"}},
            {"name": "other", "context": {"cluster": "other", "user": "other"}}],
    });
    let file = folder.join("kubeconfig");
    std::fs::write(&file, config.to_string()).expect("write a kubeconfig");
    file
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn the_callers_own_static_credentials_go_in_and_nothing_else_of_the_kubeconfig() {
    let (ground, all) = (ground(), engines());
    let folder = tempfile::tempdir().expect("a folder");
    let admin = std::fs::read_to_string(&ground.kubeconfig).expect("a kubeconfig");
    let admin: Value = serde_saphyr::from_str(&admin).expect("YAML");
    let admin = &admin["users"][0]["user"];
    let data = |key: &str| admin[key].as_str().expect("base64").to_string();
    let pem = |key: &str| {
        let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(data(key))).expect("base64");
        bytes.0
    };
    for (name, key) in [("tls.crt", "client-certificate-data"), ("tls.key", "client-key-data")] {
        std::fs::write(folder.path().join(name), pem(key)).expect("write");
    }
    let scene = Scene::new(&all.docker, terraform_nonroot());
    let token = std::fs::read_to_string(ground.token_kubeconfig(scene.name(), "operator")).expect("a kubeconfig");
    let token: Value = serde_json::from_str(&token).expect("JSON");
    let token = token["users"][0]["user"]["token"].as_str().expect("a token").to_string();
    let files =
        json!({"client-certificate": folder.path().join("tls.crt"), "client-key": folder.path().join("tls.key")});
    let data =
        json!({"client-certificate-data": data("client-certificate-data"), "client-key-data": data("client-key-data")});
    let key = String::from_utf8(pem("client-key-data")).expect("PEM");
    let mut id = scene.id.clone();
    for (user, file, secret) in [
        (data, "unlock/client.key", &key),
        (files, "unlock/client.key", &key),
        (json!({"token": token}), "unlock/token", &token),
    ] {
        let kubeconfig = two_contexts(folder.path(), &user);
        let mut command = captf(ground);
        command.env("KUBECONFIG", &kubeconfig).args(["lock", "force-unlock", "tfc/prod", "-n", scene.name()]);
        command.args(["--context", "mine", "--engine", &scene.engine.url, "--credentials", "caller", "--lock-id", &id]);
        command.args(["--holder", &who(), "--holder-is-dead", "--reason", "r"]);
        let seen = scene.engine.requests().len();
        let output = run(&mut command);
        let words = exits(&output, 0, &["info[unlock-done]", "you, with the static credentials"]);
        assert!(!words.contains(secret.trim()), "the credential is in: {words}");
        let sent = scene.engine.requests().split_off(seen);
        let archive = sent.iter().find(|r| r.is("PUT", "/archive")).expect("files");
        assert_eq!(in_archive(&archive.body, file).trim(), secret.trim());
        let inside = whole(&archive.body);
        assert!(!inside.contains("CANARY") && !inside.contains("other.example.com"), "another context went in");
        for request in sent.iter().filter(|r| !r.is("PUT", "/archive")) {
            assert!(!whole(&request.body).contains(secret.lines().nth(1).unwrap_or(secret)), "{}", request.path);
        }
        assert!(!scene.server.requests().iter().any(|r| r.path.ends_with("/token")), "a token was asked for");
        assert_eq!(scene.left(&all.docker), Vec::<String>::new());
        id = scene.workspace.apply_and_kill(HOST);
    }
    assert!(scene.workspace.holder().is_some());
    // What only works on this machine never goes in, and nobody is asked anything.
    let helper = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh",
        "args": ["-c", "echo CANARY-HELPER"], "interactiveMode": "Never"}});
    let oidc =
        json!({"auth-provider": {"name": "oidc", "config": {"id-token": "CANARY-ID", "refresh-token": "CANARY-R"}}});
    let half = json!({"client-certificate": folder.path().join("tls.crt")});
    for (user, why) in [(helper, "helper program"), (oidc, "helper program"), (half, "neither a static token nor")] {
        let kubeconfig = two_contexts(folder.path(), &user);
        let mut command = captf(ground);
        command.env("KUBECONFIG", &kubeconfig).args(["lock", "force-unlock", "tfc/prod", "-n", scene.name()]);
        command.args(["--context", "mine", "--engine", &scene.engine.url, "--credentials", "caller", "--lock-id", &id]);
        command.args(["--holder", &who(), "--holder-is-dead", "--reason", "r"]);
        let seen = scene.engine.requests().len();
        exits(&run(&mut command), 1, &[why, "leave out `--credentials`"]);
        assert_eq!(scene.engine.requests().len(), seen, "the engine was asked for something");
    }
    assert_eq!(scene.workspace.holder(), Some(id));
    assert_eq!(scene.claim_lease(), None);
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn a_token_is_asked_for_after_the_pull_and_has_to_outlive_the_run() {
    let all = engines();
    let image = all.copy(terraform_nonroot(), "team/slow", None);
    let scene = Scene::new(&all.docker, &image);
    let asked = |r: &Request| r.is("POST", "/serviceaccounts/");
    // A token that is about to end: nothing is started with it.
    let gate = scene.server.at(Act::Change(ends_soon), asked);
    let pull = scene.engine.at(Act::Hold, |r| r.is("POST", "/images/create"));
    let child = scene.start(&[]);
    pull.reached();
    assert_eq!(gate.seen(), 0, "a token was asked for before the pull");
    thread::sleep(std::time::Duration::from_secs(1));
    let pulled = std::time::Instant::now();
    pull.open();
    let output = end_of(child);
    exits(&output, 1, &["the token ends too soon; the lock was not touched", "clock"]);
    let token = scene.server.requests().into_iter().find(|r| asked(r)).expect("a token");
    assert!(token.at > pulled, "a token was asked for before the pull was done");
    assert!(!scene.engine.requests().iter().any(|r| r.is("POST", "/start")), "something was started");
    assert!(scene.held());
    assert_eq!(scene.left(&all.docker), Vec::<String>::new());
    // The next one lives long enough; the image is there, so nothing is pulled again.
    exits(&run(&mut scene.command(&[])), 0, &["info[unlock-done]"]);
    assert_eq!(scene.engine.requests().iter().filter(|r| r.is("POST", "/images/create")).count(), 1);
}

fn ends_soon(answer: &mut Value) {
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(30);
    answer["status"]["expirationTimestamp"] = json!(soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
}

/// A kubeconfig of a person with the shipped ClusterRole for the whole cluster.
fn unlocker_everywhere(scene: &Scene) -> PathBuf {
    let (ground, name) = (ground(), format!("{}-person", scene.name()));
    ground.apply(include_str!("../../../deploy/rbac/unlocker.yaml"));
    let metadata = json!({"name": name, "namespace": scene.name()});
    ground.apply_value(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}));
    ground.apply_value(json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "captf-unlocker"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": scene.name()}],
    }));
    scene.server.kubeconfig(&ground.token_kubeconfig(scene.name(), &name))
}

#[test]
#[ignore = "needs the test ground and root for Docker and Podman (make test)"]
fn the_shipped_roles_are_enough_from_end_to_end() {
    let all = engines();
    for (engine, everywhere) in [(&all.docker, false), (&all.podman, true)] {
        let mut scene = Scene::new(engine, terraform_nonroot());
        if everywhere {
            scene.kubeconfig = unlocker_everywhere(&scene);
        }
        let needles = ["info[unlock-done]", "Event UnlockedByHand", "captf-unlocker"];
        let words = exits(&run(&mut scene.command(&[])), 0, &needles);
        assert!(!words.contains("not created"), "{words}");
        // With a Role, pods of other namespaces are not theirs to see, and it is said.
        assert_eq!(words.contains("not read  Pods in all namespaces"), !everywhere, "{words}");
        assert!(!everywhere || !words.contains("not read"), "{words}");
        let events = ground().list("Event", scene.name(), "");
        let event = events.iter().find(|e| e["reason"] == "UnlockedByHand").expect("an Event");
        let message = event["message"].as_str().expect("a message");
        assert!(message.contains(&format!("system:serviceaccount:{}:", scene.name())), "{message}");
        assert_eq!(scene.workspace.holder(), None);
        assert_eq!(scene.left(engine), Vec::<String>::new());
    }
}
