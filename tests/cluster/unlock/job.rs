//! The unlock as a Job of the cluster.

use super::*;

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
