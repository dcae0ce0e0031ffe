//! What is proved before a lock is released: that the state is found again, that no proof is destroyed, that the
//! binary gets as far as the lock, and which image it is.

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::force_unlock::{Method, Wish};
use super::lock_beside::{differing_labels, expected_labels};
use super::lock_inspect::Judgement;
use crate::captf::image::{Pinned, pinned};
use crate::captf::names::{chunk_index, state_secret};
use crate::facts::lock::LockFacts;
use crate::facts::reading::{Gap, Reading};
use crate::facts::unlock::UnlockReads;

/// Row 2 and 16: the lock is all that keeps the next `init` from replacing the state.
pub fn state_unprotected(facts: &LockFacts, reads: &UnlockReads, judgement: &Judgement) -> Vec<Finding> {
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
pub fn unproven(facts: &LockFacts) -> Option<Finding> {
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
pub fn unbookkept(judgement: &Judgement) -> Option<Finding> {
    let proof = judgement.findings.iter().find(|f| f.code == Code::LeaseVersionIsProof)?;
    let mut finding = Finding::new(Code::UnlockWaitsForBookkeeping, proof.evidence.first()?.clone());
    finding.values = proof.values.clone();
    Some(finding)
}

/// Rows 2, 7, 14, 15, 17 and 18: the binary fails on its way to the lock.
pub fn binary_cannot(facts: &LockFacts, judgement: &Judgement) -> Option<Finding> {
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
pub fn image_of(
    reads: &UnlockReads,
    wish: &Wish,
    gaps: &mut Vec<Gap>,
) -> Result<Option<(String, String)>, Box<Finding>> {
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
