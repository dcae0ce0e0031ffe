//! The runner's result document, as the controller reads it from the termination message.

use serde_json::Value;

use super::mask::mask;
use crate::facts::run::{ResultReading, RunError, RunResult, RunStep};

/// Kubernetes cuts a termination message here.
const LONGEST: usize = 4096;

/// Reads a termination message. Blank, truncated and foreign text all count as no result.
pub fn read_result(message: &str) -> ResultReading {
    if message.trim().is_empty() {
        return ResultReading::Nothing("the termination message is blank");
    }
    let Ok(value) = serde_json::from_str::<Value>(message) else {
        let cut = message.len() >= LONGEST;
        return ResultReading::Nothing(if cut {
            "the result was cut off"
        } else {
            "the termination message is not a result"
        });
    };
    if value.get("version").and_then(Value::as_i64) != Some(1) {
        return ResultReading::Nothing("the result is of another version");
    }
    let text = |v: &Value, key: &str| v.get(key).and_then(Value::as_str).unwrap_or_default().to_string();
    let list = |v: &Value, key: &str| v.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
    let steps = list(&value, "steps");
    ResultReading::Found(RunResult {
        op: text(&value, "op"),
        steps: steps
            .iter()
            .map(|s| RunStep {
                name: text(s, "name"),
                exit_code: s.get("exit").and_then(Value::as_i64).unwrap_or_default(),
                millis: s.get("seconds").and_then(Value::as_f64).map_or(0, millis),
            })
            .collect(),
        error: value.get("error").filter(|e| e.is_object()).map(|e| RunError {
            kind: text(e, "kind"),
            step: e.get("step").and_then(Value::as_str).map(str::to_string),
            summary: mask(&text(e, "tail")),
            resources: list(e, "resources").iter().filter_map(Value::as_str).map(mask).collect(),
        }),
        has_plan: value.get("plan").is_some_and(Value::is_object),
    })
}

/// Whole milliseconds, within what a run can last.
fn millis(seconds: f64) -> i64 {
    let bounded = (seconds * 1000.0).clamp(0.0, 1e12);
    #[expect(clippy::cast_possible_truncation, reason = "the value is clamped just above")]
    {
        bounded.round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_and_everything_else_is_no_result() {
        let doc = r#"{"version":1,"op":"apply","steps":[{"name":"init","exit":0,"seconds":3.2},{"name":"apply","exit":1,"seconds":60}],
            "error":{"kind":"step","step":"apply","tail":"Error: x: password = \"canary\"","resources":["a.b: no quota"]}}"#;
        let ResultReading::Found(result) = read_result(doc) else { panic!("not read") };
        assert_eq!(result.steps[0].millis, 3200);
        let error = result.error.expect("an error");
        assert_eq!((error.kind.as_str(), error.step.as_deref()), ("step", Some("apply")));
        assert_eq!(error.summary, "Error: x: password = ****");
        for none in ["", "  \n", "{", "panic: runtime error", r#"{"version":2}"#, "[]"] {
            assert!(matches!(read_result(none), ResultReading::Nothing(_)), "{none}");
        }
        assert_eq!(read_result(&"{\"a\":".repeat(900)), ResultReading::Nothing("the result was cut off"));
    }
}
