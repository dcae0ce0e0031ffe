//! Against a real API server, with locks written by real runtimes. Run by `make test`.

#[path = "../ground/mod.rs"]
mod ground;

mod claim;
mod engines;
mod input;
mod jobs;
mod lock;
mod lock_real;
mod lock_rights;
mod objects;
mod plugin;
mod restore;
mod snapshot;
mod unlock;
