//! Everything that the lock rules look at, for one object. `None` = was not needed.

use super::event::EventFacts;
use super::job::JobFacts;
use super::lease::LockLease;
use super::node::NodeFacts;
use super::object::{ObjectFacts, ObjectRef, OwnerClusterFacts};
use super::pod::PodFacts;
use super::reading::{Gap, Reading};
use super::state::{StateContent, StateSecret};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockFacts {
    pub object: ObjectRef,
    pub about: ObjectFacts,
    /// The Jobs that the controller counts: owner labels and the controller reference's UID.
    pub jobs: Reading<Vec<JobFacts>>,
    pub lease: Reading<LockLease>,
    /// The pod that the lock names, read after the Lease, when the own-pod rule accepts the name.
    pub holder_pod: Option<Reading<PodFacts>>,
    pub state: StateFacts,
    pub around: Surroundings,
    /// False for a snapshot, in which the order of reads is unknown.
    pub live: bool,
}

/// State Secrets by name and by label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFacts {
    /// GET of the base Secret by name.
    pub base: Reading<StateSecret>,
    /// LIST by the controller's selector.
    pub selected: Reading<Vec<StateSecret>>,
    /// Read only when the lock is held by somebody who is not alive.
    pub content: Option<Reading<StateContent>>,
    pub backups: Option<Reading<usize>>,
}

/// What is read for evidence, timing and next steps once the verdict is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub active_pods: Option<Reading<Vec<PodFacts>>>,
    pub host: HostSigns,
    pub holder_events: Option<Reading<Vec<EventFacts>>>,
    pub holder_node: Option<Reading<NodeFacts>>,
    pub owner_cluster: Option<Reading<OwnerClusterFacts>>,
    /// The TerraformCluster from which a machine or pool inherits.
    pub terraform_cluster: Option<Reading<ObjectFacts>>,
}

/// Where the host of a foreign lock can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSigns {
    pub pod: Option<Reading<PodFacts>>,
    pub node: Option<Reading<NodeFacts>>,
    /// Pods and nodes with the host as an address, as `Pod team-a/x`.
    /// Pods of that name in other namespaces, written `team-b/x`.
    pub pods_elsewhere: Option<Reading<Vec<String>>>,
    /// Pods whose name was cut to the host: a host name ends at 63 characters.
    pub pods_cut_to_host: Option<Reading<Vec<String>>>,
    pub pods_with_address: Option<Reading<Vec<String>>>,
    pub nodes_with_address: Option<Reading<Vec<String>>>,
}

impl HostSigns {
    /// Pods and nodes that were found to have the host as an address.
    pub fn holders_of_address(&self) -> Vec<&str> {
        let reads = [&self.pods_with_address, &self.nodes_with_address];
        reads.into_iter().flatten().filter_map(Reading::found).flatten().map(String::as_str).collect()
    }
}

impl LockFacts {
    /// The name of the object's state lock Lease.
    pub fn lease_name(&self) -> String {
        crate::captf::names::lock_lease(&self.object.suffix())
    }

    /// Everything that was asked for and could not be read, each once, in the order of the reads.
    pub fn gaps(&self) -> Vec<Gap> {
        let around = &self.around;
        let all = [
            self.jobs.gap(),
            self.lease.gap(),
            gap_of(&self.holder_pod),
            self.state.base.gap(),
            self.state.selected.gap(),
            gap_of(&self.state.content),
            gap_of(&self.state.backups),
            gap_of(&around.active_pods),
            gap_of(&around.host.pod),
            gap_of(&around.host.node),
            gap_of(&around.host.pods_elsewhere),
            gap_of(&around.host.pods_cut_to_host),
            gap_of(&around.host.pods_with_address),
            gap_of(&around.host.nodes_with_address),
            gap_of(&around.holder_events),
            gap_of(&around.holder_node),
            gap_of(&around.owner_cluster),
            gap_of(&around.terraform_cluster),
        ];
        let mut gaps: Vec<Gap> = Vec::new();
        for gap in all.into_iter().flatten() {
            if !gaps.contains(gap) {
                gaps.push(gap.clone());
            }
        }
        gaps
    }
}

fn gap_of<T>(read: &Option<Reading<T>>) -> Option<&Gap> {
    read.as_ref().and_then(Reading::gap)
}
