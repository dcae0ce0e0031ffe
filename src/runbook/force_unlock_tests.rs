//! Tables over the decision to release a lock: each code with a row that fires and a near miss, a healthy row,
//! an unreadable row. The order of the rules is that of the issue: verdict, state, bookkeeping, binary, signs, image.

use jiff::SignedDuration;

use super::code::Code;
use super::force_unlock::{Decision, Judged, Method, Plan, Wish, judge};
use super::lock_tests::{change, gap, healthy, held, job, lease, live, now, pod, stale};
use crate::captf::lock_info::LockInfoReading;
use crate::facts::job::JobOutcome;
use crate::facts::lease::Holder;
use crate::facts::lock::LockFacts;
use crate::facts::pod::{ContainerFacts, ContainerState, PodFacts};
use crate::facts::reading::Reading;
use crate::facts::state::{KeyPresence, StateContent};
use crate::facts::unlock::{ImageRecord, Signs, UnlockReads, Watched};

fn readable() -> Option<Reading<StateContent>> {
    Some(Reading::Found(StateContent::Readable {
        serial: 7,
        lineage: "l".into(),
        terraform_version: "1.11.4".into(),
        managed_resources: 1,
        bytes: 100,
    }))
}

/// A foreign lock whose holder is nowhere to be seen, over a state that reads.
fn foreign() -> LockFacts {
    change(held("ci@builder-7"), |f| f.state.content = readable())
}

fn record(digest: Option<&str>) -> Reading<ImageRecord> {
    Reading::Found(ImageRecord {
        source: "Secret/captf-applied-c-prod annotation captf.io/image".into(),
        image: "registry.example.com:5000/team/prod:1".into(),
        digest: digest.map(str::to_string),
    })
}

fn digest() -> String {
    format!("sha256:{}", "4f".repeat(32))
}

fn reads(facts: &LockFacts) -> UnlockReads {
    UnlockReads {
        records: vec![record(Some(&digest())), Reading::Absent, Reading::Absent],
        signs: Signs {
            pods: Some(Reading::Found(Vec::new())),
            lease_changed: None,
            state_changed: None,
            watched: None,
        },
        selected: facts.state.selected.clone(),
    }
}

fn wish(method: Method) -> Wish {
    Wish { method, do_not_wait: false, image: None }
}

fn by(facts: &LockFacts, method: Method) -> Judged {
    judge(facts, &reads(facts), &wish(method), now())
}

fn plan(judged: &Judged) -> &Plan {
    match &judged.decision {
        Decision::Go(plan) => plan,
        other => panic!("{other:?}: {:?}", judged.findings),
    }
}

fn codes(judged: &Judged) -> Vec<Code> {
    judged.findings.iter().map(|f| f.code).collect()
}

#[test]
fn a_foreign_lock_over_a_readable_state_can_be_released_by_every_method() {
    for method in [Method::Runtime, Method::Job, Method::Lease] {
        let judged = by(&foreign(), method);
        assert_eq!(codes(&judged), [Code::UnlockReady], "{method:?}");
        let plan = plan(&judged);
        assert_eq!((plan.holder.as_str(), plan.resource_version.as_str()), ("ci@builder-7", "7"));
        assert_eq!(plan.labels.len(), 5);
        assert_eq!(plan.image.is_some(), method != Method::Lease);
    }
    let judged = by(&foreign(), Method::Runtime);
    let image = plan(&judged).image.clone().map(|(image, _)| image);
    assert_eq!(image, Some(format!("registry.example.com:5000/team/prod@{}", digest())));
}

/// What no method and no flag gets past.
#[test]
fn what_is_refused_is_refused_by_every_method_and_flag() {
    let unfinished = |f: &mut LockFacts| {
        f.jobs = Reading::Found(vec![job("captf-c-prod-apply-a4-5e1f00", JobOutcome::Unfinished, 0)])
    };
    let rows: Vec<(&str, LockFacts, Decision, Code)> = vec![
        ("free", healthy(), Decision::Nothing, Code::UnlockNothing),
        ("live", live("Running"), Decision::Refuse, Code::UnlockLive),
        ("live in a phase that nobody knows", live("Unknown"), Decision::Refuse, Code::UnlockLive),
        ("a Job runs", change(foreign(), unfinished), Decision::Wait, Code::UnlockJobRunning),
        (
            "no Jobs",
            change(foreign(), |f| f.jobs = Reading::Unreadable(gap())),
            Decision::Refuse,
            Code::UnlockUndetermined,
        ),
        (
            "no Lease",
            change(foreign(), |f| f.lease = Reading::Unreadable(gap())),
            Decision::Refuse,
            Code::UnlockUndetermined,
        ),
        (
            "the pod may not be read",
            change(stale(), |f| f.holder_pod = Some(Reading::Unreadable(gap()))),
            Decision::Refuse,
            Code::UnlockUndetermined,
        ),
        (
            "a label differs",
            change(foreign(), |f| {
                if let Reading::Found(base) = &mut f.state.base {
                    base.labels.insert("captf.io/managed".into(), "false".into());
                }
            }),
            Decision::Refuse,
            Code::UnlockStateUnprotected,
        ),
        (
            "a copy matches as well",
            change(foreign(), |f| {
                if let Reading::Found(all) = &mut f.state.selected {
                    let mut copy = all[0].clone();
                    copy.name = "copy".into();
                    all.push(copy);
                }
            }),
            Decision::Refuse,
            Code::UnlockStateUnprotected,
        ),
        (
            "the state has no key",
            change(foreign(), |f| {
                if let Reading::Found(base) = &mut f.state.base {
                    base.state_key = KeyPresence::Missing;
                }
            }),
            Decision::Refuse,
            Code::UnlockStateUnprotected,
        ),
        (
            "a chunk lacks a label",
            change(foreign(), |f| {
                if let Reading::Found(all) = &mut f.state.selected {
                    let mut chunk = all[0].clone();
                    chunk.name.push_str("-part-1");
                    chunk.labels.remove("captf.io/managed");
                    all.push(chunk);
                }
            }),
            Decision::Refuse,
            Code::UnlockStateUnprotected,
        ),
        (
            "no Cluster is named",
            change(foreign(), |f| f.about.cluster_name = None),
            Decision::Refuse,
            Code::UnlockUnproven,
        ),
        (
            "the state may not be listed",
            change(foreign(), |f| f.state.selected = Reading::Unreadable(gap())),
            Decision::Refuse,
            Code::UnlockUnproven,
        ),
        (
            "trap 17",
            change(foreign(), |f| {
                let mut proof = job("captf-c-prod-apply-a3-5e1f00", JobOutcome::Failed, 5);
                proof.marks.bookkept = false;
                proof.state_lock_version = Some("6".into());
                f.jobs = Reading::Found(vec![proof]);
            }),
            Decision::Refuse,
            Code::UnlockWaitsForBookkeeping,
        ),
    ];
    for (name, facts, decision, code) in rows {
        for method in [Method::Runtime, Method::Job, Method::Lease] {
            let wish = Wish { do_not_wait: true, image: Some("x@sha256:0".into()), method };
            let judged = judge(&facts, &reads(&facts), &wish, now());
            assert_eq!(judged.decision, decision, "{name} by {method:?}: {:?}", judged.findings);
            assert!(codes(&judged).contains(&code), "{name} by {method:?}: {:?}", codes(&judged));
        }
    }
}

#[test]
fn a_stale_lock_is_left_to_the_controller_unless_that_must_not_be_waited_for() {
    let facts = change(stale(), |f| f.state.content = readable());
    assert_eq!(codes(&by(&facts, Method::Runtime)), [Code::UnlockLeftToController]);
    let wish = Wish { do_not_wait: true, ..wish(Method::Runtime) };
    assert_eq!(codes(&judge(&facts, &reads(&facts), &wish, now())), [Code::UnlockReady]);
}

#[test]
fn where_the_ids_differ_the_holder_is_unknown_and_its_own_id_counts() {
    let other = "00000002-0000-4000-8000-000000000002";
    let facts = change(stale(), |f| {
        f.state.content = readable();
        if let Reading::Found(lease) = &mut f.lease {
            lease.holder = Holder::Id(other.into());
        }
    });
    // The controller's own unlock does nothing here, so nothing is left to it.
    let judged = by(&facts, Method::Runtime);
    let plan = plan(&judged);
    assert_eq!((plan.lock_id.as_str(), plan.holder.as_str()), (other, "unknown"));
}

#[test]
fn what_the_binary_cannot_release_goes_by_the_lease_only() {
    let with_lease = |holder, info| change(foreign(), |f| f.lease = Reading::Found(lease(holder, info)));
    let id = || Holder::Id("00000001-0000-4000-8000-000000000001".into());
    let content = |content| change(foreign(), |f| f.state.content = Some(Reading::Found(content)));
    let rows = [
        ("row 7", with_lease(Holder::Empty, LockInfoReading::Missing)),
        ("row 14", with_lease(id(), LockInfoReading::decode(Some(r#"{"ID":"00"#)))),
        ("row 15, corrupt", content(StateContent::Corrupt("it is not gzip".into()))),
        ("row 15, encrypted", content(StateContent::Encrypted)),
        (
            "row 2, no state",
            change(foreign(), |f| {
                f.state.base = Reading::Absent;
                f.state.selected = Reading::Found(Vec::new());
                f.state.content = Some(Reading::Absent);
            }),
        ),
        (
            "row 18, chunks and perhaps OpenTofu",
            change(foreign(), |f| {
                if let Reading::Found(all) = &mut f.state.selected {
                    let mut chunk = all[0].clone();
                    chunk.name.push_str("-part-1");
                    all.push(chunk);
                }
            }),
        ),
    ];
    for (name, facts) in rows {
        for method in [Method::Runtime, Method::Job] {
            assert_eq!(codes(&by(&facts, method)), [Code::UnlockBinaryCannot], "{name}");
        }
        assert_eq!(codes(&by(&facts, Method::Lease)), [Code::UnlockReady], "{name}");
    }
    // Near misses: no lock-info at all is no obstacle, nor are chunks for Terraform.
    assert_eq!(codes(&by(&with_lease(id(), LockInfoReading::Missing), Method::Runtime)), [Code::UnlockReady]);
    let terraform = change(foreign(), |f| {
        f.about.image = Some("registry.example.com/team/terraform:1".into());
        if let Reading::Found(all) = &mut f.state.selected {
            let mut chunk = all[0].clone();
            chunk.name.push_str("-part-1");
            all.push(chunk);
        }
    });
    assert_eq!(codes(&by(&terraform, Method::Runtime)), [Code::UnlockReady]);
    // What was not read is not proved; that is no word about the binary.
    let unread = change(foreign(), |f| f.state.content = Some(Reading::Unreadable(gap())));
    assert_eq!(codes(&by(&unread, Method::Runtime)), [Code::UnlockUnproven]);
}

#[test]
fn a_pod_that_has_not_ended_or_a_change_while_watching_refuses() {
    let facts = foreign();
    let named = |phase: &str| PodFacts { name: "builder-7".into(), ..pod(phase) };
    let with = |pods, watched| {
        let mut reads = reads(&facts);
        reads.signs.pods = Some(pods);
        reads.signs.watched = watched;
        judge(&facts, &reads, &wish(Method::Lease), now())
    };
    let elsewhere = |phase| Reading::Found(vec![("other".to_string(), named(phase))]);
    let watched =
        |changes: &[&str]| Some(Watched { seconds: 60, changes: changes.iter().map(|c| c.to_string()).collect() });
    let nobody = || Reading::Found(Vec::new());
    for (name, judged, expected) in [
        ("running elsewhere", with(elsewhere("Running"), None), Code::UnlockHolderSeen),
        ("in no phase", with(elsewhere(""), None), Code::UnlockHolderSeen),
        ("ended elsewhere", with(elsewhere("Failed"), None), Code::UnlockReady),
        ("a change", with(nobody(), watched(&["the Lease: version 7, then version 8"])), Code::UnlockHolderSeen),
        ("no change", with(nobody(), watched(&[])), Code::UnlockReady),
        ("pods may not be listed", with(Reading::Unreadable(gap()), None), Code::UnlockReady),
    ] {
        assert_eq!(codes(&judged), [expected], "{name}");
    }
    assert!(with(Reading::Unreadable(gap()), None).gaps.contains(&gap()), "what was not read is not named");
    // The containers are told apart from the process that took the lock, 30 minutes ago.
    let container = |minutes| ContainerFacts {
        name: "tf".into(),
        init: false,
        sidecar: false,
        image: None,
        image_id: None,
        memory_limit: None,
        state: ContainerState::Running { started: Some(now() - SignedDuration::from_mins(minutes)) },
    };
    for (minutes, words) in [(10, "after the lock was taken"), (40, "before the lock was taken")] {
        let pod = PodFacts { containers: vec![container(minutes)], ..named("Running") };
        let judged = with(Reading::Found(vec![("other".into(), pod)]), None);
        assert!(judged.findings[0].evidence.iter().any(|e| e.value.contains(words)), "{words}");
    }
}

#[test]
fn an_image_without_certainty_is_not_run() {
    let facts = foreign();
    let with = |records| {
        let reads = UnlockReads { records, ..reads(&facts) };
        judge(&facts, &reads, &wish(Method::Runtime), now())
    };
    let good = || record(Some(&digest()));
    for (name, records, expected) in [
        ("the applied record", vec![good(), Reading::Absent, Reading::Absent], Code::UnlockReady),
        ("the inputs record", vec![Reading::Absent, good(), Reading::Absent], Code::UnlockReady),
        ("a later record with a digest", vec![record(None), good(), Reading::Absent], Code::UnlockReady),
        ("the status", vec![Reading::Absent, Reading::Absent, good()], Code::UnlockReady),
        ("no digest anywhere", vec![record(None), Reading::Absent, record(None)], Code::UnlockNoImage),
        ("nothing", vec![Reading::Absent, Reading::Absent, Reading::Absent], Code::UnlockNoImage),
        (
            "the record that counts may not be read",
            vec![Reading::Unreadable(gap()), good(), good()],
            Code::UnlockNoImage,
        ),
    ] {
        assert_eq!(codes(&with(records)), [expected], "{name}");
    }
    let given = Wish { image: Some("registry.example.com/x:1".into()), ..wish(Method::Runtime) };
    let reads = UnlockReads { records: Vec::new(), ..reads(&facts) };
    assert_eq!(codes(&judge(&facts, &reads, &given, now())), [Code::UnlockReady]);
}
