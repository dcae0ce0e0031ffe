//! The Jobs of machines and pools for which a cluster's operation waits: those that its condition names, or else the
//! holders of their run leases. A few are read, however many there are.

use serde_json::Value;

use super::api::{LEASES, Selector};
use super::job_run::read_run;
use super::job_why::Depth;
use super::json::{annotation, label};
use super::run_leases::facts_from_run_lease;
use super::run_source::Source;
use crate::captf::keys;
use crate::captf::kind::WorkloadKind;
use crate::captf::names::label_value;
use crate::facts::job::JobFacts;
use crate::facts::job_why::{JobWhyFacts, NamedJob};
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::reading::{Gap, GapReason, Reading};
use crate::runbook::job_focus::{Focus, all_named_in, bad_conditions};

/// As many as the controller names in its message.
const MOST: usize = 5;

/// The Jobs that a cluster waits for; none unless one of its conditions says that it waits.
pub async fn read_machine_jobs(
    source: Source<'_>,
    object: &ObjectRef,
    about: &ObjectFacts,
    depth: &Depth,
) -> Vec<NamedJob> {
    let waits = bad_conditions(about, &depth.ops).into_iter().find(|c| c.reason == "WaitingForMachineOperations");
    let Some(condition) = waits else {
        return Vec::new();
    };
    let mut names: Vec<String> = all_named_in(&condition.message, MOST).into_iter().map(str::to_string).collect();
    if names.is_empty() && depth.full {
        names = match holders(source, object, about).await {
            Reading::Found(holders) => holders,
            Reading::Absent => Vec::new(),
            Reading::Unreadable(gap) => {
                return vec![NamedJob { job: "unknown".to_string(), run: Reading::Unreadable(gap) }];
            }
        };
    }
    futures::future::join_all(names.into_iter().map(|job| read_named(source, &object.namespace, job))).await
}

/// Who holds run leases of the cluster's machines and pools for an operation that counts.
async fn holders(source: Source<'_>, object: &ObjectRef, about: &ObjectFacts) -> Reading<Vec<String>> {
    let cluster = about.cluster_name.as_deref().unwrap_or(&object.name);
    let selector =
        Selector::labels(format!("{}=run,{}={}", keys::LEASE_KIND, keys::CLUSTER_NAME, label_value(cluster)));
    source.api.list(&LEASES, Some(&object.namespace), &selector).await.map(|list| {
        let counts = |lease: &&Value| {
            matches!(annotation(lease, keys::LEASE_OP), Some("apply" | "destroy" | "restore"))
                && label(lease, keys::OWNER_KIND) != Some(WorkloadKind::Cluster.kind())
        };
        let holders = list.iter().filter(counts).map(|lease| facts_from_run_lease(lease).holder);
        holders.filter(|h| !h.is_empty()).take(MOST).collect()
    })
}

async fn read_named(source: Source<'_>, namespace: &str, job: String) -> NamedJob {
    let run = match source.job_with_owner(namespace, &job).await {
        Reading::Found((Some(owner), facts)) => Reading::Found(read_of_job(source, owner, facts).await),
        Reading::Found((None, _)) => Reading::Unreadable(Gap {
            what: format!("the object of Job {namespace}/{job}"),
            reason: GapReason::Malformed,
            detail: "it has no owner of CAPTF".to_string(),
            permission: None,
        }),
        Reading::Absent => Reading::Absent,
        Reading::Unreadable(gap) => Reading::Unreadable(gap),
    };
    NamedJob { job, run }
}

async fn read_of_job(source: Source<'_>, owner: ObjectRef, job: JobFacts) -> Box<JobWhyFacts> {
    let pods = source.pods_of_job(&owner.namespace, &job.name).await;
    let focus = Focus { job: job.name.clone(), condition: None };
    let jobs = Reading::Found(vec![job]);
    let known = pods.found().map(Vec::as_slice).unwrap_or_default();
    let run = read_run(source, &owner.namespace, &focus, &jobs, known, false).await;
    Box::new(JobWhyFacts { jobs, pods, runs: vec![run], ..JobWhyFacts::of(owner, ObjectFacts::default()) })
}
