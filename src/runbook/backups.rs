//! `backups list` and `backups verify`: what is wrong with the backups of an object.

use jiff::Timestamp;

use super::backup_sets::{choose, is_shadowed};
use super::code::Code;
use super::finding::{Evidence, Finding};
use crate::captf::time::{relative, utc};
use crate::facts::backup::{BackupSet, StatusBackup};
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::restore::PayloadFacts;
use crate::facts::state::StateContent;

/// Findings about all sets of an object.
pub fn diagnose_list(
    object: &ObjectRef,
    about: &ObjectFacts,
    status: &[StatusBackup],
    sets: &[BackupSet],
    now: Timestamp,
) -> Vec<Finding> {
    let mut found = Vec::new();
    let complete: Vec<&BackupSet> = sets.iter().filter(|s| s.is_complete()).collect();
    if complete.is_empty() {
        let had = about.observed_serial.map_or("no state was ever read".to_string(), |s| format!("serial {s}"));
        found.push(
            Finding::new(
                Code::BackupsNone,
                Evidence::new(format!("Secrets of backups of {}", object.resource()), "no complete set"),
            )
            .seen(Evidence::new(format!("{} .status.observedStateSerial", object.resource()), had)),
        );
    }
    for set in sets.iter().filter(|s| !s.is_complete()) {
        let mut finding = Finding::new(Code::BackupIncomplete, set_evidence(set, now)).with("set", set.name.clone());
        for problem in &set.problems {
            finding = finding.seen(Evidence::new(format!("backup set {}", set.name), problem.clone()));
        }
        if let Some(stray) = stray(set) {
            finding = finding.with("secret", stray);
        }
        if let Some(serial) = set.serial {
            finding = finding.with("serial", serial.to_string());
        }
        found.push(finding);
    }
    found.extend(sets.iter().filter(|s| is_shadowed(sets, s)).map(|set| shadowed(sets, set, now)));
    found.extend(lineages(&complete));
    found.extend(status_lags(object, status, &complete));
    found
}

/// Evidence that names a set with its serial and age.
pub fn set_evidence(set: &BackupSet, now: Timestamp) -> Evidence {
    let serial = set.serial.map_or("no serial".to_string(), |s| format!("serial {s}"));
    let taken = set.taken.map(|t| format!(", taken {}", relative(t, now))).unwrap_or_default();
    Evidence::new(format!("Secret/{}", set.name), format!("{serial}{taken}")).at(set.taken)
}

/// A Secret that claims to belong to a set and is none of its chunks.
fn stray(set: &BackupSet) -> Option<String> {
    let stray = set.secrets.iter().find(|s| crate::captf::names::chunk_index(&set.name, &s.name).is_none())?;
    Some(stray.name.clone())
}

fn shadowed(sets: &[BackupSet], set: &BackupSet, now: Timestamp) -> Finding {
    let serial = set.serial.unwrap_or_default();
    let mut finding = Finding::new(Code::BackupSerialTwice, set_evidence(set, now))
        .with("serial", serial.to_string())
        .with("set", set.name.clone());
    if let Some(chosen) = choose(sets, serial) {
        finding = finding.seen(set_evidence(chosen, now));
    }
    finding
}

fn lineages(complete: &[&BackupSet]) -> Option<Finding> {
    let newest = complete.first()?;
    let other = complete.iter().find(|s| s.lineage.is_some() && s.lineage != newest.lineage)?;
    let line = |set: &BackupSet| {
        let lineage = set.lineage.clone().unwrap_or_else(|| "none".to_string());
        Evidence::new(format!("Secret/{} annotation captf.io/state-backup-lineage", set.name), lineage).at(set.taken)
    };
    Some(Finding::new(Code::BackupLineagesDiffer, line(newest)).seen(line(other)))
}

/// Compares serial and time of each complete set with what the object lists, 16 at most.
fn status_lags(object: &ObjectRef, status: &[StatusBackup], complete: &[&BackupSet]) -> Option<Finding> {
    let listed: Vec<(i64, Option<Timestamp>)> = status.iter().map(|b| (b.serial, b.taken)).collect();
    let actual: Vec<(i64, Option<Timestamp>)> =
        complete.iter().take(16).map(|s| (s.serial.unwrap_or_default(), s.taken)).collect();
    if listed == actual {
        return None;
    }
    let words = |list: &[(i64, Option<Timestamp>)]| {
        let serials: Vec<String> = list.iter().map(|(serial, _)| serial.to_string()).collect();
        if serials.is_empty() { "none".to_string() } else { serials.join(", ") }
    };
    let source = format!("{} .status.stateBackups", object.resource());
    Some(
        Finding::new(Code::BackupsStatusLags, Evidence::new(source, words(&listed)))
            .seen(Evidence::new("complete sets among the Secrets", words(&actual))),
    )
}

/// Findings about the payload of a complete set.
pub fn diagnose_payload(set: &BackupSet, payload: &PayloadFacts) -> Vec<Finding> {
    let serial = set.serial.unwrap_or_default().to_string();
    let source = format!("Secret/{}", set.name);
    let new =
        |code, evidence| Finding::new(code, evidence).with("set", set.name.clone()).with("serial", serial.clone());
    let mut found = Vec::new();
    if payload.digest_matches == Some(false) {
        let evidence = Evidence::new(format!("{source} annotation captf.io/state-backup-digest"), "is of other data");
        found.push(new(Code::BackupDigestDiffers, evidence));
    }
    match &payload.content {
        StateContent::Readable { serial, lineage, managed_resources, .. } => {
            let mut differ = Vec::new();
            if set.serial != Some(*serial) {
                differ.push(("serial", set.serial.map(|s| s.to_string()), serial.to_string()));
            }
            if set.lineage.as_ref().is_some_and(|l| l != lineage) {
                differ.push(("lineage", set.lineage.clone(), lineage.clone()));
            }
            if set.resources.is_some_and(|r| r != *managed_resources) {
                differ.push(("resources", set.resources.map(|r| r.to_string()), managed_resources.to_string()));
            }
            let evidence = differ.into_iter().map(|(word, says, is)| {
                let says = says.unwrap_or_else(|| "none".to_string());
                Evidence::new(
                    format!("{source} annotation captf.io/state-backup-{word}"),
                    format!("{says}, the payload has {is}"),
                )
            });
            let evidence: Vec<Evidence> = evidence.collect();
            if let Some((first, rest)) = evidence.split_first() {
                found.push(new(Code::BackupAnnotationsDiffer, first.clone()).seen_all(rest.iter().cloned()));
            }
        }
        StateContent::Encrypted => {
            found.push(new(Code::BackupEncrypted, Evidence::new(source, "has an encryption_version")));
        }
        StateContent::Corrupt(why) | StateContent::Inconsistent(why) => {
            found.push(new(Code::BackupPayloadBroken, Evidence::new(source, why.clone())));
        }
    }
    found
}

/// What a sound payload is called.
pub fn verified(set: &BackupSet, payload: &PayloadFacts) -> Finding {
    let digest = match payload.digest_matches {
        Some(_) => "the digest matches",
        None => "no digest was annotated",
    };
    let value = format!(
        "{digest}; {} managed instances in {} bytes compressed, {} decompressed",
        payload.instances, payload.compressed, payload.decompressed
    );
    Finding::new(Code::BackupVerified, Evidence::new(format!("Secret/{}", set.name), value).at(set.taken))
        .with("serial", set.serial.unwrap_or_default().to_string())
        .with("taken", set.taken.map_or("at an unknown time".to_string(), utc))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captf::kind::WorkloadKind;

    fn set(name: &str, serial: i64, lineage: &str) -> BackupSet {
        BackupSet {
            name: name.to_string(),
            serial: Some(serial),
            lineage: Some(lineage.to_string()),
            resources: Some(2),
            ..BackupSet::default()
        }
    }

    fn payload(content: StateContent, digest: Option<bool>) -> PayloadFacts {
        PayloadFacts {
            content,
            compressed: 10,
            decompressed: 20,
            digest_matches: digest,
            types: Vec::new(),
            instances: 2,
            chunks: 1,
        }
    }

    fn state(serial: i64, lineage: &str, managed: u64) -> StateContent {
        StateContent::Readable {
            serial,
            lineage: lineage.to_string(),
            terraform_version: String::new(),
            managed_resources: managed,
            bytes: 10,
        }
    }

    fn codes(found: &[Finding]) -> Vec<Code> {
        found.iter().map(|f| f.code).collect()
    }

    #[test]
    fn a_payload_is_held_against_what_its_secret_says() {
        let set = set("s", 5, "l");
        for (case, content, digest, expected) in [
            ("sound", state(5, "l", 2), Some(true), vec![]),
            ("without a digest", state(5, "l", 2), None, vec![]),
            ("digest", state(5, "l", 2), Some(false), vec![Code::BackupDigestDiffers]),
            ("serial", state(6, "l", 2), Some(true), vec![Code::BackupAnnotationsDiffer]),
            ("lineage", state(5, "m", 2), Some(true), vec![Code::BackupAnnotationsDiffer]),
            ("resources", state(5, "l", 3), Some(true), vec![Code::BackupAnnotationsDiffer]),
            ("encrypted", StateContent::Encrypted, Some(true), vec![Code::BackupEncrypted]),
            ("corrupt", StateContent::Corrupt("x".into()), Some(true), vec![Code::BackupPayloadBroken]),
        ] {
            assert_eq!(codes(&diagnose_payload(&set, &payload(content, digest))), expected, "{case}");
        }
    }

    #[test]
    fn a_list_says_what_is_wrong_with_it() {
        let object =
            ObjectRef { kind: WorkloadKind::Cluster, namespace: "team-a".to_string(), name: "prod".to_string() };
        let about = ObjectFacts::default();
        let status = |serials: &[i64]| -> Vec<StatusBackup> {
            serials.iter().map(|s| StatusBackup { serial: *s, taken: None, bytes: None }).collect()
        };
        let broken = BackupSet { problems: vec!["chunk 1 of 2 is missing".to_string()], ..set("b", 4, "l") };
        for (case, sets, listed, expected) in [
            ("healthy", vec![set("a", 5, "l")], status(&[5]), vec![]),
            ("none", vec![], status(&[]), vec![Code::BackupsNone]),
            ("incomplete only", vec![broken.clone()], status(&[]), vec![Code::BackupsNone, Code::BackupIncomplete]),
            ("twice", vec![set("a", 5, "l"), set("b", 5, "l")], status(&[5, 5]), vec![Code::BackupSerialTwice]),
            ("lineages", vec![set("a", 5, "l"), set("b", 4, "m")], status(&[5, 4]), vec![Code::BackupLineagesDiffer]),
            ("lags", vec![set("a", 5, "l")], status(&[4]), vec![Code::BackupsStatusLags]),
        ] {
            let found = diagnose_list(&object, &about, &listed, &sets, Timestamp::UNIX_EPOCH);
            assert_eq!(codes(&found), expected, "{case}");
        }
    }
}
