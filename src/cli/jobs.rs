//! `jobs`: the arguments that its commands share.

use clap::{Subcommand, ValueEnum};

use super::error::CommandError;
use super::jobs_list::JobsListArgs;
use super::jobs_logs::JobsLogsArgs;
use super::jobs_timeline::JobsTimelineArgs;
use super::jobs_why::JobsWhyArgs;
use crate::captf::kind::{NamedKind, WorkloadKind};
use crate::captf::names::Operation;

/// Find out why Jobs fail, wait or take long
#[derive(Debug, clap::Args)]
pub struct JobsArgs {
    #[command(subcommand)]
    pub command: JobsCommand,
}

#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    Why(JobsWhyArgs),
    List(JobsListArgs),
    Logs(JobsLogsArgs),
    Timeline(JobsTimelineArgs),
}

/// An operation as the alerts and the Jobs' labels write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OpArg {
    Apply,
    Destroy,
    Refresh,
    Drift,
    Restore,
    Plan,
}

/// The operations that were named.
pub fn operations(args: &[OpArg]) -> Vec<Operation> {
    let of = |op: &OpArg| match op {
        OpArg::Apply => Operation::Apply,
        OpArg::Destroy => Operation::Destroy,
        OpArg::Refresh => Operation::Refresh,
        OpArg::Drift => Operation::Drift,
        OpArg::Restore => Operation::Restore,
        OpArg::Plan => Operation::Plan,
    };
    args.iter().map(of).collect()
}

/// The kinds that `--kind` names, in any form that names a kind elsewhere.
pub fn kinds(words: &[String]) -> Result<Vec<WorkloadKind>, CommandError> {
    words
        .iter()
        .flat_map(|w| w.split(','))
        .map(|word| match NamedKind::parse(word) {
            Some(kind) => Ok(super::scope::workload_of(kind)),
            None => Err(CommandError::usage(format!("`{word}` is not a kind that CAPTF runs Jobs for"))
                .hint("kinds: TerraformCluster, TerraformMachine, TerraformMachinePool")),
        })
        .collect()
}
