//! Create, update, patch and delete of single objects, with typed failures.
//!
//! An update is a PUT of the object as read and a patch names its version, so both carry the resourceVersion
//! that was judged. Nothing here is tried twice: whether a write that got no answer happened is for the caller to read.

use std::time::Duration;

use serde_json::{Value, json};

use super::api::{Api, Failure, Resource, describe};
use super::json::owned;
use crate::facts::reading::{Gap, GapReason, Reading};
use crate::facts::write::WriteFailure;

/// A write waits no longer than this for its answer, even where reads wait for ever.
const LONGEST: Duration = Duration::from_secs(30);

impl Api {
    /// The same with a limit on each request that is at most `limit`.
    pub fn within(&self, limit: Duration) -> Self {
        let timeout = self.timeout.map_or(limit, |own| own.min(limit));
        Self::new(self.client.clone(), Some(timeout))
    }

    /// POST of a new object.
    pub async fn create(&self, resource: &Resource, namespace: &str, object: &Value) -> Result<Value, WriteFailure> {
        let name = owned(object, &["metadata", "name"]);
        let place = Place { resource, namespace, name: &name, verb: "create" };
        self.write(http::Method::POST, &resource.path(Some(namespace), None), object, place).await
    }

    /// PUT of an object as it was read and changed; it fails with `Conflict` if the object moved on.
    pub async fn update(&self, resource: &Resource, namespace: &str, object: &Value) -> Result<Value, WriteFailure> {
        let name = owned(object, &["metadata", "name"]);
        let place = Place { resource, namespace, name: &name, verb: "update" };
        self.write(http::Method::PUT, &resource.path(Some(namespace), Some(&name)), object, place).await
    }

    /// A merge patch on one object. It must carry `metadata.resourceVersion` of what was judged. A dry run is
    /// checked by the server and not stored.
    pub async fn merge_patch(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        patch: &Value,
        dry_run: bool,
    ) -> Result<Value, WriteFailure> {
        debug_assert!(!owned(patch, &["metadata", "resourceVersion"]).is_empty(), "a write carries what was judged");
        let place = Place { resource, namespace, name, verb: "patch" };
        let dry = if dry_run { "&dryRun=All" } else { "" };
        let path = format!("{}?fieldManager=kubectl-captf{dry}", resource.path(Some(namespace), Some(name)));
        self.write(http::Method::PATCH, &path, patch, place).await
    }

    /// DELETE of exactly this object: UID and resourceVersion are preconditions.
    pub async fn delete_exactly(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        uid: &str,
        resource_version: &str,
    ) -> Result<(), WriteFailure> {
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
        });
        let place = Place { resource, namespace, name, verb: "delete" };
        let path = resource.path(Some(namespace), Some(name));
        self.write(http::Method::DELETE, &path, &options, place).await.map(drop)
    }

    /// POST to a subresource (`token`).
    pub async fn create_sub(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        subresource: &str,
        body: &Value,
    ) -> Result<Value, WriteFailure> {
        let path = format!("{}/{subresource}", resource.path(Some(namespace), Some(name)));
        let written = self.write(http::Method::POST, &path, body, Place { resource, namespace, name, verb: "create" });
        let mut written = written.await;
        if let Err(WriteFailure::Refused(Gap { permission: Some(missing), .. })) = &mut written {
            missing.resource = format!("{}/{subresource}", missing.resource);
        }
        written
    }

    /// POST of a review, which stores nothing. `Absent` is never returned.
    pub async fn review(&self, resource: &Resource, body: &Value) -> Reading<Value> {
        let place = || Place { resource, namespace: "", name: "", verb: "create" };
        match self.write(http::Method::POST, &resource.path(None, None), body, place()).await {
            Ok(value) => Reading::Found(value),
            Err(WriteFailure::Refused(gap) | WriteFailure::NoAnswer(gap)) => Reading::Unreadable(gap),
            // What answers so is no API server.
            Err(WriteFailure::Exists | WriteFailure::Conflict | WriteFailure::NotFound) => {
                Reading::Unreadable(place().gap(GapReason::Malformed, "not an answer to a review".to_string()))
            }
        }
    }

    async fn write(
        &self,
        method: http::Method,
        path: &str,
        body: &Value,
        place: Place<'_>,
    ) -> Result<Value, WriteFailure> {
        let kind = if method == http::Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::ACCEPT, "application/json")
            .header(http::header::CONTENT_TYPE, kind)
            .body(body.to_string().into_bytes())
            .map_err(|e| WriteFailure::Refused(place.gap(GapReason::Failed, e.to_string())))?;
        let limit = self.timeout.unwrap_or(LONGEST).min(LONGEST);
        let answer = tokio::time::timeout(limit, self.client.request::<Value>(request)).await;
        match answer {
            Err(_) => Err(WriteFailure::NoAnswer(place.gap(GapReason::TimedOut, "no answer in time".to_string()))),
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(place.failure(Failure::from(error))),
        }
    }
}

/// What was being written, for the words of a failure.
struct Place<'a> {
    resource: &'a Resource,
    namespace: &'a str,
    name: &'a str,
    verb: &'static str,
}

impl Place<'_> {
    fn gap(&self, reason: GapReason, detail: String) -> Gap {
        Gap { what: self.what(), reason, detail, permission: None }
    }

    fn what(&self) -> String {
        let namespace = (!self.namespace.is_empty()).then_some(self.namespace);
        format!("{} {}", self.verb, describe(self.resource, namespace, Some(self.name)))
    }

    fn failure(&self, failure: Failure) -> WriteFailure {
        if let Failure::Api(status) = &failure {
            match (status.code, status.reason.as_str()) {
                (409, "AlreadyExists") => return WriteFailure::Exists,
                (409, _) => return WriteFailure::Conflict,
                // Only the server's own word about this very name is absence.
                (404, "NotFound") if status.details.as_ref().is_some_and(|d| d.name == self.name) => {
                    return WriteFailure::NotFound;
                }
                _ => {}
            }
        }
        // A server error or a cut connection does not say whether the write happened.
        let answered = matches!(&failure, Failure::Api(status) if (400..500).contains(&status.code));
        let namespace = (!self.namespace.is_empty()).then_some(self.namespace);
        let gap = match failure.into_reading::<()>(self.resource, namespace, None, self.verb, self.what()) {
            Reading::Unreadable(gap) => gap,
            Reading::Found(()) | Reading::Absent => self.gap(GapReason::Failed, String::new()),
        };
        if answered { WriteFailure::Refused(gap) } else { WriteFailure::NoAnswer(gap) }
    }
}
