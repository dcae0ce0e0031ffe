//! Run leases and cluster write leases, and what their holders do.

use serde_json::Value;

use super::api::{Api, JOBS, LEASES};
use super::jobs::facts_from_job;
use super::json::{annotation, int, name, owned, text, time};
use super::pods::read_pods_of_job;
use crate::captf::keys;
use crate::facts::job_why::LeaseWait;
use crate::facts::reading::Reading;
use crate::facts::run::RunLease;

/// Seconds after which a lease that names no duration is free.
const DEFAULT_BACKSTOP_SECONDS: i64 = 4500;

/// A lease by its exact name, then its holder's Job and pods.
pub async fn read_lease_wait(api: &Api, namespace: &str, lease: &str) -> LeaseWait {
    let read = api.get(&LEASES, Some(namespace), lease).await.map(|value| facts_from_run_lease(&value));
    let holder = read.found().map(|l| l.holder.clone()).filter(|h| !h.is_empty());
    let (holder, holder_pods) = match holder {
        Some(job) => {
            let (found, pods) =
                tokio::join!(api.get(&JOBS, Some(namespace), &job), read_pods_of_job(api, namespace, &job));
            (found.map(|value| facts_from_job(&value)), pods)
        }
        None => (Reading::Absent, Reading::Absent),
    };
    LeaseWait { name: lease.to_string(), lease: read, holder, holder_pods }
}

/// A lease as written; its age counts from the annotation, else acquireTime, else creation.
pub fn facts_from_run_lease(value: &Value) -> RunLease {
    RunLease {
        name: name(value),
        holder: owned(value, &["spec", "holderIdentity"]),
        op: annotation(value, keys::LEASE_OP).map(str::to_string),
        acquired: annotation(value, keys::LEASE_ACQUIRED_AT)
            .and_then(crate::captf::time::parse_rfc3339)
            .or_else(|| text(value, &["spec", "acquireTime"]).and_then(crate::captf::time::parse_rfc3339))
            .or_else(|| time(value, &["metadata", "creationTimestamp"])),
        backstop_seconds: int(value, &["spec", "leaseDurationSeconds"])
            .filter(|s| *s > 0)
            .unwrap_or(DEFAULT_BACKSTOP_SECONDS),
    }
}
