//! The few writes of this tool. A request is sent once: what became of one without an answer is settled
//! by reading, never by sending it again.

use std::time::Duration;

use serde_json::Value;

use super::api::{Api, Resource, error_chain};
use super::json;

/// What became of a patch.
#[derive(Debug)]
pub enum Written {
    /// The object as the server stored it (or would, for a dry run).
    Done(Box<Value>),
    /// The object has changed since the version that the patch carries.
    Conflict,
    /// The server says that this object does not exist.
    Gone,
    /// The server refused, in its own words.
    Refused { code: u16, message: String },
    /// No answer came: it may have been stored or not.
    Unknown(String),
}

/// A merge patch on one object. The patch must carry `metadata.resourceVersion` of what was judged.
pub async fn merge_patch(
    api: &Api,
    resource: &Resource,
    namespace: &str,
    name: &str,
    patch: &Value,
    dry_run: bool,
) -> Written {
    debug_assert!(json::text(patch, &["metadata", "resourceVersion"]).is_some(), "a write carries what was judged");
    let mut path = resource.path(Some(namespace), Some(name));
    path.push_str("?fieldManager=kubectl-captf");
    if dry_run {
        path.push_str("&dryRun=All");
    }
    let request = http::Request::patch(path)
        .header(http::header::ACCEPT, "application/json")
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(patch.to_string().into_bytes());
    let request = match request {
        Ok(request) => request,
        Err(e) => return Written::Refused { code: 0, message: e.to_string() },
    };
    let (client, timeout) = api.parts();
    let answer = client.request::<Value>(request);
    let answer = match timeout {
        Some(limit) => match tokio::time::timeout(limit.max(Duration::from_secs(1)), answer).await {
            Ok(answer) => answer,
            Err(_) => return Written::Unknown("no answer within the request timeout".to_string()),
        },
        None => answer.await,
    };
    match answer {
        Ok(value) => Written::Done(Box::new(value)),
        Err(kube::Error::Api(status)) => match (status.code, status.reason.as_str()) {
            (409, _) => Written::Conflict,
            (404, "NotFound") if status.details.as_ref().is_some_and(|d| d.name == name) => Written::Gone,
            // A gateway's answer says nothing of what the server behind it did.
            (502..=504, _) => Written::Unknown(status.message),
            (403, _) => {
                let message = format!("{} (needs patch {})", status.message, resource.qualified());
                Written::Refused { code: status.code, message }
            }
            _ => Written::Refused { code: status.code, message: status.message },
        },
        Err(other) => Written::Unknown(error_chain(&other)),
    }
}
