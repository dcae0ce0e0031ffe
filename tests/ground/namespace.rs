//! Namespaces of one test, and credentials that may do little in them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::Ground;

/// A namespace that belongs to one test.
pub struct Namespace<'ground> {
    ground: &'ground Ground,
    name: String,
}

impl<'ground> Namespace<'ground> {
    /// The name: the stem and something unique.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The ground that the namespace is in.
    pub fn ground(&self) -> &'ground Ground {
        self.ground
    }
}

impl Drop for Namespace<'_> {
    /// Asks for the deletion. No controller carries it out, so that the objects
    /// stay until the ground ends; a namespace is never used twice.
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let path = format!("/api/v1/namespaces/{}", self.name);
        let _ = self.ground.request("DELETE", &path, None); // nothing depends on it
    }
}

impl Ground {
    /// Creates a namespace whose name starts with a stem and is used nowhere
    /// else.
    pub fn namespace(&self, stem: &str) -> Namespace<'_> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{stem}-{:x}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.apply_value(json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name},
        }));
        Namespace { ground: self, name }
    }

    /// Writes a kubeconfig that logs in as a new ServiceAccount with the given
    /// RBAC rules in its namespace and no others, and returns its path. Its
    /// default namespace is that of the ServiceAccount.
    ///
    /// `rules` is the list of a Role, like
    /// `json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])`.
    pub fn service_account_kubeconfig(&self, namespace: &str, name: &str, rules: &Value) -> PathBuf {
        let metadata = json!({"name": name, "namespace": namespace});
        self.apply_value(json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata,
        }));
        self.apply_value(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": rules,
        }));
        self.apply_value(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        }));
        self.token_kubeconfig(namespace, name)
    }

    /// Writes a kubeconfig with a one hour token of a ServiceAccount that
    /// exists.
    pub fn token_kubeconfig(&self, namespace: &str, name: &str) -> PathBuf {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let wanted = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 3600},
        });
        let answer = self
            .request("POST", &path, Some(&wanted))
            .unwrap_or_else(|refused| panic!("request a token of {namespace}/{name}: {refused:?}"));
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "testground",
            "clusters": [{"name": "testground", "cluster": {
                "server": self.server,
                "certificate-authority": self.ca,
            }}],
            "users": [{"name": name, "user": {"token": answer["status"]["token"]}}],
            "contexts": [{"name": "testground", "context": {
                "cluster": "testground", "user": name, "namespace": namespace,
            }}],
        });
        let file = self.dir.join(format!("kubeconfig-{namespace}-{name}"));
        fs::write(&file, config.to_string())
            .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o600)))
            .unwrap_or_else(|error| panic!("write {}: {error}", file.display()));
        file
    }
}
