//! `jobs logs` through the API server's own log path, with a kubelet behind it: parts of a log, followed logs, pods
//! that have not started, are replaced or whose stream is cut.

use std::io::{BufRead, BufReader};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::ground::{Namespace, ground};
use crate::jobs::{IMAGE, failed, job_name, labels, machine, pod, running, terminated, waiting};
use crate::kubelet::{NODE, kubelet, statuses};
use crate::objects::{ago, cluster};
use crate::plugin::{captf, captf_as, kubectl};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

fn with_phase(phase: &str, mut statuses: Value) -> Value {
    statuses["phase"] = json!(phase);
    statuses
}

fn runs() -> Value {
    with_phase("Running", statuses(&json!({"running": {"startedAt": ago(1)}}), Some(&terminated(0, "Completed", ""))))
}

fn starts(reason: &str) -> Value {
    with_phase("Pending", statuses(&waiting(reason, ""), None))
}

fn ended(code: i64) -> Value {
    with_phase(if code == 0 { "Succeeded" } else { "Failed" }, statuses(&terminated(code, "Error", ""), None))
}

/// `kubectl captf jobs logs ... -f` as it runs.
struct Follower {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
}

impl Follower {
    fn start(ns: &Namespace<'_>, line: &str) -> Self {
        let mut child = kubectl(ns.ground(), &ns.ground().kubeconfig)
            .args(["captf", "jobs", "logs"])
            .args(line.split_whitespace())
            .args(["-f", "-n", ns.name()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start kubectl captf");
        let stdout = lines(child.stdout.take().expect("a pipe"));
        let stderr = lines(child.stderr.take().expect("a pipe"));
        Self { child, stdout, stderr }
    }

    /// The next line of the log, as soon as it is printed.
    #[track_caller]
    fn line(&self) -> String {
        self.stdout.recv_timeout(PATIENCE).expect("a line of the log")
    }

    /// Waits for a remark that contains a text.
    #[track_caller]
    fn says(&self, text: &str) -> String {
        let mut heard = Vec::new();
        loop {
            match self.stderr.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(text) => return line,
                Ok(line) => heard.push(line),
                Err(_) => panic!("`{text}` was not said, only {heard:?}"),
            }
        }
    }

    fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it ends")
    }
}

fn lines(pipe: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    receive
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_log_is_followed_from_before_its_pod_exists_to_its_end() {
    let ns = ground().namespace("follow");
    cluster(&ns, "prod");
    let (owner, job) = running(&ns, "web");
    let follower = Follower::start(&ns, "tfm/web");
    follower.says("waiting until its pod is created");
    let unscheduled = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]});
    let name = pod(&ns, &owner, &job, "", unscheduled);
    follower.says("Unschedulable");
    // A pod is bound once; here it is made anew on its node.
    ns.ground().delete("Pod", ns.name(), &name);
    pod(&ns, &owner, &job, NODE, starts("ImagePullBackOff"));
    follower.says("ImagePullBackOff");
    pod(&ns, &owner, &job, NODE, runs());
    follower.says(&format!("pod {name}, container source"));
    // Each line is printed before the next is written.
    for text in
        ["Initializing the backend...", "\u{1b}[1maws_instance.web: Creating...\u{1b}[0m", "db_password = \"canary-1\""]
    {
        kubelet().write(ns.name(), &name, "source", text);
        let line = follower.line();
        assert!(!line.contains("canary") && !line.contains('\u{1b}'), "{line}");
        assert_eq!(line.contains("****"), text.contains("canary"), "{line}");
    }
    pod(&ns, &owner, &job, NODE, ended(0));
    assert_eq!(follower.wait().code(), Some(0));
    let asked = kubelet().asked_about(ns.name(), &name);
    assert!(asked.iter().all(|a| a.contains("/source?") && a.contains("follow=true")), "{asked:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_pod_that_is_replaced_before_it_starts_is_followed_in_its_successor() {
    let ns = ground().namespace("replaced");
    cluster(&ns, "prod");
    let (owner, job) = running(&ns, "web");
    let first = pod(&ns, &owner, &job, NODE, starts("ContainerCreating"));
    let follower = Follower::start(&ns, "tfm/web");
    follower.says(&first);
    ns.ground().delete("Pod", ns.name(), &first);
    let second = format!("{job}-q9w8e");
    let mut marks = labels(&owner, "apply", 1);
    marks["batch.kubernetes.io/job-name"] = json!(job);
    ns.ground().apply_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": second, "namespace": ns.name(), "labels": marks},
        "spec": {"restartPolicy": "Never", "nodeName": NODE, "containers": [{"name": "source", "image": IMAGE}]}, "status": runs()}));
    kubelet().write(ns.name(), &second, "source", "from the second pod");
    assert_eq!(follower.line(), "from the second pod");
    ns.ground().patch("Pod", ns.name(), &second, Some("status"), &json!({"status": ended(1)}));
    assert_eq!(follower.wait().code(), Some(0));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_stream_that_is_cut_is_not_taken_for_the_end() {
    let ns = ground().namespace("cut");
    cluster(&ns, "prod");
    let (owner, job) = running(&ns, "web");
    let name = pod(&ns, &owner, &job, NODE, runs());
    kubelet().write(ns.name(), &name, "source", "one line");
    let follower = Follower::start(&ns, "tfm/web");
    assert_eq!(follower.line(), "one line");
    kubelet().cut(ns.name(), &name, "source");
    follower.says("ended although container `source` of pod");
    follower.says("--since");
    assert_eq!(follower.wait().code(), Some(1));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_job_that_ends_without_a_pod_ends_the_wait() {
    let ns = ground().namespace("podless");
    cluster(&ns, "prod");
    let (_, job) = running(&ns, "web");
    let follower = Follower::start(&ns, "tfm/web");
    follower.says("waiting until its pod is created");
    let at = |kind: &str| json!({"type": kind, "status": "True", "reason": "DeadlineExceeded", "message": "", "lastTransitionTime": ago(1), "lastProbeTime": ago(1)});
    let over = json!({"status": {"failed": 1, "active": 0, "conditions": [at("FailureTarget"), at("Failed")]}});
    ns.ground().patch("Job", ns.name(), &job, Some("status"), &over);
    follower.says(&format!("Job `{job}` has ended"));
    follower.says("jobs why");
    assert_eq!(follower.wait().code(), Some(1));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn parts_of_a_log_are_asked_for_and_earlier_attempts_are_found() {
    let ns = ground().namespace("parts");
    cluster(&ns, "prod");
    let owner = machine(&ns, "web", &[], json!({}));
    let mut pods = Vec::new();
    for attempt in 1..=2 {
        let ends = 900 - i64::from(attempt) * 300;
        let job = crate::jobs::job(&ns, &owner, "apply", attempt, Some("BackoffLimitExceeded"), ends, json!({}));
        let name = pod(&ns, &owner, &job, NODE, ended(1));
        let old = Timestamp::now() - SignedDuration::from_secs(3000);
        kubelet().write_at(ns.name(), &name, "source", &format!("old line of {attempt}"), old);
        kubelet().write(ns.name(), &name, "source", &format!("second of {attempt}\nlast of {attempt}"));
        pods.push(name);
    }
    assert_eq!(job_name("web", "apply", 2), pods[1].rsplit_once('-').expect("a pod name").0);
    let shown = |line: &str| {
        let ran = captf(&ns, &format!("jobs logs tfm/web {line}"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout.lines().map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(shown(""), ["old line of 2", "second of 2", "last of 2"]);
    assert_eq!(shown("--tail 1"), ["last of 2"]);
    assert_eq!(shown("--since 10m"), ["second of 2", "last of 2"]);
    assert_eq!(shown(&format!("--job {} --tail 2", job_name("web", "apply", 1))), ["second of 1", "last of 1"]);
    let all = shown("--previous-attempts --tail 1");
    assert_eq!(all.len(), 4, "{all:?}");
    assert!(
        all[0].starts_with("==>") && all[0].contains(&pods[0]) && all[1] == "last of 1" && all[3] == "last of 2",
        "{all:?}"
    );
    let asked = kubelet().asked_about(ns.name(), &pods[1]);
    assert!(
        asked.iter().any(|a| a.contains("sinceSeconds=600")) && asked.iter().any(|a| a.contains("tailLines=1")),
        "{asked:?}"
    );
    assert!(
        asked.iter().all(|a| a.contains("limitBytes=") && a.contains("tailLines=")),
        "no read is without a limit: {asked:?}"
    );
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_container_that_has_not_started_is_told_in_the_kubelets_words() {
    let ns = ground().namespace("not-started");
    cluster(&ns, "prod");
    kubelet();
    let (owner, job) = running(&ns, "pulls");
    pod(&ns, &owner, &job, NODE, starts("ImagePullBackOff"));
    let ran = captf(&ns, "jobs logs tfm/pulls");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("trying and failing to pull image"), "{ran:?}");
    assert!(ran.stderr.contains("jobs logs terraformmachine/pulls") && ran.stderr.contains(" -f"), "{ran:?}");
    // The server says of a node that is gone that the pod of that name is not found. The pod is there.
    let (owner, job) = running(&ns, "orphaned");
    pod(&ns, &owner, &job, "node-that-is-gone", runs());
    let ran = captf(&ns, "jobs logs tfm/orphaned");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("not read: log of Pod") && !ran.stderr.contains("is gone."), "{ran:?}");
    // Without a node there is nobody to ask, and the API server answers with an empty log.
    let (owner, job) = running(&ns, "unscheduled");
    pod(
        &ns,
        &owner,
        &job,
        "",
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}),
    );
    let ran = captf(&ns, "jobs logs tfm/unscheduled");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.stderr.contains("has not started (Unschedulable)"), "{ran:?}");
    // What the init container printed when it failed is the log that is meant.
    let (owner, job) = failed(&ns, "runner", "ApplyFailed", "BackoffLimitExceeded", json!({}));
    let state = with_phase("Failed", statuses(&waiting("PodInitializing", ""), Some(&terminated(1, "Error", ""))));
    let name = pod(&ns, &owner, &job, NODE, state);
    kubelet().write(ns.name(), &name, "runner", "cp: cannot create /captf/bin/runner: No space left on device");
    let ran = captf(&ns, "jobs logs tfm/runner");
    assert!(ran.stdout.contains("No space left"), "{ran:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_log_whose_credentials_may_not_be_read_says_that_it_is_masked_by_looks_alone() {
    let ns = ground().namespace("unmasked");
    cluster(&ns, "prod");
    ns.ground().apply_value(
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "captf-creds-team-a", "namespace": ns.name()},
        "stringData": {"phrase": "canary-by-value"}}),
    );
    let (owner, job) = failed(&ns, "web", "ApplyFailed", "BackoffLimitExceeded", json!({}));
    let mut marks = labels(&owner, "apply", 1);
    marks["batch.kubernetes.io/job-name"] = json!(job);
    let name = format!("{job}-x7k2p");
    ns.ground().apply_value(
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": ns.name(), "labels": marks},
        "spec": {"restartPolicy": "Never", "nodeName": NODE, "containers": [{"name": "source", "image": IMAGE,
                 "envFrom": [{"secretRef": {"name": "captf-creds-team-a"}}]}]}, "status": ended(1)}),
    );
    kubelet().write(ns.name(), &name, "source", "Error: no quota for canary-by-value\n\napi_token = \"canary-2\"\n");
    let rules = json!([
        {"apiGroups": ["infrastructure.cluster.x-k8s.io", "cluster.x-k8s.io"], "resources": ["*"], "verbs": ["get", "list"]},
        {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get", "list"]},
        {"apiGroups": [""], "resources": ["pods", "pods/log", "events"], "verbs": ["get", "list"]}]);
    let viewer = ns.ground().service_account_kubeconfig(ns.name(), "viewer", &rules);
    let gap = format!(
        "Secret {}/captf-creds-team-a, so that the log is masked only where it looks like a credential",
        ns.name()
    );
    let why = captf_as(&ns, &viewer, "jobs why tfm/web -o json");
    let gaps = why.json()["unreadable"].as_array().cloned().expect("gaps");
    let told = gaps.iter().find(|g| g["what"] == *gap).unwrap_or_else(|| panic!("{gap}: {gaps:?}"));
    assert_eq!(told["permission"], "get secrets", "{told}");
    let logs = captf_as(&ns, &viewer, "jobs logs tfm/web");
    assert_eq!(logs.code, Some(3), "{logs:?}");
    assert!(logs.stderr.contains(&format!("not read: {gap}")), "{logs:?}");
    // What looks like a credential is masked all the same; what only the Secret tells is not.
    assert!(logs.stdout.contains("api_token = ****") && logs.stdout.contains("canary-by-value"), "{logs:?}");
    // Whoever may read it gets no gap and no value.
    let logs = captf(&ns, "jobs logs tfm/web");
    assert_eq!(logs.code, Some(0), "{logs:?}");
    assert!(logs.stdout.contains("no quota for ****") && !logs.stdout.contains("canary"), "{logs:?}");
}
