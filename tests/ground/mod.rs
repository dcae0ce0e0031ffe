//! The test ground: a real API server for the tests, and real runtimes on it.
//!
//! `captf-testground` (see `tests/controlplane`) runs etcd and kube-apiserver
//! on loopback ports. There is no controller, no scheduler and no kubelet:
//! what a test wants to be there it writes itself, status included, and nothing
//! changes by itself. A namespace has no `default` ServiceAccount, a deleted
//! namespace stays in phase Terminating, and owner references delete nothing.
//!
//! All functions block, so a test is a plain `#[test]`, and panic with a
//! sentence that says what was attempted.

#![allow(dead_code, unused_imports, reason = "a library for tests, which need not use all of it")]

mod api;
mod kinds;
mod namespace;
pub mod runtime;
#[cfg(test)]
mod selftest;
mod supervisor;

use std::env;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use api::Api;
pub use api::Refused;
pub use namespace::Namespace;
use supervisor::Supervisor;

/// One API server with its admin's credentials.
pub struct Ground {
    /// The admin's kubeconfig: context and cluster `testground`, user `admin`.
    pub kubeconfig: PathBuf,
    /// `https://127.0.0.1:PORT`.
    pub server: String,
    /// The certificate of the API server's CA.
    pub ca: PathBuf,
    /// The private folder of this ground. It goes away with it, so a test may
    /// put files there.
    pub dir: PathBuf,
    /// A kubectl to run the plugin through.
    pub kubectl: PathBuf,
    /// The version of the API server, like `v1.37.2`.
    pub version: String,
    /// The audit log, one JSON object a line, if the ground writes one.
    pub audit: Option<PathBuf>,
    api: Mutex<Api>,
    supervisor: Mutex<Supervisor>,
}

/// The ground that all tests of this process share. It starts at the first
/// call and ends with the process.
pub fn ground() -> &'static Ground {
    static GROUND: OnceLock<Ground> = OnceLock::new();
    GROUND.get_or_init(Ground::start)
}

impl Ground {
    /// Starts a ground of one's own, for tests that stop its API server. It
    /// ends when it is dropped.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Like [`Ground::start`], with an audit log of every request.
    pub fn start_audited() -> Self {
        Self::start_with(&["--audit"])
    }

    fn start_with(options: &[&str]) -> Self {
        let assets = PathBuf::from(required("KUBEBUILDER_ASSETS"));
        let kubectl = env::var_os("CAPTF_TEST_KUBECTL").map_or_else(|| assets.join("kubectl"), PathBuf::from);
        let binary = PathBuf::from(required("CAPTF_TESTGROUND"));
        let (supervisor, line) = Supervisor::start(&binary, &assets, options);
        let text = |key: &str| -> String {
            line[key].as_str().unwrap_or_else(|| panic!("captf-testground did not name its {key}: {line}")).to_owned()
        };
        let kubeconfig = PathBuf::from(text("kubeconfig"));
        Self {
            server: text("server"),
            ca: PathBuf::from(text("ca")),
            dir: PathBuf::from(text("dir")),
            version: text("version"),
            audit: line["audit"].as_str().map(PathBuf::from),
            kubectl,
            api: Mutex::new(Api::connect(&kubeconfig)),
            kubeconfig,
            supervisor: Mutex::new(supervisor),
        }
    }

    /// Stops the API server and returns once it is gone. For a ground of one's
    /// own only: all other tests would fail.
    pub fn stop_apiserver(&self) {
        self.command("stop-apiserver");
    }

    /// Starts the API server again on the same port and returns once it is
    /// ready.
    pub fn start_apiserver(&self) {
        self.command("start-apiserver");
    }

    fn command(&self, line: &str) {
        self.supervisor.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).command(line);
    }
}

/// Reads a variable that `tests/setup.sh` prints.
fn required(variable: &str) -> String {
    match env::var(variable) {
        Ok(value) if !value.is_empty() => value,
        _ => panic!(
            "{variable} is not set: the tests on a real API server run through `make test`, \
             or after `eval \"$(tests/setup.sh)\"`"
        ),
    }
}
