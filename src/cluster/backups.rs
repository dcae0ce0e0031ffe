//! Backup and state Secrets by their metadata: table rows, never a payload.

use serde_json::Value;

use super::api::{Api, Form, SECRETS, Selector};
use super::json::{at, items, map, name, owned, time};
use super::state::state_selector;
use crate::captf::keys;
use crate::captf::names::state_secret;
use crate::facts::backup::{BackupSet, SecretMeta};
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::facts::restore::StateSecrets;
use crate::runbook::backup_sets::sets_from_secrets;

/// The selector by which the controller lists an object's backups.
pub fn backup_selector(suffix: &str) -> Selector {
    Selector::labels(format!("captf.io/state-backup=true,captf.io/state-backup-suffix={suffix}"))
}

/// Every backup set of an object, complete or not, in the controller's order.
pub async fn read_backup_sets(api: &Api, object: &ObjectRef) -> Reading<Vec<BackupSet>> {
    let rows = read_rows(api, &object.namespace, &backup_selector(&object.suffix())).await;
    rows.map(|secrets| sets_from_secrets(&secrets))
}

/// The Secrets of all backups of a namespace.
pub async fn read_all_backups(api: &Api, namespace: &str) -> Reading<Vec<SecretMeta>> {
    read_rows(api, namespace, &Selector::labels("captf.io/state-backup=true")).await
}

/// The state Secrets, strays with their names, and the records of applies.
pub async fn read_state_secrets(api: &Api, object: &ObjectRef) -> StateSecrets {
    let suffix = object.suffix();
    let namespace = &object.namespace;
    let record = |word: &str| format!("captf-{word}-{}-{}", object.kind.kindshort(), object.name);
    let (base_name, attempt, applied) = (state_secret(&suffix), record("inputs"), record("applied"));
    let selector = state_selector(&suffix);
    let (selected, base, attempt, applied) = tokio::join!(
        read_rows(api, namespace, &selector),
        read_row(api, namespace, &base_name),
        read_row(api, namespace, &attempt),
        read_row(api, namespace, &applied),
    );
    // Chunks that lost the backend's labels still carry the object's own.
    let own = Selector::labels(format!(
        "{}={},{}={}",
        keys::OWNER_KIND,
        object.kind.kind(),
        keys::OWNER_NAME,
        crate::captf::names::label_value(&object.name)
    ));
    let unlabelled = read_rows(api, namespace, &own).await.map(|all| {
        let known = selected.found().map(Vec::as_slice).unwrap_or_default();
        all.into_iter().filter(|s| s.name.starts_with(&base_name) && !known.iter().any(|k| k.name == s.name)).collect()
    });
    StateSecrets { selected, base, unlabelled, attempt, applied }
}

/// The Secrets of the live state as the controller selects them.
pub async fn read_selected(api: &Api, object: &ObjectRef) -> Reading<Vec<SecretMeta>> {
    read_rows(api, &object.namespace, &state_selector(&object.suffix())).await
}

async fn read_rows(api: &Api, namespace: &str, selector: &Selector) -> Reading<Vec<SecretMeta>> {
    let rows = api.list_as(&SECRETS, Some(namespace), selector, Form::Table).await;
    rows.map(|rows| rows.iter().map(meta_from_row).collect())
}

async fn read_row(api: &Api, namespace: &str, secret: &str) -> Reading<SecretMeta> {
    api.get_as(&SECRETS, Some(namespace), secret, Form::Table).await.map(|row| meta_from_row(&row))
}

/// A table row of kubectl's columns Name, Type, Data, Age, with the metadata beside it.
fn meta_from_row(row: &Value) -> SecretMeta {
    let object = at(row, &["object"]).unwrap_or(&Value::Null);
    let mut annotations = map(object, &["metadata", "annotations"]);
    annotations.retain(|key, _| key.starts_with("captf.io/"));
    SecretMeta {
        name: name(object),
        uid: owned(object, &["metadata", "uid"]),
        resource_version: owned(object, &["metadata", "resourceVersion"]),
        labels: map(object, &["metadata", "labels"]),
        annotations,
        created: time(object, &["metadata", "creationTimestamp"]),
        deleting: at(object, &["metadata", "deletionTimestamp"]).is_some(),
        keys: items(row, &["cells"]).get(2).and_then(|cell| match cell {
            Value::Number(n) => n.as_i64(),
            Value::String(s) => s.parse().ok(),
            _ => None,
        }),
    }
}

/// A whole Secret as a copy that joins neither a backup set nor the live state when it is applied: under another
/// name, without labels and CAPTF's annotations. What was taken off is kept as text in one annotation.
pub async fn read_secret_copy(api: &Api, namespace: &str, secret: &str) -> Reading<Value> {
    api.get(&SECRETS, Some(namespace), secret).await.map(copy_of_secret)
}

/// The annotation that keeps name, labels and annotations of the original.
const ORIGINAL: &str = "kubectl.captf.io/original";

fn copy_of_secret(mut secret: Value) -> Value {
    let mut annotations = map(&secret, &["metadata", "annotations"]);
    annotations.retain(|key, _| key.starts_with("captf.io/") || key == "encoding");
    let original = serde_json::json!({
        "name": name(&secret), "labels": map(&secret, &["metadata", "labels"]), "annotations": annotations,
    });
    serde_json::json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {
            "name": format!("copy-of-{}", name(&secret)),
            "namespace": owned(&secret, &["metadata", "namespace"]),
            "annotations": {ORIGINAL: original.to_string()},
        },
        "type": at(&secret, &["type"]).cloned().unwrap_or_else(|| "Opaque".into()),
        "data": secret.get_mut("data").map(Value::take).unwrap_or_else(|| serde_json::json!({})),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_that_repeat_the_data_are_dropped() {
        let row = serde_json::json!({"cells": ["n", "Opaque", 1, "1d"], "object": {"metadata": {"name": "n",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\":\"CANARY\"}",
                            "captf.io/state-backup-serial": "5"}}}});
        let meta = meta_from_row(&row);
        assert!(!format!("{meta:?}").contains("CANARY"));
        assert_eq!(meta.annotations.len(), 1);
        assert_eq!(meta.keys, Some(1));
    }

    #[test]
    fn a_copy_joins_nothing() {
        let secret = serde_json::json!({
            "kind": "Secret", "type": "Opaque", "data": {"tfstate": "H4s="},
            "metadata": {"name": "tfstate-default-x-c", "namespace": "team-a", "uid": "1", "resourceVersion": "2",
                "finalizers": ["captf.io/state-protection"], "ownerReferences": [{"uid": "3"}],
                "labels": {"tfstate": "true", "captf.io/state-backup": "true"},
                "annotations": {"captf.io/state-backup-set": "s", "encoding": "gzip",
                    "kubectl.kubernetes.io/last-applied-configuration": "{}"}}});
        let copy = copy_of_secret(secret);
        let metadata = at(&copy, &["metadata"]).expect("metadata");
        let keys: Vec<&String> = metadata.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["name", "namespace", "annotations"]);
        assert_eq!(name(&copy), "copy-of-tfstate-default-x-c");
        let annotations = map(metadata, &["annotations"]);
        assert_eq!(annotations.keys().collect::<Vec<_>>(), [ORIGINAL]);
        assert!(annotations[ORIGINAL].contains("captf.io/state-backup-set"));
        assert!(!annotations[ORIGINAL].contains("last-applied"));
        assert_eq!(copy["data"]["tfstate"], "H4s=");
    }
}
