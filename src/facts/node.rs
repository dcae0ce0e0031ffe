//! A node, as far as it tells whether a process on it may still run.

use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeFacts {
    pub name: String,
    /// Status of condition Ready: `True`, `False`, `Unknown`, or empty when not set.
    pub ready: String,
    pub last_heartbeat: Option<Timestamp>,
    pub unreachable_taint: bool,
    pub addresses: Vec<String>,
}

impl NodeFacts {
    /// Whether the control plane has lost contact with the node.
    pub fn is_lost(&self) -> bool {
        self.unreachable_taint || self.ready == "Unknown"
    }
}
