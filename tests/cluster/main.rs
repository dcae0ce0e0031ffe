//! Against a real API server, with locks written by real runtimes. Run by `make test`.

#[path = "../ground/mod.rs"]
mod ground;

mod claim;
mod engines;
mod unlock;
