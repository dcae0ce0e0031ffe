//! From backup Secrets to backup sets, exactly as the controller groups, orders and chooses them.

use std::collections::BTreeMap;

use crate::captf::names::chunk_index;
use crate::captf::time::parse_rfc3339;
use crate::facts::backup::{BackupSet, SecretMeta};

/// Annotations of a backup Secret are this and a word.
const PREFIX: &str = "captf.io/state-backup-";
/// Most chunks of one set.
const MAX_CHUNKS: u32 = 32;

fn note<'a>(secret: &'a SecretMeta, word: &str) -> Option<&'a str> {
    secret.annotations.get(&format!("{PREFIX}{word}")).map(String::as_str)
}

/// The sets that the Secrets make up, in the controller's order: newest taken first, then the higher serial,
/// then by name.
pub fn sets_from_secrets(secrets: &[SecretMeta]) -> Vec<BackupSet> {
    let mut groups: BTreeMap<&str, Vec<&SecretMeta>> = BTreeMap::new();
    for secret in secrets {
        groups.entry(note(secret, "set").unwrap_or(&secret.name)).or_default().push(secret);
    }
    let mut sets: Vec<BackupSet> = groups.into_iter().map(|(name, group)| set_of(name, &group)).collect();
    sets.sort_by(|a, b| (b.taken, b.serial).cmp(&(a.taken, a.serial)).then_with(|| a.name.cmp(&b.name)));
    sets
}

/// The set that a restore of that serial would take: the first complete one in the controller's order.
pub fn choose(sets: &[BackupSet], serial: i64) -> Option<&BackupSet> {
    sets.iter().find(|s| s.is_complete() && s.serial == Some(serial))
}

/// Whether a complete set cannot be reached by a restore, because a newer one has its serial.
pub fn is_shadowed(sets: &[BackupSet], set: &BackupSet) -> bool {
    set.is_complete() && set.serial.and_then(|s| choose(sets, s)).is_some_and(|c| c.name != set.name)
}

fn set_of(name: &str, group: &[&SecretMeta]) -> BackupSet {
    let mut chunks: Vec<(u32, &SecretMeta)> = Vec::new();
    let mut strays = Vec::new();
    let mut problems = Vec::new();
    for secret in group {
        match valid_index(name, secret) {
            Some(index) if !chunks.iter().any(|(i, _)| *i == index) => chunks.push((index, secret)),
            Some(index) => {
                problems.push(format!("chunk {index} is there twice ({})", secret.name));
                strays.push(*secret);
            }
            None => {
                problems.push(format!("Secret {} is no chunk of the set", secret.name));
                strays.push(*secret);
            }
        }
    }
    chunks.sort_by_key(|(index, _)| *index);
    // The controller takes the count of the last valid chunk that it listed.
    let expected = group
        .iter()
        .filter(|s| valid_index(name, s).is_some())
        .filter_map(|s| note(s, "chunks")?.trim().parse::<u32>().ok())
        .next_back();
    match expected {
        None => problems.push("no chunk says how many there are".to_string()),
        Some(0) => problems.push("its chunk count is 0".to_string()),
        Some(count) if count > MAX_CHUNKS => problems.push(format!("{count} chunks, more than {MAX_CHUNKS}")),
        Some(count) => {
            let missing: Vec<String> =
                (0..count).filter(|i| !chunks.iter().any(|(c, _)| c == i)).map(|i| i.to_string()).collect();
            if !missing.is_empty() {
                problems.push(format!("chunk {} of {count} is missing", missing.join(", ")));
            }
            problems.extend(
                chunks
                    .iter()
                    .filter(|(i, _)| *i >= count)
                    .map(|(i, s)| format!("chunk {i} is beyond the {count} of the set ({})", s.name)),
            );
        }
    }
    // Metadata come from chunk 0, else from whatever was listed first.
    let head = chunks.first().filter(|(i, _)| *i == 0).map(|(_, s)| *s).or(group.first().copied());
    let text = |word: &str| head.and_then(|h| note(h, word)).filter(|t| !t.is_empty()).map(str::to_string);
    let serial = head.and_then(|h| note(h, "serial")?.trim().parse::<i64>().ok()).filter(|s| *s >= 1);
    if serial.is_none() {
        problems.push("it names no serial of 1 or more".to_string());
    }
    BackupSet {
        name: name.to_string(),
        serial,
        lineage: text("lineage"),
        taken: head.and_then(|h| note(h, "taken-at").and_then(parse_rfc3339).or(h.created)),
        source_job: text("source-job"),
        resources: text("resources").and_then(|t| t.parse().ok()),
        digest: text("digest"),
        inputs_hash: head.and_then(|h| h.annotations.get("captf.io/inputs-hash").cloned()).filter(|h| !h.is_empty()),
        expected,
        secrets: chunks.into_iter().map(|(_, s)| s).chain(strays).cloned().collect(),
        problems,
    }
}

/// The chunk index that annotation and name agree on, 0 to 31.
fn valid_index(set: &str, secret: &SecretMeta) -> Option<u32> {
    let index: u32 = note(secret, "chunk")?.trim().parse().ok()?;
    (index < MAX_CHUNKS && chunk_index(set, &secret.name) == Some(index)).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(set: &str, name: &str, serial: &str, index: &str, count: &str, taken: &str) -> SecretMeta {
        let notes = [("set", set), ("serial", serial), ("chunk", index), ("chunks", count), ("taken-at", taken)];
        SecretMeta {
            name: name.to_string(),
            annotations: notes.iter().map(|(k, v)| (format!("{PREFIX}{k}"), v.to_string())).collect(),
            ..SecretMeta::default()
        }
    }

    const T1: &str = "2026-01-10T08:00:00Z";
    const T2: &str = "2026-01-11T08:00:00Z";

    #[test]
    fn only_whole_sets_are_complete() {
        let whole = || vec![chunk("s", "s", "5", "0", "2", T1), chunk("s", "s-part-1", "5", "1", "2", T1)];
        let with = |extra: SecretMeta| [whole(), vec![extra]].concat();
        for (case, secrets, complete) in [
            ("whole", whole(), true),
            ("one chunk", vec![chunk("s", "s", "5", "0", "1", T1)], true),
            ("missing", whole()[..1].to_vec(), false),
            ("base missing", whole()[1..].to_vec(), false),
            ("copy with annotations", with(chunk("s", "s-copy", "5", "0", "2", T1)), false),
            ("index and name disagree", vec![chunk("s", "s", "5", "1", "1", T1)], false),
            ("serial 0", vec![chunk("s", "s", "0", "0", "1", T1)], false),
            ("no serial", vec![chunk("s", "s", "x", "0", "1", T1)], false),
            ("count 33", vec![chunk("s", "s", "5", "0", "33", T1)], false),
            ("beyond", vec![chunk("s", "s", "5", "0", "1", T1), chunk("s", "s-part-1", "5", "1", "1", T1)], false),
            ("without annotations", vec![SecretMeta { name: "s".to_string(), ..SecretMeta::default() }], false),
        ] {
            let sets = sets_from_secrets(&secrets);
            assert_eq!(sets.len(), 1, "{case}");
            assert_eq!(sets[0].is_complete(), complete, "{case}: {:?}", sets[0].problems);
        }
    }

    #[test]
    fn of_one_serial_the_newest_taken_is_chosen_and_the_other_is_shadowed() {
        let secrets = [
            chunk("a-5", "a-5", "5", "0", "1", T1),
            chunk("a-5-deadbeef", "a-5-deadbeef", "5", "0", "1", T2),
            chunk("a-7", "a-7", "7", "0", "2", T2),
        ];
        let sets = sets_from_secrets(&secrets);
        let names: Vec<&str> = sets.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["a-7", "a-5-deadbeef", "a-5"]);
        assert_eq!(choose(&sets, 5).map(|s| s.name.as_str()), Some("a-5-deadbeef"));
        assert!(choose(&sets, 7).is_none(), "an incomplete set is never chosen");
        assert_eq!(sets.iter().map(|s| is_shadowed(&sets, s)).collect::<Vec<_>>(), [false, false, true]);
    }
}
