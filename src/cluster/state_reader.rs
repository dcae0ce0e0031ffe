//! Reads the payload of a Terraform state by the controller's rules, keeping only the outline.
//!
//! First gzip member only, at most 64 MiB decompressed, streamed; Go's JSON liberties are replayed
//! (keys without regard to case, the last duplicate wins, a wrong type anywhere voids the state).

use std::fmt;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::state_instances::{Instance, Resources};
use crate::facts::state::StateContent;

/// Most Secrets that the controller reads as one state.
pub const MAX_CHUNKS: usize = 32;
/// Most bytes of decompressed state.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What one pass over a payload gives.
pub struct Parsed {
    /// `bytes` of a readable state is 0: only the caller knows the length of the payload.
    pub content: StateContent,
    /// Managed instances of a readable state.
    pub instances: Vec<Instance>,
    /// Bytes that were decompressed.
    pub decompressed: u64,
}

/// Reads a compressed state from a stream; memory is bounded by its list of instances and its longest string.
pub fn parse_payload(mut payload: impl Read) -> Parsed {
    let corrupt = |why: &str, decompressed| Parsed {
        content: StateContent::Corrupt(why.to_string()),
        instances: Vec::new(),
        decompressed,
    };
    let mut magic = Vec::with_capacity(2);
    if payload.by_ref().take(2).read_to_end(&mut magic).is_err() || magic != [0x1f, 0x8b] {
        return corrupt("it is not gzip", 0);
    }
    let whole = std::io::Cursor::new(magic).chain(payload);
    let mut limited = CountingReader { inner: GzDecoder::new(whole), count: 0, failed: false };
    let parsed = {
        let mut reader = std::io::BufReader::with_capacity(64 * 1024, &mut limited);
        let parsed = serde_json::Deserializer::from_reader(&mut reader).into_outline();
        // What follows the JSON value still has to decompress and to fit.
        let drained = std::io::copy(&mut reader, &mut std::io::sink());
        parsed.and_then(|outline| drained.map(|_| outline).map_err(|_| ()))
    };
    let count = limited.count;
    if count > MAX_BYTES {
        return corrupt("more than 64 MiB decompressed", count);
    }
    if limited.failed {
        return corrupt("the gzip data is damaged or cut off", count);
    }
    let Ok(outline) = parsed else {
        return corrupt("it is not the JSON of a state", count);
    };
    if outline.encrypted {
        return Parsed { content: StateContent::Encrypted, instances: Vec::new(), decompressed: count };
    }
    match outline.version {
        Some(4) => Parsed {
            content: StateContent::Readable {
                serial: outline.serial,
                lineage: outline.lineage,
                terraform_version: outline.terraform_version,
                managed_resources: outline.managed,
                bytes: 0,
            },
            instances: outline.instances,
            decompressed: count,
        },
        Some(other) => corrupt(&format!("state format version {other} is not 4"), count),
        None => corrupt("it has no state format version", count),
    }
}

/// Counts decompressed bytes, stops beyond the limit, remembers decompression errors.
struct CountingReader<R> {
    inner: R,
    count: u64,
    failed: bool,
}

impl<R: Read> Read for CountingReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.count > MAX_BYTES {
            return Err(std::io::Error::other("too large"));
        }
        match self.inner.read(buf) {
            Ok(n) => {
                self.count += n as u64;
                Ok(n)
            }
            Err(e) => {
                self.failed = true;
                Err(e)
            }
        }
    }
}

#[derive(Default)]
struct Outline {
    version: Option<i64>,
    serial: i64,
    lineage: String,
    terraform_version: String,
    managed: u64,
    instances: Vec<Instance>,
    encrypted: bool,
}

trait IntoOutline {
    fn into_outline(self) -> Result<Outline, ()>;
}

impl<'de, R: serde_json::de::Read<'de>> IntoOutline for serde_json::Deserializer<R> {
    fn into_outline(mut self) -> Result<Outline, ()> {
        let outline = Outline::deserialize(&mut self).map_err(|_| ())?;
        self.end().map_err(|_| ())?;
        Ok(outline)
    }
}

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Top;
        impl<'de> Visitor<'de> for Top {
            type Value = Outline;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a state")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outline, A::Error> {
                let mut outline = Outline::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.to_ascii_lowercase().as_str() {
                        "version" => outline.version = map.next_value::<Option<i64>>()?.or(outline.version),
                        "serial" => outline.serial = map.next_value::<Option<i64>>()?.unwrap_or(outline.serial),
                        "lineage" => {
                            outline.lineage = map.next_value::<Option<String>>()?.unwrap_or(outline.lineage);
                        }
                        "terraform_version" => {
                            let text = map.next_value::<Option<String>>()?;
                            outline.terraform_version = text.unwrap_or(outline.terraform_version);
                        }
                        "encryption_version" => {
                            outline.encrypted |= map.next_value::<Option<String>>()?.is_some();
                        }
                        "outputs" => {
                            map.next_value::<Option<AnyObject>>()?;
                        }
                        "resources" => {
                            let resources = map.next_value::<Option<Resources>>()?.unwrap_or_default();
                            outline.managed = resources.managed;
                            outline.instances = resources.instances;
                        }
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(outline)
            }
        }
        deserializer.deserialize_map(Top)
    }
}

/// An object whose members are skipped.
struct AnyObject;

impl<'de> Deserialize<'de> for AnyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Skip;
        impl<'de> Visitor<'de> for Skip {
            type Value = AnyObject;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<AnyObject, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(AnyObject)
            }
        }
        deserializer.deserialize_map(Skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("write to memory");
        encoder.finish().expect("finish in memory")
    }

    fn of_bytes(payload: &[u8]) -> StateContent {
        parse_payload(payload).content
    }

    fn of(text: &str) -> StateContent {
        of_bytes(&gzip(text))
    }

    fn is_corrupt(content: &StateContent) -> bool {
        matches!(content, StateContent::Corrupt(_))
    }

    #[test]
    fn a_state_is_outlined() {
        let text = r#"{"version":4,"serial":57,"lineage":"l-1","terraform_version":"1.11.4","outputs":{"a":{"value":"CANARY"}},
            "resources":[{"mode":"managed","type":"x","instances":[{},{}]},{"mode":"data"},{"MODE":"managed"},null]}"#;
        match of(text) {
            StateContent::Readable { serial, lineage, managed_resources, .. } => {
                assert_eq!((serial, lineage.as_str(), managed_resources), (57, "l-1", 2));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn classes_follow_the_controllers_order() {
        assert!(matches!(of(r#"{"serial":12,"encryption_version":"v0"}"#), StateContent::Encrypted));
        assert!(matches!(of(r#"{"version":4,"encryption_version":""}"#), StateContent::Encrypted));
        assert!(matches!(of(r#"{"version":4,"encryption_version":null}"#), StateContent::Readable { .. }));
        for text in [
            r#"{"version":3}"#,
            "{}",
            r#"{"version":4,"serial":1.5}"#,
            r#"{"version":4,"encryption_version":7}"#,
            r#"{"version":"4"}"#,
            r#"{"version":4,"outputs":[]}"#,
            r#"{"version":4,"resources":{}}"#,
            r#"{"version":4,"resources":[{"mode":1}]}"#,
            r#"{"version":4} x"#,
            "not json",
            "",
        ] {
            assert!(is_corrupt(&of(text)), "{text}");
        }
    }

    #[test]
    fn only_the_first_gzip_member_counts() {
        let mut data = gzip(r#"{"version":4,"serial":1}"#);
        data.extend(gzip("junk"));
        data.extend([0, 1, 2, 3]);
        let content = of_bytes(&data);
        assert!(matches!(content, StateContent::Readable { .. }), "{content:?}");
    }

    #[test]
    fn damaged_data_is_corrupt() {
        let whole = gzip(r#"{"version":4,"serial":1,"lineage":"abcdefgh"}"#);
        for cut in [0, 1, 2, 9, whole.len() - 1] {
            let content = of_bytes(&whole[..cut]);
            assert!(is_corrupt(&content), "cut at {cut}: {content:?}");
        }
        let mut flipped = whole.clone();
        let last = flipped.len() - 5;
        flipped[last] ^= 0xff;
        assert!(is_corrupt(&of_bytes(&flipped)));
        assert!(is_corrupt(&of_bytes(b"{\"version\":4}")));
    }

    #[test]
    fn a_bomb_is_corrupt_and_stops() {
        let bomb = gzip(&format!("{{\"version\":4,\"pad\":\"{}\"}}", " ".repeat(65 * 1024 * 1024)));
        assert_eq!(of_bytes(&bomb), StateContent::Corrupt("more than 64 MiB decompressed".to_string()));
    }
}
