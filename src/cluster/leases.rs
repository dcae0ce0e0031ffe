//! State lock Leases.

use serde_json::Value;

use super::api::{Api, LEASES};
use super::json::{annotation, at, map, name, owned, time};
use crate::captf::keys;
use crate::captf::lock_info::LockInfoReading;
use crate::facts::lease::{Holder, LockLease};
use crate::facts::reading::{Gap, GapReason, Reading};

/// GET of a state lock Lease by its exact name, never by label.
pub async fn read_lock(api: &Api, namespace: &str, lease: &str) -> Reading<LockLease> {
    api.get(&LEASES, Some(namespace), lease).await.and_then(|value| facts_from_lease(&value))
}

/// The lock as written. A holder that is not a string makes the Lease unreadable, never free.
pub fn facts_from_lease(value: &Value) -> Reading<LockLease> {
    let holder = match at(value, &["spec", "holderIdentity"]) {
        None | Some(Value::Null) => Holder::Nobody,
        Some(Value::String(id)) if id.is_empty() => Holder::Empty,
        Some(Value::String(id)) => Holder::Id(id.clone()),
        Some(_) => {
            return Reading::Unreadable(Gap {
                what: format!("Lease {}/{}", owned(value, &["metadata", "namespace"]), name(value)),
                reason: GapReason::Malformed,
                detail: "spec.holderIdentity is not a string".to_string(),
                permission: None,
            });
        }
    };
    Reading::Found(LockLease {
        name: name(value),
        uid: owned(value, &["metadata", "uid"]),
        resource_version: owned(value, &["metadata", "resourceVersion"]),
        created: time(value, &["metadata", "creationTimestamp"]),
        labels: map(value, &["metadata", "labels"]),
        holder,
        info: LockInfoReading::decode(annotation(value, keys::LOCK_INFO)),
    })
}
