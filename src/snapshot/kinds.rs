//! Which plural a kind has, whether it is namespaced, and which kind a file name means.
//!
//! A table for the kinds the commands read, kubectl's guess for others. CRDs held in a snapshot
//! overrule the guess (see `collect`). Group matters here, version never does.

use std::collections::HashMap;

/// A kind as the API paths name it: group and plural.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) group: String,
    pub(crate) plural: String,
}

impl Key {
    /// The key of a group and plural; events.k8s.io Events and core Events are one.
    pub(crate) fn new(group: &str, plural: &str) -> Self {
        let group = if group == "events.k8s.io" && plural == "events" { "" } else { group };
        Self { group: group.to_owned(), plural: plural.to_owned() }
    }

    /// `leases.coordination.k8s.io`, `pods`.
    pub(crate) fn display(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

pub(crate) const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const CLUSTER: &str = "cluster.x-k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Group, kind, plural, namespaced, short names.
type Row = (&'static str, &'static str, &'static str, bool, &'static [&'static str]);

const KINDS: &[Row] = &[
    ("", "Pod", "pods", true, &["po"]),
    ("", "Secret", "secrets", true, &[]),
    ("", "Event", "events", true, &["ev"]),
    ("", "Node", "nodes", false, &["no"]),
    ("", "Namespace", "namespaces", false, &["ns"]),
    ("", "ConfigMap", "configmaps", true, &["cm"]),
    ("", "ServiceAccount", "serviceaccounts", true, &["sa"]),
    ("", "PersistentVolume", "persistentvolumes", false, &["pv"]),
    ("", "PersistentVolumeClaim", "persistentvolumeclaims", true, &["pvc"]),
    ("", "Service", "services", true, &["svc"]),
    ("", "Endpoints", "endpoints", true, &["ep"]),
    ("", "ReplicationController", "replicationcontrollers", true, &["rc"]),
    ("", "ResourceQuota", "resourcequotas", true, &["quota"]),
    ("", "LimitRange", "limitranges", true, &["limits"]),
    ("apps", "Deployment", "deployments", true, &["deploy"]),
    ("apps", "ReplicaSet", "replicasets", true, &["rs"]),
    ("apps", "DaemonSet", "daemonsets", true, &["ds"]),
    ("apps", "StatefulSet", "statefulsets", true, &["sts"]),
    ("batch", "Job", "jobs", true, &[]),
    ("batch", "CronJob", "cronjobs", true, &["cj"]),
    ("coordination.k8s.io", "Lease", "leases", true, &[]),
    ("networking.k8s.io", "NetworkPolicy", "networkpolicies", true, &["netpol"]),
    ("networking.k8s.io", "Ingress", "ingresses", true, &["ing"]),
    ("policy", "PodDisruptionBudget", "poddisruptionbudgets", true, &["pdb"]),
    ("storage.k8s.io", "StorageClass", "storageclasses", false, &["sc"]),
    ("storage.k8s.io", "VolumeAttachment", "volumeattachments", false, &[]),
    ("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false, &["crd", "crds"]),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", false, &[]),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", false, &[]),
    (RBAC, "Role", "roles", true, &[]),
    (RBAC, "RoleBinding", "rolebindings", true, &[]),
    (RBAC, "ClusterRole", "clusterroles", false, &[]),
    (RBAC, "ClusterRoleBinding", "clusterrolebindings", false, &[]),
    (INFRASTRUCTURE, "TerraformCluster", "terraformclusters", true, &["tfc"]),
    (INFRASTRUCTURE, "TerraformMachine", "terraformmachines", true, &["tfm"]),
    (INFRASTRUCTURE, "TerraformMachinePool", "terraformmachinepools", true, &["tfmp"]),
    (INFRASTRUCTURE, "TerraformPlan", "terraformplans", true, &["tfplan"]),
    (INFRASTRUCTURE, "TerraformClusterIdentity", "terraformclusteridentities", false, &[]),
    (INFRASTRUCTURE, "TerraformClusterTemplate", "terraformclustertemplates", true, &[]),
    (INFRASTRUCTURE, "TerraformMachineTemplate", "terraformmachinetemplates", true, &[]),
    (INFRASTRUCTURE, "TerraformMachinePoolTemplate", "terraformmachinepooltemplates", true, &[]),
    (CLUSTER, "Cluster", "clusters", true, &["cl"]),
    (CLUSTER, "Machine", "machines", true, &["ma"]),
    (CLUSTER, "MachinePool", "machinepools", true, &["mp"]),
    (CLUSTER, "MachineSet", "machinesets", true, &["ms"]),
    (CLUSTER, "MachineDeployment", "machinedeployments", true, &["md"]),
    (CLUSTER, "MachineHealthCheck", "machinehealthchecks", true, &["mhc"]),
    (CLUSTER, "ClusterClass", "clusterclasses", true, &["cc"]),
];

/// Plurals and scopes: the table, and what the CRDs of a snapshot add.
#[derive(Debug, Default)]
pub(crate) struct Kinds {
    plurals: HashMap<(String, String), String>,
    scopes: HashMap<Key, bool>,
}

impl Kinds {
    /// Adds what a CRD says of its kind.
    pub(crate) fn learn(&mut self, group: &str, kind: &str, plural: &str, namespaced: bool) {
        self.plurals.insert((group.to_owned(), kind.to_owned()), plural.to_owned());
        self.scopes.insert(Key::new(group, plural), namespaced);
    }

    /// The key of a kind.
    pub(crate) fn key(&self, group: &str, kind: &str) -> Key {
        if let Some(plural) = self.plurals.get(&(group.to_owned(), kind.to_owned())) {
            return Key::new(group, plural);
        }
        if group == "events.k8s.io" && kind == "Event" {
            return Key::new("", "events");
        }
        match KINDS.iter().find(|row| row.0 == group && row.1 == kind) {
            Some(row) => Key::new(group, row.2),
            None => Key::new(group, &guess_plural(kind)),
        }
    }

    /// Whether a kind is namespaced; none when that is not known.
    pub(crate) fn namespaced(&self, key: &Key) -> Option<bool> {
        self.scopes.get(key).copied().or_else(|| row_of(key).map(|row| row.3))
    }

    /// The kind a file's stem names: `leases`, `lease`, `po`, `leases.coordination.k8s.io`.
    pub(crate) fn key_of_stem(&self, stem: &str) -> Option<Key> {
        let stem = stem.to_ascii_lowercase().replace('-', "");
        if let Some((plural, group)) = stem.split_once('.') {
            let known = self.scopes.keys().find(|key| key.group == group && key.plural == plural);
            let row = KINDS.iter().find(|row| row.0 == group && names(row, plural));
            return known
                .cloned()
                .or_else(|| row.map(|row| Key::new(row.0, row.2)))
                .or_else(|| ((group, plural) == ("events.k8s.io", "events")).then(|| Key::new("", "events")));
        }
        if let Some(row) = KINDS.iter().find(|row| names(row, &stem)) {
            return Some(Key::new(row.0, row.2));
        }
        let mut known = self.scopes.keys().filter(|key| key.plural == stem);
        let first = known.next()?;
        known.next().is_none().then(|| first.clone())
    }
}

/// The kind of a list whose items are not known: only for the header of an answer.
pub(crate) fn kind_of(key: &Key) -> Option<&'static str> {
    row_of(key).map(|row| row.1)
}

fn row_of(key: &Key) -> Option<&'static Row> {
    KINDS.iter().find(|row| row.0 == key.group && row.2 == key.plural)
}

fn names(row: &Row, word: &str) -> bool {
    row.2 == word || row.1.eq_ignore_ascii_case(word) || row.4.contains(&word)
}

/// The plural an unknown kind most likely has.
fn guess_plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    let vowel_y = ["ay", "ey", "oy", "uy"].iter().any(|end| word.ends_with(end));
    if let (Some(stem), false) = (word.strip_suffix('y'), vowel_y) {
        return format!("{stem}ies");
    }
    if ["s", "x", "ch", "sh"].iter().any(|end| word.ends_with(end)) {
        return format!("{word}es");
    }
    format!("{word}s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals() {
        let kinds = Kinds::default();
        for (group, kind, want) in [
            ("", "Pod", "pods"),
            ("", "Endpoints", "endpoints"),
            ("events.k8s.io", "Event", "events"),
            (INFRASTRUCTURE, "TerraformPlan", "terraformplans"),
            (INFRASTRUCTURE, "TerraformClusterIdentity", "terraformclusteridentities.infrastructure.cluster.x-k8s.io"),
            ("example.com", "Policy", "policies.example.com"),
            ("example.com", "Gateway", "gateways.example.com"),
            ("example.com", "Class", "classes.example.com"),
            ("example.com", "Mesh", "meshes.example.com"),
        ] {
            let got = kinds.key(group, kind);
            assert!(got.display() == want || got.plural == want, "{kind}: {}", got.display());
        }
    }

    #[test]
    fn stems() {
        let mut kinds = Kinds::default();
        kinds.learn("example.com", "Thing", "thingies", true);
        for (stem, want) in [
            ("leases", Some("leases.coordination.k8s.io")),
            ("Lease", Some("leases.coordination.k8s.io")),
            ("leases.coordination.k8s.io", Some("leases.coordination.k8s.io")),
            ("replication-controllers", Some("replicationcontrollers")),
            ("po", Some("pods")),
            ("secret", Some("secrets")),
            ("events.events.k8s.io", Some("events")),
            ("terraformclusters", Some("terraformclusters.infrastructure.cluster.x-k8s.io")),
            ("thingies", Some("thingies.example.com")),
            ("leases-team-a", None),
            ("leases.example.com", None),
            ("all", None),
            ("dump", None),
        ] {
            let got = kinds.key_of_stem(stem).map(|key| key.display());
            assert_eq!(got.as_deref(), want, "{stem}");
        }
    }
}
