//! `lock force-unlock`: may this lock be broken by hand, by which method, and with what.
//!
//! Judged with `lock inspect`'s own ruling. A refusal is a finding and no flag overrides it, except the wait
//! for the controller. Everything for which the pinned binary is known to fail, or to write a state, is found here,
//! before any container starts.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::lock_inspect::{self, Judgement, holder_evidence};
use super::lock_verdict::{Ruling, differing_id, rule};
use super::unlock_preflight::{binary_cannot, image_of, state_unprotected, unbookkept, unproven};
use super::unlock_signs::signs_of_life;
use crate::captf::names::backend_labels;
use crate::captf::time::{relative, utc};
use crate::facts::lease::Holder;
use crate::facts::lock::LockFacts;
use crate::facts::reading::{Gap, Reading};
use crate::facts::unlock::UnlockReads;

/// How the lock is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The pinned binary in a container of a local engine.
    Runtime,
    /// The pinned binary in a Job of the cluster.
    Job,
    /// One guarded update of the Lease.
    Lease,
}

impl Method {
    /// The word of `--method`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Job => "job",
            Self::Lease => "lease",
        }
    }
}

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub method: Method,
    pub do_not_wait: bool,
    /// `--image`.
    pub image: Option<String>,
}

/// What will be done, and to which lock exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub method: Method,
    /// `spec.holderIdentity`; empty for a holder that is the empty string.
    pub lock_id: String,
    /// Who the lock-info names, or `unknown`.
    pub holder: String,
    pub lease: String,
    pub resource_version: String,
    pub uid: String,
    /// Reference of the image to run, and where it was recorded. None for [`Method::Lease`].
    pub image: Option<(String, String)>,
    /// The five labels of the backend configuration.
    pub labels: BTreeMap<&'static str, String>,
    pub suffix: String,
    /// What only a person can look at: a node or an address of the host's name.
    pub look_at: Vec<String>,
    /// What was seen of the holder: evidence, and no proof of anything.
    pub signs: Vec<Evidence>,
}

/// What may be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nobody holds the lock.
    Nothing,
    /// A Job is unfinished: the gap after it can be waited for.
    Wait,
    Refuse,
    Go(Box<Plan>),
}

/// The decision with everything it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    pub decision: Decision,
    pub judgement: Judgement,
    /// The findings of this command, before those of the judgement.
    pub findings: Vec<Finding>,
    pub gaps: Vec<Gap>,
}

/// Judges whether the lock may be released by hand.
pub fn judge(facts: &LockFacts, reads: &UnlockReads, wish: &Wish, now: Timestamp) -> Judged {
    let judgement = lock_inspect::diagnose(facts, now);
    let mut gaps = judgement.gaps.clone();
    let ended = |decision, findings, judgement, gaps| Judged { decision, judgement, findings, gaps };
    let ruling = rule(facts);
    let lease = match gate(facts, &ruling, wish, now) {
        Gate::Ends(decision, finding) => return ended(decision, vec![finding], judgement, gaps),
        Gate::Passed => match facts.lease.found() {
            Some(lease) => lease,
            None => return ended(Decision::Refuse, vec![undetermined(facts)], judgement, gaps),
        },
    };
    let mut refusals = state_unprotected(facts, reads, &judgement);
    refusals.extend(unproven(facts));
    refusals.extend(unbookkept(&judgement));
    if wish.method != Method::Lease {
        refusals.extend(binary_cannot(facts, &judgement));
    }
    let signs = signs_of_life(facts, &reads.signs, now);
    gaps.extend(signs.gaps.iter().filter(|g| !judgement.gaps.contains(g)).cloned());
    refusals.extend(signs.refusal.clone());
    let image = match image_of(reads, wish, &mut gaps) {
        Ok(image) => image,
        Err(finding) => {
            refusals.push(*finding);
            None
        }
    };
    gaps.dedup();
    if !refusals.is_empty() {
        return ended(Decision::Refuse, refusals, judgement, gaps);
    }
    let ids_differ = differing_id(lease).is_some();
    let who = lease.info.info().map(|i| i.who.clone()).filter(|w| !w.is_empty() && !ids_differ);
    let cluster = facts.about.cluster_name.clone().unwrap_or_default();
    let plan = Plan {
        method: wish.method,
        lock_id: match &lease.holder {
            Holder::Id(id) => id.clone(),
            Holder::Empty | Holder::Nobody => String::new(),
        },
        holder: who.unwrap_or_else(|| "unknown".to_string()),
        lease: lease.name.clone(),
        resource_version: lease.resource_version.clone(),
        uid: lease.uid.clone(),
        image,
        labels: backend_labels(facts.object.kind, &facts.object.name, &cluster),
        suffix: facts.object.suffix(),
        look_at: signs.look_at,
        signs: signs.evidence,
    };
    let ready = ready(&plan, facts);
    ended(Decision::Go(Box::new(plan)), vec![ready], judgement, gaps)
}

/// What the verdict alone settles.
enum Gate {
    Ends(Decision, Finding),
    Passed,
}

fn gate(facts: &LockFacts, ruling: &Ruling<'_>, wish: &Wish, now: Timestamp) -> Gate {
    let lease_seen = || facts.lease.found().map(holder_evidence);
    match ruling {
        Ruling::Free { .. } => {
            let seen =
                lease_seen().unwrap_or_else(|| Evidence::new(format!("Lease/{}", facts.lease_name()), "not found"));
            Gate::Ends(Decision::Nothing, Finding::new(Code::UnlockNothing, seen))
        }
        Ruling::Live { pod } => {
            let seen = Evidence::new(format!("Pod/{} .status.phase", pod.name), pod.phase.clone()).at(pod.created);
            let finding = Finding::new(Code::UnlockLive, seen).seen_all(lease_seen()).with("pod", pod.name.clone());
            Gate::Ends(Decision::Refuse, finding)
        }
        Ruling::NotEvaluated { job } => {
            let seen = Evidence::new(format!("Job/{}", job.name), "unfinished").at(job.started.or(job.created));
            let mut finding =
                Finding::new(Code::UnlockJobRunning, seen).seen_all(lease_seen()).with("job", job.name.clone());
            if let Some(deadline) = job.started.zip(job.active_deadline_seconds) {
                let at = deadline.0 + jiff::SignedDuration::from_secs(deadline.1);
                let value = format!("its deadline ends it {}", relative(at, now));
                finding = finding.seen(Evidence::new(format!("Job/{}", job.name), value).at(Some(at)));
            }
            Gate::Ends(Decision::Wait, finding)
        }
        Ruling::Undetermined(_) => Gate::Ends(Decision::Refuse, undetermined(facts)),
        // The controller's own unlock does nothing when the IDs differ.
        Ruling::Stale { .. } if facts.lease.found().is_some_and(|l| differing_id(l).is_some()) => Gate::Passed,
        Ruling::Stale { .. } if !wish.do_not_wait => {
            let next = lock_inspect::when_cleared(facts, now);
            let words = match &next {
                super::next_run::NextRun::Due { what, at, .. } => {
                    let when = at.map_or("as soon as its turn comes".to_string(), |at| {
                        if at <= now { "now due".to_string() } else { format!("{} ({})", utc(at), relative(at, now)) }
                    });
                    format!("{what}, {when}")
                }
                super::next_run::NextRun::Nothing { .. } => "nothing is due at the moment".to_string(),
                super::next_run::NextRun::Unknown(_) => "when that is could not be read".to_string(),
            };
            let seen = Evidence::new("the next run of the object", words);
            Gate::Ends(Decision::Refuse, Finding::new(Code::UnlockLeftToController, seen).seen_all(lease_seen()))
        }
        Ruling::Stale { .. } | Ruling::Foreign(_) | Ruling::EmptyHolder => Gate::Passed,
    }
}

fn undetermined(facts: &LockFacts) -> Finding {
    let gap = facts.jobs.gap().or(facts.lease.gap()).or(facts.holder_pod.as_ref().and_then(Reading::gap));
    let seen = match gap {
        Some(gap) => Evidence::new(gap.what.clone(), gap.reason.as_str()),
        None => Evidence::new(format!("Lease/{}", facts.lease_name()), "could not be judged"),
    };
    Finding::new(Code::UnlockUndetermined, seen)
}

fn ready(plan: &Plan, facts: &LockFacts) -> Finding {
    let shown = if plan.lock_id.is_empty() { "\"\"" } else { &plan.lock_id };
    let mut finding = Finding::new(Code::UnlockReady, Evidence::new(format!("Lease/{} holder", plan.lease), shown))
        .seen(
            Evidence::new("held by", plan.holder.clone()).at(facts
                .lease
                .found()
                .and_then(|l| l.info.info())
                .and_then(|i| i.created)),
        )
        .seen_all(plan.signs.clone())
        .with("method", plan.method.as_str());
    if let Some((image, source)) = &plan.image {
        finding = finding.seen(Evidence::new("image", format!("{image} ({source})"))).with("image", image.clone());
    }
    for (key, value) in &plan.labels {
        finding = finding.seen(Evidence::new(format!("backend label {key}"), format!("\"{value}\"")));
    }
    finding
}
