//! The Secrets that hold an object's state, by name and by label, and what a reader makes of them.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// A Secret that is, or passes for, part of a state. Never its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateSecret {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub created: Option<Timestamp>,
    pub retained_from: Option<String>,
    pub state_key: KeyPresence,
}

/// Whether the data key `tfstate` exists, as far as could be told without reading the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPresence {
    Present,
    Missing,
    Unknown,
}

/// What a reader makes of the chunks, by the controller's rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateContent {
    Readable {
        serial: i64,
        lineage: String,
        terraform_version: String,
        managed_resources: u64,
        bytes: u64,
    },
    Encrypted,
    /// Undecodable, too large or of another version; the text says which, never content.
    Corrupt(String),
    /// Chunk names or keys do not fit together.
    Inconsistent(String),
}
