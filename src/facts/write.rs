//! Why a write did not go through: said no to, or not answered, in which case it may have happened.

use super::reading::Gap;

/// The outcome of a create, update, patch or delete that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteFailure {
    /// A create found an object of that name.
    Exists,
    /// The object is not as it was read: another resourceVersion or UID.
    Conflict,
    /// The object is not there.
    NotFound,
    /// The server said no; nothing was written.
    Refused(Gap),
    /// No answer that can be trusted: the write may have happened, or may still happen.
    NoAnswer(Gap),
}

impl WriteFailure {
    /// The gap behind it, if there is one.
    pub fn gap(&self) -> Option<&Gap> {
        match self {
            Self::Refused(gap) | Self::NoAnswer(gap) => Some(gap),
            Self::Exists | Self::Conflict | Self::NotFound => None,
        }
    }
}
