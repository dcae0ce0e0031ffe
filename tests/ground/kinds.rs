//! The kinds that tests write, and where the API server keeps them.

/// One kind: its API version, its plural and whether it lives in a namespace.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    pub version: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

const CAPTF: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";
const CAPI: &str = "cluster.x-k8s.io/v1beta2";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

const fn inside(name: &'static str, version: &'static str, plural: &'static str) -> Kind {
    Kind { name, version, plural, namespaced: true }
}

const fn outside(name: &'static str, version: &'static str, plural: &'static str) -> Kind {
    Kind { name, version, plural, namespaced: false }
}

const KINDS: &[Kind] = &[
    inside("ConfigMap", "v1", "configmaps"),
    inside("Endpoints", "v1", "endpoints"),
    inside("Event", "v1", "events"),
    inside("Pod", "v1", "pods"),
    inside("Secret", "v1", "secrets"),
    inside("Service", "v1", "services"),
    inside("ServiceAccount", "v1", "serviceaccounts"),
    outside("Namespace", "v1", "namespaces"),
    outside("Node", "v1", "nodes"),
    inside("Deployment", "apps/v1", "deployments"),
    inside("Job", "batch/v1", "jobs"),
    inside("Lease", "coordination.k8s.io/v1", "leases"),
    inside("Event", "events.k8s.io/v1", "events"),
    inside("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies"),
    inside("Role", RBAC, "roles"),
    inside("RoleBinding", RBAC, "rolebindings"),
    outside("ClusterRole", RBAC, "clusterroles"),
    outside("ClusterRoleBinding", RBAC, "clusterrolebindings"),
    outside("CustomResourceDefinition", "apiextensions.k8s.io/v1", "customresourcedefinitions"),
    inside("Cluster", CAPI, "clusters"),
    inside("Machine", CAPI, "machines"),
    inside("MachinePool", CAPI, "machinepools"),
    inside("TerraformCluster", CAPTF, "terraformclusters"),
    inside("TerraformMachine", CAPTF, "terraformmachines"),
    inside("TerraformMachinePool", CAPTF, "terraformmachinepools"),
    inside("TerraformPlan", CAPTF, "terraformplans"),
    outside("TerraformClusterIdentity", CAPTF, "terraformclusteridentities"),
    inside("TerraformClusterTemplate", CAPTF, "terraformclustertemplates"),
    inside("TerraformMachineTemplate", CAPTF, "terraformmachinetemplates"),
    inside("TerraformMachinePoolTemplate", CAPTF, "terraformmachinepooltemplates"),
];

impl Kind {
    /// Finds a kind by its name alone; the core one if there are two.
    pub fn named(name: &str) -> Self {
        *KINDS
            .iter()
            .find(|kind| kind.name == name)
            .unwrap_or_else(|| panic!("the kind {name} is not in tests/ground/kinds.rs"))
    }

    /// Finds a kind as a document names it.
    pub fn of(version: &str, name: &str) -> Self {
        *KINDS
            .iter()
            .find(|kind| kind.name == name && kind.version == version)
            .unwrap_or_else(|| panic!("{version} {name} is not in tests/ground/kinds.rs"))
    }

    /// The path of all objects of the kind, in one namespace if it has one.
    pub fn collection(&self, namespace: &str) -> String {
        let root = if self.version.contains('/') { "apis" } else { "api" };
        if self.namespaced {
            assert!(!namespace.is_empty(), "a {} needs a namespace, and none was given", self.name);
            format!("/{root}/{}/namespaces/{namespace}/{}", self.version, self.plural)
        } else {
            format!("/{root}/{}/{}", self.version, self.plural)
        }
    }

    /// The path of one object.
    pub fn object(&self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.collection(namespace))
    }
}
