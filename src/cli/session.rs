//! Opens what a command reads from: a cluster through a kubeconfig, or a snapshot in its place.

use std::sync::Arc;

use jiff::Timestamp;

use super::args::GlobalArgs;
use super::error::CommandError;
use crate::captf::time::parse_rfc3339;
use crate::cluster::api::Api;
use crate::cluster::client::connect;
use crate::cluster::meter::Meter;
use crate::output::stderr_line;
use crate::report::{Report, Source};
use crate::runbook::finding::Values;
use crate::snapshot::{Snapshot, SnapshotSource};

/// An opened source with everything that depends on it.
pub struct Session {
    pub api: Api,
    pub live: bool,
    /// `None` = all namespaces.
    pub namespace: Option<String>,
    pub source: Source,
    pub values: Values,
    pub meter: Meter,
    fixed_now: Option<Timestamp>,
    /// Namespaces of a snapshot that hold Terraform objects.
    held_namespaces: Vec<String>,
}

impl Session {
    /// An empty report of a command about this source.
    pub fn report(&self, command: &'static str) -> Report {
        Report {
            command,
            now: self.now(),
            source: self.source.clone(),
            items: Vec::new(),
            unreadable: Vec::new(),
            values: self.values.clone(),
        }
    }

    /// Opens the snapshot of `--from`, else the cluster. Makes no request, but needs a runtime.
    pub fn open(global: &GlobalArgs) -> Result<Self, CommandError> {
        let meter = Meter::new(global.verbosity > 0);
        match &global.from {
            Some(path) => Self::open_snapshot(global, path, meter),
            None => Self::open_cluster(global, meter),
        }
    }

    fn open_cluster(global: &GlobalArgs, meter: Meter) -> Result<Self, CommandError> {
        let connected = connect(&global.connection.connection(), &meter)?;
        let flags = global.connection.repeated();
        let with_flags = |command: &str| [&[command.to_string()], flags.as_slice()].concat().join(" ");
        let namespace = global.namespace.clone().unwrap_or(connected.namespace);
        Ok(Self {
            api: connected.api,
            live: true,
            namespace: (!global.all_namespaces).then_some(namespace),
            source: Source {
                live: true,
                context: connected.context,
                server: Some(connected.server),
                ..Source::default()
            },
            values: Values::from([("kubectl", with_flags("kubectl")), ("captf", with_flags("kubectl captf"))]),
            meter,
            fixed_now: None,
            held_namespaces: Vec::new(),
        })
    }

    fn open_snapshot(global: &GlobalArgs, path: &std::path::Path, meter: Meter) -> Result<Self, CommandError> {
        let source =
            if path.as_os_str() == "-" { SnapshotSource::Stdin } else { SnapshotSource::Path(path.to_path_buf()) };
        let snapshot = crate::snapshot::load(&source).map_err(|e| {
            CommandError::failed(e.to_string())
                .hint("`--from` takes a directory, a file, a .tar.gz, or `-` for standard input")
        })?;
        Self::over_snapshot(global, snapshot, meter)
    }

    /// A session over a snapshot that is in memory already.
    pub fn over_snapshot(global: &GlobalArgs, snapshot: Snapshot, meter: Meter) -> Result<Self, CommandError> {
        for problem in snapshot.problems() {
            stderr_line(&format!("warning: {problem}"));
        }
        let (now, clock) = match &global.now {
            Some(text) => {
                let now = parse_rfc3339(text).ok_or_else(|| {
                    CommandError::usage(format!("`{text}` is not an RFC 3339 time"))
                        .hint("write it as 2026-01-10T08:00:00Z")
                })?;
                (now, "given with --now".to_string())
            }
            None => match snapshot.newest_timestamp() {
                Some((now, place)) => (now, format!("the newest time in the snapshot: {place}")),
                None => (Timestamp::now(), "this machine's clock; the snapshot holds no time".to_string()),
            },
        };
        let held_namespaces = snapshot.workload_namespaces();
        let namespace = match (&global.namespace, global.all_namespaces) {
            (Some(namespace), _) => Some(namespace.clone()),
            (None, true) => None,
            // A snapshot has no context; the only namespace with Terraform objects stands in for it.
            (None, false) => match held_namespaces.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
        };
        let description = snapshot.description();
        let client = Arc::new(snapshot).into_client(namespace.as_deref().unwrap_or("default"));
        Ok(Self {
            api: Api::new(client, None),
            live: false,
            namespace,
            source: Source { snapshot: Some(description), clock: Some(clock), ..Source::default() },
            values: Values::from([("kubectl", "kubectl".to_string()), ("captf", "kubectl captf".to_string())]),
            meter,
            fixed_now: Some(now),
            held_namespaces,
        })
    }

    /// The time to count from.
    pub fn now(&self) -> Timestamp {
        self.fixed_now.unwrap_or_else(Timestamp::now)
    }

    /// The scopes to list, one after another: one namespace, or all of them at once; a snapshot rarely holds
    /// all namespaces of a cluster, so there it is each that holds a Terraform object.
    pub fn list_scopes(&self) -> Vec<Option<String>> {
        match &self.namespace {
            None if !self.held_namespaces.is_empty() => self.held_namespaces.iter().cloned().map(Some).collect(),
            namespace => vec![namespace.clone()],
        }
    }

    /// `team-a namespace`, or `any namespace`.
    pub fn scope(&self) -> String {
        self.namespace.as_ref().map_or("any namespace".to_string(), |n| format!("{n} namespace"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.meter.log_summary();
    }
}

/// `context prod, https://10.0.0.5:6443`: which cluster a question is about.
pub fn target_of(session: &Session) -> String {
    let context = session.source.context.as_deref().map(|c| format!("context {c}"));
    let parts: Vec<String> = context.into_iter().chain(session.source.server.clone()).collect();
    parts.join(", ")
}

/// Runs a future on a small runtime of its own.
pub fn block_on<T>(future: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| CommandError::failed("start the runtime").caused_by(e.to_string()))?;
    runtime.block_on(future)
}
