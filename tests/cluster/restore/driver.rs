//! Plays the controller's side of a restore on a thread of its own: sees the annotation, runs a Job by the runtime's
//! own `state push -force` and `state list`, keeps the books.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fixture::{Fixture, decode};
use crate::ground::Ground;

/// How one restore ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Success,
    Failure,
    /// The object is deleted while the Job runs.
    ObjectDeleted,
    /// Nothing happens: the request just stands.
    Nothing,
}

pub struct Driver {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread needs, without borrowing the fixture.
struct Scene {
    ground: &'static Ground,
    namespace: String,
    name: String,
    suffix: String,
    folder: std::path::PathBuf,
    binary: std::path::PathBuf,
    stop: Arc<AtomicBool>,
}

impl Driver {
    /// Starts looking; each request that comes ends as the next of `endings` says.
    pub fn start(fixture: &Fixture<'static>, endings: Vec<Ending>) -> Self {
        Self::start_after(fixture, endings, Duration::ZERO)
    }

    /// The same, where a request is looked at only after some time.
    pub fn start_after(fixture: &Fixture<'static>, endings: Vec<Ending>, delay: Duration) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let scene = Scene {
            ground: fixture.ground,
            namespace: fixture.namespace.clone(),
            name: fixture.name.clone(),
            suffix: fixture.workspace.suffix.clone(),
            folder: fixture.workspace.folder().to_path_buf(),
            binary: fixture.binary(),
            stop: stop.clone(),
        };
        let thread = thread::spawn(move || {
            for (attempt, ending) in endings.into_iter().enumerate() {
                let Some(serial) = scene.wait_for_request() else {
                    return;
                };
                thread::sleep(delay);
                scene.restore(serial, attempt + 1, ending);
                if ending == Ending::Failure {
                    scene.wait_until_taken_back();
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }

    /// Waits until every ending was played.
    pub fn finish(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the controller's side went well");
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // its panic is reported by the test that failed because of it
        }
    }
}

impl Scene {
    fn object(&self) -> Value {
        self.ground.get("TerraformCluster", &self.namespace, &self.name)
    }

    fn request(&self) -> Option<i64> {
        self.object()["metadata"]["annotations"]["captf.io/restore-state"].as_str()?.parse().ok()
    }

    fn wait_for_request(&self) -> Option<i64> {
        let start = Instant::now();
        while !self.stop.load(Ordering::Relaxed) {
            if let Some(serial) = self.request()
                && self.object()["status"]["lastRestoredSerial"].as_i64() != Some(serial)
            {
                return Some(serial);
            }
            assert!(start.elapsed() < Duration::from_secs(120), "no request came");
            thread::sleep(Duration::from_millis(100));
        }
        None
    }

    /// The controller forgets a consumed serial when it sees the object without the annotation.
    fn wait_until_taken_back(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            if self.request().is_none() {
                thread::sleep(Duration::from_millis(1500));
                self.status(&json!({"lastRestoredSerial": null}));
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn status(&self, status: &Value) {
        let patch = json!({"status": status});
        self.ground.patch("TerraformCluster", &self.namespace, &self.name, Some("status"), &patch);
    }

    fn condition(&self, status: &str, reason: &str) -> Value {
        let now = now();
        let mut conditions = self.object()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|c| c["type"] != "RestoreJobSucceeded");
        conditions.push(json!({"type": "RestoreJobSucceeded", "status": status, "reason": reason, "message": "",
            "lastTransitionTime": now}));
        json!(conditions)
    }

    fn restore(&self, serial: i64, attempt: usize, ending: Ending) {
        if ending == Ending::Nothing {
            return;
        }
        self.status(&json!({"conditions": self.condition("Unknown", "WaitingForRunLease")}));
        thread::sleep(Duration::from_millis(1200));
        let job = self.start_job(serial, attempt);
        thread::sleep(Duration::from_millis(1200));
        if ending == Ending::ObjectDeleted {
            self.ground.delete("TerraformCluster", &self.namespace, &self.name);
            return;
        }
        let pushed = ending == Ending::Success && self.push(serial);
        self.end_job(&job, pushed);
        let (status, reason) = if pushed { ("True", "StateRestored") } else { ("False", "RestoreFailed") };
        let mut run = json!({"job": job, "operation": "restore"});
        if !pushed {
            run["error"] = json!({"kind": "step", "step": "state-push"});
        }
        let books = json!({"conditions": self.condition(status, reason), "lastRestoredSerial": serial, "lastRun": run});
        self.status(&books);
        if pushed {
            let off = json!({"metadata": {"annotations": {"captf.io/restore-state": null}}});
            self.ground.patch("TerraformCluster", &self.namespace, &self.name, None, &off);
            thread::sleep(Duration::from_millis(1200));
            self.status(&json!({"observedStateSerial": serial}));
        }
    }

    /// A Job with the controller's labels, and a pod of it that runs.
    fn start_job(&self, serial: i64, attempt: usize) -> String {
        let uid = self.object()["metadata"]["uid"].clone();
        let job = format!("captf-c-{}-restore-a{attempt}-0a1b2c", self.name);
        let owner = "captf.infrastructure.cluster.x-k8s.io";
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "source", "image": "registry.test/demo:1"}]}});
        self.ground.apply_value(json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": job, "namespace": self.namespace,
                "labels": {format!("{owner}/owner-kind"): "TerraformCluster", format!("{owner}/owner-name"): self.name,
                    format!("{owner}/op"): "restore", format!("{owner}/attempt"): attempt.to_string()},
                "annotations": {"captf.io/restore-serial": serial.to_string()},
                "ownerReferences": [{"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformCluster",
                    "name": self.name, "uid": uid, "controller": true}],
            },
            "spec": {"backoffLimit": 0, "template": template},
            "status": {"startTime": now(), "active": 1},
        }));
        self.ground.apply_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{job}-abcde"), "namespace": self.namespace, "labels": {"batch.kubernetes.io/job-name": job}},
            "spec": template["spec"],
            "status": {"phase": "Running", "containerStatuses": [{"name": "source", "image": "x", "imageID": "", "ready": true,
                "restartCount": 0, "state": {"running": {"startedAt": now()}}}]},
        }));
        job
    }

    fn end_job(&self, job: &str, success: bool) {
        let kinds: [&str; 2] = if success { ["SuccessCriteriaMet", "Complete"] } else { ["FailureTarget", "Failed"] };
        let conditions: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"type": kind, "status": "True", "reason": "Test", "message": "", "lastTransitionTime": now()}))
            .collect();
        let mut status = json!({"active": 0, "conditions": conditions});
        if success {
            status["completionTime"] = json!(now());
            status["succeeded"] = json!(1);
        } else {
            status["failed"] = json!(1);
        }
        self.ground.patch("Job", &self.namespace, job, Some("status"), &json!({"status": status}));
        let phase = json!({"status": {"phase": if success { "Succeeded" } else { "Failed" }}});
        self.ground.patch("Pod", &self.namespace, &format!("{job}-abcde"), Some("status"), &phase);
    }

    /// What the runner does: the chunks of the newest set of the serial, pushed with force and listed.
    fn push(&self, serial: i64) -> bool {
        let selector = format!("captf.io/state-backup=true,captf.io/state-backup-suffix={}", self.suffix);
        let text = serial.to_string();
        let mut chunks: Vec<(usize, Vec<u8>)> = self
            .ground
            .list("Secret", &self.namespace, &selector)
            .iter()
            .filter(|s| s["metadata"]["annotations"]["captf.io/state-backup-serial"].as_str() == Some(&text))
            .map(|s| {
                let index = s["metadata"]["annotations"]["captf.io/state-backup-chunk"].as_str().unwrap_or_default();
                (index.parse().expect("a chunk index"), decode(&s["data"]["tfstate"]))
            })
            .collect();
        chunks.sort();
        let payload: Vec<u8> = chunks.into_iter().flat_map(|(_, data)| data).collect();
        let file = self.folder.join("restore.tfstate");
        let mut out = std::fs::File::create(&file).expect("create the state to push");
        std::io::copy(&mut flate2::read::GzDecoder::new(payload.as_slice()), &mut out).expect("decompress the backup");
        out.flush().expect("write the state to push");
        let run = |words: &[&str]| {
            let mut command = Command::new(&self.binary);
            command.args(words).current_dir(&self.folder).env("HOME", &self.folder);
            command
                .env("KUBE_CONFIG_PATH", &self.ground.kubeconfig)
                .stdin(Stdio::null())
                .output()
                .expect("run the runtime")
        };
        let pushed = run(&["state", "push", "-force", "restore.tfstate"]);
        assert!(pushed.status.success(), "state push: {}", String::from_utf8_lossy(&pushed.stderr));
        let listed = run(&["state", "list"]);
        // What the manager's bookkeeping does after a restore.
        let hash = json!({"metadata": {"annotations": {"captf.io/inputs-hash": "h2:one"}}});
        self.ground.patch("Secret", &self.namespace, &format!("tfstate-default-{}", self.suffix), None, &hash);
        listed.status.success() && !listed.stdout.is_empty()
    }
}

fn now() -> String {
    jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).expect("now").to_string()
}
