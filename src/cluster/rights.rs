//! What the caller may do, as the API server says.

use serde_json::{Value, json};

use super::api::{Api, Resource};
use super::json::at;
use crate::facts::reading::{Gap, GapReason, Reading};

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
}

/// Asks one question. Although it is sent as a create, it changes nothing: the API server answers a
/// SelfSubjectAccessReview and stores none. `Unreadable` when it does not say; `Absent` is never returned.
pub async fn may(api: &Api, question: &Question) -> Reading<bool> {
    let (resource, sub) = question.resource.split_once('/').unwrap_or((question.resource, ""));
    let body = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "namespace": question.namespace.as_deref().unwrap_or_default(), "verb": question.verb,
            "group": question.group, "resource": resource, "subresource": sub,
        }},
    });
    api.review(&REVIEWS, &body).await.and_then(|answer| match at(&answer, &["status", "allowed"]) {
        Some(Value::Bool(allowed)) => Reading::Found(*allowed),
        _ => Reading::Unreadable(Gap {
            what: format!("whether you may {} {}", question.verb, question.resource),
            reason: GapReason::Malformed,
            detail: "the answer does not say".to_string(),
            permission: None,
        }),
    })
}
