//! Pods of Jobs, and pods that a lock names.

use serde_json::Value;

use super::api::{Api, PODS, Selector};
use super::json::{at, int, items, label, name, owned, text, time};
use crate::captf::keys;
use crate::captf::names::label_value;
use crate::captf::result::read_result;
use crate::facts::object::ObjectRef;
use crate::facts::pod::{ContainerFacts, ContainerState, Disruption, PodFacts};
use crate::facts::reading::Reading;
use crate::facts::run::ResultReading;

/// GET of one pod, live.
pub async fn read_pod(api: &Api, namespace: &str, pod: &str) -> Reading<PodFacts> {
    api.get(&PODS, Some(namespace), pod).await.map(|value| facts_from_pod(&value))
}

/// The pods of a Job by label, newest first.
pub async fn read_pods_of_job(api: &Api, namespace: &str, job: &str) -> Reading<Vec<PodFacts>> {
    let selector = Selector::labels(format!("{}={job}", keys::JOB_NAME));
    api.list(&PODS, Some(namespace), &selector).await.map(|list| {
        let mut pods: Vec<PodFacts> = list.iter().map(facts_from_pod).collect();
        pods.sort_by(|a, b| (b.created, &b.name).cmp(&(a.created, &a.name)));
        pods
    })
}

/// Pods of that name in all namespaces but one, written `team-b/x`.
pub async fn read_pods_elsewhere(api: &Api, namespace: &str, pod: &str) -> Reading<Vec<String>> {
    let by_name = Selector::fields(format!("metadata.name={pod}"));
    api.list(&PODS, None, &by_name).await.map(|list| {
        let places = list.iter().map(|p| (owned(p, &["metadata", "namespace"]), name(p)));
        places.filter(|(ns, _)| ns != namespace).map(|(ns, name)| format!("{ns}/{name}")).collect()
    })
}

/// Pods of the namespace whose host name, cut to 63 characters without trailing `-` and `.`, is `host`.
pub async fn read_pods_cut_to(api: &Api, namespace: &str, host: &str) -> Reading<Vec<String>> {
    api.list(&PODS, Some(namespace), &Selector::default()).await.map(|list| {
        let names = list.iter().map(name);
        names
            .filter(|n| n.len() > 63 && n.get(..63).is_some_and(|cut| cut.trim_end_matches(['-', '.']) == host))
            .collect()
    })
}

/// The pods of an object's Jobs by its owner labels, newest first.
pub async fn read_pods_of_object(api: &Api, object: &ObjectRef) -> Reading<Vec<PodFacts>> {
    let selector = Selector::labels(format!(
        "{}={},{}={}",
        keys::OWNER_KIND,
        object.kind.kind(),
        keys::OWNER_NAME,
        label_value(&object.name)
    ));
    api.list(&PODS, Some(&object.namespace), &selector).await.map(|list| {
        let mut pods: Vec<PodFacts> = list.iter().map(facts_from_pod).collect();
        pods.sort_by(|a, b| (b.created, &b.name).cmp(&(a.created, &a.name)));
        pods
    })
}

/// A pod as the kubelet and the control plane left it.
pub fn facts_from_pod(value: &Value) -> PodFacts {
    let condition =
        |kind: &str| items(value, &["status", "conditions"]).iter().find(move |c| text(c, &["type"]) == Some(kind));
    let disruption = condition("DisruptionTarget").filter(|c| text(c, &["status"]) == Some("True"));
    let mut containers = containers_of(value, "initContainers", "initContainerStatuses", true);
    containers.extend(containers_of(value, "containers", "containerStatuses", false));
    PodFacts {
        name: name(value),
        uid: owned(value, &["metadata", "uid"]),
        created: time(value, &["metadata", "creationTimestamp"]),
        phase: owned(value, &["status", "phase"]),
        reason: owned(value, &["status", "reason"]),
        message: owned(value, &["status", "message"]),
        deletion_deadline: time(value, &["metadata", "deletionTimestamp"]),
        grace_seconds: int(value, &["metadata", "deletionGracePeriodSeconds"]),
        node: text(value, &["spec", "nodeName"]).filter(|n| !n.is_empty()).map(str::to_string),
        ready: condition("Ready").map(|c| owned(c, &["status"])),
        disruption: disruption.map(|c| Disruption {
            reason: owned(c, &["reason"]),
            message: owned(c, &["message"]),
            at: time(c, &["lastTransitionTime"]),
        }),
        job: label(value, keys::JOB_NAME).or_else(|| label(value, "job-name")).map(str::to_string),
        unscheduled: condition("PodScheduled").filter(|c| text(c, &["status"]) == Some("False")).map(|c| Disruption {
            reason: owned(c, &["reason"]),
            message: owned(c, &["message"]),
            at: time(c, &["lastTransitionTime"]),
        }),
        result: result_of(value),
        credentials: credentials_of(value),
        containers,
    }
}

/// The Secrets with the credentials of `source`: of its environment, and of the volume `creds`.
fn credentials_of(value: &Value) -> Vec<String> {
    let source = items(value, &["spec", "containers"]).iter().filter(|c| text(c, &["name"]) == Some("source"));
    let of_env = source.flat_map(|c| items(c, &["envFrom"])).filter_map(|e| text(e, &["secretRef", "name"]));
    let volumes = items(value, &["spec", "volumes"]).iter().filter(|v| text(v, &["name"]) == Some("creds"));
    let mut names: Vec<String> = Vec::new();
    for name in of_env.chain(volumes.filter_map(|v| text(v, &["secret", "secretName"]))) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_string());
        }
    }
    names
}

/// The result document: termination message of the current state of `source`, never of an earlier one.
fn result_of(value: &Value) -> ResultReading {
    let source = items(value, &["status", "containerStatuses"]).iter().find(|c| text(c, &["name"]) == Some("source"));
    match source.and_then(|s| at(s, &["state", "terminated"])) {
        Some(t) => read_result(text(t, &["message"]).unwrap_or_default()),
        None => ResultReading::NotTerminated,
    }
}

/// Containers of the spec with their state; a status without a spec entry is kept too.
fn containers_of(value: &Value, spec: &str, status: &str, init: bool) -> Vec<ContainerFacts> {
    let statuses = items(value, &["status", status]);
    let declared = items(value, &["spec", spec]);
    let by_name = |list: &'_ [Value], name: &str| list.iter().find(|c| text(c, &["name"]) == Some(name)).cloned();
    let mut names: Vec<String> = declared.iter().map(|c| owned(c, &["name"])).collect();
    for extra in statuses.iter().map(|c| owned(c, &["name"])) {
        if !names.contains(&extra) {
            names.push(extra);
        }
    }
    names
        .into_iter()
        .map(|name| {
            let state = by_name(statuses, &name).map_or(ContainerState::NotReported, |s| container_state(&s));
            let spec = by_name(declared, &name).unwrap_or(Value::Null);
            let of_spec = |path: &[&str]| text(&spec, path).map(str::to_string);
            ContainerFacts {
                init,
                sidecar: init && text(&spec, &["restartPolicy"]) == Some("Always"),
                image: of_spec(&["image"]),
                image_id: by_name(statuses, &name)
                    .and_then(|s| text(&s, &["imageID"]).map(str::to_string))
                    .filter(|id| !id.is_empty()),
                // What the kubelet gave it, which a resize in place changes, before what the spec asks for.
                memory_limit: by_name(statuses, &name)
                    .and_then(|s| text(&s, &["resources", "limits", "memory"]).map(str::to_string))
                    .or_else(|| of_spec(&["resources", "limits", "memory"])),
                state,
                name,
            }
        })
        .collect()
}

fn container_state(status: &Value) -> ContainerState {
    if let Some(t) = at(status, &["state", "terminated"]) {
        return ContainerState::Terminated {
            reason: owned(t, &["reason"]),
            exit_code: int(t, &["exitCode"]).unwrap_or_default(),
            started: time(t, &["startedAt"]),
            finished: time(t, &["finishedAt"]),
            message: match text(t, &["reason"]) {
                Some("StartError" | "ContainerCannotRun" | "ContainerStatusUnknown") => owned(t, &["message"]),
                _ => String::new(),
            },
        };
    }
    if let Some(r) = at(status, &["state", "running"]) {
        return ContainerState::Running { started: time(r, &["startedAt"]) };
    }
    match at(status, &["state", "waiting"]) {
        Some(w) => ContainerState::Waiting { reason: owned(w, &["reason"]), message: owned(w, &["message"]) },
        None => ContainerState::NotReported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_source_and_of_the_volume_creds() {
        let env =
            |name: &str| serde_json::json!([{"secretRef": {"name": name}}, {"configMapRef": {"name": "settings"}}]);
        let volume = |name: &str, secret: &str| serde_json::json!({"name": name, "secret": {"secretName": secret}});
        let pod = |volumes: Value| {
            let containers =
                serde_json::json!([{"name": "mesh", "envFrom": env("mesh")}, {"name": "source", "envFrom": env("a")}]);
            facts_from_pod(&serde_json::json!({"spec": {"containers": containers, "volumes": volumes}})).credentials
        };
        assert_eq!(pod(serde_json::json!([volume("creds", "a"), volume("config", "inputs")])), ["a"]);
        assert_eq!(pod(serde_json::json!([volume("creds", "b"), {"name": "creds", "emptyDir": {}}])), ["a", "b"]);
        assert_eq!(pod(Value::Null), ["a"]);
    }
}
