//! Gathers what the judgement of a restore rests on, and how far one that runs has come.

use serde_json::Value;

use super::api::{Api, LEASES};
use super::backups::{read_backup_sets, read_state_secrets};
use super::clusters::{read_owner_cluster, read_parent};
use super::jobs::{facts_from_job, read_labelled_values};
use super::json::{annotation, at, int, is_true, items, owned, text, time};
use super::lock::read_lock_facts;
use super::objects::{facts_from_object, resource};
use super::payload::{Payload, read_backup, read_live};
use super::pods::read_pods_of_job;
use super::state_diff::diff;
use crate::captf::kind::WorkloadKind;
use crate::captf::names::{Operation, cluster_lease, run_lease};
use crate::facts::backup::{BackupSet, StatusBackup};
use crate::facts::job::{JobFacts, JobOutcome};
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::reading::Reading;
use crate::facts::restore::{Baseline, ProgressFacts, RestoreFacts, RestoreObject};
use crate::facts::state::StateContent;
use crate::runbook::backup_sets::choose;

/// The object with what only a restore needs.
pub async fn read_restore_object(api: &Api, object: &ObjectRef) -> Reading<(ObjectFacts, RestoreObject)> {
    let read = api.get(&resource(object.kind), Some(&object.namespace), &object.name).await;
    read.map(|value| (facts_from_object(&value), extra_from_object(&value)))
}

fn extra_from_object(value: &Value) -> RestoreObject {
    RestoreObject {
        resource_version: owned(value, &["metadata", "resourceVersion"]),
        uid: owned(value, &["metadata", "uid"]),
        status_backups: items(value, &["status", "stateBackups"])
            .iter()
            .map(|entry| StatusBackup {
                serial: int(entry, &["serial"]).unwrap_or_default(),
                taken: time(entry, &["takenAt"]),
                bytes: int(entry, &["bytes"]).and_then(|b| u64::try_from(b).ok()),
            })
            .collect(),
        has_owner: items(value, &["metadata", "ownerReferences"])
            .iter()
            .any(|r| text(r, &["apiVersion"]).is_some_and(|v| v.starts_with("cluster.x-k8s.io/"))),
        apply_policy: text(value, &["spec", "applyPolicy"]).map(str::to_string),
        adopt_retained: is_true(value, &["spec", "adoptRetainedState"]),
        finalizers: items(value, &["metadata", "finalizers"]).len(),
    }
}

/// Everything that the judgement of a restore of that serial rests on. The object comes first: its version is
/// what a write carries. `Absent` and `Unreadable` are those of the object.
pub async fn read_restore_facts(
    api: &Api,
    object: &ObjectRef,
    serial: Option<i64>,
    live: bool,
) -> Reading<RestoreFacts> {
    let (about, extra) = match read_restore_object(api, object).await {
        Reading::Found(found) => found,
        Reading::Absent => return Reading::Absent,
        Reading::Unreadable(gap) => return Reading::Unreadable(gap),
    };
    let lock = match read_lock_facts(api, object, live).await {
        Reading::Found(lock) => lock,
        Reading::Absent => return Reading::Absent,
        Reading::Unreadable(gap) => return Reading::Unreadable(gap),
    };
    let cluster = about.cluster_name.clone();
    let (sets, secrets, owner_cluster, present) = tokio::join!(
        read_backup_sets(api, object),
        read_state_secrets(api, object),
        async {
            match &cluster {
                Some(name) => Some(read_owner_cluster(api, &object.namespace, name).await),
                None => None,
            }
        },
        read_live(api, object),
    );
    let inherits = about.deleting.is_some() && about.deletion_policy.is_none() && object.kind != WorkloadKind::Cluster;
    let terraform_cluster = match (inherits, &owner_cluster) {
        (false, _) => None,
        (true, Some(owner)) => Some(read_parent(api, owner).await),
        (true, None) => Some(Reading::Absent),
    };
    let chosen = serial.zip(sets.found()).and_then(|(serial, sets)| choose(sets, serial));
    let backup = match chosen {
        Some(set) => Some(read_backup(api, &object.namespace, set).await),
        None => None,
    };
    let (baseline, diff) = compare(api, object, &sets, chosen, &present, backup.as_ref()).await;
    let live = present.map(|p| p.facts);
    let backup = backup.map(|b| b.map(|p| p.facts));
    Reading::Found(RestoreFacts {
        object: object.clone(),
        about,
        extra,
        lock,
        owner_cluster,
        terraform_cluster,
        sets,
        secrets,
        backup,
        live,
        baseline,
        diff,
    })
}

fn readable(payload: &Payload) -> bool {
    matches!(payload.facts.content, StateContent::Readable { .. })
}

/// Compares with the live state; where that is lost or broken, with the newest other backup that reads.
async fn compare(
    api: &Api,
    object: &ObjectRef,
    sets: &Reading<Vec<BackupSet>>,
    chosen: Option<&BackupSet>,
    present: &Reading<Payload>,
    backup: Option<&Reading<Payload>>,
) -> (Baseline, Option<crate::facts::state_diff::StateDiff>) {
    let Some(Reading::Found(backup)) = backup else {
        return (Baseline::Nothing, None);
    };
    if !readable(backup) {
        return (Baseline::Nothing, None);
    }
    match present {
        Reading::Found(present) if readable(present) => {
            return (Baseline::Live, Some(diff(&present.instances, &backup.instances)));
        }
        Reading::Unreadable(_) => return (Baseline::Nothing, None),
        _ => {}
    }
    let sets = sets.found().map(Vec::as_slice).unwrap_or_default();
    for set in sets.iter().filter(|s| s.is_complete()) {
        if chosen.is_some_and(|c| c.name == set.name) {
            return (Baseline::Nothing, None); // nothing newer reads, and a backup tells nothing of what came after it
        }
        if let Reading::Found(newest) = read_backup(api, &object.namespace, set).await
            && readable(&newest)
        {
            let serial = set.serial.unwrap_or_default();
            return (Baseline::Backup { serial }, Some(diff(&newest.instances, &backup.instances)));
        }
    }
    (Baseline::Nothing, None)
}

/// How far a restore has come.
pub async fn read_progress(api: &Api, object: &ObjectRef) -> Reading<ProgressFacts> {
    let read = api.get(&resource(object.kind), Some(&object.namespace), &object.name).await;
    let value = match read {
        Reading::Found(value) => value,
        Reading::Absent => return Reading::Absent,
        Reading::Unreadable(gap) => return Reading::Unreadable(gap),
    };
    let about = facts_from_object(&value);
    let cluster_gate = match (&about.cluster_name, object.kind) {
        (Some(cluster), WorkloadKind::Cluster) => Some(cluster_lease(&object.namespace, cluster)),
        _ => None,
    };
    let run = run_lease(&object.suffix());
    let (jobs, run_lease, cluster_lease) =
        tokio::join!(read_labelled_values(api, object), read_holder(api, &object.namespace, &run), async {
            match &cluster_gate {
                Some(name) => Some(read_holder(api, &object.namespace, name).await),
                None => None,
            }
        },);
    let mut other_job = None;
    let jobs = jobs.map(|values| {
        let own = values.iter().filter(|v| super::json::controller_uid(v) == Some(about.uid.as_str()));
        let mut restores: Vec<(JobFacts, Option<i64>)> = Vec::new();
        for value in own {
            let job = facts_from_job(value);
            if job.op == Some(Operation::Restore) {
                let serial = annotation(value, "captf.io/restore-serial").and_then(|s| s.trim().parse().ok());
                restores.push((job, serial));
            } else if job.outcome == JobOutcome::Unfinished {
                other_job = Some(job.name);
            }
        }
        restores.sort_by(|a, b| (b.0.created, &b.0.name).cmp(&(a.0.created, &a.0.name)));
        restores
    });
    let newest = jobs.found().and_then(|j| j.first()).map(|(job, _)| job.name.clone());
    let pod = match newest {
        Some(job) => Some(read_pods_of_job(api, &object.namespace, &job).await.and_then(|pods| {
            let newest = pods.into_iter().max_by_key(|p| p.created);
            newest.map_or(Reading::Absent, Reading::Found)
        })),
        None => None,
    };
    let run = at(&value, &["status", "lastRun"]).unwrap_or(&Value::Null);
    Reading::Found(ProgressFacts {
        object: object.clone(),
        requested_at: requested_at(&value),
        steps: items(run, &["steps"])
            .iter()
            .map(|s| (owned(s, &["name"]), int(s, &["exit"]).or(int(s, &["exitCode"])).unwrap_or_default()))
            .collect(),
        about,
        jobs,
        other_job,
        run_lease,
        cluster_lease,
        pod,
    })
}

/// When the annotation was last set, as managedFields say it.
fn requested_at(value: &Value) -> Option<jiff::Timestamp> {
    let path = ["fieldsV1", "f:metadata", "f:annotations", "f:captf.io/restore-state"];
    items(value, &["metadata", "managedFields"])
        .iter()
        .filter(|entry| at(entry, &path).is_some())
        .filter_map(|entry| time(entry, &["time"]))
        .max()
}

async fn read_holder(api: &Api, namespace: &str, lease: &str) -> Reading<Option<String>> {
    match api.get(&LEASES, Some(namespace), lease).await {
        Reading::Absent => Reading::Found(None),
        read => read.map(|v| text(&v, &["spec", "holderIdentity"]).filter(|h| !h.is_empty()).map(str::to_string)),
    }
}
