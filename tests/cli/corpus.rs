//! The snapshot corpus: `testdata/<command>/<case>/` holds objects and a file `args` with command lines.
//!
//! Each line of `args` is run with `--from` pointing at the case; what comes out is a golden file of its own.
//! A blank line or one that starts with `#` is skipped.

use std::collections::BTreeSet;

use kubectl_captf::runbook::code::Code;

use super::run::{folders, root, run, shown};

/// Every case with its command lines: name of the golden file, whole command line.
pub fn command_lines() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for command in folders(&root().join("testdata")) {
        for case in folders(&command) {
            let relative = case.strip_prefix(root()).expect("below the root").display().to_string();
            let args = std::fs::read_to_string(case.join("args")).unwrap_or_else(|e| panic!("{relative}/args: {e}"));
            let name = |p: &std::path::Path| p.file_name().expect("a name").to_string_lossy().into_owned();
            let lines = args.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
            for (index, line) in lines.enumerate() {
                let suffix = if index == 0 { String::new() } else { format!("-{}", index + 1) };
                all.push((format!("{}__{}{suffix}", name(&command), name(&case)), format!("{line} --from {relative}")));
            }
        }
    }
    all
}

#[test]
fn every_case_of_the_corpus_prints_its_golden_output() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let lines = command_lines();
    assert!(!lines.is_empty(), "the corpus is empty");
    for (name, line) in lines {
        settings.set_description(format!("kubectl captf {line}"));
        settings.bind(|| insta::assert_snapshot!(name, shown(&run(&line))));
    }
}

#[test]
fn every_finding_code_is_shown_by_a_case() {
    let golden = root().join("tests/cli/golden");
    let mut text = String::new();
    for entry in std::fs::read_dir(&golden).expect("golden files") {
        text.push_str(&std::fs::read_to_string(entry.expect("an entry").path()).expect("a golden file"));
    }
    let missing: BTreeSet<&str> =
        Code::ALL.iter().map(|c| c.as_str()).filter(|c| !text.contains(&format!("[{c}]"))).collect();
    assert!(missing.is_empty(), "no case shows {missing:?}");
}
