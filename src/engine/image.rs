//! The pinned image in the engine: found there, or pulled with the registry credentials of the docker CLI.

use std::path::PathBuf;

use bollard::auth::DockerCredentials;
use bollard::query_parameters::CreateImageOptionsBuilder;
use docker_credential::{CredentialRetrievalError, DockerCredential};
use futures::StreamExt;
use serde_json::Value;

use super::connect::{Engine, EngineError, is_absent, words};

/// What matters of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageFacts {
    pub id: String,
    /// As the image says it: empty, `65532`, `1000:1000`, `nonroot`.
    pub user: String,
    pub env: Vec<String>,
}

/// Finds the image or pulls it. `progress` is told how far the pull is.
pub async fn ensure(
    engine: &Engine,
    reference: &str,
    progress: &mut dyn FnMut(&str),
) -> Result<ImageFacts, EngineError> {
    let found = match engine.docker.inspect_image(reference).await {
        Ok(found) => found,
        Err(error) if is_absent(&error) => {
            pull(engine, reference, progress).await?;
            let again = engine.docker.inspect_image(reference).await;
            again.map_err(|e| {
                EngineError::new(format!("image {reference} is not there after the pull")).caused_by(words(&e))
            })?
        }
        Err(error) => return Err(EngineError::new(format!("look for image {reference}")).caused_by(words(&error))),
    };
    let own = found.architecture.clone().unwrap_or_default();
    if !same_platform(&own, &engine.info.architecture) {
        return Err(EngineError::new(format!(
            "image {reference} is for {own}, and the engine runs on {}",
            engine.info.architecture
        ))
        .hint("use an engine of that platform, or `--method job`, which runs in the cluster"));
    }
    let config = found.config.unwrap_or_default();
    Ok(ImageFacts {
        id: found.id.unwrap_or_default(),
        user: config.user.unwrap_or_default(),
        env: config.env.unwrap_or_default(),
    })
}

/// Engines and images name platforms in two ways. What is not said is not a difference.
fn same_platform(image: &str, engine: &str) -> bool {
    let usual = |name: &str| match name {
        "x86_64" => "amd64".to_string(),
        "aarch64" => "arm64".to_string(),
        other => other.to_string(),
    };
    image.is_empty() || engine.is_empty() || usual(image) == usual(engine)
}

async fn pull(engine: &Engine, reference: &str, progress: &mut dyn FnMut(&str)) -> Result<(), EngineError> {
    let registry = registry_of(reference);
    let (credentials, source) = credentials_of(&registry);
    let options = CreateImageOptionsBuilder::default().from_image(&with_tag(reference)).build();
    let mut stream = engine.docker.create_image(Some(options), None, credentials);
    let mut layers = std::collections::HashMap::new();
    while let Some(step) = stream.next().await {
        let step = step.map_err(|e| pull_error(reference, &registry, &source, &words(&e)))?;
        if let (Some(id), Some(detail)) = (step.id, step.progress_detail)
            && let (Some(current), Some(total)) = (detail.current, detail.total)
        {
            layers.insert(id, (current, total));
            let sum = layers.values().fold((0, 0), |sum, layer: &(i64, i64)| (sum.0 + layer.0, sum.1 + layer.1));
            progress(&bar(sum.0, sum.1));
        }
    }
    Ok(())
}

/// `[=====     ]  50% of 12 MiB`.
fn bar(current: i64, total: i64) -> String {
    let share = if total > 0 { (current.clamp(0, total) * 20 / total).clamp(0, 20) } else { 0 };
    let filled = usize::try_from(share).unwrap_or(0);
    format!("[{}{}] {:3}% of {} MiB", "=".repeat(filled), " ".repeat(20 - filled), share * 5, total / (1024 * 1024))
}

/// A reference that names neither tag nor digest would pull every tag.
fn with_tag(reference: &str) -> String {
    let has_tag = reference.contains('@') || crate::captf::image::repository(reference) != reference;
    if has_tag { reference.to_string() } else { format!("{reference}:latest") }
}

/// The registry as the docker CLI keys its credentials.
fn registry_of(reference: &str) -> String {
    let first = reference.split('/').next().unwrap_or_default();
    let is_host = reference.contains('/') && (first.contains(['.', ':']) || first == "localhost");
    if is_host { first.to_string() } else { "https://index.docker.io/v1/".to_string() }
}

/// Credentials for a registry, and where they come from, in words without any secret.
fn credentials_of(registry: &str) -> (Option<DockerCredentials>, String) {
    let base = DockerCredentials { serveraddress: Some(registry.to_string()), ..DockerCredentials::default() };
    match docker_credential::get_credential(registry) {
        Ok(DockerCredential::IdentityToken(token)) => {
            let with = DockerCredentials { identitytoken: Some(token), ..base };
            (Some(with), "an identity token of the docker configuration".to_string())
        }
        Ok(DockerCredential::UsernamePassword(username, password)) => {
            let with = DockerCredentials { username: Some(username), password: Some(password), ..base };
            (Some(with), "a login of the docker configuration".to_string())
        }
        // What a helper printed may be the secret itself.
        Err(CredentialRetrievalError::HelperFailure { .. }) => (None, format!("none: {} failed", helper_of(registry))),
        Err(CredentialRetrievalError::HelperCommunicationError) => {
            (None, format!("none: {} could not be run", helper_of(registry)))
        }
        Err(_) => (None, "none: the docker configuration has no login for it".to_string()),
    }
}

/// The credential helper that the docker configuration names for a registry, as the program that is run.
fn helper_of(registry: &str) -> String {
    let folder = std::env::var_os("DOCKER_CONFIG").map(PathBuf::from);
    let folder = folder.or_else(|| std::env::home_dir().map(|h| h.join(".docker"))).unwrap_or_default();
    let text = std::fs::read_to_string(folder.join("config.json")).unwrap_or_default();
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    match config["credHelpers"][registry].as_str().or(config["credsStore"].as_str()) {
        Some(name) => format!("the credential helper docker-credential-{name}"),
        None => "the credential helper of the docker configuration".to_string(),
    }
}

fn pull_error(reference: &str, registry: &str, credentials: &str, why: &str) -> EngineError {
    let error = EngineError::new(format!("pull {reference}")).caused_by(why);
    let low = why.to_ascii_lowercase();
    let any = |texts: &[&str]| texts.iter().any(|t| low.contains(t));
    if any(&["http response to https client"]) {
        error.hint(format!(
            "{registry} speaks plain HTTP and the engine expects TLS; it has to be listed as insecure in the engine's own configuration"
        ))
    } else if any(&["unauthorized", "denied", "no basic auth", "authentication required"]) {
        error
            .caused_by(format!("{registry} wants a login; credentials used: {credentials}"))
            .hint(format!("`docker login {registry}`, or `--method job`, which pulls as the cluster does"))
    } else if any(&["no matching manifest", "no image found in manifest list", "does not match the specified platform"])
    {
        error.hint("the image is not for this engine's platform; use another engine or `--method job`")
    } else if any(&["manifest unknown", "not found", "name unknown"]) {
        error.hint("the registry does not hold that digest any more; `--method lease` needs no image")
    } else if any(&["no such host", "connection refused", "timeout", "network is unreachable", "tls", "x509"]) {
        error.hint("the engine cannot reach the registry; `--method job` pulls as the cluster does")
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_keyed_as_the_docker_cli_keys_them() {
        for (reference, expected) in [
            ("registry.example.com:5000/team/x@sha256:0", "registry.example.com:5000"),
            ("localhost/x:1", "localhost"),
            ("127.0.0.1:5000/x", "127.0.0.1:5000"),
            ("team/x:1", "https://index.docker.io/v1/"),
            ("x", "https://index.docker.io/v1/"),
        ] {
            assert_eq!(registry_of(reference), expected, "{reference}");
        }
    }

    #[test]
    fn a_pull_never_asks_for_all_tags() {
        for (reference, expected) in [("h:5/x", "h:5/x:latest"), ("x:1", "x:1"), ("x@sha256:0", "x@sha256:0")] {
            assert_eq!(with_tag(reference), expected);
        }
    }

    #[test]
    fn pull_errors_are_put_into_words() {
        for (why, hint) in [
            ("pull access denied for x, repository does not exist or may require 'docker login'", "docker login"),
            ("manifest for x not found: manifest unknown", "--method lease"),
            ("no matching manifest for linux/arm64 in the manifest list entries", "platform"),
            ("dial tcp: lookup registry.example.com: no such host", "reach the registry"),
        ] {
            let error = pull_error("h/x@sha256:0", "h", "none", why);
            assert!(error.hints.iter().any(|h| h.contains(hint)), "{why}: {:?}", error.hints);
        }
    }

    #[test]
    fn platforms_are_compared_by_either_name() {
        assert!(same_platform("amd64", "x86_64") && same_platform("arm64", "aarch64") && same_platform("", "x"));
        assert!(!same_platform("arm64", "x86_64"));
    }
}
