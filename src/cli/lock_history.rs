//! `lock history`: what is left to see of locks that the controller cleared.

use clap::Args;

use super::args::GlobalArgs;
use super::error::CommandError;
use super::render::{Shape, render};
use super::scope::{must_be_there, named};
use super::session::{Session, block_on};
use super::target::parse_one_object;
use crate::captf::names::lock_lease;
use crate::cluster::events::read_events;
use crate::cluster::jobs::{jobs_of, read_labelled_jobs};
use crate::cluster::leases::read_lock;
use crate::cluster::objects::read_object;
use crate::cluster::pods::read_pods_of_object;
use crate::report::{Item, ItemObject, Lock, Report};
use crate::runbook::lock_history::{HistoryFacts, diagnose};

/// Show which locks of an object were cleared, and what had killed their holders
///
/// Reads only. Answers the alert CAPTFForceUnlocks, where the lock itself is gone: events ForceUnlocked and
/// JobInterrupted, Jobs that were started with a lock to clear, and how the Job before them ended.
///
/// Needs: get on the object and its Lease; list on jobs, pods and events.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf lock history terraformmachine/web -n team-a
  kubectl captf lock history cluster/prod -n team-a -o json")]
pub struct HistoryArgs {
    /// The object as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub object: Vec<String>,
}

/// Runs `lock history`.
pub fn run(global: &GlobalArgs, args: &HistoryArgs) -> Result<u8, CommandError> {
    let (kind, name) = parse_one_object(&args.object)?;
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let api = &session.api;
        let lease_name = lock_lease(&object.suffix());
        let (about, jobs, events, pods, lease) = tokio::join!(
            read_object(api, &object),
            read_labelled_jobs(api, &object),
            read_events(api, &object.namespace, object.kind.kind(), &object.name),
            read_pods_of_object(api, &object),
            read_lock(api, &object.namespace, &lease_name),
        );
        let about = must_be_there(&session, &object, about).await?;
        let facts = HistoryFacts { object: object.clone(), jobs: jobs.map(|j| jobs_of(j, &about.uid)), events, pods };
        let (findings, mut gaps) = diagnose(&facts);
        gaps.extend(lease.gap().cloned());
        let report = Report {
            items: vec![Item {
                lock: Some(Lock::from_lease(lease_name, lease.found())),
                findings,
                gaps,
                ..Item::new(ItemObject::workload(&object))
            }],
            ..session.report("lock history")
        };
        render(&report, global, Shape::Findings)
    })
}
