//! Applies that hold the state lock, and ways to end them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Workspace;

/// What a provisioner runs while the lock is held. It ends when a file is
/// there, or when the ground's kubeconfig is not, as then the tests are gone.
const HOLD: &str = "touch running; while [ ! -e release ] && [ -e \"$GROUND\" ]; do sleep 0.1; done";
const HOLD_FILE: &str = "captf_hold.tf.json";
const LIMIT: Duration = Duration::from_secs(60);

/// A live apply that holds the lock. It is killed when this is dropped.
pub struct Running<'workspace, 'ground> {
    workspace: &'workspace Workspace<'ground>,
    child: Child,
    /// The lock ID: `spec.holderIdentity` of the Lease.
    pub lock: String,
}

impl<'ground> Workspace<'ground> {
    /// Starts an apply of the root module that goes on until it is told to
    /// end, and returns once it holds the lock. Runs `init` first.
    ///
    /// The runtime sees `hostname` as the name of its machine, so that the
    /// lock says `<user>@<hostname>`, as in the pod of a Job.
    pub fn apply_running<'workspace>(&'workspace self, hostname: &str) -> Running<'workspace, 'ground> {
        for leftover in ["running", "release"] {
            let _ = fs::remove_file(self.folder().join(leftover)); // mostly absent
        }
        let hold = json!({"resource": {"terraform_data": {"captf_hold": {
            "provisioner": [{"local-exec": {
                "command": HOLD,
                "environment": {"GROUND": self.ground.kubeconfig},
            }}],
        }}}});
        self.write(HOLD_FILE, &hold.to_string());
        self.init();
        let child = self.spawn(hostname);
        let mut running = Running { workspace: self, child, lock: String::new() };
        running.lock = running.wait_for_lock();
        running
    }

    /// Starts an apply, kills it with SIGKILL while it holds the lock, and
    /// returns the ID of the lock that it left behind.
    pub fn apply_and_kill(&self, hostname: &str) -> String {
        self.apply_running(hostname).kill()
    }

    /// Starts the apply in a UTS namespace of its own.
    fn spawn(&self, hostname: &str) -> Child {
        let log = fs::File::create(self.folder().join("apply.log"))
            .and_then(|file| Ok((file.try_clone()?, file)))
            .unwrap_or_else(|error| panic!("create the log of an apply: {error}"));
        let mut command = Command::new("unshare");
        if !is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        // Every step replaces the one before, so that the child is the runtime.
        command
            .args(["--uts", "sh", "-c", "hostname \"$1\" && shift && exec \"$@\""])
            .args(["sh", hostname])
            .arg(&self.binary)
            .args(["apply", "-auto-approve", "-input=false", "-no-color"])
            .arg(self.timeout_flag())
            .stdin(Stdio::null())
            .stdout(log.0)
            .stderr(log.1)
            .process_group(0);
        self.prepare(&mut command).spawn().unwrap_or_else(|error| panic!("start an apply through unshare: {error}"))
    }
}

impl Running<'_, '_> {
    /// Kills the runtime with SIGKILL. Lease and lock-info stay as they are.
    /// Returns the lock ID.
    pub fn kill(mut self) -> String {
        self.end();
        std::mem::take(&mut self.lock)
    }

    /// Lets the apply come to its end and waits until it released the lock.
    pub fn finish(mut self) {
        self.workspace.write("release", "");
        let status = self.child.wait().expect("wait for the end of the apply");
        assert!(status.success(), "the apply ended with {status}:\n{}", self.log());
        self.forget_hold();
    }

    /// The process ID of the runtime.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the provisioner to run, which it does under the lock.
    fn wait_for_lock(&mut self) -> String {
        let start = Instant::now();
        let marker = self.workspace.folder().join("running");
        loop {
            if marker.exists()
                && let Some(holder) = self.workspace.holder()
            {
                return holder;
            }
            let ended = self.child.try_wait().expect("look after the apply");
            if let Some(status) = ended {
                panic!("the apply ended early with {status}:\n{}", self.log());
            }
            assert!(start.elapsed() < LIMIT, "the apply holds no lock after {LIMIT:?}:\n{}", self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.workspace.folder().join("apply.log")).unwrap_or_default()
    }

    /// Ends the runtime first, so that it cannot see its provisioner fail, and
    /// then what is left of its process group.
    fn end(&mut self) {
        if let Ok(Some(_)) = self.child.try_wait() {
            return;
        }
        let group = format!("-{}", self.child.id());
        let _ = self.child.kill(); // it may just have ended
        let _ = self.child.wait();
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        self.forget_hold();
    }

    fn forget_hold(&self) {
        let _ = fs::remove_file(self.workspace.folder().join(HOLD_FILE)); // mostly there
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}
