//! `backups list`, `backups verify` and `backups diff`.

use clap::{Args, Subcommand};

use super::args::{GlobalArgs, OutputFormat};
use super::error::{CommandError, unreadable};
use super::render::write_stdout;
use super::scope::{must_be_there, named};
use super::session::{Session, block_on};
use super::state_render::{render_state, report_of};
use super::target::parse_one_object;
use crate::captf::kind::NamedKind;
use crate::cluster::backups::read_backup_sets;
use crate::cluster::payload::{Payload, read_backup, read_live};
use crate::cluster::restore::read_restore_object;
use crate::cluster::state_diff::diff;
use crate::facts::backup::BackupSet;
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::reading::Reading;
use crate::facts::restore::RestoreObject;
use crate::facts::state::StateContent;
use crate::output::escape::visible;
use crate::output::state_view::{DiffView, Parts, backup_views};
use crate::runbook::backup_sets::choose;
use crate::runbook::backups::{diagnose_list, diagnose_payload, verified};
use crate::runbook::restore::parse_serial;

/// List, verify, compare and save backups of states
#[derive(Debug, Args)]
pub struct BackupsArgs {
    #[command(subcommand)]
    pub command: BackupsCommand,
}

#[derive(Debug, Subcommand)]
pub enum BackupsCommand {
    List(ListArgs),
    Verify(VerifyArgs),
    Diff(DiffArgs),
    Save(super::backups_save::SaveArgs),
}

/// List every backup of an object, complete or not, from the Secrets themselves
///
/// Reads only, and no payload: serial, age, chunks, resources and what is wrong come from the Secrets' metadata, sizes
/// from the object's status where it lists them.
///
/// Needs: get on the object, list on secrets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf backups list terraformcluster/prod -n team-a
  kubectl captf backups list machine/prod-md-0-x2k4q -o wide --sizes")]
pub struct ListArgs {
    /// The object as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub object: Vec<String>,

    /// Read the payloads to show their sizes
    #[arg(long)]
    pub sizes: bool,
}

/// Read backups through and check them: digest, gzip, JSON, version, serial, lineage, resources
///
/// Reads only. Without SERIAL it checks every complete set. The controller itself checks none of this.
///
/// Needs: get on the object, get and list on secrets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf backups verify terraformcluster/prod -n team-a
  kubectl captf backups verify terraformcluster prod 41")]
pub struct VerifyArgs {
    /// The object as KIND/NAME or KIND NAME, then a serial
    #[arg(value_name = "KIND/NAME [SERIAL]", required = true)]
    pub words: Vec<String>,
}

/// Show which resources a restore would make Terraform forget, bring back, or know under another ID
///
/// Reads only. Compares managed resource instances by their addresses, never by attributes; data sources are left
/// out. Without SERIAL2 the backup is compared with the live state.
///
/// Needs: get on the object, get and list on secrets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # What would a restore of serial 41 lose?
  kubectl captf backups diff terraformcluster/prod 41 -n team-a

  # Between two backups
  kubectl captf backups diff terraformcluster/prod 41 52 -o json")]
pub struct DiffArgs {
    /// The object as KIND/NAME or KIND NAME, then the serial, then the serial to compare with
    #[arg(value_name = "KIND/NAME SERIAL [SERIAL2]", required = true)]
    pub words: Vec<String>,
}

/// Splits words into the object and what follows it.
pub fn split_object(words: &[String]) -> Result<((NamedKind, String), Vec<String>), CommandError> {
    let count = if words.first().is_some_and(|w| w.contains('/')) { 1 } else { 2 };
    let (object, rest) = words.split_at(count.min(words.len()));
    Ok((parse_one_object(object)?, rest.to_vec()))
}

/// Reads words that must be serials.
pub fn serials(words: &[String], most: usize) -> Result<Vec<i64>, CommandError> {
    if words.len() > most {
        return Err(CommandError::usage(format!("`{}` is one word too many", words[most])));
    }
    let read = |word: &String| {
        parse_serial(word).ok_or_else(|| {
            CommandError::usage(format!("`{word}` is not a serial")).hint("a serial is a whole number of 1 or more")
        })
    };
    words.iter().map(read).collect()
}

/// The object with its backup sets; both must be readable.
pub async fn read_sets(
    session: &Session,
    object: &ObjectRef,
) -> Result<(ObjectFacts, RestoreObject, Vec<BackupSet>), CommandError> {
    let (read, sets) = tokio::join!(read_restore_object(&session.api, object), read_backup_sets(&session.api, object));
    let server = session.source.server.as_deref();
    let (about, extra) = must_be_there(session, object, read).await?;
    match sets {
        Reading::Found(sets) => Ok((about, extra, sets)),
        Reading::Absent => Ok((about, extra, Vec::new())),
        Reading::Unreadable(gap) => Err(unreadable(&format!("list the backups in {}", object.namespace), &gap, server)),
    }
}

/// Runs `backups list`.
pub fn run_list(global: &GlobalArgs, args: &ListArgs) -> Result<u8, CommandError> {
    let (kind, name) = parse_one_object(&args.object)?;
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let (about, extra, sets) = read_sets(&session, &object).await?;
        let mut gaps = Vec::new();
        let mut sizes = Vec::new();
        if args.sizes {
            for set in sets.iter().filter(|s| s.is_complete()) {
                match read_backup(&session.api, &object.namespace, set).await {
                    Reading::Found(payload) => sizes.push((set.name.clone(), payload.facts.compressed)),
                    Reading::Absent => {}
                    Reading::Unreadable(gap) => gaps.push(gap),
                }
            }
        }
        if global.output == OutputFormat::Name {
            let names: String =
                sets.iter().flat_map(|s| &s.secrets).map(|s| format!("secret/{}\n", visible(&s.name))).collect();
            write_stdout(names.as_bytes())?;
        }
        let findings = diagnose_list(&object, &about, &extra.status_backups, &sets, session.now());
        let views = backup_views(&sets, &extra.status_backups, &sizes, about.observed_serial, session.now());
        let report = report_of(&session, "backups list", &object, findings, gaps);
        if global.output == OutputFormat::Name {
            return Ok(report.exit_code());
        }
        render_state(&report, Parts { backups: Some(views), ..Parts::default() }, global, None)
    })
}

/// Runs `backups verify`.
pub fn run_verify(global: &GlobalArgs, args: &VerifyArgs) -> Result<u8, CommandError> {
    let ((kind, name), rest) = split_object(&args.words)?;
    let wanted = serials(&rest, 1)?.first().copied();
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let (_, _, sets) = read_sets(&session, &object).await?;
        let chosen: Vec<&BackupSet> = match wanted {
            Some(serial) => vec![choose(&sets, serial).ok_or_else(|| no_backup(&sets, serial, &object))?],
            None => sets.iter().filter(|s| s.is_complete()).collect(),
        };
        if chosen.is_empty() {
            return Err(CommandError::failed(format!("{} has no complete backup", object.resource())).hint(format!(
                "`kubectl captf backups list {} -n {}` shows why",
                object.resource(),
                object.namespace
            )));
        }
        let mut findings = Vec::new();
        let mut gaps = Vec::new();
        for set in chosen {
            match read_backup(&session.api, &object.namespace, set).await {
                Reading::Found(payload) => {
                    let found = diagnose_payload(set, &payload.facts);
                    if found.is_empty() {
                        findings.push(verified(set, &payload.facts));
                    }
                    findings.extend(found);
                }
                Reading::Absent => {}
                Reading::Unreadable(gap) => gaps.push(gap),
            }
        }
        let report = report_of(&session, "backups verify", &object, findings, gaps);
        render_state(&report, Parts::default(), global, None)
    })
}

/// The error for a serial that has no complete backup.
pub fn no_backup(sets: &[BackupSet], serial: i64, object: &ObjectRef) -> CommandError {
    let mut known: Vec<i64> = sets.iter().filter(|s| s.is_complete()).filter_map(|s| s.serial).collect();
    known.dedup();
    let known: Vec<String> = known.into_iter().map(|s| s.to_string()).collect();
    let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
    CommandError::failed(format!("{} has no complete backup of serial {serial}", object.resource()))
        .hint(format!("serials of complete backups: {known}"))
}

/// Runs `backups diff`.
pub fn run_diff(global: &GlobalArgs, args: &DiffArgs) -> Result<u8, CommandError> {
    let ((kind, name), rest) = split_object(&args.words)?;
    let wanted = serials(&rest, 2)?;
    let Some(serial) = wanted.first().copied() else {
        return Err(CommandError::usage("the serial is missing").hint("write KIND/NAME SERIAL"));
    };
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let (_, _, sets) = read_sets(&session, &object).await?;
        let set = choose(&sets, serial).ok_or_else(|| no_backup(&sets, serial, &object))?;
        let backup = payload_of(&session, &object, set).await?;
        let (present, from) = match wanted.get(1) {
            Some(other) => {
                let set = choose(&sets, *other).ok_or_else(|| no_backup(&sets, *other, &object))?;
                (payload_of(&session, &object, set).await?, format!("the backup of serial {other}"))
            }
            None => live_of(&session, &object).await?,
        };
        let difference = diff(&present.instances, &backup.instances);
        let view = DiffView::of(&difference, from, format!("the backup of serial {serial}"), usize::MAX);
        let findings = diagnose_payload(set, &backup.facts);
        let report = report_of(&session, "backups diff", &object, findings, Vec::new());
        render_state(&report, Parts { diff: Some(view), ..Parts::default() }, global, None)
    })
}

async fn payload_of(session: &Session, object: &ObjectRef, set: &BackupSet) -> Result<Payload, CommandError> {
    let doing = format!("read the backup set {}", visible(&set.name));
    match read_backup(&session.api, &object.namespace, set).await {
        Reading::Found(payload) => readable(payload, &doing),
        Reading::Absent => Err(CommandError::failed(doing)),
        Reading::Unreadable(gap) => Err(unreadable(&doing, &gap, session.source.server.as_deref())),
    }
}

async fn live_of(session: &Session, object: &ObjectRef) -> Result<(Payload, String), CommandError> {
    let doing = format!("read the live state of {}", object.resource());
    let inspect = format!("`kubectl captf state inspect {} -n {}` says why", object.resource(), object.namespace);
    let payload = match read_live(&session.api, object).await {
        Reading::Found(payload) => readable(payload, &doing).map_err(|e| e.hint(inspect))?,
        Reading::Absent => return Err(CommandError::failed(format!("{doing}: there is none")).hint(inspect)),
        Reading::Unreadable(gap) => return Err(unreadable(&doing, &gap, session.source.server.as_deref())),
    };
    let from = match &payload.facts.content {
        StateContent::Readable { serial, .. } => format!("the live state (serial {serial})"),
        _ => "the live state".to_string(),
    };
    Ok((payload, from))
}

fn readable(payload: Payload, doing: &str) -> Result<Payload, CommandError> {
    match &payload.facts.content {
        StateContent::Readable { .. } => Ok(payload),
        StateContent::Encrypted => Err(CommandError::failed(format!("{doing}: it is encrypted"))),
        StateContent::Corrupt(why) | StateContent::Inconsistent(why) => {
            Err(CommandError::failed(doing.to_string()).caused_by(visible(why)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn objects_and_serials_stand_side_by_side() {
        for (line, name, rest) in [
            ("tfc/prod", "prod", vec![]),
            ("tfc/prod 41", "prod", vec![41]),
            ("tfc prod 41", "prod", vec![41]),
            ("tfc prod 41 52", "prod", vec![41, 52]),
            ("tfc 41 52", "41", vec![52]),
        ] {
            let ((_, got), after) = split_object(&words(line)).expect(line);
            assert_eq!((got.as_str(), serials(&after, 2).expect(line)), (name, rest), "{line}");
        }
        assert!(split_object(&words("tfc")).is_err());
        assert!(serials(&words("1 2"), 1).is_err());
        assert!(serials(&words("x"), 1).is_err());
        assert!(serials(&words("0"), 1).is_err());
    }
}
