//! `state inspect`: the state as the controller's reader sees it.

use clap::{Args, Subcommand};

use super::args::GlobalArgs;
use super::error::CommandError;
use super::scope::{must_be_there, named};
use super::session::{Session, block_on};
use super::state_render::{render_state, report_of};
use super::target::parse_one_object;
use crate::cluster::restore::read_restore_facts;
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::facts::restore::RestoreFacts;
use crate::output::state_view::{Parts, StateView};
use crate::runbook::state_inspect::diagnose;

/// Judge a state as the controller's reader sees it
#[derive(Debug, Args)]
pub struct StateArgs {
    #[command(subcommand)]
    pub command: StateCommand,
}

#[derive(Debug, Subcommand)]
pub enum StateCommand {
    Inspect(InspectArgs),
}

/// Show the live state of an object: Secrets, serial, resources by type, and the reason the controller would give
///
/// Reads only. Reads the state through, in small pieces and without keeping anything of it, and applies the
/// controller's rules in its order. Says also what the controller does not see: a state that reads well and is
/// empty or of another lineage than the newest backup. No attribute is ever shown.
///
/// Needs: get on the object, leases and pods; list on jobs; get and list on secrets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf state inspect terraformcluster/prod -n team-a
  kubectl captf state inspect machine/prod-md-0-x2k4q -o json")]
pub struct InspectArgs {
    /// The object as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub object: Vec<String>,
}

/// Runs `state inspect`.
pub fn run_inspect(global: &GlobalArgs, args: &InspectArgs) -> Result<u8, CommandError> {
    let (kind, name) = parse_one_object(&args.object)?;
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let facts = gather(&session, &object, None).await?;
        let judgement = diagnose(&facts);
        let mut secrets: Vec<String> =
            facts.secrets.selected.found().into_iter().flatten().map(|s| s.name.clone()).collect();
        secrets.sort_by_key(|s| (s.len(), s.clone()));
        let mut view = StateView::of(facts.live.found(), secrets);
        if matches!(facts.live, Reading::Unreadable(_)) {
            view.content = "unknown";
        }
        view.reason = judgement.reason.map(str::to_string);
        view.condition = facts.about.condition("StateReadable").map(|c| format!("{}/{}", c.status, c.reason));
        let report = report_of(&session, "state inspect", &object, judgement.findings, judgement.gaps);
        render_state(&report, Parts { state: Some(view), ..Parts::default() }, global, None)
    })
}

/// Everything about one object's state; the object itself must be readable.
pub async fn gather(session: &Session, object: &ObjectRef, serial: Option<i64>) -> Result<RestoreFacts, CommandError> {
    must_be_there(session, object, read_restore_facts(&session.api, object, serial, session.live).await).await
}
