//! Reading Kubernetes: the client, raw GET and LIST, and one file per resource family.
//!
//! `read_*` functions do I/O; `facts_from_*` functions are pure. Commands see no difference between
//! a live cluster and a snapshot, because both stand behind the same client.

pub mod access;
pub mod api;
pub mod backups;
pub mod claim;
pub mod client;
pub mod clusters;
pub mod collect;
pub mod events;
pub mod generation;
pub mod job_run;
pub mod job_why;
pub mod jobs;
pub mod json;
pub mod leases;
pub mod lock;
pub mod machine_jobs;
pub mod meter;
pub mod names;
pub mod nodes;
pub mod objects;
pub mod orphans;
pub mod payload;
pub mod plans;
pub mod pods;
pub mod proxy;
pub mod resolve;
pub mod restore;
pub mod restore_log;
pub mod rights;
pub mod run_leases;
pub mod run_logs;
pub mod run_source;
pub mod state;
pub mod state_diff;
pub mod state_instances;
pub mod state_reader;
pub mod unlock;
pub mod unlock_write;
pub mod write;
