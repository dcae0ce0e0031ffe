//! The controller's order while an object is being deleted: one row per step, with its near miss.

use jiff::Timestamp;

use super::lock_tests::{condition, gap};
use super::next_run::{Inputs, NextRun, next_run};
use super::policy::Policy;
use crate::captf::kind::WorkloadKind;
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::reading::Reading;

/// A machine that is being deleted, and whose cluster sets nothing.
fn deleting() -> (ObjectFacts, Option<Reading<ObjectFacts>>) {
    let about = ObjectFacts { deleting: Some(Timestamp::UNIX_EPOCH), ..ObjectFacts::default() };
    (about, Some(Reading::Found(ObjectFacts::default())))
}

/// What comes next in a word.
fn next(about: &ObjectFacts, parent: Option<&Reading<ObjectFacts>>) -> &'static str {
    let object = ObjectRef { kind: WorkloadKind::Machine, namespace: "team-a".to_string(), name: "web".to_string() };
    let policy = Policy::new(object.kind, about, parent);
    let inputs = Inputs { object: &object, about, jobs: &[], owner_cluster: None, policy };
    match next_run(&inputs, Timestamp::UNIX_EPOCH) {
        NextRun::Due { what, .. } => {
            ["release", "restore", "destroy"].into_iter().find(|w| what.contains(w)).unwrap_or("?")
        }
        NextRun::Nothing { .. } => "nothing",
        NextRun::Unknown(_) => "unknown",
    }
}

#[test]
fn a_deletion_follows_the_controllers_order() {
    type Change = fn(&mut ObjectFacts, &mut Option<Reading<ObjectFacts>>);
    let rows: [(&str, Change, &str); 15] = [
        ("nothing set", |_, _| {}, "destroy"),
        ("own policy", |a, _| a.deletion_policy = Some("Retain".to_string()), "release"),
        (
            "inherited from the defaults",
            |_, p| {
                let default_deletion_policy = Some("Retain".to_string());
                *p = Some(Reading::Found(ObjectFacts { default_deletion_policy, ..ObjectFacts::default() }));
            },
            "release",
        ),
        (
            "inherited from the cluster",
            |_, p| {
                let deletion_policy = Some("Retain".to_string());
                *p = Some(Reading::Found(ObjectFacts { deletion_policy, ..ObjectFacts::default() }));
            },
            "release",
        ),
        ("no cluster", |_, p| *p = Some(Reading::Absent), "nothing"),
        (
            "no cluster, own policy",
            |a, p| {
                a.deletion_policy = Some("Destroy".to_string());
                *p = Some(Reading::Absent);
            },
            "destroy",
        ),
        ("cluster unreadable", |_, p| *p = Some(Reading::Unreadable(gap())), "unknown"),
        ("cluster not read", |_, p| *p = None, "unknown"),
        (
            "dependents first, even under Retain",
            |a, _| {
                a.deletion_policy = Some("Retain".to_string());
                a.conditions.push(condition("DeletionBlocked", "True", "DependentsExist"));
            },
            "nothing",
        ),
        ("dependents gone", |a, _| a.conditions.push(condition("DeletionBlocked", "False", "NoDependents")), "destroy"),
        ("state lost", |a, _| a.conditions.push(condition("StateReadable", "False", "StateLost")), "nothing"),
        (
            "state lost, restore asked for",
            |a, _| {
                a.conditions.push(condition("StateReadable", "False", "StateLost"));
                a.restore_request = Some("41".to_string());
            },
            "restore",
        ),
        ("state reads, restore asked for", |a, _| a.restore_request = Some("41".to_string()), "destroy"),
        (
            "Retain before the restore",
            |a, _| {
                a.deletion_policy = Some("Retain".to_string());
                a.conditions.push(condition("StateReadable", "False", "StateLost"));
                a.restore_request = Some("41".to_string());
            },
            "release",
        ),
        ("externally managed", |a, _| a.managed_by = true, "release"),
    ];
    for (case, change, expected) in rows {
        let (mut about, mut parent) = deleting();
        change(&mut about, &mut parent);
        assert_eq!(next(&about, parent.as_ref()), expected, "{case}");
    }
}
