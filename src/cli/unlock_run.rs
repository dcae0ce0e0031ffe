//! The ways to release a lock: the Lease itself, the pinned binary in a local engine, or in a Job.

use std::io::IsTerminal;

use jiff::Timestamp;

use super::args::GlobalArgs;
use super::claimed::Claim;
use super::error::CommandError;
use super::force_unlock::{Call, CredentialsArg, ForceUnlockArgs, Outcome};
use super::session::Session;
use crate::captf::time::seconds_between;
use crate::claim::HolderId;
use crate::cluster::access::{access, own_login, request_token};
use crate::cluster::leases::read_lock;
use crate::cluster::unlock_write::{JudgedLock, clear_lease};
use crate::engine::connect::{Engine, EngineError};
use crate::engine::files::{Access, Login, files};
use crate::engine::steps::{Backend, Said, force_unlock, init, said};
use crate::engine::workshop::{Job, Ran};
use crate::engine::{image, network};
use crate::facts::lease::Holder;
use crate::facts::lock::LockFacts;
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::facts::write::WriteFailure;
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::runbook::finding::Evidence;
use crate::runbook::force_unlock::Plan;
use crate::runbook::lock_inspect::holder_evidence;

/// The ServiceAccount whose token the binary gets.
pub fn service_account(facts: &LockFacts, args: &ForceUnlockArgs) -> String {
    let own = facts.about.jobs.service_account.clone();
    let inherited = facts
        .around
        .terraform_cluster
        .as_ref()
        .and_then(Reading::found)
        .and_then(|cluster| cluster.default_jobs.service_account.clone());
    args.service_account.clone().or(own).or(inherited).unwrap_or_else(|| "captf-runner".to_string())
}

/// As whom the binary talks to the API server, in words.
pub fn identity(facts: &LockFacts, args: &ForceUnlockArgs) -> String {
    match args.credentials {
        CredentialsArg::Caller => "you, with the static credentials of your kubeconfig".to_string(),
        CredentialsArg::ServiceAccount => format!(
            "ServiceAccount {}/{}, with a token for ten minutes",
            facts.object.namespace,
            service_account(facts, args)
        ),
    }
}

/// Releases the lock by one guarded update of the Lease.
pub async fn by_lease(session: &Session, object: &ObjectRef, plan: &Plan) -> Result<Outcome, CommandError> {
    let lock = JudgedLock {
        namespace: object.namespace.clone(),
        lease: plan.lease.clone(),
        uid: plan.uid.clone(),
        resource_version: plan.resource_version.clone(),
        lock_id: plan.lock_id.clone(),
    };
    let written = clear_lease(&session.api, &lock).await;
    match &written {
        // Whether it happened is decided by the read below.
        Ok(())
        | Err(WriteFailure::NoAnswer(_) | WriteFailure::Conflict | WriteFailure::NotFound | WriteFailure::Exists) => {}
        Err(WriteFailure::Refused(gap)) => {
            return Err(super::error::unreadable("release the lock", gap, session.source.server.as_deref()));
        }
    }
    let evidence = vec![Evidence::new("released by", "one update of the Lease, with the version that was judged")];
    confirm(session, object, plan, written.is_ok(), evidence, String::new).await
}

/// The Lease decides. `acted` says whether we may have been the ones.
pub async fn confirm(
    session: &Session,
    object: &ObjectRef,
    plan: &Plan,
    acted: bool,
    evidence: Vec<Evidence>,
    said: impl FnOnce() -> String,
) -> Result<Outcome, CommandError> {
    let seen = match read_lock(&session.api, &object.namespace, &plan.lease).await {
        Reading::Found(lease) if lease.holder == Holder::Nobody && acted => return Ok(Outcome::Released(evidence)),
        Reading::Found(lease) => {
            let same = match &lease.holder {
                Holder::Id(id) => *id == plan.lock_id,
                Holder::Empty => plan.lock_id.is_empty(),
                Holder::Nobody => false,
            };
            if same {
                let error = CommandError::failed("the lock is still held; nothing was released");
                let said = said();
                return Err(if said.is_empty() { error } else { error.caused_by(visible(&said)) });
            }
            holder_evidence(&lease)
        }
        Reading::Absent => Evidence::new(format!("Lease/{}", plan.lease), "not found"),
        Reading::Unreadable(gap) => {
            return Err(CommandError::failed("whether the lock was released could not be read")
                .caused_by(visible(&gap.to_string()))
                .hint("look with `kubectl captf lock inspect`"));
        }
    };
    Ok(Outcome::SomeoneWasFirst(seen))
}

/// A token has to live at least so long for the next step, in seconds.
const TOKEN_LEFT: i64 = 60;

impl From<EngineError> for CommandError {
    fn from(error: EngineError) -> Self {
        let mut out = Self::failed(visible(&error.message));
        out.causes = error.causes.iter().map(|c| visible(c).into_owned()).collect();
        out.hints = error.hints;
        out
    }
}

/// What the backend is told.
pub fn backend(facts: &LockFacts, plan: &Plan, in_cluster: bool) -> Backend {
    Backend {
        suffix: plan.suffix.clone(),
        namespace: facts.object.namespace.clone(),
        labels: plan.labels.clone(),
        in_cluster,
    }
}

/// Releases the lock with the pinned binary in two containers of a local engine.
pub async fn by_runtime(
    session: &Session,
    facts: &LockFacts,
    call: &Call<'_>,
    engine: &Engine,
    claim: &Claim,
) -> Result<Outcome, CommandError> {
    let (args, plan) = (call.args, call.plan);
    let (reference, _) = plan.image.clone().unwrap_or_default();
    let mut pulled = false;
    let mut shown = |text: &str| {
        pulled = true;
        progress(text);
    };
    let image = tokio::select! {
        image = image::ensure(engine, &reference, &mut shown) => image?,
        () = claim.interrupted() => return Err(CommandError::interrupted("interrupted while the image was pulled")),
    };
    if pulled && std::io::stderr().is_terminal() {
        stderr_line("");
    }
    let (access, expires) = access_of(session, call.global, facts, args).await?;
    let network = network::choose(&access.server, engine.place, &engine.info, cfg!(target_os = "linux"));
    let network = network.map_err(CommandError::failed)?;
    let tls_server_name = access.tls_server_name.clone().or(network.tls_server_name);
    let access = Access { server: network.server, tls_server_name, ..access };
    let job = Job {
        engine,
        image,
        reference,
        object: format!(
            "{}/{} {}",
            facts.object.namespace,
            plan.suffix,
            session.source.server.as_deref().unwrap_or("")
        ),
        nonce: HolderId::of_this_process().nonce,
        network: network.mode,
        files: files(&access),
        now: Timestamp::now().as_second(),
    };
    for what in job.sweep().await? {
        stderr_line(&format!("Removed what an earlier run left: {what}."));
    }
    let result = two_steps(session, facts, plan, claim, &job, expires).await;
    if let Err(error) = job.clean(&STEPS).await {
        let CommandError { message, causes, .. } = CommandError::from(error);
        stderr_line(&format!("warning: {message}: {}; the next force-unlock removes it", causes.join(": ")));
    }
    let ran = result?;
    let evidence = vec![
        Evidence::new("released by", format!("force-unlock of {}", job.reference)),
        Evidence::new("in", engine.describe()),
        Evidence::new("as", identity(facts, args)),
    ];
    match said(ran.exit_code, &ran.output) {
        Said::LocalState => Err(CommandError::failed(
            "the binary looked at a local state instead of the cluster's; this is a fault of this plugin",
        )
        .caused_by(visible(&ran.output))),
        Said::Done => confirm(session, &facts.object, plan, true, evidence, || ran.output.clone()).await,
        Said::SomeoneWasFirst | Said::Failed => {
            confirm(session, &facts.object, plan, false, evidence, || ran.output.clone()).await
        }
    }
}

const STEPS: [&str; 2] = ["init", "force-unlock"];

/// `init`, then once more a look at the claim and at the Lease, then `force-unlock`.
async fn two_steps(
    session: &Session,
    facts: &LockFacts,
    plan: &Plan,
    claim: &Claim,
    job: &Job<'_>,
    expires: Option<Timestamp>,
) -> Result<Ran, CommandError> {
    job.prepare().await?;
    let [first, second] = STEPS;
    job.stage(first, &init(&backend(facts, plan, false)), true).await?;
    still_the_lock(session, &facts.object, plan).await?;
    claim.fence().await?;
    let ran = job.run(first, claim.interrupted()).await.map_err(|e| stopped(e, claim))?;
    if ran.exit_code != 0 {
        return Err(CommandError::failed(format!("init ended with {}; the lock was not touched", ran.exit_code))
            .caused_by(visible(&ran.output)));
    }
    job.stage(second, &force_unlock(&plan.lock_id), false).await?;
    if expires.is_some_and(|end| seconds_between(Timestamp::now(), end) < TOKEN_LEFT) {
        return Err(CommandError::failed("the token ends too soon; the lock was not touched")
            .hint("run the command again; is this machine's clock right?"));
    }
    still_the_lock(session, &facts.object, plan).await?;
    claim.fence().await?;
    job.run(second, claim.interrupted()).await.map_err(|e| stopped(e, claim))
}

fn stopped(error: EngineError, claim: &Claim) -> CommandError {
    let error = CommandError::from(error);
    if claim.is_interrupted() { CommandError { kind: super::error::ErrorKind::Interrupted, ..error } } else { error }
}

/// The Lease is exactly as it was judged, or nothing is run: on a free lock `init` could write.
async fn still_the_lock(session: &Session, object: &ObjectRef, plan: &Plan) -> Result<(), CommandError> {
    match read_lock(&session.api, &object.namespace, &plan.lease).await {
        Reading::Found(lease) if lease.resource_version == plan.resource_version && lease.uid == plan.uid => Ok(()),
        Reading::Found(_) | Reading::Absent => {
            Err(CommandError::refused("the lock changed at the last moment; somebody else was first")
                .hint("judge it again with `kubectl captf lock inspect`"))
        }
        Reading::Unreadable(gap) => {
            Err(CommandError::failed("read the lock once more").caused_by(visible(&gap.to_string())))
        }
    }
}

/// How the binary reaches the API server, and when its token ends.
async fn access_of(
    session: &Session,
    global: &GlobalArgs,
    facts: &LockFacts,
    args: &ForceUnlockArgs,
) -> Result<(Access, Option<Timestamp>), CommandError> {
    let connection = global.connection.connection();
    let (login, expires) = match args.credentials {
        CredentialsArg::Caller => {
            let login = own_login(&connection).map_err(|why| {
                CommandError::failed(why).hint("leave out `--credentials` to use a short-lived token")
            })?;
            (login, None)
        }
        CredentialsArg::ServiceAccount => {
            let account = service_account(facts, args);
            let namespace = &facts.object.namespace;
            let token = request_token(&session.api, namespace, &account).await.map_err(|failure| {
                let error = CommandError::failed(format!("request a token of ServiceAccount {namespace}/{account}"));
                let error = match failure.gap() {
                    Some(gap) => error.caused_by(visible(&gap.to_string())).caused_by(visible(&gap.detail)),
                    None => error.caused_by("there is no such ServiceAccount"),
                };
                error.hint("`--service-account NAME` takes another one, `--credentials caller` your own login")
            })?;
            (Login::Token(token.token), token.expires)
        }
    };
    Ok((access(&connection, login)?, expires))
}

/// One line that is written over, on a terminal only.
fn progress(text: &str) {
    use std::io::Write;
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\rpulling {}", visible(text)).and_then(|()| stderr.flush());
    }
}
