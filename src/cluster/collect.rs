//! Whole objects and logs, as a bundle takes them.

use serde_json::Value;

use super::api::{Api, EVENTS, JOBS, LEASES, LogPart, NODES, PODS, Resource, SECRETS, Selector};
use super::clusters::owner_resource;
use crate::captf::keys::{GROUP, VERSION};
use crate::captf::kind::{OwnerKind, WorkloadKind};
use crate::facts::reading::{GapReason, Reading};

/// Lines and bytes of a log's end that are taken.
const LOG_LINES: u32 = 500;
const LOG_BYTES: u32 = 256 * 1024;

const PLANS: Resource =
    Resource { group: GROUP, version: VERSION, plural: "terraformplans", kind: "TerraformPlan", namespaced: true };

/// All objects of one kind in a namespace.
#[derive(Debug)]
pub struct Listed {
    pub resource: Resource,
    pub items: Reading<Vec<Value>>,
}

/// Lists everything that judgements read in a namespace. Kinds that the server does not have are left out.
pub async fn read_namespace(api: &Api, namespace: &str) -> Vec<Listed> {
    let mut resources: Vec<Resource> = WorkloadKind::ALL.into_iter().map(super::objects::resource).collect();
    resources.extend([PLANS, JOBS, PODS, EVENTS, LEASES, SECRETS]);
    let owners = OwnerKind::ALL.into_iter().map(|kind| async move {
        let newest = list(api, owner_resource(kind, "v1beta2"), Some(namespace)).await;
        if is_unknown(&newest) { list(api, owner_resource(kind, "v1beta1"), Some(namespace)).await } else { newest }
    });
    let plain = resources.into_iter().map(|resource| list(api, resource, Some(namespace)));
    let (mut all, owners) = futures::join!(futures::future::join_all(plain), futures::future::join_all(owners));
    all.extend(owners);
    all.retain(|listed| !is_unknown(listed));
    all
}

/// All Nodes.
pub async fn read_nodes(api: &Api) -> Listed {
    list(api, NODES, None).await
}

async fn list(api: &Api, resource: Resource, namespace: Option<&str>) -> Listed {
    let mut items = api.list(&resource, namespace, &Selector::default()).await;
    if let Reading::Found(items) = &mut items {
        // Items of a list do not say what they are.
        for object in items.iter_mut().filter_map(Value::as_object_mut) {
            let version = if resource.group.is_empty() {
                resource.version.to_string()
            } else {
                format!("{}/{}", resource.group, resource.version)
            };
            object.insert("apiVersion".to_string(), Value::String(version));
            object.insert("kind".to_string(), Value::String(resource.kind.to_string()));
        }
    }
    Listed { resource, items }
}

fn is_unknown(listed: &Listed) -> bool {
    listed.items.gap().is_some_and(|g| g.reason == GapReason::NotInstalled)
}

/// The end of a container's log.
pub async fn read_log_tail(api: &Api, namespace: &str, pod: &str, container: &str) -> Reading<String> {
    let end = LogPart {
        container: container.to_string(),
        tail_lines: Some(LOG_LINES),
        limit_bytes: Some(LOG_BYTES),
        ..LogPart::default()
    };
    api.read_log(namespace, pod, &end).await
}
