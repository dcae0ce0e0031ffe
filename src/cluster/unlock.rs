//! Reads for an unlock: image records (annotations only, never their payload), pods of a host's name, and
//! when Lease and state were last written.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::api::{Api, Form, LEASES, PODS, SECRETS, Selector};
use super::json::{annotation, items, owned, text, time};
use super::objects::resource;
use super::pods::facts_from_pod;
use super::state::state_selector;
use crate::captf::names::lock_lease;
use crate::facts::lock::LockFacts;
use crate::facts::object::ObjectRef;
use crate::facts::pod::PodFacts;
use crate::facts::reading::{GapReason, Reading};
use crate::facts::unlock::{ImageRecord, Signs, UnlockReads, Watched};

/// How often Lease, state and pods are read while watching.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Everything beside the lock facts. `observe` watches for so many seconds.
pub async fn read_unlock(api: &Api, facts: &LockFacts, observe: Option<u64>) -> UnlockReads {
    let object = &facts.object;
    let host = facts.lease.found().and_then(|l| l.info.info()).and_then(|i| i.host().map(str::to_string));
    let (records, pods, lease_changed, state_changed) = tokio::join!(
        read_records(api, object),
        read_pods_named(api, object, host.as_deref()),
        changed(api, object, false),
        changed(api, object, true),
    );
    let watched = match observe {
        Some(seconds) => Some(watch(api, object, host.as_deref(), seconds).await),
        None => None,
    };
    let signs = Signs { pods, lease_changed, state_changed, watched };
    UnlockReads { records, signs, selected: facts.state.selected.clone() }
}

/// `captf-applied-*`, then `captf-inputs-*`, then `status.source`.
async fn read_records(api: &Api, object: &ObjectRef) -> Vec<Reading<ImageRecord>> {
    let secret = |stem: &str| format!("captf-{stem}-{}-{}", object.kind.kindshort(), object.name);
    let (applied, inputs) = (secret("applied"), secret("inputs"));
    let namespace = Some(object.namespace.as_str());
    let kind = resource(object.kind);
    let (applied_row, inputs_row, status) = tokio::join!(
        api.get_as(&SECRETS, namespace, &applied, Form::Table),
        api.get_as(&SECRETS, namespace, &inputs, Form::Table),
        api.get(&kind, namespace, &object.name),
    );
    vec![
        applied_row.and_then(|row| record_from_secret(&applied, &row)),
        inputs_row.and_then(|row| record_from_secret(&inputs, &row)),
        status.and_then(|value| record_from_status(object, &value)),
    ]
}

fn record_from_secret(name: &str, row: &Value) -> Reading<ImageRecord> {
    let object = row.get("object").unwrap_or(&Value::Null);
    match annotation(object, "captf.io/image").filter(|i| !i.is_empty()) {
        Some(image) => Reading::Found(ImageRecord {
            source: format!("Secret/{name} annotation captf.io/image"),
            image: image.to_string(),
            digest: annotation(object, "captf.io/image-digest").map(str::to_string),
        }),
        None => Reading::Absent,
    }
}

fn record_from_status(object: &ObjectRef, value: &Value) -> Reading<ImageRecord> {
    match text(value, &["status", "source", "image"]).filter(|i| !i.is_empty()) {
        Some(image) => Reading::Found(ImageRecord {
            source: format!("{} .status.source", object.resource()),
            image: image.to_string(),
            digest: text(value, &["status", "source", "imageDigest"]).map(str::to_string),
        }),
        None => Reading::Absent,
    }
}

/// Pods of a name in all namespaces, or in the object's own where all may not be listed. `None`: no host.
async fn read_pods_named(
    api: &Api,
    object: &ObjectRef,
    host: Option<&str>,
) -> Option<Reading<Vec<(String, PodFacts)>>> {
    let host = host.filter(|h| super::lock::is_object_name(h))?;
    let named = Selector::fields(format!("metadata.name={host}"));
    let everywhere = api.list(&PODS, None, &named).await;
    let list = match everywhere {
        // What is in other namespaces stays unknown, and the caller says so.
        Reading::Unreadable(gap) if gap.reason == GapReason::Forbidden => {
            match api.list(&PODS, Some(&object.namespace), &named).await {
                Reading::Found(found) if !found.is_empty() => Reading::Found(found),
                _ => Reading::Unreadable(gap),
            }
        }
        other => other,
    };
    Some(list.map(|pods| pods.iter().map(|p| (owned(p, &["metadata", "namespace"]), facts_from_pod(p))).collect()))
}

/// The newest time in managedFields of the Lease or of the state Secrets.
async fn changed(api: &Api, object: &ObjectRef, state: bool) -> Option<Timestamp> {
    let newest =
        |value: &Value| items(value, &["metadata", "managedFields"]).iter().filter_map(|f| time(f, &["time"])).max();
    let namespace = Some(object.namespace.as_str());
    if state {
        let rows = api.list_as(&SECRETS, namespace, &state_selector(&object.suffix()), Form::Table).await;
        return rows.found()?.iter().filter_map(|row| newest(row.get("object")?)).max();
    }
    newest(api.get(&LEASES, namespace, &lock_lease(&object.suffix())).await.found()?)
}

/// Reads again and again, and notes what is not as it was.
async fn watch(api: &Api, object: &ObjectRef, host: Option<&str>, seconds: u64) -> Watched {
    let first = versions(api, object, host).await;
    let mut changes: Vec<String> = Vec::new();
    let end = tokio::time::Instant::now() + Duration::from_secs(seconds);
    while tokio::time::Instant::now() < end {
        tokio::time::sleep(WATCH_INTERVAL.min(end - tokio::time::Instant::now())).await;
        let now = versions(api, object, host).await;
        for ((what, before), (_, after)) in first.iter().zip(&now) {
            let change = format!("{what}: {before}, then {after}");
            if before != after && !changes.contains(&change) {
                changes.push(change);
            }
        }
    }
    Watched { seconds, changes }
}

/// The version of each thing that is watched; what cannot be read is a version of its own.
async fn versions(api: &Api, object: &ObjectRef, host: Option<&str>) -> Vec<(&'static str, String)> {
    let namespace = Some(object.namespace.as_str());
    let version = |value: &Value| owned(value, &["metadata", "resourceVersion"]);
    let (lease, state) = (lock_lease(&object.suffix()), state_selector(&object.suffix()));
    let (lease, state, pods) = tokio::join!(
        api.get(&LEASES, namespace, &lease),
        api.list_as(&SECRETS, namespace, &state, Form::Table),
        read_pods_named(api, object, host),
    );
    let lease = match &lease {
        Reading::Found(value) => format!("version {}", version(value)),
        Reading::Absent => "not found".to_string(),
        Reading::Unreadable(gap) => gap.reason.as_str().to_string(),
    };
    let state = match &state {
        Reading::Found(rows) => {
            let all: Vec<String> = rows.iter().filter_map(|r| r.get("object")).map(version).collect();
            format!("version {}", all.join(" "))
        }
        Reading::Absent => "not found".to_string(),
        Reading::Unreadable(gap) => gap.reason.as_str().to_string(),
    };
    let pods = match &pods {
        Some(Reading::Found(pods)) => {
            let all = pods.iter().map(|(ns, p)| format!("{ns}/{} {} {}", p.name, p.uid, p.phase));
            all.collect::<Vec<_>>().join(" ")
        }
        Some(Reading::Unreadable(gap)) => gap.reason.as_str().to_string(),
        Some(Reading::Absent) | None => String::new(),
    };
    vec![("the Lease", lease), ("the state Secrets", state), ("pods of the host's name", pods)]
}
