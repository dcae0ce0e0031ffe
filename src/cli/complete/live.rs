//! Candidates that are read from the cluster or the snapshot of the flags already typed.
//!
//! Rows and metadata only, never the payload of a Secret. Whatever goes wrong, there are no candidates.

use clap::Parser;

use super::Candidate;
use super::line::Line;
use super::sources::{ObjectPlace, Source, may_be_lock_id, object_before, object_place, then_serials};
use crate::captf::time::relative;
use crate::cli::args::GlobalArgs;
use crate::cli::scope::named;
use crate::cli::session::{Session, block_on};
use crate::cluster::client::{KubeconfigNames, kubeconfig_names};
use crate::cluster::names::{Named, read_held_locks, read_job_names, read_names, read_namespaces, read_serials};
use crate::facts::object::ObjectRef;

#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Typed {
    #[command(flatten)]
    global: GlobalArgs,
}

/// Reads the candidates of a source.
pub fn read(source: Source, line: &Line) -> Vec<Candidate> {
    let source = if source == Source::ObjectThenSerials { then_serials(line) } else { source };
    let globals = crate::cli::args::normalize(line.globals.iter().map(Into::into));
    let Ok(Typed { global }) = Typed::try_parse_from(globals) else { return Vec::new() };
    let plain = |names: Vec<String>| names.into_iter().map(|n| Candidate::new(n, "")).collect();
    let kubeconfig = || kubeconfig_names(&global.connection.connection());
    match source {
        Source::Contexts => plain(kubeconfig().map(|k| k.contexts).unwrap_or_default()),
        Source::Clusters => plain(kubeconfig().map(|k| k.clusters).unwrap_or_default()),
        Source::Users => plain(kubeconfig().map(|k| k.users).unwrap_or_default()),
        _ if global.from.is_none() && kubeconfig().is_none_or(|k: KubeconfigNames| k.runs_a_program) => Vec::new(),
        _ => block_on(async {
            let session = Session::open(&global)?;
            Ok(from_session(source, line, &session).await)
        })
        .unwrap_or_default(),
    }
}

async fn from_session(source: Source, line: &Line, session: &Session) -> Vec<Candidate> {
    let now = session.now();
    let age = |named: &Named| named.at.map(|at| relative(at, now)).unwrap_or_default();
    match source {
        Source::Namespaces if session.live => {
            let all = read_namespaces(&session.api).await;
            all.iter().map(|n| Candidate::new(&n.name, format!("created {}", age(n)))).collect()
        }
        Source::Namespaces => session.list_scopes().into_iter().flatten().map(|n| Candidate::new(n, "")).collect(),
        Source::Objects => match object_place(line) {
            ObjectPlace::Name { kind, before } => {
                let mut all = Vec::new();
                for namespace in scopes(session) {
                    let names = read_names(&session.api, kind, namespace.as_deref()).await;
                    all.extend(names.iter().map(|n| {
                        Candidate::new(format!("{before}{}", n.name), format!("in {}, created {}", n.namespace, age(n)))
                    }));
                }
                all
            }
            ObjectPlace::Kind if may_be_lock_id(&line.current) => locks(session).await,
            ObjectPlace::Kind | ObjectPlace::Nothing => Vec::new(),
        },
        Source::LockIds => locks(session).await,
        Source::Serials => serials(line, session).await,
        Source::Jobs => jobs(line, session).await,
        _ => Vec::new(),
    }
}

/// Where names are looked for. A live cluster takes no name across all namespaces, so none is offered.
fn scopes(session: &Session) -> Vec<Option<String>> {
    if session.live && session.namespace.is_none() { Vec::new() } else { session.list_scopes() }
}

async fn locks(session: &Session) -> Vec<Candidate> {
    let mut all = Vec::new();
    for namespace in session.list_scopes() {
        for lock in read_held_locks(&session.api, namespace.as_deref()).await {
            let who = if lock.about.is_empty() { String::new() } else { format!(", {}", lock.about) };
            let taken = lock.at.map(|at| format!(", taken {}", relative(at, session.now()))).unwrap_or_default();
            all.push(Candidate::new(lock.name, format!("lock in {}{who}{taken}", lock.namespace)));
        }
    }
    all
}

/// The object named before the cursor; owners are followed.
async fn object(line: &Line, session: &Session) -> Option<ObjectRef> {
    let (kind, name) = object_before(line)?;
    named(session, kind, &name).await.ok()
}

async fn serials(line: &Line, session: &Session) -> Vec<Candidate> {
    let Some(object) = object(line, session).await else { return Vec::new() };
    let all = read_serials(&session.api, &object).await;
    let taken = |n: &Named| n.at.map(|at| format!("taken {}", relative(at, session.now()))).unwrap_or_default();
    all.iter().map(|n| Candidate::new(&n.name, taken(n))).collect()
}

async fn jobs(line: &Line, session: &Session) -> Vec<Candidate> {
    let Some(object) = object(line, session).await else { return Vec::new() };
    let all = read_job_names(&session.api, &object).await;
    let made = |n: &Named| n.at.map(|at| format!("created {}", relative(at, session.now()))).unwrap_or_default();
    all.iter().map(|n| Candidate::new(&n.name, made(n))).collect()
}
