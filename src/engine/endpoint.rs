//! Which engine: `--engine`, `DOCKER_HOST`, `DOCKER_CONTEXT`, the docker CLI's current context, then the default
//! sockets, in this order. Pure, except that context files are read.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Whether an engine runs on this machine, or in a virtual machine that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Local,
    Remote,
}

/// An engine to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub url: String,
    /// `DOCKER_HOST`, `the docker context colima`.
    pub from: String,
    /// Named by a person: if it does not answer, nothing else is tried.
    pub named: bool,
    /// The folder with `ca.pem`, `cert.pem` and `key.pem` for an engine behind TLS.
    pub tls: Option<PathBuf>,
}

/// What the choice depends on.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub flag: Option<String>,
    pub docker_host: Option<String>,
    pub docker_context: Option<String>,
    pub docker_config: Option<PathBuf>,
    /// `DOCKER_TLS_VERIFY` is set to anything.
    pub tls_verify: bool,
    pub cert_path: Option<PathBuf>,
    pub home: Option<PathBuf>,
    pub runtime_dir: Option<PathBuf>,
}

impl Surroundings {
    /// From the environment of this process.
    pub fn of_this_process(flag: Option<&str>) -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let home = std::env::home_dir();
        Self {
            flag: flag.map(str::to_string),
            docker_host: text("DOCKER_HOST"),
            docker_context: text("DOCKER_CONTEXT"),
            docker_config: text("DOCKER_CONFIG").map(PathBuf::from).or(home.as_ref().map(|h| h.join(".docker"))),
            tls_verify: text("DOCKER_TLS_VERIFY").is_some(),
            cert_path: text("DOCKER_CERT_PATH").map(PathBuf::from),
            home,
            runtime_dir: text("XDG_RUNTIME_DIR").map(PathBuf::from),
        }
    }
}

/// The engines to try, in order. A named one stands alone.
pub fn candidates(around: &Surroundings) -> Result<Vec<Endpoint>, String> {
    // As for the docker CLI: the variables go with an address, the context brings its own files.
    let by_variables =
        || around.tls_verify.then(|| around.cert_path.clone().or(around.docker_config.clone())).flatten();
    let named = |url: &str, from: String| {
        let tls = by_variables().filter(|_| is_tcp(url));
        Ok(vec![Endpoint { url: url.to_string(), from, named: true, tls }])
    };
    if let Some(url) = &around.flag {
        return named(url, "--engine".to_string());
    }
    if let Some(url) = &around.docker_host {
        return named(url, "DOCKER_HOST".to_string());
    }
    let config = around.docker_config.as_deref();
    let context = around.docker_context.clone().or_else(|| config.and_then(current_context));
    if let Some(context) = context.filter(|c| c != "default") {
        let Some((url, unverified)) = config.and_then(|dir| context_host(dir, &context)) else {
            return Err(format!("the docker context `{context}` names no engine"));
        };
        if unverified && is_tcp(&url) {
            return Err(format!(
                "the docker context `{context}` does not verify its engine's certificate, and a credential would go there"
            ));
        }
        let tls = config.map(|dir| context_folder(dir, "tls", &context).join("docker")).filter(|dir| dir.is_dir());
        let from = format!("the docker context {context}");
        return Ok(vec![Endpoint { tls: tls.filter(|_| is_tcp(&url)), url, from, named: true }]);
    }
    Ok(default_sockets(around))
}

fn current_context(config: &Path) -> Option<String> {
    let text = std::fs::read_to_string(config.join("config.json")).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    value["currentContext"].as_str().filter(|c| !c.is_empty()).map(str::to_string)
}

/// `contexts/<part>/<SHA-256 of the name>`, as the docker CLI keeps it.
fn context_folder(config: &Path, part: &str, context: &str) -> PathBuf {
    let id: String = Sha256::digest(context.as_bytes()).iter().map(|b| format!("{b:02x}")).collect();
    config.join("contexts").join(part).join(id)
}

/// The address of a context, and whether it leaves the engine's certificate unverified.
fn context_host(config: &Path, context: &str) -> Option<(String, bool)> {
    let file = context_folder(config, "meta", context).join("meta.json");
    let value: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    let docker = &value["Endpoints"]["docker"];
    let host = docker["Host"].as_str().filter(|h| !h.is_empty())?;
    Some((host.to_string(), docker["SkipTLSVerify"] == true))
}

fn is_tcp(url: &str) -> bool {
    ["tcp://", "http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}

fn default_sockets(around: &Surroundings) -> Vec<Endpoint> {
    let at_home = |rest: &str| around.home.as_ref().map(|h| h.join(rest));
    let at_run = |rest: &str| around.runtime_dir.as_ref().map(|r| r.join(rest));
    let all = [
        ("Docker", Some(PathBuf::from("/var/run/docker.sock"))),
        ("Docker Desktop", at_home(".docker/run/docker.sock")),
        ("Docker Desktop", at_home(".docker/desktop/docker.sock")),
        ("Colima", at_home(".colima/default/docker.sock")),
        ("Rancher Desktop", at_home(".rd/docker.sock")),
        ("rootless Docker", at_run("docker.sock")),
        ("rootless Podman", at_run("podman/podman.sock")),
        ("Podman machine", at_home(".local/share/containers/podman/machine/podman.sock")),
        ("rootful Podman", Some(PathBuf::from("/run/podman/podman.sock"))),
    ];
    all.into_iter()
        .filter_map(|(name, path)| {
            let url = format!("unix://{}", path?.display());
            Some(Endpoint { url, from: format!("the default socket of {name}"), named: false, tls: None })
        })
        .collect()
}

/// Where the engine behind a URL runs.
pub fn place(url: &str) -> Place {
    let Some((scheme, rest)) = url.split_once("://") else {
        return Place::Remote;
    };
    let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host).trim_matches(['[', ']']);
    let loopback = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    if matches!(scheme, "unix" | "npipe") || loopback { Place::Local } else { Place::Remote }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_named_stands_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path();
        let id: String = Sha256::digest(b"colima").iter().map(|b| format!("{b:02x}")).collect();
        let meta = config.join("contexts/meta").join(id);
        std::fs::create_dir_all(&meta).expect("a folder");
        let text = r#"{"Name":"colima","Endpoints":{"docker":{"Host":"unix:///colima.sock"}}}"#;
        std::fs::write(meta.join("meta.json"), text).expect("a file");
        std::fs::write(config.join("config.json"), r#"{"currentContext":"colima"}"#).expect("a file");
        let all = Surroundings {
            flag: Some("unix:///flag.sock".into()),
            docker_host: Some("tcp://h:2375".into()),
            docker_context: Some("gone".into()),
            docker_config: Some(config.to_path_buf()),
            tls_verify: false,
            cert_path: None,
            home: Some("/home/a".into()),
            runtime_dir: Some("/run/user/1".into()),
        };
        let urls = |around: &Surroundings| {
            candidates(around).map(|all| all.into_iter().map(|e| (e.url, e.named)).collect::<Vec<_>>())
        };
        assert_eq!(urls(&all), Ok(vec![("unix:///flag.sock".to_string(), true)]));
        let all = Surroundings { flag: None, ..all };
        assert_eq!(urls(&all), Ok(vec![("tcp://h:2375".to_string(), true)]));
        let all = Surroundings { docker_host: None, ..all };
        assert!(urls(&all).is_err_and(|e| e.contains("gone")));
        let all = Surroundings { docker_context: None, ..all };
        assert_eq!(urls(&all), Ok(vec![("unix:///colima.sock".to_string(), true)]));
        let all = Surroundings { docker_context: Some("default".into()), ..all };
        let sockets = urls(&all).expect("defaults");
        assert_eq!(sockets.first().map(|s| s.0.as_str()), Some("unix:///var/run/docker.sock"));
        assert_eq!(sockets.last().map(|s| s.0.as_str()), Some("unix:///run/podman/podman.sock"));
        assert!(sockets.iter().all(|(_, named)| !named));
    }

    #[test]
    fn files_for_tls_come_from_the_variables_or_from_the_context() {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().to_path_buf();
        let context = |name: &str, docker: &str| {
            let meta = context_folder(&config, "meta", name);
            std::fs::create_dir_all(&meta).expect("a folder");
            std::fs::write(meta.join("meta.json"), format!(r#"{{"Endpoints":{{"docker":{docker}}}}}"#))
                .expect("a file");
        };
        context("remote", r#"{"Host":"tcp://h:2376","SkipTLSVerify":false}"#);
        context("careless", r#"{"Host":"tcp://h:2376","SkipTLSVerify":true}"#);
        let files = context_folder(&config, "tls", "remote").join("docker");
        std::fs::create_dir_all(&files).expect("a folder");
        let around = |host: Option<&str>, context: Option<&str>, tls_verify: bool, cert_path: Option<&str>| {
            let all = Surroundings {
                docker_host: host.map(str::to_string),
                docker_context: context.map(str::to_string),
                docker_config: Some(config.clone()),
                tls_verify,
                cert_path: cert_path.map(PathBuf::from),
                ..Surroundings::default()
            };
            candidates(&all).map(|all| all.first().and_then(|e| e.tls.clone()))
        };
        let host = Some("tcp://h:2376");
        for (case, found, expected) in [
            ("the variables", around(host, None, true, Some("/certs")), Some(PathBuf::from("/certs"))),
            ("the config folder", around(host, None, true, None), Some(config.clone())),
            ("not asked for", around(host, None, false, Some("/certs")), None),
            ("a socket", around(Some("unix:///s"), None, true, Some("/certs")), None),
            ("a context", around(None, Some("remote"), false, None), Some(files)),
        ] {
            assert_eq!(found, Ok(expected), "{case}");
        }
        assert!(around(None, Some("careless"), false, None).is_err_and(|e| e.contains("does not verify")));
    }

    #[test]
    fn only_sockets_and_loopback_are_local() {
        for (url, expected) in [
            ("unix:///var/run/docker.sock", Place::Local),
            ("npipe:////./pipe/docker_engine", Place::Local),
            ("tcp://127.0.0.1:2375", Place::Local),
            ("tcp://[::1]:2375", Place::Local),
            ("tcp://10.0.0.7:2375", Place::Remote),
            ("ssh://u@h", Place::Remote),
        ] {
            assert_eq!(place(url), expected, "{url}");
        }
    }
}
