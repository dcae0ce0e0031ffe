//! Plain data: what was seen, or why it could not be seen.
//!
//! Facts sit between readers and rules. No type here holds a Secret value, a token or state content.

pub mod backup;
pub mod event;
pub mod job;
pub mod job_why;
pub mod lease;
pub mod lock;
pub mod node;
pub mod object;
pub mod pod;
pub mod reading;
pub mod restore;
pub mod run;
pub mod state;
pub mod state_diff;
pub mod unlock;
pub mod write;

pub use reading::{Gap, GapReason, Reading};
