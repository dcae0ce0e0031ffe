//! The two commands of an unlock, their environment, and what their output means. Pure.

use std::collections::BTreeMap;

use super::files::inside;

/// What `init` is told of the backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    pub suffix: String,
    pub namespace: String,
    pub labels: BTreeMap<&'static str, String>,
    pub in_cluster: bool,
}

/// The entrypoint of CAPTF's images.
pub const RUNTIME: &str = "/captf/runtime";

/// The label map as HCL: `{"key"="value",…}`.
pub fn label_map(labels: &BTreeMap<&'static str, String>) -> String {
    // JSON's escapes are HCL's, except for the start of a template.
    let quote = |text: &str| {
        let escaped = text.replace("${", "$${").replace("%{", "%%{");
        serde_json::Value::String(escaped).to_string()
    };
    let pairs: Vec<String> = labels.iter().map(|(k, v)| format!("{}={}", quote(k), quote(v))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// Arguments of `init`.
pub fn init(backend: &Backend) -> Vec<String> {
    vec![
        "init".to_string(),
        "-input=false".to_string(),
        "-no-color".to_string(),
        format!("-backend-config=secret_suffix={}", backend.suffix),
        format!("-backend-config=namespace={}", backend.namespace),
        format!("-backend-config=in_cluster_config={}", backend.in_cluster),
        format!("-backend-config=labels={}", label_map(&backend.labels)),
    ]
}

/// Arguments of `force-unlock`. Flags come before the ID.
pub fn force_unlock(lock_id: &str) -> Vec<String> {
    ["force-unlock", "-no-color", "-force", lock_id].map(str::to_string).to_vec()
}

/// The environment. Variables of the image that would change what the backend or the binary does are
/// emptied.
pub fn environment(of_image: &[String]) -> Vec<String> {
    let ours = [
        ("KUBE_CONFIG_PATH", inside("kubeconfig")),
        ("TF_DATA_DIR", inside("data")),
        ("TMPDIR", inside("tmp")),
        ("HOME", inside("home")),
        ("CHECKPOINT_DISABLE", "1".to_string()),
        ("TF_IN_AUTOMATION", "1".to_string()),
    ];
    let mut all: Vec<String> = ours.iter().map(|(name, value)| format!("{name}={value}")).collect();
    for variable in of_image {
        let name = variable.split('=').next().unwrap_or_default();
        let steers =
            name.starts_with("KUBE") || name.starts_with("TF_") || name.to_ascii_lowercase().ends_with("_proxy");
        if steers && !ours.iter().any(|(own, _)| own == &name) {
            all.push(format!("{name}="));
        }
    }
    all
}

/// What a finished command says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Done,
    /// The lock was released or taken by somebody else.
    SomeoneWasFirst,
    /// It never looked at the cluster: our files were not there.
    LocalState,
    Failed,
}

/// Reads exit code and output of `force-unlock`. The Lease decides in the end; this only sorts failures.
pub fn said(exit_code: i64, output: &str) -> Said {
    let has = |text: &str| output.contains(text);
    if has("LocalState not locked") || has("Local state cannot be unlocked") {
        return Said::LocalState;
    }
    if exit_code == 0 {
        return Said::Done;
    }
    if has("state is already unlocked") || has("does not match existing lock") {
        return Said::SomeoneWasFirst;
    }
    Said::Failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captf::kind::WorkloadKind;
    use crate::captf::names::backend_labels;

    #[test]
    fn the_label_map_is_hcl_with_hashed_names() {
        let labels = backend_labels(WorkloadKind::Machine, &"a".repeat(70), "prod");
        let map = label_map(&labels);
        assert!(map.contains(r#""captf.infrastructure.cluster.x-k8s.io/owner-name"="6bd5e5034855a112""#), "{map}");
        assert!(map.contains(r#""clusterctl.cluster.x-k8s.io/move"="""#), "{map}");
        assert!(map.starts_with('{') && map.ends_with('}'));
        let odd = BTreeMap::from([("k", "a\"b${c}".to_string())]);
        assert_eq!(label_map(&odd), r#"{"k"="a\"b$${c}"}"#);
    }

    #[test]
    fn output_is_sorted_and_never_trusted_about_a_local_state() {
        for (code, output, expected) in [
            (0, "Terraform state has been successfully unlocked!", Said::Done),
            (1, "Failed to unlock state: state is already unlocked", Said::SomeoneWasFirst),
            (1, r#"lock id "x" does not match existing lock"#, Said::SomeoneWasFirst),
            (1, "LocalState not locked", Said::LocalState),
            (0, "Local state cannot be unlocked by another process", Said::LocalState),
            (1, "Failed to load state: gzip: invalid header", Said::Failed),
            (11, "TERRAFORM CRASH", Said::Failed),
        ] {
            assert_eq!(said(code, output), expected, "{output}");
        }
    }

    #[test]
    fn the_image_cannot_steer_the_backend() {
        let image =
            ["PATH=/bin", "KUBE_TOKEN=x", "TF_CLI_ARGS_init=-reconfigure", "HTTPS_PROXY=http://p", "TF_DATA_DIR=/d"];
        let all = environment(&image.map(str::to_string));
        for expected in ["KUBE_TOKEN=", "TF_CLI_ARGS_init=", "HTTPS_PROXY=", "TF_DATA_DIR=/captf/work/unlock/data"] {
            assert!(all.iter().any(|v| v == expected), "{expected}: {all:?}");
        }
        assert!(!all.iter().any(|v| v.starts_with("PATH=")));
        assert_eq!(all.iter().filter(|v| v.starts_with("TF_DATA_DIR=")).count(), 1);
    }
}
