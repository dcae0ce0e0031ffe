//! What a command found: items in order, what could not be read, and the exit code that follows.

use jiff::Timestamp;

use crate::captf::kind::WorkloadKind;
use crate::captf::names::Operation;
use crate::facts::lease::{Holder, LockLease};
use crate::facts::object::ObjectRef;
use crate::facts::reading::Gap;
use crate::runbook::finding::{Finding, Severity, Values};
use crate::runbook::job_case::RunSummary;
use crate::runbook::lock_inspect::WaitingJob;
use crate::runbook::lock_verdict::differing_id;
use crate::runbook::next_attempt::Attempt;
use crate::runbook::timeline::Entry;
use crate::runbook::verdict::Verdict;

/// The result of a command.
#[derive(Debug, Clone)]
pub struct Report {
    /// `lock inspect`.
    pub command: &'static str,
    pub now: Timestamp,
    pub source: Source,
    pub items: Vec<Item>,
    /// Gaps that belong to no item.
    pub unreadable: Vec<Gap>,
    /// Values that every section may use.
    pub values: Values,
}

/// The log of one container, masked or as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunLog {
    pub job: String,
    pub pod: String,
    pub container: String,
    pub masked: bool,
    pub lines: Vec<String>,
}

/// Where the facts come from.
#[derive(Debug, Clone, Default)]
pub struct Source {
    pub live: bool,
    pub context: Option<String>,
    pub server: Option<String>,
    /// Path and size of a snapshot.
    pub snapshot: Option<String>,
    /// Which clock was taken, when it is not this machine's.
    pub clock: Option<String>,
}

/// What was found about one object.
#[derive(Debug, Clone)]
pub struct Item {
    pub object: ItemObject,
    pub verdict: Option<Verdict>,
    pub lock: Option<Lock>,
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
    pub waiting: Vec<WaitingJob>,
    pub runs: Option<Runs>,
}

/// What a command found about the Jobs of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runs {
    pub runs: Vec<RunSummary>,
    pub attempts: Vec<Attempt>,
    pub timeline: Vec<Entry>,
    pub logs: Vec<RunLog>,
    /// The operation and the time of the condition that the cause is about.
    pub operation: Option<Operation>,
    pub since: Option<Timestamp>,
}

/// The object of an item, as the operator would type it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemObject {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    /// `terraformcluster.infrastructure.cluster.x-k8s.io/prod`, for `-o name`.
    pub resource: String,
    /// `terraformcluster/prod`, for commands.
    pub short: String,
}

impl ItemObject {
    /// A Terraform object.
    pub fn workload(object: &ObjectRef) -> Self {
        Self {
            kind: object.kind.kind().to_string(),
            namespace: object.namespace.clone(),
            name: object.name.clone(),
            resource: format!("{}.{}/{}", object.kind.singular(), crate::captf::keys::GROUP, object.name),
            short: object.resource(),
        }
    }

    /// A Lease that no object owns.
    pub fn lease(namespace: &str, name: &str) -> Self {
        Self {
            kind: "Lease".to_string(),
            namespace: namespace.to_string(),
            name: name.to_string(),
            resource: format!("lease.coordination.k8s.io/{name}"),
            short: format!("lease/{name}"),
        }
    }

    /// Whether this is a kind that runs Jobs.
    pub fn is_workload(&self) -> bool {
        WorkloadKind::from_kind(&self.kind).is_some()
    }
}

/// The lock as shown beside a verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    pub lease: String,
    /// `spec.holderIdentity`, the ID that counts.
    pub id: Option<String>,
    /// The annotation's ID where it differs.
    pub annotated_id: Option<String>,
    pub who: Option<String>,
    pub operation: Option<String>,
    pub version: Option<String>,
    pub taken: Option<Timestamp>,
}

impl Lock {
    /// What the Lease says, or only its name when it is not there or nobody holds it.
    pub fn from_lease(name: String, lease: Option<&LockLease>) -> Self {
        let held = lease.filter(|l| l.holder != Holder::Nobody);
        let Some(lease) = held else {
            return Self { lease: name, ..Self::default() };
        };
        let text = |s: &String| (!s.is_empty()).then(|| s.clone());
        let info = lease.info.info();
        Self {
            lease: name,
            id: Some(match &lease.holder {
                Holder::Id(id) => id.clone(),
                Holder::Empty | Holder::Nobody => String::new(),
            }),
            annotated_id: differing_id(lease).map(str::to_string),
            who: info.and_then(|i| text(&i.who)),
            operation: info.and_then(|i| text(&i.operation)),
            version: info.and_then(|i| text(&i.version)),
            taken: info.and_then(|i| i.created),
        }
    }
}

impl Item {
    /// An item about which nothing was found yet.
    pub fn new(object: ItemObject) -> Self {
        Self {
            object,
            verdict: None,
            lock: None,
            findings: Vec::new(),
            gaps: Vec::new(),
            waiting: Vec::new(),
            runs: None,
        }
    }

    /// The worst severity among its findings.
    pub fn worst(&self) -> Option<Severity> {
        self.findings.iter().map(|f| f.code.severity()).max()
    }

    /// Whether `-q` shows it: a warning, an error or a gap.
    pub fn is_problem(&self) -> bool {
        self.worst() >= Some(Severity::Warning) || !self.gaps.is_empty()
    }
}

impl Report {
    /// Every gap, each once, in order of appearance.
    pub fn all_gaps(&self) -> Vec<&Gap> {
        let mut all: Vec<&Gap> = Vec::new();
        for gap in self.unreadable.iter().chain(self.items.iter().flat_map(|i| &i.gaps)) {
            if !all.contains(&gap) {
                all.push(gap);
            }
        }
        all
    }

    /// The documented exit code: 11 and 10 for the worst finding, 3 for gaps, else 0.
    pub fn exit_code(&self) -> u8 {
        match self.items.iter().filter_map(Item::worst).max() {
            Some(Severity::Error) => 11,
            Some(Severity::Warning) => 10,
            _ if !self.all_gaps().is_empty() => 3,
            _ => 0,
        }
    }
}
