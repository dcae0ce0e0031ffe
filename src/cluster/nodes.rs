//! Nodes, and who has an address.

use serde_json::Value;

use super::api::{Api, NODES, PODS, Selector};
use super::json::{items, name, owned, text, time};
use crate::facts::node::NodeFacts;
use crate::facts::reading::Reading;

/// GET of one node.
pub async fn read_node(api: &Api, node: &str) -> Reading<NodeFacts> {
    api.get(&NODES, None, node).await.map(|value| facts_from_node(&value))
}

/// Pods of all namespaces that have `address`, written `Pod team-a/x`.
pub async fn read_pods_with_address(api: &Api, address: &str) -> Reading<Vec<String>> {
    let by_address = Selector::fields(format!("status.podIP={address}"));
    api.list(&PODS, None, &by_address)
        .await
        .map(|pods| pods.iter().map(|p| format!("Pod {}/{}", owned(p, &["metadata", "namespace"]), name(p))).collect())
}

/// Nodes that have `address`, written `Node y`.
pub async fn read_nodes_with_address(api: &Api, address: &str) -> Reading<Vec<String>> {
    api.list(&NODES, None, &Selector::default()).await.map(|nodes| {
        let nodes = nodes.iter().map(facts_from_node).filter(|n| n.addresses.iter().any(|a| a == address));
        nodes.map(|n| format!("Node {}", n.name)).collect()
    })
}

/// A node's readiness and addresses.
pub fn facts_from_node(value: &Value) -> NodeFacts {
    let ready = items(value, &["status", "conditions"]).iter().find(|c| text(c, &["type"]) == Some("Ready"));
    NodeFacts {
        name: name(value),
        ready: ready.map(|c| owned(c, &["status"])).unwrap_or_default(),
        last_heartbeat: ready.and_then(|c| time(c, &["lastHeartbeatTime"])),
        unreachable_taint: items(value, &["spec", "taints"])
            .iter()
            .any(|t| text(t, &["key"]) == Some("node.kubernetes.io/unreachable")),
        addresses: items(value, &["status", "addresses"]).iter().map(|a| owned(a, &["address"])).collect(),
    }
}
