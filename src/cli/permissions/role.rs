//! Roles as Kubernetes objects, made from the table.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Level;
use super::table::{Right, Row, rows};
use crate::cli::args::GlobalArgs;

/// The ClusterRole of a level, as `deploy/rbac` holds it.
pub fn of_level(level: Level) -> Value {
    let rights: Vec<Right> = rows().filter(|r| r.level <= level).flat_map(rights_of).collect();
    object("ClusterRole", &format!("captf-{}", level.as_str()), None, &rights)
}

/// The Role of some commands, and a ClusterRole for what lies in no namespace; with `-A` all in one ClusterRole.
pub fn of_rows(rows: &[&Row], global: &GlobalArgs) -> Vec<Value> {
    let name = match rows {
        [one] => format!("captf-{}", one.command.replace(' ', "-")),
        more => format!("captf-{}", more[0].command.split(' ').next().unwrap_or_default()),
    };
    let rights: Vec<Right> = rows.iter().copied().flat_map(rights_of).collect();
    let (inside, outside): (Vec<Right>, Vec<Right>) = rights.iter().partition(|r| r.namespaced);
    let mut documents = Vec::new();
    if global.all_namespaces {
        documents.push(object("ClusterRole", &name, None, &rights));
    } else {
        documents.push(object("Role", &name, global.namespace.as_deref(), &inside));
        documents.push(object("ClusterRole", &name, None, &outside));
    }
    documents.retain(|d| d["rules"].as_array().is_some_and(|rules| !rules.is_empty()));
    documents
}

/// The rights of a row, in order.
pub fn rights_of(row: &Row) -> impl Iterator<Item = Right> {
    row.rights.iter().copied().flatten().copied()
}

/// Verbs by resource, and resources with the same verbs in one rule.
fn object(kind: &str, name: &str, namespace: Option<&str>, rights: &[Right]) -> Value {
    let mut verbs: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for right in rights {
        verbs.entry((right.group, right.resource)).or_default().extend(right.verbs);
    }
    let mut rules: BTreeMap<(&str, BTreeSet<&str>), BTreeSet<&str>> = BTreeMap::new();
    for ((group, resource), verbs) in verbs {
        rules.entry((group, verbs)).or_default().insert(resource);
    }
    let rules: Vec<Value> = rules
        .into_iter()
        .map(|((group, verbs), resources)| json!({"apiGroups": [group], "resources": resources, "verbs": verbs}))
        .collect();
    let mut metadata = json!({"name": name, "labels": {"app.kubernetes.io/part-of": "kubectl-captf"}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata, "rules": rules})
}
