//! What a claim Lease says, in one of two forms for a claim that is held: still renewing, or looking stale.
//!
//! The clocks choose the words and nothing else: a machine whose clock is wrong looks stale and is not.

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding};
use crate::captf::time::{relative, short_duration, utc};
use crate::claim::lease::ClaimLease;

/// A claim without a duration is judged by this one, in seconds.
const USUAL_DURATION: i64 = 60;

/// The finding of a claim that exists.
pub fn finding(claim: &ClaimLease, target: &str, now: Timestamp) -> Finding {
    let lease = format!("Lease/{}", claim.key.name);
    let Some(holder) = &claim.holder else {
        return Finding::new(Code::ClaimNoHolder, Evidence::new(format!("{lease} .spec.holderIdentity"), "absent"))
            .with("claim_lease", claim.key.name.clone())
            .with("claim_target", target);
    };
    let duration = claim.duration_seconds.filter(|d| *d > 0).unwrap_or(USUAL_DURATION).max(USUAL_DURATION);
    let last = claim.renewed.or(claim.acquired);
    let stale = last.is_none_or(|at| now.as_second() - at.as_second() > duration);
    let code = if stale { Code::ClaimLooksStale } else { Code::ClaimHeld };
    let age = match last {
        Some(at) if at > now => format!("at {}, which lies ahead of this machine's clock", utc(at)),
        Some(at) => relative(at, now),
        None => "never".to_string(),
    };
    let mut finding = Finding::new(code, Evidence::new(format!("{lease} .spec.holderIdentity"), holder.clone()))
        .seen(Evidence::new(format!("{lease} .spec.renewTime"), age.clone()).at(last))
        .with("claim_holder", holder.clone())
        .with("claim_age", age)
        .with("claim_lease", claim.key.name.clone())
        .with("claim_target", target);
    if let Some(seconds) = claim.duration_seconds {
        finding = finding.seen(Evidence::new(format!("{lease} .spec.leaseDurationSeconds"), short_duration(seconds)));
    }
    if let Some(at) = claim.acquired {
        finding = finding.seen(Evidence::new(format!("{lease} .spec.acquireTime"), relative(at, now)).at(Some(at)));
    }
    if let Some(operation) = &claim.operation {
        let source = format!("{lease} annotation {}", crate::claim::lease::OPERATION);
        finding = finding.seen(Evidence::new(source, operation.clone()));
    }
    if let Some(instance) = &claim.instance {
        let source = format!("{lease} annotation {}", crate::claim::lease::DCCTL_INSTANCE);
        finding = finding.seen(Evidence::new(source, instance.clone()));
    }
    if let Some(count) = claim.transitions.filter(|n| *n > 0) {
        finding = finding.seen(Evidence::new(format!("{lease} .spec.leaseTransitions"), count.to_string()));
    }
    finding
}

/// The finding that nobody has a claim.
pub fn none(lease: &str) -> Finding {
    Finding::new(Code::ClaimNone, Evidence::new(format!("Lease/{lease}"), "not found"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::lease::LeaseKey;
    use serde_json::Value;

    fn claim(holder: Option<&str>, renewed: Option<&str>, duration: Option<i64>) -> ClaimLease {
        let key = LeaseKey { namespace: "team-a".into(), name: "captf-claim-f66792f9106e7299-c".into() };
        let at = |t: &str| t.parse().expect("a time");
        ClaimLease {
            key,
            uid: "u".into(),
            resource_version: "1".into(),
            holder: holder.map(str::to_string),
            duration_seconds: duration,
            acquired: None,
            renewed: renewed.map(at),
            transitions: None,
            operation: None,
            instance: None,
            object: Value::Null,
        }
    }

    #[test]
    fn clocks_choose_the_words() {
        let now = "2026-01-10T08:10:00Z".parse().expect("a time");
        let bob = Some("bob@host/1/0011223344556677");
        for (name, lease, expected) in [
            ("renewing", claim(bob, Some("2026-01-10T08:09:56Z"), Some(60)), Code::ClaimHeld),
            ("at the edge", claim(bob, Some("2026-01-10T08:09:00Z"), Some(60)), Code::ClaimHeld),
            ("just over", claim(bob, Some("2026-01-10T08:08:59Z"), Some(60)), Code::ClaimLooksStale),
            ("a long duration", claim(bob, Some("2026-01-10T08:06:00Z"), Some(300)), Code::ClaimHeld),
            ("duration 1 counts as 60", claim(bob, Some("2026-01-10T08:09:30Z"), Some(1)), Code::ClaimHeld),
            ("no duration", claim(bob, Some("2026-01-10T08:09:30Z"), None), Code::ClaimHeld),
            ("a clock ahead", claim(bob, Some("2026-01-10T09:00:00Z"), Some(60)), Code::ClaimHeld),
            ("never renewed", claim(bob, None, Some(60)), Code::ClaimLooksStale),
            ("nobody", claim(None, Some("2026-01-10T08:09:56Z"), Some(60)), Code::ClaimNoHolder),
        ] {
            assert_eq!(finding(&lease, "terraformcluster/prod", now).code, expected, "{name}");
        }
    }
}
