//! `restore`: judge, show, ask, claim, write one annotation, follow the Job to its end.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::args::{GlobalArgs, OutputFormat, Timeout};
use super::claim_met::claim_met;
use super::claimed::{Claim, with_claim};
use super::error::{CommandError, parse_timeout};
use super::restore_candidates;
use super::restore_confirm::{Given, confirm};
use super::restore_follow::{Outcome, follow, leaving, look};
use super::restore_show::Shown;
use super::session::{Session, block_on};
use super::state::gather;
use super::state_render::{render_state, report_of};
use crate::cluster::objects::resource;
use crate::facts::object::ObjectRef;
use crate::facts::restore::RestoreFacts;
use crate::facts::write::WriteFailure;
use crate::output::state_view::{DiffView, Parts, RestoreView, baseline_words};
use crate::output::stderr_line;
use crate::runbook::backup_sets::choose;
use crate::runbook::restore::{RestoreJudgement, Wish, judge};
use crate::runbook::restore_progress::{Asked, Stage};

/// Exit codes of a refusal, of a wait that was too long, and of an interrupt.
pub const REFUSED: u8 = 4;
const TIMED_OUT: u8 = 124;
const INTERRUPTED: u8 = 130;

/// Restore a state from a backup (changes one annotation, after judgement and consent)
///
/// Changes one annotation of the object, captf.io/restore-state; the controller then runs a Job that pushes the backup over
/// the present state. Resources that were created after the backup are forgotten by Terraform and keep running: what that
/// is, is shown first. Whatever would let the Job fail and use up the serial is refused.
///
/// Goes on only after the object's name and the serial were typed back. Without a terminal: `--yes` when nothing is
/// forgotten, else `--yes-forget-resources=N` with the exact number.
///
/// Needs: get and patch on the object; get on clusters and pods; list on jobs; get and list on secrets;
/// get, create, update and delete on leases.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  # What would happen?
  kubectl captf restore 41 terraformcluster/prod -n team-a --dry-run

  # Restore and wait for the end
  kubectl captf restore 41 terraformcluster/prod -n team-a --without-claim

  # How far is it?
  kubectl captf restore status terraformcluster/prod -n team-a

  # The same on a snapshot
  kubectl captf restore 41 terraformcluster/prod --from must-gather.tar.gz --dry-run"
)]
pub struct RestoreArgs {
    #[command(subcommand)]
    pub command: Option<RestoreCommand>,

    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Subcommand)]
pub enum RestoreCommand {
    Status(super::restore_retry::StatusArgs),
    Retry(super::restore_retry::RetryArgs),
}

#[derive(Debug, Args)]
pub struct RunArgs {
    /// The serial, then the object as KIND/NAME or KIND NAME; without an object, the only one with such a backup
    #[arg(value_name = "SERIAL [KIND/NAME]", required = true)]
    pub words: Vec<String>,

    /// Judge and print only; `server` also sends the patch as a dry run
    #[arg(long, value_name = "WHERE", num_args = 0..=1, require_equals = true, default_missing_value = "client",
          value_parser = ["client", "server"])]
    pub dry_run: Option<String>,

    #[command(flatten)]
    pub consent: ConsentArgs,
}

#[derive(Debug, Clone, Args)]
pub struct ConsentArgs {
    /// Wait for the end of the restore
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub wait: bool,

    /// How long to wait (0 waits for ever)
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = limit)]
    pub timeout: Timeout,

    /// Do not ask; only when nothing is forgotten and the object is not being deleted
    #[arg(long)]
    pub yes: bool,

    /// Do not ask; exactly so many resource instances may be forgotten
    #[arg(long, value_name = "N")]
    pub yes_forget_resources: Option<u64>,

    /// More forgotten resource instances than this need the exact number
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub forget_limit: u64,

    /// Go on without the operator claim, which keeps two people from acting on one object
    #[arg(long)]
    pub without_claim: bool,
}

fn limit(text: &str) -> Result<Timeout, String> {
    parse_timeout(text).map(Timeout)
}

impl ConsentArgs {
    pub fn given(&self) -> Given {
        Given { yes: self.yes, forget: self.yes_forget_resources }
    }
}

/// Runs `restore` and its subcommands.
pub fn run(global: &GlobalArgs, args: &RestoreArgs) -> Result<u8, CommandError> {
    match &args.command {
        Some(RestoreCommand::Status(args)) => super::restore_retry::run_status(global, args),
        Some(RestoreCommand::Retry(args)) => super::restore_retry::run_retry(global, args),
        None => run_restore(global, &args.run),
    }
}

fn run_restore(global: &GlobalArgs, args: &RunArgs) -> Result<u8, CommandError> {
    let Some((serial, rest)) = args.words.split_first() else {
        return Err(CommandError::usage("the serial is missing"));
    };
    if serial.contains('/') {
        return Err(CommandError::usage("the serial comes first").hint("write `restore SERIAL KIND/NAME`"));
    }
    block_on(async {
        let session = Session::open(global)?;
        if !session.live && args.dry_run.as_deref() != Some("client") {
            return Err(CommandError::usage("a snapshot cannot be changed").hint("add `--dry-run`"));
        }
        let object = restore_candidates::object_of(&session, serial, rest).await?;
        let run = Run {
            session: &session,
            global,
            object: &object,
            serial,
            consent: &args.consent,
            retry: false,
            command: "restore",
        };
        match args.dry_run.as_deref() {
            Some(place) => run.dry(place).await,
            None => run.real().await,
        }
    })
}

/// One restore on its way through judgement, consent and write.
pub struct Run<'a> {
    pub session: &'a Session,
    pub global: &'a GlobalArgs,
    pub object: &'a ObjectRef,
    pub serial: &'a str,
    pub consent: &'a ConsentArgs,
    pub retry: bool,
    /// The command as reports name it.
    pub command: &'static str,
}

/// A judgement with the facts that it rests on.
pub struct Judged {
    pub facts: RestoreFacts,
    pub judgement: RestoreJudgement,
}

impl Judged {
    /// Whether another judgement asks for the same consent.
    pub(super) fn same_as(&self, other: &Self) -> bool {
        let codes = |j: &RestoreJudgement| j.findings.iter().map(|f| f.code).collect::<Vec<_>>();
        let forgotten = |f: &RestoreFacts| f.diff.as_ref().map(|d| d.forgotten.clone());
        codes(&self.judgement) == codes(&other.judgement) && forgotten(&self.facts) == forgotten(&other.facts)
    }

    /// What would be forgotten, with at most so many addresses as text.
    pub fn diff(&self, limit: usize) -> Option<DiffView> {
        let from = baseline_words(&self.facts.baseline, self.facts.live.found());
        let to = format!("the backup of serial {}", self.judgement.serial.unwrap_or_default());
        self.facts.diff.as_ref().map(|d| DiffView::of(d, from, to, limit))
    }

    pub fn deleting(&self) -> bool {
        self.facts.about.deleting.is_some()
    }
}

impl Run<'_> {
    pub async fn judge(&self) -> Result<Judged, CommandError> {
        let serial = crate::runbook::restore::parse_serial(self.serial);
        let facts = gather(self.session, self.object, serial).await?;
        let wish = Wish {
            serial: self.serial,
            retry: self.retry,
            may_forget: self.consent.yes_forget_resources,
            forget_limit: self.consent.forget_limit,
        };
        let judgement = judge(&facts, &wish, self.session.now());
        Ok(Judged { facts, judgement })
    }

    /// The judgement before anything is asked or written, with the claim of somebody else that it would meet.
    async fn judge_first(&self) -> Result<Judged, CommandError> {
        let mut judged = self.judge().await?;
        if let Ok(Some(claim)) = claim_met(self.session, self.object).await {
            judged.judgement.findings.push(claim);
        }
        Ok(judged)
    }

    /// Prints the judgement; the exit code is that of a refusal, or the given one.
    pub fn show(&self, judged: &Judged, view: RestoreView, exit: Option<u8>) -> Result<u8, CommandError> {
        let refused = judged.judgement.refused();
        let mut view = RestoreView { refused: Some(refused), serial: judged.judgement.serial, ..view };
        let sets = judged.facts.sets.found().map(Vec::as_slice).unwrap_or_default();
        if let Some(set) = judged.judgement.serial.and_then(|s| choose(sets, s)) {
            view.set = Some(set.name.clone());
            view.taken_at = set.taken.map(crate::captf::time::utc);
            view.age = set.taken.map(|t| crate::captf::time::relative(t, self.session.now()));
        }
        let parts = Parts { restore: Some(view), diff: judged.diff(10), ..Parts::default() };
        let findings = judged.judgement.findings.clone();
        let report = report_of(self.session, self.command, self.object, findings, judged.judgement.gaps.clone());
        render_state(&report, parts, self.global, if refused { Some(REFUSED) } else { exit })
    }

    /// The patch that asks for the serial, bound to the version that was judged.
    pub fn patch(&self, judged: &Judged) -> Value {
        let serial = judged.judgement.serial.map(|s| s.to_string());
        patch_of(&judged.facts.extra.resource_version, serial.as_deref())
    }

    async fn dry(&self, place: &str) -> Result<u8, CommandError> {
        let judged = self.judge_first().await?;
        let patch = self.patch(&judged);
        let server = place == "server";
        let mut view = RestoreView {
            dry_run: Some(if server { "server" } else { "client" }),
            patch: judged.judgement.serial.is_some().then(|| patch.clone()),
            ..RestoreView::default()
        };
        let mut exit = None;
        if server && !judged.judgement.refused() {
            let (says, ok) = match self.send(&patch, true).await {
                Ok(_) => ("would accept the patch".to_string(), true),
                Err(WriteFailure::Conflict | WriteFailure::Exists) => {
                    ("the object has changed since it was judged".to_string(), false)
                }
                Err(WriteFailure::NotFound) => ("the object is gone".to_string(), false),
                Err(WriteFailure::Refused(gap)) => (format!("refuses the patch: {}", gap.refusal()), false),
                Err(WriteFailure::NoAnswer(gap)) => (format!("did not answer: {}", gap.detail), false),
            };
            view.server_says = Some(says);
            exit = (!ok).then_some(super::error::FAILED);
        }
        self.show(&judged, view, exit)
    }

    pub(super) async fn send(&self, patch: &Value, dry_run: bool) -> Result<Value, WriteFailure> {
        let (kind, object) = (resource(self.object.kind), self.object);
        self.session.api.merge_patch(&kind, &object.namespace, &object.name, patch, dry_run).await
    }

    async fn real(&self) -> Result<u8, CommandError> {
        let judged = self.judge_first().await?;
        if judged.judgement.refused() || self.is_text() {
            let code = self.show(&judged, RestoreView::default(), None)?;
            if judged.judgement.refused() {
                return Ok(code);
            }
        }
        self.ask_and_write(judged).await
    }

    /// Consent or claim is missing: JSON has the judgement all the same, text has printed it before.
    pub fn turned_down(&self, judged: &Judged) -> Result<u8, CommandError> {
        if self.is_text() { Ok(REFUSED) } else { self.show(judged, RestoreView::default(), Some(REFUSED)) }
    }

    pub fn is_text(&self) -> bool {
        matches!(self.global.output, OutputFormat::Text | OutputFormat::Wide)
    }

    /// Consent, claim, write, follow. The judgement was shown.
    pub async fn ask_and_write(&self, judged: Judged) -> Result<u8, CommandError> {
        let serial = judged.judgement.serial.unwrap_or_default();
        let asked = asked_of(&judged.facts, serial);
        let diff = judged.diff(usize::MAX);
        if !judged.judgement.requested {
            if !confirm(self.consent.given(), &judged.judgement, self.object, serial, judged.deleting()) {
                return self.turned_down(&judged);
            }
            let doing = format!("restore {serial}");
            let without = self.consent.without_claim;
            let write = async |claim: &Claim| self.write(judged, claim).await;
            if let Some(code) = with_claim(self.session, self.object, &doing, without, write).await? {
                return Ok(code);
            }
        }
        self.finish(&asked, diff).await
    }

    /// Where its progress is shown.
    fn shown(&self) -> Shown<'_> {
        Shown { session: self.session, global: self.global, object: self.object, command: self.command }
    }

    /// Reads what came of it, once or to the end.
    pub async fn finish(&self, asked: &Asked, diff: Option<DiffView>) -> Result<u8, CommandError> {
        if !self.consent.wait {
            return match look(self.session, self.object, Some(asked)).await? {
                Some(progress) => self.shown().show(&progress, Some(super::error::OK), None).await,
                None => Err(CommandError::failed("the request was sent, and could not be read back")),
            };
        }
        match follow(self.session, self.object, Some(asked), self.consent.timeout.0).await? {
            Outcome::End(progress) => {
                let code = match progress.stage {
                    Stage::Succeeded => super::error::OK,
                    Stage::Withdrawn => {
                        stderr_line("error: the request was taken away before the restore had ended");
                        super::error::FAILED
                    }
                    _ => super::error::FAILED,
                };
                // What was forgotten is what has to be imported or deleted now.
                let diff = diff.filter(|_| progress.stage == Stage::Succeeded);
                self.shown().show(&progress, Some(code), diff).await
            }
            Outcome::TimedOut(progress) => {
                leaving(self.object, "waited long enough");
                self.shown().show(&progress, Some(TIMED_OUT), None).await
            }
            Outcome::Interrupted => {
                leaving(self.object, "interrupted");
                Ok(INTERRUPTED)
            }
        }
    }
}

/// The annotation set or, with `None`, removed, bound to a version.
pub fn patch_of(resource_version: &str, serial: Option<&str>) -> Value {
    json!({"metadata": {
        "resourceVersion": resource_version,
        "annotations": {"captf.io/restore-state": serial},
    }})
}

/// What is known before the write: the Jobs that are not the one to come.
pub fn asked_of(facts: &RestoreFacts, serial: i64) -> Asked {
    let known_jobs = facts.lock.jobs.found().into_iter().flatten().map(|j| j.uid.clone()).collect();
    Asked { serial, known_jobs }
}
