//! A pod and its containers, as far as they tell whether a process lives and how it died.

use jiff::Timestamp;

use super::run::ResultReading;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodFacts {
    pub name: String,
    pub uid: String,
    pub created: Option<Timestamp>,
    pub phase: String,
    pub reason: String,
    pub message: String,
    /// `deletionTimestamp`: the end of the grace period, not the time of the request.
    pub deletion_deadline: Option<Timestamp>,
    pub grace_seconds: Option<i64>,
    pub node: Option<String>,
    pub ready: Option<String>,
    pub disruption: Option<Disruption>,
    pub job: Option<String>,
    pub containers: Vec<ContainerFacts>,
    /// Condition PodScheduled, if it is not True.
    pub unscheduled: Option<Disruption>,
    /// The runner's result document, in the termination message of `source`.
    pub result: ResultReading,
    /// Secrets from which `source` takes its credentials.
    pub credentials: Vec<String>,
}

/// A condition of a pod: DisruptionTarget with status True, or PodScheduled with status False.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption {
    pub reason: String,
    pub message: String,
    pub at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerFacts {
    pub name: String,
    pub init: bool,
    /// An init container that keeps running beside the others (`restartPolicy: Always`).
    pub sidecar: bool,
    pub image: Option<String>,
    /// The image by digest, as the kubelet resolved it.
    pub image_id: Option<String>,
    pub memory_limit: Option<String>,
    pub state: ContainerState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContainerState {
    NotReported,
    Waiting {
        reason: String,
        message: String,
    },
    Running {
        started: Option<Timestamp>,
    },
    Terminated {
        reason: String,
        exit_code: i64,
        started: Option<Timestamp>,
        finished: Option<Timestamp>,
        /// The kubelet's own words, kept only where the container could not be started at all.
        message: String,
    },
}

impl PodFacts {
    /// Phase exactly `Succeeded` or `Failed`; everything else counts as alive.
    pub fn has_ended(&self) -> bool {
        matches!(self.phase.as_str(), "Succeeded" | "Failed")
    }

    /// When `source` started, if it ever did.
    pub fn source_started(&self) -> Option<Timestamp> {
        match &self.source()?.state {
            ContainerState::Running { started } | ContainerState::Terminated { started, .. } => *started,
            _ => None,
        }
    }

    /// The main container of a runner pod.
    pub fn source(&self) -> Option<&ContainerFacts> {
        self.containers.iter().find(|c| !c.init && c.name == "source")
    }
}
