//! Raw, uncached GET and LIST with typed outcomes.
//!
//! A 404 counts as absent only when the API server itself says that this very name does not exist;
//! any other answer, a proxy's error page included, is a gap. Lists are read page by page.

use std::time::Duration;

use serde_json::Value;

use super::json;
use crate::facts::reading::{Gap, GapReason, Permission, Reading};

/// Items asked for in one page of a list.
const PAGE: u32 = 500;
/// How often a read is tried that an overloaded server turned away, and the first pause between two tries.
const READ_ATTEMPTS: u32 = 4;
const READ_PAUSE: Duration = Duration::from_millis(250);
/// How often a list whose continue token expired is started anew.
const LIST_ATTEMPTS: u32 = 3;

/// A REST resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resource {
    pub group: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    pub namespaced: bool,
}

impl Resource {
    const fn new(group: &'static str, version: &'static str, plural: &'static str, kind: &'static str) -> Self {
        Self { group, version, plural, kind, namespaced: true }
    }

    /// `pods`, `leases.coordination.k8s.io`: how RBAC and kubectl write it.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The path of the resource, of all of it or of one object.
    pub(super) fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let mut path = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        if let Some(namespace) = namespace {
            path.push_str(&format!("/namespaces/{}", encode(namespace)));
        }
        path.push_str(&format!("/{}", self.plural));
        if let Some(name) = name {
            path.push_str(&format!("/{}", encode(name)));
        }
        path
    }
}

pub const PODS: Resource = Resource::new("", "v1", "pods", "Pod");
pub const SECRETS: Resource = Resource::new("", "v1", "secrets", "Secret");
pub const EVENTS: Resource = Resource::new("", "v1", "events", "Event");
pub const NODES: Resource = Resource { namespaced: false, ..Resource::new("", "v1", "nodes", "Node") };
pub const JOBS: Resource = Resource::new("batch", "v1", "jobs", "Job");
pub const LEASES: Resource = Resource::new("coordination.k8s.io", "v1", "leases", "Lease");

/// How the server shall represent what it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Full,
    /// Rows of kubectl's columns with metadata, and no payload.
    Table,
}

/// Selectors of a list.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    pub labels: Option<String>,
    pub fields: Option<String>,
}

impl Selector {
    /// A label selector.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { labels: Some(selector.into()), fields: None }
    }

    /// A field selector.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { labels: None, fields: Some(selector.into()) }
    }
}

/// What part of a container's log is read. A read without a limit does not exist.
#[derive(Debug, Clone, Default)]
pub struct LogPart {
    pub container: String,
    pub tail_lines: Option<u32>,
    pub limit_bytes: Option<u32>,
    pub since_seconds: Option<i64>,
    pub previous: bool,
}

impl LogPart {
    fn query(&self, follow: bool) -> String {
        let mut query = format!("container={}", encode(&self.container));
        for (name, value) in [
            ("tailLines", self.tail_lines.map(i64::from)),
            ("limitBytes", self.limit_bytes.map(i64::from)),
            ("sinceSeconds", self.since_seconds),
        ] {
            query.push_str(&value.map(|v| format!("&{name}={v}")).unwrap_or_default());
        }
        query.push_str(if self.previous { "&previous=true" } else { "" });
        query.push_str(if follow { "&follow=true" } else { "" });
        query
    }
}

const POD_LOGS: Resource = Resource::new("", "v1", "pods/log", "Log of Pod");

/// The reader that every command uses.
#[derive(Clone)]
pub struct Api {
    pub(super) client: kube::Client,
    pub(super) timeout: Option<Duration>,
}

impl Api {
    /// A reader over a client; `timeout` bounds each single request, `None` waits for ever.
    pub fn new(client: kube::Client, timeout: Option<Duration>) -> Self {
        Self { client, timeout }
    }

    /// GET of one object by name.
    pub async fn get(&self, resource: &Resource, namespace: Option<&str>, name: &str) -> Reading<Value> {
        self.get_as(resource, namespace, name, Form::Full).await
    }

    /// GET of one object in a given form. In [`Form::Table`] the result is the single row.
    pub async fn get_as(&self, resource: &Resource, namespace: Option<&str>, name: &str, form: Form) -> Reading<Value> {
        let what = describe(resource, namespace, Some(name));
        if name.is_empty() || name.contains('/') || name == "." || name == ".." {
            return Reading::Unreadable(gap(what, GapReason::Malformed, "not a name that an object can have"));
        }
        let path = resource.path(namespace, Some(name));
        let value = match self.request(&path, form).await {
            Ok(value) => value,
            Err(failure) => return failure.into_reading(resource, namespace, Some(name), "get", what),
        };
        let object = match form {
            Form::Full => value,
            Form::Table => match rows(value) {
                Some(mut rows) if rows.len() == 1 => rows.remove(0),
                _ => {
                    return Reading::Unreadable(gap(
                        what,
                        GapReason::Malformed,
                        "the answer is not a table of one row",
                    ));
                }
            },
        };
        let meta = if form == Form::Table { json::at(&object, &["object"]) } else { Some(&object) };
        let is_it = meta.is_some_and(|o| {
            json::text(o, &["metadata", "name"]) == Some(name)
                && namespace.is_none_or(|ns| json::text(o, &["metadata", "namespace"]) == Some(ns))
        });
        if is_it {
            Reading::Found(object)
        } else {
            Reading::Unreadable(gap(what, GapReason::Malformed, "the answer is about another object"))
        }
    }

    /// GET of a path that is no resource (`/version`).
    pub async fn read_path(&self, path: &str, what: &str) -> Reading<Value> {
        match self.request(path, Form::Full).await {
            Ok(value) => Reading::Found(value),
            Err(failure) => {
                let none = Resource { group: "", version: "", plural: "", kind: "", namespaced: false };
                failure.into_reading(&none, None, None, "get", what.to_string())
            }
        }
    }

    /// Part of the log of one container.
    pub async fn read_log(&self, namespace: &str, pod: &str, part: &LogPart) -> Reading<String> {
        let what = format!("log of Pod {namespace}/{pod}, container {}", part.container);
        let answer = match log_request(namespace, pod, part, false) {
            Ok(request) => self.client.request_text(request),
            Err(e) => return Reading::Unreadable(gap(what, GapReason::Malformed, &e)),
        };
        let result = match self.timeout {
            Some(limit) => match tokio::time::timeout(limit, answer).await {
                Ok(result) => result.map_err(Failure::from),
                Err(_) => Err(Failure::TimedOut),
            },
            None => answer.await.map_err(Failure::from),
        };
        match result {
            Ok(text) => Reading::Found(text),
            Err(failure) => failure.into_reading(&POD_LOGS, Some(namespace), Some(pod), "get", what),
        }
    }

    /// The log of one container as it grows. It ends when the container does.
    pub async fn follow_log(
        &self,
        namespace: &str,
        pod: &str,
        part: &LogPart,
    ) -> Reading<impl futures::io::AsyncBufRead + use<>> {
        let what = format!("log of Pod {namespace}/{pod}, container {}", part.container);
        match log_request(namespace, pod, part, true) {
            Ok(request) => match self.client.request_stream(request).await {
                Ok(stream) => Reading::Found(stream),
                Err(e) => Failure::from(e).into_reading(&POD_LOGS, Some(namespace), Some(pod), "get", what),
            },
            Err(e) => Reading::Unreadable(gap(what, GapReason::Malformed, &e)),
        }
    }

    /// LIST of all matching objects, page by page. `Absent` is never returned.
    pub async fn list(&self, resource: &Resource, namespace: Option<&str>, selector: &Selector) -> Reading<Vec<Value>> {
        self.list_as(resource, namespace, selector, Form::Full).await
    }

    /// LIST in a given form. In [`Form::Table`] the result is the rows.
    pub async fn list_as(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: &Selector,
        form: Form,
    ) -> Reading<Vec<Value>> {
        let what = describe(resource, namespace, None);
        for attempt in 1..=LIST_ATTEMPTS {
            match self.list_once(resource, namespace, selector, form).await {
                Ok(items) => return Reading::Found(items),
                Err(Failure::Api(status)) if status.code == 410 && attempt < LIST_ATTEMPTS => {}
                Err(failure) => return failure.into_reading(resource, namespace, None, "list", what),
            }
        }
        Reading::Unreadable(gap(what, GapReason::Failed, "the list kept expiring while it was read"))
    }

    async fn list_once(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        selector: &Selector,
        form: Form,
    ) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        let mut token = String::new();
        loop {
            let mut path = format!("{}?limit={PAGE}", resource.path(namespace, None));
            if let Some(labels) = &selector.labels {
                path.push_str(&format!("&labelSelector={}", encode(labels)));
            }
            if let Some(fields) = &selector.fields {
                path.push_str(&format!("&fieldSelector={}", encode(fields)));
            }
            if !token.is_empty() {
                path.push_str(&format!("&continue={}", encode(&token)));
            }
            let page = self.request(&path, form).await?;
            token = json::owned(&page, &["metadata", "continue"]);
            let items = match form {
                Form::Table => rows(page),
                Form::Full => take_array(page, "items"),
            };
            all.extend(items.ok_or(Failure::Malformed("the answer is not a list"))?);
            if token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// A read, tried again where the server asks for it (429, 503). Only reads are: a write is sent once.
    async fn request(&self, path: &str, form: Form) -> Result<Value, Failure> {
        for attempt in 1.. {
            match self.request_once(path, form).await {
                Err(Failure::Api(status)) if attempt < READ_ATTEMPTS && matches!(status.code, 429 | 503) => {
                    tokio::time::sleep(READ_PAUSE * attempt).await;
                }
                result => return result,
            }
        }
        Err(Failure::TimedOut)
    }

    async fn request_once(&self, path: &str, form: Form) -> Result<Value, Failure> {
        let accept = match form {
            Form::Full => "application/json",
            Form::Table => "application/json;as=Table;v=v1;g=meta.k8s.io",
        };
        let request = http::Request::get(path)
            .header(http::header::ACCEPT, accept)
            .body(Vec::new())
            .map_err(|e| Failure::Other(e.to_string()))?;
        let answer = self.client.request::<Value>(request);
        let result = match self.timeout {
            Some(limit) => tokio::time::timeout(limit, answer).await.map_err(|_| Failure::TimedOut)?,
            None => answer.await,
        };
        result.map_err(Failure::from)
    }
}

fn log_request(namespace: &str, pod: &str, part: &LogPart, follow: bool) -> Result<http::Request<Vec<u8>>, String> {
    let path = format!("{}/log?{}", PODS.path(Some(namespace), Some(pod)), part.query(follow));
    http::Request::get(path).body(Vec::new()).map_err(|e| e.to_string())
}

/// What went wrong with a request, before it is put into words.
pub(super) enum Failure {
    Api(Box<kube::core::Status>),
    TimedOut,
    Malformed(&'static str),
    Other(String),
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Api(status),
            kube::Error::SerdeError(_) => Self::Malformed("the answer is not JSON"),
            other => {
                let chain = error_chain(&other);
                // hyper-timeout and the connector both report their limits as plain text only.
                if chain.contains("timed out") || chain.contains("deadline has elapsed") {
                    Self::TimedOut
                } else {
                    Self::Other(chain)
                }
            }
        }
    }
}

impl Failure {
    pub(super) fn into_reading<T>(
        self,
        resource: &Resource,
        namespace: Option<&str>,
        name: Option<&str>,
        verb: &'static str,
        what: String,
    ) -> Reading<T> {
        let (reason, detail) = match self {
            Self::TimedOut => (GapReason::TimedOut, "no answer within the request timeout".to_string()),
            Self::Malformed(why) => (GapReason::Malformed, why.to_string()),
            Self::Other(chain) => (GapReason::Failed, chain),
            Self::Api(status) => {
                let named = status.details.as_ref().map(|d| d.name.as_str()).unwrap_or_default();
                let reason = match (status.code, status.reason.as_str()) {
                    (404, "NotFound") if name.is_some_and(|n| n == named) => return Reading::Absent,
                    (404, "NotFound") if named.is_empty() => GapReason::NotInstalled,
                    (404, "Failed to parse error data") if status.message == "404 page not found" => {
                        GapReason::NotInstalled
                    }
                    (424, "NotInSnapshot") => GapReason::NotInSnapshot,
                    (403, _) => GapReason::Forbidden,
                    (401, _) => GapReason::Unauthorized,
                    (504, _) => GapReason::TimedOut,
                    _ => GapReason::Failed,
                };
                let detail = if status.reason == "Failed to parse error data" {
                    format!("HTTP status {}", status.code)
                } else {
                    status.message
                };
                (reason, detail)
            }
        };
        let permission = (reason == GapReason::Forbidden).then(|| Permission {
            verb,
            resource: resource.qualified(),
            namespace: namespace.unwrap_or_default().to_string(),
        });
        Reading::Unreadable(Gap { what, reason, detail, permission })
    }
}

/// An error and its causes on one line, without repeating what a cause already said.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}

/// `Pod team-a/x`, `Secrets in team-a`, `Nodes`: how a gap names what was asked for.
pub(super) fn describe(resource: &Resource, namespace: Option<&str>, name: Option<&str>) -> String {
    match (name, namespace) {
        (Some(name), Some(ns)) => format!("{} {ns}/{name}", resource.kind),
        (Some(name), None) => format!("{} {name}", resource.kind),
        (None, Some(ns)) => format!("{}s in {ns}", resource.kind),
        (None, None) if resource.namespaced => format!("{}s in all namespaces", resource.kind),
        (None, None) => format!("{}s", resource.kind),
    }
}

fn gap(what: String, reason: GapReason, detail: &str) -> Gap {
    Gap { what, reason, detail: detail.to_string(), permission: None }
}

fn rows(table: Value) -> Option<Vec<Value>> {
    if json::text(&table, &["kind"]) != Some("Table") {
        return None;
    }
    // A table without rows may leave the key out or set it to null.
    match table.get("rows") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(_) => take_array(table, "rows"),
    }
}

fn take_array(mut value: Value, key: &str) -> Option<Vec<Value>> {
    match value.get_mut(key).map(Value::take) {
        Some(Value::Array(items)) => Some(items),
        Some(Value::Null) => Some(Vec::new()),
        _ => None,
    }
}

/// Percent-encodes everything that is not unreserved in a URL.
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u16, reason: &str, message: &str, details: Option<&str>) -> Reading<()> {
        let status: kube::core::Status = serde_json::from_value(serde_json::json!({
            "status": "Failure", "code": code, "reason": reason, "message": message,
            "details": details.map(|n| serde_json::json!({"name": n, "kind": "pods"})),
        }))
        .expect("a status");
        Failure::Api(Box::new(status)).into_reading(&PODS, Some("team-a"), Some("x"), "get", "Pod team-a/x".to_string())
    }

    #[test]
    fn only_the_servers_own_word_about_this_name_is_absence() {
        assert_eq!(read(404, "NotFound", "pods \"x\" not found", Some("x")), Reading::Absent);
        for (code, reason, message, details, expected) in [
            (404, "NotFound", "pods \"y\" not found", Some("y"), GapReason::Failed),
            (404, "NotFound", "the server could not find the requested resource", None, GapReason::NotInstalled),
            (404, "Failed to parse error data", "404 page not found", None, GapReason::NotInstalled),
            (404, "Failed to parse error data", "<html>gone</html>", None, GapReason::Failed),
            (403, "Forbidden", "no", Some("x"), GapReason::Forbidden),
            (401, "Unauthorized", "no", None, GapReason::Unauthorized),
            (424, "NotInSnapshot", "no pods", None, GapReason::NotInSnapshot),
            (500, "InternalError", "etcd", Some("x"), GapReason::Failed),
            (504, "Timeout", "late", None, GapReason::TimedOut),
        ] {
            let reading = read(code, reason, message, details);
            assert_eq!(reading.gap().map(|g| g.reason), Some(expected), "{code} {reason} {message}");
        }
    }

    #[test]
    fn a_forbidden_read_names_the_permission() {
        let reading = read(403, "Forbidden", "no", None);
        let permission = reading.gap().and_then(|g| g.permission.clone()).expect("a permission");
        assert_eq!(
            (permission.verb, permission.resource.as_str(), permission.namespace.as_str()),
            ("get", "pods", "team-a")
        );
    }

    #[test]
    fn paths_are_encoded() {
        assert_eq!(PODS.path(Some("a b"), Some("x/y")), "/api/v1/namespaces/a%20b/pods/x%2Fy");
        assert_eq!(LEASES.path(None, None), "/apis/coordination.k8s.io/v1/leases");
    }
}
