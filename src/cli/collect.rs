//! `collect`: a snapshot for support, written to one new file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use futures::StreamExt;
use serde::Serialize;
use serde_json::{Value, json};

use super::args::{GlobalArgs, OutputFormat};
use super::error::{CommandError, unreadable};
use super::render::write_stdout;
use super::scope::{Scope, not_found, scope_of};
use super::session::{Session, block_on};
use super::target::parse_targets;
use crate::bundle::archive::{Files, write_new};
use crate::bundle::mask::mask;
use crate::bundle::strip;
use crate::captf::keys;
use crate::captf::kind::WorkloadKind;
use crate::captf::time::utc;
use crate::cluster::api::Selector;
use crate::cluster::collect::{Listed, read_log_tail, read_namespace, read_nodes};
use crate::cluster::objects::read_object;
use crate::cluster::orphans::read_scope;
use crate::facts::reading::{Gap, Reading};
use crate::output::escape::visible;
use crate::output::json::{render_json, render_yaml};
use crate::output::view::API_VERSION;
use crate::runbook::code::Code;

/// Logs read at the same time.
const CONCURRENCY: usize = 8;

/// Findings that rest on the content of Secrets, which a bundle does not hold.
const NEED_PAYLOADS: &[Code] = &[Code::ReleaseStateCorrupt, Code::ReleaseStateEncrypted];

/// Write a snapshot for support that `--from` reads
///
/// Reads only; writes one new file on this machine, which only you may read, and never over an existing one. It takes the
/// namespace of the object whole: the Terraform* objects and their Cluster API owners, Jobs, pods, events, Leases, the
/// conditions and addresses of Nodes, and the ends of the logs of CAPTF's pods. Of Secrets it takes metadata, names of
/// keys and sizes, never a value. What looks like a credential in the rest is masked; read the bundle before you pass it on.
///
/// Needs: list on the Terraform* kinds, jobs, pods, events, leases and secrets; for a fuller bundle list on terraformplans,
/// Cluster API's kinds and nodes, and get on pods/log.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # The namespace of one object
  kubectl captf collect terraformcluster/prod -n team-a --to prod.tar.gz

  # Every namespace that has Terraform objects
  kubectl captf collect -A --to everything.tar.gz

  # Elsewhere, without a cluster
  kubectl captf lock inspect --from prod.tar.gz")]
pub struct CollectArgs {
    /// The object as KIND/NAME or KIND NAME; none means the namespace
    #[arg(value_name = "KIND/NAME")]
    pub objects: Vec<String>,

    /// The file to write: a .tar.gz that does not exist yet
    #[arg(long, value_name = "FILE")]
    pub to: PathBuf,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct CollectionView {
    api_version: &'static str,
    kind: &'static str,
    generated_at: String,
    file: String,
    /// Of the file, in bytes.
    size: u64,
    taken: Vec<TakenView>,
    unreadable: Vec<UnreadableView>,
    /// Findings that cannot be made from the bundle, as it holds no Secret data.
    needs_payload: Vec<&'static str>,
    exit_code: u8,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TakenView {
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    resource: String,
    count: usize,
    /// In the bundle, before it is packed.
    bytes: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct UnreadableView {
    what: String,
    reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<String>,
}

/// What is gathered on the way.
#[derive(Default)]
struct Gathered {
    files: Files,
    taken: Vec<TakenView>,
    gaps: Vec<Gap>,
}

/// Runs `collect`.
pub fn run(global: &GlobalArgs, args: &CollectArgs) -> Result<u8, CommandError> {
    let targets = parse_targets(&args.objects)?;
    if args.to.exists() {
        return Err(exists(&args.to));
    }
    block_on(async {
        let session = Session::open(global)?;
        if !session.live {
            return Err(CommandError::usage("a snapshot is collected already").hint("leave out `--from`"));
        }
        if global.selector.is_some() {
            return Err(CommandError::usage("a bundle of selected objects could not tell what is absent")
                .hint("leave out `--selector`"));
        }
        let namespaces = match scope_of(&session, &targets, false).await? {
            Scope::Objects(objects) => {
                for object in &objects {
                    match read_object(&session.api, object).await {
                        Reading::Found(_) => {}
                        Reading::Absent => return Err(not_found(&session, object).await),
                        Reading::Unreadable(gap) => {
                            let doing = format!("read {} `{}` in {}", object.kind, object.name, object.namespace);
                            return Err(unreadable(&doing, &gap, session.source.server.as_deref()));
                        }
                    }
                }
                objects.into_iter().map(|o| o.namespace).collect()
            }
            Scope::Kinds(_) => namespaces(&session).await?,
        };
        let mut gathered = Gathered::default();
        let now = session.now();
        for namespace in dedup(namespaces) {
            gathered.namespace(&session, &namespace).await;
        }
        gathered.nodes(&session).await;
        gathered.mark(&session, now);
        let view = gathered.write(&args.to, now)?;
        show(&view, global)
    })
}

fn exists(path: &Path) -> CommandError {
    CommandError::failed(format!("`{}` exists and is not written over", path.display()))
        .hint("choose another name for `--to`")
}

fn dedup(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names.dedup();
    names
}

/// The session's namespace, or all that have Terraform objects.
async fn namespaces(session: &Session) -> Result<Vec<String>, CommandError> {
    if let Some(namespace) = &session.namespace {
        return Ok(vec![namespace.clone()]);
    }
    let (objects, gaps) = read_scope(&session.api, &WorkloadKind::ALL, None, &Selector::default()).await;
    if let Some(gap) = gaps.first().filter(|_| gaps.len() == WorkloadKind::ALL.len()) {
        return Err(unreadable("list the Terraform objects", gap, session.source.server.as_deref()));
    }
    if objects.is_empty() {
        return Err(CommandError::failed("there are no Terraform objects in any namespace"));
    }
    Ok(objects.into_iter().map(|(object, _)| object.namespace).collect())
}

impl Gathered {
    async fn namespace(&mut self, session: &Session, namespace: &str) {
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

    async fn nodes(&mut self, session: &Session) {
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
    fn mark(&mut self, session: &Session, now: jiff::Timestamp) {
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

    fn write(self, to: &Path, now: jiff::Timestamp) -> Result<CollectionView, CommandError> {
        let failed = |e: std::io::Error| {
            if e.kind() == std::io::ErrorKind::AlreadyExists {
                exists(to)
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
            needs_payload: NEED_PAYLOADS.iter().map(|c| c.as_str()).collect(),
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

fn show(view: &CollectionView, global: &GlobalArgs) -> Result<u8, CommandError> {
    let mut out = Vec::new();
    match global.output {
        OutputFormat::Json => render_json(&mut out, view),
        OutputFormat::Yaml => render_yaml(&mut out, view),
        OutputFormat::Name => {
            out.extend(format!("{}\n", visible(&view.file)).bytes());
            Ok(())
        }
        OutputFormat::Text | OutputFormat::Wide => {
            out.extend(text(view, global.output == OutputFormat::Wide).bytes());
            Ok(())
        }
    }
    .map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
    write_stdout(&out)?;
    Ok(view.exit_code)
}

fn text(view: &CollectionView, by_namespace: bool) -> String {
    let mut rows: BTreeMap<(String, &str), (usize, usize)> = BTreeMap::new();
    for taken in &view.taken {
        let namespace = taken.namespace.clone().filter(|_| by_namespace).unwrap_or_default();
        let row = rows.entry((namespace, &taken.resource)).or_default();
        *row = (row.0 + taken.count, row.1 + taken.bytes);
    }
    let mut out = format!("{}: {}\n", visible(&view.file), size(view.size as usize));
    for ((namespace, resource), (count, bytes)) in rows {
        let place = if namespace.is_empty() { String::new() } else { format!("{}  ", visible(&namespace)) };
        let note = if resource == "secrets" { "  metadata, key names and sizes; no values" } else { "" };
        writeln!(out, "  {place}{resource:<56} {count:>5} {:>10}{note}", size(bytes))
            .expect("writing to a String does not fail");
    }
    for gap in &view.unreadable {
        let permission = gap.permission.as_ref().map(|p| format!("; permission: {p}")).unwrap_or_default();
        writeln!(out, "not taken: {} ({}{permission})", visible(&gap.what), gap.reason)
            .expect("writing to a String does not fail");
    }
    writeln!(out, "Cannot be told from it, for want of Secret data: {}", view.needs_payload.join(", "))
        .expect("writing to a String does not fail");
    out.push_str("What looks like a credential was masked. Read the bundle before you pass it on.\n");
    out
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}
