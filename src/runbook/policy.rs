//! Effective Job policy: own, then the TerraformCluster's defaults, then its own, then built in.

use crate::captf::kind::WorkloadKind;
use crate::facts::object::{JobPolicy, ObjectFacts};
use crate::facts::reading::{Gap, Reading};

const LOCK_TIMEOUT_SECONDS: i64 = 300;
const ACTIVE_DEADLINE_SECONDS: i64 = 3600;
const FAILED_JOBS_HISTORY_LIMIT: i64 = 3;
const DRIFT_INTERVAL_SECONDS: i64 = 1800;

/// A value and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effective {
    pub value: i64,
    pub from: &'static str,
}

/// What becomes of the infrastructure when the object is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    Destroy,
    /// It is released and keeps running; `from` names the field that says so.
    Retain {
        from: &'static str,
    },
    /// Nothing is set and there is no cluster to inherit from: the deletion is held.
    Unresolved,
    /// It would be inherited from what could not be read.
    Unknown,
}

/// The inheritance of one object. An unreadable cluster makes inherited values unknown.
pub struct Policy<'a> {
    kind: WorkloadKind,
    own: &'a ObjectFacts,
    cluster: Option<&'a Reading<ObjectFacts>>,
}

impl<'a> Policy<'a> {
    /// `cluster` is the TerraformCluster of a machine or pool; `None` when it was not read.
    pub fn new(kind: WorkloadKind, own: &'a ObjectFacts, cluster: Option<&'a Reading<ObjectFacts>>) -> Self {
        Self { kind, own, cluster }
    }

    /// Why inherited values are unknown, if they are.
    pub fn gap(&self) -> Option<&'a Gap> {
        self.cluster.and_then(Reading::gap)
    }

    /// `lockTimeoutSeconds`, default 300. `None` when it is inherited from what could not be read.
    pub fn lock_timeout(&self) -> Option<Effective> {
        self.job_field(|p| p.lock_timeout_seconds, LOCK_TIMEOUT_SECONDS)
    }

    /// `activeDeadlineSeconds`, default 3600.
    pub fn active_deadline(&self) -> Option<Effective> {
        self.job_field(|p| p.active_deadline_seconds, ACTIVE_DEADLINE_SECONDS)
    }

    /// `failedJobsHistoryLimit`, default 3. Backoff treats values below 1 as 1.
    pub fn failed_history_limit(&self) -> Option<Effective> {
        self.job_field(|p| p.failed_history_limit, FAILED_JOBS_HISTORY_LIMIT)
    }

    /// Drift interval, default 1800 (the manager's own default flag may differ); 0 disables.
    pub fn drift_interval(&self) -> Option<Effective> {
        if let Some(value) = self.own.drift_interval_seconds {
            return Some(Effective { value, from: "spec.drift.intervalSeconds" });
        }
        self.inherited(|c| {
            c.default_drift_interval_seconds.map(|value| Effective { value, from: "the cluster's spec.defaults.drift" })
        })
        .map(|found| found.unwrap_or(Effective { value: DRIFT_INTERVAL_SECONDS, from: "the manager's default of 30m" }))
    }

    /// `deletionPolicy`: own, then the cluster's defaults, then the cluster's own, then Destroy. A machine or
    /// pool without a policy of its own and without a cluster has none.
    pub fn deletion(&self) -> Deletion {
        let read = |policy: &str, from| if policy == "Retain" { Deletion::Retain { from } } else { Deletion::Destroy };
        if let Some(policy) = &self.own.deletion_policy {
            return read(policy, ".spec.deletionPolicy");
        }
        if self.kind == WorkloadKind::Cluster {
            return Deletion::Destroy;
        }
        match self.cluster {
            Some(Reading::Found(cluster)) => match (&cluster.default_deletion_policy, &cluster.deletion_policy) {
                (Some(policy), _) => read(policy, "the cluster's spec.defaults.deletionPolicy"),
                (None, Some(policy)) => read(policy, "the cluster's spec.deletionPolicy"),
                (None, None) => Deletion::Destroy,
            },
            Some(Reading::Absent) => Deletion::Unresolved,
            Some(Reading::Unreadable(_)) | None => Deletion::Unknown,
        }
    }

    fn job_field(&self, field: impl Fn(&JobPolicy) -> Option<i64>, built_in: i64) -> Option<Effective> {
        if let Some(value) = field(&self.own.jobs) {
            return Some(Effective { value, from: "spec.jobs" });
        }
        self.inherited(|c| {
            field(&c.default_jobs)
                .map(|value| Effective { value, from: "the cluster's spec.defaults.jobs" })
                .or_else(|| field(&c.jobs).map(|value| Effective { value, from: "the cluster's spec.jobs" }))
        })
        .map(|found| found.unwrap_or(Effective { value: built_in, from: "built-in default" }))
    }

    /// `None` = unknown; `Some(None)` = nothing set there.
    fn inherited(&self, find: impl Fn(&ObjectFacts) -> Option<Effective>) -> Option<Option<Effective>> {
        if self.kind == WorkloadKind::Cluster {
            return Some(None);
        }
        match self.cluster {
            Some(Reading::Found(cluster)) => Some(find(cluster)),
            Some(Reading::Absent) => Some(None),
            Some(Reading::Unreadable(_)) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::reading::GapReason;

    fn with_timeout(own: Option<i64>, defaults: Option<i64>) -> ObjectFacts {
        ObjectFacts {
            jobs: JobPolicy { lock_timeout_seconds: own, ..JobPolicy::default() },
            default_jobs: JobPolicy { lock_timeout_seconds: defaults, ..JobPolicy::default() },
            ..ObjectFacts::default()
        }
    }

    #[test]
    fn the_deletion_policy_is_inherited_and_may_be_nobodys() {
        let with = |own: Option<&str>, defaults: Option<&str>| ObjectFacts {
            deletion_policy: own.map(str::to_string),
            default_deletion_policy: defaults.map(str::to_string),
            ..ObjectFacts::default()
        };
        let bare = with(None, None);
        let gap = Gap { what: "x".to_string(), reason: GapReason::Forbidden, detail: String::new(), permission: None };
        let own = Deletion::Retain { from: ".spec.deletionPolicy" };
        let defaults = Deletion::Retain { from: "the cluster's spec.defaults.deletionPolicy" };
        let clusters = Deletion::Retain { from: "the cluster's spec.deletionPolicy" };
        let found = Reading::Found;
        for (case, kind, object, cluster, expected) in [
            ("own", WorkloadKind::Machine, with(Some("Retain"), None), Some(Reading::Absent), own),
            (
                "own before inherited",
                WorkloadKind::Machine,
                with(Some("Destroy"), None),
                Some(found(with(Some("Retain"), Some("Retain")))),
                Deletion::Destroy,
            ),
            ("defaults", WorkloadKind::Machine, bare.clone(), Some(found(with(None, Some("Retain")))), defaults),
            (
                "defaults before the cluster's own",
                WorkloadKind::MachinePool,
                bare.clone(),
                Some(found(with(Some("Retain"), Some("Destroy")))),
                Deletion::Destroy,
            ),
            (
                "the cluster's own",
                WorkloadKind::Machine,
                bare.clone(),
                Some(found(with(Some("Retain"), None))),
                clusters,
            ),
            ("nothing set", WorkloadKind::Machine, bare.clone(), Some(found(bare.clone())), Deletion::Destroy),
            ("no cluster", WorkloadKind::Machine, bare.clone(), Some(Reading::Absent), Deletion::Unresolved),
            ("unreadable", WorkloadKind::Machine, bare.clone(), Some(Reading::Unreadable(gap)), Deletion::Unknown),
            ("not read", WorkloadKind::Machine, bare.clone(), None, Deletion::Unknown),
            (
                "a cluster ignores its own defaults",
                WorkloadKind::Cluster,
                with(None, Some("Retain")),
                None,
                Deletion::Destroy,
            ),
        ] {
            assert_eq!(Policy::new(kind, &object, cluster.as_ref()).deletion(), expected, "{case}");
        }
    }

    #[test]
    fn values_are_inherited_in_the_controllers_order() {
        let gap = || Gap { what: String::new(), reason: GapReason::Forbidden, detail: String::new(), permission: None };
        let machine = WorkloadKind::Machine;
        let cluster = WorkloadKind::Cluster;
        for (case, kind, own, parent, expected) in [
            ("own wins", machine, Some(7), Some(Reading::Found(with_timeout(Some(5), Some(6)))), Some(7)),
            ("zero is a value", machine, Some(0), None, Some(0)),
            (
                "defaults before the cluster's own",
                machine,
                None,
                Some(Reading::Found(with_timeout(Some(5), Some(6)))),
                Some(6),
            ),
            ("the cluster's own", machine, None, Some(Reading::Found(with_timeout(Some(5), None))), Some(5)),
            ("built in", machine, None, Some(Reading::Found(with_timeout(None, None))), Some(300)),
            ("no such cluster", machine, None, Some(Reading::Absent), Some(300)),
            ("unreadable is unknown", machine, None, Some(Reading::Unreadable(gap())), None),
            (
                "a cluster inherits nothing",
                cluster,
                None,
                Some(Reading::Found(with_timeout(Some(5), Some(6)))),
                Some(300),
            ),
        ] {
            let own = with_timeout(own, Some(99));
            let policy = Policy::new(kind, &own, parent.as_ref());
            assert_eq!(policy.lock_timeout().map(|e| e.value), expected, "{case}");
        }
    }
}
