//! `lock force-unlock`: may this lock be broken by hand, by which method, and with what.
//!
//! Judged with `lock inspect`'s own ruling. A refusal is a finding and no flag overrides it, except the wait
//! for the controller. Everything for which the pinned binary is known to fail, or to write a state, is found here,
//! before any container starts.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::lock_beside::{differing_labels, expected_labels};
use super::lock_inspect::{self, Judgement, holder_evidence};
use super::lock_verdict::{Ruling, differing_id, rule};
use super::unlock_signs::signs_of_life;
use crate::captf::image::{Pinned, pinned};
use crate::captf::names::{backend_labels, chunk_index, state_secret};
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
        look_at: signs.look_at.clone(),
    };
    let ready = ready(&plan, facts, signs.evidence);
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

/// Row 2 and 16: the lock is all that keeps the next `init` from replacing the state.
fn state_unprotected(facts: &LockFacts, reads: &UnlockReads, judgement: &Judgement) -> Vec<Finding> {
    let has = |code: Code| judgement.findings.iter().find(|f| f.code == code);
    let interrupted_init = has(Code::LockInterruptedInit).is_some();
    let mut seen: Vec<Evidence> = Vec::new();
    for code in [Code::StateLabelsDiffer, Code::StateSecretTwice, Code::StateKeyMissing] {
        // An interrupted first write has no state to lose.
        if code == Code::StateKeyMissing && interrupted_init {
            continue;
        }
        if let Some(finding) = has(code) {
            seen.extend(finding.evidence.iter().filter(|e| e.source.starts_with("Secret/")).cloned());
        }
    }
    let base = state_secret(&facts.object.suffix());
    if let Some(expected) = expected_labels(facts) {
        let chunks = reads.selected.found().into_iter().flatten();
        for chunk in chunks.filter(|s| chunk_index(&base, &s.name).is_some_and(|i| i > 0)) {
            for (key, is, should) in differing_labels(chunk, &expected) {
                let is = is.map_or("missing".to_string(), |is| format!("`{is}`"));
                let source = format!("Secret/{} label {key}", chunk.name);
                seen.push(Evidence::new(source, format!("{is}, the backend asks for `{should}`")));
            }
        }
    }
    let mut seen = seen.into_iter();
    let Some(first) = seen.next() else {
        return Vec::new();
    };
    vec![Finding::new(Code::UnlockStateUnprotected, first).seen_all(seen)]
}

/// Without the state Secrets or the Cluster's name nobody can tell what `init` would find.
fn unproven(facts: &LockFacts) -> Option<Finding> {
    let mut seen: Vec<Evidence> = Vec::new();
    let reads = [facts.state.base.gap(), facts.state.selected.gap()];
    seen.extend(reads.into_iter().flatten().map(|g| Evidence::new(g.what.clone(), g.reason.as_str())));
    if let Some(Reading::Unreadable(gap)) = &facts.state.content {
        seen.push(Evidence::new(gap.what.clone(), gap.reason.as_str()));
    }
    if facts.about.cluster_name.is_none() {
        let source = format!("{} label cluster.x-k8s.io/cluster-name", facts.object.resource());
        seen.push(Evidence::new(source, "missing, and no owner Cluster"));
    }
    let mut seen = seen.into_iter();
    let first = seen.next()?;
    Some(Finding::new(Code::UnlockUnproven, first).seen_all(seen))
}

/// Trap 17: any write to the Lease would destroy the only proof that an apply never ran.
fn unbookkept(judgement: &Judgement) -> Option<Finding> {
    let proof = judgement.findings.iter().find(|f| f.code == Code::LeaseVersionIsProof)?;
    let mut finding = Finding::new(Code::UnlockWaitsForBookkeeping, proof.evidence.first()?.clone());
    finding.values = proof.values.clone();
    Some(finding)
}

/// Rows 2, 7, 14, 15, 17 and 18: the binary fails on its way to the lock.
fn binary_cannot(facts: &LockFacts, judgement: &Judgement) -> Option<Finding> {
    const CODES: [Code; 8] = [
        Code::LockEmptyHolder,
        Code::ReleaseNoState,
        Code::ReleaseChunkedTofu,
        Code::ReleaseChunkedIfTofu,
        Code::ReleaseStateCorrupt,
        Code::ReleaseStateEncrypted,
        Code::ReleaseBadInfo,
        Code::LockInterruptedInit,
    ];
    let why = judgement.findings.iter().filter(|f| CODES.contains(&f.code));
    let mut seen: Vec<Evidence> = why.filter_map(|f| f.evidence.first().cloned()).collect();
    // Whatever the reason, without a readable state the binary does not get as far as the lock.
    // One that was not read is not unreadable to the binary; `unproven` refuses it.
    let state_reads =
        matches!(&facts.state.content, Some(Reading::Found(crate::facts::state::StateContent::Readable { .. })));
    let state = &facts.state;
    let not_read = [state.base.gap(), state.selected.gap(), state.content.as_ref().and_then(Reading::gap)];
    if seen.is_empty() && !state_reads && not_read.iter().all(Option::is_none) {
        let source = format!("Secret/{}", state_secret(&facts.object.suffix()));
        seen.push(Evidence::new(source, "holds no state that can be read"));
    }
    let mut seen = seen.into_iter();
    let first = seen.next()?;
    Some(Finding::new(Code::UnlockBinaryCannot, first).seen_all(seen))
}

/// The image to run, with where it was recorded.
fn image_of(reads: &UnlockReads, wish: &Wish, gaps: &mut Vec<Gap>) -> Result<Option<(String, String)>, Box<Finding>> {
    if wish.method == Method::Lease {
        return Ok(None);
    }
    if let Some(image) = &wish.image {
        return Ok(Some((image.clone(), "given with --image".to_string())));
    }
    let mut seen = Vec::new();
    for record in &reads.records {
        match record {
            Reading::Found(record) => match pinned(&record.image, record.digest.as_deref()) {
                Some(found) => return Ok(Some((Pinned::reference(&found), record.source.clone()))),
                None => seen.push(Evidence::new(record.source.clone(), format!("{}, without a digest", record.image))),
            },
            Reading::Absent => {}
            Reading::Unreadable(gap) => {
                gaps.push(gap.clone());
                seen.push(Evidence::new(gap.what.clone(), gap.reason.as_str()));
                // A later record could name another image than the one that counts.
                break;
            }
        }
    }
    let mut seen = seen.into_iter();
    let first = seen.next().unwrap_or_else(|| Evidence::new("records of the image", "none"));
    Err(Box::new(Finding::new(Code::UnlockNoImage, first).seen_all(seen)))
}

fn ready(plan: &Plan, facts: &LockFacts, signs: Vec<Evidence>) -> Finding {
    let shown = if plan.lock_id.is_empty() { "\"\"" } else { &plan.lock_id };
    let mut finding = Finding::new(Code::UnlockReady, Evidence::new(format!("Lease/{} holder", plan.lease), shown))
        .seen(
            Evidence::new("held by", plan.holder.clone()).at(facts
                .lease
                .found()
                .and_then(|l| l.info.info())
                .and_then(|i| i.created)),
        )
        .seen_all(signs)
        .with("method", plan.method.as_str());
    if let Some((image, source)) = &plan.image {
        finding = finding.seen(Evidence::new("image", format!("{image} ({source})"))).with("image", image.clone());
    }
    for (key, value) in &plan.labels {
        finding = finding.seen(Evidence::new(format!("backend label {key}"), format!("\"{value}\"")));
    }
    finding
}
