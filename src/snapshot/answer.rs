//! HTTP answers of the snapshot API: JSON bodies and Kubernetes Status objects.

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::Full;
use serde::Serialize;
use serde_json::{Value, json};

use super::kinds::Key;

/// The body kube's client takes.
pub(crate) type Answer = Response<Full<Bytes>>;

/// A JSON answer with code 200.
pub(crate) fn ok(body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(bytes) => respond(StatusCode::OK, "application/json", bytes),
        Err(_) => status(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "the answer could not be written", None),
    }
}

/// A plain text answer with code 200.
pub(crate) fn text(bytes: Vec<u8>) -> Answer {
    respond(StatusCode::OK, "text/plain", bytes)
}

/// 424: the snapshot cannot tell.
pub(crate) fn not_in_snapshot(message: &str) -> Answer {
    status(StatusCode::FAILED_DEPENDENCY, "NotInSnapshot", message, None)
}

/// 404: the object is known not to exist.
pub(crate) fn not_found(key: &Key, name: &str) -> Answer {
    let details = json!({"name": name, "group": key.group, "kind": key.plural});
    status(StatusCode::NOT_FOUND, "NotFound", &format!("{} \"{name}\" not found", key.display()), Some(details))
}

/// 404 without a name: the version of the kind is not served.
pub(crate) fn no_such_resource() -> Answer {
    status(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource", None)
}

/// 405: a snapshot cannot do that.
pub(crate) fn not_allowed(message: &str) -> Answer {
    status(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message, None)
}

/// 400: the request makes no sense.
pub(crate) fn bad_request(message: &str) -> Answer {
    status(StatusCode::BAD_REQUEST, "BadRequest", message, None)
}

fn status(code: StatusCode, reason: &str, message: &str, details: Option<Value>) -> Answer {
    let mut body = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code.as_u16(),
    });
    if let Some(details) = details {
        body["details"] = details;
    }
    respond(code, "application/json", body.to_string().into_bytes())
}

fn respond(code: StatusCode, content_type: &'static str, bytes: Vec<u8>) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(bytes)));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}
