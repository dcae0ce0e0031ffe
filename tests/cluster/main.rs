//! Against a real API server, with locks written by real runtimes. Run by `make test`.

mod collect;
mod completion;
#[path = "../ground/mod.rs"]
mod ground;

mod claim;
mod engines;
mod input;
mod jobs;
mod jobs_docker;
mod jobs_logs;
mod kubelet;
mod lock;
mod lock_real;
mod lock_rights;
mod objects;
mod permissions;
mod plugin;
mod proxy;
mod restore;
mod snapshot;
mod unlock;
