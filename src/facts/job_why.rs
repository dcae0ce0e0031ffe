//! Everything that the rules of `jobs why` look at, for one object. `None` = was not needed.

use super::event::EventFacts;
use super::job::JobFacts;
use super::lock::LockFacts;
use super::node::NodeFacts;
use super::object::{ObjectFacts, ObjectRef, OwnerClusterFacts};
use super::pod::PodFacts;
use super::reading::{Gap, Reading};
use super::run::{LogFacts, PlanFacts, RunLease};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobWhyFacts {
    pub object: ObjectRef,
    pub about: ObjectFacts,
    /// The Jobs that the controller counts, with the marks that their pods or annotations give them.
    pub jobs: Reading<Vec<JobFacts>>,
    /// The pods of all of them, newest first.
    pub pods: Reading<Vec<PodFacts>>,
    /// The Jobs that are triaged.
    pub runs: Vec<RunFacts>,
    pub owner_cluster: Option<Reading<OwnerClusterFacts>>,
    /// The TerraformCluster from which a machine or pool inherits.
    pub terraform_cluster: Option<Reading<ObjectFacts>>,
    pub leases: Vec<LeaseWait>,
    /// Jobs of machines and pools for which the cluster waits, a few of them.
    pub machine_jobs: Vec<NamedJob>,
    pub plan: Option<Reading<PlanFacts>>,
    pub lock: Option<LockFacts>,
    pub live: bool,
}

impl JobWhyFacts {
    /// An object of which nothing but itself has been read.
    pub fn of(object: ObjectRef, about: ObjectFacts) -> Self {
        Self {
            object,
            about,
            jobs: Reading::Found(Vec::new()),
            pods: Reading::Found(Vec::new()),
            runs: Vec::new(),
            owner_cluster: None,
            terraform_cluster: None,
            leases: Vec::new(),
            machine_jobs: Vec::new(),
            plan: None,
            lock: None,
            live: true,
        }
    }
}

/// A Job of another object, with that object's facts as far as they are about the Job. `Absent` = no such Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedJob {
    pub job: String,
    pub run: Reading<Box<JobWhyFacts>>,
}

/// One Job that is triaged. It may be gone already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    pub name: String,
    /// The condition that is about it; none for a Job that is only running.
    pub condition: Option<String>,
    /// Events on the Job and on its newest pod, newest first.
    pub events: Reading<Vec<EventFacts>>,
    pub node: Option<Reading<NodeFacts>>,
    /// Events on that node, newest first; read when something was killed.
    pub node_events: Option<Reading<Vec<EventFacts>>>,
    pub log: Option<Reading<LogFacts>>,
    /// Secrets whose values the log could not be searched for, so that it is masked by pattern alone.
    pub not_masked: Vec<Gap>,
    /// Whether the Secret that a container could not find is there now.
    pub missing_now: Option<(String, Reading<()>)>,
}

impl RunFacts {
    /// A Job of which nothing has been read yet, without events.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            condition: None,
            events: Reading::Found(Vec::new()),
            node: None,
            node_events: None,
            log: None,
            not_masked: Vec::new(),
            missing_now: None,
        }
    }
}

/// A lease for which the object waits, and what its holder does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseWait {
    pub name: String,
    pub lease: Reading<RunLease>,
    pub holder: Reading<JobFacts>,
    pub holder_pods: Reading<Vec<PodFacts>>,
}
