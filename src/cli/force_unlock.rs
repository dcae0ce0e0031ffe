//! `lock force-unlock`: judge, look for signs of life, ask, claim, judge again, release, confirm.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::args::{GlobalArgs, Timeout};
use super::claimed::{Claim, with_claim};
use super::error::{CommandError, OK, REFUSED, parse_timeout, unreadable};
use super::render::{Shape, render_view, write_stdout};
use super::scope::{named, not_found};
use super::session::{Session, block_on};
use super::target::parse_one_object;
use super::{unlock_ask, unlock_by_hand, unlock_job, unlock_run};
use crate::cluster::lock::read_lock_facts;
use crate::cluster::unlock::read_unlock;
use crate::cluster::unlock_write::{Audit, create_event, who_am_i};
use crate::engine::connect::{Engine, open};
use crate::engine::endpoint::Surroundings;
use crate::facts::lock::LockFacts;
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::output::escape::visible;
use crate::output::stderr_line;
use crate::output::style::Styles;
use crate::output::view::view_of;
use crate::report::{Item, ItemObject, Lock, Report};
use crate::runbook::code::Code;
use crate::runbook::finding::{Evidence, Finding};
use crate::runbook::force_unlock::{Decision, Judged, Method, Plan, Wish, judge};

/// While waiting for a Job to end, the object is judged so often.
const WAIT_INTERVAL: Duration = Duration::from_secs(2);

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
/// Podman. One that is named and does not answer is an error.
///
/// Needs: get on the object and clusters; list on jobs; get and list on secrets and pods; get, create, update and
/// delete on leases; create on events; create on serviceaccounts/token for the ServiceAccount that the binary runs as,
/// or get, create and delete on jobs.
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
    fn wish(&self) -> Wish {
        let method = match self.method {
            MethodArg::Runtime => Method::Runtime,
            MethodArg::Job => Method::Job,
            MethodArg::Lease => Method::Lease,
        };
        Wish { method, do_not_wait: self.do_not_wait, image: self.image.clone() }
    }
}

/// What is done, after it was confirmed.
pub struct Call<'a> {
    pub global: &'a GlobalArgs,
    pub args: &'a ForceUnlockArgs,
    pub plan: &'a Plan,
    /// There for [`Method::Runtime`].
    pub engine: Option<&'a Engine>,
}

/// How the change ended.
pub enum Outcome {
    /// The Lease was read without a holder; with evidence of how.
    Released(Vec<Evidence>),
    /// It was not the lock that was judged any more; what was seen.
    SomeoneWasFirst(Evidence),
}

/// Runs `lock force-unlock`.
pub fn run(global: &GlobalArgs, args: &ForceUnlockArgs) -> Result<u8, CommandError> {
    let (kind, name) = parse_one_object(&args.object)?;
    if global.from.is_some() && !args.dry_run {
        return Err(CommandError::usage("a snapshot cannot be changed").hint("`--dry-run` judges it"));
    }
    block_on(async {
        let session = Session::open(global)?;
        let object = named(&session, kind, &name).await?;
        let observe = args.observe.and_then(|t| t.0).map(|d| d.as_secs()).filter(|_| session.live);
        let mut looked = look(&session, &object, args, None).await?;
        if args.wait && session.live {
            looked = wait_for_gap(&session, &object, args, looked).await?;
        }
        // Watching is worth its time only where nothing else refuses.
        if observe.is_some() && matches!(looked.1.decision, Decision::Go(_)) {
            looked = look(&session, &object, args, observe).await?;
        }
        let (facts, judged) = looked;
        let plan = match &judged.decision {
            Decision::Nothing => return show(&session, global, &facts, &judged, OK),
            Decision::Wait | Decision::Refuse => return show(&session, global, &facts, &judged, REFUSED),
            Decision::Go(plan) => plan.clone(),
        };
        if args.dry_run {
            let judged = unlock_by_hand::with_commands(&session, global, &facts, args, &plan, judged);
            return show(&session, global, &facts, &judged, OK);
        }
        unlock_ask::can_be_confirmed(&plan, args)?;
        // Without an engine there is nothing to ask, and the question names the engine.
        let engine = match plan.method {
            Method::Runtime => Some(open(&Surroundings::of_this_process(args.engine.as_deref())).await?),
            Method::Job | Method::Lease => None,
        };
        let place = engine.as_ref().map(Engine::describe);
        unlock_ask::confirm(&session, &facts, &plan, &judged, args, place.as_deref())?;
        let call = Call { global, args, plan: &plan, engine: engine.as_ref() };
        let outcome = with_claim(&session, &object, "force-unlock", args.without_claim, async |claim: &Claim| {
            change(&session, &object, &call, claim).await
        })
        .await?;
        conclude(&session, global, &object, args, &plan, outcome).await
    })
}

/// Reads and judges.
async fn look(
    session: &Session,
    object: &ObjectRef,
    args: &ForceUnlockArgs,
    observe: Option<u64>,
) -> Result<(LockFacts, Judged), CommandError> {
    let facts = match read_lock_facts(&session.api, object, session.live).await {
        Reading::Found(facts) => facts,
        Reading::Absent => return Err(not_found(session, object).await),
        Reading::Unreadable(gap) => {
            let doing = format!("read {} `{}` in {}", object.kind, object.name, object.namespace);
            return Err(unreadable(&doing, &gap, session.source.server.as_deref()));
        }
    };
    if let Some(seconds) = observe {
        stderr_line(&format!("Watching Lease, state and pod for {seconds}s; any change refuses."));
    }
    let reads = read_unlock(&session.api, &facts, observe).await;
    let judged = judge(&facts, &reads, &args.wish(), session.now());
    Ok((facts, judged))
}

/// Waits until no Job of the object is unfinished.
async fn wait_for_gap(
    session: &Session,
    object: &ObjectRef,
    args: &ForceUnlockArgs,
    mut looked: (LockFacts, Judged),
) -> Result<(LockFacts, Judged), CommandError> {
    let mut said = String::new();
    while looked.1.decision == Decision::Wait {
        let job = looked.1.findings.iter().find_map(|f| f.values.get("job").cloned()).unwrap_or_default();
        if job != said {
            let gives_up = looked.1.judgement.waiting.first().and_then(|w| w.gives_up_after);
            let until = gives_up.map(|t| format!("; it gives up {} at the earliest", crate::captf::time::utc(t)));
            stderr_line(&format!("Waiting for Job {job} to end{}.", until.unwrap_or_default()));
            said = job;
        }
        tokio::time::sleep(WAIT_INTERVAL).await;
        looked = look(session, object, args, None).await?;
    }
    Ok(looked)
}

/// Under the claim: judges once more, and releases exactly the lock that was confirmed.
async fn change(
    session: &Session,
    object: &ObjectRef,
    call: &Call<'_>,
    claim: &Claim,
) -> Result<Outcome, CommandError> {
    let (args, plan) = (call.args, call.plan);
    let (facts, judged) = look(session, object, args, None).await?;
    match &judged.decision {
        Decision::Go(again) if is_same_lock(plan, again) && again.image == plan.image => {}
        _ => {
            let seen = match facts.lease.found() {
                Some(lease) => crate::runbook::lock_inspect::holder_evidence(lease),
                None => Evidence::new(format!("Lease/{}", plan.lease), "not found"),
            };
            return Ok(Outcome::SomeoneWasFirst(seen));
        }
    }
    claim.fence().await?;
    match (plan.method, call.engine) {
        (Method::Runtime, Some(engine)) => unlock_run::by_runtime(session, &facts, call, engine, claim).await,
        (Method::Job, _) => unlock_job::by_job(session, &facts, args, plan, claim).await,
        (Method::Lease, _) => unlock_run::by_lease(session, object, plan).await,
        (Method::Runtime, None) => Err(CommandError::failed("no container engine was opened")),
    }
}

/// Whether two judgements are about one and the same lock, with nothing written in between.
fn is_same_lock(a: &Plan, b: &Plan) -> bool {
    a.lock_id == b.lock_id && a.resource_version == b.resource_version && a.uid == b.uid
}

/// Writes the Event, judges anew and reports.
async fn conclude(
    session: &Session,
    global: &GlobalArgs,
    object: &ObjectRef,
    args: &ForceUnlockArgs,
    plan: &Plan,
    outcome: Outcome,
) -> Result<u8, CommandError> {
    if matches!(outcome, Outcome::Released(_)) {
        // Said before anything else can fail.
        stderr_line(&format!("Lock {} was released.", shown_id(plan)));
    }
    let (facts, mut judged) = look(session, object, args, None).await?;
    let (finding, code) = match outcome {
        Outcome::Released(evidence) => {
            let lease = Evidence::new(format!("Lease/{} .spec.holderIdentity", plan.lease), "absent");
            let finding = Finding::new(Code::UnlockDone, lease).seen_all(evidence).with("lock_id", shown_id(plan));
            (finding.seen_all(audit(session, &facts, args, plan).await), OK)
        }
        Outcome::SomeoneWasFirst(seen) => {
            let free = judged.decision == Decision::Nothing;
            (Finding::new(Code::UnlockSomeoneWasFirst, seen), if free { OK } else { REFUSED })
        }
    };
    judged.findings = vec![finding];
    show(session, global, &facts, &judged, code)
}

/// The lock ID as it is shown; an empty one in quotes.
pub fn shown_id(plan: &Plan) -> String {
    if plan.lock_id.is_empty() { "\"\"".to_string() } else { plan.lock_id.clone() }
}

/// The Event, and what to say of it.
async fn audit(session: &Session, facts: &LockFacts, args: &ForceUnlockArgs, plan: &Plan) -> Option<Evidence> {
    let who = who_am_i(&session.api).await.unwrap_or_else(|| "an unknown user".to_string());
    let reason = args.reason.as_deref().map(|r| format!(": {r}")).unwrap_or_default();
    let message = format!(
        "State lock {} held by {} was released by hand by {who} (method {}){reason}",
        shown_id(plan),
        plan.holder,
        plan.method.as_str()
    );
    let message: String = message.chars().take(1000).collect();
    let event =
        Audit { object: &facts.object, uid: &facts.about.uid, who: &who, message: message.clone(), at: session.now() };
    match create_event(&session.api, &event).await {
        Ok(()) => Some(Evidence::new("Event UnlockedByHand", message)),
        Err(gap) => {
            stderr_line(&format!("warning: no Event was created: {}", visible(&gap.to_string())));
            Some(Evidence::new("Event UnlockedByHand", format!("not created: {}", gap.reason.as_str())))
        }
    }
}

/// Prints findings of this command, then those of the judgement. The exit code is this command's.
fn show(
    session: &Session,
    global: &GlobalArgs,
    facts: &LockFacts,
    judged: &Judged,
    code: u8,
) -> Result<u8, CommandError> {
    let mut findings = judged.findings.clone();
    findings.extend(judged.judgement.findings.iter().cloned());
    let item = Item {
        object: ItemObject::workload(&facts.object),
        verdict: Some(judged.judgement.verdict),
        lock: Some(Lock::from_lease(facts.lease_name(), facts.lease.found())),
        findings,
        gaps: judged.gaps.clone(),
        waiting: judged.judgement.waiting.clone(),
        runs: None,
    };
    let report = Report {
        command: "lock force-unlock",
        now: session.now(),
        source: session.source.clone(),
        items: vec![item],
        unreadable: Vec::new(),
        values: session.values.clone(),
    };
    let mut view = view_of(&report, global.quiet);
    view.exit_code = code;
    let mut out = Vec::new();
    render_view(&mut out, &view, global, Shape::Findings, Styles::decide(global.color))
        .map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
    write_stdout(&out)?;
    Ok(code)
}
