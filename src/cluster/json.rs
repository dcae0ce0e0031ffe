//! Small lenient accessors over raw API objects: a missing or mistyped field reads as absent.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::captf::time::parse_rfc3339;

/// The value at a path of object keys.
pub fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |v, key| v.get(key))
}

/// The string at a path.
pub fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(value, path)?.as_str()
}

/// The string at a path, owned; empty when absent.
pub fn owned(value: &Value, path: &[&str]) -> String {
    text(value, path).unwrap_or_default().to_string()
}

/// The integer at a path.
pub fn int(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path)?.as_i64()
}

/// The RFC 3339 time at a path.
pub fn time(value: &Value, path: &[&str]) -> Option<Timestamp> {
    parse_rfc3339(text(value, path)?)
}

/// Whether the boolean at a path is true.
pub fn is_true(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The elements of the array at a path; none when absent.
pub fn items<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The string map at a path (labels, annotations).
pub fn map(value: &Value, path: &[&str]) -> BTreeMap<String, String> {
    let Some(object) = at(value, path).and_then(Value::as_object) else {
        return BTreeMap::new();
    };
    object.iter().filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_string()))).collect()
}

/// One annotation.
pub fn annotation<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    at(value, &["metadata", "annotations"])?.get(key)?.as_str()
}

/// One label.
pub fn label<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    at(value, &["metadata", "labels"])?.get(key)?.as_str()
}

/// `metadata.name`, empty when absent.
pub fn name(value: &Value) -> String {
    owned(value, &["metadata", "name"])
}

/// The controller owner reference (`controller: true`).
pub fn controller_uid(value: &Value) -> Option<&str> {
    items(value, &["metadata", "ownerReferences"])
        .iter()
        .find(|r| is_true(r, &["controller"]))
        .and_then(|r| text(r, &["uid"]))
}
