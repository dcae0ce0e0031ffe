//! `backups save`: a state, or its Secrets, into a file that only its owner reads.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use flate2::read::GzDecoder;

use super::args::GlobalArgs;
use super::backups::{no_backup, read_sets, serials, split_object};
use super::error::{CommandError, unreadable};
use super::scope::named;
use super::session::{Session, block_on};
use super::state_render::{render_state, report_of};
use crate::cluster::backups::{read_secret_copy, read_selected};
use crate::cluster::payload::read_bytes;
use crate::facts::backup::{BackupSet, SecretMeta};
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::output::state_view::{Parts, SavedView};
use crate::output::stderr_line;
use crate::runbook::backup_sets::choose;

/// Most bytes of a state that are written, as the controller reads no more.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Write a backup or the live state to a file
///
/// Reads only from the cluster; writes one new file, readable by its owner alone, and never over an existing one. The
/// file holds every attribute of every resource in clear text, passwords and keys included.
///
/// With --secrets it writes the Secrets as YAML, under other names and without the labels and annotations by which they
/// would join a backup set or pass for the live state when they are applied.
///
/// Needs: get on the object, get and list on secrets.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # Before a restore, keep what is live
  kubectl captf backups save terraformcluster/prod --live -n team-a --to before-restore.json

  # A backup as Secrets, to be kept outside the cluster
  kubectl captf backups save terraformcluster/prod 41 --secrets --to serial-41.yaml")]
pub struct SaveArgs {
    /// The object as KIND/NAME or KIND NAME, then the serial
    #[arg(value_name = "KIND/NAME [SERIAL]", required = true)]
    pub words: Vec<String>,

    /// The live state instead of a backup
    #[arg(long)]
    pub live: bool,

    /// A backup set by its name instead of a serial: the older one where a serial was used twice
    #[arg(long, value_name = "NAME")]
    pub set: Option<String>,

    /// The Secrets as YAML instead of the state as JSON
    #[arg(long)]
    pub secrets: bool,

    /// The file to create
    #[arg(long, value_name = "FILE", required = true)]
    pub to: PathBuf,
}

/// Runs `backups save`.
pub fn run(global: &GlobalArgs, args: &SaveArgs) -> Result<u8, CommandError> {
    let ((kind, name), rest) = split_object(&args.words)?;
    let wanted = serials(&rest, 1)?.first().copied();
    let given = [wanted.is_some(), args.live, args.set.is_some()];
    if given.into_iter().filter(|g| *g).count() != 1 {
        return Err(CommandError::usage("give one of a serial, `--live` and `--set`"));
    }
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let secrets = match (wanted, &args.set) {
            (Some(serial), _) => of_backup(&session, &object, serial, args.secrets).await?,
            (None, Some(set)) => of_set(&session, &object, set, args.secrets).await?,
            (None, None) => of_live(&session, &object).await?,
        };
        let content = if args.secrets {
            Content::Yaml(copies(&session, &object, &secrets).await?)
        } else {
            let read = read_bytes(&session.api, &object.namespace, &secrets).await;
            Content::Gzip(found(&session, "read the state", read)?)
        };
        let bytes = create(&args.to, &content)?;
        stderr_line("warning: the file holds the state's secrets in clear text; keep it where nobody else reads it");
        let saved = SavedView {
            path: args.to.display().to_string(),
            bytes,
            content: if args.secrets { "secrets" } else { "state" },
        };
        let report = report_of(&session, "backups save", &object, Vec::new(), Vec::new());
        render_state(&report, Parts { saved: Some(saved), ..Parts::default() }, global, None)
    })
}

fn found<T>(session: &Session, doing: &str, read: Reading<T>) -> Result<T, CommandError> {
    match read {
        Reading::Found(value) => Ok(value),
        Reading::Absent => Err(CommandError::failed(format!("{doing}: not found"))),
        Reading::Unreadable(gap) => Err(unreadable(doing, &gap, session.source.server.as_deref())),
    }
}

/// The Secrets of a serial. As Secrets, an incomplete set can be saved too.
async fn of_backup(
    session: &Session,
    object: &ObjectRef,
    serial: i64,
    incomplete: bool,
) -> Result<Vec<SecretMeta>, CommandError> {
    let (_, _, sets) = read_sets(session, object).await?;
    let any = |s: &&BackupSet| incomplete && s.serial == Some(serial);
    let set = choose(&sets, serial).or_else(|| sets.iter().find(any));
    set.map(|s| s.secrets.clone()).ok_or_else(|| no_backup(&sets, serial, object))
}

/// The Secrets of a set by its name, whether a restore would reach it or not.
async fn of_set(
    session: &Session,
    object: &ObjectRef,
    name: &str,
    incomplete: bool,
) -> Result<Vec<SecretMeta>, CommandError> {
    let (_, _, sets) = read_sets(session, object).await?;
    let list = format!("`kubectl captf backups list {} -n {} -o wide` names them", object.resource(), object.namespace);
    let Some(set) = sets.iter().find(|s| s.name == name) else {
        return Err(CommandError::failed(format!("{} has no backup set `{name}`", object.resource())).hint(list));
    };
    if !incomplete && !set.is_complete() {
        return Err(CommandError::failed(format!("the backup set `{name}` is not complete"))
            .hint("`--secrets` saves the Secrets that are there"));
    }
    Ok(set.secrets.clone())
}

async fn of_live(session: &Session, object: &ObjectRef) -> Result<Vec<SecretMeta>, CommandError> {
    let mut secrets = found(session, "list the state Secrets", read_selected(&session.api, object).await)?;
    if secrets.is_empty() {
        return Err(CommandError::failed(format!("{} has no state", object.resource())));
    }
    secrets.sort_by_key(|s| (s.name.len(), s.name.clone()));
    Ok(secrets)
}

async fn copies(session: &Session, object: &ObjectRef, secrets: &[SecretMeta]) -> Result<String, CommandError> {
    let mut text = String::new();
    for secret in secrets {
        let read = read_secret_copy(&session.api, &object.namespace, &secret.name).await;
        let copy = found(session, "read a Secret", read)?;
        let yaml = serde_saphyr::to_string(&copy)
            .map_err(|e| CommandError::failed("write a Secret as YAML").caused_by(e.to_string()))?;
        text.push_str("---\n");
        text.push_str(&yaml);
    }
    Ok(text)
}

enum Content {
    Yaml(String),
    Gzip(Vec<u8>),
}

/// Creates the file and fills it; a file that could not be filled is taken away again.
fn create(path: &Path, content: &Content) -> Result<u64, CommandError> {
    let failed = |e: &io::Error| {
        if e.kind() == io::ErrorKind::AlreadyExists {
            return CommandError::exists(path);
        }
        CommandError::failed(format!("create `{}`", path.display())).caused_by(e.to_string())
    };
    let mut file = private_file(path).map_err(|e| failed(&e))?;
    let written = match content {
        Content::Yaml(text) => file.write_all(text.as_bytes()).map(|()| text.len() as u64),
        Content::Gzip(data) => io::copy(&mut GzDecoder::new(data.as_slice()).take(MAX_BYTES + 1), &mut file),
    };
    let written = written.and_then(|n| {
        if n > MAX_BYTES && matches!(content, Content::Gzip(_)) {
            return Err(io::Error::other("more than 64 MiB decompressed"));
        }
        file.sync_all().map(|()| n)
    });
    written.map_err(|e| {
        let _ = std::fs::remove_file(path); // it is ours and of no use
        CommandError::failed(format!("write `{}`", path.display()))
            .caused_by(e.to_string())
            .hint("`--secrets` saves the Secrets as they are, whatever they hold")
    })
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_private_and_never_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        assert_eq!(create(&path, &Content::Yaml("a: 1\n".to_string())), Ok(5));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(&path).expect("the file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(create(&path, &Content::Yaml("b: 2\n".to_string())).is_err());
        assert_eq!(std::fs::read_to_string(&path).expect("the file"), "a: 1\n");
    }

    #[test]
    fn what_cannot_be_written_leaves_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state.json");
        assert!(create(&path, &Content::Gzip(b"no gzip".to_vec())).is_err());
        assert!(!path.exists());
    }
}
