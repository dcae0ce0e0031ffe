//! Engines and images that are not there, go away or stand still.

use super::*;

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
#[ignore = "needs the test ground and root for Docker (make test)"]
fn an_engine_behind_tls_is_verified_and_verifies_us() {
    let (ground, all) = (ground(), engines());
    let namespace = ground.namespace("unlock");
    let name = namespace.name();
    object(ground, name, terraform_image());
    unlocker(ground, name);
    let (workspace, id) = foreign(&namespace, &Runtime::terraform());
    let call = Call { namespace: name, engine: "", id: &id, more: &[] };
    let with = |folder: &std::path::Path| {
        let mut command = unlock(ground, &call);
        command.env("DOCKER_HOST", &all.tls).env("DOCKER_TLS_VERIFY", "1").env("DOCKER_CERT_PATH", folder);
        command
    };
    // No certificates, and those of an authority that signed nothing here.
    let folder = tempfile::tempdir().expect("a folder");
    exits(&run(&mut with(folder.path())), 1, &[&all.tls, "DOCKER_HOST", "key.pem"]);
    let certs = all.dir.join("certs");
    for file in ["key.pem", "cert.pem"] {
        std::fs::copy(certs.join(file), folder.path().join(file)).expect("copy");
    }
    let other = rcgen::generate_simple_self_signed(vec!["other".to_string()]).expect("a certificate");
    std::fs::write(folder.path().join("ca.pem"), other.cert.pem()).expect("write");
    exits(&run(&mut with(folder.path())), 1, &[&all.tls, "certificate"]);
    let mut plain = unlock(ground, &call);
    plain.env("DOCKER_HOST", &all.tls).env_remove("DOCKER_TLS_VERIFY");
    exits(&run(&mut plain), 1, &[&all.tls]);
    assert_eq!(workspace.holder().as_deref(), Some(id.as_str()));
    exits(&run(&mut with(&certs)), 0, &["info[unlock-done]"]);
    assert_eq!(workspace.holder(), None);
    assert_eq!(all.ours(&all.docker, name), Vec::<String>::new());
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
    let output = end_of(child);
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
    let output = end_of(child);
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
fn a_daemon_that_is_killed_is_named_and_the_next_run_goes_on_from_there() {
    let own = Engines::start();
    let image = own.image(&Runtime::terraform(), "team/terraform", "");
    let scene = Scene::new(&own.docker, &image);
    let left = || own.ours(&own.docker, scene.name());
    // Between the two commands: init is done, and the second container cannot be made any more.
    let gate = scene.engine.after(1, Act::Hold, |r| r.is("POST", "/containers/create"));
    let child = scene.start(&[]);
    gate.reached();
    assert_eq!(left().len(), 2, "the container of init and the volume");
    own.kill_docker();
    gate.open();
    let output = end_of(child);
    let gone = "the container engine went away";
    exits(
        &output,
        1,
        &[gone, "create the container of force-unlock", "the lock was not touched", "the next force-unlock removes it"],
    );
    assert!(scene.held());
    assert_eq!(scene.claim_lease(), None, "the claim stays");
    own.restart_docker();
    assert_eq!(left().len(), 2, "what the daemon kept");
    // While init runs.
    let gate = scene.server.at(Act::Hold, |r| r.of_the_runtime() && r.is("GET", "/secrets"));
    let child = scene.start(&[]);
    gate.reached();
    own.kill_docker();
    let output = end_of(child);
    gate.cut();
    exits(&output, 1, &["Removed what an earlier run left", gone, "the lock was not touched"]);
    assert!(scene.held());
    assert_eq!(scene.claim_lease(), None, "the claim stays");
    // A dead engine is said before anybody is asked.
    exits(&run(&mut scene.command(&[])), 1, &["does not answer", "--method lease"]);
    own.restart_docker();
    exits(&run(&mut scene.command(&[])), 0, &["Removed what an earlier run left", "info[unlock-done]"]);
    assert_eq!(left(), Vec::<String>::new());
    assert_eq!(scene.workspace.holder(), None);
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn how_a_container_reaches_a_loopback_server_follows_from_what_the_engine_says() {
    let scene = Scene::new(&engines().docker, terraform_image());
    // The host of a rootless Docker is not this machine: said before anything is claimed or asked for.
    scene.engine.at(Act::Change(|info| info["SecurityOptions"] = json!(["name=rootless"])), |r| r.is("GET", "/info"));
    let needles = ["a rootless Docker does not reach", "--method job", "--method lease"];
    let words = exits(&run(&mut scene.command(&[])), 1, &needles);
    assert!(!words.contains("will run"), "it was asked for all the same: {words}");
    assert!(!scene.server.requests().iter().any(|r| r.path.contains("/leases/captf-claim-") && r.method == "POST"));
    // In a virtual machine the host has another name, and its certificate is checked for the name that kubectl checks.
    scene.engine.at(Act::Change(|info| info["OperatingSystem"] = json!("Docker Desktop")), |r| r.is("GET", "/info"));
    exits(&run(&mut scene.command(&[])), 1, &["init ended with", "host.docker.internal", "the lock was not touched"]);
    let requests = scene.engine.requests();
    let files = requests.iter().find(|r| r.is("PUT", "/archive")).expect("files");
    let kubeconfig = credentials::in_archive(&files.body, "unlock/kubeconfig");
    let kubeconfig: Value = serde_json::from_str(&kubeconfig).expect("JSON");
    let cluster = &kubeconfig["clusters"][0]["cluster"];
    let port = scene.server.url.rsplit_once(':').expect("a port").1;
    assert_eq!(cluster["server"], format!("https://host.docker.internal:{port}"));
    assert_eq!(cluster["tls-server-name"], "127.0.0.1");
    let made = requests.iter().find(|r| r.is("POST", "/containers/create")).expect("a container");
    let made: Value = serde_json::from_slice(&made.body).expect("JSON");
    assert!(made["HostConfig"]["NetworkMode"].is_null(), "{made}");
    assert!(scene.held());
}
