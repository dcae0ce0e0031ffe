//! Runs the plugin as its users do: through a real kubectl that finds it on PATH.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::ground::{Ground, Namespace};

/// What a run printed.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    fn from(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("not JSON ({e}): {self:?}"))
    }

    /// The verdict of the first item.
    pub fn verdict(&self) -> String {
        self.json()["items"][0]["verdict"].as_str().unwrap_or_else(|| panic!("no verdict: {self:?}")).to_string()
    }

    /// The codes of the first item.
    pub fn codes(&self) -> Vec<String> {
        let findings = self.json()["items"][0]["findings"].as_array().cloned().unwrap_or_default();
        findings.iter().map(|f| f["code"].as_str().expect("a code").to_string()).collect()
    }

    /// Lines that `-v` logged: one a request.
    pub fn requests(&self) -> Vec<&str> {
        self.stderr.lines().filter(|l| l.starts_with("GET ")).collect()
    }
}

/// A `kubectl` whose PATH starts with the folder of the plugin, and whose environment is its own.
pub fn kubectl(ground: &Ground, kubeconfig: &Path) -> Command {
    let plugin = PathBuf::from(env!("CARGO_BIN_EXE_kubectl-captf"));
    let folder = plugin.parent().expect("the plugin lies in a folder").display().to_string();
    let mut command = Command::new(&ground.kubectl);
    command
        .env_clear()
        .env("PATH", format!("{folder}:/usr/bin:/bin"))
        .env("HOME", &ground.dir)
        .env("KUBECONFIG", kubeconfig)
        .stdin(Stdio::null());
    command
}

/// `kubectl captf LINE -n NAMESPACE` as admin.
pub fn captf(namespace: &Namespace<'_>, line: &str) -> Ran {
    captf_as(namespace, &namespace.ground().kubeconfig.clone(), line)
}

/// The same with another kubeconfig.
pub fn captf_as(namespace: &Namespace<'_>, kubeconfig: &Path, line: &str) -> Ran {
    let mut command = kubectl(namespace.ground(), kubeconfig);
    command.arg("captf").args(line.split_whitespace()).args(["-n", namespace.name()]);
    Ran::from(&command.output().unwrap_or_else(|e| panic!("run kubectl captf {line}: {e}")))
}

/// The same without kubectl, for tests that run it hundreds of times.
pub fn direct(namespace: &Namespace<'_>, kubeconfig: &Path, line: &str) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-captf"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &namespace.ground().dir).env("KUBECONFIG", kubeconfig);
    command.args(line.split_whitespace()).args(["-n", namespace.name()]).stdin(Stdio::null());
    Ran::from(&command.output().unwrap_or_else(|e| panic!("run kubectl-captf {line}: {e}")))
}

/// Any kubectl command line as admin.
pub fn run(ground: &Ground, kubeconfig: &Path, words: &[&str]) -> Ran {
    let output = kubectl(ground, kubeconfig).args(words).output();
    Ran::from(&output.unwrap_or_else(|e| panic!("run kubectl {words:?}: {e}")))
}
