//! Core Events and events.k8s.io Events: one object with two spellings, converted both ways.

use serde_json::{Map, Value};

/// The fields that differ, core first.
const FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// The Event as the group asked for spells it: the core group is the empty one.
pub(crate) fn as_group(event: &Value, group: &str) -> Value {
    let Some(fields) = event.as_object() else {
        return event.clone();
    };
    let (version, core) = if group.is_empty() { ("v1", true) } else { ("events.k8s.io/v1", false) };
    if event.get("apiVersion").and_then(Value::as_str) == Some(version) {
        return event.clone();
    }
    let rename = |field: &str| {
        let pair = FIELDS.iter().find(|(old, new)| if core { *new == field } else { *old == field });
        pair.map_or(field.to_owned(), |(old, new)| (if core { *old } else { *new }).to_owned())
    };
    let mut converted: Map<String, Value> =
        fields.iter().map(|(field, value)| (rename(field), value.clone())).collect();
    converted.insert("apiVersion".to_owned(), Value::String(version.to_owned()));
    Value::Object(converted)
}

/// The Event in core spelling without the empty fields, which the two spellings write differently.
pub(crate) fn comparable(event: &Value) -> Value {
    let mut event = as_group(event, "");
    if let Some(fields) = event.as_object_mut() {
        fields.retain(|_, value| match value {
            Value::Null => false,
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => !map.is_empty(),
            Value::Number(number) => number.as_i64() != Some(0),
            _ => true,
        });
    }
    event
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn there_and_back() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R",
            "involvedObject": {"kind": "Pod"}, "message": "m", "count": 2, "lastTimestamp": "t",
            "reportingComponent": "c", "eventTime": null});
        let new = as_group(&core, "events.k8s.io");
        assert_eq!(
            new,
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "reason": "R",
            "regarding": {"kind": "Pod"}, "note": "m", "deprecatedCount": 2, "deprecatedLastTimestamp": "t",
            "reportingController": "c", "eventTime": null})
        );
        assert_eq!(as_group(&new, ""), core);
        assert_eq!(comparable(&new), comparable(&core));
    }
}
