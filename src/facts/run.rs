//! What a run left behind: the runner's result document, and what its log shows.
//!
//! Free text is masked before it gets here; a fact holds no token, key or password that could be told.

use std::collections::BTreeMap;

use jiff::Timestamp;

/// One step of the runner: `init`, `plan`, `apply`...
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunStep {
    pub name: String,
    /// `plan` with 2 means that there are changes, which is no failure.
    pub exit_code: i64,
    pub millis: i64,
}

/// Why a run failed, in the runner's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunError {
    /// `step`, `image-layout`, `interrupted`, `blocked`, `plan-changed`, or one that is newer.
    pub kind: String,
    pub step: Option<String>,
    pub summary: String,
    /// `<address>: <summary>`.
    pub resources: Vec<String>,
}

/// The result document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunResult {
    pub op: String,
    pub steps: Vec<RunStep>,
    pub error: Option<RunError>,
    pub has_plan: bool,
}

/// What the termination message of `source` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ResultReading {
    #[default]
    NotTerminated,
    /// No result, and why: blank, truncated, not the runner's.
    Nothing(&'static str),
    Found(RunResult),
}

impl ResultReading {
    /// The document, if there is one.
    pub fn found(&self) -> Option<&RunResult> {
        match self {
            Self::Found(result) => Some(result),
            Self::NotTerminated | Self::Nothing(_) => None,
        }
    }
}

/// What the end of a log shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogFacts {
    /// The runtime's own error blocks, masked, newest last.
    pub errors: Vec<String>,
    /// The last lines, masked.
    pub last_lines: Vec<String>,
    /// The last sign of waiting for the state lock is not followed by anything else.
    pub waits_for_lock: bool,
    pub lock_error: bool,
    /// `aws_db.main: Still creating...` on the last lines: which address, and for how many seconds.
    pub still: Option<(String, i64)>,
    /// A child process was killed, or a provider went away in the middle of a call.
    pub killed: Option<String>,
    /// The API server refused the runner: resource and namespace in its message.
    pub forbidden: Option<Refusal>,
}

/// `leases ... is forbidden`, as the runtime passes it on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub resource: String,
    pub namespace: Option<String>,
    pub line: String,
}

/// A run lease or a cluster write lease. Its holder is a Job name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLease {
    pub name: String,
    pub holder: String,
    pub op: Option<String>,
    /// Annotation, else acquireTime, else creation.
    pub acquired: Option<Timestamp>,
    /// Seconds after which it is free whatever its holder does.
    pub backstop_seconds: i64,
}

/// A TerraformPlan, as far as approving it needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanFacts {
    pub name: String,
    pub phase: String,
    pub reason: String,
    pub approved: bool,
    /// `create`, `update`, `replace`, `delete`, `import`: only those that are not zero.
    pub counts: BTreeMap<String, i64>,
    pub resources: Vec<String>,
    pub created: Option<Timestamp>,
}
