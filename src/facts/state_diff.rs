//! What one state holds that another does not: resource addresses only.

/// A managed resource instance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// The resource type, by which addresses are grouped.
    pub kind: String,
    pub address: String,
}

/// A resource with another number of instances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountChange {
    pub kind: String,
    /// The resource's address without an instance key.
    pub resource: String,
    /// Instances before and after a restore.
    pub before: u64,
    pub after: u64,
}

/// What a restore would change in what Terraform knows. Nothing of it says that a thing in the cloud goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateDiff {
    /// In the present state only: forgotten by a restore, and running on.
    pub forgotten: Vec<Address>,
    /// In the backup only.
    pub returning: Vec<Address>,
    /// In both, with another provider ID.
    pub other_id: Vec<Address>,
    pub counts: Vec<CountChange>,
    /// In both, with the same ID or without one.
    pub same: u64,
}

impl StateDiff {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.forgotten.is_empty() && self.returning.is_empty() && self.other_id.is_empty() && self.counts.is_empty()
    }
}
