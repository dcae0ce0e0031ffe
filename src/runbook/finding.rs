//! A finding: what was concluded, from what evidence, and the values its words need.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use super::code::Code;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Changes which step comes next.
    Info,
    /// Degraded, or breaks if left.
    Warning,
    /// Broken now.
    Error,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where something was read, what stood there, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Object and field, or container and stream.
    pub source: String,
    pub value: String,
    pub at: Option<Timestamp>,
}

impl Evidence {
    /// Evidence without a time of its own.
    pub fn new(source: impl Into<String>, value: impl Into<String>) -> Self {
        Self { source: source.into(), value: value.into(), at: None }
    }

    /// The same with the time it stands for.
    pub fn at(mut self, at: Option<Timestamp>) -> Self {
        self.at = at;
        self
    }
}

/// Values for the placeholders of a section. A step whose placeholder has no value is left out.
pub type Values = BTreeMap<&'static str, String>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    pub evidence: Vec<Evidence>,
    pub values: Values,
}

impl Finding {
    /// A finding with its first piece of evidence, which it cannot be without.
    pub fn new(code: Code, first: Evidence) -> Self {
        Self { code, evidence: vec![first], values: Values::new() }
    }

    /// Adds one piece of evidence.
    pub fn seen(mut self, evidence: Evidence) -> Self {
        self.evidence.push(evidence);
        self
    }

    /// Adds several pieces of evidence.
    pub fn seen_all(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// Sets the value of a placeholder.
    pub fn with(mut self, placeholder: &'static str, value: impl Into<String>) -> Self {
        self.values.insert(placeholder, value.into());
        self
    }
}
