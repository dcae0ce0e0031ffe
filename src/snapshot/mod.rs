//! Snapshots: the Kubernetes API answered from files instead of a cluster.
//!
//! Owns reading YAML, JSON and archives, deciding what the files could have held, and the in-process
//! service behind a `kube::Client`. What is not known to be absent is never answered as absent.
//! Commands see only [`load()`] and the client; nothing here writes, and nothing here uses the network.

mod answer;
mod archive;
mod clock;
mod collect;
mod coverage;
mod error;
mod events;
mod kinds;
mod load;
mod logs;
mod parse;
mod paths;
mod selected;
mod selector;
mod service;
mod split;
mod stack;
mod store;
mod table;
mod value;

#[cfg(test)]
mod tests;

pub use error::{Problem, SnapshotError};
pub use load::{SnapshotSource, load, load_bytes};
pub use store::Snapshot;
