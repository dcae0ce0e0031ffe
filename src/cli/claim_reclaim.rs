//! `claim reclaim`: shows the claim, has its holder typed back, watches it, and frees it.

use super::args::{GlobalArgs, OutputFormat};
use super::claim::{ClaimReclaimArgs, Subject, read};
use super::claimed::{may_not, missing_verbs};
use super::confirm::{require_terminal, typed_back};
use super::error::{CommandError, OK, unreadable};
use super::render::write_stdout;
use super::session::{Session, block_on};
use crate::captf::time::relative;
use crate::claim::lease::ClaimLease;
use crate::claim::reclaim::{Reclaimed, reclaim, watch_time};
use crate::claim::{HolderId, Terms};
use crate::cluster::api::LEASES;
use crate::cluster::claim::{KubeLeases, SystemClock};
use crate::output::escape::visible;
use crate::output::json::{render_json, render_yaml};
use crate::output::stderr_line;

/// Runs `claim reclaim`.
pub fn run_reclaim(global: &GlobalArgs, args: &ClaimReclaimArgs) -> Result<u8, CommandError> {
    if global.from.is_some() {
        return Err(CommandError::usage("a snapshot cannot be changed"));
    }
    block_on(async {
        let session = Session::open(global)?;
        let subject = Subject::parse(&session, &args.object, args.lease.as_ref()).await?;
        let Some(claim) = read(&session, &subject).await? else {
            if let Some(gap) = subject.must_exist(&session).await? {
                stderr_line(&format!("note: {gap}"));
            }
            stderr_line(&format!("{} is not claimed; nothing to do.", subject.item.short));
            return Ok(OK);
        };
        // Found out after a minute of watching, a missing verb could leave the claim in our own name.
        let missing = missing_verbs(&session.api, &LEASES, &["update", "delete"], &subject.key.namespace).await;
        if !missing.is_empty() {
            return Err(may_not("the claim cannot be freed", &LEASES, &missing, &subject.key.namespace));
        }
        let holder = ask(&session, &subject, &claim)?;
        let watched = watch_time(&claim, Terms::STANDARD).as_secs();
        stderr_line(&format!("Watching the Lease for {watched}s; any change of it means that the holder lives."));
        let me = HolderId::of_this_process().to_string();
        let leases = KubeLeases::new(&session.api);
        let clock = SystemClock::default();
        let ended = reclaim(&leases, &clock, &subject.key, &holder, &me, Terms::STANDARD).await;
        conclude(&session, global, &subject, &holder, ended)
    })
}

/// Shows the claim and asks for its holder, or for the Lease's name where it has none.
fn ask(session: &Session, subject: &Subject, claim: &ClaimLease) -> Result<String, CommandError> {
    let now = session.now();
    let age = claim.renewed.or(claim.acquired).map_or("never".to_string(), |t| relative(t, now));
    let line = |label: &str, text: &str| stderr_line(&format!("  {label:<10}{}", visible(text)));
    stderr_line(&format!("Claim on {} in {}:", visible(&subject.item.short), visible(&subject.key.namespace)));
    line("holder", claim.holder.as_deref().unwrap_or("nobody"));
    line("operation", claim.operation.as_deref().unwrap_or("not said"));
    if let Some(instance) = &claim.instance {
        line("instance", instance);
    }
    line("renewed", &age);
    line("cluster", &super::session::target_of(session));
    stderr_line("A suspended machine or a stopped process looks the same as a dead one, and goes on when it wakes up.");
    require_terminal()?;
    let holder = claim.holder.clone().unwrap_or_default();
    let what = if holder.is_empty() { "the name of the Lease" } else { "the holder" };
    let expected = if holder.is_empty() { &subject.key.name } else { &holder };
    typed_back(&format!("Type {what} to go on:"), expected)?;
    Ok(holder)
}

fn conclude(
    session: &Session,
    global: &GlobalArgs,
    subject: &Subject,
    holder: &str,
    ended: Reclaimed,
) -> Result<u8, CommandError> {
    let short = &subject.item.short;
    let shown = visible(holder);
    match ended {
        Reclaimed::WasFree => {
            stderr_line(&format!("{short} became free by itself; nothing was changed."));
            Ok(OK)
        }
        Reclaimed::Freed { watched } => {
            let seconds = watched.as_secs();
            let view = serde_json::json!({
                "apiVersion": crate::output::view::API_VERSION, "kind": "Reclaim",
                "object": {"kind": subject.item.kind, "namespace": subject.item.namespace, "name": subject.item.name},
                "lease": subject.key.name, "holder": holder, "watchedSeconds": seconds, "result": "freed",
            });
            let mut out = Vec::new();
            let rendered = match global.output {
                OutputFormat::Json => render_json(&mut out, &view),
                OutputFormat::Yaml => render_yaml(&mut out, &view),
                OutputFormat::Text | OutputFormat::Wide | OutputFormat::Name => {
                    out.extend(
                        format!(
                            "claim on {short} freed: held by {shown}, which renewed nothing for {seconds}s. That \
                             it never will again is not proved.\n"
                        )
                        .bytes(),
                    );
                    Ok(())
                }
            };
            rendered.map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
            write_stdout(&out)?;
            Ok(OK)
        }
        Reclaimed::Alive(lease) => Err(CommandError::refused(format!(
            "the claim on {short} changed while it was watched: {} lives; nothing was taken from it",
            visible(lease.holder.as_deref().unwrap_or("its holder"))
        ))),
        Reclaimed::AnotherHolder(lease) => Err(CommandError::refused(format!(
            "the claim on {short} is held by {} by now; nothing was changed",
            visible(lease.holder.as_deref().unwrap_or("nobody"))
        ))),
        Reclaimed::Failed(gap) => Err(unreadable("reclaim", &gap, session.source.server.as_deref())),
        Reclaimed::Stays(gap) => {
            Err(CommandError::failed(format!("the claim on {short} is ours now and could not be deleted"))
                .caused_by(visible(&gap.to_string()))
                .hint(format!(
                    "run the command again, or `kubectl -n {} delete lease {}`",
                    subject.key.namespace, subject.key.name
                )))
        }
    }
}
