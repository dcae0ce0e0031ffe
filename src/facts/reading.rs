//! A fact that may be missing is one of three: found, absent, unreadable. Absent is a reading.

use std::fmt;

/// The result of one read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    Found(T),
    /// The source answered that it does not exist.
    Absent,
    /// The source did not answer the question.
    Unreadable(Gap),
}

/// Something that could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What was asked for, as a person would say it (`Pod team-a/x`).
    pub what: String,
    pub reason: GapReason,
    /// The source's own words, or nothing.
    pub detail: String,
    /// The permission that is missing, if that is the reason.
    pub permission: Option<Permission>,
}

/// Why a read failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapReason {
    Forbidden,
    Unauthorized,
    TimedOut,
    NotInSnapshot,
    NotInstalled,
    Malformed,
    Failed,
}

/// A verb on a resource, as RBAC names it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    pub verb: &'static str,
    /// `pods`, `leases.coordination.k8s.io`.
    pub resource: String,
    /// Empty for a cluster-scoped resource or for all namespaces.
    pub namespace: String,
}

impl Gap {
    /// The source's own words with the permission that they are about, for a write that was refused.
    pub fn refusal(&self) -> String {
        match &self.permission {
            Some(Permission { verb, resource, .. }) => format!("{} (needs {verb} {resource})", self.detail),
            None => self.detail.clone(),
        }
    }
}

impl GapReason {
    /// One or two words for people and for JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Unauthorized => "unauthorized",
            Self::TimedOut => "timed out",
            Self::NotInSnapshot => "not in the snapshot",
            Self::NotInstalled => "kind not installed",
            Self::Malformed => "malformed",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason.as_str())?;
        match &self.permission {
            Some(missing) => write!(f, " (needs {} {})", missing.verb, missing.resource),
            None => Ok(()),
        }
    }
}

impl<T> Reading<T> {
    /// The value, if it was found.
    pub fn found(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Absent | Self::Unreadable(_) => None,
        }
    }

    /// The gap, if it could not be read.
    pub fn gap(&self) -> Option<&Gap> {
        match self {
            Self::Unreadable(gap) => Some(gap),
            Self::Found(_) | Self::Absent => None,
        }
    }

    /// Turns a found value into facts; the conversion may say that the object is malformed.
    pub fn and_then<U>(self, convert: impl FnOnce(T) -> Reading<U>) -> Reading<U> {
        match self {
            Self::Found(value) => convert(value),
            Self::Absent => Reading::Absent,
            Self::Unreadable(gap) => Reading::Unreadable(gap),
        }
    }

    /// Turns a found value into facts.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Reading<U> {
        self.and_then(|value| Reading::Found(convert(value)))
    }
}
