//! Which generation of CAPTF a cluster has, told from the schema of its API.
//!
//! Releases do not say it, and its documents ran ahead of them, so features are looked for: newest first. The
//! schema comes from the API server's OpenAPI, which everybody may read, unlike CustomResourceDefinitions.

use serde_json::Value;

use super::api::{Api, Form, SECRETS, Selector};
use super::json::{at, text};
use crate::captf::keys::{GROUP, VERSION};
use crate::facts::reading::{Gap, GapReason, Reading};

/// The oldest generation that the commands understand.
pub const MINIMUM: &str = "G1";

/// The generation with what it was told from; absent when CAPTF is not installed.
pub async fn read_generation(api: &Api, namespace: Option<&str>) -> Reading<(&'static str, String)> {
    let path = format!("/openapi/v3/apis/{GROUP}/{VERSION}");
    let schema = match api.read_path(&path, "the schema of CAPTF's API").await {
        Reading::Found(schema) => schema,
        Reading::Unreadable(Gap { reason: GapReason::NotInstalled, .. }) | Reading::Absent => return Reading::Absent,
        Reading::Unreadable(gap) => return Reading::Unreadable(gap),
    };
    let Some((generation, from)) = generation_from_schema(&schema) else { return Reading::Absent };
    if generation != "G4" {
        return Reading::Found((generation, from.to_string()));
    }
    // The applied record is no part of the schema: only a Secret of that name tells G5.
    let all = Selector::default();
    Reading::Found(match api.list_as(&SECRETS, namespace, &all, Form::Table).await {
        Reading::Found(rows) => match rows.iter().find_map(applied_record) {
            Some(name) => ("G5", format!("Secret {name}")),
            None => ("G4", format!("{from}; no Secret captf-applied-* was seen, which G5 has")),
        },
        _ => ("G4", format!("{from}; it may be G5, Secrets could not be listed")),
    })
}

fn applied_record(row: &Value) -> Option<&str> {
    text(row, &["object", "metadata", "name"]).filter(|name| name.starts_with("captf-applied-"))
}

/// From the schema alone, so never G5.
fn generation_from_schema(schema: &Value) -> Option<(&'static str, &'static str)> {
    let all = at(schema, &["components", "schemas"])?.as_object()?;
    let of_kind = |kind: &str| {
        all.values().find(|s| {
            let known = s.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            known.is_some_and(|k| k.iter().any(|gvk| text(gvk, &["kind"]) == Some(kind)))
        })
    };
    let cluster = of_kind("TerraformCluster")?;
    let has = |path: &[&str]| {
        let mut schema = cluster;
        path.iter().all(|field| match at(schema, &["properties", field]) {
            Some(next) => {
                schema = next;
                true
            }
            None => false,
        })
    };
    Some(if has(&["status", "lastRun", "error", "resources"]) {
        ("G6", "field status.lastRun.error.resources of TerraformCluster")
    } else if has(&["spec", "maxActiveJobs"]) {
        ("G4", "field spec.maxActiveJobs of TerraformCluster")
    } else if has(&["spec", "deletionPolicy"]) {
        ("G3", "field spec.deletionPolicy of TerraformCluster, without spec.maxActiveJobs")
    } else if of_kind("TerraformPlan").is_some() {
        ("G2", "kind TerraformPlan, without field spec.deletionPolicy of TerraformCluster")
    } else {
        ("G1", "no kind TerraformPlan")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema(cluster: Value, plan: bool) -> Value {
        let kind = |kind: &str, properties: Value| json!({"properties": properties, "x-kubernetes-group-version-kind": [{"group": GROUP, "version": VERSION, "kind": kind}]});
        let mut schemas = json!({"c": kind("TerraformCluster", cluster), "other": {"type": "object"}});
        if plan {
            schemas["p"] = kind("TerraformPlan", json!({}));
        }
        json!({"components": {"schemas": schemas}})
    }

    #[test]
    fn each_generation_is_told_by_its_newest_feature() {
        let object = |properties: Value| json!({"type": "object", "properties": properties});
        let error = |field: &str| object(json!({"lastRun": object(json!({"error": object(json!({field: {}}))}))}));
        for (cluster, plan, expected) in [
            (json!({}), false, "G1"),
            (json!({"spec": object(json!({"source": {}}))}), true, "G2"),
            (json!({"spec": object(json!({"deletionPolicy": {}}))}), true, "G3"),
            (
                json!({"spec": object(json!({"deletionPolicy": {}, "maxActiveJobs": {}})), "status": error("summary")}),
                true,
                "G4",
            ),
            (json!({"spec": object(json!({"maxActiveJobs": {}})), "status": error("resources")}), true, "G6"),
        ] {
            assert_eq!(
                generation_from_schema(&schema(cluster.clone(), plan)).map(|g| g.0),
                Some(expected),
                "{cluster}"
            );
        }
        assert_eq!(generation_from_schema(&json!({"components": {"schemas": {}}})), None);
        assert_eq!(generation_from_schema(&json!({})), None);
        let row = |name: &str| json!({"object": {"metadata": {"name": name}}});
        assert_eq!(applied_record(&row("captf-applied-c-prod")), Some("captf-applied-c-prod"));
        assert_eq!(applied_record(&row("captf-inputs-c-prod")), None);
    }
}
