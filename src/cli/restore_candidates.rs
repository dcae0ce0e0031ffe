//! Which object a serial alone means: the only one in the namespace with a complete backup of it.

use super::error::{CommandError, unreadable};
use super::scope::named;
use super::session::Session;
use super::target::parse_one_object;
use crate::captf::kind::WorkloadKind;
use crate::cluster::api::Selector;
use crate::cluster::backups::read_all_backups;
use crate::cluster::orphans::read_scope;
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::runbook::backup_sets::{choose, sets_from_secrets};
use crate::runbook::restore::parse_serial;

/// The named object, or the only candidate.
pub async fn object_of(session: &Session, serial: &str, words: &[String]) -> Result<ObjectRef, CommandError> {
    if !words.is_empty() {
        let (kind, name) = parse_one_object(words)?;
        return named(session, kind, &name).await;
    }
    let Some(number) = parse_serial(serial) else {
        return Err(CommandError::usage(format!("`{serial}` is not a serial"))
            .hint("a serial is a whole number of 1 or more: `restore SERIAL KIND/NAME`"));
    };
    let Some(namespace) = &session.namespace else {
        return Err(CommandError::usage("a serial alone names no object across namespaces").hint("name the object"));
    };
    let mut candidates = candidates(session, namespace, number).await?;
    match (candidates.len(), candidates.pop()) {
        (1, Some(only)) => Ok(only),
        (0, _) => {
            Err(CommandError::failed(format!("no object in {namespace} has a complete backup of serial {number}"))
                .hint("`kubectl captf backups list KIND/NAME` shows the backups of one object"))
        }
        (_, last) => {
            let error = CommandError::usage(format!("several objects in {namespace} have a backup of serial {number}"));
            let all = candidates.into_iter().chain(last);
            Err(all.fold(error, |e, o| {
                e.hint(format!("`kubectl captf restore {number} {} -n {namespace}`", o.resource()))
            }))
        }
    }
}

async fn candidates(session: &Session, namespace: &str, serial: i64) -> Result<Vec<ObjectRef>, CommandError> {
    let server = session.source.server.as_deref();
    let everything = Selector::default();
    let (objects, backups) = tokio::join!(
        read_scope(&session.api, &WorkloadKind::ALL, Some(namespace), &everything),
        read_all_backups(&session.api, namespace),
    );
    let (objects, gaps) = objects;
    if let Some(gap) = gaps.first() {
        return Err(unreadable("list the objects that have a backup", gap, server));
    }
    let secrets = match backups {
        Reading::Found(secrets) => secrets,
        Reading::Absent => Vec::new(),
        Reading::Unreadable(gap) => return Err(unreadable("list the backups", &gap, server)),
    };
    let has = |object: &ObjectRef| {
        let suffix = object.suffix();
        let own: Vec<_> =
            secrets.iter().filter(|s| s.labels.get("captf.io/state-backup-suffix") == Some(&suffix)).cloned().collect();
        choose(&sets_from_secrets(&own), serial).is_some()
    };
    Ok(objects.into_iter().map(|(o, _)| o).filter(|o| has(o)).collect())
}
