//! Rules and reports stay free of I/O: a test over their `use` lines.

use super::run::root;

#[test]
fn rules_facts_and_reports_name_no_kube_no_engine_and_no_runtime() {
    let mut files = vec![root().join("src/report.rs")];
    for folder in ["src/runbook", "src/facts", "src/captf", "src/claim"] {
        let entries = std::fs::read_dir(root().join(folder)).expect("a source folder");
        files.extend(entries.map(|e| e.expect("an entry").path()));
    }
    let mut checked = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a source file");
        for line in text.lines().map(str::trim).filter(|l| !l.starts_with("//")) {
            for word in [
                "kube::",
                "k8s_openapi",
                "bollard",
                "tokio",
                "crate::cluster",
                "crate::engine",
                "crate::cli",
                "crate::output",
            ] {
                assert!(!line.contains(word), "{}: {line}", file.display());
            }
        }
        checked += 1;
    }
    assert!(checked > 20, "only {checked} files were looked at");
}
