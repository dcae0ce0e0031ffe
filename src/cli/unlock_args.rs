//! The command line of `lock force-unlock`.

use clap::{Args, ValueEnum};

use super::args::Timeout;
use super::error::parse_timeout;
use crate::runbook::force_unlock::{Method, Wish};

/// Release one state lock whose holder is dead, with the object's own pinned image
///
/// Changes the cluster: clears the holder of one lock Lease, creates and deletes a claim Lease, requests a
/// short-lived token, and creates an Event. It refuses a lock that may be live and a state that it could harm; no
/// flag overrides that. It asks for the lock ID to be typed back.
///
/// Methods: runtime runs `init` and `force-unlock` of the pinned terraform or tofu in two containers of a local
/// Docker or Podman. job runs them in the cluster. lease changes the Lease itself, by one update that fails if
/// anything changed; it needs no engine, and is the way for locks that the binary cannot release.
///
/// Engines are tried in this order: --engine, DOCKER_HOST, DOCKER_CONTEXT, the docker CLI's current context, then
/// the default sockets of Docker, Docker Desktop, Colima, Rancher Desktop, rootless Docker, rootless and rootful
/// Podman. One that is named and does not answer is an error. Behind TLS it needs DOCKER_TLS_VERIFY and DOCKER_CERT_PATH,
/// or the files of its context; ssh is not supported.
///
/// Needs: get on the object and clusters; list on jobs; get and list on secrets and pods; get, create, update and
/// delete on leases; create on events; create on serviceaccounts/token for the ServiceAccount that the binary runs as;
/// with --method job, get, create and delete on jobs instead.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  # What would be done, and the same as docker commands
  kubectl captf lock force-unlock terraformcluster/prod -n team-a --dry-run

  # Release it; asks for the lock ID
  kubectl captf lock force-unlock terraformcluster/prod -n team-a

  # Without a container engine, or where the binary cannot
  kubectl captf lock force-unlock tfm/web -n team-a --method lease

  # Automation: everything a person would be asked
  kubectl captf lock force-unlock tfm/web -n team-a --lock-id 5b5e6f4e-7c1a-4a53-8d0e-3f2f6f1d2c11 \\
    --holder ci@builder-7 --holder-is-dead --reason 'builder-7 was scrapped, INC-4711'")]
pub struct ForceUnlockArgs {
    /// The object, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required = true)]
    pub object: Vec<String>,

    /// Only say what would be done; takes no claim and changes nothing
    #[arg(long)]
    pub dry_run: bool,

    /// How to release the lock
    #[arg(long, value_enum, default_value = "runtime")]
    pub method: MethodArg,

    /// While a Job is unfinished, wait for the gap before the next one
    #[arg(long)]
    pub wait: bool,

    /// Do not leave a stale lock to the controller (for a paused or idle object)
    #[arg(long)]
    pub do_not_wait: bool,

    /// Watch Lease, state and pod for so long first; any change refuses
    #[arg(long, value_name = "DURATION", value_parser = observation)]
    pub observe: Option<Timeout>,

    /// Image to run, where no record names one with a digest
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,

    /// Container engine: unix:///path or tcp://host:port
    #[arg(long, value_name = "URL")]
    pub engine: Option<String>,

    /// Run as this ServiceAccount instead of the one that the object's Jobs use
    #[arg(long, value_name = "NAME")]
    pub service_account: Option<String>,

    /// Whose credentials the binary gets: a short-lived token, or your own static ones
    #[arg(long, value_enum, default_value = "service-account", conflicts_with = "service_account")]
    pub credentials: CredentialsArg,

    /// Go on without taking a claim, where you may not
    #[arg(long)]
    pub without_claim: bool,

    /// Why; goes into the Event
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,

    /// Automation: the ID of the lock to release; must be what is read
    #[arg(long, value_name = "ID", requires_all = ["holder", "holder_is_dead", "reason"])]
    pub lock_id: Option<String>,

    /// Automation: who holds it, as the lock says, or `unknown`
    #[arg(long, value_name = "WHO", requires = "lock_id")]
    pub holder: Option<String>,

    /// Automation: you know that the holder is dead
    #[arg(long, requires = "lock_id")]
    pub holder_is_dead: bool,
}

/// `--method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MethodArg {
    Runtime,
    Job,
    Lease,
}

/// `--credentials`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CredentialsArg {
    ServiceAccount,
    Caller,
}

fn observation(text: &str) -> Result<Timeout, String> {
    parse_timeout(text).map(Timeout)
}

impl ForceUnlockArgs {
    /// What is asked of the judgement.
    pub fn wish(&self) -> Wish {
        let method = match self.method {
            MethodArg::Runtime => Method::Runtime,
            MethodArg::Job => Method::Job,
            MethodArg::Lease => Method::Lease,
        };
        Wish { method, do_not_wait: self.do_not_wait, image: self.image.clone() }
    }
}
