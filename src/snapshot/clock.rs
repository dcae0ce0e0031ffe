//! About when a snapshot was taken: the newest time that something in it had already happened.
//!
//! Times that lie ahead (expiry, deadlines, schedules) and times people wrote (spec, annotations, labels,
//! data) are left out. What managedFields say counts.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The newest time in any of the objects, with where it was found.
pub(crate) fn newest<'a>(objects: impl Iterator<Item = &'a Value>) -> Option<(Timestamp, String)> {
    let mut best: Option<(Timestamp, String)> = None;
    for object in objects {
        // One nanosecond less, so that an equal time is seen: of equals the first place by name is told, in
        // whatever order the objects come.
        let floor = best.as_ref().and_then(|b| b.0.checked_sub(SignedDuration::from_nanos(1)).ok());
        let mut scan = Scan { object, newest: floor, place: None, path: Vec::new() };
        scan.value(object, 0);
        if let (Some(at), Some(place)) = (scan.newest, scan.place) {
            let found = (at, format!("{} {place}", subject(object)));
            let better = best.as_ref().is_none_or(|b| found.0 > b.0 || (found.0 == b.0 && found.1 < b.1));
            if better {
                best = Some(found);
            }
        }
    }
    best
}

enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

struct Scan<'a> {
    object: &'a Value,
    newest: Option<Timestamp>,
    place: Option<String>,
    path: Vec<Step<'a>>,
}

impl<'a> Scan<'a> {
    fn value(&mut self, value: &'a Value, depth: usize) {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.path.push(Step::Index(at));
                    self.value(item, depth + 1);
                    self.path.pop();
                }
            }
            Value::Object(fields) => {
                for (field, item) in fields {
                    if !self.counts(field, depth) {
                        continue;
                    }
                    self.path.push(Step::Field(field));
                    self.value(item, depth + 1);
                    self.path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn counts(&self, field: &str, depth: usize) -> bool {
        let kind = self.object.get("kind").and_then(Value::as_str).unwrap_or_default();
        let parent = match self.path.as_slice() {
            [Step::Field(parent)] => *parent,
            _ => "",
        };
        if depth == 0 {
            let data = matches!(kind, "Secret" | "ConfigMap") && matches!(field, "data" | "stringData" | "binaryData");
            return !data && (field != "spec" || kind == "Lease");
        }
        if parent == "spec" {
            return matches!(field, "renewTime" | "acquireTime");
        }
        if parent == "metadata" && matches!(field, "annotations" | "labels" | "deletionTimestamp") {
            return false;
        }
        !is_ahead(field)
    }

    fn text(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let looks = (20..=40).contains(&bytes.len()) && bytes[4] == b'-' && bytes[10] == b'T' && bytes[13] == b':';
        if !looks {
            return;
        }
        let Ok(at) = text.parse::<Timestamp>() else {
            return;
        };
        if self.newest.is_none_or(|newest| at > newest) {
            self.newest = Some(at);
            self.place = Some(self.path.iter().map(step_text).collect());
        }
    }
}

fn step_text(step: &Step<'_>) -> String {
    match step {
        Step::Field(field) => format!(".{field}"),
        Step::Index(at) => format!("[{at}]"),
    }
}

fn is_ahead(field: &str) -> bool {
    let field = field.to_ascii_lowercase();
    ["notafter", "expir", "renewal", "nextschedule", "deletiontimestamp", "deadline"]
        .iter()
        .any(|part| field.contains(part))
}

fn subject(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/metadata/namespace") {
        "" => format!("{} {}", text("/kind"), text("/metadata/name")),
        ns => format!("{} {ns}/{}", text("/kind"), text("/metadata/name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_counts() {
        let old = "2024-01-01T00:00:00Z";
        let new = "2024-06-01T00:00:00Z";
        let base =
            |kind: &str| json!({"kind": kind, "metadata": {"name": "x", "namespace": "a", "creationTimestamp": old}});
        for (kind, pointer, value, want) in [
            ("Pod", "status", json!({"startTime": new}), Some(".status.startTime")),
            (
                "Pod",
                "status",
                json!({"conditions": [{"lastTransitionTime": new}]}),
                Some(".status.conditions[0].lastTransitionTime"),
            ),
            ("Pod", "spec", json!({"renewTime": new}), None),
            ("Lease", "spec", json!({"renewTime": new}), Some(".spec.renewTime")),
            ("Lease", "spec", json!({"other": new}), None),
            ("Certificate", "status", json!({"notAfter": new, "renewalTime": new}), None),
            ("Token", "status", json!({"expirationTimestamp": new, "expiry": new, "nextScheduleTime": new}), None),
            ("Secret", "data", json!({"at": new}), None),
            ("ConfigMap", "data", json!({"at": new}), None),
            ("Pod", "status", json!({"message": format!("seen at {new}")}), None),
            ("Event", "lastTimestamp", json!("2024-06-01T02:00:00.5+02:00"), Some(".lastTimestamp")),
        ] {
            let mut object = base(kind);
            object[pointer] = value;
            let want = want.unwrap_or(".metadata.creationTimestamp");
            assert_eq!(newest([&object].into_iter()).unwrap().1, format!("{kind} a/x {want}"));
        }
        let mut object = base("Pod");
        object["metadata"]["annotations"] = json!({"a": new});
        object["metadata"]["labels"] = json!({"a": new});
        object["metadata"]["deletionTimestamp"] = json!(new);
        assert_eq!(newest([&object].into_iter()).unwrap().1, "Pod a/x .metadata.creationTimestamp");
        object["metadata"]["managedFields"] = json!([{"time": new}]);
        assert_eq!(newest([&object].into_iter()).unwrap().1, "Pod a/x .metadata.managedFields[0].time");
        assert!(newest(std::iter::empty()).is_none());
    }
}
