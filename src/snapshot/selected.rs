//! Whether a list looks as if it was taken with a label selector.
//!
//! Such a list says nothing about objects that the selector left out. Labels that CAPTF, Cluster API
//! and the engines put on everything they make are no sign of a selector.

use serde_json::Value;

use super::kinds::{INFRASTRUCTURE, Key};

const ORDINARY: &[&str] = &[
    "captf.io/managed",
    "captf.io/state-backup",
    "captf.infrastructure.cluster.x-k8s.io/owner-kind",
    "captf.infrastructure.cluster.x-k8s.io/owner-name",
    "captf.infrastructure.cluster.x-k8s.io/op",
    "captf.infrastructure.cluster.x-k8s.io/attempt",
    "cluster.x-k8s.io/cluster-name",
    "clusterctl.cluster.x-k8s.io/move",
    "app.kubernetes.io/managed-by",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "tfstate",
    "tfstateWorkspace",
];
const ORDINARY_PREFIXES: &[&str] = &["beta.kubernetes.io/", "node.kubernetes.io/", "app.terraform.io/"];

/// The label that all the items of a kind share, as `key=value`, when that points to a selector.
pub(crate) fn shared_label(key: &Key, items: &[&Value]) -> Option<String> {
    if items.len() < 2 || !is_consulted(key) {
        return None;
    }
    let (first, rest) = items.split_first()?;
    let labels = first.pointer("/metadata/labels")?.as_object()?;
    labels.iter().find_map(|(name, value)| {
        let shared = !is_ordinary(name) && rest.iter().all(|item| label(item, name) == Some(value));
        shared.then(|| format!("{name}={}", value.as_str().unwrap_or_default()))
    })
}

fn label<'a>(item: &'a Value, name: &str) -> Option<&'a Value> {
    item.get("metadata")?.get("labels")?.get(name)
}

fn is_ordinary(name: &str) -> bool {
    ORDINARY.contains(&name) || ORDINARY_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn is_consulted(key: &Key) -> bool {
    match key.group.as_str() {
        "" => matches!(key.plural.as_str(), "pods" | "secrets" | "events"),
        "batch" => key.plural == "jobs",
        "coordination.k8s.io" => key.plural == "leases",
        group => group == INFRASTRUCTURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn signs_of_a_selector() {
        let pods = Key::new("", "pods");
        let item = |labels: Value| json!({"metadata": {"labels": labels}});
        for (key, labels, want) in [
            (&pods, vec![json!({"app": "x"}), json!({"app": "x", "b": "c"})], Some("app=x")),
            (&pods, vec![json!({"app": "x"}), json!({"app": "y"})], None),
            (&pods, vec![json!({"app": "x"}), json!({})], None),
            (&pods, vec![json!({"app": "x"})], None),
            (&pods, vec![json!({"captf.io/managed": "true"}), json!({"captf.io/managed": "true"})], None),
            (
                &pods,
                vec![json!({"captf.io/managedx": "true"}), json!({"captf.io/managedx": "true"})],
                Some("captf.io/managedx=true"),
            ),
            (&pods, vec![json!({"app.terraform.io/run": "1"}), json!({"app.terraform.io/run": "1"})], None),
            (&Key::new("", "nodes"), vec![json!({"app": "x"}), json!({"app": "x"})], None),
            (&Key::new("", "configmaps"), vec![json!({"app": "x"}), json!({"app": "x"})], None),
            (
                &Key::new(INFRASTRUCTURE, "terraformplans"),
                vec![json!({"app": "x"}), json!({"app": "x"})],
                Some("app=x"),
            ),
        ] {
            let items: Vec<Value> = labels.into_iter().map(item).collect();
            let items: Vec<&Value> = items.iter().collect();
            assert_eq!(shared_label(key, &items).as_deref(), want, "{items:?}");
        }
    }
}
