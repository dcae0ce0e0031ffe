//! Tables over the lock rules: verdicts and traps, each code with a row that fires and a near miss.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::code::Code;
use super::lock_inspect::{Judgement, diagnose};
use super::verdict::Verdict;
use crate::captf::kind::WorkloadKind;
use crate::captf::lock_info::LockInfoReading;
use crate::captf::names::{Operation, state_secret, state_selector_labels};
use crate::facts::event::EventFacts;
use crate::facts::job::{JobFacts, JobMarks, JobOutcome};
use crate::facts::lease::{Holder, LockLease};
use crate::facts::lock::{LockFacts, StateFacts, Surroundings};
use crate::facts::node::NodeFacts;
use crate::facts::object::{Condition, ObjectFacts, ObjectRef, OwnerClusterFacts};
use crate::facts::pod::{ContainerFacts, ContainerState, Disruption, PodFacts};
use crate::facts::reading::{Gap, GapReason, Reading};
use crate::facts::state::{KeyPresence, StateContent, StateSecret};

const OWN: &str = "captf-c-prod-apply-a3-5e1f00-x7k2p";
const ID: &str = "00000001-0000-4000-8000-000000000001";

pub(super) fn now() -> Timestamp {
    "2026-01-10T08:00:00Z".parse().expect("a time")
}

fn ago(minutes: i64) -> Timestamp {
    now() - SignedDuration::from_mins(minutes)
}

pub(super) fn gap() -> Gap {
    Gap { what: "Pod team-a/x".into(), reason: GapReason::Forbidden, detail: String::new(), permission: None }
}

fn object() -> ObjectRef {
    ObjectRef { kind: WorkloadKind::Cluster, namespace: "team-a".into(), name: "prod".into() }
}

fn base() -> StateSecret {
    let suffix = object().suffix();
    let labels = state_selector_labels(WorkloadKind::Cluster, "prod", "prod", &suffix);
    StateSecret {
        name: state_secret(&suffix),
        labels: labels.into_iter().map(|(k, v)| (k.to_string(), v)).collect(),
        created: Some(ago(9000)),
        retained_from: None,
        state_key: KeyPresence::Present,
    }
}

pub(super) fn condition(kind: &str, status: &str, reason: &str) -> Condition {
    Condition { kind: kind.into(), status: status.into(), reason: reason.into(), message: String::new(), since: None }
}

fn info(who: &str) -> LockInfoReading {
    let text = format!(
        r#"{{"ID":"{ID}","Operation":"OperationTypeRefresh","Info":"","Who":"{who}","Version":"1.11.4","Created":"{}","Path":""}}"#,
        ago(30)
    );
    LockInfoReading::decode(Some(&text))
}

pub(super) fn lease(holder: Holder, info: LockInfoReading) -> LockLease {
    LockLease {
        name: "lock-tfstate-default-f66792f9106e7299-c".into(),
        uid: String::new(),
        resource_version: "7".into(),
        created: Some(ago(9000)),
        labels: BTreeMap::new(),
        holder,
        info,
    }
}

pub(super) fn job(name: &str, outcome: JobOutcome, minutes_ago: i64) -> JobFacts {
    JobFacts {
        name: name.into(),
        uid: String::new(),
        created: Some(ago(minutes_ago + 5)),
        op: Some(Operation::Apply),
        attempt: Some(3),
        outcome,
        finished: (outcome != JobOutcome::Unfinished).then(|| ago(minutes_ago)),
        failure: (outcome == JobOutcome::Failed).then(|| ("BackoffLimitExceeded".into(), String::new())),
        failure_target: None,
        marks: JobMarks { bookkept: true, ..JobMarks::default() },
        state_lock_version: None,
        started: Some(ago(minutes_ago + 5)),
        active_deadline_seconds: Some(3600),
        lock_timeout_seconds: None,
        force_unlock: None,
        image: None,
        suspended: false,
        deleting: None,
        remediation: false,
        plan: None,
        image_fallbacks: None,
        service_account: None,
    }
}

pub(super) fn pod(phase: &str) -> PodFacts {
    PodFacts {
        name: OWN.into(),
        uid: String::new(),
        created: Some(ago(31)),
        phase: phase.into(),
        reason: String::new(),
        message: String::new(),
        deletion_deadline: None,
        grace_seconds: None,
        node: Some("node-1".into()),
        ready: None,
        disruption: None,
        job: None,
        containers: Vec::new(),
        unscheduled: None,
        result: Default::default(),
        credentials: Vec::new(),
    }
}

fn node(ready: &str) -> NodeFacts {
    NodeFacts {
        name: "node-1".into(),
        ready: ready.into(),
        last_heartbeat: None,
        unreachable_taint: false,
        addresses: Vec::new(),
    }
}

/// A provisioned cluster with a readable state, no Job and no lock; a drift check is due in 20 minutes.
pub(super) fn healthy() -> LockFacts {
    LockFacts {
        object: object(),
        about: ObjectFacts {
            uid: "u".into(),
            created: Some(ago(9000)),
            cluster_name: Some("prod".into()),
            conditions: vec![condition("StateReadable", "True", "StateRead")],
            provisioned: true,
            observed_serial: Some(7),
            last_drift_check: Some(ago(10)),
            image: Some("registry.example.com/cluster:1".into()),
            ..ObjectFacts::default()
        },
        jobs: Reading::Found(Vec::new()),
        lease: Reading::Absent,
        holder_pod: None,
        state: StateFacts {
            base: Reading::Found(base()),
            selected: Reading::Found(vec![base()]),
            content: None,
            backups: None,
        },
        around: Surroundings {
            owner_cluster: Some(Reading::Found(OwnerClusterFacts::default())),
            ..Surroundings::default()
        },
        live: true,
    }
}

pub(super) fn held(who: &str) -> LockFacts {
    LockFacts { lease: Reading::Found(lease(Holder::Id(ID.into()), info(who))), ..healthy() }
}

pub(super) fn stale() -> LockFacts {
    LockFacts { holder_pod: Some(Reading::Absent), ..held(&format!("@{OWN}")) }
}

pub(super) fn live(phase: &str) -> LockFacts {
    LockFacts { holder_pod: Some(Reading::Found(pod(phase))), ..held(&format!("@{OWN}")) }
}

fn codes(judgement: &Judgement) -> Vec<Code> {
    judgement.findings.iter().map(|f| f.code).collect()
}

/// One row: what it is, the facts, the verdict, the codes that must be there, and that must not.
type Row = (&'static str, LockFacts, Verdict, Vec<Code>, Vec<Code>);

fn check(rows: Vec<Row>) {
    for (name, facts, verdict, with, without) in rows {
        let judgement = diagnose(&facts, now());
        assert_eq!(judgement.verdict, verdict, "{name}");
        let codes = codes(&judgement);
        for code in with {
            assert!(codes.contains(&code), "{name}: {code} is missing in {codes:?}");
        }
        for code in without {
            assert!(!codes.contains(&code), "{name}: {code} is in {codes:?}");
        }
    }
}

pub(super) fn change<T>(mut facts: LockFacts, edit: impl FnOnce(&mut LockFacts) -> T) -> LockFacts {
    edit(&mut facts);
    facts
}

#[test]
fn a_healthy_object_has_a_free_lock_and_nothing_beside() {
    let judgement = diagnose(&healthy(), now());
    assert_eq!((judgement.verdict, codes(&judgement)), (Verdict::Free, vec![Code::LockFree]));
    assert!(judgement.gaps.is_empty());
}

#[test]
fn verdicts_are_the_controllers() {
    use Verdict::*;
    let nobody = |info| LockFacts { lease: Reading::Found(lease(Holder::Nobody, info)), ..healthy() };
    let held_with = |info| LockFacts { lease: Reading::Found(lease(Holder::Id(ID.into()), info)), ..healthy() };
    let running = |facts: LockFacts| {
        change(facts, |f| f.jobs = Reading::Found(vec![job("captf-c-prod-apply-a4-5e1f00", JobOutcome::Unfinished, 0)]))
    };
    check(vec![
        ("no Lease", healthy(), Free, vec![Code::LockFree], vec![]),
        (
            "trap 11: text without a holder",
            nobody(info("@x")),
            Free,
            vec![Code::LockFreeLeftoverInfo],
            vec![Code::LockFree],
        ),
        (
            "a Lease without holder or text",
            nobody(LockInfoReading::Missing),
            Free,
            vec![Code::LockFree],
            vec![Code::LockFreeLeftoverInfo],
        ),
        (
            "row 7: an empty holder",
            LockFacts { lease: Reading::Found(lease(Holder::Empty, LockInfoReading::Missing)), ..healthy() },
            EmptyHolder,
            vec![Code::LockEmptyHolder],
            vec![Code::LockFree],
        ),
        (
            "an own pod that is gone",
            stale(),
            Stale,
            vec![Code::LockStale],
            vec![Code::LockStaleKept, Code::LockStaleNodeLost, Code::LockStaleSnapshot],
        ),
        ("trap 14: an own pod that failed", live("Failed"), Stale, vec![Code::LockStale], vec![]),
        ("an own pod that succeeded", live("Succeeded"), Stale, vec![Code::LockStale], vec![]),
        ("an own pod that runs", live("Running"), Live, vec![Code::LockLive], vec![Code::LockLiveNodeLost]),
        ("an own pod that is pending", live("Pending"), Live, vec![Code::LockLive], vec![]),
        ("an own pod of an empty phase", live(""), Live, vec![Code::LockLive], vec![]),
        (
            "trap 14: an own pod of phase Unknown",
            live("Unknown"),
            Live,
            vec![Code::LockLiveNodeLost],
            vec![Code::LockLive],
        ),
        (
            "trap 2: the pod may not be read",
            LockFacts { holder_pod: Some(Reading::Unreadable(gap())), ..held(&format!("@{OWN}")) },
            Undetermined,
            vec![],
            vec![Code::LockStale],
        ),
        (
            "the Lease may not be read",
            LockFacts { lease: Reading::Unreadable(gap()), ..healthy() },
            Undetermined,
            vec![],
            vec![Code::LockFree],
        ),
        (
            "the Jobs may not be listed",
            LockFacts { jobs: Reading::Unreadable(gap()), ..healthy() },
            Undetermined,
            vec![],
            vec![Code::LockFree],
        ),
        ("trap 5: a workstation", held("root@DESKTOP-1"), Foreign, vec![Code::LockForeignHost], vec![Code::LockStale]),
        (
            "trap 10: several @, the last counts",
            LockFacts { holder_pod: Some(Reading::Absent), ..held(&format!("a@b@{OWN}")) },
            Stale,
            vec![Code::LockStale],
            vec![],
        ),
        (
            "trap 10: an own pod before the last @",
            held(&format!("a@{OWN}@host")),
            Foreign,
            vec![Code::LockForeignHost],
            vec![],
        ),
        (
            "trap 6: another object's pod",
            held("@captf-c-prod-2-apply-a3-5e1f00-x7k2p"),
            Foreign,
            vec![Code::LockForeignLookalike],
            vec![],
        ),
        (
            "another kind's pod",
            held("@captf-m-prod-apply-a3-5e1f00-x7k2p"),
            Foreign,
            vec![Code::LockForeignPod],
            vec![],
        ),
        (
            "trap 8: a Job name without a tail",
            held("@captf-c-prod-apply-a3-5e1f00"),
            Foreign,
            vec![Code::LockForeignLookalike],
            vec![Code::LockForeignPod],
        ),
        (
            "no lock-info",
            held_with(LockInfoReading::Missing),
            Foreign,
            vec![Code::LockForeignNoInfo],
            vec![Code::ReleaseBadInfo],
        ),
        (
            "trap 9: lock-info with a wrong type",
            held_with(LockInfoReading::decode(Some(&format!(r#"{{"ID":"{ID}","Who":"@{OWN}","Created":0}}"#)))),
            Foreign,
            vec![Code::LockForeignBadInfo, Code::ReleaseBadInfo],
            vec![],
        ),
        ("Who without @", held("nobody"), Foreign, vec![Code::LockForeignNoHost], vec![]),
        ("Who ends in @", held("runner@"), Foreign, vec![Code::LockForeignNoHost], vec![]),
        (
            "trap 4: an unfinished Job and its own lock",
            running(held("@captf-c-prod-apply-a4-5e1f00-x7k2p")),
            NotEvaluated,
            vec![Code::LockOfRunningJob],
            vec![Code::LockLive],
        ),
        (
            "an unfinished Job and no lock",
            running(healthy()),
            NotEvaluated,
            vec![Code::LockFreeJobRunning],
            vec![Code::LockFree],
        ),
        (
            "an unfinished Job and an earlier pod's lock",
            running(stale()),
            NotEvaluated,
            vec![Code::LockOfEarlierPod],
            vec![Code::LockStale],
        ),
        (
            "an unfinished Job and a foreign lock",
            running(held("root@DESKTOP-1")),
            NotEvaluated,
            vec![Code::JobWaitsForForeignLock],
            vec![Code::LockForeignHost],
        ),
        (
            "an unfinished Job and an unreadable Lease",
            running(LockFacts { lease: Reading::Unreadable(gap()), ..healthy() }),
            NotEvaluated,
            vec![],
            vec![Code::LockFree],
        ),
    ]);
}

#[test]
fn trap_39_a_job_that_is_failing_is_still_unfinished() {
    let mut failing = job("captf-c-prod-apply-a3-5e1f00", JobOutcome::Unfinished, 0);
    failing.failure_target = Some(("DeadlineExceeded".into(), Some(ago(2))));
    let facts = change(stale(), |f| f.jobs = Reading::Found(vec![failing]));
    assert_eq!(diagnose(&facts, now()).verdict, Verdict::NotEvaluated);
}

#[test]
fn trap_13_no_age_plays_a_role() {
    let old = |facts: LockFacts| {
        change(facts, |f| {
            if let Reading::Found(lease) = &mut f.lease {
                lease.info = LockInfoReading::decode(Some(&format!(
                    r#"{{"ID":"{ID}","Who":"@{OWN}","Created":"2025-01-01T00:00:00Z"}}"#
                )));
            }
        })
    };
    assert_eq!(diagnose(&old(live("Running")), now()).verdict, Verdict::Live);
    assert_eq!(diagnose(&old(stale()), now()).verdict, Verdict::Stale);
}

#[test]
fn a_terminating_pod_is_live_until_its_phase_ends() {
    let until = |minutes: i64| {
        change(live("Running"), |f| {
            let mut p = pod("Running");
            p.deletion_deadline = Some(now() + SignedDuration::from_mins(minutes));
            p.grace_seconds = Some(600);
            f.holder_pod = Some(Reading::Found(p));
        })
    };
    check(vec![
        (
            "trap 1: inside the grace period",
            until(4),
            Verdict::Live,
            vec![Code::LockLiveTerminating],
            vec![Code::LockLivePastGrace],
        ),
        (
            "past the grace period",
            until(-4),
            Verdict::Live,
            vec![Code::LockLivePastGrace],
            vec![Code::LockLiveTerminating],
        ),
        (
            "past it on a lost node",
            change(until(-4), |f| f.around.holder_node = Some(Reading::Found(node("Unknown")))),
            Verdict::Live,
            vec![Code::LockLiveNodeLost],
            vec![Code::LockLivePastGrace],
        ),
        (
            "past it on a node that is gone",
            change(until(-4), |f| f.around.holder_node = Some(Reading::Absent)),
            Verdict::Live,
            vec![Code::LockLiveNodeLost],
            vec![],
        ),
        (
            "running on a node that is well",
            change(live("Running"), |f| f.around.holder_node = Some(Reading::Found(node("True")))),
            Verdict::Live,
            vec![Code::LockLive],
            vec![Code::LockLiveNodeLost],
        ),
    ]);
    let left = diagnose(&until(4), now()).findings[0].values["left"].clone();
    assert_eq!(left, "4m of its 600s left");
}

#[test]
fn a_stale_lock_is_kept_where_nothing_is_due() {
    let with = |edit: fn(&mut LockFacts)| change(stale(), edit);
    let kept = |name, facts| (name, facts, Verdict::Stale, vec![Code::LockStaleKept], vec![Code::LockStale]);
    let cleared = |name, facts| (name, facts, Verdict::Stale, vec![Code::LockStale], vec![Code::LockStaleKept]);
    check(vec![
        kept("trap 19: paused by annotation", with(|f| f.about.paused_annotation = true)),
        kept(
            "paused cluster",
            with(|f| {
                f.around.owner_cluster = Some(Reading::Found(OwnerClusterFacts { paused: true, infrastructure: None }))
            }),
        ),
        kept("externally managed", with(|f| f.about.managed_by = true)),
        kept(
            "a plan waits for approval",
            with(|f| f.about.conditions.push(condition("ApplyJobSucceeded", "Unknown", "PlanAwaitingApproval"))),
        ),
        kept(
            "a gate is closed",
            with(|f| f.about.conditions.push(condition("IdentityAllowed", "False", "NamespaceNotAllowed"))),
        ),
        kept(
            "the state is lost",
            with(|f| f.about.conditions = vec![condition("StateReadable", "False", "StateLost")]),
        ),
        kept("drift checks are off and nothing failed", with(|f| f.about.drift_interval_seconds = Some(0))),
        cleared("a drift check is due", with(|_| {})),
        cleared(
            "an apply failed",
            with(|f| {
                f.about.drift_interval_seconds = Some(0);
                f.jobs = Reading::Found(vec![job("captf-c-prod-apply-a3-5e1f00", JobOutcome::Failed, 1)]);
            }),
        ),
        cleared(
            "a gate is open",
            with(|f| f.about.conditions.push(condition("IdentityAllowed", "True", "IdentityAllowed"))),
        ),
        cleared(
            "a lost state with a restore asked for",
            with(|f| {
                f.about.conditions = vec![condition("StateReadable", "False", "StateLost")];
                f.about.restore_request = Some("41".into());
            }),
        ),
        cleared("deleting", with(|f| f.about.deleting = Some(ago(1)))),
    ]);
}

#[test]
fn an_unreadable_input_makes_the_time_unknown_not_guessed() {
    let facts = change(stale(), |f| f.around.owner_cluster = Some(Reading::Unreadable(gap())));
    let judgement = diagnose(&facts, now());
    assert_eq!(judgement.verdict, Verdict::Stale);
    assert_eq!(codes(&judgement), [Code::LockStaleKept]);
    assert_eq!(judgement.gaps, [gap()]);
}

#[test]
fn a_process_that_nobody_saw_end_may_run_on() {
    let ended = |edit: fn(&mut PodFacts)| {
        change(live("Failed"), |f| {
            let mut p = pod("Failed");
            edit(&mut p);
            f.holder_pod = Some(Reading::Found(p));
        })
    };
    let disruption = |reason: &str| Disruption { reason: reason.into(), message: String::new(), at: None };
    let with = |facts: LockFacts| (facts, true);
    let without = |facts: LockFacts| (facts, false);
    let rows: Vec<(&str, (LockFacts, bool))> = vec![
        (
            "collected with its node",
            with(change(ended(|_| {}), |f| {
                let mut p = pod("Failed");
                p.disruption = Some(disruption("DeletionByPodGC"));
                f.holder_pod = Some(Reading::Found(p));
            })),
        ),
        ("NodeLost", with(ended(|p| p.reason = "NodeLost".into()))),
        (
            "still reported running",
            with(ended(|p| {
                p.containers = vec![ContainerFacts {
                    name: "source".into(),
                    init: false,
                    sidecar: false,
                    image: None,
                    image_id: None,
                    memory_limit: None,
                    state: ContainerState::Running { started: None },
                }];
            })),
        ),
        (
            "gone, its node is lost",
            with(change(stale(), |f| f.around.holder_node = Some(Reading::Found(node("Unknown"))))),
        ),
        ("gone, its node too", with(change(stale(), |f| f.around.holder_node = Some(Reading::Absent)))),
        (
            "gone after NodeNotReady",
            with(change(stale(), |f| {
                f.around.holder_events = Some(Reading::Found(vec![EventFacts {
                    reason: "NodeNotReady".into(),
                    message: String::new(),
                    warning: true,
                    about: ("Pod".into(), OWN.into()),
                    at: None,
                }]));
            })),
        ),
        ("evicted by the kubelet", without(ended(|p| p.reason = "Evicted".into()))),
        (
            "gone, its node is well",
            without(change(stale(), |f| f.around.holder_node = Some(Reading::Found(node("True"))))),
        ),
        (
            "tainted off a node that is well",
            without(change(ended(|_| {}), |f| {
                let mut p = pod("Failed");
                p.disruption = Some(disruption("DeletionByTaintManager"));
                f.holder_pod = Some(Reading::Found(p));
                f.around.holder_node = Some(Reading::Found(node("True")));
            })),
        ),
        (
            "preempted",
            without(change(ended(|_| {}), |f| {
                let mut p = pod("Failed");
                p.disruption = Some(disruption("PreemptionByScheduler"));
                f.holder_pod = Some(Reading::Found(p));
            })),
        ),
    ];
    for (name, (facts, expected)) in rows {
        let judgement = diagnose(&facts, now());
        assert_eq!(judgement.verdict, Verdict::Stale, "{name}");
        assert_eq!(codes(&judgement).contains(&Code::LockStaleNodeLost), expected, "{name}");
    }
}

#[test]
fn what_the_next_run_would_do_to_the_state_stands_beside_every_verdict() {
    let labels = |facts: LockFacts| {
        change(facts, |f| {
            let mut secret = base();
            secret.labels.insert("cluster.x-k8s.io/cluster-name".into(), "other".into());
            f.state.base = Reading::Found(secret.clone());
            f.state.selected = Reading::Found(vec![secret]);
        })
    };
    let copy = |facts: LockFacts, name: &str| {
        change(facts, |f| {
            let copy = StateSecret { name: format!("{}{name}", base().name), ..base() };
            f.state.selected = Reading::Found(vec![base(), copy]);
        })
    };
    let keyless = |facts: LockFacts| {
        change(facts, |f| {
            f.state.base = Reading::Found(StateSecret { state_key: KeyPresence::Missing, ..base() });
        })
    };
    let extra = |facts: LockFacts| {
        change(facts, |f| {
            let mut secret = base();
            secret.labels.insert("team".into(), "blue".into());
            f.state.base = Reading::Found(secret);
        })
    };
    check(vec![
        ("labels differ, free", labels(healthy()), Verdict::Free, vec![Code::StateLabelsDiffer], vec![]),
        (
            "labels differ, foreign",
            labels(held("root@DESKTOP-1")),
            Verdict::Foreign,
            vec![Code::StateLabelsDiffer],
            vec![],
        ),
        (
            "labels differ, stale: the Job's init fails",
            labels(stale()),
            Verdict::Stale,
            vec![Code::StateLabelsDiffer, Code::LockStaleKept],
            vec![Code::LockStale],
        ),
        ("a further label is no difference", extra(healthy()), Verdict::Free, vec![], vec![Code::StateLabelsDiffer]),
        ("a copy", copy(healthy(), "-backup"), Verdict::Free, vec![Code::StateSecretTwice], vec![]),
        ("a chunk is no copy", copy(healthy(), "-part-1"), Verdict::Free, vec![], vec![Code::StateSecretTwice]),
        ("no key", keyless(healthy()), Verdict::Free, vec![Code::StateKeyMissing], vec![]),
        (
            "an unknown key is no finding",
            change(healthy(), |f| {
                f.state.base = Reading::Found(StateSecret { state_key: KeyPresence::Unknown, ..base() })
            }),
            Verdict::Free,
            vec![],
            vec![Code::StateKeyMissing],
        ),
        (
            "a new object has no state, which is well",
            change(healthy(), |f| {
                f.state.base = Reading::Absent;
                f.state.selected = Reading::Found(vec![]);
            }),
            Verdict::Free,
            vec![],
            vec![Code::ReleaseNoState],
        ),
    ]);
    let unreadable = change(healthy(), |f| {
        f.state.base = Reading::Unreadable(gap());
        f.state.selected = Reading::Unreadable(gap());
    });
    let judgement = diagnose(&unreadable, now());
    assert_eq!((codes(&judgement), judgement.gaps.len()), (vec![Code::LockFree], 1));
}

#[test]
fn what_the_pinned_binary_cannot_do_is_said_while_the_lock_is_held() {
    let none = |facts: LockFacts| {
        change(facts, |f| {
            f.state.base = Reading::Absent;
            f.state.selected = Reading::Found(vec![]);
        })
    };
    let chunked = |image: &str| {
        let image = image.to_string();
        change(held("root@DESKTOP-1"), move |f| {
            let part = StateSecret { name: format!("{}-part-1", base().name), ..base() };
            f.state.selected = Reading::Found(vec![base(), part]);
            f.about.image = Some(image);
        })
    };
    let content =
        |content: StateContent| change(held("root@DESKTOP-1"), |f| f.state.content = Some(Reading::Found(content)));
    let readable = StateContent::Readable {
        serial: 1,
        lineage: String::new(),
        terraform_version: String::new(),
        managed_resources: 1,
        bytes: 1,
    };
    let path_is_a_number = LockInfoReading::decode(Some(&format!(r#"{{"ID":"{ID}","Who":"@{OWN}","Path":1}}"#)));
    let foreign = Verdict::Foreign;
    check(vec![
        ("no state, foreign", none(held("root@DESKTOP-1")), foreign, vec![Code::ReleaseNoState], vec![]),
        (
            "no state, stale: the controller cannot either",
            none(stale()),
            Verdict::Stale,
            vec![Code::ReleaseNoState, Code::LockStaleKept],
            vec![Code::LockStale],
        ),
        (
            "no state, live: it is being written",
            none(live("Running")),
            Verdict::Live,
            vec![],
            vec![Code::ReleaseNoState],
        ),
        (
            "chunks, OpenTofu",
            chunked("ghcr.io/x/opentofu-cluster:1"),
            foreign,
            vec![Code::ReleaseChunkedTofu],
            vec![Code::ReleaseChunkedIfTofu],
        ),
        (
            "chunks, Terraform",
            chunked("ghcr.io/x/terraform-cluster:1"),
            foreign,
            vec![],
            vec![Code::ReleaseChunkedTofu, Code::ReleaseChunkedIfTofu],
        ),
        (
            "chunks, nobody knows",
            chunked("ghcr.io/x/cluster:1"),
            foreign,
            vec![Code::ReleaseChunkedIfTofu],
            vec![Code::ReleaseChunkedTofu],
        ),
        (
            "corrupt",
            content(StateContent::Corrupt("it is not gzip".into())),
            foreign,
            vec![Code::ReleaseStateCorrupt],
            vec![],
        ),
        (
            "inconsistent",
            content(StateContent::Inconsistent("chunk 1 is missing".into())),
            foreign,
            vec![Code::ReleaseStateCorrupt],
            vec![],
        ),
        (
            "encrypted",
            content(StateContent::Encrypted),
            foreign,
            vec![Code::ReleaseStateEncrypted],
            vec![Code::ReleaseStateCorrupt],
        ),
        ("readable", content(readable), foreign, vec![], vec![Code::ReleaseStateCorrupt, Code::ReleaseStateEncrypted]),
        (
            "row 14: the runtime cannot decode what the controller can",
            change(stale(), |f| f.lease = Reading::Found(lease(Holder::Id(ID.into()), path_is_a_number))),
            Verdict::Stale,
            vec![Code::ReleaseBadInfo, Code::LockStaleKept],
            vec![],
        ),
    ]);
}

#[test]
fn oddities_of_the_lock_are_said_beside_the_verdict() {
    let other_id = |facts: LockFacts| {
        change(facts, |f| {
            if let Reading::Found(lease) = &mut f.lease {
                lease.holder = Holder::Id("ffffffff-0000-4000-8000-000000000001".into());
            }
        })
    };
    let lease_created = |minutes: i64| {
        change(held("root@DESKTOP-1"), |f| {
            if let Reading::Found(lease) = &mut f.lease {
                lease.created = Some(ago(minutes));
            }
        })
    };
    let pod_created = |minutes: i64| {
        change(live("Running"), |f| {
            f.holder_pod = Some(Reading::Found(PodFacts { created: Some(ago(minutes)), ..pod("Running") }));
        })
    };
    let init = |facts: LockFacts| {
        change(facts, |f| {
            if let Reading::Found(lease) = &mut f.lease {
                lease.info = LockInfoReading::decode(Some(&format!(
                    r#"{{"ID":"{ID}","Who":"root@DESKTOP-1","Operation":"init"}}"#
                )));
            }
        })
    };
    let never_applied = change(held("root@DESKTOP-1"), |f| {
        f.about.observed_serial = None;
        f.about.provisioned = false;
        f.state.base = Reading::Absent;
        f.state.selected = Reading::Found(vec![]);
        f.state.backups = Some(Reading::Found(0));
    });
    let lost = change(never_applied.clone(), |f| f.about.observed_serial = Some(3));
    let foreign = Verdict::Foreign;
    check(vec![
        (
            "trap 12: IDs differ, stale by name, never cleared",
            other_id(stale()),
            Verdict::Stale,
            vec![Code::LockIdsDiffer, Code::LockStaleKept],
            vec![Code::LockStale],
        ),
        ("IDs are one", stale(), Verdict::Stale, vec![], vec![Code::LockIdsDiffer]),
        ("older than its Lease", lease_created(10), foreign, vec![Code::LockOlderThanLease], vec![]),
        ("a Lease made by the lock itself", lease_created(29), foreign, vec![], vec![Code::LockOlderThanLease]),
        (
            "older than the object",
            change(held("root@DESKTOP-1"), |f| f.about.created = Some(ago(10))),
            foreign,
            vec![Code::LockOlderThanObject],
            vec![],
        ),
        ("younger than the object", held("root@DESKTOP-1"), foreign, vec![], vec![Code::LockOlderThanObject]),
        (
            "R04: the pod is younger than the lock",
            pod_created(10),
            Verdict::Live,
            vec![Code::PodYoungerThanLock],
            vec![],
        ),
        ("the pod that took the lock", pod_created(31), Verdict::Live, vec![], vec![Code::PodYoungerThanLock]),
        ("R19: an interrupted first init", init(never_applied), foreign, vec![Code::LockInterruptedInit], vec![]),
        (
            "R19: an init over a lost state",
            init(lost),
            foreign,
            vec![Code::ReleaseNoState],
            vec![Code::LockInterruptedInit],
        ),
        ("init with a state", init(held("x@y")), foreign, vec![], vec![Code::LockInterruptedInit]),
    ]);
}

#[test]
fn an_apply_cut_short_is_remarked_only_when_its_holder_is_dead_or_foreign() {
    let apply = |facts: LockFacts| {
        change(facts, |f| {
            if let Reading::Found(lease) = &mut f.lease {
                lease.info = LockInfoReading::decode(Some(&format!(
                    r#"{{"ID":"{ID}","Who":"@{OWN}","Operation":"OperationTypeApply"}}"#
                )));
            }
        })
    };
    check(vec![
        ("stale", apply(stale()), Verdict::Stale, vec![Code::LockApplyCutShort], vec![]),
        ("live", apply(live("Running")), Verdict::Live, vec![], vec![Code::LockApplyCutShort]),
        ("a refresh", stale(), Verdict::Stale, vec![], vec![Code::LockApplyCutShort]),
    ]);
}

#[test]
fn trap_17_the_lease_is_not_to_be_touched_before_the_apply_is_booked() {
    let apply = |booked: bool| {
        change(stale(), |f| {
            let mut failed = job("captf-c-prod-apply-a3-5e1f00", JobOutcome::Failed, 1);
            failed.marks.bookkept = booked;
            failed.state_lock_version = Some("none".into());
            f.jobs = Reading::Found(vec![failed]);
        })
    };
    check(vec![
        ("not booked", apply(false), Verdict::Stale, vec![Code::LeaseVersionIsProof], vec![]),
        ("booked", apply(true), Verdict::Stale, vec![], vec![Code::LeaseVersionIsProof]),
    ]);
}

#[test]
fn trap_20_the_condition_is_compared_and_never_believed() {
    let says = |facts: LockFacts, status: &str, reason: &str| {
        let condition = condition("StateReadable", status, reason);
        change(facts, |f| f.about.conditions = vec![condition])
    };
    let foreign = || held("root@DESKTOP-1");
    let disagree = |name, facts, verdict| (name, facts, verdict, vec![Code::StateReadableDisagrees], vec![]);
    let agree = |name, facts, verdict| (name, facts, verdict, vec![], vec![Code::StateReadableDisagrees]);
    check(vec![
        agree("both foreign", says(foreign(), "False", "StateLocked"), Verdict::Foreign),
        disagree("foreign, not said", says(foreign(), "True", "StateRead"), Verdict::Foreign),
        disagree("foreign, hidden", says(foreign(), "False", "StateLost"), Verdict::Foreign),
        disagree("free, said to be locked", says(healthy(), "False", "StateLocked"), Verdict::Free),
        agree("free, said to be lost", says(healthy(), "False", "StateLost"), Verdict::Free),
        agree("free", healthy(), Verdict::Free),
    ]);
}

#[test]
fn a_snapshot_says_that_a_stale_lock_needs_a_live_look() {
    let facts = LockFacts { live: false, ..stale() };
    check(vec![
        ("from a snapshot", facts, Verdict::Stale, vec![Code::LockStaleSnapshot], vec![]),
        (
            "a free lock needs none",
            LockFacts { live: false, ..healthy() },
            Verdict::Free,
            vec![],
            vec![Code::LockStaleSnapshot],
        ),
    ]);
}

#[test]
fn a_waiting_job_says_when_it_gives_up() {
    let facts = change(held("root@DESKTOP-1"), |f| {
        let mut waiting = job("captf-c-prod-apply-a4-5e1f00", JobOutcome::Unfinished, 0);
        waiting.started = Some(ago(4));
        f.jobs = Reading::Found(vec![waiting]);
        f.about.jobs.lock_timeout_seconds = Some(600);
        let mut running = pod("Running");
        running.containers = vec![ContainerFacts {
            name: "source".into(),
            init: false,
            sidecar: false,
            image: None,
            image_id: None,
            memory_limit: None,
            state: ContainerState::Running { started: Some(ago(3)) },
        }];
        f.around.active_pods = Some(Reading::Found(vec![running]));
    });
    let judgement = diagnose(&facts, now());
    let wait = judgement.waiting.first().expect("a waiting Job");
    assert_eq!(wait.timeout_seconds, Some(600));
    assert_eq!(wait.gives_up_after, Some(now() + SignedDuration::from_mins(7)));
    assert_eq!(wait.deadline, Some(ago(4) + SignedDuration::from_secs(3600)));
}

#[test]
fn r17_a_host_that_is_a_cut_pod_name_is_a_hint_and_never_a_match() {
    let host = "a".repeat(63);
    let facts = change(held(&format!("root@{host}")), |f| {
        f.around.host.pods_cut_to_host = Some(Reading::Found(vec![format!("{host}bcd")]));
    });
    let judgement = diagnose(&facts, now());
    assert_eq!(judgement.verdict, Verdict::Foreign);
    let said = |e: &super::finding::Evidence| e.value.contains("no proof");
    assert!(judgement.findings[0].evidence.iter().any(said), "{:?}", judgement.findings[0]);
}

#[test]
fn the_next_run_follows_backoff_and_schedule() {
    let at = |facts: &LockFacts| match super::lock_inspect::when_cleared(facts, now()) {
        super::next_run::NextRun::Due { at, .. } => at,
        other => panic!("{other:?}"),
    };
    let failed = |minutes: &[i64]| {
        let jobs =
            minutes.iter().map(|m| job(&format!("captf-c-prod-apply-a{m}-5e1f00"), JobOutcome::Failed, *m)).collect();
        change(stale(), |f| {
            f.about.drift_interval_seconds = Some(0);
            f.jobs = Reading::Found(jobs);
        })
    };
    let minutes = |m: i64| Some(now() + SignedDuration::from_mins(m));
    assert_eq!(at(&failed(&[0])), minutes(1));
    assert_eq!(at(&failed(&[0, 5])), minutes(2));
    assert_eq!(at(&failed(&[0, 5, 9])), minutes(10));
    assert_eq!(at(&failed(&[3])), minutes(0), "a retry that is overdue is due now");
    assert_eq!(at(&stale()), minutes(20), "the drift check, 30 minutes after the last");
}
