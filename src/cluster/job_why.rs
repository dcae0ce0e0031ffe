//! Gathers what `jobs why` looks at: the object, its Jobs and pods in one list each, then for the Jobs in
//! question events, node and the end of the log, and for a wait its leases. A failed read costs its part only.

use super::api::Api;
use super::clusters::parent_of;
use super::job_run::{read_run, touches_lock};
use super::jobs::{JobKey, jobs_of, read_labelled_jobs};
use super::lock::read_lock_facts;
use super::machine_jobs::read_machine_jobs;
use super::objects::read_object;
use super::pods::{read_pods_of_job, read_pods_of_object};
use super::run_source::{RunLists, Source};
use crate::captf::kind::WorkloadKind;
use crate::captf::names::{Operation, cluster_lease, run_lease};
use crate::facts::job::JobFacts;
use crate::facts::job_why::{JobWhyFacts, LeaseWait};
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::pod::PodFacts;
use crate::facts::reading::Reading;
use crate::runbook::job_focus::{bad_conditions, focus};
use crate::runbook::job_outcome::{pods_of, with_marks};

/// The reasons of waits for a lease.
pub const RUN_LEASE: &str = "WaitingForRunLease";
pub const CLUSTER_LEASE: &str = "WaitingForClusterOperation";

/// How much is read.
#[derive(Debug, Clone)]
pub struct Depth {
    /// Only Jobs of these operations; empty = all.
    pub ops: Vec<Operation>,
    /// Also the end of logs, and the lock where something waited for it.
    pub full: bool,
    pub live: bool,
}

/// Reads one named object with its runs. `Absent` and `Unreadable` are those of the object.
pub async fn read_job_why(api: &Api, object: &ObjectRef, depth: &Depth) -> Reading<JobWhyFacts> {
    let (about, jobs, pods) =
        tokio::join!(read_object(api, object), read_labelled_jobs(api, object), read_pods_of_object(api, object));
    match about {
        Reading::Found(about) => {
            let jobs = jobs.map(|jobs| jobs_of(jobs, &about.uid));
            Reading::Found(complete(Source::each(api), object, about, jobs, pods, depth).await)
        }
        Reading::Absent => Reading::Absent,
        Reading::Unreadable(gap) => Reading::Unreadable(gap),
    }
}

/// The same for an object that was listed, with lists that were read before.
pub async fn job_why_of_listed(
    api: &Api,
    object: &ObjectRef,
    about: ObjectFacts,
    lists: &RunLists,
    depth: &Depth,
) -> JobWhyFacts {
    let key = JobKey::of(object);
    let jobs = match &lists.jobs {
        Reading::Found(map) => Reading::Found(jobs_of(map.get(&key).cloned().unwrap_or_default(), &about.uid)),
        Reading::Absent => Reading::Absent,
        Reading::Unreadable(gap) => Reading::Unreadable(gap.clone()),
    };
    let pods = match &lists.pods {
        Reading::Found(map) => Reading::Found(map.get(&key).cloned().unwrap_or_default()),
        Reading::Absent => Reading::Absent,
        Reading::Unreadable(gap) => Reading::Unreadable(gap.clone()),
    };
    complete(Source::listed(api, lists), object, about, jobs, pods, depth).await
}

async fn complete(
    source: Source<'_>,
    object: &ObjectRef,
    about: ObjectFacts,
    jobs: Reading<Vec<JobFacts>>,
    pods: Reading<Vec<PodFacts>>,
    depth: &Depth,
) -> JobWhyFacts {
    let pods = match depth.full {
        true => with_pods_by_name(source.api, object, &about, &jobs, pods, depth).await,
        false => pods,
    };
    let known = pods.found().map(Vec::as_slice).unwrap_or_default();
    let jobs = jobs.map(|jobs| marked(jobs, known));
    let chosen = focus(object, &about, jobs.found().map(Vec::as_slice).unwrap_or_default(), &depth.ops, depth.full);
    let runs = chosen.iter().map(|f| read_run(source, &object.namespace, f, &jobs, known, depth.full));
    let (runs, around, leases, machine_jobs, plan) = tokio::join!(
        futures::future::join_all(runs),
        read_around(source, object, &about),
        read_leases(source, object, &about, depth),
        read_machine_jobs(source, object, &about, depth),
        async {
            match &about.pending_plan {
                Some(plan) => Some(source.plan(&object.namespace, plan).await),
                None => None,
            }
        },
    );
    let (owner_cluster, terraform_cluster) = around;
    let lock = match depth.full && touches_lock(&about, &runs, known) {
        true => read_lock_facts(source.api, object, depth.live).await.found().cloned(),
        false => None,
    };
    JobWhyFacts {
        object: object.clone(),
        about,
        jobs,
        pods,
        runs,
        owner_cluster,
        terraform_cluster,
        leases,
        machine_jobs,
        plan,
        lock,
        live: depth.live,
    }
}

/// The controller finds pods by the Job's name alone. A pod that lacks the owner's labels is looked up that way,
/// for the Jobs that are triaged.
async fn with_pods_by_name(
    api: &Api,
    object: &ObjectRef,
    about: &ObjectFacts,
    jobs: &Reading<Vec<JobFacts>>,
    pods: Reading<Vec<PodFacts>>,
    depth: &Depth,
) -> Reading<Vec<PodFacts>> {
    let Reading::Found(mut known) = pods else { return pods };
    let jobs = marked(jobs.found().cloned().unwrap_or_default(), &known);
    let without = focus(object, about, &jobs, &depth.ops, depth.full);
    for lone in without.iter().filter(|f| pods_of(&known, &f.job).is_empty()).map(|f| f.job.clone()).collect::<Vec<_>>()
    {
        match read_pods_of_job(api, &object.namespace, &lone).await {
            Reading::Found(more) => known.extend(more),
            Reading::Absent => {}
            Reading::Unreadable(gap) => return Reading::Unreadable(gap),
        }
    }
    Reading::Found(known)
}

/// The Cluster, and the TerraformCluster from which a machine or pool inherits.
async fn read_around(
    source: Source<'_>,
    object: &ObjectRef,
    about: &ObjectFacts,
) -> (Option<Reading<crate::facts::object::OwnerClusterFacts>>, Option<Reading<ObjectFacts>>) {
    let Some(cluster) = &about.cluster_name else {
        let parent = (object.kind != WorkloadKind::Cluster).then_some(Reading::Absent);
        return (None, parent);
    };
    let owner = source.owner_cluster(&object.namespace, cluster).await;
    if object.kind == WorkloadKind::Cluster {
        return (Some(owner), None);
    }
    let parent = match parent_of(&owner) {
        Reading::Found(parent) => source.infrastructure(&object.namespace, &parent).await,
        Reading::Absent => Reading::Absent,
        Reading::Unreadable(gap) => Reading::Unreadable(gap),
    };
    (Some(owner), Some(parent))
}

async fn read_leases(source: Source<'_>, object: &ObjectRef, about: &ObjectFacts, depth: &Depth) -> Vec<LeaseWait> {
    let bad = bad_conditions(about, &depth.ops);
    let waits_for = |reason: &str| bad.iter().any(|c| c.reason == reason);
    let run = waits_for(RUN_LEASE).then(|| run_lease(&object.suffix()));
    // A cluster waits for both under one reason.
    let both = object.kind == WorkloadKind::Cluster && run.is_some();
    let cluster = about.cluster_name.as_ref().filter(|_| both || waits_for(CLUSTER_LEASE));
    let cluster = cluster.map(|cluster| cluster_lease(&object.namespace, cluster));
    let names: Vec<String> = run.into_iter().chain(cluster).collect();
    futures::future::join_all(names.iter().map(|name| source.lease_wait(&object.namespace, name))).await
}

/// The object with its Jobs and pods alone: what a list or a timeline needs.
pub async fn read_job_history(api: &Api, object: &ObjectRef, depth: &Depth) -> Reading<JobWhyFacts> {
    let (about, jobs, pods) =
        tokio::join!(read_object(api, object), read_labelled_jobs(api, object), read_pods_of_object(api, object));
    about.map(|about| {
        let known = pods.found().map(Vec::as_slice).unwrap_or_default();
        let jobs = jobs.map(|jobs| marked(jobs_of(jobs, &about.uid), known));
        JobWhyFacts { jobs, pods: pods.clone(), live: depth.live, ..JobWhyFacts::of(object.clone(), about) }
    })
}

/// The Jobs with the marks that count.
fn marked(jobs: Vec<JobFacts>, pods: &[PodFacts]) -> Vec<JobFacts> {
    let mark = |job: JobFacts| {
        let newest = pods_of(pods, &job.name).first().copied();
        with_marks(job, newest)
    };
    jobs.into_iter().map(mark).collect()
}
