//! Opens the engine, and says in words which one and why not.

use std::path::Path;

use bollard::{API_DEFAULT_VERSION, Docker};

use super::endpoint::{Endpoint, Place, Surroundings, candidates, place};
use super::network::EngineInfo;
use crate::cluster::api::error_chain;

/// Seconds after which one request to an engine is given up.
const TIMEOUT: u64 = 300;

/// Why something with the engine failed: what was attempted, the engine's own words, what to try.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EngineError {
    pub message: String,
    pub causes: Vec<String>,
    pub hints: Vec<String>,
}

impl EngineError {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), causes: Vec::new(), hints: Vec::new() }
    }

    pub fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// The engine's own words, without the library's.
pub fn words(error: &bollard::errors::Error) -> String {
    match error {
        bollard::errors::Error::DockerResponseServerError { message, .. } => message.clone(),
        bollard::errors::Error::DockerStreamError { error } => error.clone(),
        other => error_chain(other),
    }
}

/// The error of a request: what was being done, and the engine's words or that it does not answer any more.
pub fn failed(doing: &str, error: &bollard::errors::Error) -> EngineError {
    use bollard::errors::Error;
    let gone = matches!(
        error,
        Error::HyperLegacyError { .. }
            | Error::HyperResponseError { .. }
            | Error::HttpClientError { .. }
            | Error::IOError { .. }
            | Error::RequestTimeoutError
            | Error::SocketNotFoundError(_)
    );
    if !gone {
        return EngineError::new(doing).caused_by(words(error));
    }
    EngineError::new(format!("the container engine went away: {doing}"))
        .caused_by(words(error))
        .hint("start the engine and run the same command again, which first removes what is left")
}

/// Whether the engine answered that there is no such thing.
pub fn is_absent(error: &bollard::errors::Error) -> bool {
    matches!(error, bollard::errors::Error::DockerResponseServerError { status_code: 404, .. })
}

/// An engine that answers.
pub struct Engine {
    pub docker: Docker,
    pub endpoint: Endpoint,
    pub info: EngineInfo,
    pub place: Place,
}

impl Engine {
    /// `Docker 20.10.24 at unix:///var/run/docker.sock (DOCKER_HOST)`.
    pub fn describe(&self) -> String {
        let kind = if self.info.podman { "Podman" } else { "Docker" };
        format!("{kind} {} at {} ({})", self.info.version, self.endpoint.url, self.endpoint.from)
    }
}

/// Opens the first engine that answers, in the documented order.
pub async fn open(around: &Surroundings) -> Result<Engine, EngineError> {
    let hint = "`--method lease` needs no engine; `--engine unix:///path` names one";
    let all = candidates(around).map_err(|why| EngineError::new(why).hint(hint))?;
    let mut tried = Vec::new();
    for endpoint in all {
        match try_one(&endpoint).await {
            Ok(engine) => return Ok(engine),
            Err(why) if endpoint.named => {
                let message = format!("the container engine at {} ({}) does not answer", endpoint.url, endpoint.from);
                return Err(EngineError::new(message).caused_by(why).hint(hint));
            }
            // A socket that is not there is no engine; everything else is worth a line.
            Err(why) if why == NO_SOCKET => {}
            Err(why) => tried.push(format!("{} ({}): {why}", endpoint.url, endpoint.from)),
        }
    }
    let mut error = EngineError::new("no container engine answers");
    error.causes = if tried.is_empty() { vec!["none of the default sockets exists".to_string()] } else { tried };
    Err(error.hint(hint))
}

const NO_SOCKET: &str = "there is no such socket";

async fn try_one(endpoint: &Endpoint) -> Result<Engine, String> {
    let docker = client(&endpoint.url, endpoint.tls.as_deref())?;
    let docker = docker.negotiate_version().await.map_err(|e| {
        let fixed = std::env::var_os("DOCKER_API_VERSION").is_some();
        let note = if fixed { " (DOCKER_API_VERSION is set)" } else { "" };
        format!("{}{note}", explain(&words(&e)))
    })?;
    let version = docker.version().await.map_err(|e| words(&e))?;
    let info = docker.info().await.map_err(|e| words(&e))?;
    let components = version.components.unwrap_or_default();
    let podman = components.iter().any(|c| c.name.contains("Podman"));
    let info = EngineInfo {
        operating_system: info.operating_system.unwrap_or_default(),
        rootless: info.security_options.iter().flatten().any(|option| option.contains("name=rootless")),
        architecture: version.arch.or(info.architecture).unwrap_or_default(),
        podman,
        version: version.version.unwrap_or_default(),
    };
    Ok(Engine { docker, endpoint: endpoint.clone(), info, place: place(&endpoint.url) })
}

fn client(url: &str, tls: Option<&Path>) -> Result<Docker, String> {
    let (scheme, rest) = url.split_once("://").ok_or("it is not a URL (try unix:///path or tcp://host:port)")?;
    match scheme {
        "unix" => socket(rest),
        "tcp" | "http" | "https" => match tls {
            Some(folder) => behind_tls(rest, folder),
            None if scheme == "https" => {
                Err("its certificates are missing (DOCKER_TLS_VERIFY=1, DOCKER_CERT_PATH)".to_string())
            }
            None => {
                Docker::connect_with_http(&format!("tcp://{rest}"), TIMEOUT, API_DEFAULT_VERSION).map_err(|e| words(&e))
            }
        },
        "ssh" => {
            Err("ssh is not supported; forward the socket with `ssh -L` and name that with `--engine`".to_string())
        }
        other => Err(format!("{other}:// is not supported; try unix:///path or tcp://host:port")),
    }
}

/// An engine whose certificate is verified, and that verifies ours.
fn behind_tls(address: &str, folder: &Path) -> Result<Docker, String> {
    let [key, cert, ca] = ["key.pem", "cert.pem", "ca.pem"].map(|file| folder.join(file));
    for file in [&key, &cert, &ca] {
        std::fs::File::open(file).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Docker::connect_with_ssl(&format!("tcp://{address}"), &key, &cert, &ca, TIMEOUT, API_DEFAULT_VERSION)
        .map_err(|e| words(&e))
}

#[cfg(unix)]
fn socket(path: &str) -> Result<Docker, String> {
    match std::fs::metadata(path) {
        Ok(_) => Docker::connect_with_unix(path, TIMEOUT, API_DEFAULT_VERSION).map_err(|e| words(&e)),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(NO_SOCKET.to_string()),
        Err(e) => Err(e.to_string()),
    }
}

#[cfg(not(unix))]
fn socket(_: &str) -> Result<Docker, String> {
    Err("sockets of this kind do not exist here".to_string())
}

fn explain(why: &str) -> String {
    if why.contains("ermission denied") {
        format!("you may not use its socket ({why})")
    } else if why.contains("onnection refused") {
        format!("nothing listens there ({why})")
    } else {
        why.to_string()
    }
}
