//! `jobs list`: the Jobs of an object that are kept, newest first.

use clap::Args;

use super::args::GlobalArgs;
use super::error::CommandError;
use super::jobs::{OpArg, operations};
use super::render::{Shape, render};
use super::scope::{Scope, must_be_there, scope_of};
use super::session::{Session, block_on};
use super::target::parse_targets;
use crate::cluster::job_why::{Depth, read_job_history};
use crate::output::stderr_line;
use crate::report::{Item, ItemObject, Report, Runs};
use crate::runbook::job_case::history;

/// List an object's Jobs, newest first: outcome, whether it counts, duration, why
///
/// Reads only. The outcome is the controller's own; a Job that does not count as a failure (interrupted,
/// blocked, plan changed) does not lengthen the backoff either.
///
/// Needs: get on the object; list on jobs and pods.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf jobs list terraformmachine/web -n team-a
  kubectl captf jobs list tfc prod --op apply --op plan -o wide")]
pub struct JobsListArgs {
    /// Objects as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub objects: Vec<String>,

    /// Only Jobs of this operation; can be repeated
    #[arg(long, value_enum, value_name = "OP")]
    pub op: Vec<OpArg>,
}

/// Runs `jobs list`.
pub fn run(global: &GlobalArgs, args: &JobsListArgs) -> Result<u8, CommandError> {
    let targets = parse_targets(&args.objects)?;
    let ops = operations(&args.op);
    block_on(async {
        let session = Session::open(global)?;
        let Scope::Objects(objects) = scope_of(&session, &targets, global.selector.is_some()).await? else {
            return Err(CommandError::usage("the object's name is missing").hint("write KIND/NAME or KIND NAME"));
        };
        let depth = Depth { ops: ops.clone(), full: false, live: session.live };
        let mut items = Vec::new();
        for object in &objects {
            let facts = must_be_there(&session, object, read_job_history(&session.api, object, &depth).await).await?;
            let (runs, gaps) = history(&facts, &ops, session.now());
            if runs.is_empty() && gaps.is_empty() {
                stderr_line(&format!("No Jobs of {} are kept in {}.", object.resource(), object.namespace));
            }
            items.push(Item {
                gaps,
                runs: Some(Runs { runs, ..Runs::default() }),
                ..Item::new(ItemObject::workload(object))
            });
        }
        let report = Report { items, ..session.report("jobs list") };
        render(&report, global, Shape::Jobs)
    })
}
