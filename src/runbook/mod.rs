//! Rules and words: from facts to findings, without I/O and without a clock.

pub mod claim;
pub mod code;
pub mod death;
pub mod finding;
pub mod force_unlock;
#[cfg(test)]
mod force_unlock_tests;
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
pub mod unlock_signs;
pub mod verdict;
pub mod words;
