//! Which rights each command needs: the one table from which help, Roles, checks and `deploy/rbac` are made.
//!
//! Keyed by the path of a command. A test fails when a command of the tree has no row.

use super::Level::{self, Operator, Unlocker, Viewer};

const TERRAFORM: &str = "infrastructure.cluster.x-k8s.io";
const CAPI: &str = "cluster.x-k8s.io";

/// Whether a command does its job without the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    Needed,
    /// It makes an answer fuller, or only some arguments need it.
    Better,
}

/// Verbs on one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    pub group: &'static str,
    /// With a subresource as RBAC writes it: `pods/log`.
    pub resource: &'static str,
    pub verbs: &'static [&'static str],
    pub namespaced: bool,
    pub need: Need,
}

impl Right {
    /// `leases.coordination.k8s.io`, `pods/log`.
    pub fn qualified(&self) -> String {
        match (self.group, self.resource.split_once('/')) {
            ("", _) => self.resource.to_string(),
            (group, None) => format!("{}.{group}", self.resource),
            (group, Some((plural, sub))) => format!("{plural}.{group}/{sub}"),
        }
    }
}

/// A command with its rights.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub command: &'static str,
    pub level: Level,
    pub rights: &'static [&'static [Right]],
}

const fn needs(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Right {
    Right { group, resource, verbs, namespaced: true, need: Need::Needed }
}

const fn better(right: Right) -> Right {
    Right { need: Need::Better, ..right }
}

const fn anywhere(right: Right) -> Right {
    Right { namespaced: false, ..right }
}

/// The three kinds that run Jobs.
const OBJECTS: &[Right] = &[
    needs(TERRAFORM, "terraformclusters", &["get", "list"]),
    needs(TERRAFORM, "terraformmachines", &["get", "list"]),
    needs(TERRAFORM, "terraformmachinepools", &["get", "list"]),
];
/// The same for one object that is named; the lists only find names that are close to a mistyped one.
const OBJECT: &[Right] = &[
    needs(TERRAFORM, "terraformclusters", &["get"]),
    needs(TERRAFORM, "terraformmachines", &["get"]),
    needs(TERRAFORM, "terraformmachinepools", &["get"]),
    better(needs(TERRAFORM, "terraformclusters", &["list"])),
    better(needs(TERRAFORM, "terraformmachines", &["list"])),
    better(needs(TERRAFORM, "terraformmachinepools", &["list"])),
];
/// The Cluster, for whether it is paused; Machines and MachinePools only when they are named.
const OWNERS: &[Right] = &[
    needs(CAPI, "clusters", &["get"]),
    better(needs(CAPI, "machines", &["get"])),
    better(needs(CAPI, "machinepools", &["get"])),
];
/// Owners only when they are named.
const NAMED_OWNERS: &[Right] = &[
    better(needs(CAPI, "clusters", &["get"])),
    better(needs(CAPI, "machines", &["get"])),
    better(needs(CAPI, "machinepools", &["get"])),
];
/// What a lock is judged by.
const LOCKS: &[Right] = &[
    needs("batch", "jobs", &["list"]),
    needs("coordination.k8s.io", "leases", &["get", "list"]),
    needs("", "pods", &["get", "list"]),
    needs("", "secrets", &["get", "list"]),
    needs("", "events", &["list"]),
    better(anywhere(needs("", "nodes", &["get", "list"]))),
    // A holder that is an address is looked for in every namespace.
    better(anywhere(needs("", "pods", &["list"]))),
    better(anywhere(needs("", "namespaces", &["get"]))),
];
const HISTORY: &[Right] = &[
    needs("batch", "jobs", &["list"]),
    needs("coordination.k8s.io", "leases", &["get"]),
    needs("", "pods", &["list"]),
    needs("", "events", &["list"]),
    better(anywhere(needs("", "namespaces", &["get"]))),
];
/// Lists for a fleet; and the events on nodes, which are in namespace `default`.
const RUNS: &[Right] = &[better(needs(CAPI, "clusters", &["list"])), better(anywhere(needs("", "events", &["list"])))];
const LOGS: &[Right] = &[needs("", "pods/log", &["get"])];
const STATE: &[Right] = &[needs("", "secrets", &["get", "list"])];
/// A claim that is held while something is changed.
const CLAIM: &[Right] = &[needs("coordination.k8s.io", "leases", &["get", "list", "create", "update", "delete"])];
const SEE_CLAIMS: &[Right] = &[needs("coordination.k8s.io", "leases", &["get", "list"])];
const RESTORE: &[Right] = &[
    needs(TERRAFORM, "terraformclusters", &["patch"]),
    needs(TERRAFORM, "terraformmachines", &["patch"]),
    needs(TERRAFORM, "terraformmachinepools", &["patch"]),
];
/// The short-lived token of the ServiceAccount that the object's Jobs run as.
const TOKEN: &[Right] = &[needs("", "serviceaccounts", &["get"]), needs("", "serviceaccounts/token", &["create"])];
/// Plans that wait for approval.
const PLANS: &[Right] = &[better(needs(TERRAFORM, "terraformplans", &["get", "list"]))];
/// The audit event, and the Job of `--method job`.
const UNLOCK: &[Right] = &[
    better(needs("", "events", &["create"])),
    better(needs("batch", "jobs", &["get", "create", "delete"])),
    better(needs("", "pods/log", &["get"])),
];
const COLLECT: &[Right] = &[
    needs("batch", "jobs", &["list"]),
    needs("coordination.k8s.io", "leases", &["list"]),
    needs("", "pods", &["list"]),
    needs("", "secrets", &["list"]),
    needs("", "events", &["list"]),
    better(needs(TERRAFORM, "terraformplans", &["list"])),
    better(needs(CAPI, "clusters", &["get", "list"])),
    better(needs(CAPI, "machines", &["get", "list"])),
    better(needs(CAPI, "machinepools", &["get", "list"])),
    better(needs("", "pods/log", &["get"])),
    better(anywhere(needs("", "nodes", &["list"]))),
];

const fn row(command: &'static str, level: Level, rights: &'static [&'static [Right]]) -> Row {
    Row { command, level, rights }
}

pub const ROWS: &[Row] = &[
    row("lock inspect", Viewer, &[OBJECTS, OWNERS, LOCKS]),
    row("lock list", Viewer, &[OBJECTS, OWNERS, LOCKS]),
    row("lock history", Viewer, &[OBJECT, NAMED_OWNERS, HISTORY]),
    row("explain", Viewer, &[]),
    row("runbook list", Viewer, &[]),
    row("runbook show", Viewer, &[]),
    row("version", Viewer, &[]),
    row("completion", Viewer, &[]),
    row("permissions", Viewer, &[]),
    row("permissions check", Viewer, &[]),
    row("jobs why", Viewer, &[OBJECTS, OWNERS, LOCKS, PLANS, RUNS, LOGS]),
    row("jobs list", Viewer, &[OBJECTS, OWNERS, HISTORY]),
    row("jobs logs", Viewer, &[OBJECTS, OWNERS, HISTORY, LOGS]),
    row("jobs timeline", Viewer, &[OBJECTS, OWNERS, HISTORY, STATE]),
    row("backups list", Viewer, &[OBJECTS, OWNERS, STATE]),
    row("backups verify", Viewer, &[OBJECTS, OWNERS, STATE]),
    row("backups diff", Viewer, &[OBJECTS, OWNERS, STATE]),
    row("backups save", Viewer, &[OBJECTS, OWNERS, STATE]),
    row("state inspect", Viewer, &[OBJECTS, OWNERS, STATE]),
    row("restore", Operator, &[OBJECTS, OWNERS, LOCKS, RESTORE, CLAIM]),
    row("restore status", Viewer, &[OBJECTS, OWNERS, LOCKS, LOGS]),
    row("restore retry", Operator, &[OBJECTS, OWNERS, LOCKS, RESTORE, CLAIM]),
    row("claim list", Viewer, &[OBJECTS, SEE_CLAIMS]),
    row("claim inspect", Viewer, &[OBJECTS, OWNERS, SEE_CLAIMS]),
    row("claim reclaim", Operator, &[OBJECTS, OWNERS, CLAIM]),
    row("lock force-unlock", Unlocker, &[OBJECTS, OWNERS, LOCKS, CLAIM, TOKEN, UNLOCK]),
    row("collect", Viewer, &[OBJECTS, OWNERS, COLLECT]),
];

/// The rows of the commands that exist.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    ROWS.iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// The path of every command that can be run.
    pub fn paths() -> Vec<String> {
        fn walk(command: &clap::Command, path: &str, all: &mut Vec<String>) {
            for next in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
                let path = format!("{path} {}", next.get_name()).trim().to_string();
                if !next.is_subcommand_required_set() && !path.is_empty() {
                    all.push(path.clone());
                }
                walk(next, &path, all);
            }
        }
        let mut all = Vec::new();
        walk(&crate::cli::app::Cli::command(), "", &mut all);
        all
    }

    #[test]
    fn every_command_has_one_row_and_every_row_its_command() {
        let commands = paths();
        assert!(commands.iter().any(|c| c == "lock inspect") && !commands.iter().any(|c| c == "lock"), "{commands:?}");
        for command in &commands {
            assert_eq!(ROWS.iter().filter(|r| r.command == command).count(), 1, "add one row to ROWS for `{command}`");
        }
        for row in rows() {
            assert!(commands.iter().any(|c| c == row.command), "`{}` is no command", row.command);
        }
    }

    #[test]
    fn a_viewer_only_reads() {
        for row in ROWS.iter().filter(|r| r.level == Viewer) {
            for right in row.rights.iter().copied().flatten() {
                assert!(right.verbs.iter().all(|v| ["get", "list"].contains(v)), "{}: {right:?}", row.command);
            }
        }
    }
}
