//! The Secrets of a state as table rows: metadata and a key count, no payload.

use std::collections::HashMap;

use serde_json::Value;

use super::api::{Api, Form, SECRETS, Selector};
use super::json::{at, items, map, name, owned, time};
use crate::captf::keys;
use crate::captf::names::state_secret;
use crate::facts::lock::StateFacts;
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::facts::state::{KeyPresence, StateSecret};

/// The selector by which the controller lists an object's state.
pub fn state_selector(suffix: &str) -> Selector {
    Selector::labels(format!(
        "{}=true,{}={suffix},{}=default",
        keys::TFSTATE,
        keys::TFSTATE_SUFFIX,
        keys::TFSTATE_WORKSPACE
    ))
}

/// The state Secrets by name and by label, without any payload.
pub async fn read_state(api: &Api, object: &ObjectRef) -> StateFacts {
    let selector = state_selector(&object.suffix());
    let rows = api.list_as(&SECRETS, Some(&object.namespace), &selector, Form::Table).await;
    let selected = rows.map(|rows| rows.iter().map(secret_from_row).collect::<Vec<_>>());
    // Only a base that the selector does not match takes a request of its own.
    let listed = selected.found().and_then(|all| base_and_selected(object, all).0);
    let base = match listed {
        Some(base) => Reading::Found(base),
        None => read_base(api, object).await,
    };
    StateFacts { base, selected, content: None, backups: None }
}

/// The base Secret by its name, whatever its labels.
pub async fn read_base(api: &Api, object: &ObjectRef) -> Reading<StateSecret> {
    let base = state_secret(&object.suffix());
    let row = api.get_as(&SECRETS, Some(&object.namespace), &base, Form::Table).await;
    row.map(|row| secret_from_row(&row))
}

/// Rows of a list over several namespaces, by namespace.
pub fn rows_by_namespace(rows: &[Value]) -> HashMap<String, Vec<StateSecret>> {
    let mut by_namespace: HashMap<String, Vec<StateSecret>> = HashMap::new();
    for row in rows {
        let namespace = owned(row, &["object", "metadata", "namespace"]);
        by_namespace.entry(namespace).or_default().push(secret_from_row(row));
    }
    by_namespace
}

/// Out of all state Secrets of a namespace: the object's base by name, and what its selector matches.
pub fn base_and_selected(object: &ObjectRef, rows: &[StateSecret]) -> (Option<StateSecret>, Vec<StateSecret>) {
    let suffix = object.suffix();
    let base_name = state_secret(&suffix);
    let label = |s: &StateSecret, key: &str, value: &str| s.labels.get(key).map(String::as_str) == Some(value);
    let matches = |s: &&StateSecret| {
        label(s, keys::TFSTATE, "true")
            && label(s, keys::TFSTATE_SUFFIX, &suffix)
            && label(s, keys::TFSTATE_WORKSPACE, "default")
    };
    let base = rows.iter().find(|s| s.name == base_name).cloned();
    (base, rows.iter().filter(matches).cloned().collect())
}

/// How many Secrets belong to backups of an object, complete or not.
pub async fn read_backup_count(api: &Api, object: &ObjectRef) -> Reading<usize> {
    let selector =
        Selector::labels(format!("captf.io/state-backup=true,captf.io/state-backup-suffix={}", object.suffix()));
    api.list_as(&SECRETS, Some(&object.namespace), &selector, Form::Table).await.map(|rows| rows.len())
}

/// A table row of kubectl's columns Name, Type, Data, Age, with the metadata beside it.
fn secret_from_row(row: &Value) -> StateSecret {
    let object = at(row, &["object"]).unwrap_or(&Value::Null);
    let keys_held = items(row, &["cells"]).get(2).and_then(|c| match c {
        Value::Number(n) => n.as_i64(),
        Value::String(s) => s.parse().ok(),
        _ => None,
    });
    StateSecret {
        name: name(object),
        labels: map(object, &["metadata", "labels"]),
        created: time(object, &["metadata", "creationTimestamp"]),
        retained_from: map(object, &["metadata", "labels"]).remove(keys::RETAINED_FROM),
        state_key: match (keys_held, key_is_managed(object)) {
            (Some(0), _) => KeyPresence::Missing,
            (Some(_), Some(true) | None) => KeyPresence::Present,
            (Some(_), Some(false)) => KeyPresence::Missing,
            (None, _) => KeyPresence::Unknown,
        },
    }
}

/// Whether managedFields name the data key `tfstate`; `None` when they say nothing about data.
fn key_is_managed(object: &Value) -> Option<bool> {
    let mut says_something = false;
    for entry in items(object, &["metadata", "managedFields"]) {
        if let Some(Value::Object(fields)) = at(entry, &["fieldsV1", "f:data"]) {
            if fields.contains_key("f:tfstate") {
                return Some(true);
            }
            says_something |= fields.keys().any(|k| k != ".");
        }
    }
    says_something.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_key_is_judged_without_the_payload() {
        let row = |count: Value, managed: Value| {
            json!({"cells": ["n", "Opaque", count, "1d"],
                   "object": {"metadata": {"name": "n", "managedFields": managed}}})
        };
        let fields = |key: &str| json!([{"fieldsV1": {"f:data": {".": {}, key: {}}}}]);
        for (count, managed, expected) in [
            (json!(1), fields("f:tfstate"), KeyPresence::Present),
            (json!(1), json!([]), KeyPresence::Present),
            (json!(0), json!([]), KeyPresence::Missing),
            (json!(1), fields("f:other"), KeyPresence::Missing),
            (json!(null), json!([]), KeyPresence::Unknown),
        ] {
            assert_eq!(secret_from_row(&row(count.clone(), managed)).state_key, expected, "{count}");
        }
    }
}
