//! `restore status` and `restore retry`.

use std::time::{Duration, Instant};

use clap::Args;

use super::args::GlobalArgs;
use super::claimed::{Claim, with_claim};
use super::error::{CommandError, OK};
use super::restore::{ConsentArgs, REFUSED, Run, asked_of, patch_of};
use super::restore_confirm::confirm;
use super::restore_follow::{Outcome, follow, leaving, look};
use super::restore_show::Shown;
use super::scope::{must_be_there, named};
use super::session::{Session, block_on};
use super::target::parse_one_object;
use crate::cluster::objects::resource;
use crate::cluster::restore::read_restore_object;
use crate::facts::object::ObjectFacts;
use crate::facts::reading::Reading;
use crate::facts::write::WriteFailure;
use crate::output::state_view::{DiffView, RestoreView};
use crate::output::stderr_line;
use crate::runbook::code::Code;
use crate::runbook::finding::{Evidence, Finding};
use crate::runbook::restore::parse_serial;

/// Show how far a restore is, or how it ended
///
/// Reads only. Judges by the condition, the annotation, the consumed and the observed serial and the Job together.
///
/// Needs: get on the object and leases; list on jobs and pods; get on pods/log for the steps of a Job that runs; for
/// the cause of a failure what `jobs why` needs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf restore status terraformcluster/prod -n team-a
  kubectl captf restore status terraformcluster/prod --wait --timeout 30m")]
pub struct StatusArgs {
    /// The object as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub object: Vec<String>,

    /// Follow it to its end
    #[arg(long)]
    pub wait: bool,

    /// How long to follow (0 follows for ever)
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = limit)]
    pub timeout: super::args::Timeout,
}

/// Try a failed serial again
///
/// Changes the annotation captf.io/restore-state twice: takes it away, waits until the controller has forgotten the serial,
/// and sets it again. In another order, or faster, the controller silently ignores it. Judges and asks like `restore`.
///
/// Needs what `restore` needs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf restore retry terraformcluster/prod -n team-a --without-claim
  kubectl captf restore retry terraformcluster prod --serial=41 --yes-forget-resources=4 --without-claim")]
pub struct RetryArgs {
    /// The object as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub object: Vec<String>,

    /// The serial (default: the one that was tried last)
    #[arg(long, value_name = "SERIAL")]
    pub serial: Option<String>,

    #[command(flatten)]
    pub consent: ConsentArgs,
}

fn limit(text: &str) -> Result<super::args::Timeout, String> {
    super::error::parse_timeout(text).map(super::args::Timeout)
}

/// Runs `restore status`.
pub fn run_status(global: &GlobalArgs, args: &StatusArgs) -> Result<u8, CommandError> {
    let (kind, name) = parse_one_object(&args.object)?;
    block_on(async {
        let session = Session::open(global)?;
        if args.wait && !session.live {
            return Err(CommandError::usage("a snapshot does not change, so it cannot be followed"));
        }
        let object = named(&session, kind, &name).await?;
        must_be_there(&session, &object, crate::cluster::objects::read_object(&session.api, &object).await).await?;
        let shown = Shown { session: &session, global, object: &object, command: "restore status" };
        if !args.wait {
            let Some(progress) = look(&session, &object, None).await? else {
                return Err(CommandError::failed(format!("read {}", object.resource())));
            };
            return shown.show(&progress, None, None).await;
        }
        match follow(&session, &object, None, args.timeout.0).await? {
            Outcome::End(progress) => shown.show(&progress, None, None).await,
            Outcome::TimedOut(progress) => {
                leaving(&object, "waited long enough");
                shown.show(&progress, Some(124), None).await
            }
            Outcome::Interrupted => {
                leaving(&object, "interrupted");
                Ok(130)
            }
        }
    })
}

/// The serial to try again, or why there is none.
fn failed_serial(about: &ObjectFacts, wanted: Option<&str>, resource: &str) -> Result<i64, Finding> {
    let last = about.last_restored_serial;
    let field = format!("{resource} .status.lastRestoredSerial");
    let value = last.map_or("not set".to_string(), |s| s.to_string());
    let nothing = |why: Evidence| Finding::new(Code::RestoreRetryNothing, Evidence::new(field, value)).seen(why);
    let request = about.restore_request.as_deref().and_then(parse_serial);
    let source = format!("{resource} annotation captf.io/restore-state");
    let Some(serial) = wanted.map_or(last, parse_serial) else {
        return Err(nothing(Evidence::new(source, about.restore_request.clone().unwrap_or("absent".to_string()))));
    };
    if last != Some(serial) {
        return Err(nothing(Evidence::new("the serial to try again", serial.to_string())));
    }
    let restored = about.has("RestoreJobSucceeded", "True", "StateRestored") && request.is_none();
    if restored {
        return Err(nothing(Evidence::new(format!("{resource} RestoreJobSucceeded"), "True/StateRestored")));
    }
    match request {
        Some(other) if other != serial => Err(nothing(Evidence::new(source, other.to_string()))),
        _ => Ok(serial),
    }
}

/// Runs `restore retry`.
pub fn run_retry(global: &GlobalArgs, args: &RetryArgs) -> Result<u8, CommandError> {
    let (kind, name) = parse_one_object(&args.object)?;
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let given = args.serial.clone().unwrap_or_default();
        let first = Run {
            session: &session,
            global,
            object: &object,
            serial: &given,
            consent: &args.consent,
            retry: true,
            command: "restore retry",
        };
        let facts = super::state::gather(&session, &object, None).await?;
        let serial = match failed_serial(&facts.about, args.serial.as_deref(), &object.resource()) {
            Ok(serial) => serial.to_string(),
            Err(finding) => {
                let report =
                    super::state_render::report_of(&session, first.command, &object, vec![finding], Vec::new());
                return super::state_render::render_state(&report, Default::default(), global, Some(REFUSED));
            }
        };
        if !session.live {
            return Err(CommandError::usage("a snapshot cannot be changed"));
        }
        let run = Run { serial: &serial, ..first };
        let judged = run.judge().await?;
        if judged.judgement.refused() || run.is_text() {
            let code = run.show(&judged, RestoreView::default(), Some(OK))?;
            if judged.judgement.refused() {
                return Ok(code);
            }
        }
        let number = judged.judgement.serial.unwrap_or_default();
        if !confirm(args.consent.given(), &judged.judgement, &object, number, judged.deleting()) {
            return run.turned_down(&judged);
        }
        let doing = format!("restore retry {number}");
        let asked = asked_of(&judged.facts, number);
        let again = Run { retry: false, ..run };
        let steps = async |claim: &Claim| {
            claim.fence().await?;
            let present = judged.facts.about.restore_request.is_some();
            take_back(&again, &judged.facts.extra.resource_version, present).await?;
            wait_until_forgotten(&again, number, args.consent.timeout.0, claim).await?;
            let judged = again.judge().await?;
            if judged.judgement.refused() {
                return again.show(&judged, RestoreView::default(), None).map(Ended::With);
            }
            let diff = judged.diff(usize::MAX);
            Ok(match again.write(judged, claim).await? {
                Some(code) => Ended::With(code),
                None => Ended::Asked(diff),
            })
        };
        match with_claim(&session, &object, &doing, args.consent.without_claim, steps).await? {
            Ended::With(code) => Ok(code),
            Ended::Asked(diff) => again.finish(&asked, diff).await,
        }
    })
}

/// How the part under the claim ended.
enum Ended {
    /// The command is over.
    With(u8),
    /// The restore was asked for; what it forgets, if that is known.
    Asked(Option<DiffView>),
}

/// Takes the annotation away, bound to the version that was judged.
async fn take_back(run: &Run<'_>, resource_version: &str, present: bool) -> Result<(), CommandError> {
    if !present {
        return Ok(());
    }
    let object = run.object;
    let patch = patch_of(resource_version, None);
    let kind = resource(object.kind);
    match run.session.api.merge_patch(&kind, &object.namespace, &object.name, &patch, false).await {
        Ok(_) => Ok(()),
        Err(WriteFailure::Conflict | WriteFailure::Exists) => {
            Err(CommandError::failed("the object has changed since it was judged; nothing was changed")
                .hint("run the same command again; it judges anew"))
        }
        Err(WriteFailure::NotFound) => {
            Err(CommandError::failed(format!("{} was deleted meanwhile", object.resource())))
        }
        Err(WriteFailure::Refused(gap)) => {
            Err(CommandError::failed("take the request back")
                .caused_by(format!("the server refused: {}", gap.refusal())))
        }
        Err(WriteFailure::NoAnswer(gap)) => {
            Err(CommandError::failed("whether the request was taken back is not known")
                .caused_by(gap.detail)
                .hint("run the same command again; it judges anew"))
        }
    }
}

/// Waits until the controller no longer remembers the serial.
async fn wait_until_forgotten(
    run: &Run<'_>,
    serial: i64,
    limit: Option<Duration>,
    claim: &Claim,
) -> Result<(), CommandError> {
    let began = Instant::now();
    stderr_line(&format!("waiting until the controller has forgotten serial {serial}"));
    loop {
        match read_restore_object(&run.session.api, run.object).await {
            Reading::Found((about, _)) if about.last_restored_serial != Some(serial) => return Ok(()),
            Reading::Absent => {
                return Err(CommandError::failed(format!("{} was deleted meanwhile", run.object.resource())));
            }
            Reading::Found(_) | Reading::Unreadable(_) => {}
        }
        if limit.is_some_and(|l| began.elapsed() >= l) {
            let hint = format!(
                "`kubectl captf restore {serial} {} -n {}` asks for it when `lastRestoredSerial` is gone",
                run.object.resource(),
                run.object.namespace
            );
            return Err(CommandError {
                kind: super::error::ErrorKind::TimedOut,
                ..CommandError::failed("waited too long")
            }
            .caused_by("the request was taken back; the controller has not looked at the object since")
            .hint(hint));
        }
        tokio::select! {
            () = tokio::time::sleep(Duration::from_secs(1)) => {}
            () = claim.interrupted() => {
                let said = "interrupted; the request was taken back and not set again";
                return Err(CommandError::interrupted(said));
            }
        }
    }
}
