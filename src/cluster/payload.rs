//! Reads a payload through, chunk by chunk: at most a few Secrets are in memory at once, whatever its size.
//!
//! Chunks are fetched by name, in order, and flow into a parser on a thread of its own. Each must be the
//! Secret that was listed (UID and version), else the payload changed under the read and is read again.

use std::io::Read;
use std::sync::mpsc::{Receiver, sync_channel};

use futures::StreamExt;
use k8s_openapi::ByteString;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::api::{Api, SECRETS};
use super::backups::read_selected;
use super::json::owned;
use super::state_diff::by_type;
use super::state_instances::Instance;
use super::state_reader::{MAX_CHUNKS, Parsed, parse_payload};
use crate::captf::names::{chunk_index, state_secret};
use crate::facts::backup::{BackupSet, SecretMeta};
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, GapReason, Reading};
use crate::facts::restore::PayloadFacts;
use crate::facts::state::StateContent;

/// Chunks that are fetched ahead of the parser.
const AHEAD: usize = 2;
/// How often a state that changes while it is read is tried.
const ATTEMPTS: usize = 3;

/// A payload that was read through, with the addresses of its instances.
pub struct Payload {
    pub facts: PayloadFacts,
    pub instances: Vec<Instance>,
}

/// The live state as the controller reads it. `Absent`: no Secret is selected.
pub async fn read_live(api: &Api, object: &ObjectRef) -> Reading<Payload> {
    let base = state_secret(&object.suffix());
    for attempt in 1..=ATTEMPTS {
        let secrets = match read_selected(api, object).await {
            Reading::Found(secrets) if secrets.is_empty() => return Reading::Absent,
            Reading::Found(secrets) => secrets,
            Reading::Absent => return Reading::Absent,
            Reading::Unreadable(gap) => return Reading::Unreadable(gap),
        };
        let ordered = match in_order(&base, &secrets) {
            Ok(ordered) => ordered,
            Err(content) => return Reading::Found(verdict_only(content, secrets.len())),
        };
        match stream(api, &object.namespace, &ordered, None).await {
            Ok(payload) => return Reading::Found(payload),
            Err(Broken::Changed(_)) if attempt < ATTEMPTS => {}
            Err(broken) => return broken.into_reading(&object.namespace),
        }
    }
    Reading::Unreadable(changing(format!("the state of {}", object.resource())))
}

/// The payload of a complete backup set.
pub async fn read_backup(api: &Api, namespace: &str, set: &BackupSet) -> Reading<Payload> {
    let secrets: Vec<&SecretMeta> = set.secrets.iter().collect();
    match stream(api, namespace, &secrets, set.digest.as_deref()).await {
        Ok(payload) => Reading::Found(payload),
        Err(broken) => broken.into_reading(namespace),
    }
}

fn changing(what: String) -> Gap {
    let detail = "it kept changing while it was read".to_string();
    Gap { what, reason: GapReason::Failed, detail, permission: None }
}

fn verdict_only(content: StateContent, chunks: usize) -> Payload {
    let facts = PayloadFacts {
        content,
        compressed: 0,
        decompressed: 0,
        digest_matches: None,
        types: Vec::new(),
        instances: 0,
        chunks,
    };
    Payload { facts, instances: Vec::new() }
}

/// The controller's checks that need no payload: count, names, gaps.
fn in_order<'a>(base: &str, secrets: &'a [SecretMeta]) -> Result<Vec<&'a SecretMeta>, StateContent> {
    if secrets.len() > MAX_CHUNKS {
        return Err(StateContent::Corrupt(format!("{} Secrets, more than {MAX_CHUNKS}", secrets.len())));
    }
    let mut indexed = Vec::new();
    for secret in secrets {
        let Some(index) = chunk_index(base, &secret.name) else {
            return Err(StateContent::Inconsistent(format!("Secret {} is not a chunk of this state", secret.name)));
        };
        indexed.push((index, secret));
    }
    indexed.sort_by_key(|(index, _)| *index);
    for (expected, (index, _)) in indexed.iter().enumerate() {
        if usize::try_from(*index) != Ok(expected) {
            return Err(StateContent::Inconsistent(format!("chunk {expected} is missing")));
        }
    }
    Ok(indexed.into_iter().map(|(_, secret)| secret).collect())
}

enum Broken {
    Changed(String),
    Gap(Gap),
}

impl Broken {
    fn into_reading<T>(self, namespace: &str) -> Reading<T> {
        match self {
            Self::Changed(name) => Reading::Unreadable(changing(format!("Secret {namespace}/{name}"))),
            Self::Gap(gap) => Reading::Unreadable(gap),
        }
    }
}

async fn stream(api: &Api, namespace: &str, secrets: &[&SecretMeta], digest: Option<&str>) -> Result<Payload, Broken> {
    let (send, receive) = sync_channel::<Vec<u8>>(1);
    let parser = std::thread::spawn(move || parse_payload(ChunkReader { receive, current: Vec::new(), at: 0 }));
    let fetches = secrets.iter().map(|secret| fetch(api, namespace, secret));
    let mut fetches = futures::stream::iter(fetches).buffered(AHEAD);
    let mut hash = Sha256::new();
    let mut compressed = 0u64;
    let mut without_key = None;
    let mut broken = None;
    while let Some(chunk) = fetches.next().await {
        match chunk {
            Ok((_, Some(data))) => {
                hash.update(&data);
                compressed += data.len() as u64;
                // The parser stops listening once it knows enough; keys are still checked to the end.
                let _ = send.send(data);
            }
            Ok((name, None)) => without_key = without_key.or(Some(name)),
            Err(error) => {
                broken = Some(error);
                break;
            }
        }
    }
    drop(send);
    let parsed = parser.join().unwrap_or_else(|_| Parsed {
        content: StateContent::Corrupt("it could not be parsed".to_string()),
        instances: Vec::new(),
        decompressed: 0,
    });
    if let Some(broken) = broken {
        return Err(broken);
    }
    let actual = hash.finalize().iter().map(|b| format!("{b:02x}")).collect::<String>();
    let content = match (without_key, parsed.content) {
        (Some(name), _) => StateContent::Inconsistent(format!("Secret {name} has no key tfstate")),
        (None, StateContent::Readable { serial, lineage, terraform_version, managed_resources, .. }) => {
            StateContent::Readable { serial, lineage, terraform_version, managed_resources, bytes: compressed }
        }
        (None, other) => other,
    };
    let instances = parsed.instances;
    let facts = PayloadFacts {
        content,
        compressed,
        decompressed: parsed.decompressed,
        digest_matches: digest.map(|d| d.eq_ignore_ascii_case(&actual)),
        types: by_type(&instances),
        instances: instances.len() as u64,
        chunks: secrets.len(),
    };
    Ok(Payload { facts, instances })
}

async fn fetch(api: &Api, namespace: &str, secret: &SecretMeta) -> Result<(String, Option<Vec<u8>>), Broken> {
    let name = secret.name.clone();
    let mut value = match api.get(&SECRETS, Some(namespace), &name).await {
        Reading::Found(value) => value,
        Reading::Absent => return Err(Broken::Changed(name)),
        Reading::Unreadable(gap) => return Err(Broken::Gap(gap)),
    };
    let same = |field: &str, listed: &str| listed.is_empty() || owned(&value, &["metadata", field]) == listed;
    if !same("uid", &secret.uid) || !same("resourceVersion", &secret.resource_version) {
        return Err(Broken::Changed(name));
    }
    let data = value.get_mut("data").and_then(|d| d.get_mut("tfstate")).map(Value::take);
    let data = data.and_then(|d| serde_json::from_value::<ByteString>(d).ok()).map(|b| b.0);
    Ok((name, data))
}

/// The raw compressed bytes of a payload, for a copy that the operator asked for.
pub async fn read_bytes(api: &Api, namespace: &str, secrets: &[SecretMeta]) -> Reading<Vec<u8>> {
    let mut all = Vec::new();
    for secret in secrets {
        match fetch(api, namespace, secret).await {
            Ok((_, Some(data))) => all.extend(data),
            Ok((name, None)) => {
                return Reading::Unreadable(Gap {
                    what: format!("Secret {namespace}/{name}"),
                    reason: GapReason::Malformed,
                    detail: "it has no key tfstate".to_string(),
                    permission: None,
                });
            }
            Err(broken) => return broken.into_reading(namespace),
        }
    }
    Reading::Found(all)
}

/// Chunks as one stream of bytes.
struct ChunkReader {
    receive: Receiver<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
}

impl Read for ChunkReader {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.current.len() {
            match self.receive.recv() {
                Ok(next) => {
                    self.current = next;
                    self.at = 0;
                }
                Err(_) => return Ok(0),
            }
        }
        let rest = &self.current[self.at..];
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(name: &str) -> SecretMeta {
        SecretMeta { name: name.to_string(), ..SecretMeta::default() }
    }

    #[test]
    fn names_are_judged_before_any_payload() {
        let base = "tfstate-default-x-c";
        let ok = [meta("tfstate-default-x-c-part-1"), meta(base)];
        let names: Vec<&str> = in_order(base, &ok).expect("in order").iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, [base, "tfstate-default-x-c-part-1"]);
        let mut eleven: Vec<SecretMeta> =
            (1..12).map(|i| meta(&format!("{base}-part-{i}"))).chain([meta(base)]).collect();
        let last = in_order(base, &eleven).expect("by number, not by name").pop().map(|s| s.name.clone());
        assert_eq!(last.as_deref(), Some("tfstate-default-x-c-part-11"));
        eleven.remove(3);
        assert!(matches!(in_order(base, &eleven), Err(StateContent::Inconsistent(_))));
        let many: Vec<SecretMeta> = (0..33).map(|i| meta(&format!("{base}-part-{i}"))).collect();
        assert!(matches!(in_order(base, &many), Err(StateContent::Corrupt(_))));
        for broken in [vec![meta("tfstate-default-x-c-part-1")], vec![meta(base), meta("tfstate-default-x-c-copy")]] {
            assert!(matches!(in_order(base, &broken), Err(StateContent::Inconsistent(_))));
        }
    }

    #[test]
    fn chunks_read_as_one_stream_whatever_their_sizes() {
        let (send, receive) = sync_channel(8);
        for part in ["ab", "", "c", "defg"] {
            send.send(part.as_bytes().to_vec()).expect("room");
        }
        drop(send);
        let mut text = String::new();
        ChunkReader { receive, current: Vec::new(), at: 0 }.read_to_string(&mut text).expect("read");
        assert_eq!(text, "abcdefg");
    }
}
