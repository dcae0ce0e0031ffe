//! Logs of runner pods, with limits, and the values that must not be shown with them.

use k8s_openapi::ByteString;
use serde_json::Value;

use super::api::{Api, LogPart, SECRETS};
use super::json::at;
use crate::captf::mask::Redactor;
use crate::facts::pod::PodFacts;
use crate::facts::reading::{Gap, Reading};
use crate::facts::run::LogFacts;

/// How much of a log is read to find a cause: the end of it.
const TAIL_LINES: u32 = 400;
const LIMIT_BYTES: u32 = 256 * 1024;

/// What the end of the log of one container shows, masked.
pub async fn read_log_facts(api: &Api, namespace: &str, pod: &PodFacts, container: &str) -> Reading<LogFacts> {
    let part = LogPart {
        container: container.to_string(),
        tail_lines: Some(TAIL_LINES),
        limit_bytes: Some(LIMIT_BYTES),
        ..LogPart::default()
    };
    let (text, redactor) =
        tokio::join!(api.read_log(namespace, &pod.name, &part), async { read_redactor(api, namespace, pod).await.0 });
    text.map(|text| crate::captf::run_log::read_log(&text, false, &redactor))
}

/// The values of the Secrets from which the pod takes its credentials, so that they are not printed when the
/// runtime logs one. They are kept in memory for that only. The gaps say which could not be read.
pub async fn read_redactor(api: &Api, namespace: &str, pod: &PodFacts) -> (Redactor, Vec<Gap>) {
    let mut redactor = Redactor::default();
    let mut gaps = Vec::new();
    for secret in &pod.env_from {
        match api.get(&SECRETS, Some(namespace), secret).await {
            Reading::Found(value) => {
                let data = at(&value, &["data"]).and_then(Value::as_object).into_iter().flatten();
                for (_, encoded) in data {
                    redactor.add(encoded.as_str().unwrap_or_default());
                    let decoded = serde_json::from_value::<ByteString>(encoded.clone()).ok();
                    redactor.add(&decoded.and_then(|b| String::from_utf8(b.0).ok()).unwrap_or_default());
                }
            }
            Reading::Absent => {}
            Reading::Unreadable(gap) => gaps.push(gap),
        }
    }
    (redactor, gaps)
}
