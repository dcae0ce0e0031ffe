//! A state lock Lease as the runtime and the controller read it.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::captf::lock_info::LockInfoReading;

/// `spec.holderIdentity`: the runtime tells absent from empty, the controller does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    Nobody,
    /// Present and empty: free for the controller, held by the ID "" for the runtime.
    Empty,
    Id(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockLease {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub created: Option<Timestamp>,
    pub labels: BTreeMap<String, String>,
    pub holder: Holder,
    pub info: LockInfoReading,
}
