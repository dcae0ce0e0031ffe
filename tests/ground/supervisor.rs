//! The child process `captf-testground` and the lines it speaks.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;

/// A running supervisor. It ends when its standard input is closed: when this
/// is dropped, or when the process that holds it ends in whatever way.
pub struct Supervisor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Supervisor {
    /// Starts the supervisor and returns it with its first line.
    pub fn start(binary: &Path, assets: &Path, options: &[&str]) -> (Self, Value) {
        let mut child = Command::new(binary)
            .arg("serve")
            .arg("--assets")
            .arg(assets)
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("start {}: {error}", binary.display()));
        let input = child.stdin.take();
        let output = child.stdout.take().expect("take the standard output of captf-testground");
        let mut supervisor = Self { child, input, output: BufReader::new(output) };
        let line = supervisor.read();
        (supervisor, line)
    }

    /// Sends one command and waits until it is done.
    pub fn command(&mut self, line: &str) {
        let input = self.input.as_mut().expect("write to captf-testground, whose standard input is still open");
        writeln!(input, "{line}").unwrap_or_else(|error| panic!("send `{line}` to captf-testground: {error}"));
        let reply = self.read();
        assert!(reply["error"].is_null(), "captf-testground refused `{line}`: {}", reply["error"]);
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("read a line of captf-testground");
        assert!(!line.is_empty(), "captf-testground ended early; its reason stands on standard error");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("read the line of captf-testground: {error}: {line}"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        drop(self.input.take()); // asks it to end
        let _ = self.child.wait(); // gone already is as good
    }
}
