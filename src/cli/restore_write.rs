//! The one write of a restore: bound to what was judged, judged anew on a conflict, never sent twice.

use std::time::Duration;

use super::claimed::Claim;
use super::error::CommandError;
use super::restore::{Judged, REFUSED, Run};
use super::restore_confirm::confirm;
use crate::cluster::objects::{read_object, resource};
use crate::facts::reading::Reading;
use crate::facts::write::WriteFailure;
use crate::output::state_view::RestoreView;
use crate::output::stderr_line;

/// How often a restore whose object changed meanwhile is judged anew.
const ATTEMPTS: usize = 5;
/// How long a server that does not answer is asked what became of the write.
const SETTLE_LIMIT: Duration = Duration::from_secs(300);

impl Run<'_> {
    /// Writes the request. A conflict is judged anew; consent holds only for the same judgement. An exit code
    /// ends the command.
    pub async fn write(&self, mut judged: Judged, claim: &Claim) -> Result<Option<u8>, CommandError> {
        let serial = judged.judgement.serial.unwrap_or_default();
        for _ in 0..ATTEMPTS {
            claim.fence().await?;
            match self.send(&self.patch(&judged), false).await {
                Ok(_) => return Ok(None),
                Err(WriteFailure::NotFound) => {
                    return Err(CommandError::failed(format!("{} was deleted meanwhile", self.object.resource())));
                }
                Err(WriteFailure::Refused(gap)) => {
                    return Err(CommandError::failed(format!("ask for the restore of serial {serial}"))
                        .caused_by(format!("the server refused: {}", gap.refusal()))
                        .hint(format!(
                            "run `kubectl auth can-i patch {} -n {}`",
                            resource(self.object.kind).qualified(),
                            self.object.namespace
                        )));
                }
                Err(WriteFailure::NoAnswer(gap)) => return self.settle(serial, &gap.detail, claim).await,
                Err(WriteFailure::Conflict | WriteFailure::Exists) => {
                    stderr_line("the object has changed since it was judged; judging again");
                    let again = self.judge().await?;
                    if again.judgement.refused() {
                        return self.show(&again, RestoreView::default(), None).map(Some);
                    }
                    if again.judgement.requested {
                        return Ok(None);
                    }
                    if !again.same_as(&judged) {
                        self.show(&again, RestoreView::default(), None)?;
                        if !ask_beside(self, &again, serial, claim).await {
                            return Ok(Some(REFUSED));
                        }
                    }
                    judged = again;
                }
            }
        }
        Err(CommandError::failed("the object kept changing while it was judged; nothing was changed"))
    }

    /// No answer came: whether the request stands is read, never written again.
    async fn settle(&self, serial: i64, why: &str, claim: &Claim) -> Result<Option<u8>, CommandError> {
        stderr_line(&format!("no answer to the write ({why}); reading what became of it"));
        let mut waited = Duration::ZERO;
        let limit = self.consent.timeout.0.unwrap_or(Duration::MAX);
        loop {
            match read_object(&self.session.api, self.object).await {
                Reading::Found(about) => {
                    let stands = about.restore_request.as_deref().map(str::trim) == Some(serial.to_string().as_str());
                    if stands {
                        return Ok(None);
                    }
                    return Err(CommandError::failed(format!("the request for serial {serial} was not stored"))
                        .hint("run the same command again; it judges anew"));
                }
                Reading::Absent => {
                    return Err(CommandError::failed(format!("{} was deleted meanwhile", self.object.resource())));
                }
                Reading::Unreadable(gap) if waited >= limit.min(SETTLE_LIMIT) => {
                    return Err(CommandError::failed(format!(
                        "whether the request for serial {serial} was stored is not known"
                    ))
                    .caused_by(gap.to_string())
                    .hint(format!(
                        "`kubectl captf restore status {} -n {}` tells when the server answers again",
                        self.object.resource(),
                        self.object.namespace
                    )));
                }
                Reading::Unreadable(_) => {}
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
                () = claim.interrupted() => {
                    let said = format!("interrupted; whether the request for serial {serial} was stored is not known");
                    return Err(CommandError::interrupted(said));
                }
            }
            waited += Duration::from_secs(1);
        }
    }
}

/// Asks on a thread of its own, so that the claim is renewed while somebody reads and types.
async fn ask_beside(run: &Run<'_>, judged: &Judged, serial: i64, claim: &Claim) -> bool {
    let (given, judgement, deleting) = (run.consent.given(), judged.judgement.clone(), judged.deleting());
    let object = run.object.clone();
    let (send, answer) = futures::channel::oneshot::channel();
    std::thread::spawn(move || {
        // Nobody listens any more when the command was interrupted meanwhile.
        let _ = send.send(confirm(given, &judgement, &object, serial, deleting));
    });
    tokio::select! {
        answer = answer => answer.unwrap_or(false),
        () = claim.interrupted() => false,
    }
}
