//! A claim Lease as plain data, and the operations and the clock that the protocol needs.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use crate::facts::reading::Reading;
use crate::facts::write::WriteFailure;

/// What is being done with a claimed object, as an annotation: `force-unlock`, `restore 41`.
pub const OPERATION: &str = "kubectl.captf.io/operation";
/// DeviceChain's annotation beside its cluster-wide claim.
pub const DCCTL_INSTANCE: &str = "core.devicechain.io/instance";
/// Names of our claims start so; the state suffix follows.
pub const PREFIX: &str = "captf-claim-";

/// The name of the claim of a state suffix.
pub fn claim_lease(suffix: &str) -> String {
    format!("{PREFIX}{suffix}")
}

/// Where a claim lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseKey {
    pub namespace: String,
    pub name: String,
}

/// A claim as read.
#[derive(Debug, Clone, PartialEq)]
pub struct ClaimLease {
    pub key: LeaseKey,
    pub uid: String,
    pub resource_version: String,
    /// `spec.holderIdentity`; absent and empty are the same here.
    pub holder: Option<String>,
    pub duration_seconds: Option<i64>,
    pub acquired: Option<Timestamp>,
    pub renewed: Option<Timestamp>,
    pub transitions: Option<i64>,
    pub operation: Option<String>,
    pub instance: Option<String>,
    /// The whole object as read, so that an update loses nothing of it.
    pub object: Value,
}

/// A claim to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewClaim {
    pub key: LeaseKey,
    pub holder: String,
    pub duration_seconds: i64,
    pub operation: String,
    pub at: Timestamp,
}

/// Lease operations, as the API server offers them.
pub trait Leases: Send + Sync {
    /// GET by name, never from a cache.
    fn read(&self, key: &LeaseKey) -> impl Future<Output = Reading<ClaimLease>> + Send;
    /// POST.
    fn create(&self, claim: &NewClaim) -> impl Future<Output = Result<ClaimLease, WriteFailure>> + Send;
    /// PUT that carries the resourceVersion of `lease`.
    fn update(&self, lease: &ClaimLease) -> impl Future<Output = Result<ClaimLease, WriteFailure>> + Send;
    /// DELETE with UID and resourceVersion of `lease` as preconditions.
    fn delete(&self, lease: &ClaimLease) -> impl Future<Output = Result<(), WriteFailure>> + Send;
}

/// Our own clock. Nothing compares it with another machine's.
pub trait Clock: Send + Sync {
    /// Time since some fixed start; what a lease duration is measured with.
    fn elapsed(&self) -> Duration;
    /// The time of day that is written into the Lease.
    fn now(&self) -> Timestamp;
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send;
}
