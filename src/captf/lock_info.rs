//! The `app.terraform.io/lock-info` annotation, decoded as the controller and as the runtime do.
//!
//! The controller decodes all or nothing over ID, Operation, Who, Version and Created, with Go's
//! rules: keys without regard to case, the last duplicate wins, `null` leaves a field as it was,
//! trailing data voids everything. The runtime also reads Info and Path.

use std::fmt;

use jiff::Timestamp;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::time::parse_rfc3339;

/// What the annotation says, as text that nobody vouches for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockInfo {
    pub id: String,
    pub operation: String,
    pub who: String,
    pub version: String,
    pub created: Option<Timestamp>,
}

/// The annotation as read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockInfoReading {
    /// No annotation, or an empty one.
    Missing,
    /// The controller decodes it. `runtime_reads_it` is false when the runtime itself would fail on
    /// it (a wrong type in Info or Path), so that its `force-unlock` cannot succeed.
    Decoded { info: LockInfo, runtime_reads_it: bool },
    /// Present, but the controller uses nothing of it. The text says what is wrong, never a value.
    Unreadable(&'static str),
}

impl LockInfoReading {
    /// Decodes the annotation's text.
    pub fn decode(annotation: Option<&str>) -> Self {
        let Some(text) = annotation.filter(|t| !t.is_empty()) else {
            return Self::Missing;
        };
        // Go takes a JSON null for a struct without an error and leaves every field empty.
        if text.trim_matches([' ', '\t', '\r', '\n']) == "null" {
            return Self::Decoded { info: LockInfo::default(), runtime_reads_it: true };
        }
        match serde_json::from_str::<Fields>(text) {
            Err(e) if e.is_eof() => Self::Unreadable("the JSON is cut off"),
            Err(_) => Self::Unreadable("it is not one JSON object"),
            Ok(fields) => match fields.into_info() {
                Ok((info, runtime_reads_it)) => Self::Decoded { info, runtime_reads_it },
                Err(why) => Self::Unreadable(why),
            },
        }
    }

    /// The decoded fields, if the controller uses them.
    pub fn info(&self) -> Option<&LockInfo> {
        match self {
            Self::Decoded { info, .. } => Some(info),
            Self::Missing | Self::Unreadable(_) => None,
        }
    }

    /// Whether the runtime's own `force-unlock` would fail on this annotation.
    pub fn runtime_fails(&self) -> bool {
        match self {
            Self::Missing => false,
            Self::Decoded { runtime_reads_it, .. } => !runtime_reads_it,
            Self::Unreadable(_) => true,
        }
    }
}

impl LockInfo {
    /// The host: what follows the last `@` of Who. `None` without an `@`.
    pub fn host(&self) -> Option<&str> {
        self.who.rsplit_once('@').map(|(_, host)| host)
    }
}

/// Known members in the order in which they stand, so that Go's rules can be replayed.
struct Fields(Vec<(Key, Value)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Id,
    Operation,
    Who,
    Version,
    Created,
    RuntimeOnly,
}

impl Key {
    fn parse(text: &str) -> Option<Self> {
        match fold(text).as_str() {
            "id" => Some(Self::Id),
            "operation" => Some(Self::Operation),
            "who" => Some(Self::Who),
            "version" => Some(Self::Version),
            "created" => Some(Self::Created),
            "info" | "path" => Some(Self::RuntimeOnly),
            _ => None,
        }
    }
}

/// Go folds keys by simple Unicode folding; only two non-ASCII letters fold onto ASCII ones.
fn fold(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            'ſ' => 's',
            '\u{212a}' => 'k',
            other => other.to_ascii_lowercase(),
        })
        .collect()
}

impl Fields {
    fn into_info(self) -> Result<(LockInfo, bool), &'static str> {
        let mut info = LockInfo::default();
        let mut runtime_reads_it = true;
        for (key, value) in self.0 {
            if value.is_null() {
                if key == Key::Created {
                    info.created = None;
                }
                continue;
            }
            let Value::String(text) = value else {
                if key == Key::RuntimeOnly {
                    runtime_reads_it = false;
                    continue;
                }
                return Err("a field has the wrong type");
            };
            match key {
                Key::Id => info.id = text,
                Key::Operation => info.operation = text,
                Key::Who => info.who = text,
                Key::Version => info.version = text,
                Key::Created => info.created = Some(parse_rfc3339(&text).ok_or("Created is not a time")?),
                Key::RuntimeOnly => {}
            }
        }
        Ok((info, runtime_reads_it))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Fields;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    match Key::parse(&key) {
                        Some(key) => fields.push((key, map.next_value()?)),
                        None => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> LockInfoReading {
        LockInfoReading::decode(Some(text))
    }

    #[test]
    fn a_real_annotation_is_read_with_its_extra_keys() {
        let text = r#"{"ID":"00000001-0000-4000-8000-000000000001","Operation":"OperationTypePlan","Info":"",
            "Who":"controller@app2-tf-runner","Version":"1.1.9","Created":"2022-06-15T22:27:10.244794577Z","Path":"","Extra":[1]}"#;
        let reading = decode(text);
        let info = reading.info().expect("decoded");
        assert_eq!(info.host(), Some("app2-tf-runner"));
        assert_eq!(info.created.expect("created").to_string(), "2022-06-15T22:27:10.244794577Z");
        assert!(!reading.runtime_fails());
    }

    #[test]
    fn missing_and_empty_are_the_same_and_no_obstacle() {
        assert_eq!(LockInfoReading::decode(None), LockInfoReading::Missing);
        assert_eq!(decode(""), LockInfoReading::Missing);
        assert!(!decode("").runtime_fails());
    }

    #[test]
    fn one_bad_field_voids_everything() {
        for text in [
            r#"{"ID":"f2ab"#,
            "not json",
            r#"{"ID":"x","Who":"a@b","Created":0}"#,
            r#"{"ID":"x","Who":"a@b","Created":"yesterday"}"#,
            r#"{"ID":7,"Who":"a@b"}"#,
            r#"{"ID":"x","Who":["a@b"]}"#,
            r#"{"ID":"x","Version":1.5}"#,
            r#"{"ID":7,"ID":"x"}"#,
            r#"{"ID":"x"} {}"#,
            r#"["ID"]"#,
            r#""text""#,
        ] {
            assert!(matches!(decode(text), LockInfoReading::Unreadable(_)), "{text}");
            assert!(decode(text).runtime_fails(), "{text}");
        }
    }

    #[test]
    fn gos_liberties_are_ours() {
        for (text, id, who) in [
            (r#"{"id":"x","WHO":"a@b"}"#, "x", "a@b"),
            (r#"{"ID":"x","ID":"y"}"#, "y", ""),
            (r#"{"ID":"x","id":null}"#, "x", ""),
            (r#"{"ID":"x","Created":null}"#, "x", ""),
            (r#"{"big":1e999,"ID":"x"}"#, "x", ""),
            ("{}", "", ""),
            ("null", "", ""),
        ] {
            let reading = decode(text);
            let info = reading.info().unwrap_or_else(|| panic!("{text} is decoded"));
            assert_eq!((info.id.as_str(), info.who.as_str()), (id, who), "{text}");
        }
    }

    #[test]
    fn fields_that_only_the_runtime_reads_break_only_the_runtime() {
        let reading = decode(r#"{"ID":"x","Who":"a@b","Path":1}"#);
        assert!(reading.info().is_some() && reading.runtime_fails());
    }

    #[test]
    fn the_host_follows_the_last_at_sign() {
        for (who, host) in [
            ("a@b@captf-m-web-apply-a1-abc123-x7k2p", Some("captf-m-web-apply-a1-abc123-x7k2p")),
            ("arn:aws:iam::1:user/n@example.com@192.168.10.20", Some("192.168.10.20")),
            ("@pod", Some("pod")),
            ("runner@", Some("")),
            ("nobody", None),
            ("", None),
        ] {
            let info = LockInfo { who: who.to_string(), ..LockInfo::default() };
            assert_eq!(info.host(), host, "{who}");
        }
    }
}
