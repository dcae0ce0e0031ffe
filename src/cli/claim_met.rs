//! The claim of somebody who is changing an object, mentioned by the commands that judge it.

use super::session::Session;
use crate::claim::LeaseKey;
use crate::claim::lease::claim_lease;
use crate::cluster::claim::read_claim;
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, Reading};
use crate::runbook::claim;
use crate::runbook::finding::Finding;

/// The finding of the claim on an object; nothing when there is none, the gap when it could not be read.
pub async fn claim_met(session: &Session, object: &ObjectRef) -> Result<Option<Finding>, Gap> {
    let key = LeaseKey { namespace: object.namespace.clone(), name: claim_lease(&object.suffix()) };
    match read_claim(&session.api, &key).await {
        Reading::Found(found) => Ok(Some(claim::finding(&found, &object.resource(), session.now()))),
        Reading::Absent => Ok(None),
        Reading::Unreadable(gap) => Err(gap),
    }
}
