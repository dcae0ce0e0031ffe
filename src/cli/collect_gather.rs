//! What `collect` reads and packs: objects stripped of what no bundle may hold, and ends of logs.

use std::path::Path;

use futures::StreamExt;
use serde_json::{Value, json};

use super::collect_view::{CollectionView, TakenView, UnreadableView};
use super::error::CommandError;
use super::session::Session;
use crate::bundle::archive::{Files, write_new};
use crate::bundle::mask::mask;
use crate::bundle::strip;
use crate::captf::keys;
use crate::captf::time::utc;
use crate::cluster::collect::{Listed, read_log_tail, read_namespace, read_nodes};
use crate::facts::reading::{Gap, Reading};
use crate::output::view::API_VERSION;
use crate::runbook::code::Code;

/// Logs read at the same time.
const CONCURRENCY: usize = 8;

/// What is gathered on the way.
#[derive(Default)]
pub struct Gathered {
    files: Files,
    taken: Vec<TakenView>,
    gaps: Vec<Gap>,
}

impl Gathered {
    /// Everything that judgements read in a namespace.
    pub async fn namespace(&mut self, session: &Session, namespace: &str) {
        let mut logs = Vec::new();
        for listed in read_namespace(&session.api, namespace).await {
            if listed.resource.kind == "Pod"
                && let Reading::Found(pods) = &listed.items
            {
                logs.extend(pods.iter().filter(|p| is_runner(p)).flat_map(containers));
            }
            self.add(Some(namespace), listed);
        }
        let reads = logs.into_iter().map(|(pod, container)| async move {
            let log = read_log_tail(&session.api, namespace, &pod, &container).await;
            (pod, container, log)
        });
        let reads: Vec<_> = futures::stream::iter(reads).buffered(CONCURRENCY).collect().await;
        let (mut count, mut bytes) = (0, 0);
        for (pod, container, log) in reads {
            match log {
                Reading::Found(text) => {
                    let text = mask(&text);
                    self.files.add_log(namespace, &pod, &container, &text);
                    (count, bytes) = (count + 1, bytes + text.len());
                }
                Reading::Absent => {}
                Reading::Unreadable(gap) => self.gaps.push(gap),
            }
        }
        if count > 0 {
            self.took(Some(namespace), "pods/log", count, bytes);
        }
    }

    /// All Nodes.
    pub async fn nodes(&mut self, session: &Session) {
        let listed = read_nodes(&session.api).await;
        self.add(None, listed);
    }

    fn add(&mut self, namespace: Option<&str>, listed: Listed) {
        let resource = listed.resource;
        let items = match listed.items {
            Reading::Found(items) => items,
            Reading::Absent => Vec::new(),
            Reading::Unreadable(gap) => return self.gaps.push(gap),
        };
        let stripped: Vec<Value> = items
            .iter()
            .map(|item| match resource.kind {
                "Secret" => strip::secret(item),
                "Node" => strip::node(item),
                _ => strip::other(item),
            })
            .collect();
        let before = self.files.bytes();
        self.files.add_all(namespace, resource.group, resource.plural, &stripped);
        let bytes = self.files.bytes() - before;
        self.took(namespace, &resource.qualified(), stripped.len(), bytes);
    }

    fn took(&mut self, namespace: Option<&str>, resource: &str, count: usize, bytes: usize) {
        let namespace = namespace.map(str::to_string);
        self.taken.push(TakenView { namespace, resource: resource.to_string(), count, bytes });
    }

    /// What is in the bundle, and the time it was taken at: its newest, by which `--from` counts ages.
    pub fn mark(&mut self, session: &Session, now: jiff::Timestamp) {
        let gaps: Vec<Value> = self.gaps.iter().map(|g| json!({"what": g.what, "reason": g.reason.as_str()})).collect();
        self.files.add_json(
            "bundle.json".to_string(),
            &json!({
                "apiVersion": API_VERSION, "kind": "Bundle",
                "metadata": {"name": "bundle", "creationTimestamp": utc(now)},
                "writtenBy": concat!("kubectl-captf v", env!("CARGO_PKG_VERSION")),
                "context": session.source.context,
                "secretData": "withheld", "unreadable": gaps,
            }),
        );
    }

    /// Writes the one new file.
    pub fn write(self, to: &Path, now: jiff::Timestamp) -> Result<CollectionView, CommandError> {
        let failed = |e: std::io::Error| {
            if e.kind() == std::io::ErrorKind::AlreadyExists {
                CommandError::exists(to)
            } else {
                CommandError::failed(format!("write `{}`", to.display())).caused_by(e.to_string())
            }
        };
        let bytes = self.files.pack(now.as_second().unsigned_abs()).map_err(failed)?;
        write_new(to, &bytes).map_err(failed)?;
        let unreadable = self.gaps.iter().map(|gap| UnreadableView {
            what: gap.what.clone(),
            reason: gap.reason.as_str(),
            permission: gap.permission.as_ref().map(|p| format!("{} {}", p.verb, p.resource)),
        });
        Ok(CollectionView {
            api_version: API_VERSION,
            kind: "Collection",
            generated_at: utc(now),
            file: to.display().to_string(),
            size: bytes.len() as u64,
            taken: self.taken,
            exit_code: if self.gaps.is_empty() { 0 } else { 3 },
            unreadable: unreadable.collect(),
            needs_payload: Code::ALL.iter().filter(|c| c.needs_payload()).map(|c| c.as_str()).collect(),
        })
    }
}

/// A pod of one of CAPTF's Jobs.
fn is_runner(pod: &Value) -> bool {
    pod.pointer("/metadata/labels")
        .and_then(Value::as_object)
        .is_some_and(|labels| labels.contains_key(keys::OWNER_KIND))
}

/// Containers that may have logged something.
fn containers(pod: &Value) -> Vec<(String, String)> {
    let name = pod.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let statuses = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let all = statuses.iter().filter_map(|s| pod.pointer(s).and_then(Value::as_array)).flatten();
    all.filter(|status| status.pointer("/state/waiting").is_none())
        .filter_map(|status| status.get("name").and_then(Value::as_str))
        .map(|container| (name.to_string(), container.to_string()))
        .collect()
}
