//! Against a real API server, with locks written by real runtimes. Run by `make test`.

mod claim;
mod engines;
#[path = "../ground/mod.rs"]
mod ground;
mod input;
mod lock;
mod lock_real;
mod lock_rights;
mod objects;
mod plugin;
mod unlock;
