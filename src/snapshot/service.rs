//! The Kubernetes API of a snapshot as a tower service: paths, parameters and paging.
//!
//! Read only and in process. What is found, absent or unreadable is decided in `store`; this turns it
//! into answers a `kube::Client` cannot tell from a server's.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, Request, header};
use kube::client::Body;
use serde::Serialize;
use serde_json::{Value, json};
use tower::Service;

use super::answer::{self, Answer};
use super::events;
use super::kinds::{self, Key};
use super::logs::{LogQuery, NoLog};
use super::selector::{FieldSelector, LabelSelector};
use super::store::{Refusal, Snapshot};
use super::table::{Form, metadata_only, table, withheld};

/// Answers requests from a snapshot.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotService(Arc<Snapshot>);

impl SnapshotService {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self(snapshot)
    }
}

impl Service<Request<Body>> for SnapshotService {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        ready(Ok(respond(&self.0, &request)))
    }
}

/// What a path names.
struct Target<'a> {
    group: &'a str,
    version: &'a str,
    namespace: Option<&'a str>,
    plural: &'a str,
    name: Option<&'a str>,
    subresource: Option<&'a str>,
}

fn target<'a>(parts: &[&'a str]) -> Option<Target<'a>> {
    let (group, version, rest) = match parts {
        ["api", version, rest @ ..] => ("", *version, rest),
        ["apis", group, version, rest @ ..] => (*group, *version, rest),
        _ => return None,
    };
    let (namespace, rest) = match rest {
        ["namespaces", ns, rest @ ..] if !rest.is_empty() => (Some(*ns), rest),
        _ => (None, rest),
    };
    let (plural, rest) = rest.split_first()?;
    if rest.len() > 2 {
        return None;
    }
    let (name, subresource) = (rest.first().copied(), rest.get(1).copied());
    Some(Target { group, version, namespace, plural, name, subresource })
}

fn respond(snapshot: &Snapshot, request: &Request<Body>) -> Answer {
    if request.method() != Method::GET {
        return answer::not_allowed("a snapshot cannot be changed");
    }
    let query = Query::parse(request.uri().query().unwrap_or_default());
    if query.is_true("watch") {
        return answer::not_allowed("a snapshot cannot be watched");
    }
    let path: Vec<String> =
        request.uri().path().split('/').filter(|p| !p.is_empty()).map(|p| decoded(p, false)).collect();
    let parts: Vec<&str> = path.iter().map(String::as_str).collect();
    let Some(target) = target(&parts) else {
        return answer::not_in_snapshot(&format!("/{} is not in the snapshot", parts.join("/")));
    };
    let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    let form = Form::of_accept(accept.unwrap_or_default());
    let key = Key::new(target.group, target.plural);
    match (target.name, target.subresource) {
        (None, _) => list(snapshot, &target, &key, &query, form),
        (Some(name), None | Some("status")) => get(snapshot, &target, &key, name, form),
        (Some(pod), Some("log")) if target.group.is_empty() && target.plural == "pods" => {
            log(snapshot, target.namespace.unwrap_or_default(), pod, &query)
        }
        (Some(name), Some(sub)) => {
            answer::not_in_snapshot(&format!("the {sub} of {} {name} is not in the snapshot", key.display()))
        }
    }
}

fn get(snapshot: &Snapshot, target: &Target<'_>, key: &Key, name: &str, form: Form) -> Answer {
    let found = match snapshot.get(key, target.version, target.namespace.unwrap_or_default(), name) {
        Ok(object) => spelled(target, key, object),
        Err(refusal) => return refused(key, name, refusal),
    };
    match form {
        Form::Metadata => answer::ok(&metadata_only(&found)),
        Form::Table => match table(key, &[&found], json!({"resourceVersion": ""}), now(snapshot)) {
            Ok(table) => answer::ok(&table),
            Err(why) => answer::not_in_snapshot(&why),
        },
        Form::Whole => match withheld(key, &found) {
            Some(why) => answer::not_in_snapshot(&why),
            None => answer::ok(&found),
        },
    }
}

/// A list with its items borrowed from the snapshot.
#[derive(Serialize)]
struct List<'a> {
    kind: String,
    #[serde(rename = "apiVersion")]
    api_version: String,
    metadata: Value,
    items: Vec<Cow<'a, Value>>,
}

fn list(snapshot: &Snapshot, target: &Target<'_>, key: &Key, query: &Query, form: Form) -> Answer {
    let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default());
    let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default());
    let (labels, fields) = match (labels, fields) {
        (Ok(labels), Ok(fields)) => (labels, fields),
        (Err(why), _) | (_, Err(why)) => return answer::bad_request(&why),
    };
    let objects = match snapshot.list(key, target.version, target.namespace) {
        Ok(objects) => objects,
        Err(refusal) => return refused(key, "", refusal),
    };
    let matching: Vec<Cow<'_, Value>> = objects
        .into_iter()
        .map(|object| spelled(target, key, object))
        .filter(|object| labels.matches(object) && fields.matches(object))
        .collect();
    let (page, metadata) = match page(matching, query) {
        Ok(page) => page,
        Err(why) => return answer::bad_request(&why),
    };
    if form == Form::Table {
        let objects: Vec<&Value> = page.iter().map(AsRef::as_ref).collect();
        return match table(key, &objects, metadata, now(snapshot)) {
            Ok(table) => answer::ok(&table),
            Err(why) => answer::not_in_snapshot(&why),
        };
    }
    if form == Form::Metadata {
        let items = page.iter().map(|object| Cow::Owned(metadata_only(object))).collect();
        let (kind, api_version) = ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned());
        return answer::ok(&List { kind, api_version, metadata, items });
    }
    if let Some(why) = page.iter().find_map(|object| withheld(key, object)) {
        return answer::not_in_snapshot(&why);
    }
    let kind = page.first().and_then(|object| object.get("kind")).and_then(Value::as_str);
    let kind = format!("{}List", kind.or_else(|| kinds::kind_of(key)).unwrap_or_default());
    let api_version = if target.group.is_empty() {
        target.version.to_owned()
    } else {
        format!("{}/{}", target.group, target.version)
    };
    answer::ok(&List { kind, api_version, metadata, items: page })
}

/// The page asked for, and the metadata of its list. The token is the number of items before the page.
fn page<'a>(mut items: Vec<Cow<'a, Value>>, query: &Query) -> Result<(Vec<Cow<'a, Value>>, Value), String> {
    let number = |name: &str| match query.get(name) {
        None | Some("") => Ok(None),
        Some(text) => text.parse::<usize>().map(Some).map_err(|_| format!("{name} is not valid")),
    };
    let start = number("continue")?.unwrap_or(0);
    if start > items.len() {
        return Err("continue is not valid".to_owned());
    }
    let limit = number("limit")?.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let end = start.saturating_add(limit).min(items.len());
    let left = items.len() - end;
    items.truncate(end);
    items.drain(..start);
    let metadata = if left == 0 {
        json!({"resourceVersion": ""})
    } else {
        json!({"resourceVersion": "", "continue": end.to_string(), "remainingItemCount": left})
    };
    Ok((items, metadata))
}

fn log(snapshot: &Snapshot, ns: &str, pod: &str, query: &Query) -> Answer {
    if query.is_true("follow") {
        return answer::not_allowed("a snapshot cannot be watched");
    }
    let request = LogQuery {
        container: query.get("container").filter(|name| !name.is_empty()).map(str::to_owned),
        previous: query.is_true("previous"),
        timestamps: query.is_true("timestamps"),
        tail_lines: query.get("tailLines").and_then(|n| n.parse().ok()),
        limit_bytes: query.get("limitBytes").and_then(|n| n.parse().ok()),
        since: query.get("sinceTime").and_then(|time| time.parse().ok()),
        since_seconds: query.get("sinceSeconds").and_then(|n| n.parse().ok()),
    };
    match snapshot.logs.get(ns, pod, &request, now(snapshot)) {
        Ok(bytes) => answer::text(bytes),
        Err(NoLog::Missing(why)) => answer::not_in_snapshot(&why),
        Err(NoLog::Ambiguous(why)) => answer::bad_request(&why),
    }
}

fn refused(key: &Key, name: &str, refusal: Refusal) -> Answer {
    match refusal {
        Refusal::OtherVersion => answer::no_such_resource(),
        Refusal::Absent => answer::not_found(key, name),
        Refusal::Unreadable(why) => answer::not_in_snapshot(&why),
    }
}

/// The object as the group asked for spells it: only Events have two spellings.
fn spelled<'a>(target: &Target<'_>, key: &Key, object: &'a Value) -> Cow<'a, Value> {
    if *key == Key::new("", "events") {
        Cow::Owned(events::as_group(object, target.group))
    } else {
        Cow::Borrowed(object)
    }
}

fn now(snapshot: &Snapshot) -> Option<jiff::Timestamp> {
    snapshot.newest_timestamp().map(|(at, _)| at)
}

/// The parameters of a request.
struct Query(Vec<(String, String)>);

impl Query {
    fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name, true), decoded(value, true))
        };
        Self(pairs.map(pair).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn is_true(&self, name: &str) -> bool {
        matches!(self.get(name), Some("true" | "1" | "True"))
    }
}

/// Text without its percent escapes; `+` is a blank in a query.
fn decoded(text: &str, in_query: bool) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(byte) = bytes.get(at) {
        match (*byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high * 16 + low);
                at += 2;
            }
            (b'+', _, _) if in_query => out.push(b' '),
            (other, _, _) => out.push(other),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}
