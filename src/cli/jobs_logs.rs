//! `jobs logs`: the log of the right pod and container, masked, followed across the start of the pod.

use clap::Args;

use super::args::{GlobalArgs, OutputFormat};
use super::error::{CommandError, OK, parse_timeout, unreadable};
use super::jobs::{OpArg, operations};
use super::jobs_follow::{follow, not_started};
use super::render::{Shape, render, write_stdout};
use super::scope::{must_be_there, named};
use super::session::{Session, block_on};
use super::target::parse_one_object;
use crate::captf::mask::Redactor;
use crate::captf::names::Operation;
use crate::captf::run_log::without_colours;
use crate::cluster::api::LogPart;
use crate::cluster::job_why::{Depth, read_job_history};
use crate::cluster::run_logs::read_redactor;
use crate::facts::job::{JobFacts, active_job};
use crate::facts::job_why::JobWhyFacts;
use crate::facts::object::ObjectRef;
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::reading::{Gap, Reading};
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::report::{Item, ItemObject, Report, RunLog, Runs};
use crate::runbook::job_outcome::pods_of;

/// Lines and bytes of one log that are read when nothing else is asked for.
const TAIL_LINES: u32 = 10_000;
const LIMIT_BYTES: u32 = 16 << 20;
/// The exit code when the log, or what must not be shown of it, could not be read.
pub(super) const GAP: u8 = 3;

/// Print the log of the running or last Job, with credentials masked
///
/// Reads only. Finds the Job, its newest pod and the container by itself: `source`, or `runner` when that one
/// failed. Whatever looks like a token, key or password is masked, and so are the values of the credentials
/// Secret where it may be read (they are kept in memory for that only). --raw prints the log as it is.
///
/// Needs: get on the object and pods/log; list on jobs and pods; optionally get on the credentials Secret.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # The running Job, or the last one
  kubectl captf jobs logs terraformmachine/web -n team-a

  # Follow, also when the pod has not started yet
  kubectl captf jobs logs tfc/prod -f

  # The end of every apply that is kept
  kubectl captf jobs logs tfm web --op apply --previous-attempts --tail 50")]
pub struct JobsLogsArgs {
    /// The object as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub object: Vec<String>,

    /// The Job by its name
    #[arg(long, value_name = "JOB", conflicts_with = "op")]
    pub job: Option<String>,

    /// The newest Job of this operation
    #[arg(long, value_enum, value_name = "OP")]
    pub op: Option<OpArg>,

    /// All kept Jobs of the operation, oldest first
    #[arg(long, conflicts_with_all = ["job", "follow"])]
    pub previous_attempts: bool,

    /// Go on printing until the container ends
    #[arg(short, long)]
    pub follow: bool,

    /// Only the last lines
    #[arg(long, value_name = "LINES")]
    pub tail: Option<u32>,

    /// Only lines that are newer than this (30s, 10m, 1h)
    #[arg(long, value_name = "DURATION", value_parser = since)]
    pub since: Option<Since>,

    /// Print the log as it is: nothing masked, nothing escaped
    #[arg(long)]
    pub raw: bool,
}

/// A parsed `--since`, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since(i64);

fn since(text: &str) -> Result<Since, String> {
    let parsed = parse_timeout(text)?.ok_or_else(|| format!("`{text}` is no time to look back"))?;
    i64::try_from(parsed.as_secs()).map(|s| Since(s.max(1))).map_err(|_| format!("`{text}` is too long"))
}

/// Runs `jobs logs`.
pub fn run(global: &GlobalArgs, args: &JobsLogsArgs) -> Result<u8, CommandError> {
    let (kind, name) = parse_one_object(&args.object)?;
    let structured = matches!(global.output, OutputFormat::Json | OutputFormat::Yaml);
    if args.follow && structured {
        return Err(CommandError::usage("a log that is followed has no end, so it cannot be JSON or YAML"));
    }
    block_on(async {
        let session = Session::open(global)?;
        if args.follow && !session.live {
            return Err(CommandError::usage("a snapshot does not change, so it cannot be followed"));
        }
        let object = named(&session, kind, &name).await?;
        let facts = read(&session, &object).await?;
        let jobs = chosen(&facts, args)?;
        if args.follow {
            return follow(&session, &object, &jobs[0].name, args).await;
        }
        let (logs, gaps) = read_all(&session, &object, &facts, &jobs, args).await?;
        if structured || global.output == OutputFormat::Name {
            let report = report_of(&session, &object, logs, gaps);
            return render(&report, global, Shape::Findings);
        }
        print_text(&logs, jobs.len() > 1, args.raw)?;
        gaps.iter().for_each(say_gap);
        Ok(if gaps.is_empty() { OK } else { GAP })
    })
}

fn report_of(session: &Session, object: &ObjectRef, logs: Vec<RunLog>, gaps: Vec<Gap>) -> Report {
    Report {
        items: vec![Item {
            gaps,
            runs: Some(Runs { logs, ..Runs::default() }),
            ..Item::new(ItemObject::workload(object))
        }],
        ..session.report("jobs logs")
    }
}

pub(super) async fn read(session: &Session, object: &ObjectRef) -> Result<JobWhyFacts, CommandError> {
    let depth = Depth { ops: Vec::new(), full: false, live: session.live };
    must_be_there(session, object, read_job_history(&session.api, object, &depth).await).await
}

/// The Jobs whose logs are meant: never none.
fn chosen(facts: &JobWhyFacts, args: &JobsLogsArgs) -> Result<Vec<JobFacts>, CommandError> {
    let object = facts.object.resource();
    let jobs = match &facts.jobs {
        Reading::Found(jobs) => jobs.clone(),
        Reading::Absent => Vec::new(),
        Reading::Unreadable(gap) => return Err(unreadable(&format!("list the Jobs of {object}"), gap, None)),
    };
    if let Some(name) = &args.job {
        let known: Vec<String> = jobs.iter().map(|j| j.name.clone()).collect();
        return match jobs.into_iter().find(|j| &j.name == name) {
            Some(job) => Ok(vec![job]),
            None => {
                let error = CommandError::failed(format!("{object} has no Job `{name}`"));
                Err(match crate::cluster::resolve::closest(name, &known).first() {
                    Some(close) => error.hint(format!("did you mean `{close}`?")),
                    None => error.hint("`kubectl captf jobs list` shows the Jobs that are kept"),
                })
            }
        };
    }
    let ops: Vec<Operation> = operations(args.op.as_slice());
    let mut jobs: Vec<JobFacts> =
        jobs.into_iter().filter(|j| ops.is_empty() || j.op.is_some_and(|op| ops.contains(&op))).collect();
    jobs.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
    let newest = active_job(&jobs).or(jobs.iter().max_by_key(|j| (j.finished, &j.name))).cloned();
    let Some(newest) = newest else {
        return Err(CommandError::failed(format!("no Jobs of {object} are kept"))
            .hint("`kubectl captf jobs why` says what remains"));
    };
    if args.previous_attempts {
        return Ok(jobs.into_iter().filter(|j| j.op == newest.op).collect());
    }
    Ok(vec![newest])
}

/// `source`, or `runner` when that one failed; the first if there is neither.
pub(super) fn container_of(pod: &PodFacts) -> String {
    let failed = |c: &&crate::facts::pod::ContainerFacts| {
        c.init
            && c.name == "runner"
            && matches!(c.state, ContainerState::Terminated { exit_code, .. } if exit_code != 0)
    };
    pod.containers.iter().find(failed).map_or("source".to_string(), |c| c.name.clone())
}

pub(super) fn part(container: String, args: &JobsLogsArgs) -> LogPart {
    LogPart {
        container,
        tail_lines: Some(args.tail.unwrap_or(TAIL_LINES)),
        limit_bytes: Some(LIMIT_BYTES),
        since_seconds: args.since.map(|s| s.0),
        previous: false,
    }
}

async fn read_all(
    session: &Session,
    object: &ObjectRef,
    facts: &JobWhyFacts,
    jobs: &[JobFacts],
    args: &JobsLogsArgs,
) -> Result<(Vec<RunLog>, Vec<Gap>), CommandError> {
    let pods = match &facts.pods {
        Reading::Found(pods) => pods.as_slice(),
        Reading::Absent => &[],
        Reading::Unreadable(gap) => {
            return Err(unreadable(&format!("list the pods of {}", object.resource()), gap, None));
        }
    };
    let (mut items, mut gaps) = (Vec::new(), Vec::new());
    for job in jobs {
        let Some(pod) = pods_of(pods, &job.name).first().copied() else {
            if jobs.len() == 1 {
                return Err(CommandError::failed(format!(
                    "Job `{}` has no pod any more, and its log went with it",
                    job.name
                ))
                .hint(format!(
                    "`kubectl captf jobs why {} -n {}` says what remains",
                    object.resource(),
                    object.namespace
                )));
            }
            stderr_line(&format!("Job {} has no pod any more.", job.name));
            continue;
        };
        let container = container_of(pod);
        if let Some(why) = not_started(pod, &container) {
            stderr_line(&format!("Pod {} has not started ({why}). To wait for it:", pod.name));
            stderr_line(&format!("  kubectl captf jobs logs {} -n {} -f", object.resource(), object.namespace));
        }
        match session.api.read_log(&object.namespace, &pod.name, &part(container.clone(), args)).await {
            Reading::Found(text) => {
                let (redactor, not_masked) = redactor_for(session, object, pod, args).await;
                gaps.extend(not_masked.into_iter().filter(|g| !gaps.contains(g)).collect::<Vec<_>>());
                let text = if args.raw { text } else { redactor.mask(&without_colours(&text)) };
                items.push(RunLog {
                    job: job.name.clone(),
                    pod: pod.name.clone(),
                    container,
                    masked: !args.raw,
                    lines: text.lines().map(str::to_string).collect(),
                });
            }
            Reading::Absent => stderr_line(&format!("Pod {} is gone.", pod.name)),
            Reading::Unreadable(gap) => gaps.push(gap),
        }
    }
    Ok((items, gaps))
}

/// What must not be printed, and which credentials could not be read to know it.
pub(super) async fn redactor_for(
    session: &Session,
    object: &ObjectRef,
    pod: &PodFacts,
    args: &JobsLogsArgs,
) -> (Redactor, Vec<Gap>) {
    if args.raw {
        return (Redactor::default(), Vec::new());
    }
    read_redactor(&session.api, &object.namespace, pod).await
}

fn print_text(items: &[RunLog], several: bool, raw: bool) -> Result<(), CommandError> {
    let mut out = String::new();
    for item in items {
        let head = format!("Job {}, pod {}, container {}", item.job, item.pod, item.container);
        if several {
            out.push_str(&format!("==> {} <==\n", visible(&head)));
        } else {
            stderr_line(&head);
        }
        for line in &item.lines {
            out.push_str(&shown(line, raw));
        }
    }
    write_stdout(out.as_bytes())
}

pub(super) fn shown(line: &str, raw: bool) -> String {
    if raw { format!("{line}\n") } else { format!("{}\n", visible(line)) }
}

pub(super) fn say_gap(gap: &Gap) {
    let detail = if gap.detail.is_empty() { String::new() } else { format!(": {}", gap.detail) };
    stderr_line(&format!("not read: {gap}{detail}"));
}
