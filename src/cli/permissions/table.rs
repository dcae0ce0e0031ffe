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
/// Whether the object exists, where there is no claim on it.
const SEE_OBJECT: &[Right] = &[
    better(needs(TERRAFORM, "terraformclusters", &["get"])),
    better(needs(TERRAFORM, "terraformmachines", &["get"])),
    better(needs(TERRAFORM, "terraformmachinepools", &["get"])),
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
    NAMESPACE,
];
/// Tells a namespace that does not exist from an empty one.
const NAMESPACE: Right = better(anywhere(needs("", "namespaces", &["get"])));
/// What the judgement of a single lock, and the search for its holder, rest on.
const HOLDER: &[Right] = &[
    needs("batch", "jobs", &["list"]),
    needs("", "pods", &["get", "list"]),
    better(anywhere(needs("", "nodes", &["get", "list"]))),
    better(anywhere(needs("", "pods", &["list"]))),
    NAMESPACE,
];
const HISTORY: &[Right] = &[
    needs("batch", "jobs", &["list"]),
    needs("coordination.k8s.io", "leases", &["get"]),
    needs("", "pods", &["list"]),
    needs("", "events", &["list"]),
    NAMESPACE,
];
/// The runs of an object.
const RUNS: &[Right] = &[needs("batch", "jobs", &["list"]), needs("", "pods", &["list"]), NAMESPACE];
const EVENTS: &[Right] = &[needs("", "events", &["list"])];
/// Lists for a fleet; and the events on nodes, which are in namespace `default`.
const FLEET: &[Right] = &[
    better(needs(CAPI, "clusters", &["list"])),
    better(needs("coordination.k8s.io", "leases", &["list"])),
    better(needs(TERRAFORM, "terraformplans", &["list"])),
    better(anywhere(needs("", "events", &["list"]))),
];
const LOGS: &[Right] = &[needs("", "pods/log", &["get"])];
/// What only some causes lead to: a lease that is waited for with the Job that holds it, a lock, an object that a
/// container lacks, credentials that are masked in a log, the node of a pod that was ended from outside.
const CAUSES: &[Right] = &[
    better(needs("batch", "jobs", &["get"])),
    better(needs("coordination.k8s.io", "leases", &["get"])),
    better(needs("", "pods", &["get"])),
    better(needs("", "secrets", &["get", "list"])),
    better(needs("", "configmaps", &["get"])),
    better(anywhere(needs("", "nodes", &["get", "list"]))),
    better(anywhere(needs("", "pods", &["list"]))),
];
/// Credentials, so that they are masked in a log.
const MASKING: &[Right] = &[better(needs("", "secrets", &["get"]))];
/// What the controller's reason for a state rests on: an unfinished Job, and a lock with its holder's pod.
const REASONS: &[Right] = &[
    needs("batch", "jobs", &["list"]),
    needs("coordination.k8s.io", "leases", &["get"]),
    better(needs("", "pods", &["get"])),
];
/// The steps of a Job that runs, for whoever waits for it.
const STEPS: &[Right] = &[better(needs("", "pods/log", &["get"]))];
/// Why a restore failed is told as `jobs why` tells it.
const FAILED: &[Right] = &[better(needs("", "events", &["list"]))];
const STATE: &[Right] = &[needs("", "secrets", &["get", "list"])];
/// The payloads only for sizes.
const BACKUPS: &[Right] = &[needs("", "secrets", &["list"]), better(needs("", "secrets", &["get"]))];
/// A claim that is held while something is changed.
const CLAIM: &[Right] = &[needs("coordination.k8s.io", "leases", &["get", "create", "update", "delete"])];
const FREE_CLAIM: &[Right] = &[needs("coordination.k8s.io", "leases", &["get", "update", "delete"])];
/// One Lease by its name.
const LEASE: &[Right] = &[needs("coordination.k8s.io", "leases", &["get"])];
/// All claims, and the objects that they are on.
const SEE_CLAIMS: &[Right] = &[
    needs("coordination.k8s.io", "leases", &["list"]),
    needs(TERRAFORM, "terraformclusters", &["list"]),
    needs(TERRAFORM, "terraformmachines", &["list"]),
    needs(TERRAFORM, "terraformmachinepools", &["list"]),
];
const RESTORE: &[Right] = &[
    needs(TERRAFORM, "terraformclusters", &["patch"]),
    needs(TERRAFORM, "terraformmachines", &["patch"]),
    needs(TERRAFORM, "terraformmachinepools", &["patch"]),
];
/// The short-lived token of the ServiceAccount that the object's Jobs run as.
const TOKEN: &[Right] = &[better(needs("", "serviceaccounts/token", &["create"]))];
/// Plans that wait for approval.
const PLANS: &[Right] = &[better(needs(TERRAFORM, "terraformplans", &["get"]))];
/// The audit event, and the Job of `--method job`.
const UNLOCK: &[Right] =
    &[better(needs("", "events", &["create"])), better(needs("batch", "jobs", &["get", "create", "delete"]))];
const COLLECT: &[Right] = &[
    needs("batch", "jobs", &["list"]),
    needs("coordination.k8s.io", "leases", &["list"]),
    needs("", "pods", &["list"]),
    needs("", "secrets", &["list"]),
    needs("", "events", &["list"]),
    better(needs(TERRAFORM, "terraformplans", &["list"])),
    better(needs(CAPI, "clusters", &["list"])),
    better(needs(CAPI, "machines", &["list"])),
    better(needs(CAPI, "machinepools", &["list"])),
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
    row("jobs why", Viewer, &[OBJECTS, OWNERS, RUNS, EVENTS, LOGS, CAUSES, PLANS, FLEET]),
    row("jobs list", Viewer, &[OBJECT, NAMED_OWNERS, RUNS]),
    row("jobs logs", Viewer, &[OBJECT, NAMED_OWNERS, RUNS, LOGS, MASKING]),
    row("jobs timeline", Viewer, &[OBJECT, NAMED_OWNERS, RUNS, EVENTS, LEASE]),
    row("backups list", Viewer, &[OBJECT, NAMED_OWNERS, BACKUPS]),
    row("backups verify", Viewer, &[OBJECT, NAMED_OWNERS, STATE]),
    row("backups diff", Viewer, &[OBJECT, NAMED_OWNERS, STATE]),
    row("backups save", Viewer, &[OBJECT, NAMED_OWNERS, STATE]),
    row("state inspect", Viewer, &[OBJECT, NAMED_OWNERS, STATE, REASONS]),
    row("restore", Operator, &[OBJECTS, OWNERS, STATE, REASONS, RESTORE, CLAIM, STEPS, FAILED, CAUSES]),
    row("restore status", Viewer, &[OBJECT, NAMED_OWNERS, RUNS, LEASE, STEPS, FAILED, CAUSES]),
    row("restore retry", Operator, &[OBJECT, OWNERS, STATE, REASONS, RESTORE, CLAIM, STEPS, FAILED, CAUSES]),
    row("claim list", Viewer, &[SEE_CLAIMS]),
    row("claim inspect", Viewer, &[SEE_OBJECT, NAMED_OWNERS, LEASE]),
    row("claim reclaim", Operator, &[SEE_OBJECT, NAMED_OWNERS, FREE_CLAIM]),
    row("lock force-unlock", Unlocker, &[OBJECT, OWNERS, STATE, HOLDER, CLAIM, TOKEN, UNLOCK]),
    row("collect", Viewer, &[OBJECTS, NAMED_OWNERS, COLLECT]),
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
