//! `collect`: a snapshot for support, written to one new file.

use std::path::PathBuf;

use clap::Args;

use super::args::GlobalArgs;
use super::collect_gather::Gathered;
use super::collect_view::show;
use super::error::{CommandError, unreadable};
use super::scope::{Scope, must_be_there, scope_of};
use super::session::{Session, block_on};
use super::target::parse_targets;
use crate::captf::kind::WorkloadKind;
use crate::cluster::api::Selector;
use crate::cluster::objects::read_object;
use crate::cluster::orphans::read_scope;

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

/// Runs `collect`.
pub fn run(global: &GlobalArgs, args: &CollectArgs) -> Result<u8, CommandError> {
    let targets = parse_targets(&args.objects)?;
    if args.to.exists() {
        return Err(CommandError::exists(&args.to));
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
                    must_be_there(&session, object, read_object(&session.api, object).await).await?;
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
