//! `--method job`: the two commands as a Job of the cluster, for people without an engine.
//!
//! `init` is the init container and `force-unlock` the container, so that the second runs only after the first
//! succeeded. The files come from annotations of the pod, so nothing but the Job has to be created.

use std::time::Duration;

use serde_json::{Value, json};

use super::claimed::{Claim, may_not, missing_verbs};
use super::error::CommandError;
use super::force_unlock::Outcome;
use super::session::Session;
use super::unlock_args::ForceUnlockArgs;
use super::unlock_lease::{confirm, with_lock_now};
use super::unlock_login::{identity, service_account};
use super::unlock_run::backend;
use crate::claim::HolderId;
use crate::cluster::api::{JOBS, PODS, Selector};
use crate::cluster::json::{items, name, owned, text};
use crate::engine::files::MAIN;
use crate::engine::steps::{RUNTIME, force_unlock, init};
use crate::facts::lock::LockFacts;
use crate::facts::reading::Reading;
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::runbook::finding::Evidence;
use crate::runbook::force_unlock::Plan;

/// How long the Job may take, pull included, in seconds.
const DEADLINE: u64 = 300;
const LABEL: &str = "kubectl.captf.io/force-unlock";
const MAIN_ANNOTATION: &str = "kubectl.captf.io/main.tf.json";

/// The Job. It carries none of CAPTF's labels, so that the controller does not take it for its own.
pub fn manifest(facts: &LockFacts, args: &ForceUnlockArgs, plan: &Plan, nonce: &str) -> Value {
    let (image, _) = plan.image.clone().unwrap_or_default();
    let backend = backend(facts, plan, true);
    let environment = [
        ("TF_DATA_DIR", "/captf/work/data"),
        ("TMPDIR", "/captf/work"),
        ("HOME", "/captf/work"),
        ("CHECKPOINT_DISABLE", "1"),
        ("TF_IN_AUTOMATION", "1"),
    ];
    let environment: Vec<Value> = environment.iter().map(|(n, v)| json!({"name": n, "value": v})).collect();
    let container = |name: &str, arguments: Vec<String>| {
        json!({
            "name": name, "image": image, "command": [RUNTIME], "args": arguments,
            "workingDir": "/captf/root", "env": environment, "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"}},
            "volumeMounts": [{"name": "work", "mountPath": "/captf/work"}, {"name": "root", "mountPath": "/captf/root"}],
        })
    };
    let field = json!({"fieldPath": format!("metadata.annotations['{MAIN_ANNOTATION}']")});
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": format!("captf-unlock-{nonce}"), "namespace": facts.object.namespace,
            "labels": {LABEL: plan.suffix}},
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": DEADLINE, "ttlSecondsAfterFinished": 600,
            "template": {
                "metadata": {"labels": {LABEL: plan.suffix}, "annotations": {MAIN_ANNOTATION: MAIN}},
                "spec": {
                    "restartPolicy": "Never", "serviceAccountName": service_account(facts, args),
                    "initContainers": [container("init", init(&backend))],
                    "containers": [container("force-unlock", force_unlock(&plan.lock_id))],
                    "volumes": [{"name": "work", "emptyDir": {}}, {"name": "root", "downwardAPI":
                        {"items": [{"path": "main.tf.json", "fieldRef": field}]}}],
                },
            },
        },
    })
}

/// Creates the Job, waits for its end, deletes it, and lets the Lease decide.
pub async fn by_job(
    session: &Session,
    facts: &LockFacts,
    args: &ForceUnlockArgs,
    plan: &Plan,
    claim: &Claim,
) -> Result<Outcome, CommandError> {
    let namespace = &facts.object.namespace;
    // One that could be created and not read again would be waited for in vain, and stay.
    let missing = missing_verbs(&session.api, &JOBS, &["create", "get", "delete"], namespace).await;
    if !missing.is_empty() {
        return Err(may_not("no Job was created", &JOBS, &missing, namespace));
    }
    let job = manifest(facts, args, plan, &HolderId::of_this_process().nonce);
    let job_name = name(&job);
    claim.fence().await?;
    let created = session.api.create(&JOBS, namespace, &job).await.map_err(|failure| {
        let error = CommandError::failed(format!("create Job {namespace}/{job_name}"));
        match failure.gap() {
            Some(gap) => error.caused_by(visible(&gap.to_string())).caused_by(visible(&gap.detail)),
            None => error,
        }
    })?;
    stderr_line(&format!("Job {job_name} was created; waiting for its end."));
    let ended = tokio::select! {
        ended = wait(session, namespace, &job_name) => ended,
        error = claim.stopped() => Err(error.caused_by("the Job was running; it is deleted")),
    };
    let output = pod_messages(session, namespace, &job_name).await;
    // Also under a claim that was lost: this stops our own work, and touches nothing that is shared.
    delete(session, namespace, &job_name, &created).await;
    let succeeded = match ended {
        Ok(succeeded) => succeeded,
        Err(error) => return Err(with_lock_now(session, &facts.object, plan, error).await),
    };
    let evidence = vec![
        Evidence::new("released by", format!("force-unlock of {}", plan.image.clone().unwrap_or_default().0)),
        Evidence::new("in", format!("Job {job_name}, deleted since")),
        Evidence::new("as", identity(facts, args)),
    ];
    confirm(session, &facts.object, plan, succeeded, evidence, || output).await
}

/// Whether the Job completed.
async fn wait(session: &Session, namespace: &str, job: &str) -> Result<bool, CommandError> {
    for _ in 0..DEADLINE + 60 {
        match session.api.get(&JOBS, Some(namespace), job).await {
            Reading::Found(value) => {
                let is = |kind: &str| {
                    items(&value, &["status", "conditions"])
                        .iter()
                        .any(|c| text(c, &["type"]) == Some(kind) && text(c, &["status"]) == Some("True"))
                };
                if is("Complete") || is("Failed") {
                    return Ok(is("Complete"));
                }
            }
            Reading::Absent => return Err(CommandError::failed(format!("Job {job} was deleted by somebody else"))),
            // An outage of the API server is waited out.
            Reading::Unreadable(_) => {}
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Err(CommandError::failed(format!("Job {job} did not end in time")))
}

/// Why the containers of the Job's pods ended or wait, as the kubelet says it.
async fn pod_messages(session: &Session, namespace: &str, job: &str) -> String {
    let selector = Selector::labels(format!("{}={job}", crate::captf::keys::JOB_NAME));
    let pods = session.api.list(&PODS, Some(namespace), &selector).await;
    let mut all = Vec::new();
    for pod in pods.found().into_iter().flatten() {
        for list in ["initContainerStatuses", "containerStatuses"] {
            for status in items(pod, &["status", list]) {
                for state in ["terminated", "waiting"] {
                    let message = owned(status, &["state", state, "message"]);
                    let reason = owned(status, &["state", state, "reason"]);
                    all.extend((!message.is_empty()).then(|| format!("{}: {reason} {message}", name(status))));
                }
            }
        }
    }
    all.join("; ")
}

async fn delete(session: &Session, namespace: &str, job: &str, created: &Value) {
    let uid = owned(created, &["metadata", "uid"]);
    // Its status changes the version, so the one to delete is read again and told by its UID.
    for _ in 0..3 {
        let now = match session.api.get(&JOBS, Some(namespace), job).await {
            Reading::Found(now) => now,
            Reading::Absent => return,
            Reading::Unreadable(_) => continue,
        };
        let version = owned(&now, &["metadata", "resourceVersion"]);
        if session.api.delete_exactly(&JOBS, namespace, job, &uid, &version).await.is_ok() {
            return;
        }
    }
    stderr_line(&format!("warning: Job {job} could not be deleted; it goes away by itself after ten minutes"));
}
