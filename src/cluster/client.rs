//! From kubectl's flags to a client: kubeconfig files, context, overrides, timeouts.
//!
//! Nothing of a kubeconfig but names, paths and the server's address ever reaches a message; a
//! parser's error text could quote a token, so it is replaced by a fixed sentence.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::config::{
    AuthInfo, Cluster, Config, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
    NamedContext,
};

use super::api::{Api, error_chain};
use super::meter::Meter;
use super::proxy::{proxy_for, shown};

/// The flags of kubectl that choose and change a connection.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    pub cluster: Option<String>,
    pub user: Option<String>,
    pub server: Option<String>,
    pub token: Option<String>,
    pub as_user: Option<String>,
    pub as_groups: Vec<String>,
    pub certificate_authority: Option<PathBuf>,
    pub client_certificate: Option<PathBuf>,
    pub client_key: Option<PathBuf>,
    pub insecure_skip_tls_verify: bool,
    pub tls_server_name: Option<String>,
    pub request_timeout: Option<Duration>,
}

/// A client with what people need to know about where it points.
pub struct Connected {
    pub api: Api,
    pub context: Option<String>,
    pub server: String,
    pub namespace: String,
}

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no kubeconfig: {} does not exist and `KUBECONFIG` names no file that does", .0.display())]
    NoKubeconfig(PathBuf),
    #[error("kubeconfig {}: {why}", path.display())]
    Kubeconfig { path: PathBuf, why: String },
    #[error("kubeconfig: {0}")]
    Selection(String),
    #[error("context `{name}` does not exist")]
    NoContext { name: String, known: Vec<String> },
    #[error("set up the connection to {server}: {why}")]
    Client { server: String, why: String },
}

/// Cluster and user of the context that [`connect`] would use, flags applied.
pub fn chosen(connection: &Connection) -> Result<(Cluster, AuthInfo), ClientError> {
    let mut kubeconfig = load_kubeconfig(connection)?;
    let context = connection.context.clone().or_else(|| kubeconfig.current_context.clone()).filter(|c| !c.is_empty());
    let options = apply_flags(&mut kubeconfig, context.as_deref(), connection)?;
    let cluster = kubeconfig.clusters.into_iter().find(|c| Some(&c.name) == options.cluster.as_ref());
    let user = kubeconfig.auth_infos.into_iter().find(|u| Some(&u.name) == options.user.as_ref());
    Ok((cluster.and_then(|c| c.cluster).unwrap_or_default(), user.and_then(|u| u.auth_info).unwrap_or_default()))
}

/// Reads the kubeconfig, applies the flags and builds a client. No request is made.
pub fn connect(connection: &Connection, meter: &Meter) -> Result<Connected, ClientError> {
    let mut kubeconfig = load_kubeconfig(connection)?;
    let context = connection.context.clone().or_else(|| kubeconfig.current_context.clone()).filter(|c| !c.is_empty());
    if let Some(name) = &context
        && connection.context.is_some()
        && !kubeconfig.contexts.iter().any(|c| &c.name == name)
    {
        let known = kubeconfig.contexts.iter().map(|c| c.name.clone()).collect();
        return Err(ClientError::NoContext { name: name.clone(), known });
    }
    let options = apply_flags(&mut kubeconfig, context.as_deref(), connection)?;
    let own_proxy = kubeconfig
        .clusters
        .iter()
        .find(|c| Some(&c.name) == options.cluster.as_ref())
        .and_then(|c| c.cluster.as_ref()?.proxy_url.clone());
    let mut config = futures::executor::block_on(Config::from_custom_kubeconfig(kubeconfig, &options))
        .map_err(|e| ClientError::Selection(explain(&e)))?;
    // kube would repeat writes too where a server or a gateway answers 429, 503 or 504.
    config.default_retry = false;
    config.connect_timeout = connection.request_timeout.or(config.connect_timeout);
    config.proxy_url = proxy_for(&config.cluster_url, own_proxy.as_deref(), |name| std::env::var(name).ok())
        .map_err(ClientError::Selection)?;
    let mut server = config.cluster_url.to_string().trim_end_matches('/').to_string();
    if let Some(proxy) = &config.proxy_url {
        server.push_str(&format!(" through proxy {}", shown(proxy)));
    }
    let namespace = config.default_namespace.clone();
    let builder = ClientBuilder::try_from(config)
        .map_err(|e| ClientError::Client { server: server.clone(), why: error_chain(&e) })?;
    let client = builder.with_layer(meter).build();
    Ok(Connected { api: Api::new(client, connection.request_timeout), context, server, namespace })
}

/// What a kubeconfig holds by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubeconfigNames {
    pub contexts: Vec<String>,
    pub clusters: Vec<String>,
    pub users: Vec<String>,
    /// Whether logging in runs a program, which may ask or open a browser.
    pub runs_a_program: bool,
}

/// The names in the kubeconfig that the flags choose; nothing if it cannot be read.
pub fn kubeconfig_names(connection: &Connection) -> Option<KubeconfigNames> {
    let kubeconfig = load_kubeconfig(connection).ok()?;
    let context = connection.context.clone().or_else(|| kubeconfig.current_context.clone());
    let context =
        kubeconfig.contexts.iter().find(|c| Some(&c.name) == context.as_ref()).and_then(|c| c.context.clone());
    let user = connection.user.clone().or(context.and_then(|c| c.user));
    let runs = |auth: &AuthInfo| auth.exec.is_some() || auth.auth_provider.is_some();
    let chosen = kubeconfig.auth_infos.iter().find(|u| Some(&u.name) == user.as_ref());
    Some(KubeconfigNames {
        contexts: kubeconfig.contexts.iter().map(|c| c.name.clone()).collect(),
        clusters: kubeconfig.clusters.iter().map(|c| c.name.clone()).collect(),
        users: kubeconfig.auth_infos.iter().map(|u| u.name.clone()).collect(),
        runs_a_program: chosen.and_then(|u| u.auth_info.as_ref()).is_some_and(runs),
    })
}

/// `--kubeconfig`, else the files of `KUBECONFIG` that exist, merged, else `~/.kube/config`, else the
/// ServiceAccount of a pod.
fn load_kubeconfig(connection: &Connection) -> Result<Kubeconfig, ClientError> {
    if let Some(path) = &connection.kubeconfig {
        return read_file(path);
    }
    let listed: Vec<PathBuf> = std::env::var_os("KUBECONFIG")
        .map(|v| std::env::split_paths(&v).filter(|p| !p.as_os_str().is_empty()).collect())
        .unwrap_or_default();
    let default = std::env::home_dir().unwrap_or_default().join(".kube").join("config");
    let paths = if listed.is_empty() { vec![default.clone()] } else { listed };
    let mut merged: Option<Kubeconfig> = None;
    for path in paths.iter().filter(|p| p.exists()) {
        let next = read_file(path)?;
        merged = Some(match merged {
            None => next,
            Some(before) => {
                before.merge(next).map_err(|e| ClientError::Kubeconfig { path: path.clone(), why: explain(&e) })?
            }
        });
    }
    match merged {
        Some(kubeconfig) => Ok(kubeconfig),
        None if connection.server.is_some() => Ok(Kubeconfig::default()),
        None => in_cluster().ok_or_else(|| ClientError::NoKubeconfig(paths.first().cloned().unwrap_or(default))),
    }
}

fn read_file(path: &Path) -> Result<Kubeconfig, ClientError> {
    Kubeconfig::read_from(path).map_err(|e| ClientError::Kubeconfig { path: path.to_path_buf(), why: explain(&e) })
}

/// The kubeconfig that a pod's mounted ServiceAccount amounts to.
fn in_cluster() -> Option<Kubeconfig> {
    const DIR: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
    let host = std::env::var("KUBERNETES_SERVICE_HOST").ok()?;
    let port = std::env::var("KUBERNETES_SERVICE_PORT").ok()?;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let token = format!("{DIR}/token");
    if !Path::new(&token).exists() {
        return None;
    }
    let cluster = Cluster {
        server: Some(format!("https://{host}:{port}")),
        certificate_authority: Some(format!("{DIR}/ca.crt")),
        ..Cluster::default()
    };
    let user = AuthInfo { token_file: Some(token), ..AuthInfo::default() };
    let namespace = std::fs::read_to_string(format!("{DIR}/namespace")).ok();
    Some(single(cluster, user, namespace, "in-cluster"))
}

fn single(cluster: Cluster, user: AuthInfo, namespace: Option<String>, name: &str) -> Kubeconfig {
    Kubeconfig {
        clusters: vec![NamedCluster { name: name.into(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: name.into(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext {
            name: name.into(),
            context: Some(Context { cluster: name.into(), user: Some(name.into()), namespace, ..Context::default() }),
            ..NamedContext::default()
        }],
        current_context: Some(name.into()),
        ..Kubeconfig::default()
    }
}

/// Writes the overriding flags into the chosen cluster and user.
fn apply_flags(
    kubeconfig: &mut Kubeconfig,
    context: Option<&str>,
    flags: &Connection,
) -> Result<KubeConfigOptions, ClientError> {
    let mut chosen = context.map(str::to_string);
    let usable = |k: &Kubeconfig, c: &str| k.contexts.iter().any(|n| n.name == c);
    if chosen.as_deref().is_none_or(|c| !usable(kubeconfig, c)) {
        // As kubectl does, `--server` (or `--cluster`) alone is enough to connect.
        if flags.server.is_none() && flags.cluster.is_none() {
            return Err(match chosen {
                Some(name) => {
                    ClientError::NoContext { name, known: kubeconfig.contexts.iter().map(|c| c.name.clone()).collect() }
                }
                None => ClientError::Selection("no current context is set".to_string()),
            });
        }
        let made = "kubectl-captf-flags";
        let cluster = flags.cluster.clone().unwrap_or_else(|| made.to_string());
        let context = Context { cluster, user: flags.user.clone().or(Some(made.to_string())), ..Context::default() };
        kubeconfig.contexts.push(NamedContext { name: made.into(), context: Some(context), ..NamedContext::default() });
        chosen = Some(made.to_string());
    }
    let context = kubeconfig
        .contexts
        .iter()
        .find(|c| Some(&c.name) == chosen.as_ref())
        .and_then(|c| c.context.clone())
        .unwrap_or_default();
    let cluster_name = flags.cluster.clone().unwrap_or(context.cluster);
    let user_name = flags.user.clone().or(context.user).unwrap_or_else(|| "kubectl-captf-flags".to_string());
    if flags.user.is_some() && !kubeconfig.auth_infos.iter().any(|u| u.name == user_name) {
        return Err(ClientError::Selection(format!("user `{user_name}` does not exist")));
    }
    if flags.cluster.is_some() && !kubeconfig.clusters.iter().any(|c| c.name == cluster_name) {
        return Err(ClientError::Selection(format!("cluster `{cluster_name}` does not exist")));
    }
    override_cluster(kubeconfig, &cluster_name, flags);
    override_user(kubeconfig, &user_name, flags);
    Ok(KubeConfigOptions { context: chosen, cluster: Some(cluster_name), user: Some(user_name) })
}

fn override_cluster(kubeconfig: &mut Kubeconfig, name: &str, flags: &Connection) {
    if !kubeconfig.clusters.iter().any(|c| c.name == name) && flags.server.is_some() {
        kubeconfig.clusters.push(NamedCluster { name: name.into(), ..NamedCluster::default() });
    }
    let Some(named) = kubeconfig.clusters.iter_mut().find(|c| c.name == name) else {
        return;
    };
    let cluster = named.cluster.get_or_insert_with(Cluster::default);
    if let Some(server) = &flags.server {
        cluster.server = Some(server.clone());
    }
    if let Some(path) = &flags.certificate_authority {
        cluster.certificate_authority = Some(path.to_string_lossy().into_owned());
        cluster.certificate_authority_data = None;
    }
    if let Some(name) = &flags.tls_server_name {
        cluster.tls_server_name = Some(name.clone());
    }
    if flags.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(true);
        cluster.certificate_authority = None;
        cluster.certificate_authority_data = None;
    }
}

fn override_user(kubeconfig: &mut Kubeconfig, name: &str, flags: &Connection) {
    let named = match kubeconfig.auth_infos.iter().position(|u| u.name == name) {
        Some(at) => &mut kubeconfig.auth_infos[at],
        None => {
            kubeconfig.auth_infos.push(NamedAuthInfo { name: name.into(), ..NamedAuthInfo::default() });
            kubeconfig.auth_infos.last_mut().expect("one was just pushed")
        }
    };
    let user = named.auth_info.get_or_insert_with(AuthInfo::default);
    if let Some(token) = &flags.token {
        // As in kubectl, a token given by hand replaces every other way to log in.
        *user = AuthInfo {
            token: Some(token.clone().into()),
            impersonate: user.impersonate.take(),
            impersonate_groups: user.impersonate_groups.take(),
            ..AuthInfo::default()
        };
    }
    if let Some(path) = &flags.client_certificate {
        user.client_certificate = Some(path.to_string_lossy().into_owned());
        user.client_certificate_data = None;
    }
    if let Some(path) = &flags.client_key {
        user.client_key = Some(path.to_string_lossy().into_owned());
        user.client_key_data = None;
    }
    if let Some(who) = &flags.as_user {
        user.impersonate = Some(who.clone());
    }
    if !flags.as_groups.is_empty() {
        user.impersonate_groups = Some(flags.as_groups.clone());
    }
}

/// A kubeconfig error without any text of the file itself.
fn explain(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(_) => "it is not a kubeconfig (the YAML cannot be parsed)".to_string(),
        KubeconfigError::ReadConfig(io, _) => io.to_string(),
        KubeconfigError::LoadCertificateAuthority(_) => "the certificate authority cannot be loaded".to_string(),
        KubeconfigError::LoadClientCertificate(_) => "the client certificate cannot be loaded".to_string(),
        KubeconfigError::LoadClientKey(_) => "the client key cannot be loaded".to_string(),
        other => other.to_string(),
    }
}
