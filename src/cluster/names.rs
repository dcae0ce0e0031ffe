//! Names only, for completion: rows and metadata, no payload, and nothing where a read fails.

use jiff::Timestamp;
use serde_json::Value;

use super::api::{Api, Form, JOBS, LEASES, Resource, SECRETS, Selector};
use super::clusters::owner_resource;
use super::jobs::selector_of;
use super::json::{annotation, at, owned, text, time};
use super::leases::facts_from_lease;
use crate::captf::kind::NamedKind;
use crate::captf::names::suffix_of_lock_lease;
use crate::captf::time::parse_rfc3339;
use crate::facts::lease::Holder;
use crate::facts::object::ObjectRef;
use crate::facts::reading::{GapReason, Reading};

const NAMESPACES: Resource =
    Resource { group: "", version: "v1", plural: "namespaces", kind: "Namespace", namespaced: false };

/// Something that can be named on a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    pub namespace: String,
    /// When it was made, or taken.
    pub at: Option<Timestamp>,
    /// What else is known of it, in few words.
    pub about: String,
}

/// Objects of a kind.
pub async fn read_names(api: &Api, kind: NamedKind, namespace: Option<&str>) -> Vec<Named> {
    let all = Selector::default();
    let rows = match kind {
        NamedKind::Workload(kind) => api.list_as(&super::objects::resource(kind), namespace, &all, Form::Table).await,
        NamedKind::Owner(kind) => {
            let newest = api.list_as(&owner_resource(kind, "v1beta2"), namespace, &all, Form::Table).await;
            if newest.gap().is_some_and(|g| g.reason == GapReason::NotInstalled) {
                api.list_as(&owner_resource(kind, "v1beta1"), namespace, &all, Form::Table).await
            } else {
                newest
            }
        }
    };
    found(rows).iter().filter_map(from_row).collect()
}

/// All namespaces.
pub async fn read_namespaces(api: &Api) -> Vec<Named> {
    found(api.list_as(&NAMESPACES, None, &Selector::default(), Form::Table).await).iter().filter_map(from_row).collect()
}

/// Locks that are held, by the ID of their holder.
pub async fn read_held_locks(api: &Api, namespace: Option<&str>) -> Vec<Named> {
    found(api.list(&LEASES, namespace, &Selector::default()).await).iter().filter_map(lock_from_lease).collect()
}

fn lock_from_lease(value: &Value) -> Option<Named> {
    let Reading::Found(lease) = facts_from_lease(value) else { return None };
    suffix_of_lock_lease(&lease.name)?;
    let Holder::Id(id) = &lease.holder else { return None };
    let info = lease.info.info();
    Some(Named {
        name: id.clone(),
        namespace: owned(value, &["metadata", "namespace"]),
        at: info.and_then(|i| i.created),
        about: info.map(|i| i.who.clone()).unwrap_or_default(),
    })
}

/// Serials of the state backups of an object, newest first, by the annotations of their Secrets.
pub async fn read_serials(api: &Api, object: &ObjectRef) -> Vec<Named> {
    let selector =
        Selector::labels(format!("captf.io/state-backup=true,captf.io/state-backup-suffix={}", object.suffix()));
    let rows = found(api.list_as(&SECRETS, Some(&object.namespace), &selector, Form::Table).await);
    let mut all: Vec<Named> = rows.iter().filter_map(serial_from_row).collect();
    all.sort_by_key(|n| std::cmp::Reverse((n.name.parse::<i64>().unwrap_or_default(), n.at)));
    all.dedup_by(|a, b| a.name == b.name);
    all
}

/// Names of an object's Jobs, newest first.
pub async fn read_job_names(api: &Api, object: &ObjectRef) -> Vec<Named> {
    let rows = found(api.list_as(&JOBS, Some(&object.namespace), &selector_of(object), Form::Table).await);
    let mut all: Vec<Named> = rows.iter().filter_map(from_row).collect();
    all.sort_by_key(|n| std::cmp::Reverse(n.at));
    all
}

fn serial_from_row(row: &Value) -> Option<Named> {
    let object = at(row, &["object"])?;
    let serial = annotation(object, "captf.io/state-backup-serial")?;
    serial.parse::<i64>().ok()?;
    let taken = annotation(object, "captf.io/state-backup-taken-at").and_then(parse_rfc3339);
    Some(Named { name: serial.to_string(), at: taken, ..from_row(row)? })
}

fn from_row(row: &Value) -> Option<Named> {
    let object = at(row, &["object"])?;
    Some(Named {
        name: text(object, &["metadata", "name"])?.to_string(),
        namespace: owned(object, &["metadata", "namespace"]),
        at: time(object, &["metadata", "creationTimestamp"]),
        about: String::new(),
    })
}

fn found(reading: Reading<Vec<Value>>) -> Vec<Value> {
    match reading {
        Reading::Found(rows) => rows,
        Reading::Absent | Reading::Unreadable(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_serial_is_read_from_annotations_and_nothing_else() {
        let row = |annotations: Value| {
            json!({"object": {"metadata": {"name": "captf-state-backup-x-41", "namespace": "a",
            "annotations": annotations}}})
        };
        let serial = |annotations: Value| serial_from_row(&row(annotations)).map(|n| (n.name, n.at.is_some()));
        for (annotations, expected) in [
            (
                json!({"captf.io/state-backup-serial": "41", "captf.io/state-backup-taken-at": "2026-01-10T08:00:00Z"}),
                Some(("41", true)),
            ),
            (json!({"captf.io/state-backup-serial": "41"}), Some(("41", false))),
            (json!({"captf.io/state-backup-serial": "x;reboot"}), None),
            (json!({}), None),
        ] {
            assert_eq!(serial(annotations), expected.map(|(s, t)| (s.to_string(), t)));
        }
    }

    #[tokio::test]
    async fn serials_are_listed_without_the_data_of_any_secret() {
        let object = ObjectRef {
            kind: crate::captf::kind::WorkloadKind::Cluster,
            namespace: "team-a".to_string(),
            name: "prod".to_string(),
        };
        let backup = |serial: &str, taken: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {
                "name": format!("captf-state-backup-{}-{serial}", object.suffix()), "namespace": "team-a",
                "labels": {"captf.io/state-backup": "true", "captf.io/state-backup-suffix": object.suffix()},
                "annotations": {"captf.io/state-backup-serial": serial, "captf.io/state-backup-taken-at": taken,
                    "captf.io/snapshot-data": "withheld", "captf.io/snapshot-data-keys": "tfstate"}}})
        };
        // Without a stranger the list would look like one that was taken with a selector.
        let stranger = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "team-a"}});
        let items = [backup("9", "2026-01-09T08:00:00Z"), stranger, backup("41", "2026-01-10T08:00:00Z")];
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
        let snapshot = crate::snapshot::load_bytes("secrets.json", list.into_bytes()).expect("a snapshot");
        let api = Api::new(std::sync::Arc::new(snapshot).into_client("team-a"), None);
        let whole = api.list(&SECRETS, Some("team-a"), &Selector::default()).await;
        assert!(whole.gap().is_some(), "data that was withheld cannot be read");
        let serials: Vec<String> = read_serials(&api, &object).await.into_iter().map(|n| n.name).collect();
        assert_eq!(serials, ["41", "9"], "newest first, by number");
    }

    #[test]
    fn only_held_state_locks_are_locks() {
        let lease = |name: &str, holder: Option<&str>| {
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "namespace": "a", "uid": "u", "resourceVersion": "1"}, "spec": {"holderIdentity": holder}})
        };
        for (name, holder, expected) in [
            ("lock-tfstate-default-f66792f9106e7299-c", Some("id-1"), Some("id-1")),
            ("lock-tfstate-default-f66792f9106e7299-c", Some(""), None),
            ("lock-tfstate-default-f66792f9106e7299-c", None, None),
            ("captf-claim-f66792f9106e7299-c", Some("id-1"), None),
        ] {
            assert_eq!(lock_from_lease(&lease(name, holder)).map(|n| n.name).as_deref(), expected, "{name} {holder:?}");
        }
    }
}
