//! `lock inspect` and `lock list`: gather, judge, report.

use clap::{Args, Subcommand};
use futures::StreamExt;

use super::args::{GlobalArgs, OutputFormat};
use super::claim_met::claim_met;
use super::error::CommandError;
use super::render::{Shape, render};
use super::scope::{Scope, list_objects, must_be_there, scope_of};
use super::session::{Session, block_on};
use super::target::parse_targets;
use crate::captf::kind::WorkloadKind;
use crate::claim::lease::claim_lease;
use crate::cluster::api::Selector;
use crate::cluster::lock::{Prefetched, lock_facts_of_listed, prefetch, read_lock_facts};
use crate::facts::lock::LockFacts;
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, Reading};
use crate::output::stderr_line;
use crate::report::{Item, ItemObject, Lock, Report};
use crate::runbook::finding::Finding;
use crate::runbook::verdict::Verdict;
use crate::runbook::{lock_inspect, lock_orphan};

/// Objects judged at the same time.
const CONCURRENCY: usize = 8;

/// Judge Terraform state locks
#[derive(Debug, Args)]
pub struct LockArgs {
    #[command(subcommand)]
    pub command: LockCommand,
}

#[derive(Debug, Subcommand)]
pub enum LockCommand {
    Inspect(InspectArgs),
    List(ListArgs),
    History(super::lock_history::HistoryArgs),
    ForceUnlock(Box<super::unlock_args::ForceUnlockArgs>),
}

/// Judge locks: free, live, stale or foreign, and who clears them when
///
/// Reads only. Judges the state lock of each object as CAPTF's controller does (Jobs, then the Lease,
/// then the pod that the lock names, never from a cache) and adds what the controller does not look at.
///
/// Verdicts: free, not-evaluated (a Job is unfinished), live, stale (the controller clears it), foreign
/// (it never will), empty-holder, undetermined (something could not be read), orphan.
///
/// Needs: get and list on the Terraform* kinds, jobs, leases, pods, events and secrets; get on nodes and
/// clusters. What may not be read is said and never taken for absent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # One object
  kubectl captf lock inspect terraformcluster/prod -n team-a

  # The Terraform object behind a Machine
  kubectl captf lock inspect machine/prod-md-0-x2k4q

  # All objects of all namespaces, only problems
  kubectl captf lock inspect -A -q

  # From a dump, without a cluster
  kubectl captf lock inspect --from must-gather.tar.gz -n team-a")]
pub struct InspectArgs {
    /// Objects as KIND/NAME or KIND NAME, or a lock ID; none means all in the namespace
    #[arg(value_name = "KIND/NAME")]
    pub objects: Vec<String>,

    /// Keep looking and print again whenever something changes
    #[arg(short, long)]
    pub watch: bool,
}

/// List locks that are held, as a table
///
/// Reads only, like `lock inspect`. Free locks are shown with --all.
///
/// Needs: the same as `lock inspect`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Locks that are held in the namespace
  kubectl captf lock list -n team-a

  # Every lock of every namespace, with IDs and Leases
  kubectl captf lock list -A --all -o wide")]
pub struct ListArgs {
    /// Objects as KIND/NAME or KIND NAME; none means all in the namespace
    #[arg(value_name = "KIND/NAME")]
    pub objects: Vec<String>,

    /// Show free locks too
    #[arg(long)]
    pub all: bool,
}

/// Runs `lock inspect`.
pub fn run_inspect(global: &GlobalArgs, args: &InspectArgs) -> Result<u8, CommandError> {
    let targets = parse_targets(&args.objects)?;
    block_on(async {
        let session = Session::open(global)?;
        if args.watch && !session.live {
            return Err(CommandError::usage("a snapshot does not change, so it cannot be watched"));
        }
        let selector = global.selector.is_some();
        let scope = scope_of(&session, &targets, selector).await?;
        if args.watch {
            return super::watch::run(global, Shape::Findings, || judge(&session, global, &scope, "lock inspect"))
                .await;
        }
        let report = judge(&session, global, &scope, "lock inspect").await?;
        say_if_empty(&report, &session);
        render(&report, global, Shape::Findings)
    })
}

/// Runs `lock list`.
pub fn run_list(global: &GlobalArgs, args: &ListArgs) -> Result<u8, CommandError> {
    let targets = parse_targets(&args.objects)?;
    block_on(async {
        let session = Session::open(global)?;
        let scope = scope_of(&session, &targets, global.selector.is_some()).await?;
        let mut report = judge(&session, global, &scope, "lock list").await?;
        let code = report.exit_code();
        if !args.all {
            let before = report.items.len();
            report.items.retain(|i| i.verdict != Some(Verdict::Free) || i.is_problem());
            let hidden = before - report.items.len();
            if report.items.is_empty() && hidden > 0 && matches!(global.output, OutputFormat::Text | OutputFormat::Wide)
            {
                stderr_line(&format!("No locks are held in {} ({hidden} free; --all lists them).", session.scope()));
            }
        }
        if report.items.is_empty() && code == 0 {
            say_if_empty(&report, &session);
        }
        render(&report, global, Shape::Locks { namespaces: session.namespace.is_none() })?;
        Ok(code)
    })
}

fn say_if_empty(report: &Report, session: &Session) {
    if report.items.is_empty() && report.unreadable.is_empty() && report.command == "lock inspect" {
        stderr_line(&format!("No Terraform objects found in {}.", session.scope()));
    }
}

/// Reads and judges everything in scope.
pub async fn judge(
    session: &Session,
    global: &GlobalArgs,
    scope: &Scope,
    command: &'static str,
) -> Result<Report, CommandError> {
    let (items, unreadable) = match scope {
        Scope::Objects(objects) => (judge_named(session, objects).await?, Vec::new()),
        Scope::Kinds(kinds) => {
            let mut all = (Vec::new(), Vec::new());
            for namespace in session.list_scopes() {
                let (items, gaps) = judge_all(session, global, kinds, namespace.as_deref()).await?;
                all.0.extend(items);
                all.1.extend(gaps);
            }
            all
        }
    };
    Ok(Report { items, unreadable, ..session.report(command) })
}

async fn judge_named(session: &Session, objects: &[ObjectRef]) -> Result<Vec<Item>, CommandError> {
    let reads = objects.iter().map(async |object| {
        // The claim is beside the verdict, so its read waits for nothing.
        tokio::join!(read_lock_facts(&session.api, object, session.live), claim_met(session, object))
    });
    let reads: Vec<_> = futures::stream::iter(reads).buffered(CONCURRENCY).collect().await;
    let mut items = Vec::new();
    for (object, (read, claim)) in objects.iter().zip(reads) {
        let facts = must_be_there(session, object, read).await?;
        items.push(with_claim(item_of(session, &facts), claim));
    }
    Ok(items)
}

async fn judge_all(
    session: &Session,
    global: &GlobalArgs,
    kinds: &[WorkloadKind],
    namespace: Option<&str>,
) -> Result<(Vec<Item>, Vec<Gap>), CommandError> {
    let selector = Selector { labels: global.selector.clone(), fields: None };
    let (objects, gaps) = list_objects(session, kinds, namespace, &selector).await?;
    let lists = prefetch(&session.api, namespace).await;
    let whole_scope = kinds.len() == WorkloadKind::ALL.len() && selector.labels.is_none() && gaps.is_empty();
    let references: Vec<ObjectRef> = objects.iter().map(|(o, _)| o.clone()).collect();
    let judged = objects
        .into_iter()
        .map(|(object, about)| lock_facts_of_listed(&session.api, object, about, &lists, session.live));
    let facts: Vec<LockFacts> = futures::stream::iter(judged).buffered(CONCURRENCY).collect().await;
    let claimed = lists.claim_names();
    let mut items = Vec::new();
    for facts in &facts {
        let item = item_of(session, facts);
        let key = (facts.object.namespace.clone(), claim_lease(&facts.object.suffix()));
        let look = claimed.as_ref().is_none_or(|names| names.contains(&key));
        items.push(if look { with_claim(item, claim_met(session, &facts.object).await) } else { item });
    }
    let mut unreadable = gaps;
    if whole_scope {
        match orphans(session, &lists, &references) {
            Ok(found) => items.extend(found),
            Err(gap) => unreadable.push(gap),
        }
    }
    Ok((items, unreadable))
}

fn item_of(session: &Session, facts: &LockFacts) -> Item {
    let judgement = lock_inspect::diagnose(facts, session.now());
    Item {
        object: ItemObject::workload(&facts.object),
        verdict: Some(judgement.verdict),
        lock: Some(Lock::from_lease(facts.lease_name(), facts.lease.found())),
        findings: judgement.findings,
        gaps: judgement.gaps,
        waiting: judgement.waiting,
        runs: None,
    }
}

/// The item with the claim of somebody who is changing the object, if there is one.
fn with_claim(mut item: Item, claim: Result<Option<Finding>, Gap>) -> Item {
    match claim {
        Ok(Some(finding)) => item.findings.insert(item.findings.len().min(1), finding),
        Ok(None) => {}
        // Without the Leases the lock itself could not be read either, and that gap says it all.
        Err(gap) if item.verdict != Some(Verdict::Undetermined) => item.gaps.push(gap),
        Err(_) => {}
    }
    item
}

/// Lock Leases without an object. Each namespace is compared with its own objects.
fn orphans(session: &Session, lists: &Prefetched, objects: &[ObjectRef]) -> Result<Vec<Item>, Gap> {
    let leases = match lists.leases() {
        Reading::Found(leases) => leases,
        Reading::Absent => Vec::new(),
        Reading::Unreadable(gap) => return Err(gap),
    };
    let mut items = Vec::new();
    for (namespace, lease) in leases {
        for (lease, finding) in lock_orphan::diagnose(std::slice::from_ref(lease), objects, session.now()) {
            items.push(Item {
                verdict: Some(Verdict::Orphan),
                lock: Some(Lock::from_lease(lease.name.clone(), Some(lease))),
                findings: vec![finding],
                ..Item::new(ItemObject::lease(namespace, &lease.name))
            });
        }
    }
    items.sort_by(|a, b| (&a.object.namespace, &a.object.name).cmp(&(&b.object.namespace, &b.object.name)));
    Ok(items)
}
