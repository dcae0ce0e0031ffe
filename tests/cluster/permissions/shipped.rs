//! The roles of `deploy/rbac` as they are shipped: with exactly one of them every command of its level works.

use serde_json::Value;

use super::changes::{held, unlock};
use super::removal::{forbidden, through_kubectl};
use super::world::{account, restorable, unlockable, world};
use super::{JUDGING, READING};
use crate::ground::{Namespace, ground};
use crate::plugin::captf_as;

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}

/// Runs lines and lists those in which a permission is missing.
fn refused(ns: &Namespace<'_>, kubeconfig: &std::path::Path, rows: &[(&str, &[&str])]) -> Vec<String> {
    let lines = rows.iter().flat_map(|(_, lines)| lines.iter());
    let ran = lines.map(|line| (line, through_kubectl(ns, kubeconfig, line)));
    ran.filter(|(_, ran)| forbidden(ran) || ran.stderr.contains("may not"))
        .map(|(l, r)| format!("{l}: {r:?}"))
        .collect()
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn with_a_shipped_role_every_command_of_its_level_works() {
    let ns = world("shipped");
    let viewer = account(&ns, "viewer", &documents(include_str!("../../../deploy/rbac/viewer.yaml")));
    let operator = account(&ns, "operator", &documents(include_str!("../../../deploy/rbac/operator.yaml")));
    let unlocker = account(&ns, "unlocker", &documents(include_str!("../../../deploy/rbac/unlocker.yaml")));
    assert_eq!(refused(&ns, &viewer, READING), Vec::<String>::new());
    let of = |command: &str| JUDGING.iter().position(|(c, _)| *c == command).expect("a row");
    let (free, reclaim) = (of("lock force-unlock"), of("claim reclaim"));
    assert_eq!(refused(&ns, &unlocker, &JUDGING[free..=free]), Vec::<String>::new());
    assert_eq!(refused(&ns, &operator, &JUDGING[reclaim..=reclaim]), Vec::<String>::new());
    // A viewer may judge, and changes nothing.
    let id = unlockable(&ns, "mine");
    let viewed = unlock(&ns, &viewer, "mine", &id, "--method lease");
    assert_eq!((viewed.code, held(&ns, "mine")), (Some(4), true), "{viewed:?}");
    let released = unlock(&ns, &unlocker, "mine", &id, "--method lease");
    assert_eq!((released.code, held(&ns, "mine")), (Some(0), false), "{released:?}");
    restorable(&ns, "TerraformCluster", "lone", "Cluster");
    let line = "restore 3 tfc/lone --yes-forget-resources=1 --wait=false";
    let viewed = captf_as(&ns, &viewer, line);
    assert_eq!(viewed.code, Some(4), "{viewed:?}");
    let written = captf_as(&ns, &operator, line);
    assert_eq!(written.code, Some(0), "{written:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn the_role_beside_the_unlockers_account_is_enough_for_the_person() {
    let ns = ground().namespace("person");
    let text = include_str!("../../../deploy/rbac/force-unlock-account.yaml").replace("team-a", ns.name());
    let role = documents(&text)
        .into_iter()
        .filter(|d| d["kind"] == "Role" && d["metadata"]["name"] == "captf-unlock-operator");
    let person = account(&ns, "person", &role.collect::<Vec<_>>());
    let id = unlockable(&ns, "shop");
    let ran = unlock(&ns, &person, "shop", &id, "--method lease --service-account captf-unlocker");
    assert_eq!((ran.code, held(&ns, "shop")), (Some(0), false), "{ran:?}");
    ns.ground().apply(&text);
    let token = |account: &str| format!("create token {account} -n {}", ns.name());
    let own = crate::plugin::run(ns.ground(), &person, &token("captf-unlocker").split(' ').collect::<Vec<_>>());
    assert_eq!(own.code, Some(0), "{own:?}");
    let other = crate::plugin::run(ns.ground(), &person, &token("person").split(' ').collect::<Vec<_>>());
    assert_ne!(other.code, Some(0), "a token of another account was given");
}
