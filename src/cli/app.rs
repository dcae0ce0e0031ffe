//! The list of commands, and the one match that runs them.

use clap::{Parser, Subcommand};

use super::args::GlobalArgs;
use super::backups::{BackupsArgs, BackupsCommand};
use super::claim::{ClaimArgs, ClaimCommand};
use super::collect::CollectArgs;
use super::completion::CompletionArgs;
use super::error::{CommandError, EXIT_CODES};
use super::explain::ExplainArgs;
use super::jobs::{JobsArgs, JobsCommand};
use super::lock::{LockArgs, LockCommand};
use super::permissions::PermissionsArgs;
use super::restore::RestoreArgs;
use super::runbook::RunbookArgs;
use super::state::{StateArgs, StateCommand};
use super::version::VersionArgs;
use super::{
    backups, backups_save, claim, claim_reclaim, collect, completion, explain, force_unlock, jobs_list, jobs_logs,
    jobs_timeline, jobs_why, lock, lock_history, permissions, restore, runbook, state, version,
};

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
    /// Judge Terraform state locks, and release one by hand
    Lock(LockArgs),
    /// List, verify, compare and save backups of states (reads only)
    Backups(BackupsArgs),
    Restore(RestoreArgs),
    /// Judge a state as the controller's reader sees it (reads only)
    State(StateArgs),
    /// Find out why Jobs fail, wait or take long (reads only)
    Jobs(JobsArgs),
    /// See who works on an object through this plugin, and free what a dead run left behind
    Claim(ClaimArgs),
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
            LockCommand::ForceUnlock(args) => force_unlock::run(global, args),
        },
        Command::Claim(args) => match &args.command {
            ClaimCommand::List(args) => claim::run_list(global, args),
            ClaimCommand::Inspect(args) => claim::run_inspect(global, args),
            ClaimCommand::Reclaim(args) => claim_reclaim::run_reclaim(global, args),
        },
        Command::Backups(args) => match &args.command {
            BackupsCommand::List(args) => backups::run_list(global, args),
            BackupsCommand::Verify(args) => backups::run_verify(global, args),
            BackupsCommand::Diff(args) => backups::run_diff(global, args),
            BackupsCommand::Save(args) => backups_save::run(global, args),
        },
        Command::Restore(args) => restore::run(global, args),
        Command::State(args) => match &args.command {
            StateCommand::Inspect(args) => state::run_inspect(global, args),
        },
        Command::Jobs(args) => match &args.command {
            JobsCommand::Why(args) => jobs_why::run(global, args),
            JobsCommand::List(args) => jobs_list::run(global, args),
            JobsCommand::Logs(args) => jobs_logs::run(global, args),
            JobsCommand::Timeline(args) => jobs_timeline::run(global, args),
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
            "kubectl-captf jobs why -A --op drift --kind TerraformMachine",
            "kubectl-captf jobs why tfm web tfc/prod -w",
            "kubectl-captf jobs list tfc/prod --op apply --op plan -o wide",
            "kubectl-captf jobs logs tfc prod -f --tail 20 --since 1h",
            "kubectl-captf jobs logs tfc/prod --job captf-c-prod-apply-a1-4f88b3 --raw",
            "kubectl-captf jobs logs --op apply --previous-attempts tfc prod",
            "kubectl-captf jobs timeline cluster prod",
            "kubectl-captf explain lock-stale",
            "kubectl-captf backups list tfc/prod -o wide",
            "kubectl-captf backups verify tfc prod 41",
            "kubectl-captf backups diff tfc/prod 41 52",
            "kubectl-captf backups save tfc/prod 41 --to f",
            "kubectl-captf backups save tfc/prod --live --secrets --to f",
            "kubectl-captf restore 41",
            "kubectl-captf restore 41 tfc/prod --dry-run",
            "kubectl-captf restore 41 tfc prod --dry-run=server --wait=false",
            "kubectl-captf restore 41 tfc/prod --yes-forget-resources=4 --timeout 5m",
            "kubectl-captf restore status tfc/prod --wait",
            "kubectl-captf restore retry tfc/prod --serial=41",
            "kubectl-captf state inspect tfc/prod",
            "kubectl-captf claim list -A",
            "kubectl-captf lock force-unlock tfc prod -n team-a --dry-run",
            "kubectl-captf lock force-unlock tfc/prod --lock-id x --holder unknown --holder-is-dead --reason r",
            "kubectl-captf lock force-unlock tfc/prod --method lease --observe 60s --without-claim",
            "kubectl-captf claim inspect tfc prod -n team-a",
            "kubectl-captf claim reclaim --lease dcctl -n dc-k8s-system",
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
            "kubectl-captf jobs",
            "kubectl-captf jobs why --op sleep",
            "kubectl-captf jobs list",
            "kubectl-captf jobs logs",
            "kubectl-captf jobs logs tfc/prod --since soon",
            "kubectl-captf jobs logs tfc/prod -f --previous-attempts",
            "kubectl-captf jobs logs tfc/prod --job x --op apply",
            "kubectl-captf unlock",
            "kubectl-captf claim inspect",
            "kubectl-captf lock force-unlock",
            "kubectl-captf lock force-unlock tfc/prod --yes",
            "kubectl-captf lock force-unlock tfc/prod --lock-id x",
            "kubectl-captf lock force-unlock tfc/prod --lock-id x --holder unknown --holder-is-dead",
            "kubectl-captf lock force-unlock tfc/prod --holder-is-dead",
            "kubectl-captf lock force-unlock tfc/prod --credentials caller --service-account x",
            "kubectl-captf claim reclaim tfc/prod --lease dcctl",
            "kubectl-captf claim reclaim tfc/prod --yes",
            "kubectl-captf explain",
            "kubectl-captf backups",
            "kubectl-captf backups save tfc/prod 41",
            "kubectl-captf restore",
            "kubectl-captf restore 41 --dry-run=maybe",
            "kubectl-captf restore status",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
