//! Where the reads of `jobs why` come from: asked for one by one, or out of lists that were read once for a fleet,
//! so that the number of requests does not grow with the number of objects.

use std::collections::HashMap;

use super::api::{Api, EVENTS, Form, JOBS, LEASES, NODES, PODS, Resource, SECRETS, Selector};
use super::clusters::{read_owner_cluster, read_owner_clusters};
use super::events::{facts_from_event, read_events};
use super::job_why::{CLUSTER_LEASE, RUN_LEASE};
use super::jobs::{JobKey, facts_from_job, owner_of_job, read_all_jobs};
use super::json::{label, name, owned};
use super::nodes::{facts_from_node, read_node};
use super::objects::{read_object, read_objects};
use super::plans::{read_plan, read_plans};
use super::pods::{facts_from_pod, read_pods_of_job};
use super::run_leases::{facts_from_run_lease, read_lease_wait};
use crate::captf::keys;
use crate::captf::kind::WorkloadKind;
use crate::facts::event::EventFacts;
use crate::facts::job::JobFacts;
use crate::facts::job_why::LeaseWait;
use crate::facts::node::NodeFacts;
use crate::facts::object::{ObjectFacts, ObjectRef, OwnerClusterFacts};
use crate::facts::pod::PodFacts;
use crate::facts::reading::Reading;
use crate::facts::run::{PlanFacts, RunLease};

/// Up to so many objects everything but Jobs and pods is asked for one by one: lists of all events of a large
/// cluster cost more.
const FEW: usize = 10;

const CONFIG_MAPS: Resource =
    Resource { group: "", version: "v1", plural: "configmaps", kind: "ConfigMap", namespaced: true };

/// Namespace and name.
type Place = (String, String);
/// Namespace, kind and name of what an event is about.
type About = (String, String, String);

/// Jobs and pods that were listed once for many objects.
pub struct RunLists {
    pub jobs: Reading<HashMap<JobKey, Vec<(String, JobFacts)>>>,
    pub pods: Reading<HashMap<JobKey, Vec<PodFacts>>>,
    more: Option<MoreLists>,
}

/// The rest, for more than a few objects. `None` = no object needs it.
struct MoreLists {
    events: Reading<HashMap<About, Vec<EventFacts>>>,
    owner_clusters: Reading<HashMap<Place, OwnerClusterFacts>>,
    terraform_clusters: Reading<HashMap<Place, ObjectFacts>>,
    leases: Option<Reading<HashMap<Place, RunLease>>>,
    plans: Option<Reading<HashMap<Place, PlanFacts>>>,
    nodes: Option<Reading<HashMap<String, NodeFacts>>>,
}

/// Lists what the runs of these objects need, in a namespace or in all.
pub async fn list_runs(api: &Api, namespace: Option<&str>, objects: &[(ObjectRef, ObjectFacts)]) -> RunLists {
    let (jobs, pods) = tokio::join!(read_all_jobs(api, namespace), list_pods(api, namespace));
    let more = match objects.len() > FEW {
        true => Some(list_more(api, namespace, objects, &pods).await),
        false => None,
    };
    RunLists { jobs, pods, more }
}

async fn list_pods(api: &Api, namespace: Option<&str>) -> Reading<HashMap<JobKey, Vec<PodFacts>>> {
    let list = api.list(&PODS, namespace, &Selector::labels(keys::OWNER_KIND)).await;
    list.map(|list| {
        let mut by_owner: HashMap<JobKey, Vec<PodFacts>> = HashMap::new();
        for value in &list {
            let Some(kind) = label(value, keys::OWNER_KIND).and_then(WorkloadKind::from_kind) else { continue };
            let owner = label(value, keys::OWNER_NAME).unwrap_or_default().to_string();
            let key = JobKey { namespace: owned(value, &["metadata", "namespace"]), kind, owner };
            by_owner.entry(key).or_default().push(facts_from_pod(value));
        }
        by_owner.values_mut().for_each(|pods| pods.sort_by(|a, b| (b.created, &b.name).cmp(&(a.created, &a.name))));
        by_owner
    })
}

async fn list_more(
    api: &Api,
    namespace: Option<&str>,
    objects: &[(ObjectRef, ObjectFacts)],
    pods: &Reading<HashMap<JobKey, Vec<PodFacts>>>,
) -> MoreLists {
    let waits = objects
        .iter()
        .flat_map(|(_, about)| &about.conditions)
        .any(|c| [RUN_LEASE, CLUSTER_LEASE].contains(&c.reason.as_str()));
    let has_plan = objects.iter().any(|(_, about)| about.pending_plan.is_some());
    let asks_node = pods.found().is_some_and(|map| map.values().flatten().any(node_matters));
    let everything = Selector::default();
    let (events, owner_clusters, terraform_clusters, leases, plans, nodes) = tokio::join!(
        list_events(api, namespace),
        read_owner_clusters(api, namespace),
        read_objects(api, WorkloadKind::Cluster, namespace, &everything),
        wanted(waits, async {
            let leases = api.list(&LEASES, namespace, &Selector::labels(keys::LEASE_KIND)).await;
            leases.map(|list| list.iter().map(|v| (place(v), facts_from_run_lease(v))).collect())
        }),
        wanted(has_plan, read_plans(api, namespace)),
        wanted(asks_node, async {
            let nodes = api.list(&NODES, None, &everything).await;
            nodes.map(|list| list.iter().map(|v| (name(v), facts_from_node(v))).collect())
        }),
    );
    let terraform_clusters = terraform_clusters
        .map(|list| list.into_iter().map(|(object, about)| ((object.namespace, object.name), about)).collect());
    MoreLists { events, owner_clusters, terraform_clusters, leases, plans, nodes }
}

/// Reads only what is wanted.
pub async fn wanted<T>(wanted: bool, read: impl Future<Output = T>) -> Option<T> {
    if wanted { Some(read.await) } else { None }
}

fn place(value: &serde_json::Value) -> Place {
    (owned(value, &["metadata", "namespace"]), name(value))
}

/// The events on Jobs and on pods, newest first.
async fn list_events(api: &Api, namespace: Option<&str>) -> Reading<HashMap<About, Vec<EventFacts>>> {
    let of = |kind: &str| Selector::fields(format!("involvedObject.kind={kind}"));
    let (on_jobs, on_pods) = (of("Job"), of("Pod"));
    let (jobs, pods) = tokio::join!(api.list(&EVENTS, namespace, &on_jobs), api.list(&EVENTS, namespace, &on_pods));
    jobs.and_then(|jobs| {
        pods.map(|pods| {
            let mut map: HashMap<About, Vec<EventFacts>> = HashMap::new();
            for value in jobs.iter().chain(&pods) {
                let of = |field| owned(value, &["involvedObject", field]);
                map.entry((of("namespace"), of("kind"), of("name"))).or_default().push(facts_from_event(value));
            }
            map.values_mut().for_each(|events| events.sort_by_key(|e| std::cmp::Reverse(e.at)));
            map
        })
    })
}

/// The node is asked when something suggests that the pod's end has to do with it.
pub fn node_matters(pod: &PodFacts) -> bool {
    pod.disruption.is_some() || !pod.reason.is_empty() || pod.phase == "Unknown" || pod.deletion_deadline.is_some()
}

/// One way to read, in two forms.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub api: &'a Api,
    lists: Option<&'a RunLists>,
}

/// An entry of a list that was read; what it does not hold does not exist.
fn entry<K: std::hash::Hash + Eq, V: Clone>(list: &Reading<HashMap<K, V>>, key: &K) -> Reading<V> {
    match list {
        Reading::Found(map) => map.get(key).cloned().map_or(Reading::Absent, Reading::Found),
        Reading::Absent => Reading::Absent,
        Reading::Unreadable(gap) => Reading::Unreadable(gap.clone()),
    }
}

impl<'a> Source<'a> {
    /// Everything is asked for.
    pub fn each(api: &'a Api) -> Self {
        Self { api, lists: None }
    }

    /// What was listed is looked up.
    pub fn listed(api: &'a Api, lists: &'a RunLists) -> Self {
        Self { api, lists: Some(lists) }
    }

    fn more(&self) -> Option<&'a MoreLists> {
        self.lists.and_then(|l| l.more.as_ref())
    }

    /// Events about an object, newest first.
    pub async fn events(&self, namespace: &str, kind: &str, name: &str) -> Reading<Vec<EventFacts>> {
        let Some(more) = self.more().filter(|_| kind != "Node") else {
            return read_events(self.api, namespace, kind, name).await;
        };
        match entry(&more.events, &(namespace.to_string(), kind.to_string(), name.to_string())) {
            Reading::Absent => Reading::Found(Vec::new()),
            known => known,
        }
    }

    /// One node.
    pub async fn node(&self, node: &str) -> Reading<NodeFacts> {
        match self.more().and_then(|m| m.nodes.as_ref()) {
            Some(nodes) => entry(nodes, &node.to_string()),
            None => read_node(self.api, node).await,
        }
    }

    /// The Cluster of an object.
    pub async fn owner_cluster(&self, namespace: &str, cluster: &str) -> Reading<OwnerClusterFacts> {
        match self.more() {
            Some(more) => entry(&more.owner_clusters, &(namespace.to_string(), cluster.to_string())),
            None => read_owner_cluster(self.api, namespace, cluster).await,
        }
    }

    /// The infrastructure of a Cluster in that namespace.
    pub async fn infrastructure(&self, namespace: &str, object: &ObjectRef) -> Reading<ObjectFacts> {
        match self.more() {
            Some(more) if object.kind == WorkloadKind::Cluster && object.namespace == namespace => {
                entry(&more.terraform_clusters, &(object.namespace.clone(), object.name.clone()))
            }
            _ => read_object(self.api, object).await,
        }
    }

    /// One TerraformPlan.
    pub async fn plan(&self, namespace: &str, plan: &str) -> Reading<PlanFacts> {
        match self.more().and_then(|m| m.plans.as_ref()) {
            Some(plans) => entry(plans, &(namespace.to_string(), plan.to_string())),
            None => read_plan(self.api, namespace, plan).await,
        }
    }

    /// A lease with its holder.
    pub async fn lease_wait(&self, namespace: &str, lease: &str) -> LeaseWait {
        let (Some(lists), Some(leases)) = (self.lists, self.more().and_then(|m| m.leases.as_ref())) else {
            return read_lease_wait(self.api, namespace, lease).await;
        };
        let lease_read = entry(leases, &(namespace.to_string(), lease.to_string()));
        // The list is by label. That a Lease is not in it does not prove that there is none of that name.
        if lease_read == Reading::Absent {
            return read_lease_wait(self.api, namespace, lease).await;
        }
        let holder = lease_read.found().map(|l| l.holder.clone()).filter(|h| !h.is_empty());
        let (holder, holder_pods) = match holder {
            Some(job) => (lists.job(namespace, &job).map(|(_, facts)| facts), lists.pods_of_job(namespace, &job)),
            None => (Reading::Absent, Reading::Absent),
        };
        LeaseWait { name: lease.to_string(), lease: lease_read, holder, holder_pods }
    }

    /// A Job by its name, with the object that it belongs to.
    pub async fn job_with_owner(&self, namespace: &str, job: &str) -> Reading<(Option<ObjectRef>, JobFacts)> {
        if let Some(lists) = self.lists {
            let of_labels = |key: &JobKey| {
                Some(ObjectRef { kind: key.kind, namespace: key.namespace.clone(), name: key.owner.clone() })
            };
            return lists.job(namespace, job).map(|(key, facts)| (of_labels(&key), facts));
        }
        let read = self.api.get(&JOBS, Some(namespace), job).await;
        read.map(|value| (owner_of_job(&value), facts_from_job(&value)))
    }

    /// The pods of a Job, newest first.
    pub async fn pods_of_job(&self, namespace: &str, job: &str) -> Reading<Vec<PodFacts>> {
        match self.lists {
            Some(lists) => lists.pods_of_job(namespace, job),
            None => read_pods_of_job(self.api, namespace, job).await,
        }
    }

    /// Whether a Secret or ConfigMap is there. It is read as a row of a table, so no value comes along; for a
    /// fleet it is left out.
    pub async fn exists(&self, namespace: &str, object: &str) -> Option<Reading<()>> {
        if self.more().is_some() {
            return None;
        }
        let (resource, name) = match object.split_once('/') {
            Some(("configmap", name)) => (CONFIG_MAPS, name),
            Some((_, name)) => (SECRETS, name),
            None => (SECRETS, object),
        };
        Some(self.api.get_as(&resource, Some(namespace), name, Form::Table).await.map(|_| ()))
    }
}

impl RunLists {
    /// A Job by its name.
    fn job(&self, namespace: &str, job: &str) -> Reading<(JobKey, JobFacts)> {
        match &self.jobs {
            Reading::Found(map) => {
                let mut inside = map.iter().filter(|(key, _)| key.namespace == namespace);
                let found = inside.find_map(|(key, jobs)| {
                    let (_, facts) = jobs.iter().find(|(_, facts)| facts.name == job)?;
                    Some((key.clone(), facts.clone()))
                });
                found.map_or(Reading::Absent, Reading::Found)
            }
            Reading::Absent => Reading::Absent,
            Reading::Unreadable(gap) => Reading::Unreadable(gap.clone()),
        }
    }

    fn pods_of_job(&self, namespace: &str, job: &str) -> Reading<Vec<PodFacts>> {
        match &self.pods {
            Reading::Found(map) => {
                let inside = map.iter().filter(|(key, _)| key.namespace == namespace).flat_map(|(_, pods)| pods);
                Reading::Found(inside.filter(|p| p.job.as_deref() == Some(job)).cloned().collect())
            }
            Reading::Absent => Reading::Absent,
            Reading::Unreadable(gap) => Reading::Unreadable(gap.clone()),
        }
    }
}
