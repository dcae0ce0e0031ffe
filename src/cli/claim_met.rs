//! The claim of somebody who is changing an object, mentioned by the commands that judge it.

use super::session::Session;
use crate::claim::lease::claim_lease;
use crate::claim::{ClaimLease, LeaseKey};
use crate::cluster::claim::read_claim;
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, Reading};
use crate::runbook::claim;
use crate::runbook::finding::Finding;

/// The finding of the claim on an object; nothing when there is none, the gap when it could not be read.
pub async fn claim_met(session: &Session, object: &ObjectRef) -> Result<Option<Finding>, Gap> {
    let met = claim_on(session, object).await?;
    Ok(met.map(|found| claim::finding(&found, &object.resource(), session.now())))
}

/// The claim on an object itself.
pub async fn claim_on(session: &Session, object: &ObjectRef) -> Result<Option<ClaimLease>, Gap> {
    let key = LeaseKey { namespace: object.namespace.clone(), name: claim_lease(&object.suffix()) };
    match read_claim(&session.api, &key).await {
        Reading::Found(found) => Ok(Some(found)),
        Reading::Absent => Ok(None),
        Reading::Unreadable(gap) => Err(gap),
    }
}
