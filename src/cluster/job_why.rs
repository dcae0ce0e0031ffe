//! Gathers what `jobs why` looks at: the object, its Jobs and pods in one list each, then for the Jobs in
//! question events, node and the end of the log, and for a wait its leases. A failed read costs its part only.

use super::api::Api;
use super::clusters::parent_of;
use super::jobs::{JobKey, jobs_of, read_labelled_jobs};
use super::lock::read_lock_facts;
use super::objects::read_object;
use super::pods::{read_pods_of_job, read_pods_of_object};
use super::run_logs::read_log_facts;
use super::run_source::{RunLists, Source, node_matters, waits_for_lease};
use crate::captf::kind::WorkloadKind;
use crate::captf::names::{Operation, cluster_lease, run_lease};
use crate::captf::run_log::names_state_lock;
use crate::facts::event::EventFacts;
use crate::facts::job::{JobFacts, JobOutcome};
use crate::facts::job_why::{JobWhyFacts, LeaseWait, RunFacts};
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::pod::{ContainerState, PodFacts};
use crate::facts::reading::{Gap, Reading};
use crate::facts::run::LogFacts;
use crate::runbook::job_focus::{Focus, bad_conditions, focus};
use crate::runbook::job_outcome::{pods_of, with_marks};
use crate::runbook::job_start::missing_object;

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
    let runs = chosen.iter().map(|f| read_run(source, object, f, &jobs, known, depth));
    let (runs, around, leases, plan) = tokio::join!(
        futures::future::join_all(runs),
        read_around(source, object, &about),
        read_leases(source, object, &about, depth),
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

async fn read_run(
    source: Source<'_>,
    object: &ObjectRef,
    focus: &Focus,
    jobs: &Reading<Vec<JobFacts>>,
    pods: &[PodFacts],
    depth: &Depth,
) -> RunFacts {
    let namespace = &object.namespace;
    let newest = pods_of(pods, &focus.job).first().copied();
    let job = jobs.found().and_then(|all| all.iter().find(|j| j.name == focus.job));
    let (on_job, on_pod, node, log) = tokio::join!(
        source.events(namespace, "Job", &focus.job),
        async {
            match newest {
                Some(pod) => source.events(namespace, "Pod", &pod.name).await,
                None => Reading::Found(Vec::new()),
            }
        },
        async {
            match newest.and_then(|p| p.node.as_deref().filter(|_| node_matters(p))) {
                Some(node) => Some(source.node(node).await),
                None => None,
            }
        },
        read_log(source.api, namespace, newest, job, depth),
    );
    let events = on_job.and_then(|mut events| {
        on_pod.map(|more| {
            events.extend(more);
            events.sort_by_key(|e| std::cmp::Reverse(e.at));
            events
        })
    });
    let missing = newest.and_then(|p| missing_of(p, events.found().map(Vec::as_slice).unwrap_or_default()));
    let missing_now = match missing {
        Some(missing) => source.exists(namespace, &missing).await.map(|there| (missing, there)),
        None => None,
    };
    let (log, not_masked) = log.unzip();
    RunFacts {
        condition: focus.condition.clone(),
        events,
        node,
        log,
        not_masked: not_masked.unwrap_or_default(),
        missing_now,
        ..RunFacts::named(&focus.job)
    }
}

async fn read_log(
    api: &Api,
    namespace: &str,
    pod: Option<&PodFacts>,
    job: Option<&JobFacts>,
    depth: &Depth,
) -> Option<(Reading<LogFacts>, Vec<Gap>)> {
    let pod = pod.filter(|_| depth.full)?;
    job.filter(|j| j.outcome != JobOutcome::Succeeded)?;

    let init_failed = pod.containers.iter().find(|c| {
        c.init
            && c.name == "runner"
            && matches!(c.state, ContainerState::Terminated { exit_code, .. } if exit_code != 0)
    });
    let container = match (init_failed, pod.source_started()) {
        (Some(_), _) => "runner",
        (None, Some(_)) => "source",
        (None, None) => return None,
    };
    Some(read_log_facts(api, namespace, pod, container).await)
}

fn missing_of(pod: &PodFacts, events: &[EventFacts]) -> Option<String> {
    let of_state = pod.containers.iter().find_map(|c| match &c.state {
        ContainerState::Waiting { message, .. } => missing_object(message),
        _ => None,
    });
    let of_event = || events.iter().filter(|e| e.reason == "FailedMount").find_map(|e| missing_object(&e.message));
    of_state.or_else(of_event)
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
    if !bad_conditions(about, &depth.ops).iter().any(|c| waits_for_lease(&c.reason)) {
        return Vec::new();
    }
    let mut names = vec![run_lease(&object.suffix())];
    names.extend(about.cluster_name.as_ref().map(|cluster| cluster_lease(&object.namespace, cluster)));
    futures::future::join_all(names.iter().map(|name| source.lease_wait(&object.namespace, name))).await
}

/// Whether a run failed on the lock or waits for it, so that the lock has to be judged beside it.
fn touches_lock(about: &ObjectFacts, runs: &[RunFacts], pods: &[PodFacts]) -> bool {
    let by_log =
        runs.iter().any(|r| r.log.as_ref().and_then(Reading::found).is_some_and(|l| l.waits_for_lock || l.lock_error));
    let error = about.last_run.as_ref().and_then(|r| r.error.as_ref());
    let by_status = error.is_some_and(|e| names_state_lock(&e.summary) || e.step.as_deref() == Some("force-unlock"));
    let by_result = runs
        .iter()
        .flat_map(|r| pods_of(pods, &r.name))
        .filter_map(|p| p.result.found()?.error.as_ref())
        .any(|e| names_state_lock(&e.summary));
    by_log || by_status || by_result || about.has("StateReadable", "False", "StateLocked")
}

/// The object with its Jobs and pods alone: what a list or a timeline needs.
pub async fn read_job_history(api: &Api, object: &ObjectRef, depth: &Depth) -> Reading<JobWhyFacts> {
    let (about, jobs, pods) =
        tokio::join!(read_object(api, object), read_labelled_jobs(api, object), read_pods_of_object(api, object));
    about.map(|about| {
        let known = pods.found().map(Vec::as_slice).unwrap_or_default();
        let jobs = jobs.map(|jobs| marked(jobs_of(jobs, &about.uid), known));
        JobWhyFacts {
            object: object.clone(),
            about,
            jobs,
            pods: pods.clone(),
            runs: Vec::new(),
            owner_cluster: None,
            terraform_cluster: None,
            leases: Vec::new(),
            plan: None,
            lock: None,
            live: depth.live,
        }
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
