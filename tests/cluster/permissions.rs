//! With exactly the Role that `permissions` prints nothing is missing; with one verb less it is named.

mod removal;
mod world;

use serde_json::json;

use crate::ground::ground;
use crate::plugin::{captf_as, run};
use removal::problems;
use world::world;

/// Command lines that between them use every right of a command.
const READING: &[(&str, &[&str])] = &[
    (
        "lock inspect",
        &["lock inspect tfc/prod", "lock inspect tfm/web", "lock inspect", "lock inspect tfmp/workers machine/web"],
    ),
    ("lock list", &["lock list --all", "lock list tfc/prod tfm/web tfmp/workers"]),
    (
        "lock history",
        &["lock history tfc/prod", "lock history tfm/web", "lock history tfmp/workers", "lock history machine/web"],
    ),
    (
        "jobs why",
        &[
            "jobs why",
            "jobs why tfc/prod tfmp/workers machine/web",
            "jobs why tfm/broken tfm/evicted tfm/no-secret tfm/no-map tfm/approval tfm/waits tfm/blocked",
        ],
    ),
    ("jobs list", &["jobs list tfc/prod", "jobs list tfm/broken", "jobs list tfmp/workers", "jobs list machine/web"]),
    ("jobs logs", &["jobs logs tfc/prod", "jobs logs tfm/broken", "jobs logs tfmp/workers"]),
    ("jobs timeline", &["jobs timeline tfc/prod", "jobs timeline tfm/broken", "jobs timeline tfmp/workers"]),
    (
        "backups list",
        &["backups list tfc/shop", "backups list tfm/disk", "backups list tfmp/crew", "backups list tfc/shop --sizes"],
    ),
    ("backups verify", &["backups verify tfc/shop", "backups verify tfm/disk", "backups verify tfmp/crew"]),
    ("backups diff", &["backups diff tfc/shop 3", "backups diff tfm/disk 3 5", "backups diff tfmp/crew 3"]),
    (
        "backups save",
        &[
            "backups save tfc/shop 3 --to {to}",
            "backups save tfm/disk 3 --to {to}",
            "backups save tfc/shop --live --to {to}",
            "backups save tfmp/crew 5 --to {to}",
        ],
    ),
    ("state inspect", &["state inspect tfc/shop", "state inspect tfm/disk", "state inspect tfmp/crew"]),
    ("restore status", &["restore status tfc/shop", "restore status tfm/unrestored", "restore status tfmp/crew"]),
    ("claim list", &["claim list"]),
    (
        "claim inspect",
        &["claim inspect tfc/shop", "claim inspect tfm/disk", "claim inspect tfmp/crew", "claim inspect machine/web"],
    ),
    (
        "collect",
        &[
            "collect tfc/shop --to {to}",
            "collect tfm/disk --to {to}",
            "collect tfmp/crew --to {to}",
            "collect machine/web --to {to}",
        ],
    ),
];

#[test]
#[ignore = "needs the test ground (make test)"]
fn with_the_printed_role_nothing_is_missing_and_with_one_verb_less_it_is_named() {
    let ns = world("roles");
    let mut all = Vec::new();
    for (command, lines) in READING {
        let start = std::time::Instant::now();
        let wrong = problems(&ns, command, lines);
        println!("== {command}: {} wrong in {:?}", wrong.len(), start.elapsed());
        for w in &wrong {
            println!("   {w}");
        }
        all.extend(wrong);
    }
    assert!(all.is_empty(), "{} rows are wrong:\n{}", all.len(), all.join("\n"));
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
