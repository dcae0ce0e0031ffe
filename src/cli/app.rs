//! The list of commands, and the one match that runs them.

use clap::{Parser, Subcommand};

use super::args::GlobalArgs;
use super::collect::CollectArgs;
use super::completion::CompletionArgs;
use super::error::{CommandError, EXIT_CODES};
use super::explain::ExplainArgs;
use super::lock::{LockArgs, LockCommand};
use super::permissions::PermissionsArgs;
use super::runbook::RunbookArgs;
use super::version::VersionArgs;
use super::{collect, completion, explain, lock, lock_history, permissions, runbook, version};

/// Runbooks of Cluster API Provider Terraform (CAPTF) as commands
///
/// Each command reads the cluster (or a snapshot of it), decides as CAPTF's own controller would, and
/// prints findings and next steps. Flags go after the plugin's name: `kubectl captf -n team-a lock list`.
#[derive(Debug, Parser)]
#[command(name = "kubectl-captf", bin_name = "kubectl captf", disable_version_flag = true, after_help = EXIT_CODES,
          arg_required_else_help = true, max_term_width = 100, subcommand_required = true)]
pub struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,

    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge Terraform state locks: free, live, stale or foreign (reads only)
    Lock(LockArgs),
    Explain(ExplainArgs),
    /// List and print the embedded runbooks (needs no cluster)
    Runbook(RunbookArgs),
    Version(VersionArgs),
    Completion(CompletionArgs),
    Permissions(PermissionsArgs),
    Collect(CollectArgs),
}

/// Runs the command and returns its exit code.
pub fn run(cli: Cli) -> Result<u8, CommandError> {
    let global = &cli.global;
    match &cli.command {
        Command::Lock(args) => match &args.command {
            LockCommand::Inspect(args) => lock::run_inspect(global, args),
            LockCommand::List(args) => lock::run_list(global, args),
            LockCommand::History(args) => lock_history::run(global, args),
        },
        Command::Explain(args) => explain::run(global, args),
        Command::Runbook(args) => runbook::run(global, args),
        Command::Version(args) => version::run(global, args),
        Command::Completion(args) => completion::run(args),
        Command::Permissions(args) => permissions::run(global, args),
        Command::Collect(args) => collect::run(global, args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn whole_command_lines_are_valid_or_invalid() {
        let parse = |line: &str| {
            let args = super::super::args::normalize(line.split(' ').map(std::ffi::OsString::from));
            Cli::try_parse_from(args)
        };
        for line in [
            "kubectl-captf lock inspect",
            "kubectl-captf lock inspect terraformcluster/prod -n team-a",
            "kubectl-captf -n team-a lock inspect terraformcluster prod",
            "kubectl-captf lock inspect tfc/prod tfm/web -o json -q",
            "kubectl-captf lock inspect -A -l team=a --watch",
            "kubectl-captf lock list --all --no-headers -v 6",
            "kubectl-captf lock inspect --from dump.tar.gz --now 2026-01-10T08:00:00Z tfc/prod",
            "kubectl-captf lock history tfc/prod --as bob --as-group a --as-group b --request-timeout 5s",
            "kubectl-captf explain lock-stale",
            "kubectl-captf runbook show stale-lock",
            "kubectl-captf version --client -o json",
        ] {
            if let Err(e) = parse(line) {
                panic!("{line}: {e}");
            }
        }
        for line in [
            "kubectl-captf lock",
            "kubectl-captf lock inspect --now 2026-01-10T08:00:00Z",
            "kubectl-captf lock inspect -n a -A",
            "kubectl-captf lock inspect -o html",
            "kubectl-captf lock inspect --request-timeout soon",
            "kubectl-captf lock history",
            "kubectl-captf unlock",
            "kubectl-captf explain",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
