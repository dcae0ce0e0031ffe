//! Gathers what the lock rules look at, in the controller's order: Jobs, Lease, pod; then what the
//! verdict so far calls for, and no more.

use std::collections::HashMap;
use std::net::IpAddr;

use super::api::{Api, Form, LEASES, SECRETS, Selector};
use super::clusters::{read_owner_cluster, read_parent};
use super::events::read_events;
use super::jobs::{JobKey, jobs_of, read_all_jobs, read_labelled_jobs};
use super::leases::{facts_from_lease, read_lock};
use super::nodes::{read_node, read_nodes_with_address, read_pods_with_address};
use super::objects::read_object;
use super::payload::read_live;
use super::pods::{read_pod, read_pods_cut_to, read_pods_elsewhere, read_pods_of_job};
use super::state::{base_and_selected, read_backup_count, read_base, read_state, rows_by_namespace};
use crate::captf::keys;
use crate::captf::kind::WorkloadKind;
use crate::captf::names::lock_lease;
use crate::facts::event::EventFacts;
use crate::facts::job::{JobFacts, active_job};
use crate::facts::lease::{Holder, LockLease};
use crate::facts::lock::{HostSigns, LockFacts, StateFacts, Surroundings};
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::pod::PodFacts;
use crate::facts::reading::Reading;
use crate::facts::state::{StateContent, StateSecret};
use crate::runbook::lock_verdict::{Claimant, Foreign, Ruling, claimant, rule};

/// Lists that spare one request per object when many objects are judged.
pub struct Prefetched {
    jobs: Reading<HashMap<JobKey, Vec<(String, JobFacts)>>>,
    leases: Reading<HashMap<(String, String), Reading<LockLease>>>,
    state: Reading<HashMap<String, Vec<StateSecret>>>,
}

/// Lists Jobs, then Leases and state Secrets, of a namespace or of all.
pub async fn prefetch(api: &Api, namespace: Option<&str>) -> Prefetched {
    let jobs = read_all_jobs(api, namespace).await;
    let any_state = Selector::labels(format!("{}=true", keys::TFSTATE));
    let everything = Selector::default();
    let (leases, secrets) = tokio::join!(
        api.list(&LEASES, namespace, &everything),
        api.list_as(&SECRETS, namespace, &any_state, Form::Table),
    );
    let leases = leases.map(|list| {
        let keyed = list.iter().map(|value| {
            let namespace = super::json::owned(value, &["metadata", "namespace"]);
            ((namespace, super::json::name(value)), facts_from_lease(value))
        });
        keyed.collect()
    });
    Prefetched { jobs, leases, state: secrets.map(|rows| rows_by_namespace(&rows)) }
}

impl Prefetched {
    /// Every Lease that was listed, with its namespace.
    pub fn leases(&self) -> Reading<Vec<(&str, &LockLease)>> {
        match &self.leases {
            Reading::Found(map) => {
                let readable = map.iter().filter_map(|((ns, _), l)| Some((ns.as_str(), l.found()?)));
                Reading::Found(readable.collect())
            }
            Reading::Absent => Reading::Absent,
            Reading::Unreadable(gap) => Reading::Unreadable(gap.clone()),
        }
    }

    /// Namespace and name of every Lease that was listed and is a claim, or nothing when the list failed.
    pub fn claim_names(&self) -> Option<std::collections::HashSet<(String, String)>> {
        let leases = self.leases.found()?;
        let claims = leases.keys().filter(|(_, name)| name.starts_with(crate::claim::lease::PREFIX));
        Some(claims.cloned().collect())
    }

    fn jobs(&self, object: &ObjectRef) -> Option<Vec<(String, JobFacts)>> {
        self.jobs.found().map(|map| map.get(&JobKey::of(object)).cloned().unwrap_or_default())
    }

    fn lease(&self, object: &ObjectRef) -> Option<Reading<LockLease>> {
        let key = (object.namespace.clone(), lock_lease(&object.suffix()));
        self.leases.found().map(|map| map.get(&key).cloned().unwrap_or(Reading::Absent))
    }

    async fn state(&self, api: &Api, object: &ObjectRef) -> Option<StateFacts> {
        let rows = self.state.found()?.get(&object.namespace).map(Vec::as_slice).unwrap_or_default();
        let (base, selected) = base_and_selected(object, rows);
        // A base Secret without the label is not in the list; only a read by name tells it from none.
        let base = match base {
            Some(base) => Reading::Found(base),
            None => read_base(api, object).await,
        };
        Some(StateFacts { base, selected: Reading::Found(selected), content: None, backups: None })
    }
}

/// Reads one named object with its Jobs, then its lock. `Absent` and `Unreadable` are those of the object.
pub async fn read_lock_facts(api: &Api, object: &ObjectRef, live: bool) -> Reading<LockFacts> {
    let (about, jobs) = tokio::join!(read_object(api, object), read_labelled_jobs(api, object));
    let about = match about {
        Reading::Found(about) => about,
        Reading::Absent => return Reading::Absent,
        Reading::Unreadable(gap) => return Reading::Unreadable(gap),
    };
    let jobs = jobs.map(|jobs| jobs_of(jobs, &about.uid));
    let lease_name = lock_lease(&object.suffix());
    let (lease, state) = tokio::join!(read_lock(api, &object.namespace, &lease_name), read_state(api, object));
    Reading::Found(complete(api, Start { object: object.clone(), about, jobs, lease, state, live }).await)
}

/// The same for an object that was listed, with lists that were read before.
pub async fn lock_facts_of_listed(
    api: &Api,
    object: ObjectRef,
    about: ObjectFacts,
    prefetched: &Prefetched,
    live: bool,
) -> LockFacts {
    let jobs = match prefetched.jobs(&object) {
        Some(jobs) => Reading::Found(jobs),
        None => read_labelled_jobs(api, &object).await,
    };
    let jobs = jobs.map(|jobs| jobs_of(jobs, &about.uid));
    let lease = match prefetched.lease(&object) {
        Some(lease) => lease,
        None => read_lock(api, &object.namespace, &lock_lease(&object.suffix())).await,
    };
    let state = match prefetched.state(api, &object).await {
        Some(state) => state,
        None => read_state(api, &object).await,
    };
    complete(api, Start { object, about, jobs, lease, state, live }).await
}

struct Start {
    object: ObjectRef,
    about: ObjectFacts,
    jobs: Reading<Vec<JobFacts>>,
    lease: Reading<LockLease>,
    state: StateFacts,
    live: bool,
}

async fn complete(api: &Api, start: Start) -> LockFacts {
    let Start { object, about, jobs, lease, state, live } = start;
    let holder_pod = match own_holder(&object, &jobs, &lease) {
        Some(pod) => Some(read_pod(api, &object.namespace, &pod).await),
        None => None,
    };
    let mut facts = LockFacts { object, about, jobs, lease, holder_pod, state, around: Surroundings::default(), live };
    surround(api, &mut facts).await;
    facts
}

/// The pod to look at: the one that the lock names, if it is an own pod and not the active Job's.
fn own_holder(object: &ObjectRef, jobs: &Reading<Vec<JobFacts>>, lease: &Reading<LockLease>) -> Option<String> {
    let lease = lease.found().filter(|l| matches!(l.holder, Holder::Id(_)))?;
    let Claimant::Own { pod, runner } = claimant(object, lease) else {
        return None;
    };
    let active = jobs.found().and_then(|j| active_job(j));
    active.is_none_or(|job| job.name != runner.job).then_some(pod)
}

/// What the verdict calls for beside the controller's own three reads.
enum Needs {
    Nothing,
    ActivePods(String),
    Node(String),
    Cleared { pod: String, node: Option<String> },
    Stranger(Option<String>),
}

async fn surround(api: &Api, facts: &mut LockFacts) {
    let needs = match rule(facts) {
        Ruling::Free { .. } | Ruling::EmptyHolder | Ruling::Undetermined(_) => Needs::Nothing,
        Ruling::NotEvaluated { job } => needs_of_waiting(facts, job),
        Ruling::Live { pod } => node_in_doubt(pod).map_or(Needs::Nothing, Needs::Node),
        Ruling::Stale { pod } => match facts.lease.found().map(|l| claimant(&facts.object, l)) {
            Some(Claimant::Own { pod: name, .. }) => {
                Needs::Cleared { pod: name, node: pod.and_then(|p| p.node.clone()) }
            }
            _ => Needs::Nothing,
        },
        Ruling::Foreign(Foreign::Host(host) | Foreign::RunnerOfAnother(host) | Foreign::Lookalike(host)) => {
            Needs::Stranger(Some(host))
        }
        Ruling::Foreign(_) => Needs::Stranger(None),
    };
    match needs {
        Needs::Nothing => {}
        Needs::ActivePods(job) => {
            let namespace = facts.object.namespace.clone();
            let inherits = facts.object.kind != WorkloadKind::Cluster
                && facts.about.jobs.lock_timeout_seconds.is_none()
                && facts.jobs.found().and_then(|j| active_job(j)).is_some_and(|j| j.lock_timeout_seconds.is_none());
            let (pods, ()) = tokio::join!(read_pods_of_job(api, &namespace, &job), async {
                if inherits {
                    read_clusters(api, facts).await;
                }
            });
            facts.around.active_pods = Some(pods);
        }
        Needs::Node(node) => facts.around.holder_node = Some(read_node(api, &node).await),
        Needs::Cleared { pod, node } => surround_stale(api, facts, &pod, node).await,
        Needs::Stranger(host) => surround_foreign(api, facts, host).await,
    }
}

fn needs_of_waiting(facts: &LockFacts, job: &JobFacts) -> Needs {
    let waits = facts.lease.found().is_some_and(|lease| match lease.holder {
        Holder::Nobody => false,
        Holder::Empty => true,
        Holder::Id(_) => match claimant(&facts.object, lease) {
            Claimant::Own { runner, .. } => runner.job != job.name,
            Claimant::Foreign(_) => true,
        },
    });
    if waits { Needs::ActivePods(job.name.clone()) } else { Needs::Nothing }
}

/// The node of a pod about which something suggests that its node does not answer.
fn node_in_doubt(pod: &PodFacts) -> Option<String> {
    let doubt = pod.phase == "Unknown"
        || pod.reason == "NodeLost"
        || pod.deletion_deadline.is_some()
        || (pod.phase == "Running" && pod.ready.as_deref().is_some_and(|r| r != "True"));
    pod.node.clone().filter(|_| doubt)
}

async fn surround_stale(api: &Api, facts: &mut LockFacts, pod: &str, node: Option<String>) {
    let namespace = facts.object.namespace.clone();
    let object = facts.object.clone();
    let has_base = !matches!(facts.state.base, Reading::Absent);
    let (events_and_node, content, backups, ()) = tokio::join!(
        async {
            let events = read_events(api, &namespace, "Pod", pod).await;
            let node = node.or_else(|| events.found().and_then(|e| node_from_events(e)));
            let node = match node {
                Some(node) => Some(read_node(api, &node).await),
                None => None,
            };
            (events, node)
        },
        read_content(api, &object),
        async { if has_base { None } else { Some(read_backup_count(api, &object).await) } },
        read_clusters(api, facts),
    );
    let (events, node) = events_and_node;
    facts.around.holder_events = Some(events);
    facts.around.holder_node = node;
    facts.state.content = Some(content);
    facts.state.backups = backups;
}

/// The state's outline; its payload is read through and not kept.
async fn read_content(api: &Api, object: &ObjectRef) -> Reading<StateContent> {
    read_live(api, object).await.map(|payload| payload.facts.content)
}

/// The node that the scheduler named, for a pod that is gone.
fn node_from_events(events: &[EventFacts]) -> Option<String> {
    let scheduled = events.iter().find(|e| e.reason == "Scheduled")?;
    let (_, node) = scheduled.message.rsplit_once(" to ")?;
    Some(node.trim().to_string()).filter(|n| is_object_name(n))
}

async fn surround_foreign(api: &Api, facts: &mut LockFacts, host: Option<String>) {
    let object = facts.object.clone();
    let has_base = !matches!(facts.state.base, Reading::Absent);
    let (host, content, backups, cluster) = tokio::join!(
        host_signs(api, &object, host, facts.live),
        read_content(api, &object),
        async { if has_base { None } else { Some(read_backup_count(api, &object).await) } },
        async {
            match &facts.about.cluster_name {
                Some(cluster) => Some(read_owner_cluster(api, &object.namespace, cluster).await),
                None => None,
            }
        },
    );
    facts.around.host = host;
    facts.state.content = Some(content);
    facts.state.backups = backups;
    facts.around.owner_cluster = cluster;
}

async fn host_signs(api: &Api, object: &ObjectRef, host: Option<String>, live: bool) -> HostSigns {
    let Some(host) = host else {
        return HostSigns::default();
    };
    if host.parse::<IpAddr>().is_ok() {
        let (pods, nodes) = tokio::join!(read_pods_with_address(api, &host), read_nodes_with_address(api, &host));
        return HostSigns { pods_with_address: Some(pods), nodes_with_address: Some(nodes), ..HostSigns::default() };
    }
    // A host that no object can be named after is not looked for.
    if !is_object_name(&host) {
        return HostSigns::default();
    }
    let may_be_cut = (60..=63).contains(&host.len());
    let namespace = object.namespace.as_str();
    let (pod, node, elsewhere, cut) = tokio::join!(
        read_pod(api, namespace, &host),
        read_node(api, &host),
        // A snapshot rarely holds all namespaces, so there the question has no answer worth a gap.
        async { if live { Some(read_pods_elsewhere(api, namespace, &host).await) } else { None } },
        async { if may_be_cut { Some(read_pods_cut_to(api, namespace, &host).await) } else { None } },
    );
    HostSigns {
        pod: Some(pod),
        node: Some(node),
        pods_elsewhere: elsewhere,
        pods_cut_to_host: cut,
        ..HostSigns::default()
    }
}

/// Whether Kubernetes accepts the text as the name of a pod or node (a DNS-1123 subdomain).
pub(super) fn is_object_name(text: &str) -> bool {
    let label = |l: &str| {
        !l.is_empty()
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    text.len() <= 253 && text.split('.').all(label)
}

/// The Cluster, then the TerraformCluster from which a machine or pool inherits.
async fn read_clusters(api: &Api, facts: &mut LockFacts) {
    let inherits = facts.object.kind != WorkloadKind::Cluster;
    let Some(cluster) = facts.about.cluster_name.clone() else {
        facts.around.terraform_cluster = inherits.then_some(Reading::Absent);
        return;
    };
    let read = read_owner_cluster(api, &facts.object.namespace, &cluster).await;
    if inherits {
        facts.around.terraform_cluster = Some(read_parent(api, &read).await);
    }
    facts.around.owner_cluster = Some(read);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_an_object_can_have_are_looked_for() {
        for (text, ok) in [
            ("app2-tf-runner", true),
            ("node.example.com", true),
            ("DESKTOP-1", false),
            ("bob's laptop", false),
            ("-x", false),
            ("a..b", false),
            ("../../secrets", false),
            ("", false),
        ] {
            assert_eq!(is_object_name(text), ok, "{text}");
        }
    }
}
