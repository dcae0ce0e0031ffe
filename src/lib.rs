//! Runbooks of Cluster API Provider Terraform (CAPTF) as kubectl commands.
//!
//! The library exists for the tests of this package; it is not a public API.

pub mod bundle;
pub mod captf;
pub mod claim;
pub mod cli;
pub mod cluster;
pub mod engine;
pub mod facts;
pub mod output;
pub mod report;
pub mod runbook;
pub mod snapshot;
