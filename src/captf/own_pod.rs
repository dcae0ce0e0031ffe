//! The controller's rule for "this object's own runner pod": purely textual, five steps.
//!
//! It looks at no UID, owner reference or hex alphabet. Each candidate has exactly one accepted
//! form, so hashed and plain Job names are decided per candidate, never once per object.

use super::kind::WorkloadKind;
use super::names::{Operation, job_name};

/// A pod name taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerPod {
    pub job: String,
    pub op: Operation,
    pub attempt: i32,
}

/// The Job behind `candidate` if it names a runner pod of exactly this object, else `None`.
pub fn own_pod(kind: WorkloadKind, name: &str, candidate: &str) -> Option<RunnerPod> {
    let (op, attempt, hash6, job) = split_runner_pod(candidate)?;
    (job_name(kind, name, op, attempt, hash6) == job).then(|| RunnerPod { job: job.to_string(), op, attempt })
}

/// Whether `candidate` has the shape of some object's runner pod, whichever that is.
pub fn looks_like_runner_pod(candidate: &str) -> bool {
    candidate.starts_with("captf-") && split_runner_pod(candidate).is_some()
}

/// Whether `candidate` is the name of a Job of this object (a pod name without its tail).
pub fn is_own_job(kind: WorkloadKind, name: &str, candidate: &str) -> bool {
    split_job(candidate).is_some_and(|(op, attempt, hash6)| job_name(kind, name, op, attempt, hash6) == candidate)
}

fn split_runner_pod(candidate: &str) -> Option<(Operation, i32, &str, &str)> {
    let (job, tail) = candidate.rsplit_once('-')?;
    if tail.len() != 5 {
        return None;
    }
    let (op, attempt, hash6) = split_job(job)?;
    Some((op, attempt, hash6, job))
}

fn split_job(job: &str) -> Option<(Operation, i32, &str)> {
    let (head, hash6) = job.rsplit_once('-')?;
    let (head, attempt) = head.rsplit_once('-')?;
    let attempt = attempt.strip_prefix('a')?.parse::<i32>().ok()?;
    let (_, op) = head.rsplit_once('-')?;
    Some((Operation::parse(op)?, attempt, hash6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use WorkloadKind::{Cluster, Machine, MachinePool};

    #[test]
    fn the_rule_is_exact() {
        for (pod, own) in [
            ("captf-m-web-apply-a1-abc123-x7k2p", true),
            ("captf-m-web-restore-a12-ffffff-00000", true),
            ("captf-m-web-apply-a0-abc123-x7k2p", true),
            ("captf-m-web-apply-a1--x7k2p", true),
            ("captf-m-web-apply-a1-ABCDEFGH-XX!2p", true),
            ("captf-m-web-2-apply-a1-abc123-x7k2p", false),
            ("captf-mp-web-apply-a1-abc123-x7k2p", false),
            ("captf-c-web-apply-a1-abc123-x7k2p", false),
            ("captf-m-we-apply-a1-abc123-x7k2p", false),
            ("captf-m-web-apply-a1-abc123", false),
            ("captf-m-web-apply-a1-abc123-x7k2", false),
            ("captf-m-web-apply-a1-abc123-x7k2pq", false),
            ("captf-m-web-apply-a01-abc123-x7k2p", false),
            ("captf-m-web-apply-a+1-abc123-x7k2p", false),
            ("captf-m-web-apply-a-abc123-x7k2p", false),
            ("captf-m-web-apply-a2147483647-abc123-x7k2p", true),
            ("captf-m-web-apply-a2147483648-abc123-x7k2p", false),
            ("captf-m-web-validate-a1-abc123-x7k2p", false),
            ("captf-m-web-Apply-a1-abc123-x7k2p", false),
            (" captf-m-web-apply-a1-abc123-x7k2p", false),
            ("workstation", false),
            ("", false),
        ] {
            assert_eq!(own_pod(Machine, "web", pod).is_some(), own, "{pod}");
        }
    }

    #[test]
    fn five_bytes_not_five_characters() {
        assert!(own_pod(Machine, "web", "captf-m-web-apply-a1-abc123-é7k2").is_some());
        assert!(own_pod(Machine, "web", "captf-m-web-apply-a1-abc123-é7k2p").is_none());
    }

    #[test]
    fn hashed_names_flip_with_op_and_attempt_so_each_candidate_is_rebuilt() {
        let long = "prod-eu-control-plane-7d9f8-x2k4q";
        for (pod, own) in [
            ("captf-m-prod-eu-control-plane-7d9f8-x2k4q-apply-a1-abc123-x7k2p", true),
            ("captf-m-f9ab8dd997acab0a-apply-a10-abc123-x7k2p", true),
            ("captf-m-f9ab8dd997acab0a-refresh-a1-abc123-x7k2p", true),
            ("captf-m-f9ab8dd997acab0a-apply-a1-abc123-x7k2p", false),
            ("captf-m-prod-eu-control-plane-7d9f8-x2k4q-refresh-a1-abc123-x7k2p", false),
        ] {
            assert_eq!(own_pod(Machine, long, pod).is_some(), own, "{pod}");
        }
    }

    #[test]
    fn other_objects_pods_and_own_job_names_are_recognised_as_such() {
        assert!(looks_like_runner_pod("captf-c-other-apply-a1-abc123-x7k2p"));
        assert!(!looks_like_runner_pod("nginx-apply-a1-abc123-x7k2p"));
        assert!(is_own_job(Cluster, "prod", "captf-c-prod-apply-a3-5e1f00"));
        assert!(!is_own_job(MachinePool, "prod", "captf-c-prod-apply-a3-5e1f00"));
    }
}
