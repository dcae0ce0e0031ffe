//! What a person is shown before a lock is released, and what has to be typed back.

use super::confirm::{require_terminal, typed_back};
use super::error::CommandError;
use super::force_unlock::shown_id;
use super::session::{Session, target_of};
use super::unlock_args::ForceUnlockArgs;
use crate::captf::time::{relative, utc};
use crate::facts::lock::LockFacts;
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::output::style::terminal_width;
use crate::output::text::wrap;
use crate::runbook::force_unlock::{Judged, Method, Plan};

/// Asks on the terminal, or checks what automation passed. Every refusal of the judgement was made before.
pub fn confirm(
    session: &Session,
    facts: &LockFacts,
    plan: &Plan,
    judged: &Judged,
    args: &ForceUnlockArgs,
    engine: Option<&str>,
) -> Result<(), CommandError> {
    summary(session, facts, plan, judged, args, engine);
    if args.lock_id.is_some() {
        return can_be_confirmed(plan, args);
    }
    if let Some(image) = args.image.as_ref().filter(|_| plan.image.is_some()) {
        typed_back("Type the image to go on:", image)?;
    }
    // The empty ID cannot be typed back; the Lease's name stands for it.
    if plan.lock_id.is_empty() {
        return typed_back("Type the name of the Lease to release the lock:", &plan.lease);
    }
    typed_back("Type the lock ID to release the lock:", &plan.lock_id)
}

/// What can be refused before anything is opened or shown: flags that do not fit, or nobody to ask.
pub fn can_be_confirmed(plan: &Plan, args: &ForceUnlockArgs) -> Result<(), CommandError> {
    match &args.lock_id {
        Some(id) => matches_flags(plan, id, args.holder.as_deref().unwrap_or_default()),
        None => require_terminal()
            .map_err(|e| e.hint("automation passes --lock-id, --holder, --holder-is-dead and --reason")),
    }
}

fn matches_flags(plan: &Plan, id: &str, holder: &str) -> Result<(), CommandError> {
    if id != plan.lock_id {
        return Err(CommandError::refused(format!(
            "the lock has the ID {} and not {}; nothing was changed",
            visible(&shown_id(plan)),
            visible(id)
        )));
    }
    if holder != plan.holder {
        return Err(CommandError::refused(format!(
            "the lock is held by {} and not by {}; nothing was changed",
            visible(&plan.holder),
            visible(holder)
        )));
    }
    Ok(())
}

fn summary(
    session: &Session,
    facts: &LockFacts,
    plan: &Plan,
    judged: &Judged,
    args: &ForceUnlockArgs,
    engine: Option<&str>,
) {
    let width = terminal_width().unwrap_or(usize::MAX);
    // Every line is escaped as a whole, so that no text from the cluster can add one or move the cursor.
    let line = |label: &str, text: &str| {
        for (n, part) in wrap(text, width.saturating_sub(12)).iter().enumerate() {
            stderr_line(&format!("  {:<10}{part}", if n == 0 { label } else { "" }));
        }
    };
    let object = &facts.object;
    stderr_line(&format!("State lock of {} in {}:", object.resource(), object.namespace));
    line("cluster", &target_of(session));
    line("lock ID", &shown_id(plan));
    line("held by", &plan.holder);
    if let Some(info) = facts.lease.found().and_then(|l| l.info.info()) {
        if let Some(at) = info.created {
            line("since", &format!("{} ({})", utc(at), relative(at, session.now())));
        }
        if !info.operation.is_empty() {
            line("for", &info.operation);
        }
    }
    for (n, sign) in plan.signs.iter().enumerate() {
        line(if n == 0 { "seen" } else { "" }, &format!("{}: {}", sign.source, sign.value));
    }
    for text in &plan.look_at {
        line("look at", text);
    }
    for gap in &judged.gaps {
        line("not read", &gap.to_string());
    }
    match plan.method {
        Method::Lease => line("will", &format!("clear holder and lock-info of Lease {} by one update", plan.lease)),
        Method::Runtime | Method::Job => {
            let (image, source) = plan.image.clone().unwrap_or_default();
            line("image", &format!("{image} ({source})"));
            line("will run", &format!("init, then force-unlock -no-color -force {}", plan.lock_id));
            line("in", engine.unwrap_or("a Job in the cluster"));
            line("as", &super::unlock_login::identity(facts, args));
        }
    }
    let warning = "A lock is never renewed, so nothing of this proves that the holder is dead. If it lives, a second run will \
                   write at the same time, and its state will be lost.";
    for part in wrap(warning, width) {
        stderr_line(&part);
    }
}
