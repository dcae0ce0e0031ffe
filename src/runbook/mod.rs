//! Rules and words: from facts to findings, without I/O and without a clock.

pub mod backup_sets;
pub mod backups;
pub mod claim;
pub mod code;
pub mod death;
pub mod finding;
pub mod force_unlock;
#[cfg(test)]
mod force_unlock_tests;
pub mod job_attempts;
pub mod job_case;
pub mod job_deadline;
pub mod job_end;
pub mod job_focus;
pub mod job_image;
pub mod job_memory;
pub mod job_no_pod;
pub mod job_outcome;
pub mod job_outside;
pub mod job_slow;
pub mod job_start;
#[cfg(test)]
mod job_tests;
pub mod job_wait;
pub mod job_why;
pub mod lock_beside;
pub mod lock_foreign;
pub mod lock_history;
pub mod lock_inspect;
pub mod lock_orphan;
#[cfg(test)]
mod lock_tests;
pub mod lock_verdict;
pub mod machine_jobs;
pub mod next_attempt;
pub mod next_run;
#[cfg(test)]
mod next_run_tests;
pub mod policy;
pub mod restore;
pub mod restore_after;
pub mod restore_lock;
pub mod restore_progress;
#[cfg(test)]
mod restore_tests;
pub mod run_lease;
pub mod state_inspect;
pub mod timeline;
pub mod unlock_preflight;
pub mod unlock_signs;
pub mod verdict;
pub mod words;
