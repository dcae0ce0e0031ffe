//! One JSON or YAML document as a `serde_json::Value`, with the two checks that type lacks.
//!
//! A key that appears twice is an error (the last one would win silently), and what aliases may blow up
//! is bounded by the size of the document. Error texts are fixed: they never name a key or a value.

use std::cell::Cell;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The text of the error for a key that appears twice.
pub(crate) const DUPLICATE_KEY: &str = "a key appears twice in one mapping";
/// The text of the error for a document that grows too much while it is expanded.
pub(crate) const TOO_LARGE: &str = "it expands to far more than its size";

/// How much a document may still grow while it is read.
#[derive(Debug)]
pub(crate) struct Allowance {
    nodes: Cell<usize>,
    bytes: Cell<usize>,
}

impl Allowance {
    /// The allowance of a document of `len` bytes: generous without aliases, tight with them.
    pub(crate) fn for_document(len: usize) -> Self {
        Self {
            nodes: Cell::new(len.saturating_add(100_000)),
            bytes: Cell::new(len.saturating_mul(2).saturating_add(16 << 20)),
        }
    }

    fn unlimited() -> Self {
        Self { nodes: Cell::new(usize::MAX), bytes: Cell::new(usize::MAX) }
    }

    fn charge<E: de::Error>(&self, bytes: usize) -> Result<(), E> {
        let nodes = self.nodes.get().checked_sub(1);
        let left = self.bytes.get().checked_sub(bytes);
        let (Some(nodes), Some(left)) = (nodes, left) else {
            return Err(E::custom(TOO_LARGE));
        };
        self.nodes.set(nodes);
        self.bytes.set(left);
        Ok(())
    }
}

/// A document read without an allowance: for JSON, which has no aliases.
pub(crate) struct JsonDocument(pub(crate) Value);

impl<'de> Deserialize<'de> for JsonDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        DocumentSeed(&Allowance::unlimited()).deserialize(deserializer).map(JsonDocument)
    }
}

/// Reads one value within an allowance.
#[derive(Clone, Copy)]
pub(crate) struct DocumentSeed<'a>(pub(crate) &'a Allowance);

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }

    fn visit_bool<E: de::Error>(self, v: bool) -> Result<Value, E> {
        self.0.charge(0)?;
        Ok(Value::Bool(v))
    }

    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Value, E> {
        self.0.charge(0)?;
        Ok(Value::Number(v.into()))
    }

    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Value, E> {
        self.0.charge(0)?;
        Ok(Value::Number(v.into()))
    }

    fn visit_i128<E: de::Error>(self, v: i128) -> Result<Value, E> {
        self.visit_f64(v as f64)
    }

    fn visit_u128<E: de::Error>(self, v: u128) -> Result<Value, E> {
        self.visit_f64(v as f64)
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Value, E> {
        self.0.charge(0)?;
        Ok(Number::from_f64(v).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: de::Error>(self, v: &str) -> Result<Value, E> {
        self.0.charge(v.len())?;
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E: de::Error>(self, v: String) -> Result<Value, E> {
        self.0.charge(v.len())?;
        Ok(Value::String(v))
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        self.0.charge(0)?;
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        self.0.charge(0)?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        items.shrink_to_fit();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        self.0.charge(0)?;
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            self.0.charge(key.len())?;
            let value = access.next_value_seed(self)?;
            if map.insert(key, value).is_some() {
                return Err(de::Error::custom(DUPLICATE_KEY));
            }
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicate_keys_are_refused_in_json() {
        for (text, ok) in
            [(r#"{"a":1,"b":{"a":2}}"#, true), (r#"{"a":1,"a":1}"#, false), (r#"{"a":[{"b":1,"b":2}]}"#, false)]
        {
            assert_eq!(serde_json::from_str::<JsonDocument>(text).is_ok(), ok, "{text}");
        }
    }
}
