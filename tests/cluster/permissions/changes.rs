//! Changes with exactly the printed Role, and with one verb less: then nothing is changed, or what was not done is said.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::removal::{Right, directly, rights, said};
use super::world::{account, old_claim, printed, restorable, restore_failed, unlockable};
use crate::engines::engines;
use crate::ground::runtime::{Runtime, suffix};
use crate::ground::{Namespace, ground};
use crate::plugin::Ran;

const CLUSTER: &str = "TerraformCluster";

/// A command's printed roles, and what `permissions check` lists of them.
struct Row {
    roles: Vec<Value>,
    rights: Vec<Right>,
    whole: PathBuf,
    stem: String,
}

impl Row {
    fn of(ns: &Namespace<'_>, command: &str) -> Self {
        let roles = printed(ns, command);
        let stem = command.replace(' ', "-");
        let whole = account(ns, &stem, &roles);
        let rights = rights(ns, &whole, command);
        Self { roles, rights, whole, stem }
    }

    /// An account that lacks this right alone.
    fn less(&self, ns: &Namespace<'_>, named: &str) -> PathBuf {
        let right = self.rights.iter().find(|r| r.named() == named && !r.outside).expect("a right of the row");
        let name = format!("{}-no-{}", self.stem, named.replace([' ', '.', '/'], "-"));
        account(ns, &name, &right.taken_from(&self.roles))
    }
}

fn claim_of(ns: &Namespace<'_>, kind: &str, name: &str) -> Option<Value> {
    ns.ground().find("Lease", ns.name(), &format!("captf-claim-{}", suffix(ns.name(), kind, name)))
}

fn asked_for(ns: &Namespace<'_>, kind: &str, name: &str) -> Value {
    ns.ground().get(kind, ns.name(), name)["metadata"]["annotations"]["captf.io/restore-state"].clone()
}

pub fn held(ns: &Namespace<'_>, name: &str) -> bool {
    let lease = format!("lock-tfstate-default-{}", suffix(ns.name(), CLUSTER, name));
    ns.ground().get("Lease", ns.name(), &lease)["spec"]["holderIdentity"].is_string()
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_restore_writes_with_the_printed_role_and_nothing_with_one_verb_less() {
    let ns = ground().namespace("restoring");
    let row = Row::of(&ns, "restore");
    let line = |kind: &str, name: &str| format!("restore 3 {kind}/{name} --yes-forget-resources=1 --wait=false");
    for (kind, short, name, owner) in [
        (CLUSTER, "tfc", "shop", "Cluster"),
        ("TerraformMachine", "tfm", "disk", "Machine"),
        ("TerraformMachinePool", "tfmp", "crew", "MachinePool"),
    ] {
        restorable(&ns, kind, name, owner);
        let patch = format!("patch {}s.infrastructure.cluster.x-k8s.io", kind.to_lowercase());
        let refused = directly(&ns, &row.less(&ns, &patch), &line(short, name));
        assert_ne!(refused.code, Some(0), "{refused:?}");
        assert!(said(&refused).contains(&patch), "without `{patch}`: {refused:?}");
        assert_eq!((asked_for(&ns, kind, name), claim_of(&ns, kind, name)), (Value::Null, None), "{refused:?}");
        let written = directly(&ns, &row.whole, &line(short, name));
        assert_eq!((written.code, asked_for(&ns, kind, name)), (Some(0), json!("3")), "{written:?}");
        assert_eq!(claim_of(&ns, kind, name), None, "the claim stays: {written:?}");
    }
    restorable(&ns, CLUSTER, "lone", "Cluster");
    for verb in ["create", "update", "delete"] {
        let named = format!("{verb} leases.coordination.k8s.io");
        let refused = directly(&ns, &row.less(&ns, &named), &line("tfc", "lone"));
        assert_eq!(refused.code, Some(4), "without `{named}`: {refused:?}");
        assert!(said(&refused).contains(&named) && said(&refused).contains("--without-claim"), "{refused:?}");
        assert_eq!(
            (asked_for(&ns, CLUSTER, "lone"), claim_of(&ns, CLUSTER, "lone")),
            (Value::Null, None),
            "{refused:?}"
        );
    }
    let no_claim = row.less(&ns, "delete leases.coordination.k8s.io");
    let written = directly(&ns, &no_claim, &format!("{} --without-claim", line("tfc", "lone")));
    assert_eq!((written.code, asked_for(&ns, CLUSTER, "lone")), (Some(0), json!("3")), "{written:?}");
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_retry_writes_with_the_printed_role_and_nothing_with_one_verb_less() {
    let ns = ground().namespace("retrying");
    let row = Row::of(&ns, "restore retry");
    restore_failed(&ns, CLUSTER, "shop", "Cluster");
    let line = "restore retry tfc/shop --yes-forget-resources=1 --wait=false";
    for named in [
        "patch terraformclusters.infrastructure.cluster.x-k8s.io",
        "create leases.coordination.k8s.io",
        "update leases.coordination.k8s.io",
        "delete leases.coordination.k8s.io",
    ] {
        let refused = directly(&ns, &row.less(&ns, named), line);
        assert_ne!(refused.code, Some(0), "without `{named}`: {refused:?}");
        assert!(said(&refused).contains(named), "without `{named}`: {refused:?}");
        assert_eq!(
            (asked_for(&ns, CLUSTER, "shop"), claim_of(&ns, CLUSTER, "shop")),
            (json!("3"), None),
            "{refused:?}"
        );
    }
    // The controller forgets the serial once it sees the object without the annotation.
    let name = ns.name().to_string();
    let controller = thread::spawn(move || {
        let start = Instant::now();
        while !ground().get(CLUSTER, &name, "shop")["metadata"]["annotations"]["captf.io/restore-state"].is_null() {
            assert!(start.elapsed() < Duration::from_secs(60), "the request was not taken away");
            thread::sleep(Duration::from_millis(100));
        }
        ground().patch(CLUSTER, &name, "shop", Some("status"), &json!({"status": {"lastRestoredSerial": null}}));
    });
    let written = directly(&ns, &row.whole, line);
    controller.join().expect("the controller's side");
    assert_eq!((written.code, asked_for(&ns, CLUSTER, "shop")), (Some(0), json!("3")), "{written:?}");
    assert_eq!(claim_of(&ns, CLUSTER, "shop"), None, "the claim stays");
}

/// `lock force-unlock` with everything that a person would be asked.
pub fn unlock(ns: &Namespace<'_>, kubeconfig: &std::path::Path, name: &str, id: &str, more: &str) -> Ran {
    let words = format!(
        "lock force-unlock tfc/{name} --lock-id {id} --holder root@builder-7.example.com --holder-is-dead --reason INC-4711 {more}"
    );
    directly(ns, kubeconfig, &words)
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_lock_is_released_with_the_printed_role_and_stays_with_one_verb_less() {
    let ns = ground().namespace("releasing");
    let row = Row::of(&ns, "lock force-unlock");
    let id = unlockable(&ns, "shop");
    for verb in ["create", "update", "delete"] {
        let named = format!("{verb} leases.coordination.k8s.io");
        let refused = unlock(&ns, &row.less(&ns, &named), "shop", &id, "--method lease");
        assert_eq!(refused.code, Some(4), "without `{named}`: {refused:?}");
        assert!(said(&refused).contains(&named) && held(&ns, "shop"), "without `{named}`: {refused:?}");
        assert_eq!(claim_of(&ns, CLUSTER, "shop"), None, "{refused:?}");
    }
    let named = "update leases.coordination.k8s.io";
    let refused = unlock(&ns, &row.less(&ns, named), "shop", &id, "--method lease --without-claim");
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(said(&refused).contains(named) && held(&ns, "shop"), "{refused:?}");
    let silent = unlock(&ns, &row.less(&ns, "create events"), "shop", &id, "--method lease");
    assert_eq!((silent.code, held(&ns, "shop")), (Some(0), false), "{silent:?}");
    assert!(said(&silent).contains("create events"), "no Event, and it is not said: {silent:?}");
    let id = unlockable(&ns, "other");
    let released = unlock(&ns, &row.whole, "other", &id, "--method lease");
    assert_eq!((released.code, held(&ns, "other")), (Some(0), false), "{released:?}");
    assert!(!said(&released).contains("forbidden"), "{released:?}");
    assert_eq!(claim_of(&ns, CLUSTER, "other"), None, "the claim stays");
}

/// What the Job's pod would do: clears the lock, and the Job is complete.
fn job_runs(namespace: &str, name: &str) {
    let start = Instant::now();
    let job = loop {
        let of_it = suffix(namespace, CLUSTER, name);
        let jobs = ground().list("Job", namespace, &format!("kubectl.captf.io/force-unlock={of_it}"));
        if let Some(job) = jobs.into_iter().find(|j| j["metadata"]["deletionTimestamp"].is_null()) {
            break job;
        }
        if start.elapsed() > Duration::from_secs(4) {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    };
    let lease = format!("lock-tfstate-default-{}", suffix(namespace, CLUSTER, name));
    let free =
        json!({"spec": {"holderIdentity": null}, "metadata": {"annotations": {"app.terraform.io/lock-info": null}}});
    ground().patch("Lease", namespace, &lease, None, &free);
    let at = "2026-01-10T08:00:00Z";
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "reason": "CompletionsReached", "lastTransitionTime": at});
    let done = json!({"status": {"startTime": at, "completionTime": at, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]}});
    ground().patch("Job", namespace, job["metadata"]["name"].as_str().expect("a name"), Some("status"), &done);
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_job_that_releases_a_lock_needs_the_verbs_on_jobs() {
    let ns = ground().namespace("by-job");
    let row = Row::of(&ns, "lock force-unlock");
    for (number, named) in ["", "create jobs.batch", "get jobs.batch", "delete jobs.batch"].into_iter().enumerate() {
        let name = format!("shop-{number}");
        let id = unlockable(&ns, &name);
        let kubeconfig = if named.is_empty() { row.whole.clone() } else { row.less(&ns, named) };
        let ran = thread::scope(|scope| {
            let pod = scope.spawn(|| job_runs(ns.name(), &name));
            let ran = unlock(&ns, &kubeconfig, &name, &id, "--method job");
            pod.join().expect("the pod's side");
            ran
        });
        assert!(named.is_empty() || said(&ran).contains(named), "without `{named}`: {ran:?}");
        assert_eq!(held(&ns, &name), !named.is_empty(), "without `{named}`: {ran:?}");
        assert_eq!(claim_of(&ns, CLUSTER, &name), None, "without `{named}`: {ran:?}");
        if named.is_empty() {
            assert_eq!(ran.code, Some(0), "{ran:?}");
            let jobs = ns.ground().list("Job", ns.name(), "");
            assert!(jobs.iter().all(|j| !j["metadata"]["deletionTimestamp"].is_null()), "the Job stays: {jobs:?}");
        }
    }
}

#[test]
#[ignore = "needs the test ground (make test)"]
fn a_claim_is_freed_with_the_printed_role() {
    let ns = ground().namespace("freeing");
    let row = Row::of(&ns, "claim reclaim");
    restorable(&ns, CLUSTER, "shop", "Cluster");
    old_claim(&ns, CLUSTER, "shop");
    let line = format!("--kubeconfig {} claim reclaim tfc/shop -n {}", row.whole.display(), ns.name());
    let freed = crate::claim::on_terminal(ns.ground(), &line, "bob@laptop/1/0123456789abcdef\n");
    assert_eq!(freed.status.code(), Some(0), "{}", crate::claim::text(&freed));
    assert_eq!(claim_of(&ns, CLUSTER, "shop"), None);
}

#[test]
#[ignore = "needs the test ground and root for Docker (make test)"]
fn the_pinned_binary_gets_no_token_without_the_verb_for_it() {
    use crate::unlock::{Call, foreign, object, run, terraform_image};
    let ns = ground().namespace("by-binary");
    let row = Row::of(&ns, "lock force-unlock");
    object(ns.ground(), ns.name(), terraform_image());
    let (workspace, id) = foreign(&ns, &Runtime::terraform());
    let call = Call { namespace: ns.name(), engine: &engines().docker, id: &id, more: &[] };
    let named = "create serviceaccounts/token";
    let refused = run(crate::unlock::unlock(ns.ground(), &call).env("KUBECONFIG", row.less(&ns, named)));
    let words = crate::claim::text(&refused);
    assert!(refused.status.code() != Some(0) && words.contains(named), "without `{named}`: {words}");
    assert_eq!((workspace.holder(), claim_of(&ns, CLUSTER, "prod")), (Some(id.clone()), None), "{words}");
    let released = run(crate::unlock::unlock(ns.ground(), &call).env("KUBECONFIG", &row.whole));
    let words = crate::claim::text(&released);
    assert_eq!((released.status.code(), workspace.holder()), (Some(0), None), "{words}");
    assert!(!words.contains("forbidden"), "{words}");
}
