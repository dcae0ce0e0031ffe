//! What the caller may do, as the API server says.

use serde_json::{Value, json};

use super::api::{Api, Failure, Resource};
use super::json::{at, owned};
use crate::facts::reading::Reading;

const REVIEWS: Resource = Resource {
    group: "authorization.k8s.io",
    version: "v1",
    plural: "selfsubjectaccessreviews",
    kind: "SelfSubjectAccessReview",
    namespaced: false,
};

/// May I do this there?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub verb: &'static str,
    pub group: &'static str,
    /// With a subresource behind a slash.
    pub resource: &'static str,
    /// `None`: all namespaces, or no namespace at all.
    pub namespace: Option<String>,
    pub namespaced: bool,
    /// As kubectl writes it.
    pub qualified: String,
}

/// Asks one question. Although it is sent as a create, it changes nothing: the API server answers a
/// SelfSubjectAccessReview and stores none.
pub async fn may(api: &Api, question: &Question) -> Reading<bool> {
    let (resource, sub) = question.resource.split_once('/').unwrap_or((question.resource, ""));
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "namespace": question.namespace.as_deref().unwrap_or_default(), "verb": question.verb,
            "group": question.group, "resource": resource, "subresource": sub,
        }},
    });
    match review(api, &body).await {
        Ok(answer) => Reading::Found(at(&answer, &["status", "allowed"]) == Some(&Value::Bool(true))),
        Err(failure) => failure.into_reading(&REVIEWS, None, None, "create", owned(&body, &["kind"])),
    }
}

async fn review(api: &Api, body: &Value) -> Result<Value, Failure> {
    let request = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())
        .map_err(|e| Failure::Other(e.to_string()))?;
    let answer = api.client.request::<Value>(request);
    let result = match api.timeout {
        Some(limit) => tokio::time::timeout(limit, answer).await.map_err(|_| Failure::TimedOut)?,
        None => answer.await,
    };
    result.map_err(Failure::from)
}
