//! Conditions behind which no Job stands: waits for a lease or a slot, gates, approvals, refused inputs.

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::machine_jobs;
use super::run_lease::{LeaseRuling, rule};
use crate::captf::kind::WorkloadKind;
use crate::captf::time::{relative, seconds_between, short_duration, utc};
use crate::facts::job::JobOutcome;
use crate::facts::job_why::{JobWhyFacts, LeaseWait};
use crate::facts::object::Condition;
use crate::facts::reading::{Gap, Reading};

/// Gate conditions, with the code of each.
const GATES: [(&str, Code); 4] = [
    ("DependenciesReady", Code::DependenciesNotReady),
    ("IdentityAllowed", Code::IdentityNotReady),
    ("CredentialsMirrored", Code::CredentialsNotMirrored),
    ("RunnerRBACReady", Code::RunnerRbacNotReady),
];

/// A condition as evidence, in the words of the object.
pub fn seen(facts: &JobWhyFacts, condition: &Condition) -> Evidence {
    let said = if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
    let source = format!("{} {}", facts.object.resource(), condition.kind);
    Evidence::new(source, format!("{}/{}{said}", condition.status, condition.reason)).at(condition.since)
}

/// Gates that are closed.
pub fn gates(facts: &JobWhyFacts) -> Vec<Finding> {
    let closed = |(kind, code): &(&str, Code)| {
        let condition = facts.about.condition(kind).filter(|c| c.status != "True")?;
        // The owner's gates are skipped while the object is deleted.
        let skipped = *kind == "DependenciesReady" && facts.about.deleting.is_some();
        (!skipped).then(|| Finding::new(*code, seen(facts, condition)).with("reason", condition.reason.clone()))
    };
    GATES.iter().filter_map(closed).collect()
}

/// What a condition says when no Job explains it; nothing for reasons that a Job explains.
pub fn findings(facts: &JobWhyFacts, condition: &Condition, now: Timestamp, gaps: &mut Vec<Gap>) -> Vec<Finding> {
    let finding = |code| Finding::new(code, seen(facts, condition)).with("reason", condition.reason.clone());
    let code = match condition.reason.as_str() {
        "WaitingForRunLease" | "WaitingForClusterOperation" => return leases(facts, condition, now, gaps),
        "WaitingForMachineOperations" => {
            return machine_jobs::findings(facts, finding(Code::WaitsMachineOperations), now, gaps);
        }
        "WaitingForJobSlot" => Code::WaitsJobSlot,
        "PlanAwaitingApproval" => return vec![approval(facts, finding(Code::PlanWaitsForApproval), gaps)],
        "InputsTooLarge" => Code::InputsTooLarge,
        "JobPolicyInvalid" => Code::JobPolicyInvalid,
        "IdentityNotAllowed" => Code::IdentityNotAllowed,
        "RestoreBackupNotFound" => Code::RestoreWithoutBackup,
        "DurableInputsMissing" => Code::DurableInputsMissing,
        "NoApplyYet" | "DriftNotChecked" | "DriftJobRunning" => Code::NothingAppliedYet,
        _ => return Vec::new(),
    };
    let mut found = finding(code);
    if code == Code::JobPolicyInvalid {
        found = found.seen_all(policy(facts));
    }
    vec![found]
}

/// The counts and the resources of the plan that waits.
pub fn approval(facts: &JobWhyFacts, mut finding: Finding, gaps: &mut Vec<Gap>) -> Finding {
    if let Some(name) = &facts.about.pending_plan {
        finding = finding.with("plan", name.clone());
    }
    match &facts.plan {
        Some(Reading::Found(plan)) => {
            let counts: Vec<String> = plan.counts.iter().map(|(what, n)| format!("{n} to {what}")).collect();
            let counts = if counts.is_empty() { "no changes counted".to_string() } else { counts.join(", ") };
            let source = format!("TerraformPlan/{}", plan.name);
            finding = finding
                .with("plan", plan.name.clone())
                .with("changes", counts.clone())
                .seen(Evidence::new(format!("{source} .spec.summary"), counts).at(plan.created))
                .seen(Evidence::new(format!("{source} .status.phase"), plan.phase.clone()));
            for resource in plan.resources.iter().take(10) {
                finding = finding.seen(Evidence::new(format!("{source} .spec.summary.resources"), resource.clone()));
            }
            finding
        }
        Some(Reading::Absent) => finding.seen(Evidence::new("the pending TerraformPlan", "not found")),
        Some(Reading::Unreadable(gap)) => {
            gaps.push(gap.clone());
            finding
        }
        None => finding,
    }
}

fn policy(facts: &JobWhyFacts) -> Vec<Evidence> {
    let policy = super::policy::Policy::new(facts.object.kind, &facts.about, facts.terraform_cluster.as_ref());
    [("lockTimeoutSeconds", policy.lock_timeout()), ("activeDeadlineSeconds", policy.active_deadline())]
        .into_iter()
        .filter_map(|(field, value)| value.map(|v| Evidence::new(format!("{field} ({})", v.from), v.value.to_string())))
        .collect()
}

fn leases(facts: &JobWhyFacts, condition: &Condition, now: Timestamp, gaps: &mut Vec<Gap>) -> Vec<Finding> {
    let code = match condition.reason.as_str() {
        "WaitingForClusterOperation" => Code::WaitsClusterOperation,
        _ => Code::WaitsRunLease,
    };
    let mut main = Finding::new(code, seen(facts, condition));
    let mut beside = Vec::new();
    for wait in facts.leases.iter().filter(|w| concerns(facts, condition, w)) {
        match rule(wait, now) {
            LeaseRuling::Held { job, why, until } => {
                main = main
                    .seen_all(lease_evidence(wait, now))
                    .seen(Evidence::new(format!("holder Job/{job}"), why))
                    .with("holder", job.clone())
                    .with("lease", wait.name.clone());
                if let Some(until) = until {
                    main = main.with("until", format!("{} ({})", utc(until), relative(until, now)));
                }
                beside.extend(outlasts(condition, wait, now));
            }
            LeaseRuling::Free(why) => {
                let mut finding =
                    Finding::new(Code::LeaseFreesItself, Evidence::new(format!("Lease/{}", wait.name), why))
                        .with("lease", wait.name.clone());
                finding = finding.seen_all(lease_evidence(wait, now));
                // Two leases may be waited for; one that nobody holds is only telling when it has a holder.
                if wait.lease.found().is_some_and(|l| !l.holder.is_empty()) {
                    beside.push(finding);
                }
            }
            LeaseRuling::Unknown(gap) => gaps.push(gap),
        }
    }
    // A wait whose lease is free names it all the same.
    if let (true, Some(wait)) =
        (!main.values.contains_key("lease"), facts.leases.iter().find(|w| concerns(facts, condition, w)))
    {
        main = main.with("lease", wait.name.clone());
        if let Some(lease) = wait.lease.found().filter(|l| !l.holder.is_empty()) {
            main = main.with("holder", lease.holder.clone());
        }
    }
    let mut findings = vec![main];
    findings.extend(beside);
    findings
}

/// Whether a condition waits for that lease: a machine waits for its cluster's in a reason of its own, and only
/// a cluster's apply, destroy or restore takes both.
fn concerns(facts: &JobWhyFacts, condition: &Condition, wait: &LeaseWait) -> bool {
    let is_run_lease = wait.name.starts_with("captf-run-");
    match condition.reason.as_str() {
        "WaitingForClusterOperation" => !is_run_lease,
        _ => is_run_lease || facts.object.kind == WorkloadKind::Cluster && condition.kind != "DriftJobSucceeded",
    }
}

fn lease_evidence(wait: &LeaseWait, now: Timestamp) -> Vec<Evidence> {
    let Some(lease) = wait.lease.found() else {
        return Vec::new();
    };
    let op = lease.op.as_deref().map(|op| format!(" for {op}")).unwrap_or_default();
    let mut seen =
        vec![Evidence::new(format!("Lease/{} .spec.holderIdentity", lease.name), format!("{}{op}", lease.holder))];
    if let Some(at) = lease.acquired {
        let age = short_duration(seconds_between(at, now));
        let backstop = short_duration(lease.backstop_seconds);
        seen.push(
            Evidence::new(format!("Lease/{} held for", lease.name), format!("{age} of at most {backstop}"))
                .at(Some(at)),
        );
    }
    seen
}

/// A wait that is longer than the holder may run: the holder cannot finish.
fn outlasts(condition: &Condition, wait: &LeaseWait, now: Timestamp) -> Option<Finding> {
    let since = condition.since?;
    let job = wait.holder.found()?;
    let deadline = job.active_deadline_seconds?;
    let waited = seconds_between(since, now);
    let started = job.started.or(job.created)?;
    let over = job.outcome == JobOutcome::Unfinished && seconds_between(started, now) > deadline;
    (waited > deadline || over).then(|| {
        Finding::new(Code::WaitOutlastsHolder, Evidence::new("waiting for", short_duration(waited)).at(Some(since)))
            .seen(
                Evidence::new(format!("Job/{} .spec.activeDeadlineSeconds", job.name), deadline.to_string())
                    .at(Some(started)),
            )
            .with("holder", job.name.clone())
    })
}
