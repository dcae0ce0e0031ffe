//! State lock Leases whose object does not exist. Said only when all three kinds could be listed.

use std::collections::HashSet;

use jiff::Timestamp;

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::lock_inspect::holder_evidence;
use crate::captf::names::suffix_of_lock_lease;
use crate::captf::time::relative;
use crate::facts::lease::{Holder, LockLease};
use crate::facts::object::ObjectRef;

/// The finding of each orphan, with the Lease it is about.
pub fn diagnose<'a>(leases: &'a [LockLease], objects: &[ObjectRef], now: Timestamp) -> Vec<(&'a LockLease, Finding)> {
    let known: HashSet<String> = objects.iter().map(ObjectRef::suffix).collect();
    let orphans = leases.iter().filter(|l| suffix_of_lock_lease(&l.name).is_some_and(|s| !known.contains(s)));
    orphans.map(|lease| (lease, finding(lease, now))).collect()
}

fn finding(lease: &LockLease, now: Timestamp) -> Finding {
    let code = if lease.holder == Holder::Nobody { Code::LockOrphan } else { Code::LockOrphanHeld };
    let owner = |key: &str| lease.labels.get(key).filter(|v| !v.is_empty()).cloned();
    let mut finding = Finding::new(code, holder_evidence(lease)).with("lease", lease.name.clone());
    if let (Some(kind), Some(name)) = (owner(crate::captf::keys::OWNER_KIND), owner(crate::captf::keys::OWNER_NAME)) {
        let source = format!("Lease/{} owner labels", lease.name);
        finding = finding.seen(Evidence::new(source, format!("{kind} {name}, which does not exist")));
    }
    if let Some(info) = lease.info.info().filter(|_| lease.holder != Holder::Nobody) {
        let source = format!("Lease/{} lock-info Who", lease.name);
        finding = finding.seen(Evidence::new(source, info.who.clone()).at(info.created));
        if let Some(created) = info.created {
            let source = format!("Lease/{} lock-info Created", lease.name);
            finding = finding.seen(Evidence::new(source, relative(created, now)).at(Some(created)));
        }
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captf::kind::WorkloadKind;
    use crate::captf::lock_info::LockInfoReading;
    use std::collections::BTreeMap;

    fn lease(name: &str, holder: Holder) -> LockLease {
        LockLease {
            name: name.to_string(),
            uid: String::new(),
            resource_version: String::new(),
            created: None,
            labels: BTreeMap::new(),
            holder,
            info: LockInfoReading::Missing,
        }
    }

    #[test]
    fn only_lock_leases_without_an_object_are_orphans() {
        let web = ObjectRef { kind: WorkloadKind::Machine, namespace: "team-a".into(), name: "web".into() };
        let leases = [
            lease("lock-tfstate-default-1cc4ffb6d396d1c4-m", Holder::Id("a".into())),
            lease("lock-tfstate-default-f66792f9106e7299-c", Holder::Id("b".into())),
            lease("lock-tfstate-default-995e93ddc66624bb-mp", Holder::Nobody),
            lease("captf-run-f66792f9106e7299-c", Holder::Id("captf-c-prod-apply-a1-abc123".into())),
            lease("lock-tfstate-default-my-own-app", Holder::Id("c".into())),
        ];
        let now = Timestamp::UNIX_EPOCH;
        let found: Vec<_> =
            diagnose(&leases, &[web], now).into_iter().map(|(l, f)| (l.name.as_str(), f.code)).collect();
        assert_eq!(
            found,
            [
                ("lock-tfstate-default-f66792f9106e7299-c", Code::LockOrphanHeld),
                ("lock-tfstate-default-995e93ddc66624bb-mp", Code::LockOrphan),
            ]
        );
    }
}
