//! Tables over the judgement of a restore and of a state: what fires, and the near miss that does not.

use jiff::Timestamp;

use super::code::Code;
use super::lock_tests::{condition, gap};
use super::restore::{RestoreJudgement, Wish, judge};
use super::state_inspect::diagnose;
use crate::captf::kind::WorkloadKind;
use crate::captf::names::{backend_labels, state_selector_labels};
use crate::facts::backup::{BackupSet, SecretMeta};
use crate::facts::lock::{LockFacts, StateFacts, Surroundings};
use crate::facts::object::{ObjectFacts, ObjectRef, OwnerClusterFacts};
use crate::facts::reading::Reading;
use crate::facts::restore::{Baseline, PayloadFacts, RestoreFacts, RestoreObject, StateSecrets};
use crate::facts::state::{KeyPresence, StateContent, StateSecret};
use crate::facts::state_diff::{Address, StateDiff};

fn content(serial: i64, lineage: &str, managed: u64) -> StateContent {
    StateContent::Readable {
        serial,
        lineage: lineage.to_string(),
        terraform_version: String::new(),
        managed_resources: managed,
        bytes: 10,
    }
}

fn payload(content: StateContent) -> PayloadFacts {
    PayloadFacts {
        content,
        compressed: 10,
        decompressed: 20,
        digest_matches: Some(true),
        types: Vec::new(),
        instances: 3,
        chunks: 1,
    }
}

fn set(serial: i64) -> BackupSet {
    BackupSet {
        name: format!("s-{serial}"),
        serial: Some(serial),
        lineage: Some("l".to_string()),
        resources: Some(3),
        inputs_hash: Some("h2:a".to_string()),
        ..BackupSet::default()
    }
}

/// A cluster with everything in order: a restore of serial 41 over 57 forgets nothing.
fn healthy() -> RestoreFacts {
    let object = ObjectRef { kind: WorkloadKind::Cluster, namespace: "team-a".to_string(), name: "prod".to_string() };
    let suffix = object.suffix();
    let about = ObjectFacts {
        uid: "u".to_string(),
        cluster_name: Some("prod".to_string()),
        provisioned: true,
        observed_serial: Some(57),
        conditions: ["IdentityAllowed", "CredentialsMirrored", "RunnerRBACReady", "InputsApplied"]
            .map(|kind| condition(kind, "True", kind))
            .to_vec(),
        ..ObjectFacts::default()
    };
    let labels = state_selector_labels(object.kind, "prod", "prod", &suffix);
    let labels: std::collections::BTreeMap<String, String> =
        labels.into_iter().map(|(k, v)| (k.to_string(), v)).collect();
    assert!(labels.len() > backend_labels(object.kind, "prod", "prod").len());
    let name = crate::captf::names::state_secret(&suffix);
    let base = StateSecret {
        name: name.clone(),
        labels: labels.clone(),
        created: None,
        retained_from: None,
        state_key: KeyPresence::Present,
    };
    let meta = SecretMeta {
        name,
        labels,
        annotations: [("captf.io/inputs-hash".to_string(), "h2:a".to_string())].into(),
        ..SecretMeta::default()
    };
    let lock = LockFacts {
        object: object.clone(),
        about: about.clone(),
        jobs: Reading::Found(Vec::new()),
        lease: Reading::Absent,
        holder_pod: None,
        state: StateFacts {
            base: Reading::Found(base.clone()),
            selected: Reading::Found(vec![base]),
            content: None,
            backups: None,
        },
        around: Surroundings::default(),
        live: true,
    };
    RestoreFacts {
        object,
        about,
        extra: RestoreObject { uid: "u".to_string(), has_owner: true, ..RestoreObject::default() },
        lock,
        owner_cluster: Some(Reading::Found(OwnerClusterFacts::default())),
        terraform_cluster: None,
        sets: Reading::Found(vec![set(57), set(41)]),
        secrets: StateSecrets {
            selected: Reading::Found(vec![meta.clone()]),
            base: Reading::Found(meta),
            unlabelled: Reading::Found(Vec::new()),
            attempt: Reading::Absent,
            applied: Reading::Absent,
        },
        backup: Some(Reading::Found(payload(content(41, "l", 3)))),
        live: Reading::Found(payload(content(57, "l", 3))),
        baseline: Baseline::Live,
        diff: Some(StateDiff { same: 3, ..StateDiff::default() }),
    }
}

fn judged(facts: &RestoreFacts, serial: &str) -> RestoreJudgement {
    let wish = Wish { serial, retry: false, may_forget: None, forget_limit: 25 };
    judge(facts, &wish, Timestamp::UNIX_EPOCH)
}

fn codes(facts: &RestoreFacts, serial: &str) -> Vec<Code> {
    judged(facts, serial).findings.iter().map(|f| f.code).collect()
}

type Change = Box<dyn Fn(&mut RestoreFacts)>;

fn change(f: impl Fn(&mut RestoreFacts) + 'static) -> Change {
    Box::new(f)
}

fn forgetting(count: usize) -> Change {
    change(move |f| {
        let address = |i: usize| Address { kind: "t".to_string(), address: format!("t.n{i}") };
        f.diff = Some(StateDiff { forgotten: (0..count).map(address).collect(), ..StateDiff::default() });
    })
}

#[test]
fn a_healthy_object_may_be_restored() {
    let judgement = judged(&healthy(), "41");
    assert_eq!(codes(&healthy(), " +41 "), [Code::RestoreReady]);
    assert!(!judgement.refused() && judgement.gaps.is_empty());
    assert_eq!((judgement.serial, judgement.forgotten), (Some(41), Some(0)));
    assert!(!judgement.needs_number(false) && judgement.needs_number(true));
}

fn pin(f: &mut RestoreFacts, image: &str) {
    f.about.image = Some(image.to_string());
    f.lock.about.image = Some(image.to_string());
}

/// Being deleted, and held because the state is gone.
fn deleting_lost(f: &mut RestoreFacts) {
    f.about.deleting = Some(Timestamp::UNIX_EPOCH);
    f.live = Reading::Absent;
}

#[test]
fn every_refusal_has_its_code() {
    use Code::*;
    let deleting = |f: &mut RestoreFacts| f.about.deleting = Some(Timestamp::UNIX_EPOCH);
    let rows: Vec<(&str, Change, Code)> = vec![
        ("paused", change(|f| f.about.paused_annotation = true), RestorePaused),
        (
            "cluster paused",
            change(|f| {
                f.owner_cluster =
                    Some(Reading::Found(OwnerClusterFacts { paused: true, ..OwnerClusterFacts::default() }));
            }),
            RestorePaused,
        ),
        ("managed by", change(|f| f.about.managed_by = true), RestoreExternallyManaged),
        ("no owner", change(|f| f.extra.has_owner = false), RestoreNoOwner),
        ("consumed", change(|f| f.about.last_restored_serial = Some(41)), RestoreConsumed),
        ("other pending", change(|f| f.about.restore_request = Some("40".to_string())), RestoreOtherPending),
        ("gate", change(|f| f.about.conditions[1].status = "False".to_string()), RestoreGateClosed),
        ("forgets many", forgetting(26), RestoreForgetsMany),
        ("deleting and readable", change(deleting), RestoreDeletingIgnored),
        (
            "deleting, blocked",
            change(move |f| {
                deleting(f);
                f.about.conditions.push(condition("DeletionBlocked", "True", "DependentsExist"));
            }),
            RestoreDeletingWaits,
        ),
        (
            "deleting, Retain inherited by a machine",
            change(move |f| {
                deleting_lost(f);
                f.object.kind = WorkloadKind::Machine;
                let default_deletion_policy = Some("Retain".to_string());
                f.terraform_cluster =
                    Some(Reading::Found(ObjectFacts { default_deletion_policy, ..ObjectFacts::default() }));
            }),
            RestoreDeletingIgnored,
        ),
        (
            "deleting, no cluster to inherit from",
            change(move |f| {
                deleting_lost(f);
                f.object.kind = WorkloadKind::Machine;
                f.terraform_cluster = Some(Reading::Absent);
            }),
            RestoreDeletingWaits,
        ),
        (
            "deleting, the policy's cluster unreadable",
            change(move |f| {
                deleting_lost(f);
                f.object.kind = WorkloadKind::Machine;
                f.terraform_cluster = Some(Reading::Unreadable(gap()));
            }),
            RestoreUndetermined,
        ),
        (
            "a large backup for OpenTofu",
            change(|f| {
                pin(f, "registry.example.com/opentofu-aws:1");
                f.backup =
                    Some(Reading::Found(PayloadFacts { compressed: (1 << 20) + 1, ..payload(content(41, "l", 3)) }));
            }),
            RestoreTooLargeForTofu,
        ),
        (
            "a chunked state under OpenTofu",
            change(|f| {
                pin(f, "registry.example.com/opentofu-aws:1");
                let part = SecretMeta { name: "part".to_string(), ..SecretMeta::default() };
                f.secrets.selected = f.secrets.selected.clone().map(|all| all.into_iter().chain([part]).collect());
            }),
            RestoreTooLargeForTofu,
        ),
        ("sets unreadable", change(|f| f.sets = Reading::Unreadable(gap())), RestoreUndetermined),
        ("live unreadable", change(|f| f.live = Reading::Unreadable(gap())), RestoreUndetermined),
        ("cluster unreadable", change(|f| f.owner_cluster = Some(Reading::Unreadable(gap()))), RestoreUndetermined),
        ("lease unreadable", change(|f| f.lock.lease = Reading::Unreadable(gap())), RestoreUndetermined),
        (
            "retained",
            change(|f| {
                if let Reading::Found(base) = &mut f.secrets.base {
                    base.labels.insert(crate::captf::keys::RETAINED_FROM.to_string(), "other".to_string());
                }
            }),
            RestoreRetained,
        ),
    ];
    for (case, apply, code) in rows {
        let mut facts = healthy();
        apply(&mut facts);
        let judgement = judged(&facts, "41");
        assert!(judgement.refused(), "{case}");
        assert!(codes(&facts, "41").contains(&code), "{case}: {:?}", codes(&facts, "41"));
        assert!(!codes(&facts, "41").contains(&RestoreReady), "{case}");
    }
    for (serial, code) in [("x", RestoreNotASerial), ("0", RestoreNotASerial), ("42", RestoreNoBackup)] {
        assert!(codes(&healthy(), serial).contains(&code), "{serial}");
    }
}

#[test]
fn near_misses_do_not_refuse() {
    use Code::*;
    let rows: Vec<(&str, Change, Vec<Code>)> = vec![
        ("another serial was consumed", change(|f| f.about.last_restored_serial = Some(40)), vec![RestoreReady]),
        ("an empty request", change(|f| f.about.restore_request = Some(" ".to_string())), vec![RestoreReady]),
        (
            "the same request",
            change(|f| f.about.restore_request = Some("041".to_string())),
            vec![RestoreAlreadyRequested, RestoreReady],
        ),
        ("forgets some", forgetting(25), vec![RestoreForgets, RestoreReady]),
        ("nothing to compare", change(|f| f.diff = None), vec![RestoreForgetsUnknown, RestoreReady]),
        (
            "own retained label",
            change(|f| {
                if let Reading::Found(base) = &mut f.secrets.base {
                    base.labels.insert(crate::captf::keys::RETAINED_FROM.to_string(), "u".to_string());
                }
            }),
            vec![RestoreReady],
        ),
        (
            "deleting, lost",
            change(|f| {
                f.about.deleting = Some(Timestamp::UNIX_EPOCH);
                f.extra.has_owner = false;
                f.live = Reading::Absent;
            }),
            vec![RestoreDeletingHeld, RestoreReady],
        ),
        (
            "deleting, lost, Destroy inherited by a machine",
            change(|f| {
                deleting_lost(f);
                f.object.kind = WorkloadKind::Machine;
                f.terraform_cluster = Some(Reading::Found(ObjectFacts::default()));
            }),
            vec![RestoreDeletingHeld, RestoreReady],
        ),
        (
            "exactly one Secret for OpenTofu",
            change(|f| {
                pin(f, "registry.example.com/opentofu-aws:1");
                f.backup = Some(Reading::Found(PayloadFacts { compressed: 1 << 20, ..payload(content(41, "l", 3)) }));
            }),
            vec![RestoreReady],
        ),
        (
            "a large backup for Terraform",
            change(|f| {
                pin(f, "registry.example.com/terraform-aws:1");
                f.backup = Some(Reading::Found(PayloadFacts { compressed: 1 << 21, ..payload(content(41, "l", 3)) }));
            }),
            vec![RestoreReady],
        ),
        (
            "a large backup for who knows what",
            change(|f| {
                pin(f, "registry.example.com/aws:1");
                f.backup = Some(Reading::Found(PayloadFacts { compressed: 1 << 21, ..payload(content(41, "l", 3)) }));
            }),
            vec![RestoreTooLargeIfTofu, RestoreReady],
        ),
        (
            "a dependency",
            change(|f| f.about.conditions.push(condition("DependenciesReady", "False", "X"))),
            vec![RestoreReady],
        ),
        (
            "a gate unset",
            change(|f| f.about.conditions.retain(|c| c.kind != "RunnerRBACReady")),
            vec![RestoreGateUnknown, RestoreReady],
        ),
        (
            "another lineage",
            change(|f| f.live = Reading::Found(payload(content(57, "m", 3)))),
            vec![RestoreLineageDiffers, RestoreReady],
        ),
    ];
    for (case, apply, expected) in rows {
        let mut facts = healthy();
        apply(&mut facts);
        assert_eq!(codes(&facts, "41"), expected, "{case}");
    }
}

#[test]
fn what_follows_depends_on_kind_and_inputs() {
    use Code::*;
    let with_hash = |hash: Option<&str>| {
        let mut older = set(41);
        older.inputs_hash = hash.map(str::to_string);
        Reading::Found(vec![set(57), older])
    };
    for (kind, hash, provisioned, expected) in [
        (WorkloadKind::Cluster, Some("h2:a"), true, None),
        (WorkloadKind::Cluster, Some("h2:b"), true, Some(RestoreThenGuardedApply)),
        (WorkloadKind::MachinePool, Some("h2:b"), true, Some(RestoreThenApply)),
        (WorkloadKind::Machine, Some("h2:b"), true, None),
        (WorkloadKind::Cluster, None, true, Some(RestoreHashMissing)),
        (WorkloadKind::Machine, None, true, Some(RestoreMachineTurnsLost)),
        (WorkloadKind::Machine, None, false, Some(RestoreHashMissing)),
    ] {
        let mut facts = healthy();
        facts.object.kind = kind;
        facts.about.provisioned = provisioned;
        facts.sets = with_hash(hash);
        let all = super::restore_after::inputs(&facts, 41).map(|f| f.code);
        assert_eq!(all, expected, "{kind} {hash:?}");
    }
    let mut facts = healthy();
    facts.about.conditions[3] = condition("InputsApplied", "False", "ApplyPending");
    assert_eq!(super::restore_after::inputs(&facts, 41).map(|f| f.code), Some(RestoreInputsUnknown));
}

#[test]
fn the_reason_of_a_state_is_the_controllers() {
    let rows: Vec<(&str, Change, Option<&str>, Code)> = vec![
        ("readable", change(|_| ()), Some("StateRead"), Code::StateReadable),
        ("lost", change(|f| f.live = Reading::Absent), Some("StateLost"), Code::StateLost),
        (
            "an incomplete set is proof as well",
            change(|f| {
                f.live = Reading::Absent;
                f.about.provisioned = false;
                f.sets = Reading::Found(vec![BackupSet { problems: vec!["x".to_string()], ..set(41) }]);
            }),
            Some("StateLost"),
            Code::StateLost,
        ),
        (
            "never applied",
            change(|f| {
                f.live = Reading::Absent;
                f.about.provisioned = false;
                f.sets = Reading::Found(Vec::new());
            }),
            Some("StateNotFound"),
            Code::StateNotFound,
        ),
        (
            "outcome unknown",
            change(|f| {
                f.live = Reading::Absent;
                f.about.provisioned = false;
                f.sets = Reading::Found(Vec::new());
                f.secrets.attempt = Reading::Found(SecretMeta {
                    annotations: [("captf.io/unconfirmed-apply".to_string(), "j".to_string())].into(),
                    ..SecretMeta::default()
                });
            }),
            Some("ApplyOutcomeUnknown"),
            Code::StateOutcomeUnknown,
        ),
        (
            "encrypted",
            change(|f| f.live = Reading::Found(payload(StateContent::Encrypted))),
            Some("StateEncrypted"),
            Code::StateEncrypted,
        ),
        (
            "overwritten",
            change(|f| f.live = Reading::Found(payload(content(2, "l", 0)))),
            Some("StateRead"),
            Code::StateOverwritten,
        ),
    ];
    for (case, apply, reason, code) in rows {
        let mut facts = healthy();
        apply(&mut facts);
        let judgement = diagnose(&facts);
        assert_eq!(judgement.reason, reason, "{case}");
        assert!(judgement.findings.iter().any(|f| f.code == code), "{case}");
    }
    let mut unreadable = healthy();
    unreadable.live = Reading::Unreadable(gap());
    let judgement = diagnose(&unreadable);
    assert!(judgement.findings.is_empty() && judgement.gaps == [gap()] && judgement.reason.is_none());
    // A foreign lock would give another reason, so that one that was not read gives none and is said.
    let mut locked = healthy();
    locked.lock.lease = Reading::Unreadable(gap());
    let judgement = diagnose(&locked);
    assert!(judgement.gaps == [gap()] && judgement.reason.is_none());
    let mut lower = healthy();
    lower.live = Reading::Found(payload(content(58, "l", 0)));
    assert!(!diagnose(&lower).findings.iter().any(|f| f.code == Code::StateOverwritten), "emptied by an apply");
}
