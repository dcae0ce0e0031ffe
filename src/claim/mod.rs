//! The operator claim: one Lease per Terraform object, so that two people on call learn of each other.
//!
//! Pure protocol over a small trait of Lease operations with an injected clock; the Kubernetes half is
//! `cluster/claim.rs`. A claim is a promise between people who use this tool. It stops no controller.

pub mod holder;
pub mod lease;
#[cfg(test)]
mod properties;
pub mod protocol;
pub mod reclaim;
#[cfg(test)]
mod simulation;

pub use holder::HolderId;
pub use lease::{ClaimLease, Clock, LeaseKey, Leases, NewClaim};
pub use protocol::{Held, Lost, Released, TakeError, Terms};
