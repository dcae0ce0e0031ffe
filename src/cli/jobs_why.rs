//! `jobs why`: one object in full, or every object with a failing Job in one line each.

use clap::Args;
use futures::StreamExt;

use super::args::GlobalArgs;
use super::claim_met::claim_met;
use super::error::CommandError;
use super::jobs::{OpArg, kinds, operations};
use super::render::{Shape, render};
use super::scope::{Scope, list_objects, must_be_there, scope_of};
use super::session::{Session, block_on};
use super::target::parse_targets;
use crate::captf::kind::WorkloadKind;
use crate::captf::names::Operation;
use crate::cluster::api::Selector;
use crate::cluster::job_why::{Depth, job_why_of_listed, read_job_why};
use crate::cluster::run_source::list_runs;
use crate::facts::job_why::JobWhyFacts;
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, Reading};
use crate::output::stderr_line;
use crate::report::{Item, ItemObject, Report, Runs};
use crate::runbook::finding::Severity;
use crate::runbook::job_focus::{bad_conditions, operations_of};
use crate::runbook::job_why::{diagnose, main_cause};

/// Objects judged at the same time.
const CONCURRENCY: usize = 8;

/// Say why Jobs fail, wait or take long, and when the next attempt comes
///
/// Reads only. Without a name it lists every object whose ApplyJobSucceeded, DriftJobSucceeded or
/// RestoreJobSucceeded is not True, worst first, with the cause in one line. With a name it shows how the
/// run ended by the controller's own rules, the cause with its evidence, the time of the next attempt, and
/// what to do. Logs are read from their end only; what looks like a credential in them is masked.
///
/// Needs: get and list on the Terraform* kinds, jobs, pods, events, clusters, leases, nodes and terraformplans.
/// With a name also get on pods/log, configmaps and on the credentials Secret, whose values are then masked in log lines,
/// and list on events in namespace default, where a node says how much memory a killed process used. What may
/// not be read is said.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Everything that fails or waits, worst first
  kubectl captf jobs why -A

  # As the alert CAPTFJobFailing names it
  kubectl captf jobs why -A --kind TerraformMachine --op drift

  # One object in full
  kubectl captf jobs why terraformmachine/web -n team-a

  # Behind a Machine, again whenever something changes
  kubectl captf jobs why machine/prod-md-0-x2k4q -w")]
pub struct JobsWhyArgs {
    /// Objects as KIND/NAME or KIND NAME; none means all that fail or wait in the namespace
    #[arg(value_name = "KIND/NAME")]
    pub objects: Vec<String>,

    /// Only Jobs of this operation; can be repeated
    #[arg(long, value_enum, value_name = "OP")]
    pub op: Vec<OpArg>,

    /// Only objects of this kind; can be repeated
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<String>,

    /// Keep looking and print again whenever something changes
    #[arg(short, long)]
    pub watch: bool,
}

/// Runs `jobs why`.
pub fn run(global: &GlobalArgs, args: &JobsWhyArgs) -> Result<u8, CommandError> {
    let targets = parse_targets(&args.objects)?;
    let only = kinds(&args.kind)?;
    block_on(async {
        let session = Session::open(global)?;
        if args.watch && !session.live {
            return Err(CommandError::usage("a snapshot does not change, so it cannot be watched"));
        }
        let mut scope = scope_of(&session, &targets, global.selector.is_some()).await?;
        if !only.is_empty() {
            match &mut scope {
                Scope::Kinds(kinds) => kinds.retain(|k| only.contains(k)),
                Scope::Objects(objects) => objects.retain(|o| only.contains(&o.kind)),
            }
        }
        let ops = operations(&args.op);
        let shape = match &scope {
            Scope::Kinds(_) => Shape::Fleet { namespaces: session.namespace.is_none() },
            Scope::Objects(_) => Shape::Findings,
        };
        if args.watch {
            return super::watch::run(global, shape, || judge(&session, global, &scope, &ops)).await;
        }
        let report = judge(&session, global, &scope, &ops).await?;
        if report.items.is_empty() && report.unreadable.is_empty() {
            stderr_line(&format!("No failing or waiting Jobs in {}.", session.scope()));
        }
        render(&report, global, shape)
    })
}

async fn judge(
    session: &Session,
    global: &GlobalArgs,
    scope: &Scope,
    ops: &[Operation],
) -> Result<Report, CommandError> {
    let mut items = Vec::new();
    let mut unreadable = Vec::new();
    match scope {
        Scope::Objects(objects) => items = judge_named(session, objects, ops).await?,
        Scope::Kinds(kinds) => {
            for namespace in session.list_scopes() {
                let (found, gaps) = judge_fleet(session, global, kinds, namespace.as_deref(), ops).await?;
                items.extend(found);
                unreadable.extend(gaps);
            }
            items.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| name_of(a).cmp(&name_of(b))));
        }
    }
    Ok(Report { items, unreadable, ..session.report("jobs why") })
}

/// Worst first: severity, then False before Unknown, then the number of failures in a row.
fn rank(item: &Item) -> (Option<Severity>, u32) {
    let failures = item.runs.as_ref().and_then(|r| r.attempts.iter().map(|a| a.failures).max()).unwrap_or_default();
    (item.worst(), failures)
}

fn name_of(item: &Item) -> (&str, &str, &str) {
    (&item.object.namespace, &item.object.kind, &item.object.name)
}

async fn judge_named(session: &Session, objects: &[ObjectRef], ops: &[Operation]) -> Result<Vec<Item>, CommandError> {
    let depth = Depth { ops: ops.to_vec(), full: true, live: session.live };
    let reads = objects.iter().map(|object| read_job_why(&session.api, object, &depth));
    let reads: Vec<Reading<JobWhyFacts>> = futures::stream::iter(reads).buffered(CONCURRENCY).collect().await;
    let mut items = Vec::new();
    for (object, read) in objects.iter().zip(reads) {
        let facts = must_be_there(session, object, read).await?;
        let mut item = item_of(session, &facts, ops);
        // Who changes the object is said beside the cause; where it cannot be read, the cause stands alone.
        if let Ok(Some(claim)) = claim_met(session, object).await {
            item.findings.push(claim);
        }
        items.push(item);
    }
    Ok(items)
}

async fn judge_fleet(
    session: &Session,
    global: &GlobalArgs,
    kinds: &[WorkloadKind],
    namespace: Option<&str>,
    ops: &[Operation],
) -> Result<(Vec<Item>, Vec<Gap>), CommandError> {
    let selector = Selector { labels: global.selector.clone(), fields: None };
    let (objects, gaps) = list_objects(session, kinds, namespace, &selector).await?;
    let bad: Vec<_> = objects.into_iter().filter(|(_, about)| !bad_conditions(about, ops).is_empty()).collect();
    if bad.is_empty() {
        return Ok((Vec::new(), gaps));
    }
    let lists = list_runs(&session.api, namespace, &bad).await;
    let depth = Depth { ops: ops.to_vec(), full: false, live: session.live };
    let reads = bad.into_iter().map(|(object, about)| {
        let (lists, depth) = (&lists, &depth);
        async move { job_why_of_listed(&session.api, &object, about, lists, depth).await }
    });
    let facts: Vec<JobWhyFacts> = futures::stream::iter(reads).buffered(CONCURRENCY).collect().await;
    let items = facts.iter().map(|f| item_of(session, f, ops));
    // The conditions stand for several operations; with --op only the one that is meant.
    let wanted =
        |item: &Item| ops.is_empty() || item.runs.as_ref().and_then(|r| r.operation).is_none_or(|op| ops.contains(&op));
    Ok((items.filter(wanted).collect(), gaps))
}

/// The item of one object.
fn item_of(session: &Session, facts: &JobWhyFacts, ops: &[Operation]) -> Item {
    let judgement = diagnose(facts, ops, session.now());
    let cause_job = main_cause(&judgement.findings).and_then(|f| f.values.get("job"));
    let by_cause = judgement.runs.iter().find(|r| Some(&r.job) == cause_job).and_then(|r| r.condition.as_deref());
    let bad = bad_conditions(&facts.about, ops);
    let condition = by_cause.and_then(|c| facts.about.condition(c)).or(bad.first().copied());
    let of_job = judgement
        .runs
        .iter()
        .find(|r| condition.is_some_and(|c| r.condition.as_deref() == Some(&c.kind)))
        .and_then(|r| r.op);
    let by_condition = || {
        let ops = operations_of(&condition?.kind);
        if facts.about.deleting.is_some() && ops.contains(&Operation::Destroy) {
            return Some(Operation::Destroy);
        }
        ops.first().copied()
    };
    Item {
        runs: Some(Runs {
            operation: of_job.or_else(by_condition),
            since: condition.and_then(|c| c.since),
            runs: judgement.runs,
            attempts: judgement.attempts,
            timeline: Vec::new(),
            logs: Vec::new(),
        }),
        findings: judgement.findings,
        gaps: judgement.gaps,
        ..Item::new(ItemObject::workload(&facts.object))
    }
}
