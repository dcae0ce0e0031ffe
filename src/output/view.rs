//! The versioned view: everything that any format prints, made once from a report and the words.
//!
//! `kubectl.captf.io/v1alpha1`, kind `Report`. It is only ever added to. Text is rendered from it, so
//! JSON cannot hold less than the text.

use jiff::Timestamp;
use serde::Serialize;

use super::run_view::{RunsView, runs_view};
use crate::captf::kind::WorkloadKind;
use crate::captf::names::label_value;
use crate::captf::time::{relative, utc};
use crate::facts::reading::Gap;
use crate::report::{Item, Lock, Report};
use crate::runbook::code::Code;
use crate::runbook::finding::{Finding, Severity, Values};
use crate::runbook::verdict::Verdict;
use crate::runbook::words::{Section, shell_quote};

pub const API_VERSION: &str = "kubectl.captf.io/v1alpha1";

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportView {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub command: String,
    pub generated_at: String,
    pub source: SourceView,
    pub items: Vec<ItemView>,
    pub unreadable: Vec<GapView>,
    /// The exit code that this report stands for.
    pub exit_code: u8,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceView {
    /// `cluster` or `snapshot`.
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// Which clock ages and due times are counted by, when it is not this machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemView {
    pub object: ObjectView,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_word")]
    pub verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockView>,
    pub findings: Vec<FindingView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingView>,
    /// What is known of the object's Jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<RunsView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<GapView>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectView {
    pub kind: String,
    pub namespace: String,
    pub name: String,
    #[serde(skip)]
    pub resource: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockView {
    pub lease: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotated_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_at: Option<String>,
    /// `42m ago`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FindingView {
    pub code: &'static str,
    #[serde(serialize_with = "as_severity")]
    pub severity: Severity,
    pub summary: String,
    pub evidence: Vec<EvidenceView>,
    pub next_steps: Vec<StepView>,
    pub runbook: String,
}

#[derive(Debug, Clone, Serialize)]
pub struct EvidenceView {
    pub source: String,
    pub value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct StepView {
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    pub changes: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingView {
    pub job: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock_timeout_seconds: Option<i64>,
    pub lock_timeout_from: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gives_up_after: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GapView {
    pub what: String,
    pub reason: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// `get pods`, the permission that is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// What settles it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Builds the view; with `only_problems` items and findings below a warning are left out.
pub fn view_of(report: &Report, only_problems: bool) -> ReportView {
    let items = report.items.iter().filter(|i| !only_problems || i.is_problem());
    ReportView {
        api_version: API_VERSION,
        kind: "Report",
        command: report.command.to_string(),
        generated_at: utc(report.now),
        source: SourceView {
            kind: if report.source.live { "cluster" } else { "snapshot" },
            context: report.source.context.clone(),
            server: report.source.server.clone(),
            snapshot: report.source.snapshot.clone(),
            clock: report.source.clock.clone(),
        },
        items: items.map(|item| item_view(item, report, only_problems)).collect(),
        unreadable: report.all_gaps().into_iter().map(|g| gap_view(g, report)).collect(),
        exit_code: report.exit_code(),
    }
}

fn item_view(item: &Item, report: &Report, only_problems: bool) -> ItemView {
    let values = item_values(item, report);
    let clearing_allowed = report.source.live
        && !item.findings.iter().any(|f| {
            matches!(
                f.code,
                Code::StateLabelsDiffer | Code::StateSecretTwice | Code::StateKeyMissing | Code::LeaseVersionIsProof
            )
        });
    let findings = item.findings.iter().filter(|f| !only_problems || f.code.severity() >= Severity::Warning);
    ItemView {
        object: ObjectView {
            kind: item.object.kind.clone(),
            namespace: item.object.namespace.clone(),
            name: item.object.name.clone(),
            resource: item.object.resource.clone(),
        },
        verdict: item.verdict,
        lock: item.lock.as_ref().map(|l| lock_view(l, report.now)),
        findings: findings.map(|f| finding_view(f, &values, clearing_allowed)).collect(),
        waiting: item
            .waiting
            .iter()
            .map(|w| WaitingView {
                job: w.job.clone(),
                lock_timeout_seconds: w.timeout_seconds,
                lock_timeout_from: w.timeout_from.clone(),
                gives_up_after: w.gives_up_after.map(utc),
                deadline: w.deadline.map(utc),
            })
            .collect(),
        runs: item.runs.as_ref().map(|r| runs_view(r, &item.findings, report.now)),
        unreadable: item.gaps.iter().map(|g| gap_view(g, report)).collect(),
    }
}

/// Values that every section of an item may use; a finding's own come on top.
fn item_values(item: &Item, report: &Report) -> Values {
    let mut values = report.values.clone();
    let object = &item.object;
    values.insert("namespace", object.namespace.clone());
    values.insert("name", object.name.clone());
    values.insert("kind", object.kind.clone());
    values.insert("object", object.short.clone());
    if WorkloadKind::from_kind(&object.kind).is_some() {
        values.insert("owner_label", label_value(&object.name));
    }
    if let Some(lock) = &item.lock {
        values.insert("lease", lock.lease.clone());
        if let Some(id) = lock.id.as_ref().filter(|id| !id.is_empty()) {
            values.insert("lock_id", id.clone());
        }
    }
    values
}

fn lock_view(lock: &Lock, now: Timestamp) -> LockView {
    LockView {
        lease: lock.lease.clone(),
        id: lock.id.clone(),
        annotated_id: lock.annotated_id.clone(),
        holder: lock.who.clone(),
        operation: lock.operation.clone(),
        version: lock.version.clone(),
        taken_at: lock.taken.map(utc),
        age: lock.taken.map(|t| relative(t, now)),
    }
}

fn finding_view(finding: &Finding, shared: &Values, clearing_allowed: bool) -> FindingView {
    let mut values = shared.clone();
    values.extend(finding.values.clone());
    let section = Section::of(finding.code);
    let steps = section.as_ref().map(|s| s.steps(&values)).unwrap_or_default();
    FindingView {
        code: finding.code.as_str(),
        severity: finding.code.severity(),
        summary: section.as_ref().map(|s| s.summary(&values)).unwrap_or_default(),
        evidence: finding
            .evidence
            .iter()
            .map(|e| EvidenceView { source: e.source.clone(), value: e.value.clone(), at: e.at.map(utc) })
            .collect(),
        next_steps: steps
            .into_iter()
            .filter(|s| clearing_allowed || !s.clears)
            .map(|s| StepView { text: s.text, command: s.command, changes: s.changes })
            .collect(),
        runbook: finding.code.anchor(),
    }
}

fn gap_view(gap: &Gap, report: &Report) -> GapView {
    let kubectl = report.values.get("kubectl").map_or("kubectl", String::as_str);
    let command = gap.permission.as_ref().map(|p| {
        let scope = if p.namespace.is_empty() { "-A".to_string() } else { format!("-n {}", shell_quote(&p.namespace)) };
        format!("{kubectl} auth can-i {} {} {scope}", p.verb, p.resource)
    });
    GapView {
        what: gap.what.clone(),
        reason: gap.reason.as_str(),
        detail: gap.detail.clone(),
        permission: gap.permission.as_ref().map(|p| format!("{} {}", p.verb, p.resource)),
        command,
    }
}

fn as_word<S: serde::Serializer>(verdict: &Option<Verdict>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict.map_or("", Verdict::as_str))
}

fn as_severity<S: serde::Serializer>(severity: &Severity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(severity.as_str())
}
