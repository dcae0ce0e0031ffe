//! Reads a Terraform state from its chunks by the controller's rules, keeping only the outline.
//!
//! First gzip member only, at most 64 MiB decompressed, streamed; Go's JSON liberties are replayed
//! (keys without regard to case, the last duplicate wins, a wrong type anywhere voids the state).

use std::fmt;
use std::io::Read;

use flate2::read::GzDecoder;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::state_instances::{Instance, Resources};
use crate::captf::names::chunk_index;
use crate::facts::state::StateContent;

/// Most Secrets that the controller reads as one state.
pub const MAX_CHUNKS: usize = 32;
/// Most bytes of decompressed state.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// One Secret with its payload, for the length of a read.
pub struct Chunk {
    pub name: String,
    pub data: Option<Vec<u8>>,
}

/// Judges the Secrets that the controller's selector found. `None` for an empty list: no state.
pub fn content_from_chunks(base: &str, chunks: Vec<Chunk>) -> Option<StateContent> {
    if chunks.is_empty() {
        return None;
    }
    Some(judge(base, chunks).unwrap_or_else(|verdict| verdict))
}

fn judge(base: &str, chunks: Vec<Chunk>) -> Result<StateContent, StateContent> {
    if chunks.len() > MAX_CHUNKS {
        return Err(StateContent::Corrupt(format!("{} Secrets, more than {MAX_CHUNKS}", chunks.len())));
    }
    let mut indexed = Vec::new();
    for chunk in chunks {
        match chunk_index(base, &chunk.name) {
            Some(index) => indexed.push((index, chunk)),
            None => {
                return Err(StateContent::Inconsistent(format!("Secret {} is not a chunk of this state", chunk.name)));
            }
        }
    }
    indexed.sort_by_key(|(index, _)| *index);
    for (expected, (index, chunk)) in indexed.iter().enumerate() {
        if usize::try_from(*index) != Ok(expected) {
            return Err(StateContent::Inconsistent(format!("chunk {expected} is missing")));
        }
        if chunk.data.is_none() {
            return Err(StateContent::Inconsistent(format!("Secret {} has no key tfstate", chunk.name)));
        }
    }
    let payload: Vec<u8> = indexed.into_iter().flat_map(|(_, c)| c.data.unwrap_or_default()).collect();
    outline(&payload)
}

fn outline(payload: &[u8]) -> Result<StateContent, StateContent> {
    match parse_payload(payload).content {
        StateContent::Readable { serial, lineage, terraform_version, managed_resources, .. } => {
            let bytes = payload.len() as u64;
            Ok(StateContent::Readable { serial, lineage, terraform_version, managed_resources, bytes })
        }
        StateContent::Encrypted => Ok(StateContent::Encrypted),
        other => Err(other),
    }
}

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

    const BASE: &str = "tfstate-default-f66792f9106e7299-c";

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).expect("write to memory");
        encoder.finish().expect("finish in memory")
    }

    fn chunk(name: &str, data: Option<Vec<u8>>) -> Chunk {
        Chunk { name: name.to_string(), data }
    }

    fn of(text: &str) -> StateContent {
        content_from_chunks(BASE, vec![chunk(BASE, Some(gzip(text)))]).expect("a state")
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
        let content = content_from_chunks(BASE, vec![chunk(BASE, Some(data))]);
        assert!(matches!(content, Some(StateContent::Readable { .. })), "{content:?}");
    }

    #[test]
    fn damaged_data_is_corrupt() {
        let whole = gzip(r#"{"version":4,"serial":1,"lineage":"abcdefgh"}"#);
        for cut in [0, 1, 2, 9, whole.len() - 1] {
            let content = content_from_chunks(BASE, vec![chunk(BASE, Some(whole[..cut].to_vec()))]);
            assert!(content.as_ref().is_some_and(is_corrupt), "cut at {cut}: {content:?}");
        }
        let mut flipped = whole.clone();
        let last = flipped.len() - 5;
        flipped[last] ^= 0xff;
        assert!(content_from_chunks(BASE, vec![chunk(BASE, Some(flipped))]).as_ref().is_some_and(is_corrupt));
        assert!(
            content_from_chunks(BASE, vec![chunk(BASE, Some(b"{\"version\":4}".to_vec()))])
                .as_ref()
                .is_some_and(is_corrupt)
        );
    }

    #[test]
    fn a_bomb_is_corrupt_and_stops() {
        let bomb = gzip(&format!("{{\"version\":4,\"pad\":\"{}\"}}", " ".repeat(65 * 1024 * 1024)));
        let content = content_from_chunks(BASE, vec![chunk(BASE, Some(bomb))]);
        assert_eq!(content, Some(StateContent::Corrupt("more than 64 MiB decompressed".to_string())));
    }

    #[test]
    fn chunks_are_ordered_by_number_and_must_be_whole() {
        let data = gzip(&format!(r#"{{"version":4,"serial":3,"lineage":"{}"}}"#, "x".repeat(50)));
        let parts: Vec<Vec<u8>> = data.chunks(data.len() / 11).map(<[u8]>::to_vec).collect();
        let name = |i: usize| if i == 0 { BASE.to_string() } else { format!("{BASE}-part-{i}") };
        let all = || (0..parts.len()).map(|i| chunk(&name(i), Some(parts[i].clone()))).rev().collect::<Vec<_>>();
        assert!(matches!(content_from_chunks(BASE, all()), Some(StateContent::Readable { serial: 3, .. })));
        let mut missing = all();
        missing.remove(3);
        assert!(matches!(content_from_chunks(BASE, missing), Some(StateContent::Inconsistent(_))));
        let mut stray = all();
        stray.push(chunk(&format!("{BASE}-backup"), None));
        assert!(matches!(content_from_chunks(BASE, stray), Some(StateContent::Inconsistent(_))));
        let keyless = vec![chunk(BASE, None)];
        assert!(matches!(content_from_chunks(BASE, keyless), Some(StateContent::Inconsistent(_))));
        let many = (0..33).map(|i| chunk(&name(i), Some(Vec::new()))).collect();
        assert!(content_from_chunks(BASE, many).as_ref().is_some_and(is_corrupt));
        assert_eq!(content_from_chunks(BASE, Vec::new()), None);
    }
}
