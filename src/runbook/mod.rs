//! Rules and words: from facts to findings, without I/O and without a clock.

pub mod backup_sets;
pub mod backups;
pub mod code;
pub mod death;
pub mod finding;
pub mod lock_beside;
pub mod lock_foreign;
pub mod lock_history;
pub mod lock_inspect;
pub mod lock_orphan;
#[cfg(test)]
mod lock_tests;
pub mod lock_verdict;
pub mod next_run;
pub mod policy;
pub mod restore;
pub mod restore_after;
pub mod restore_lock;
pub mod restore_progress;
#[cfg(test)]
mod restore_tests;
pub mod state_inspect;
pub mod verdict;
pub mod words;
