//! The writes of an unlock by hand: the guarded change of the lock's Lease, and the Event about it.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::api::{Api, EVENTS, LEASES, Resource};
use super::json::{owned, text};
use crate::captf::keys;
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, GapReason, Reading};
use crate::facts::write::WriteFailure;

/// The lock exactly as it was judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedLock {
    pub namespace: String,
    pub lease: String,
    pub uid: String,
    pub resource_version: String,
    pub lock_id: String,
}

/// Clears holder and lock-info, as the runtime itself does, by one update that carries the version judged.
pub async fn clear_lease(api: &Api, lock: &JudgedLock) -> Result<(), WriteFailure> {
    let mut lease = match api.get(&LEASES, Some(&lock.namespace), &lock.lease).await {
        Reading::Found(lease) => lease,
        Reading::Absent => return Err(WriteFailure::NotFound),
        Reading::Unreadable(gap) => return Err(WriteFailure::Refused(gap)),
    };
    let is_judged = owned(&lease, &["metadata", "uid"]) == lock.uid
        && owned(&lease, &["metadata", "resourceVersion"]) == lock.resource_version
        && text(&lease, &["spec", "holderIdentity"]) == Some(&lock.lock_id);
    if !is_judged {
        return Err(WriteFailure::Conflict);
    }
    without_holder(&mut lease);
    api.update(&LEASES, &lock.namespace, &lease).await.map(drop)
}

/// The Lease as an unlock of the runtime leaves it: no holder and no lock-info, everything else as it was.
fn without_holder(lease: &mut Value) {
    lease["apiVersion"] = json!("coordination.k8s.io/v1");
    lease["kind"] = json!("Lease");
    if let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("holderIdentity");
    }
    if let Some(annotations) = lease["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(keys::LOCK_INFO);
    }
}

/// What an Event about an unlock says.
pub struct Audit<'a> {
    pub object: &'a ObjectRef,
    pub uid: &'a str,
    pub who: &'a str,
    pub message: String,
    pub at: Timestamp,
}

/// Creates the Event on the object. A refusal is for the caller to say.
pub async fn create_event(api: &Api, audit: &Audit<'_>) -> Result<(), Gap> {
    let at = audit.at.to_string();
    let name = format!("{}.{:x}", audit.object.name, audit.at.as_nanosecond());
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": name, "namespace": audit.object.namespace},
        "involvedObject": {
            "apiVersion": format!("{}/{}", keys::GROUP, keys::VERSION), "kind": audit.object.kind.kind(),
            "namespace": audit.object.namespace, "name": audit.object.name, "uid": audit.uid,
        },
        "reason": "UnlockedByHand", "type": "Warning", "message": audit.message,
        "source": {"component": "kubectl-captf", "host": audit.who},
        "firstTimestamp": format!("{:.0}", audit.at), "lastTimestamp": format!("{:.0}", audit.at), "count": 1,
        "eventTime": null, "reportingComponent": "kubectl-captf", "reportingInstance": at,
    });
    match api.create(&EVENTS, &audit.object.namespace, &event).await {
        Ok(_) | Err(WriteFailure::Exists) => Ok(()),
        Err(WriteFailure::Refused(gap) | WriteFailure::NoAnswer(gap)) => Err(gap),
        Err(WriteFailure::Conflict | WriteFailure::NotFound) => Err(Gap {
            what: "the Event".to_string(),
            reason: GapReason::Failed,
            detail: String::new(),
            permission: None,
        }),
    }
}

const REVIEWS: Resource = Resource {
    group: "authentication.k8s.io",
    version: "v1",
    plural: "selfsubjectreviews",
    kind: "SelfSubjectReview",
    namespaced: false,
};

/// The name under which the API server knows us.
pub async fn who_am_i(api: &Api) -> Option<String> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    match api.review(&REVIEWS, &review).await {
        Reading::Found(answer) => text(&answer, &["status", "userInfo", "username"]).map(str::to_string),
        Reading::Absent | Reading::Unreadable(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_holder_and_lock_info_are_taken_away() {
        let mut lease = json!({
            "metadata": {"name": "l", "resourceVersion": "7", "labels": {"tfstate": "true"},
                "annotations": {keys::LOCK_INFO: "{}", "other": "kept"}},
            "spec": {"holderIdentity": "", "leaseDurationSeconds": 9},
        });
        without_holder(&mut lease);
        assert_eq!(lease["spec"], json!({"leaseDurationSeconds": 9}));
        assert_eq!(lease["metadata"]["annotations"], json!({"other": "kept"}));
        assert_eq!(lease["metadata"]["resourceVersion"], "7");
        assert_eq!(lease["metadata"]["labels"], json!({"tfstate": "true"}));
    }
}
