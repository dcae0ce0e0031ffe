//! The public verdict words of `lock inspect`. They stay.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    Free,
    NotEvaluated,
    Live,
    Stale,
    Foreign,
    EmptyHolder,
    Undetermined,
    Orphan,
}

impl Verdict {
    pub const ALL: [Self; 8] = [
        Self::Free,
        Self::NotEvaluated,
        Self::Live,
        Self::Stale,
        Self::Foreign,
        Self::EmptyHolder,
        Self::Undetermined,
        Self::Orphan,
    ];

    /// The word in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::NotEvaluated => "not-evaluated",
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Foreign => "foreign",
            Self::EmptyHolder => "empty-holder",
            Self::Undetermined => "undetermined",
            Self::Orphan => "orphan",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
