//! Against a real API server, with locks written by real runtimes. Run by `make test`.

mod collect;
mod completion;
#[path = "../ground/mod.rs"]
mod ground;
mod input;
mod lock;
mod lock_real;
mod lock_rights;
mod objects;
mod permissions;
mod plugin;
