//! Reading Kubernetes: the client, raw GET and LIST, and one file per resource family.
//!
//! `read_*` functions do I/O; `facts_from_*` functions are pure. Commands see no difference between
//! a live cluster and a snapshot, because both stand behind the same client.

pub mod access;
pub mod api;
pub mod client;
pub mod clusters;
pub mod collect;
pub mod events;
pub mod generation;
pub mod jobs;
pub mod json;
pub mod leases;
pub mod lock;
pub mod meter;
pub mod names;
pub mod nodes;
pub mod objects;
pub mod orphans;
pub mod pods;
pub mod resolve;
pub mod state;
pub mod state_reader;
