//! The command line: arguments in, one report or one error out, rendered in one place.

pub mod app;
pub mod args;
pub mod backups;
pub mod backups_save;
pub mod claim;
pub mod claim_met;
pub mod claim_reclaim;
pub mod claimed;
pub mod collect;
pub mod collect_gather;
pub mod collect_view;
pub mod complete;
pub mod completion;
pub mod confirm;
pub mod error;
pub mod explain;
pub mod force_unlock;
pub mod jobs;
mod jobs_follow;
pub mod jobs_list;
pub mod jobs_logs;
pub mod jobs_timeline;
pub mod jobs_why;
pub mod lock;
pub mod lock_history;
pub mod permissions;
pub mod render;
pub mod restore;
pub mod restore_candidates;
pub mod restore_confirm;
pub mod restore_follow;
pub mod restore_retry;
mod restore_show;
pub mod restore_write;
pub mod runbook;
pub mod scope;
pub mod session;
pub mod state;
pub mod state_render;
pub mod target;
pub mod unlock_args;
pub mod unlock_ask;
pub mod unlock_by_hand;
pub mod unlock_job;
pub mod unlock_lease;
pub mod unlock_login;
pub mod unlock_run;
pub mod version;
pub mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use error::CommandError;

/// Parses the arguments, runs the command, prints an error if there is one.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = args::normalize(args);
    if args.get(1).is_some_and(|first| first == complete::WORD) {
        let words: Vec<String> = args[2..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
        return ExitCode::from(complete::run(&words));
    }
    let matches = match app::Cli::command().try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(e) => {
            // Help and version come this way too; a closed pipe is no reason to complain.
            let _ = e.print();
            return ExitCode::from(u8::try_from(e.exit_code()).unwrap_or(error::USAGE));
        }
    };
    let outcome =
        app::Cli::from_arg_matches(&matches).map_err(|e| CommandError::usage(e.to_string())).and_then(app::run);
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(e) => {
            e.print();
            ExitCode::from(e.exit_code())
        }
    }
}
