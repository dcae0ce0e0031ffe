//! All objects of the three kinds and all Leases of a scope, for finding locks without an object.

use super::api::{Api, Selector};
use super::objects::read_objects;
use crate::captf::kind::WorkloadKind;
use crate::facts::object::{ObjectFacts, ObjectRef};
use crate::facts::reading::{Gap, Reading};

/// Objects of the asked kinds, and the gaps where a kind could not be listed.
pub async fn read_scope(
    api: &Api,
    kinds: &[WorkloadKind],
    namespace: Option<&str>,
    selector: &Selector,
) -> (Vec<(ObjectRef, ObjectFacts)>, Vec<Gap>) {
    let reads = kinds.iter().map(|kind| read_objects(api, *kind, namespace, selector));
    let mut objects = Vec::new();
    let mut gaps = Vec::new();
    for read in futures::future::join_all(reads).await {
        match read {
            Reading::Found(list) => objects.extend(list),
            Reading::Absent => {}
            Reading::Unreadable(gap) => gaps.push(gap),
        }
    }
    objects.sort_by(|a, b| a.0.namespace.cmp(&b.0.namespace).then_with(|| a.0.cmp(&b.0)));
    (objects, gaps)
}
