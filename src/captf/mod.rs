//! What CAPTF itself defines: kinds, names, hashes, the own-pod rule, lock-info and backoff.
//!
//! Everything here is a pure function over plain values and reproduces the controller's own
//! arithmetic. Nothing here reads a cluster or knows about findings.

pub mod backoff;
pub mod hash;
pub mod image;
pub mod keys;
pub mod kind;
pub mod lock_info;
pub mod mask;
pub mod names;
pub mod own_pod;
pub mod result;
pub mod run_log;
#[cfg(test)]
mod run_log_tests;
pub mod time;
