//! Cluster API's own objects: whether a Cluster is paused, and what stands behind an owner.

use std::collections::HashMap;

use serde_json::Value;

use super::api::{Api, Resource, Selector};
use super::json::{at, is_true, owned, text};
use super::objects::read_object;
use crate::captf::keys;
use crate::captf::kind::{OwnerKind, WorkloadKind};
use crate::facts::object::{ObjectFacts, ObjectRef, OwnerClusterFacts};
use crate::facts::reading::{GapReason, Reading};

/// The resource of an owner kind in one of its versions.
pub fn owner_resource(kind: OwnerKind, version: &'static str) -> Resource {
    Resource { group: keys::CAPI_GROUP, version, plural: kind.plural(), kind: kind.kind(), namespaced: true }
}

/// GET in v1beta2, then in v1beta1 where that version is not served.
async fn read_owner(api: &Api, kind: OwnerKind, namespace: &str, name: &str) -> Reading<Value> {
    let newest = api.get(&owner_resource(kind, "v1beta2"), Some(namespace), name).await;
    if newest.gap().is_some_and(|g| g.reason == GapReason::NotInstalled) {
        return api.get(&owner_resource(kind, "v1beta1"), Some(namespace), name).await;
    }
    newest
}

/// Whether the Cluster of an object is paused.
pub async fn read_owner_cluster(api: &Api, namespace: &str, cluster: &str) -> Reading<OwnerClusterFacts> {
    read_owner(api, OwnerKind::Cluster, namespace, cluster).await.map(|value| facts_from_cluster(&value))
}

/// The same of all Clusters in a namespace (or in all), by namespace and name.
pub async fn read_owner_clusters(
    api: &Api,
    namespace: Option<&str>,
) -> Reading<HashMap<(String, String), OwnerClusterFacts>> {
    let everything = Selector::default();
    let mut list = api.list(&owner_resource(OwnerKind::Cluster, "v1beta2"), namespace, &everything).await;
    if list.gap().is_some_and(|g| g.reason == GapReason::NotInstalled) {
        list = api.list(&owner_resource(OwnerKind::Cluster, "v1beta1"), namespace, &everything).await;
    }
    list.map(|list| {
        let place = |v: &Value| (owned(v, &["metadata", "namespace"]), owned(v, &["metadata", "name"]));
        list.iter().map(|value| (place(value), facts_from_cluster(value))).collect()
    })
}

/// The TerraformCluster that a Cluster names; absent where it names none.
pub fn parent_of(owner: &Reading<OwnerClusterFacts>) -> Reading<ObjectRef> {
    let named = |owner: OwnerClusterFacts| owner.infrastructure.map_or(Reading::Absent, Reading::Found);
    owner.clone().and_then(named)
}

/// The TerraformCluster of a Cluster, from which its machines and pools inherit; absent where it has none.
pub async fn read_parent(api: &Api, owner: &Reading<OwnerClusterFacts>) -> Reading<ObjectFacts> {
    match parent_of(owner) {
        Reading::Found(parent) => read_object(api, &parent).await,
        Reading::Absent => Reading::Absent,
        Reading::Unreadable(gap) => Reading::Unreadable(gap),
    }
}

fn facts_from_cluster(value: &Value) -> OwnerClusterFacts {
    let namespace = text(value, &["metadata", "namespace"]).unwrap_or_default();
    OwnerClusterFacts {
        paused: is_true(value, &["spec", "paused"]),
        infrastructure: infrastructure_of(OwnerKind::Cluster, namespace, value),
    }
}

/// The Terraform object behind a Cluster API object; nothing inside if its infrastructure is of another
/// kind.
pub async fn read_infrastructure(
    api: &Api,
    kind: OwnerKind,
    namespace: &str,
    name: &str,
) -> Reading<Option<ObjectRef>> {
    read_owner(api, kind, namespace, name).await.map(|value| infrastructure_of(kind, namespace, &value))
}

fn infrastructure_of(kind: OwnerKind, namespace: &str, value: &Value) -> Option<ObjectRef> {
    let reference = match kind {
        OwnerKind::Cluster | OwnerKind::Machine => at(value, &["spec", "infrastructureRef"]),
        OwnerKind::MachinePool => at(value, &["spec", "template", "spec", "infrastructureRef"]),
    }?;
    let group =
        text(reference, &["apiGroup"]).or_else(|| text(reference, &["apiVersion"]).and_then(|v| v.split('/').next()));
    let kind = WorkloadKind::from_kind(text(reference, &["kind"])?)?;
    (group == Some(keys::GROUP)).then(|| ObjectRef {
        kind,
        namespace: text(reference, &["namespace"]).unwrap_or(namespace).to_string(),
        name: text(reference, &["name"]).unwrap_or_default().to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_behind_an_owner_is_found_in_both_versions() {
        let new = serde_json::json!({"spec": {"infrastructureRef":
            {"apiGroup": keys::GROUP, "kind": "TerraformCluster", "name": "prod-x"}}});
        let old = serde_json::json!({"spec": {"infrastructureRef":
            {"apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1", "kind": "TerraformCluster", "name": "prod-x"}}});
        let other = serde_json::json!({"spec": {"infrastructureRef":
            {"apiGroup": keys::GROUP, "kind": "DockerCluster", "name": "prod-x"}}});
        for (value, found) in [(new, true), (old, true), (other, false)] {
            let object = infrastructure_of(OwnerKind::Cluster, "team-a", &value);
            assert_eq!(object.map(|o| o.name), found.then(|| "prod-x".to_string()));
        }
    }
}
