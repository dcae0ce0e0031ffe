//! `lock force-unlock`: judge, look for signs of life, ask, claim, judge again, release, confirm.

use std::time::Duration;

use super::args::GlobalArgs;
use super::claim_met::claim_on;
use super::claimed::{Claim, held_by, with_claim};
use super::error::{CommandError, OK, REFUSED};
use super::render::{Shape, render_view, write_stdout};
use super::scope::{must_be_there, named};
use super::session::{Session, block_on};
use super::target::parse_one_object;
use super::unlock_args::{CredentialsArg, ForceUnlockArgs, MethodArg};
use super::unlock_login::callers_own;
use super::{unlock_ask, unlock_by_hand, unlock_job, unlock_lease, unlock_run};
use crate::claim::ClaimLease;
use crate::cluster::lock::read_lock_facts;
use crate::cluster::unlock::read_unlock;
use crate::cluster::unlock_write::{Audit, create_event, who_am_i};
use crate::engine::connect::{Engine, open};
use crate::engine::endpoint::Surroundings;
use crate::facts::lock::LockFacts;
use crate::facts::object::ObjectRef;
use crate::output::stderr_line;
use crate::output::style::Styles;
use crate::output::view::view_of;
use crate::report::{Item, ItemObject, Lock, Report};
use crate::runbook::code::Code;
use crate::runbook::finding::{Evidence, Finding};
use crate::runbook::force_unlock::{Decision, Judged, Method, Plan, judge};

/// While waiting for a Job to end, the object is judged so often.
const WAIT_INTERVAL: Duration = Duration::from_secs(2);

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
    if args.credentials == CredentialsArg::Caller {
        if args.method != MethodArg::Runtime {
            return Err(CommandError::usage("--credentials caller is for --method runtime")
                .hint("a Job runs as a ServiceAccount, and the Lease is always changed as you"));
        }
        // Said before anybody is asked anything.
        callers_own(global)?;
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
        let (facts, mut judged) = looked;
        // Whoever holds the claim is named by every run that takes none itself.
        let claim = claim_on(&session, &object).await;
        if args.dry_run || !matches!(judged.decision, Decision::Go(_)) {
            let finding = |met: &ClaimLease| crate::runbook::claim::finding(met, &object.resource(), session.now());
            match &claim {
                Ok(met) => judged.findings.extend(met.as_ref().map(finding)),
                Err(gap) => judged.gaps.extend(session.live.then(|| gap.clone())),
            }
        }
        let plan = match &judged.decision {
            Decision::Nothing => {
                // Without a claim nobody is at work, so what is left in an engine is a dead run's.
                let dead = session.live && claim == Ok(None);
                if dead && !args.dry_run && args.method == MethodArg::Runtime {
                    unlock_run::clear_after_a_killed_run(&facts, args).await;
                }
                return show(&session, global, &facts, &judged, OK);
            }
            Decision::Wait | Decision::Refuse => return show(&session, global, &facts, &judged, REFUSED),
            Decision::Go(plan) => plan.clone(),
        };
        if args.dry_run {
            let judged = unlock_by_hand::with_commands(&session, global, &facts, args, &plan, judged);
            return show(&session, global, &facts, &judged, OK);
        }
        unlock_ask::can_be_confirmed(&plan, args)?;
        // Nobody types an ID for a lock that somebody else works on. Taking the claim decides, below.
        if let (Ok(Some(met)), false) = (&claim, args.without_claim) {
            return Err(held_by(&session, &object, met));
        }
        // Without an engine there is nothing to ask, and the question names the engine.
        let engine = match plan.method {
            Method::Runtime => Some(open(&Surroundings::of_this_process(args.engine.as_deref())).await?),
            Method::Job | Method::Lease => None,
        };
        // What no container of it can do is said before anybody is asked.
        if let Some(engine) = &engine {
            unlock_run::network_for(engine, session.source.server.as_deref().unwrap_or_default())?;
        }
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
    let facts = must_be_there(session, object, read_lock_facts(&session.api, object, session.live).await).await?;
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
    let outcome = match (plan.method, call.engine) {
        (Method::Runtime, Some(engine)) => unlock_run::by_runtime(session, &facts, call, engine, claim).await?,
        (Method::Job, _) => unlock_job::by_job(session, &facts, args, plan, claim).await?,
        (Method::Lease, _) => unlock_lease::by_lease(session, object, plan).await?,
        (Method::Runtime, None) => return Err(CommandError::failed("no container engine was opened")),
    };
    let Outcome::Released(mut evidence) = outcome else {
        return Ok(outcome);
    };
    // Said before anything else can fail.
    stderr_line(&format!("Lock {} was released.", shown_id(plan)));
    // The Event is a write like any other: a run that lost its claim does not make it.
    evidence.push(match claim.fence().await {
        Ok(()) => audit(session, &facts, args, plan).await,
        Err(error) => {
            stderr_line(&format!("warning: no Event was created: {}", error.message));
            Evidence::new("Event UnlockedByHand", format!("not created: {}", error.message))
        }
    });
    Ok(Outcome::Released(evidence))
}

/// Whether two judgements are about one and the same lock, with nothing written in between.
fn is_same_lock(a: &Plan, b: &Plan) -> bool {
    a.lock_id == b.lock_id && a.resource_version == b.resource_version && a.uid == b.uid
}

/// Judges anew and reports.
async fn conclude(
    session: &Session,
    global: &GlobalArgs,
    object: &ObjectRef,
    args: &ForceUnlockArgs,
    plan: &Plan,
    outcome: Outcome,
) -> Result<u8, CommandError> {
    let (facts, mut judged) = look(session, object, args, None).await?;
    let (finding, code) = match outcome {
        Outcome::Released(evidence) => {
            let lease = Evidence::new(format!("Lease/{} .spec.holderIdentity", plan.lease), "absent");
            (Finding::new(Code::UnlockDone, lease).seen_all(evidence).with("lock_id", shown_id(plan)), OK)
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
async fn audit(session: &Session, facts: &LockFacts, args: &ForceUnlockArgs, plan: &Plan) -> Evidence {
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
        Ok(()) => Evidence::new("Event UnlockedByHand", message),
        Err(gap) => {
            stderr_line(&format!("warning: no Event was created: {gap}"));
            Evidence::new("Event UnlockedByHand", format!("not created: {}", gap.reason.as_str()))
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
    let report = Report { items: vec![item], ..session.report("lock force-unlock") };
    let mut view = view_of(&report, global.quiet);
    view.exit_code = code;
    let mut out = Vec::new();
    render_view(&mut out, &view, global, Shape::Findings, Styles::decide(global.color))
        .map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
    write_stdout(&out)?;
    Ok(code)
}
