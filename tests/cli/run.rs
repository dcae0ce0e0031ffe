//! Runs the built binary and shows stdout, stderr and exit status as one text.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;

/// The binary with an environment that holds nothing of the developer's.
pub fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-captf"));
    command.env_clear().env("HOME", "/nonexistent").env("PATH", "/usr/bin:/bin").current_dir(root());
    command
}

/// The package's folder.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command line of space-separated words.
pub fn run(line: &str) -> Output {
    binary().args(line.split_whitespace()).output().expect("run the binary")
}

/// The output as people would compare it.
pub fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let code = output.status.code().map_or("killed".to_string(), |c| c.to_string());
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}

/// All folders directly below `path`, sorted.
pub fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
    let mut all: Vec<PathBuf> = entries.map(|e| e.expect("read an entry").path()).filter(|p| p.is_dir()).collect();
    all.sort();
    all
}
