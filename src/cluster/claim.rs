//! Claim Leases on the API server, and the clock of this machine.

use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::api::{Api, LEASES, Selector};
use super::json::{annotation, int, name, owned, text, time};
use crate::claim::lease::{ClaimLease, Clock, DCCTL_INSTANCE, LeaseKey, Leases, NewClaim, OPERATION, PREFIX};
use crate::facts::reading::Reading;
use crate::facts::write::WriteFailure;

/// No request about a claim may outlast a renewal interval.
const REQUEST_LIMIT: Duration = Duration::from_secs(8);

/// Lease operations through the API server.
#[derive(Clone)]
pub struct KubeLeases {
    api: Api,
}

impl KubeLeases {
    pub fn new(api: &Api) -> Self {
        Self { api: api.within(REQUEST_LIMIT) }
    }
}

impl Leases for KubeLeases {
    async fn read(&self, key: &LeaseKey) -> Reading<ClaimLease> {
        read_claim(&self.api, key).await
    }

    async fn create(&self, claim: &NewClaim) -> Result<ClaimLease, WriteFailure> {
        let at = micro_time(claim.at);
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            // Neither captf.io/managed nor owner labels: the manager would sweep it as one of its own.
            "metadata": {"name": claim.key.name, "namespace": claim.key.namespace,
                "annotations": {OPERATION: claim.operation}},
            "spec": {"holderIdentity": claim.holder, "leaseDurationSeconds": claim.duration_seconds,
                "acquireTime": at, "renewTime": at},
        });
        self.api.create(&LEASES, &claim.key.namespace, &lease).await.map(|v| claim_from_lease(&v))
    }

    async fn update(&self, lease: &ClaimLease) -> Result<ClaimLease, WriteFailure> {
        let object = written(lease);
        self.api.update(&LEASES, &lease.key.namespace, &object).await.map(|v| claim_from_lease(&v))
    }

    async fn delete(&self, lease: &ClaimLease) -> Result<(), WriteFailure> {
        let key = &lease.key;
        self.api.delete_exactly(&LEASES, &key.namespace, &key.name, &lease.uid, &lease.resource_version).await
    }
}

/// The object as read, with what the protocol changes laid over it.
fn written(lease: &ClaimLease) -> Value {
    let mut object = lease.object.clone();
    object["apiVersion"] = json!("coordination.k8s.io/v1");
    object["kind"] = json!("Lease");
    object["metadata"]["resourceVersion"] = json!(lease.resource_version);
    let spec = &mut object["spec"];
    if !spec.is_object() {
        *spec = json!({});
    }
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec[key] = value;
        }
    };
    set("holderIdentity", lease.holder.as_ref().map(|h| json!(h)));
    set("acquireTime", lease.acquired.map(|t| json!(micro_time(t))));
    set("renewTime", lease.renewed.map(|t| json!(micro_time(t))));
    set("leaseTransitions", lease.transitions.map(|n| json!(n)));
    object
}

/// Kubernetes' MicroTime: exactly six fractional digits.
fn micro_time(at: Timestamp) -> String {
    format!("{at:.6}")
}

/// GET of a claim by name.
pub async fn read_claim(api: &Api, key: &LeaseKey) -> Reading<ClaimLease> {
    api.get(&LEASES, Some(&key.namespace), &key.name).await.map(|v| claim_from_lease(&v))
}

/// Every claim of ours in a namespace, or in all with `None`.
pub async fn read_claims(api: &Api, namespace: Option<&str>) -> Reading<Vec<ClaimLease>> {
    api.list(&LEASES, namespace, &Selector::default()).await.map(|list| {
        let claims = list.iter().filter(|v| name(v).starts_with(PREFIX)).map(claim_from_lease);
        let mut claims: Vec<ClaimLease> = claims.collect();
        claims.sort_by(|a, b| (&a.key.namespace, &a.key.name).cmp(&(&b.key.namespace, &b.key.name)));
        claims
    })
}

/// A claim as written, ours or another tool's.
pub fn claim_from_lease(value: &Value) -> ClaimLease {
    let spec = |key: &str| time(value, &["spec", key]);
    ClaimLease {
        key: LeaseKey { namespace: owned(value, &["metadata", "namespace"]), name: name(value) },
        uid: owned(value, &["metadata", "uid"]),
        resource_version: owned(value, &["metadata", "resourceVersion"]),
        holder: text(value, &["spec", "holderIdentity"]).filter(|h| !h.is_empty()).map(str::to_string),
        duration_seconds: int(value, &["spec", "leaseDurationSeconds"]),
        acquired: spec("acquireTime"),
        renewed: spec("renewTime"),
        transitions: int(value, &["spec", "leaseTransitions"]),
        operation: annotation(value, OPERATION).map(str::to_string),
        instance: annotation(value, DCCTL_INSTANCE).map(str::to_string),
        object: value.clone(),
    }
}

/// This machine's clock.
#[derive(Clone)]
pub struct SystemClock {
    start: Instant,
    wall: SystemTime,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { start: Instant::now(), wall: SystemTime::now() }
    }
}

impl Clock for SystemClock {
    /// The longer of the monotonic and the wall clock: the first stands still while a machine sleeps.
    fn elapsed(&self) -> Duration {
        self.start.elapsed().max(self.wall.elapsed().unwrap_or_default())
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_keeps_what_it_does_not_know() {
        let read = json!({
            "metadata": {"name": "dcctl", "namespace": "dc-k8s-system", "uid": "u", "resourceVersion": "7",
                "annotations": {DCCTL_INSTANCE: "prod"}, "labels": {"a": "b"}},
            "spec": {"holderIdentity": "ops@bastion/1/0011223344556677", "leaseDurationSeconds": 60,
                "renewTime": "2026-01-10T08:00:00.000001Z", "strategy": "x"},
        });
        let mut lease = claim_from_lease(&read);
        assert_eq!(lease.instance.as_deref(), Some("prod"));
        lease.holder = Some("me".to_string());
        lease.transitions = Some(1);
        let object = written(&lease);
        assert_eq!(object["metadata"]["annotations"][DCCTL_INSTANCE], "prod");
        assert_eq!(object["metadata"]["resourceVersion"], "7");
        assert_eq!(object["spec"]["strategy"], "x");
        assert_eq!(object["spec"]["holderIdentity"], "me");
        assert_eq!(object["spec"]["leaseTransitions"], 1);
        assert_eq!(object["spec"]["renewTime"], "2026-01-10T08:00:00.000001Z");
    }

    #[test]
    fn times_have_the_six_digits_that_the_api_server_asks_for() {
        let at: Timestamp = "2026-01-10T08:00:00Z".parse().expect("a time");
        assert_eq!(micro_time(at), "2026-01-10T08:00:00.000000Z");
    }
}
