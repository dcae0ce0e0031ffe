//! `claim list`, `claim inspect` and `claim reclaim`: who works on what, and freeing what a dead run left.

use std::collections::HashMap;

use clap::{Args, Subcommand};

use super::args::{GlobalArgs, OutputFormat};
use super::claimed::{may_not, missing_verbs};
use super::confirm::{require_terminal, typed_back};
use super::error::{CommandError, OK, unreadable};
use super::render::{Shape, render, write_stdout};
use super::scope::{named, nothing_listed};
use super::session::{Session, block_on};
use super::target::parse_one_object;
use crate::captf::kind::WorkloadKind;
use crate::captf::time::relative;
use crate::claim::lease::{ClaimLease, LeaseKey, claim_lease};
use crate::claim::reclaim::{Reclaimed, reclaim, watch_time};
use crate::claim::{HolderId, Terms};
use crate::cluster::api::{LEASES, Selector};
use crate::cluster::claim::{KubeLeases, SystemClock, read_claim, read_claims};
use crate::cluster::orphans::read_scope;
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;
use crate::output::escape::visible;
use crate::output::json::{render_json, render_yaml};
use crate::output::stderr_line;
use crate::report::{Item, ItemObject, Report};
use crate::runbook::claim as rules;
use crate::runbook::words::shell_quote;

/// See who works on an object through this plugin, and free what a dead run left behind
#[derive(Debug, Args)]
pub struct ClaimArgs {
    #[command(subcommand)]
    pub command: ClaimCommand,
}

#[derive(Debug, Subcommand)]
pub enum ClaimCommand {
    List(ClaimListArgs),
    Inspect(ClaimInspectArgs),
    Reclaim(ClaimReclaimArgs),
}

/// List the claims of people who are changing something
///
/// Reads only. A claim is a Lease captf-claim-SUFFIX that a changing command of this plugin holds.
///
/// Needs: list on leases; list on the Terraform* kinds to say which object a claim is on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf claim list -n team-a
  kubectl captf claim list -A -o json")]
pub struct ClaimListArgs {}

/// Show who has a claim on an object, what for, and when it was last renewed
///
/// Reads only. Needs: get on leases.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf claim inspect terraformcluster/prod -n team-a

  # Another tool's renewing Lease: DeviceChain's cluster claim
  kubectl captf claim inspect --lease dcctl -n dc-k8s-system")]
pub struct ClaimInspectArgs {
    /// The object, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required_unless_present = "lease", conflicts_with = "lease")]
    pub object: Vec<String>,

    /// Name of a Lease instead of an object
    #[arg(long, value_name = "NAME")]
    pub lease: Option<String>,
}

/// Free a claim whose holder does not renew it any more
///
/// Changes the cluster: deletes the claim's Lease. Asks for the holder to be typed back, then watches the
/// Lease for at least a minute on this machine's clock. Any change in that time means that the holder lives,
/// and it refuses. It proves that nothing renewed the claim, not that nothing will: a suspended laptop or a
/// stopped process looks the same as a dead one.
///
/// Needs: get, update and delete on leases, and a terminal. There is no flag that answers for you.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf claim reclaim terraformcluster/prod -n team-a

  # Another tool's renewing Lease: DeviceChain's cluster claim
  kubectl captf claim reclaim --lease dcctl -n dc-k8s-system")]
pub struct ClaimReclaimArgs {
    /// The object, as KIND/NAME or KIND NAME
    #[arg(value_name = "KIND/NAME", required_unless_present = "lease", conflicts_with = "lease")]
    pub object: Vec<String>,

    /// Name of a Lease instead of an object
    #[arg(long, value_name = "NAME")]
    pub lease: Option<String>,
}

/// What a command is about: the Lease, the object if there is one, and what to type for it.
struct Subject {
    key: LeaseKey,
    item: ItemObject,
    target: String,
}

impl Subject {
    fn of_object(object: &ObjectRef) -> Self {
        let key = LeaseKey { namespace: object.namespace.clone(), name: claim_lease(&object.suffix()) };
        Self { key, item: ItemObject::workload(object), target: object.resource() }
    }

    fn of_lease(key: LeaseKey) -> Self {
        let item = ItemObject::lease(&key.namespace, &key.name);
        let target = format!("--lease {}", shell_quote(&key.name));
        Self { key, item, target }
    }

    async fn parse(session: &Session, object: &[String], lease: Option<&String>) -> Result<Self, CommandError> {
        let Some(lease) = lease else {
            let (kind, name) = parse_one_object(object)?;
            return Ok(Self::of_object(&named(session, kind, &name).await?));
        };
        if lease.starts_with("lock-tfstate-") || lease.starts_with("captf-run-") || lease.starts_with("captf-cluster-")
        {
            return Err(CommandError::usage(format!("`{lease}` is not a claim: nobody renews it"))
                .hint("`kubectl captf lock inspect` judges state locks"));
        }
        let namespace = session.namespace.clone().ok_or_else(|| {
            CommandError::usage("a Lease cannot be named across all namespaces").hint("give its namespace with `-n`")
        })?;
        Ok(Self::of_lease(LeaseKey { namespace, name: lease.clone() }))
    }
}

/// Runs `claim list`.
pub fn run_list(global: &GlobalArgs, _: &ClaimListArgs) -> Result<u8, CommandError> {
    block_on(async {
        let session = Session::open(global)?;
        let mut report = report(&session, "claim list");
        for namespace in session.list_scopes() {
            let claims = match read_claims(&session.api, namespace.as_deref()).await {
                Reading::Found(claims) => claims,
                Reading::Absent => Vec::new(),
                Reading::Unreadable(gap) => {
                    if let Some(error) = nothing_listed(std::slice::from_ref(&gap), 1, &session)
                        && session.live
                    {
                        return Err(error);
                    }
                    report.unreadable.push(gap);
                    continue;
                }
            };
            if claims.is_empty() {
                continue;
            }
            let selector = Selector { labels: global.selector.clone(), fields: None };
            let (objects, gaps) = read_scope(&session.api, &WorkloadKind::ALL, namespace.as_deref(), &selector).await;
            report.unreadable.extend(gaps);
            let by_lease: HashMap<(String, String), ObjectRef> =
                objects.into_iter().map(|(o, _)| ((o.namespace.clone(), claim_lease(&o.suffix())), o)).collect();
            for claim in claims {
                let subject = match by_lease.get(&(claim.key.namespace.clone(), claim.key.name.clone())) {
                    Some(object) => Subject::of_object(object),
                    None if global.selector.is_some() => continue,
                    None => Subject::of_lease(claim.key.clone()),
                };
                report.items.push(item(&session, &subject, Some(&claim)));
            }
        }
        if report.items.is_empty() && report.unreadable.is_empty() {
            stderr_line(&format!("No claims in {}.", session.scope()));
        }
        render(&report, global, Shape::Findings)
    })
}

/// Runs `claim inspect`.
pub fn run_inspect(global: &GlobalArgs, args: &ClaimInspectArgs) -> Result<u8, CommandError> {
    block_on(async {
        let session = Session::open(global)?;
        let subject = Subject::parse(&session, &args.object, args.lease.as_ref()).await?;
        let claim = read(&session, &subject).await?;
        let mut report = report(&session, "claim inspect");
        report.items.push(item(&session, &subject, claim.as_ref()));
        render(&report, global, Shape::Findings)
    })
}

/// Runs `claim reclaim`.
pub fn run_reclaim(global: &GlobalArgs, args: &ClaimReclaimArgs) -> Result<u8, CommandError> {
    if global.from.is_some() {
        return Err(CommandError::usage("a snapshot cannot be changed"));
    }
    block_on(async {
        let session = Session::open(global)?;
        let subject = Subject::parse(&session, &args.object, args.lease.as_ref()).await?;
        let Some(claim) = read(&session, &subject).await? else {
            stderr_line(&format!("{} is not claimed; nothing to do.", subject.item.short));
            return Ok(OK);
        };
        // Found out after a minute of watching, a missing verb could leave the claim in our own name.
        let missing = missing_verbs(&session.api, &LEASES, &["update", "delete"], &subject.key.namespace).await;
        if !missing.is_empty() {
            return Err(may_not("the claim cannot be freed", &LEASES, &missing, &subject.key.namespace));
        }
        let holder = ask(&session, &subject, &claim)?;
        let watched = watch_time(&claim, Terms::STANDARD).as_secs();
        stderr_line(&format!("Watching the Lease for {watched}s; any change of it means that the holder lives."));
        let me = HolderId::of_this_process().to_string();
        let leases = KubeLeases::new(&session.api);
        let clock = SystemClock::default();
        let ended = reclaim(&leases, &clock, &subject.key, &holder, &me, Terms::STANDARD).await;
        conclude(&session, global, &subject, &holder, ended)
    })
}

/// Shows the claim and asks for its holder, or for the Lease's name where it has none.
fn ask(session: &Session, subject: &Subject, claim: &ClaimLease) -> Result<String, CommandError> {
    let now = session.now();
    let age = claim.renewed.or(claim.acquired).map_or("never".to_string(), |t| relative(t, now));
    let line = |label: &str, text: &str| stderr_line(&format!("  {label:<10}{}", visible(text)));
    stderr_line(&format!("Claim on {} in {}:", visible(&subject.item.short), visible(&subject.key.namespace)));
    line("holder", claim.holder.as_deref().unwrap_or("nobody"));
    line("operation", claim.operation.as_deref().unwrap_or("not said"));
    if let Some(instance) = &claim.instance {
        line("instance", instance);
    }
    line("renewed", &age);
    line("cluster", &super::session::target_of(session));
    stderr_line("A suspended machine or a stopped process looks the same as a dead one, and goes on when it wakes up.");
    require_terminal()?;
    let holder = claim.holder.clone().unwrap_or_default();
    let what = if holder.is_empty() { "the name of the Lease" } else { "the holder" };
    let expected = if holder.is_empty() { &subject.key.name } else { &holder };
    typed_back(&format!("Type {what} to go on:"), expected)?;
    Ok(holder)
}

fn conclude(
    session: &Session,
    global: &GlobalArgs,
    subject: &Subject,
    holder: &str,
    ended: Reclaimed,
) -> Result<u8, CommandError> {
    let short = &subject.item.short;
    let shown = visible(holder);
    match ended {
        Reclaimed::WasFree => {
            stderr_line(&format!("{short} became free by itself; nothing was changed."));
            Ok(OK)
        }
        Reclaimed::Freed { watched } => {
            let seconds = watched.as_secs();
            let view = serde_json::json!({
                "apiVersion": crate::output::view::API_VERSION, "kind": "Reclaim",
                "object": {"kind": subject.item.kind, "namespace": subject.item.namespace, "name": subject.item.name},
                "lease": subject.key.name, "holder": holder, "watchedSeconds": seconds, "result": "freed",
            });
            let mut out = Vec::new();
            let rendered = match global.output {
                OutputFormat::Json => render_json(&mut out, &view),
                OutputFormat::Yaml => render_yaml(&mut out, &view),
                OutputFormat::Text | OutputFormat::Wide | OutputFormat::Name => {
                    out.extend(
                        format!(
                            "claim on {short} freed: held by {shown}, which renewed nothing for {seconds}s. That \
                             it never will again is not proved.\n"
                        )
                        .bytes(),
                    );
                    Ok(())
                }
            };
            rendered.map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
            write_stdout(&out)?;
            Ok(OK)
        }
        Reclaimed::Alive(lease) => Err(CommandError::refused(format!(
            "the claim on {short} changed while it was watched: {} lives; nothing was taken from it",
            visible(lease.holder.as_deref().unwrap_or("its holder"))
        ))),
        Reclaimed::AnotherHolder(lease) => Err(CommandError::refused(format!(
            "the claim on {short} is held by {} by now; nothing was changed",
            visible(lease.holder.as_deref().unwrap_or("nobody"))
        ))),
        Reclaimed::Failed(gap) => Err(unreadable("reclaim", &gap, session.source.server.as_deref())),
        Reclaimed::Stays(gap) => {
            Err(CommandError::failed(format!("the claim on {short} is ours now and could not be deleted"))
                .caused_by(visible(&gap.to_string()))
                .hint(format!(
                    "run the command again, or `kubectl -n {} delete lease {}`",
                    subject.key.namespace, subject.key.name
                )))
        }
    }
}

async fn read(session: &Session, subject: &Subject) -> Result<Option<ClaimLease>, CommandError> {
    match read_claim(&session.api, &subject.key).await {
        Reading::Found(claim) => Ok(Some(claim)),
        Reading::Absent => Ok(None),
        Reading::Unreadable(gap) => {
            let doing = format!("read the claim `{}` in {}", subject.key.name, subject.key.namespace);
            Err(unreadable(&doing, &gap, session.source.server.as_deref()))
        }
    }
}

fn report(session: &Session, command: &'static str) -> Report {
    Report {
        command,
        now: session.now(),
        source: session.source.clone(),
        items: Vec::new(),
        unreadable: Vec::new(),
        values: session.values.clone(),
    }
}

fn item(session: &Session, subject: &Subject, claim: Option<&ClaimLease>) -> Item {
    let finding = match claim {
        Some(claim) => rules::finding(claim, &subject.target, session.now()),
        None => rules::none(&subject.key.name),
    };
    Item {
        object: subject.item.clone(),
        verdict: None,
        lock: None,
        findings: vec![finding],
        gaps: Vec::new(),
        waiting: Vec::new(),
        runs: None,
    }
}
