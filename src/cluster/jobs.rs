//! The Jobs that the controller counts for an object.

use std::collections::HashMap;

use serde_json::Value;

use super::api::{Api, JOBS, Selector};
use super::json::{annotation, controller_uid, int, is_true as is_set, items, label, name, owned, text, time};
use crate::captf::keys;
use crate::captf::kind::WorkloadKind;
use crate::captf::names::{Operation, label_value};
use crate::facts::job::{JobFacts, JobMarks, JobOutcome};
use crate::facts::object::ObjectRef;
use crate::facts::reading::Reading;

/// The object's Jobs: by owner labels and by the UID in the controller reference.
pub async fn read_jobs(api: &Api, object: &ObjectRef, uid: &str) -> Reading<Vec<JobFacts>> {
    read_labelled_jobs(api, object).await.map(|jobs| jobs_of(jobs, uid))
}

/// Jobs with the object's owner labels, each with the UID in its controller reference. The UID of
/// the object is not needed for the request, so it can run beside the read of the object.
pub async fn read_labelled_jobs(api: &Api, object: &ObjectRef) -> Reading<Vec<(String, JobFacts)>> {
    read_labelled_values(api, object).await.map(|list| with_owner(&list))
}

/// The same as raw objects.
pub async fn read_labelled_values(api: &Api, object: &ObjectRef) -> Reading<Vec<Value>> {
    api.list(&JOBS, Some(&object.namespace), &selector_of(object)).await
}

/// The owner labels of an object's Jobs.
pub(super) fn selector_of(object: &ObjectRef) -> Selector {
    Selector::labels(format!(
        "{}={},{}={}",
        keys::OWNER_KIND,
        object.kind.kind(),
        keys::OWNER_NAME,
        label_value(&object.name)
    ))
}

/// Keeps the Jobs of the object with that UID. Without one, as in a scrubbed snapshot, the labels have to do.
pub fn jobs_of(jobs: Vec<(String, JobFacts)>, uid: &str) -> Vec<JobFacts> {
    jobs.into_iter().filter(|(owner, _)| uid.is_empty() || owner == uid).map(|(_, job)| job).collect()
}

/// All CAPTF Jobs of a namespace (or of all), keyed by namespace, kind and owner-name label.
pub async fn read_all_jobs(api: &Api, namespace: Option<&str>) -> Reading<HashMap<JobKey, Vec<(String, JobFacts)>>> {
    let selector = Selector::labels(keys::OWNER_KIND);
    api.list(&JOBS, namespace, &selector).await.map(|list| {
        let mut by_owner: HashMap<JobKey, Vec<(String, JobFacts)>> = HashMap::new();
        for value in &list {
            let Some(kind) = label(value, keys::OWNER_KIND).and_then(WorkloadKind::from_kind) else {
                continue;
            };
            let owner = label(value, keys::OWNER_NAME).unwrap_or_default().to_string();
            let key = JobKey { namespace: owned(value, &["metadata", "namespace"]), kind, owner };
            by_owner.entry(key).or_default().extend(with_owner(std::slice::from_ref(value)));
        }
        by_owner
    })
}

/// The object that controls a Job, by its reference, or by its labels where there is none.
pub fn owner_of_job(job: &Value) -> Option<ObjectRef> {
    let by_reference = items(job, &["metadata", "ownerReferences"]).iter().find_map(|r| {
        let kind = WorkloadKind::from_kind(text(r, &["kind"])?)?;
        is_set(r, &["controller"]).then(|| (kind, text(r, &["name"]).unwrap_or_default()))
    });
    let by_label = || Some((WorkloadKind::from_kind(label(job, keys::OWNER_KIND)?)?, label(job, keys::OWNER_NAME)?));
    let (kind, name) = by_reference.or_else(by_label)?;
    Some(ObjectRef { kind, namespace: owned(job, &["metadata", "namespace"]), name: name.to_string() })
}

/// The labels under which a Job is found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobKey {
    pub namespace: String,
    pub kind: WorkloadKind,
    pub owner: String,
}

impl JobKey {
    pub fn of(object: &ObjectRef) -> Self {
        Self { namespace: object.namespace.clone(), kind: object.kind, owner: label_value(&object.name) }
    }
}

fn with_owner(list: &[Value]) -> Vec<(String, JobFacts)> {
    list.iter().map(|v| (controller_uid(v).unwrap_or_default().to_string(), facts_from_job(v))).collect()
}

/// A Job by the controller's own reading of its conditions and marks.
pub fn facts_from_job(value: &Value) -> JobFacts {
    let is_true = |kind: &str| {
        items(value, &["status", "conditions"])
            .iter()
            .find(move |c| text(c, &["type"]) == Some(kind) && text(c, &["status"]) == Some("True"))
    };
    let ending = items(value, &["status", "conditions"])
        .iter()
        .find(|c| text(c, &["status"]) == Some("True") && matches!(text(c, &["type"]), Some("Complete" | "Failed")));
    let outcome = match ending.and_then(|c| text(c, &["type"])) {
        Some("Complete") => JobOutcome::Succeeded,
        Some(_) => JobOutcome::Failed,
        None => JobOutcome::Unfinished,
    };
    let created = time(value, &["metadata", "creationTimestamp"]);
    let finished = ending.and_then(|c| {
        time(c, &["lastTransitionTime"]).or_else(|| time(value, &["status", "completionTime"])).or(created)
    });
    let mark = |key: &str| annotation(value, key) == Some("true");
    let template = &["spec", "template", "spec", "containers"];
    let source = items(value, template).iter().find(|c| text(c, &["name"]) == Some("source"));
    let flag = |prefix: &str| {
        let args = source.map_or(&[][..], |s| items(s, &["args"]));
        let command = source.map_or(&[][..], |s| items(s, &["command"]));
        command.iter().chain(args).filter_map(Value::as_str).find_map(|a| a.strip_prefix(prefix)).map(str::to_string)
    };
    JobFacts {
        name: name(value),
        uid: owned(value, &["metadata", "uid"]),
        created,
        op: label(value, keys::OP).and_then(Operation::parse),
        attempt: label(value, keys::ATTEMPT).and_then(|a| a.parse().ok()),
        outcome,
        finished,
        failure: is_true("Failed").map(|c| (owned(c, &["reason"]), owned(c, &["message"]))),
        failure_target: is_true("FailureTarget").map(|c| (owned(c, &["reason"]), time(c, &["lastTransitionTime"]))),
        marks: JobMarks {
            bookkept: mark(keys::BOOKKEPT),
            interrupted: mark(keys::INTERRUPTED),
            blocked: mark(keys::PLAN_BLOCKED),
            plan_changed: mark(keys::PLAN_CHANGED),
            plan_unreadable: mark(keys::PLAN_UNREADABLE),
        },
        state_lock_version: annotation(value, keys::STATE_LOCK_VERSION).map(str::to_string),
        started: time(value, &["status", "startTime"]),
        active_deadline_seconds: int(value, &["spec", "activeDeadlineSeconds"]),
        lock_timeout_seconds: flag("--lock-timeout=").and_then(|v| v.strip_suffix('s')?.parse().ok()),
        force_unlock: flag("--force-unlock=").filter(|id| !id.is_empty()),
        image: source.and_then(|s| text(s, &["image"])).map(str::to_string),
        suspended: is_set(value, &["spec", "suspend"]),
        deleting: time(value, &["metadata", "deletionTimestamp"]),
        remediation: annotation(value, keys::DRIFT_REMEDIATION).is_some(),
        plan: annotation(value, keys::PLAN).filter(|p| !p.is_empty()).map(str::to_string),
        image_fallbacks: annotation(value, keys::IMAGE_FALLBACKS)
            .map(|list| serde_json::from_str::<Vec<String>>(list).map_or(0, |l| l.len())),
        service_account: text(value, &["spec", "template", "spec", "serviceAccountName"]).map(str::to_string),
    }
}
