//! What of an object goes into a bundle.
//!
//! Of a Secret its metadata, the names of its keys and their sizes; of a Node what judgements look at; of everything else
//! the whole, without the copy that `kubectl apply` keeps and with what looks like a credential masked.

use serde_json::{Map, Value, json};

use super::mask::{MASKED, mask, names_a_credential};

/// The annotations by which a snapshot knows that data was left out. The reader is `snapshot::table`.
const WITHHELD: &str = "captf.io/snapshot-data";
const WITHHELD_KEYS: &str = "captf.io/snapshot-data-keys";
const WITHHELD_SIZES: &str = "captf.io/snapshot-data-sizes";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A Secret without its data: keys and sizes in bytes stay, as annotations.
pub fn secret(object: &Value) -> Value {
    let data = object.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
    let sizes: Vec<String> = data.iter().map(|(key, value)| format!("{key}={}", decoded_len(value))).collect();
    let keys: Vec<&str> = data.keys().map(String::as_str).collect();
    let mut kept = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
        "type": object.get("type").cloned().unwrap_or_else(|| json!("Opaque")),
    });
    without_last_applied(&mut kept);
    if let Some(metadata) = kept.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
        annotations[WITHHELD] = json!("withheld");
        annotations[WITHHELD_KEYS] = json!(keys.join(","));
        annotations[WITHHELD_SIZES] = json!(sizes.join(","));
    }
    kept
}

fn decoded_len(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default().trim_end_matches('=');
    text.len() * 3 / 4
}

/// A Node: its identity, conditions, taints and addresses.
pub fn node(object: &Value) -> Value {
    let pick = |from: &str, fields: &[&str]| {
        let mut kept = Map::new();
        for field in fields {
            if let Some(value) = object.get(from).and_then(|v| v.get(*field)) {
                kept.insert((*field).to_string(), value.clone());
            }
        }
        Value::Object(kept)
    };
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": pick("metadata", &["name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp"]),
        "spec": pick("spec", &["taints", "unschedulable", "providerID"]),
        "status": pick("status", &["conditions", "addresses"]),
    })
}

/// Anything else: whole, with credentials masked.
pub fn other(object: &Value) -> Value {
    let mut kept = object.clone();
    without_last_applied(&mut kept);
    mask_value(&mut kept);
    kept
}

fn without_last_applied(object: &mut Value) {
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}

/// Masks strings anywhere; an environment variable is judged by its name, a field by its own.
fn mask_value(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(masked) = mask(text) {
                *text = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_value),
        Value::Object(map) => {
            let secret = map.get("name").and_then(Value::as_str).is_some_and(names_a_credential);
            for (key, item) in map.iter_mut() {
                let named = key == "value" && secret || is_value_of_credential(key, item);
                match item {
                    Value::String(text) if named => *text = MASKED.to_string(),
                    item => mask_value(item),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text field named like a credential; names of Secrets (`secretName`, `dataSecretName`) are no credentials.
fn is_value_of_credential(key: &str, value: &Value) -> bool {
    let lower = key.to_ascii_lowercase();
    value.is_string()
        && names_a_credential(key)
        && !lower.ends_with("name")
        && !lower.ends_with("path")
        && key != "key"
        && !key.contains("captf.io/")
        && !key.starts_with("f:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_keeps_names_and_sizes_only() {
        let whole = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": "s", "annotations": {LAST_APPLIED: "{\"data\":{\"a\":\"Q0FOQVJZ\"}}", "kept": "yes"}},
            "data": {"tfstate": "Q0FOQVJZ", "b": ""}, "stringData": {"c": "CANARY"}});
        let kept = secret(&whole);
        assert_eq!(kept["metadata"]["annotations"][WITHHELD_KEYS], "tfstate,b");
        assert_eq!(kept["metadata"]["annotations"][WITHHELD_SIZES], "tfstate=6,b=0");
        assert_eq!(kept["metadata"]["annotations"]["kept"], "yes");
        let text = kept.to_string();
        assert!(!text.contains("Q0FOQVJZ") && !text.contains("CANARY"), "{text}");
    }

    #[test]
    fn pods_lose_credentials_and_keep_the_rest() {
        let pod = json!({"metadata": {"annotations": {LAST_APPLIED: "x", "captf.io/state-lock-version": "7"}}, "spec": {"containers": [{
            "env": [{"name": "DB_PASSWORD", "value": "CANARY"}, {"name": "MODE", "value": "fast"},
                    {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
            "args": ["--token=CANARY", "-lock-timeout=300s"]}],
            "volumes": [{"secret": {"secretName": "captf-inputs-c-prod"}}], "automountServiceAccountToken": false}});
        let kept = other(&pod);
        assert!(!kept.to_string().contains("CANARY"), "{kept}");
        for (pointer, expected) in [
            ("/spec/containers/0/env/1/value", "fast"),
            ("/spec/containers/0/args/1", "-lock-timeout=300s"),
            ("/spec/containers/0/env/2/valueFrom/secretKeyRef/key", "k"),
            ("/spec/volumes/0/secret/secretName", "captf-inputs-c-prod"),
            ("/metadata/annotations/captf.io~1state-lock-version", "7"),
        ] {
            assert_eq!(kept.pointer(pointer).and_then(Value::as_str), Some(expected), "{pointer}");
        }
    }
}
