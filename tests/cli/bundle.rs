//! Which findings rest on the content of Secrets: the corpus is judged as it is, and as a bundle would hold it.

use std::collections::BTreeSet;
use std::path::Path;

use kubectl_captf::bundle::strip;
use kubectl_captf::runbook::code::Code;
use serde_json::Value;

use super::corpus::command_lines;
use super::run::{folders, root, run, shown};

/// Secrets as a bundle has them; whether there was one with data.
fn strip_secrets(value: &mut Value) -> bool {
    if value["kind"] == "Secret" {
        let had_data = value.get("data").or(value.get("stringData")).is_some();
        *value = strip::secret(value);
        return had_data;
    }
    let is_secrets = value["kind"] == "SecretList";
    let items = value.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
    items.fold(false, |stripped, item| {
        if is_secrets {
            item["kind"] = "Secret".into();
        }
        strip_secrets(item) || stripped
    })
}

/// Writes the case without Secret data; whether that left anything out.
fn without_payloads(case: &Path, to: &Path) -> bool {
    let mut stripped = false;
    for entry in std::fs::read_dir(case).expect("a case") {
        let file = entry.expect("an entry").path();
        let name = file.file_name().expect("a name").to_owned();
        if file.is_dir() {
            std::fs::create_dir(to.join(&name)).expect("a folder");
            stripped |= without_payloads(&file, &to.join(&name));
            continue;
        }
        let text = std::fs::read(&file).unwrap_or_default();
        let text = match serde_json::from_slice::<Value>(&text) {
            Ok(mut value) => {
                stripped |= strip_secrets(&mut value);
                value.to_string().into_bytes()
            }
            Err(_) => text,
        };
        std::fs::write(to.join(name), text).expect("write the copy");
    }
    stripped
}

fn codes(line: &str) -> BTreeSet<&'static str> {
    let text = shown(&run(line));
    let is_in = |code: &&Code| {
        text.contains(&format!("[{}]", code.as_str())) || text.contains(&format!("\"code\": \"{}\"", code.as_str()))
    };
    Code::ALL.iter().filter(is_in).map(|c| c.as_str()).collect()
}

#[test]
fn codes_that_come_from_payloads_are_those_that_the_table_marks() {
    let marked: BTreeSet<&str> = Code::ALL.iter().filter(|c| c.needs_payload()).map(|c| c.as_str()).collect();
    let copies = tempfile::tempdir().expect("a folder");
    let mut cases = Vec::new();
    for command in folders(&root().join("testdata")) {
        for case in folders(&command) {
            let to = copies.path().join(format!("{}", cases.len()));
            std::fs::create_dir(&to).expect("a folder");
            if without_payloads(&case, &to) {
                let relative = case.strip_prefix(root()).expect("below the root").display().to_string();
                cases.push((format!(" --from {relative}"), format!(" --from {}", to.display())));
            } else {
                std::fs::remove_dir_all(&to).expect("take the copy away");
            }
        }
    }
    assert!(cases.len() > 20, "{cases:?}");
    let mut lost = BTreeSet::new();
    for (_, line) in command_lines() {
        let Some((whole, bundle)) = cases.iter().find(|(whole, _)| line.ends_with(whole.as_str())) else { continue };
        let (seen, left) = (codes(&line), codes(&line.replace(whole.as_str(), bundle)));
        lost.extend(seen.difference(&left).copied());
    }
    let unmarked: Vec<_> = lost.difference(&marked).collect();
    assert!(unmarked.is_empty(), "mark with `payload` in code.rs what a bundle cannot tell: {unmarked:?}");
    let untested: Vec<_> = marked.difference(&lost).collect();
    assert!(untested.is_empty(), "marked, and no case needs a payload for: {untested:?}");
}
