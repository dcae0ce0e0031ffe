//! From what was typed to the objects that are meant: owners, lock IDs, close names.

use super::api::{Api, LEASES, Selector};
use super::clusters::read_infrastructure;
use super::leases::facts_from_lease;
use super::orphans::read_scope;
use crate::captf::kind::{OwnerKind, WorkloadKind};
use crate::facts::lease::Holder;
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, Reading};

/// What a lock ID led to.
#[derive(Debug)]
pub enum ByLockId {
    Object(ObjectRef),
    /// A Lease has that holder, but no object of its suffix exists or could be seen.
    LeaseOnly {
        namespace: String,
        lease: String,
    },
    NotFound,
}

/// The Terraform object behind a Cluster, Machine or MachinePool; nothing inside if its infrastructure is of
/// another provider.
pub async fn resolve_owner(api: &Api, kind: OwnerKind, namespace: &str, name: &str) -> Reading<Option<ObjectRef>> {
    read_infrastructure(api, kind, namespace, name).await
}

/// The object whose lock has that holder.
pub async fn resolve_lock_id(api: &Api, namespace: Option<&str>, id: &str) -> Result<ByLockId, Gap> {
    let leases = match api.list(&LEASES, namespace, &Selector::default()).await {
        Reading::Found(leases) => leases,
        Reading::Absent => Vec::new(),
        Reading::Unreadable(gap) => return Err(gap),
    };
    let found = leases.iter().find_map(|value| match facts_from_lease(value) {
        Reading::Found(lease) if lease.holder == Holder::Id(id.to_string()) => {
            Some((super::json::owned(value, &["metadata", "namespace"]), lease.name))
        }
        _ => None,
    });
    let Some((namespace, lease)) = found else {
        return Ok(ByLockId::NotFound);
    };
    let (objects, gaps) = read_scope(api, &WorkloadKind::ALL, Some(&namespace), &Selector::default()).await;
    let owner =
        objects.into_iter().map(|(object, _)| object).find(|o| crate::captf::names::lock_lease(&o.suffix()) == lease);
    match (owner, gaps.into_iter().next()) {
        (Some(object), _) => Ok(ByLockId::Object(object)),
        (None, Some(gap)) => Err(gap),
        (None, None) => Ok(ByLockId::LeaseOnly { namespace, lease }),
    }
}

/// Names of that kind in the namespace that look like the one that was typed, closest first.
pub async fn close_names(api: &Api, object: &ObjectRef) -> Vec<String> {
    let (objects, _) = read_scope(api, &[object.kind], Some(&object.namespace), &Selector::default()).await;
    let names = objects.into_iter().map(|(o, _)| o.name).collect::<Vec<_>>();
    closest(&object.name, &names)
}

/// At most three candidates that are close to `name`, closest first.
pub fn closest(name: &str, candidates: &[String]) -> Vec<String> {
    let mut scored: Vec<(f64, &String)> = candidates
        .iter()
        .map(|c| {
            let contained = !name.is_empty() && (c.contains(name) || name.contains(c.as_str()));
            (if contained { 0.9 } else { 0.0 } + strsim::jaro_winkler(name, c), c)
        })
        .filter(|(score, _)| *score > 0.75)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, c)| c.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_suggested_and_far_ones_are_not() {
        let names = ["prod".to_string(), "prod-eu".to_string(), "staging".to_string()];
        assert_eq!(closest("prdo", &names), ["prod", "prod-eu"]);
        assert_eq!(closest("eu", &names), ["prod-eu"]);
        assert!(closest("zzz", &names).is_empty());
    }
}
