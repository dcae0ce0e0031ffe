//! Resource instances of a state while it streams by: addresses, and an identity to compare.
//!
//! The controller demands a string `mode` and looks at nothing else of an entry, so everything else is
//! taken as it comes. Of the attributes only `id` is looked at, and only its fingerprint is kept, keyed by
//! a random number of this process: it can be compared within one run and tells nothing.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A managed resource instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    /// `module.net["a"].aws_instance.web[0]`, as `state list` prints it.
    pub address: Box<str>,
    /// Length of the address without the instance key.
    pub resource_len: u32,
    /// The resource type.
    pub kind: Arc<str>,
    /// Fingerprint of the provider's ID.
    pub id: Option<u64>,
}

impl Instance {
    /// The address without the instance key.
    pub fn resource(&self) -> &str {
        self.address.get(..self.resource_len as usize).unwrap_or(&self.address)
    }
}

fn fingerprint(text: &str) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    KEY.get_or_init(RandomState::new).hash_one(text)
}

/// The array `resources` of a state.
#[derive(Default)]
pub struct Resources {
    /// Entries of mode `managed`, as the controller counts them.
    pub managed: u64,
    pub instances: Vec<Instance>,
}

impl<'de> Deserialize<'de> for Resources {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Resources;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of resources")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Resources, A::Error> {
                let mut resources = Resources::default();
                while let Some(entry) = seq.next_element::<Option<Entry>>()? {
                    if let Some(entry) = entry.filter(|e| e.managed) {
                        resources.managed += 1;
                        entry.add_to(&mut resources.instances);
                    }
                }
                Ok(resources)
            }
        }
        deserializer.deserialize_seq(Entries)
    }
}

/// One entry of `resources`.
#[derive(Default)]
struct Entry {
    managed: bool,
    module: String,
    kind: String,
    name: String,
    instances: Vec<Raw>,
}

impl Entry {
    fn add_to(self, all: &mut Vec<Instance>) {
        let module = if self.module.is_empty() { String::new() } else { format!("{}.", self.module) };
        let resource = format!("{module}{}.{}", self.kind, self.name);
        let kind: Arc<str> = self.kind.into();
        for raw in self.instances {
            let deposed = raw.deposed.map(|key| format!(" (deposed {key})")).unwrap_or_default();
            let address = format!("{resource}{}{deposed}", raw.key.unwrap_or_default());
            all.push(Instance {
                address: address.into(),
                resource_len: u32::try_from(resource.len()).unwrap_or(u32::MAX),
                kind: kind.clone(),
                id: raw.id,
            });
        }
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Entry;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a resource")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
                let mut entry = Entry::default();
                let mut mode = String::new();
                while let Some(key) = map.next_key::<String>()? {
                    match key.to_ascii_lowercase().as_str() {
                        "mode" => mode = map.next_value::<Option<String>>()?.unwrap_or(mode),
                        "module" => entry.module = map.next_value::<Scalar>()?.text(),
                        "type" => entry.kind = map.next_value::<Scalar>()?.text(),
                        "name" => entry.name = map.next_value::<Scalar>()?.text(),
                        "instances" => entry.instances = map.next_value::<RawList>()?.0,
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                if mode.len() > 4096 {
                    return Err(A::Error::custom("mode is too long"));
                }
                entry.managed = mode == "managed";
                Ok(entry)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// An instance before the address of its resource is known.
#[derive(Default)]
struct Raw {
    /// `[0]` or `["a"]`.
    key: Option<String>,
    deposed: Option<String>,
    id: Option<u64>,
}

/// Any JSON value; strings and numbers are kept, the rest is skipped.
enum Scalar {
    Text(String),
    Number(String),
    Other,
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Self::Text(text) | Self::Number(text) => text,
            Self::Other => String::new(),
        }
    }

    /// As an instance key is written in an address.
    fn into_key(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(format!("[{}]", serde_json::Value::String(text))),
            Self::Number(number) => Some(format!("[{number}]")),
            Self::Other => None,
        }
    }
}

/// Implements a visitor's methods for the values that it only skips.
macro_rules! skip {
    ($($method:ident($kind:ty))*; $value:expr) => {
        $(fn $method<E: serde::de::Error>(self, _: $kind) -> Result<Self::Value, E> { Ok($value) })*
    };
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Scalar;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar::Text(text.to_string()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number.to_string()))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar::Number(number.to_string()))
            }
            skip!(visit_bool(bool) visit_f64(f64); Scalar::Other);
            fn visit_unit<E>(self) -> Result<Scalar, E> {
                Ok(Scalar::Other)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Scalar::Other)
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// The value of `instances`, whatever it is.
#[derive(Default)]
struct RawList(Vec<Raw>);

impl<'de> Deserialize<'de> for RawList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = RawList;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RawList, A::Error> {
                let mut list = Vec::new();
                while let Some(raw) = seq.next_element::<Raw>()? {
                    list.push(raw);
                }
                Ok(RawList(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawList, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(RawList::default())
            }
            skip!(visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str); RawList::default());
            fn visit_unit<E>(self) -> Result<RawList, E> {
                Ok(RawList::default())
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Raw;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
                let mut raw = Raw::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "index_key" => raw.key = map.next_value::<Scalar>()?.into_key(),
                        "deposed" => raw.deposed = Some(map.next_value::<Scalar>()?.text()).filter(|t| !t.is_empty()),
                        "attributes" | "attributes_flat" => {
                            raw.id = map.next_value::<Identity>()?.0.or(raw.id);
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(raw)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Raw, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Raw::default())
            }
            skip!(visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str); Raw::default());
            fn visit_unit<E>(self) -> Result<Raw, E> {
                Ok(Raw::default())
            }
        }
        deserializer.deserialize_any(Any)
    }
}

/// The fingerprint of `id` among the attributes.
struct Identity(Option<u64>);

impl<'de> Deserialize<'de> for Identity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Identity;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("anything")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Identity, A::Error> {
                let mut id = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key == "id" {
                        let text = map.next_value::<Scalar>()?.text();
                        id = (!text.is_empty()).then(|| fingerprint(&text));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Identity(id))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Identity, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Identity(None))
            }
            skip!(visit_bool(bool) visit_i64(i64) visit_u64(u64) visit_f64(f64) visit_str(&str); Identity(None));
            fn visit_unit<E>(self) -> Result<Identity, E> {
                Ok(Identity(None))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(json: &str) -> Vec<String> {
        let resources: Resources = serde_json::from_str(json).expect("resources");
        resources.instances.iter().map(|i| i.address.to_string()).collect()
    }

    #[test]
    fn addresses_are_those_of_state_list() {
        assert_eq!(
            addresses(
                r#"[{"mode":"managed","type":"a","name":"x","instances":[{"attributes":{"id":"1"}}]},
                {"instances":[{"index_key":0},{"index_key":"k\"q"}],"name":"y","type":"b","module":"module.m[\"z\"]","mode":"managed"},
                {"mode":"data","type":"c","name":"z","instances":[{}]},
                {"mode":"managed","type":"d","name":"w","instances":[{"deposed":"00000001"}]}]"#
            ),
            ["a.x", r#"module.m["z"].b.y[0]"#, r#"module.m["z"].b.y["k\"q"]"#, "d.w (deposed 00000001)"]
        );
    }

    #[test]
    fn what_the_controller_does_not_look_at_may_be_anything() {
        for odd in ["3", "\"x\"", "null", "{}", "[1,[],\"a\",null,{\"attributes\":[1]}]", "true"] {
            let json = format!(r#"[{{"mode":"managed","type":[1],"name":{{}},"module":null,"instances":{odd}}}]"#);
            let resources: Resources = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{odd}: {e}"));
            assert_eq!(resources.managed, 1, "{odd}");
        }
        assert!(serde_json::from_str::<Resources>(r#"[{"mode":1}]"#).is_err());
    }

    #[test]
    fn ids_compare_and_do_not_show() {
        let of = |id: &str| {
            let json =
                format!(r#"[{{"mode":"managed","type":"a","name":"x","instances":[{{"attributes":{{"id":{id}}}}}]}}]"#);
            serde_json::from_str::<Resources>(&json).expect("resources").instances.remove(0)
        };
        assert_eq!(of("\"i-1\"").id, of("\"i-1\"").id);
        assert_ne!(of("\"i-1\"").id, of("\"i-2\"").id);
        assert_eq!(of("null").id, None);
        assert!(!format!("{:?}", of("\"CANARY\"")).contains("CANARY"));
    }
}
