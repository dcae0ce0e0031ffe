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

/// What the end of the log of one container shows, masked, and the Secrets that could not be masked by value.
pub async fn read_log_facts(
    api: &Api,
    namespace: &str,
    pod: &PodFacts,
    container: &str,
) -> (Reading<LogFacts>, Vec<Gap>) {
    let part = LogPart {
        container: container.to_string(),
        tail_lines: Some(TAIL_LINES),
        limit_bytes: Some(LIMIT_BYTES),
        ..LogPart::default()
    };
    let (text, (redactor, gaps)) =
        tokio::join!(api.read_log(namespace, &pod.name, &part), read_redactor(api, namespace, pod));
    // Where there is no text, nothing had to be masked.
    let gaps = if text.found().is_some() { gaps } else { Vec::new() };
    (text.map(|text| crate::captf::run_log::read_log(&text, false, &redactor)), gaps)
}

/// The values of the Secrets from which the pod takes its credentials, so that they are not printed when the
/// runtime logs one. They are kept in memory for that only. The gaps say which could not be read.
pub async fn read_redactor(api: &Api, namespace: &str, pod: &PodFacts) -> (Redactor, Vec<Gap>) {
    let mut redactor = Redactor::default();
    let mut gaps = Vec::new();
    for secret in &pod.credentials {
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
            Reading::Unreadable(gap) => gaps.push(not_masked(gap)),
        }
    }
    (redactor, gaps)
}

/// Says beside what could not be read what that means for the log.
fn not_masked(gap: Gap) -> Gap {
    Gap { what: format!("{}, so that the log is masked only where it looks like a credential", gap.what), ..gap }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::path::PathBuf;
    use std::sync::Arc;

    use futures::AsyncBufReadExt;
    use kube::client::Body;

    use super::*;
    use crate::cluster::pods::read_pods_of_job;
    use crate::snapshot::{SnapshotSource, load};

    const JOB: &str = "captf-m-web-apply-a3-5e1f00";

    fn api() -> Api {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/jobs/history");
        let snapshot = load(&SnapshotSource::Path(folder)).expect("the case of the corpus");
        Api::new(Arc::new(snapshot).into_client("team-a"), None)
    }

    #[tokio::test]
    async fn values_of_the_credentials_secret_are_known_and_masked() {
        let api = api();
        let pods = read_pods_of_job(&api, "team-a", JOB).await.found().cloned().expect("pods");
        let (redactor, gaps) = read_redactor(&api, "team-a", &pods[0]).await;
        assert!(gaps.is_empty() && !redactor.is_empty(), "{redactor:?} {gaps:?}");
        assert_eq!(redactor.mask("attempt 3 of CANARY-mirrored-credential"), "attempt 3 of ****");
        let (facts, gaps) = read_log_facts(&api, "team-a", &pods[0], "source").await;
        assert!(gaps.is_empty(), "{gaps:?}");
        let facts = facts.found().expect("a log");
        assert!(facts.errors[0].starts_with("Error: creating EC2 Instance"), "{facts:?}");
        assert!(!format!("{facts:?}").contains("CANARY"), "{facts:?}");
    }

    #[tokio::test]
    async fn a_log_is_followed_line_by_line_with_the_asked_for_part() {
        let service = tower::service_fn(|request: http::Request<Body>| async move {
            let asked = request.uri().to_string();
            Ok::<_, Infallible>(http::Response::new(Body::from(format!("{asked}\nsecond\n").into_bytes())))
        });
        let api = Api::new(kube::Client::new(service, "team-a"), None);
        let part =
            LogPart { container: "source".into(), tail_lines: Some(2), since_seconds: Some(60), ..LogPart::default() };
        let Reading::Found(stream) = api.follow_log("team-a", "a-pod", &part).await else {
            panic!("no stream");
        };
        let mut stream = std::pin::pin!(stream);
        let mut text = String::new();
        while stream.read_line(&mut text).await.expect("a line") > 0 {}
        let asked = "/api/v1/namespaces/team-a/pods/a-pod/log?container=source&tailLines=2&sinceSeconds=60&follow=true";
        assert_eq!(text.lines().collect::<Vec<_>>(), [asked, "second"]);
    }
}
