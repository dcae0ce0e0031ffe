//! The limits: a state of 60 MiB in 32 chunks, a 33rd chunk, a gzip bomb, a list of 16 sets of 1 MiB.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::fixture::{Fixture, Ran, encode, gzip, noise};
use crate::ground::ground;
use crate::ground::runtime::Runtime;

/// A state in JSON of about `bytes`, half of it hard to compress.
fn big_state(serial: i64, bytes: usize, count: usize) -> Vec<u8> {
    let each = bytes / count;
    let resource = |i: usize| {
        let random = noise(each * 9 / 10 + i);
        json!({"mode": "managed", "type": "big_thing", "name": format!("n{i}"), "instances": [{"attributes": {
            "id": format!("id-{i}"), "blob": &random[i..], "pad": " ".repeat(each / 10), "secret": super::CANARY}}]})
    };
    let resources: Vec<Value> = (0..count).map(resource).collect();
    json!({"version": 4, "serial": serial, "lineage": "l", "terraform_version": "1.11.4", "resources": resources})
        .to_string()
        .into_bytes()
}

fn put(
    fixture: &Fixture<'_>,
    base: &str,
    payload: &[u8],
    chunks: usize,
    labels: &Value,
    notes: impl Fn(usize) -> Value,
) {
    let size = payload.len().div_ceil(chunks);
    for (index, part) in payload.chunks(size).enumerate() {
        let name = if index == 0 { base.to_string() } else { format!("{base}-part-{index}") };
        fixture.ground.apply_value(json!({
            "apiVersion": "v1", "kind": "Secret", "data": {"tfstate": encode(part)},
            "metadata": {"name": name, "namespace": fixture.namespace, "labels": labels, "annotations": notes(index)},
        }));
    }
}

fn put_live(fixture: &Fixture<'_>, payload: &[u8], chunks: usize) {
    let mut labels: serde_json::Map<String, Value> =
        fixture.workspace.labels.iter().map(|(k, v)| (k.clone(), json!(v))).collect();
    for (key, value) in [
        ("tfstate", "true"),
        ("tfstateSecretSuffix", &fixture.workspace.suffix),
        ("tfstateWorkspace", "default"),
        ("app.kubernetes.io/managed-by", "terraform"),
    ] {
        labels.insert(key.to_string(), json!(value));
    }
    let labels = Value::Object(labels);
    put(fixture, &fixture.workspace.secret(), payload, chunks, &labels, |_| json!({"captf.io/inputs-hash": "h2:one"}));
}

fn put_backup(fixture: &Fixture<'_>, serial: i64, payload: &[u8], chunks: usize, resources: usize) {
    let set = format!("captf-state-backup-{}-{serial}", fixture.workspace.suffix);
    let labels = json!({"captf.io/state-backup": "true", "captf.io/state-backup-suffix": fixture.workspace.suffix});
    let digest: String = Sha256::digest(payload).iter().map(|b| format!("{b:02x}")).collect();
    put(fixture, &set, payload, chunks, &labels, |index| {
        json!({
            "captf.io/state-backup-serial": serial.to_string(), "captf.io/state-backup-lineage": "l",
            "captf.io/state-backup-taken-at": "2026-01-01T00:00:00Z", "captf.io/state-backup-digest": digest,
            "captf.io/state-backup-resources": resources.to_string(), "captf.io/state-backup-set": set,
            "captf.io/state-backup-chunk": index.to_string(), "captf.io/state-backup-chunks": chunks.to_string(),
            "captf.io/inputs-hash": "h2:one",
        })
    });
}

/// A figure for whoever runs the tests with `--nocapture`.
fn note(figure: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{figure}"); // a closed standard error loses a figure, no result
}

/// Runs the plugin and returns its peak of resident memory in KiB.
fn measured(fixture: &Fixture<'_>, words: &[&str]) -> (Ran, u64, Duration) {
    let start = Instant::now();
    let child = fixture.command(words).spawn().expect("start the plugin");
    let status = format!("/proc/{}/status", child.id());
    let reader = std::thread::spawn(move || child.wait_with_output().expect("wait for the plugin"));
    let mut peak = 0;
    while !reader.is_finished() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let now = line.and_then(|l| l.trim().strip_suffix(" kB")).and_then(|n| n.trim().parse().ok()).unwrap_or(0);
        peak = peak.max(now);
        std::thread::sleep(Duration::from_millis(20));
    }
    let ran = Ran::of(&reader.join().expect("wait for the plugin"));
    (ran, peak, start.elapsed())
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_state_of_60_mib_in_32_chunks_is_compared_in_bounded_memory() {
    let namespace = ground().namespace("big");
    let fixture = Fixture::new(&namespace, &Runtime::terraform(), "demo");
    let live = gzip(&big_state(57, 60 << 20, 400));
    assert!(live.len() < 32 << 20, "{} bytes do not fit into 32 chunks", live.len());
    put_live(&fixture, &live, 32);
    put_backup(&fixture, 41, &gzip(&big_state(41, 58 << 20, 390)), 32, 390);
    let (ran, peak, took) = measured(&fixture, &["backups", "diff", "terraformcluster/demo", "41", "-o", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.text());
    assert_eq!(ran.json()["diff"]["forgottenCount"], 10, "{}", ran.text());
    note(&format!("diff of 60 and 58 MiB in 32 chunks: peak {peak} KiB, {took:?}"));
    assert!(peak < 64 << 10, "the peak of {peak} KiB is that of a whole state");
    let (ran, peak, _) = measured(&fixture, &["state", "inspect", "terraformcluster/demo", "-o", "json"]);
    assert_eq!(ran.json()["state"]["reason"], "StateRead", "{}", ran.text());
    assert_eq!(ran.json()["state"]["secrets"].as_array().map(Vec::len), Some(32));
    note(&format!("state inspect: peak {peak} KiB"));

    // One chunk more, and the controller reads nothing.
    let part = format!("{}-part-32", fixture.workspace.secret());
    let mut last = fixture.ground.get("Secret", &fixture.namespace, &fixture.workspace.secret());
    last["metadata"] = json!({"name": part, "namespace": fixture.namespace, "labels": last["metadata"]["labels"]});
    fixture.ground.apply_value(last);
    let ran = fixture.plugin(&["state", "inspect", "terraformcluster/demo", "-o", "json"]);
    assert_eq!(ran.json()["state"]["reason"], "StateCorrupt", "{}", ran.text());
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_gzip_bomb_gets_the_controllers_verdict() {
    let namespace = ground().namespace("bomb");
    let fixture = Fixture::new(&namespace, &Runtime::terraform(), "demo");
    let bomb = gzip(format!("{{\"version\":4,\"pad\":\"{}\"}}", "x".repeat(200 << 20)).as_bytes());
    put_live(&fixture, &bomb, 1);
    let (ran, peak, _) = measured(&fixture, &["state", "inspect", "terraformcluster/demo", "-o", "json"]);
    assert_eq!(ran.json()["state"]["reason"], "StateCorrupt", "{}", ran.text());
    note(&format!("a bomb of 200 MiB: peak {peak} KiB"));
    assert!(peak < 64 << 10, "peak {peak} KiB");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_list_of_16_sets_of_1_mib_reads_no_payload() {
    let namespace = ground().namespace("list");
    let fixture = Fixture::new(&namespace, &Runtime::terraform(), "demo");
    let payload = gzip(noise(1_700_000).as_bytes());
    assert!((900_000..1_048_576).contains(&payload.len()), "{} bytes", payload.len());
    for serial in 1..=16 {
        put_backup(&fixture, serial, &payload, 1, 3);
    }
    let mut times = Vec::new();
    let mut most = 0;
    for _ in 0..5 {
        let (ran, peak, took) = measured(&fixture, &["backups", "list", "terraformcluster/demo", "-o", "json"]);
        assert_eq!(ran.json()["backups"].as_array().map(Vec::len), Some(16), "{}", ran.text());
        most = most.max(peak);
        times.push(took);
    }
    times.sort();
    note(&format!("backups list of 16 sets of 1 MiB: median {:?}, peak {most} KiB", times[2]));
    assert!(most < 32 << 10, "16 MiB of payload would show: {most} KiB");
}
