//! `claim list`, `claim inspect` and `claim reclaim`: who works on what, and freeing what a dead run left.

use std::collections::HashMap;

use clap::{Args, Subcommand};

use super::args::GlobalArgs;
use super::error::{CommandError, unreadable};
use super::render::{Shape, render};
use super::scope::{named, not_found, nothing_listed};
use super::session::{Session, block_on};
use super::target::parse_one_object;
use crate::captf::kind::WorkloadKind;
use crate::claim::lease::{ClaimLease, LeaseKey, claim_lease};
use crate::cluster::api::Selector;
use crate::cluster::claim::{read_claim, read_claims};
use crate::cluster::objects::read_object;
use crate::cluster::orphans::read_scope;
use crate::facts::object::ObjectRef;
use crate::facts::reading::{Gap, Reading};
use crate::output::stderr_line;
use crate::report::{Item, ItemObject};
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
/// Reads only. Needs: get on leases; get on the object, which tells a mistyped name from one that is not claimed.
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
pub(super) struct Subject {
    pub(super) key: LeaseKey,
    pub(super) item: ItemObject,
    target: String,
    /// Nothing for a Lease that was named.
    object: Option<ObjectRef>,
}

impl Subject {
    fn of_object(object: &ObjectRef) -> Self {
        let key = LeaseKey { namespace: object.namespace.clone(), name: claim_lease(&object.suffix()) };
        Self { key, item: ItemObject::workload(object), target: object.resource(), object: Some(object.clone()) }
    }

    fn of_lease(key: LeaseKey) -> Self {
        let item = ItemObject::lease(&key.namespace, &key.name);
        let target = format!("--lease {}", shell_quote(&key.name));
        Self { key, item, target, object: None }
    }

    /// Nobody claims what does not exist, and a mistyped name must not read as "free". Returns the gap where the
    /// object could not be read.
    pub(super) async fn must_exist(&self, session: &Session) -> Result<Option<Gap>, CommandError> {
        let Some(object) = &self.object else { return Ok(None) };
        match read_object(&session.api, object).await {
            Reading::Found(_) => Ok(None),
            Reading::Absent => Err(not_found(session, object).await),
            Reading::Unreadable(gap) => Ok(Some(gap)),
        }
    }

    pub(super) async fn parse(
        session: &Session,
        object: &[String],
        lease: Option<&String>,
    ) -> Result<Self, CommandError> {
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
        let mut report = session.report("claim list");
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
        let mut report = session.report("claim inspect");
        let mut item = item(&session, &subject, claim.as_ref());
        if claim.is_none() {
            item.gaps.extend(subject.must_exist(&session).await?);
        }
        report.items.push(item);
        render(&report, global, Shape::Findings)
    })
}

/// The claim as it is now; nothing when there is none.
pub(super) async fn read(session: &Session, subject: &Subject) -> Result<Option<ClaimLease>, CommandError> {
    match read_claim(&session.api, &subject.key).await {
        Reading::Found(claim) => Ok(Some(claim)),
        Reading::Absent => Ok(None),
        Reading::Unreadable(gap) => {
            let doing = format!("read the claim `{}` in {}", subject.key.name, subject.key.namespace);
            Err(unreadable(&doing, &gap, session.source.server.as_deref()))
        }
    }
}

fn item(session: &Session, subject: &Subject, claim: Option<&ClaimLease>) -> Item {
    let finding = match claim {
        Some(claim) => rules::finding(claim, &subject.target, session.now()),
        None => rules::none(&subject.key.name),
    };
    Item { findings: vec![finding], ..Item::new(subject.item.clone()) }
}
