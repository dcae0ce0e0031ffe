//! The forms an answer can take: whole objects, metadata only, or a server-side Table.
//!
//! A Secret whose data was withheld when the snapshot was taken is never shown as an empty one.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::kinds::Key;

const WITHHELD: &str = "captf.io/snapshot-data";
const WITHHELD_KEYS: &str = "captf.io/snapshot-data-keys";

/// What the Accept header asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
    Table,
}

impl Form {
    /// The first form in an Accept header that can be given.
    pub(crate) fn of_accept(accept: &str) -> Self {
        let form = |range: &str| {
            let mut parameters = range.split(';').map(str::trim);
            let media = parameters.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                return None;
            }
            match parameters.find_map(|parameter| parameter.strip_prefix("as=")) {
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => Some(Self::Metadata),
                Some("Table") => Some(Self::Table),
                Some(_) => None,
                None => Some(Self::Whole),
            }
        };
        accept.split(',').find_map(form).unwrap_or(Self::Whole)
    }
}

/// The metadata of an object and nothing else.
pub(crate) fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

/// Why a whole object cannot be given: its data is not in the snapshot.
pub(crate) fn withheld(key: &Key, object: &Value) -> Option<String> {
    let is_secret = *key == Key::new("", "secrets");
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let marked = annotation(object, WITHHELD) == Some("withheld");
    (is_secret && marked && object.get("data").is_none()).then(|| {
        let (ns, name) = (text("/metadata/namespace"), text("/metadata/name"));
        format!("the data of secret {ns}/{name} is not in the snapshot: it was withheld")
    })
}

/// A Table of the objects; an error text when a cell cannot be known.
pub(crate) fn table(
    key: &Key,
    objects: &[&Value],
    list_metadata: Value,
    now: Option<Timestamp>,
) -> Result<Value, String> {
    let secrets = *key == Key::new("", "secrets");
    let column = |name: &str, kind: &str, format: &str| json!({"name": name, "type": kind, "format": format, "description": "", "priority": 0});
    let mut columns = vec![column("Name", "string", "name")];
    if secrets {
        columns.extend([column("Type", "string", ""), column("Data", "string", "")]);
    }
    columns.push(column("Age", "string", ""));
    let rows = objects.iter().map(|object| row(key, secrets, object, now)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list_metadata,
        "columnDefinitions": columns, "rows": rows,
    }))
}

fn row(key: &Key, secrets: bool, object: &Value, now: Option<Timestamp>) -> Result<Value, String> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let mut cells = vec![json!(text("/metadata/name").unwrap_or_default())];
    if secrets {
        cells.extend([json!(text("/type").unwrap_or("Opaque")), json!(data_count(key, object)?)]);
    }
    let created = text("/metadata/creationTimestamp").and_then(|created| created.parse::<Timestamp>().ok());
    cells.push(json!(age(created, now)));
    Ok(json!({"cells": cells, "object": metadata_only(object)}))
}

fn data_count(key: &Key, object: &Value) -> Result<usize, String> {
    match (object.get("data"), withheld(key, object)) {
        (_, Some(why)) => {
            let keys = annotation(object, WITHHELD_KEYS).ok_or(why)?;
            Ok(keys.split(',').filter(|key| !key.trim().is_empty()).count())
        }
        (Some(Value::Object(data)), None) => Ok(data.len()),
        _ => Ok(0),
    }
}

fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

fn age(created: Option<Timestamp>, now: Option<Timestamp>) -> String {
    let (Some(created), Some(now)) = (created, now) else {
        return "<unknown>".to_owned();
    };
    let seconds = (now.as_second() - created.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_headers() {
        for (accept, want) in [
            ("", Form::Whole),
            ("application/json", Form::Whole),
            ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Form::Metadata),
            ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Form::Metadata),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Form::Table),
            ("application/vnd.kubernetes.protobuf, application/json", Form::Whole),
            ("application/json;as=Tables", Form::Whole),
        ] {
            assert_eq!(Form::of_accept(accept), want, "{accept}");
        }
    }

    #[test]
    fn withheld_data_is_never_none() {
        let key = Key::new("", "secrets");
        let secret =
            |annotations: Value| json!({"metadata": {"name": "s", "namespace": "a", "annotations": annotations}});
        let cell = |object: &Value| table(&key, &[object], json!({}), None).map(|t| t["rows"][0]["cells"][2].clone());
        assert_eq!(cell(&secret(json!({}))), Ok(json!(0)));
        assert!(cell(&secret(json!({WITHHELD: "withheld"}))).is_err());
        assert_eq!(cell(&secret(json!({WITHHELD: "withheld", WITHHELD_KEYS: "a,b"}))), Ok(json!(2)));
        let mut full = secret(json!({}));
        full["data"] = json!({"x": "eA==", "y": "eQ==", "z": ""});
        assert_eq!(cell(&full), Ok(json!(3)));
        assert!(!table(&key, &[&full], json!({}), None).unwrap().to_string().contains("eA=="));
    }
}
