//! Reading and writing objects as the admin, one blocking call at a time.

use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::Ground;
use super::kinds::Kind;

/// A client together with the executor that drives it.
pub struct Api {
    runtime: Runtime,
    client: Client,
}

/// What the API server answered when it refused a request.
#[derive(Debug)]
pub struct Refused {
    /// The HTTP status, or 0 if there was no answer at all.
    pub code: u16,
    /// The reason of the Status object, like `NotFound`, or the error.
    pub reason: String,
    /// The message of the Status object.
    pub message: String,
}

impl Api {
    /// Connects with a kubeconfig file. Sends nothing yet.
    pub fn connect(kubeconfig: &Path) -> Self {
        let runtime =
            Builder::new_current_thread().enable_all().build().expect("build an executor for the client of the tests");
        let client = runtime.block_on(async {
            let file = Kubeconfig::read_from(kubeconfig)
                .unwrap_or_else(|error| panic!("read {}: {error}", kubeconfig.display()));
            let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .unwrap_or_else(|error| panic!("use {}: {error}", kubeconfig.display()));
            config.connect_timeout = Some(Duration::from_secs(5));
            config.read_timeout = Some(Duration::from_secs(30));
            Client::try_from(config).expect("make a client from the kubeconfig of the test ground")
        });
        Self { runtime, client }
    }

    /// Sends one request with an optional JSON body.
    pub fn send(&self, method: &str, path: &str, kind: &str, body: Option<&Value>) -> Result<Value, Refused> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", kind)
            .body(body.map_or_else(Vec::new, |body| body.to_string().into_bytes()))
            .unwrap_or_else(|error| panic!("build the request {method} {path}: {error}"));
        self.runtime.block_on(self.client.request(request)).map_err(|error| match error {
            kube::Error::Api(status) => {
                Refused { code: status.code, reason: status.reason.clone(), message: status.message.clone() }
            }
            other => Refused { code: 0, reason: other.to_string(), message: format!("{other:?}") },
        })
    }
}

impl Ground {
    /// Sends any request as the admin: `request("GET", "/version", None)`.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Refused> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        self.api.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).send(method, path, kind, body)
    }

    fn demand(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.request(method, path, body).unwrap_or_else(|refused| {
            panic!("{method} {path}: {} {}: {}", refused.code, refused.reason, refused.message)
        })
    }

    /// Creates or replaces every document of a YAML or JSON text and returns
    /// them as stored, in order. A document with a `status` gets it written to
    /// its status subresource. `creationTimestamp` and `deletionTimestamp` are
    /// the server's: give the object a finalizer and delete it for the latter.
    ///
    /// The server checks the status of core kinds. A finished Job needs
    /// `startTime`, and a complete one also `completionTime` and the condition
    /// `SuccessCriteriaMet` beside `Complete` (`FailureTarget` beside `Failed`).
    pub fn apply(&self, documents: &str) -> Vec<Value> {
        let parsed: Vec<Value> = serde_saphyr::from_multiple(documents)
            .unwrap_or_else(|error| panic!("read the documents to apply: {error}\n{documents}"));
        parsed.into_iter().filter(|document| !document.is_null()).map(|document| self.apply_value(document)).collect()
    }

    /// Like [`Ground::apply`] for one document.
    pub fn apply_value(&self, mut document: Value) -> Value {
        let text = |pointer: &str| {
            let value = document.pointer(pointer).and_then(Value::as_str);
            value.unwrap_or_default().to_owned()
        };
        let kind = Kind::of(&text("/apiVersion"), &text("/kind"));
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        let status = document.as_object_mut().and_then(|fields| fields.remove("status"));
        let collection = kind.collection(&namespace);
        let path = format!("{collection}/{name}");
        let stored = match self.request("POST", &collection, Some(&document)) {
            Err(refused) if refused.code == 409 && refused.reason == "AlreadyExists" => {
                let current = self.demand("GET", &path, None);
                document["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
                self.demand("PUT", &path, Some(&document))
            }
            Err(refused) => panic!(
                "create {} {namespace}/{name}: {} {}: {}",
                kind.name, refused.code, refused.reason, refused.message
            ),
            Ok(stored) => stored,
        };
        match status {
            Some(status) => {
                let mut whole = stored;
                whole["status"] = status;
                self.demand("PUT", &format!("{path}/status"), Some(&whole))
            }
            None => stored,
        }
    }

    /// Reads one object, which must exist. For a kind without a namespace,
    /// `namespace` is ignored.
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Value {
        self.demand("GET", &Kind::named(kind).object(namespace, name), None)
    }

    /// Reads one object, or nothing if it does not exist.
    pub fn find(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let path = Kind::named(kind).object(namespace, name);
        match self.request("GET", &path, None) {
            Ok(found) => Some(found),
            Err(refused) if refused.code == 404 => None,
            Err(refused) => panic!("GET {path}: {} {}", refused.code, refused.message),
        }
    }

    /// Lists the objects that a label selector names; "" names all.
    pub fn list(&self, kind: &str, namespace: &str, selector: &str) -> Vec<Value> {
        let selector = selector.replace('=', "%3D").replace(',', "%2C");
        let collection = Kind::named(kind).collection(namespace);
        let mut list = self.demand("GET", &format!("{collection}?labelSelector={selector}"), None);
        match list["items"].take() {
            Value::Array(items) => items,
            other => panic!("list {kind} in {namespace}: no items but {other}"),
        }
    }

    /// Deletes one object, which must exist. With a finalizer it stays, with a
    /// `deletionTimestamp`.
    pub fn delete(&self, kind: &str, namespace: &str, name: &str) {
        let now = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let path = Kind::named(kind).object(namespace, name);
        self.demand("DELETE", &path, Some(&now));
    }

    /// Merges a patch into one object, or into a subresource of it, and
    /// returns the result.
    pub fn patch(&self, kind: &str, namespace: &str, name: &str, subresource: Option<&str>, patch: &Value) -> Value {
        let mut path = Kind::named(kind).object(namespace, name);
        if let Some(subresource) = subresource {
            path = format!("{path}/{subresource}");
        }
        self.demand("PATCH", &path, Some(patch))
    }
}
