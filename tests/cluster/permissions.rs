//! With exactly the Role that `permissions` prints nothing is missing; with one verb less it is named.

mod changes;
mod removal;
mod shipped;
pub mod world;

use serde_json::json;

use crate::ground::ground;
use crate::plugin::{captf_as, run};
use removal::problems;
use world::world;

/// Command lines that between them use every right of a command that only reads.
const READING: &[(&str, &[&str])] = &[
    ("lock inspect", &["lock inspect cluster/prod", "lock inspect", "lock inspect machinepool/workers machine/web"]),
    ("lock list", &["lock list --all", "lock list cluster/prod machine/web machinepool/workers"]),
    ("lock history", &["lock history cluster/prod", "lock history machine/web", "lock history machinepool/workers"]),
    (
        "jobs why",
        &[
            "jobs why",
            "jobs why cluster/prod machinepool/workers machine/web",
            "jobs why tfm/broken tfm/evicted tfm/oom tfm/no-secret tfm/no-map tfc/approval tfm/waits tfm/blocked \
             tfm/blocked-from-afar",
        ],
    ),
    ("jobs list", &["jobs list cluster/prod", "jobs list machine/web", "jobs list machinepool/workers"]),
    (
        "jobs logs",
        &["jobs logs cluster/prod", "jobs logs machine/web", "jobs logs tfm/broken", "jobs logs machinepool/workers"],
    ),
    (
        "jobs timeline",
        &[
            "jobs timeline cluster/prod",
            "jobs timeline machine/web",
            "jobs timeline tfm/waits",
            "jobs timeline machinepool/workers",
        ],
    ),
    (
        "backups list",
        &["backups list cluster/shop", "backups list machine/disk", "backups list machinepool/crew --sizes"],
    ),
    (
        "backups verify",
        &["backups verify cluster/shop", "backups verify machine/disk", "backups verify machinepool/crew"],
    ),
    (
        "backups diff",
        &["backups diff cluster/shop 3", "backups diff machine/disk 3 5", "backups diff machinepool/crew 3"],
    ),
    (
        "backups save",
        &[
            "backups save cluster/shop 3 --to {to}",
            "backups save machine/disk 3 --to {to}",
            "backups save machinepool/crew 5 --secrets --to {to}",
            "backups save tfc/shop --live --to {to}",
        ],
    ),
    (
        "state inspect",
        &[
            "state inspect cluster/shop",
            "state inspect machine/disk",
            "state inspect machinepool/crew",
            "state inspect tfm/blocked",
        ],
    ),
    (
        "restore status",
        &["restore status cluster/shop", "restore status machine/undisk", "restore status machinepool/crew"],
    ),
    ("claim list", &["claim list"]),
    (
        "claim inspect",
        &[
            "claim inspect cluster/shop",
            "claim inspect machine/disk",
            "claim inspect machinepool/crew",
            "claim inspect tfc/prod",
            "claim inspect tfm/web",
            "claim inspect tfmp/workers",
        ],
    ),
    (
        "collect",
        &["collect cluster/shop --to {to}", "collect machine/disk --to {to}", "collect machinepool/crew --to {to}"],
    ),
];

/// The same for commands that change something: what they read before they would.
const JUDGING: &[(&str, &[&str])] = &[
    (
        "restore",
        &[
            "restore 3 cluster/shop --dry-run=server",
            "restore 3 machine/disk --dry-run=server",
            "restore 3 machinepool/crew --dry-run=server",
            "restore 3 tfm/blocked --dry-run",
            "restore 3 tfm/blocked-from-afar --dry-run",
            "restore 3 --dry-run",
        ],
    ),
    (
        "restore retry",
        &["restore retry cluster/unshop", "restore retry machine/undisk", "restore retry machinepool/uncrew"],
    ),
    (
        "claim reclaim",
        &[
            "claim reclaim cluster/shop",
            "claim reclaim machine/disk",
            "claim reclaim machinepool/crew",
            "claim reclaim tfc/prod",
            "claim reclaim tfm/web",
            "claim reclaim tfmp/workers",
        ],
    ),
    (
        "lock force-unlock",
        &[
            "lock force-unlock cluster/locked --dry-run",
            "lock force-unlock machine/web --dry-run --method lease",
            "lock force-unlock machinepool/workers --dry-run --method job",
            "lock force-unlock tfm/db --dry-run",
        ],
    ),
];

fn all_right(stem: &str, rows: &[(&str, &[&str])]) {
    let ns = world(stem);
    let wrong: Vec<String> = rows.iter().flat_map(|(command, lines)| problems(&ns, command, lines)).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn with_the_printed_role_nothing_is_missing_and_with_one_verb_less_it_is_named() {
    all_right("roles", READING);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn what_is_judged_before_a_change_needs_the_printed_role_too() {
    all_right("judging", JUDGING);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn the_printed_yaml_is_taken_by_the_server() {
    let ns = ground().namespace("yaml");
    for line in [&["captf", "permissions", "lock", "inspect"][..], &["captf", "permissions"]] {
        let ran = run(ns.ground(), &ns.ground().kubeconfig, &[line, &["-n", ns.name()]].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let file = ns.ground().dir.join(format!("{}.yaml", ns.name()));
        std::fs::write(&file, &ran.stdout).expect("write the YAML");
        let applied = run(
            ns.ground(),
            &ns.ground().kubeconfig,
            &["apply", "--dry-run=server", "-n", ns.name(), "-f", &file.display().to_string()],
        );
        assert_eq!(applied.code, Some(0), "{applied:?}");
        assert!(applied.stdout.lines().count() >= 2, "{applied:?}");
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn the_generation_is_told_without_any_role() {
    let ns = ground().namespace("version");
    let nobody = ns.ground().service_account_kubeconfig(ns.name(), "nobody", &json!([]));
    let ran = captf_as(&ns, &nobody, "version -o json");
    let view = ran.json();
    assert_eq!((ran.code, &view["captf"]["generation"]), (Some(0), &json!("G6")), "{ran:?}");
    assert_eq!(view["serverVersion"], json!(ns.ground().version), "{ran:?}");
    assert!(
        view["captf"]["detectedFrom"].as_str().is_some_and(|f| f.contains("status.lastRun.error.resources")),
        "{ran:?}"
    );
}
