//! Names that CAPTF derives: state suffix, Secrets, Leases, Job names, label values, label map.
//!
//! All lengths are bytes. The suffix is always recomputed; `status.stateSecretSuffix` is only a
//! cross-check, because a wrong suffix names a wrong Lease, which would read as free.

use std::collections::BTreeMap;

use super::hash::short_hash;
use super::keys;
use super::kind::WorkloadKind;

/// Longest Job name that keeps the object's name; longer ones carry a hash instead.
const JOB_NAME_LIMIT: usize = 57;
/// Longest label value that Kubernetes takes.
const LABEL_VALUE_LIMIT: usize = 63;

/// The operations that a Job can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Apply,
    Destroy,
    Refresh,
    Drift,
    Restore,
    Plan,
}

impl Operation {
    pub const ALL: [Self; 6] = [Self::Apply, Self::Destroy, Self::Refresh, Self::Drift, Self::Restore, Self::Plan];

    /// The word used in Job names, labels and status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Apply => "apply",
            Self::Destroy => "destroy",
            Self::Refresh => "refresh",
            Self::Drift => "drift",
            Self::Restore => "restore",
            Self::Plan => "plan",
        }
    }

    /// The operation of that exact word, or nothing.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.as_str() == word)
    }
}

/// `<16 hex>-<kindshort>`: the backend's `secret_suffix` of an object. Never uses the UID.
pub fn state_suffix(namespace: &str, kind: WorkloadKind, name: &str) -> String {
    let key = format!("{namespace}/{}/{name}", kind.kind());
    format!("{}-{}", short_hash(key.as_bytes(), 16), kind.kindshort())
}

/// Name of the first state Secret of a suffix; chunks add `-part-N`.
pub fn state_secret(suffix: &str) -> String {
    format!("tfstate-default-{suffix}")
}

/// Name of the Lease that is the state lock of a suffix.
pub fn lock_lease(suffix: &str) -> String {
    format!("lock-tfstate-default-{suffix}")
}

/// The suffix inside the name of a state lock Lease, or nothing if it is not one of CAPTF's form
/// (16 lower-case hex digits, then `-c`, `-m` or `-mp`).
pub fn suffix_of_lock_lease(lease: &str) -> Option<&str> {
    let suffix = lease.strip_prefix("lock-tfstate-default-")?;
    let (hex, short) = suffix.split_once('-')?;
    let is_hex = hex.len() == 16 && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_short = WorkloadKind::ALL.into_iter().any(|k| k.kindshort() == short);
    (is_hex && is_short).then_some(suffix)
}

/// The index of a state Secret: 0 for the base, N for `-part-N` written canonically, else nothing.
pub fn chunk_index(base: &str, secret: &str) -> Option<u32> {
    if secret == base {
        return Some(0);
    }
    let digits = secret.strip_prefix(base)?.strip_prefix("-part-")?;
    let index: u32 = digits.parse().ok()?;
    (index >= 1 && index.to_string() == digits).then_some(index)
}

/// Name of the run Lease of a suffix (its holder is a Job name).
pub fn run_lease(suffix: &str) -> String {
    format!("captf-run-{suffix}")
}

/// Name of the cluster write Lease (its holder is a Job name).
pub fn cluster_lease(namespace: &str, cluster: &str) -> String {
    let key = format!("{namespace}/{cluster}");
    format!("captf-cluster-{}", short_hash(key.as_bytes(), 16))
}

/// The Job name, with the object's name hashed when the whole would exceed 57 bytes.
/// `attempt` is kept as text, because the own-pod rule rebuilds the name from parsed parts.
pub fn job_name(kind: WorkloadKind, name: &str, op: Operation, attempt: i32, hash6: &str) -> String {
    let whole = |middle: &str| format!("captf-{}-{middle}-{}-a{attempt}-{hash6}", kind.kindshort(), op.as_str());
    let plain = whole(name);
    if plain.len() <= JOB_NAME_LIMIT { plain } else { whole(&short_hash(name.as_bytes(), 16)) }
}

/// A name as a label value: itself up to 63 bytes, else the first 16 hex digits of its hash.
pub fn label_value(name: &str) -> String {
    if name.len() <= LABEL_VALUE_LIMIT { name.to_string() } else { short_hash(name.as_bytes(), 16) }
}

/// The five labels that CAPTF passes to the backend for an object of a Cluster.
pub fn backend_labels(kind: WorkloadKind, name: &str, cluster: &str) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        (keys::OWNER_KIND, kind.kind().to_string()),
        (keys::OWNER_NAME, label_value(name)),
        (keys::CLUSTER_NAME, label_value(cluster)),
        (keys::MANAGED, "true".to_string()),
        (keys::MOVE, String::new()),
    ])
}

/// The labels by which Terraform selects the state of a suffix: the five of [`backend_labels`] over
/// the backend's own four.
pub fn state_selector_labels(
    kind: WorkloadKind,
    name: &str,
    cluster: &str,
    suffix: &str,
) -> BTreeMap<&'static str, String> {
    let mut labels = BTreeMap::from([
        (keys::TFSTATE, "true".to_string()),
        (keys::TFSTATE_SUFFIX, suffix.to_string()),
        (keys::TFSTATE_WORKSPACE, "default".to_string()),
        (keys::K8S_MANAGED_BY, "terraform".to_string()),
    ]);
    labels.extend(backend_labels(kind, name, cluster));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use WorkloadKind::{Cluster, Machine, MachinePool};

    #[test]
    fn suffix_and_lease_names_match_the_controllers_vectors() {
        assert_eq!(state_suffix("team-a", Machine, "web"), "1cc4ffb6d396d1c4-m");
        assert_eq!(state_suffix("team-a", Cluster, "prod"), "f66792f9106e7299-c");
        assert_eq!(state_suffix("team-a", MachinePool, "workers"), "995e93ddc66624bb-mp");
        assert_eq!(cluster_lease("team-a", "prod"), "captf-cluster-687e6377eb6e7c06");
    }

    #[test]
    fn job_names_hash_the_object_name_above_57_bytes_only() {
        let long = "prod-eu-control-plane-7d9f8-x2k4q";
        for (op, attempt, expected) in [
            (Operation::Apply, 1, "captf-m-prod-eu-control-plane-7d9f8-x2k4q-apply-a1-abc123"),
            (Operation::Apply, 10, "captf-m-f9ab8dd997acab0a-apply-a10-abc123"),
            (Operation::Refresh, 1, "captf-m-f9ab8dd997acab0a-refresh-a1-abc123"),
            (Operation::Destroy, 1, "captf-m-f9ab8dd997acab0a-destroy-a1-abc123"),
            (Operation::Plan, 9, "captf-m-prod-eu-control-plane-7d9f8-x2k4q-plan-a9-abc123"),
        ] {
            assert_eq!(job_name(Machine, long, op, attempt, "abc123"), expected);
        }
        assert_eq!(job_name(Machine, "web", Operation::Apply, 1, "4f88b3"), "captf-m-web-apply-a1-4f88b3");
    }

    #[test]
    fn label_values_are_hashed_above_63_bytes() {
        assert_eq!(label_value(&"a".repeat(63)), "a".repeat(63));
        assert_eq!(label_value(&"a".repeat(70)), "6bd5e5034855a112");
    }

    #[test]
    fn only_leases_of_captfs_form_are_state_locks() {
        let yes = "lock-tfstate-default-1cc4ffb6d396d1c4-m";
        assert_eq!(suffix_of_lock_lease(yes), Some("1cc4ffb6d396d1c4-m"));
        for no in [
            "captf-run-1cc4ffb6d396d1c4-m",
            "lock-tfstate-default-app",
            "lock-tfstate-default-1CC4FFB6D396D1C4-m",
            "lock-tfstate-default-1cc4ffb6d396d1c4-x",
            "lock-tfstate-default-1cc4ffb6d396d1c4",
            "lock-tfstate-prod-1cc4ffb6d396d1c4-m",
        ] {
            assert_eq!(suffix_of_lock_lease(no), None, "{no}");
        }
    }

    #[test]
    fn chunk_numbers_are_canonical() {
        let base = "tfstate-default-x-c";
        for (name, index) in [
            ("tfstate-default-x-c", Some(0)),
            ("tfstate-default-x-c-part-1", Some(1)),
            ("tfstate-default-x-c-part-10", Some(10)),
            ("tfstate-default-x-c-part-0", None),
            ("tfstate-default-x-c-part-01", None),
            ("tfstate-default-x-c-part-+1", None),
            ("tfstate-default-x-c-backup", None),
            ("tfstate-default-y-c", None),
        ] {
            assert_eq!(chunk_index(base, name), index, "{name}");
        }
    }
}
