//! The one place where a restore takes the operator claim before it writes.
//!
//! The claim belongs to the force-unlock issue. Until it stands, [`take`] knows only how to go without one, on
//! the operator's explicit word; whoever wires the claim in replaces the refusal by taking it, keeps it in
//! [`Held`], checks it in [`Held::still_ours`] before each write, and releases it when [`Held`] is dropped.

use crate::facts::object::ObjectRef;
use crate::output::stderr_line;

/// A claim that is held, or the operator's word that none is wanted.
#[derive(Debug)]
pub struct Held;

impl Held {
    /// Whether a write may still follow.
    pub async fn still_ours(&self) -> bool {
        true
    }
}

/// Takes the claim for what is about to be done (`restore 41`). `None`: refused, and why was said.
pub async fn take(object: &ObjectRef, doing: &str, without_claim: bool) -> Option<Held> {
    if without_claim {
        return Some(Held);
    }
    stderr_line(&format!(
        "refused: `{doing}` on {} needs the operator claim, which this version cannot take",
        object.resource()
    ));
    stderr_line("hint: make sure that nobody else works on this object, then add `--without-claim`");
    None
}
