//! Releasing a lock with the object's pinned binary, in two containers of a local engine.

use std::io::IsTerminal;
use std::time::Duration;

use jiff::Timestamp;

use super::claimed::Claim;
use super::error::CommandError;
use super::force_unlock::{Call, Outcome};
use super::session::Session;
use super::unlock_args::ForceUnlockArgs;
use super::unlock_lease::{confirm, still_the_lock, with_lock_now};
use super::unlock_login::{access_of, identity, outlives};
use crate::claim::HolderId;
use crate::engine::connect::{Engine, EngineError, open};
use crate::engine::endpoint::Surroundings;
use crate::engine::files::{Access, files};
use crate::engine::image;
use crate::engine::leftovers::{object_label, sweep};
use crate::engine::network::{self, Network};
use crate::engine::steps::{Backend, Said, force_unlock, init, said};
use crate::engine::workshop::{Ended, Job, Ran};
use crate::facts::lock::LockFacts;
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::runbook::finding::Evidence;
use crate::runbook::force_unlock::Plan;

const STEPS: [&str; 2] = ["init", "force-unlock"];
/// How long an engine may take that is only looked at for leftovers.
const LEFTOVERS_LIMIT: Duration = Duration::from_secs(5);

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

/// Removes what killed runs left in an engine, and says so.
pub async fn clear_leftovers(engine: &Engine, facts: &LockFacts) -> Result<(), EngineError> {
    let object = object_label(&facts.object.namespace, &facts.object.suffix(), &facts.about.uid);
    for what in sweep(engine, &object, Timestamp::now().as_second()).await? {
        stderr_line(&format!("Removed what an earlier run left: {what}."));
    }
    Ok(())
}

/// On a free lock: a run that was killed after it released the lock left containers and a volume. Without an
/// engine there is nothing to look at.
pub async fn clear_after_a_killed_run(facts: &LockFacts, args: &ForceUnlockArgs) {
    let around = Surroundings::of_this_process(args.engine.as_deref());
    let Ok(Ok(engine)) = tokio::time::timeout(LEFTOVERS_LIMIT, open(&around)).await else {
        return;
    };
    match tokio::time::timeout(LEFTOVERS_LIMIT, clear_leftovers(&engine, facts)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => stderr_line(&format!("warning: {error}: {}", error.causes.join(": "))),
        Err(_) => stderr_line("warning: the container engine does not answer; what an earlier run left stays"),
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
    let image = pulled(engine, &reference, claim).await?;
    claim.fence().await?;
    let (access, expires) = access_of(session, call.global, facts, args).await?;
    let network = network_for(engine, &access.server)?;
    let tls_server_name = access.tls_server_name.clone().or(network.tls_server_name);
    let access = Access { server: network.server, tls_server_name, ..access };
    clear_leftovers(engine, facts).await?;
    let job = Job {
        engine,
        image,
        reference,
        object: object_label(&facts.object.namespace, &plan.suffix, &facts.about.uid),
        nonce: HolderId::of_this_process().nonce,
        network: network.mode,
        files: files(&access),
        now: Timestamp::now().as_second(),
    };
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

/// How containers of this engine reach the API server; an error where they cannot.
pub fn network_for(engine: &Engine, server: &str) -> Result<Network, CommandError> {
    network::choose(server, engine.place, &engine.info, cfg!(target_os = "linux")).map_err(|why| {
        CommandError::failed(why).hint("`--method job` runs in the cluster, `--method lease` needs no container")
    })
}

/// The image, pulled where it is missing. A pull ends when the work has to stop.
async fn pulled(engine: &Engine, reference: &str, claim: &Claim) -> Result<image::ImageFacts, CommandError> {
    let mut pulled = false;
    let mut shown = |text: &str| {
        pulled = true;
        progress(text);
    };
    let image = tokio::select! {
        image = image::ensure(engine, reference, &mut shown) => image.map_err(CommandError::from),
        error = claim.stopped() => Err(error.caused_by("the image was being pulled; the lock was not touched")),
    };
    if pulled && std::io::stderr().is_terminal() {
        stderr_line("");
    }
    image
}

/// `init`, then once more a look at the claim and at the Lease, then `force-unlock`. Before each, the token has to
/// live long enough.
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
    let untouched = |error: CommandError| error.caused_by("the lock was not touched");
    job.stage(first, &init(&backend(facts, plan, false)), true).await?;
    outlives(expires)?;
    still_the_lock(session, &facts.object, plan).await?;
    claim.fence().await?;
    let ran = step(job, first, claim).await.map_err(untouched)?;
    if ran.exit_code != 0 {
        return Err(CommandError::failed(format!("init ended with {}; the lock was not touched", ran.exit_code))
            .caused_by(visible(&ran.output)));
    }
    job.stage(second, &force_unlock(&plan.lock_id), false).await.map_err(CommandError::from).map_err(untouched)?;
    outlives(expires)?;
    still_the_lock(session, &facts.object, plan).await?;
    claim.fence().await?;
    match step(job, second, claim).await {
        Ok(ran) => Ok(ran),
        // It may have come as far as the Lease, whatever stopped it.
        Err(error) => Err(with_lock_now(session, &facts.object, plan, error).await),
    }
}

/// Runs one container to its end. It is stopped when the claim is lost or somebody interrupts.
async fn step(job: &Job<'_>, step: &str, claim: &Claim) -> Result<Ran, CommandError> {
    match job.run(step, claim.stopped()).await? {
        Ended::Ran(ran) => Ok(ran),
        Ended::Stopped(error) => Err(error.caused_by(format!("{step} was running and was stopped"))),
    }
}

/// One line that is written over, on a terminal only.
fn progress(text: &str) {
    use std::io::Write;
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\rpulling {}", visible(text)).and_then(|()| stderr.flush());
    }
}
