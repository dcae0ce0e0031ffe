//! `jobs timeline`: one screen of what happened around an object's runs.

use clap::Args;

use super::args::GlobalArgs;
use super::error::CommandError;
use super::render::{Shape, render};
use super::scope::{must_be_there, named};
use super::session::{Session, block_on};
use super::target::parse_one_object;
use crate::captf::names::{cluster_lease, lock_lease, run_lease};
use crate::cluster::events::read_events;
use crate::cluster::job_why::{Depth, read_job_history};
use crate::cluster::leases::read_lock;
use crate::cluster::run_leases::read_lease_wait;
use crate::facts::reading::Reading;
use crate::report::{Item, ItemObject, Report, Runs};
use crate::runbook::timeline::timeline;

/// Show Jobs, steps, events, lock, leases and conditions of an object in order of time
///
/// Reads only. Bars are drawn when the terminal is wide enough (about 90 columns); piped output is plain
/// lines. The runner reports how long each step took, so steps are laid end to end from the container's start.
/// Events last about an hour; that none is shown proves nothing.
///
/// Needs: get on the object and its Leases; list on jobs, pods and events.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf jobs timeline terraformmachine/web -n team-a
  kubectl captf jobs timeline cluster prod -n team-a -o json")]
pub struct JobsTimelineArgs {
    /// The object as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub object: Vec<String>,
}

/// Runs `jobs timeline`.
pub fn run(global: &GlobalArgs, args: &JobsTimelineArgs) -> Result<u8, CommandError> {
    let (kind, name) = parse_one_object(&args.object)?;
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let api = &session.api;
        let depth = Depth { ops: Vec::new(), full: false, live: session.live };
        let facts = must_be_there(&session, &object, read_job_history(api, &object, &depth).await).await?;
        let mut gaps: Vec<_> = facts.jobs.gap().into_iter().chain(facts.pods.gap()).cloned().collect();
        let mut about = vec![(object.kind.kind().to_string(), object.name.clone())];
        about.extend(facts.jobs.found().into_iter().flatten().map(|j| ("Job".to_string(), j.name.clone())));
        about.extend(facts.pods.found().into_iter().flatten().map(|p| ("Pod".to_string(), p.name.clone())));
        let reads = about.iter().map(|(kind, name)| read_events(api, &object.namespace, kind, name));
        let mut names = vec![run_lease(&object.suffix())];
        names.extend(facts.about.cluster_name.as_ref().map(|c| cluster_lease(&object.namespace, c)));
        let lock_name = lock_lease(&object.suffix());
        let (events, leases, lock) = tokio::join!(
            futures::future::join_all(reads),
            futures::future::join_all(names.iter().map(|n| read_lease_wait(api, &object.namespace, n))),
            read_lock(api, &object.namespace, &lock_name),
        );
        gaps.extend(events.iter().filter_map(|e| e.gap().cloned()));
        gaps.extend(leases.iter().filter_map(|w| w.lease.gap().cloned()).chain(lock.gap().cloned()));
        gaps.dedup();
        let events: Vec<_> = events.iter().filter_map(Reading::found).flatten().cloned().collect();
        let entries = timeline(&facts, &events, lock.found(), &leases, session.now());
        let report = Report {
            items: vec![Item {
                gaps,
                runs: Some(Runs { timeline: entries, ..Runs::default() }),
                ..Item::new(ItemObject::workload(&object))
            }],
            ..session.report("jobs timeline")
        };
        render(&report, global, Shape::Timeline)
    })
}
