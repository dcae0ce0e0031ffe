//! TerraformPlans that wait for an approval.

use std::collections::HashMap;

use serde_json::Value;

use super::api::{Api, Resource, Selector};
use super::json::{at, int, is_true, items, name, owned, time};
use crate::captf::keys;
use crate::facts::reading::Reading;
use crate::facts::run::PlanFacts;

const PLANS: Resource = Resource {
    group: keys::GROUP,
    version: keys::VERSION,
    plural: "terraformplans",
    kind: "TerraformPlan",
    namespaced: true,
};

/// GET of one TerraformPlan.
pub async fn read_plan(api: &Api, namespace: &str, plan: &str) -> Reading<PlanFacts> {
    api.get(&PLANS, Some(namespace), plan).await.map(|value| facts_from_plan(&value))
}

/// All TerraformPlans of a namespace (or of all), by namespace and name.
pub async fn read_plans(api: &Api, namespace: Option<&str>) -> Reading<HashMap<(String, String), PlanFacts>> {
    api.list(&PLANS, namespace, &Selector::default()).await.map(|list| {
        list.iter().map(|v| ((owned(v, &["metadata", "namespace"]), name(v)), facts_from_plan(v))).collect()
    })
}

fn facts_from_plan(value: &Value) -> PlanFacts {
    let summary = at(value, &["spec", "summary"]).cloned().unwrap_or(Value::Null);
    let count = |what: &str| int(&summary, &[what]).filter(|n| *n != 0).map(|n| (what.to_string(), n));
    PlanFacts {
        name: name(value),
        phase: owned(value, &["status", "phase"]),
        reason: owned(value, &["spec", "reason"]),
        approved: is_true(value, &["spec", "approved"]),
        counts: ["create", "update", "replace", "delete", "import", "move", "forget"]
            .iter()
            .filter_map(|w| count(w))
            .collect(),
        resources: items(&summary, &["resources"]).iter().filter_map(Value::as_str).map(str::to_string).collect(),
        created: time(value, &["metadata", "creationTimestamp"]),
    }
}
