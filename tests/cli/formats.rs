//! JSON follows its schema, holds everything that the text shows, and YAML says the same.

use std::collections::BTreeSet;

use serde_json::Value;

use super::corpus::command_lines;
use super::run::{root, run};

/// The corpus without options of output: each line once.
fn plain_lines() -> BTreeSet<String> {
    let lines = command_lines().into_iter().map(|(_, line)| line);
    lines.filter(|l| !l.split(' ').any(|w| w == "-o" || w == "-q" || w == "--no-headers")).collect()
}

fn stdout(line: &str) -> String {
    String::from_utf8(run(line).stdout).expect("UTF-8")
}

#[test]
fn every_json_report_follows_the_schema() {
    let text = std::fs::read_to_string(root().join("schema/report.schema.json")).expect("the schema");
    let schema: Value = serde_json::from_str(&text).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    assert!(!validator.is_valid(&serde_json::json!({"kind": "Report"})), "the schema refuses nothing");
    let mut checked = 0;
    for line in plain_lines() {
        let out = stdout(&format!("{line} -o json"));
        if out.is_empty() {
            continue;
        }
        let report: Value = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{line}: {e}"));
        if let Err(e) = validator.validate(&report) {
            panic!("{line}: {e} at {}", e.instance_path);
        }
        checked += 1;
    }
    assert!(checked > 40, "only {checked} reports were checked");
}

/// Words that the text layout adds by itself.
const LAYOUT: &[&str] = &[
    "lock",
    "held",
    "wait",
    "seen",
    "next",
    "more",
    "on",
    "Lease",
    "by",
    "for",
    "with",
    "taken",
    "unknown",
    "Job",
    "waits",
    "this",
    "up",
    "to",
    "a",
    "step",
    "gives",
    "at",
    "the",
    "earliest",
    "deadline",
    "=",
    "kubectl",
    "captf",
    "explain",
    "not",
    "read",
    "permission",
    "settles",
    "it",
    "check",
    "times",
    "are",
    "counted",
    "from",
    "lock-info",
    "says",
    "changes",
];

#[test]
fn what_the_text_shows_the_json_holds() {
    for line in plain_lines().into_iter().filter(|l| l.starts_with("lock inspect") || l.starts_with("lock history")) {
        let json = stdout(&format!("{line} -o json"));
        if json.is_empty() {
            continue;
        }
        let report: Value = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{line}: {e}"));
        let mut held = BTreeSet::new();
        words_of(&report, &mut held);
        for word in stdout(&line).split_whitespace() {
            let bare = bare(word);
            let numbered = bare.bytes().all(|b| b.is_ascii_digit());
            assert!(
                bare.is_empty() || numbered || held.contains(bare) || LAYOUT.contains(&bare) || composed(bare, &held),
                "{line}: the text says `{word}`, the JSON does not"
            );
        }
    }
}

fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| matches!(c, '(' | ')' | ',' | ':' | ';' | '.' | '[' | ']' | '`' | '"'))
}

/// `error[code]`, `namespace/name`, `300s`: pieces of the JSON put together.
fn composed(word: &str, held: &BTreeSet<String>) -> bool {
    let parts: Vec<&str> = word.split(['[', ']', '/']).filter(|p| !p.is_empty()).collect();
    parts.iter().all(|p| held.contains(bare(p)) || held.contains(p.trim_end_matches('s')))
}

fn words_of(value: &Value, held: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let shown = kubectl_captf::output::escape::visible(text);
            held.extend(shown.split_whitespace().map(|w| bare(w).to_string()));
        }
        Value::Array(items) => items.iter().for_each(|v| words_of(v, held)),
        Value::Object(map) => map.values().for_each(|v| words_of(v, held)),
        Value::Number(number) => {
            held.insert(number.to_string());
        }
        Value::Bool(_) | Value::Null => {}
    }
}

#[test]
fn yaml_is_the_same_report() {
    // Hostile text is written out in YAML, which has no escape that every reader knows.
    // Line breaks count as such, so that logs are left out as well.
    let told = |line: &String| {
        let json = stdout(&format!("{line} -o json"));
        !line.contains("hostile") && !json.is_empty() && !json.contains("\\n")
    };
    for line in plain_lines().into_iter().filter(told).step_by(8) {
        let json: Value = serde_json::from_str(&stdout(&format!("{line} -o json"))).expect("JSON");
        let yaml: Value = serde_saphyr::from_str(&stdout(&format!("{line} -o yaml"))).expect("YAML");
        assert_eq!(json, yaml, "{line}");
    }
}

#[test]
fn no_output_holds_a_planted_secret_and_no_control_character() {
    const CANARY: &str = "CANARY-5d1c-never-print-a-state-value";
    let planted = std::fs::read_to_string(root().join("testdata/lock/free/secrets.json")).expect("a case");
    assert!(planted.contains("tfstate"), "the corpus holds a state");
    for line in plain_lines() {
        for format in ["text", "wide", "json", "yaml", "name"] {
            let output = run(&format!("{line} -o {format} -v=9"));
            let text = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
            assert!(!text.contains(CANARY), "{line} -o {format}");
            let hostile = text.chars().find(|c| kubectl_captf::output::escape::is_hostile(*c) && *c != '\n');
            assert_eq!(hostile, None, "{line} -o {format}");
        }
    }
}
