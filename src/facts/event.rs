//! An event of either events API, as evidence.

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFacts {
    pub reason: String,
    pub message: String,
    pub warning: bool,
    /// Kind and name of the object it is about.
    pub about: (String, String),
    /// When it was last seen.
    pub at: Option<Timestamp>,
}
