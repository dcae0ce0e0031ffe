//! How a container reaches the API server: which network, and which address. Pure.

use super::endpoint::Place;

/// What the engine says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EngineInfo {
    /// `Docker Desktop`, `Debian GNU/Linux 12 (bookworm)`.
    pub operating_system: String,
    pub architecture: String,
    pub podman: bool,
    /// Runs as a user who is not root.
    pub rootless: bool,
    pub version: String,
}

/// The choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// `host`, or nothing for the engine's default.
    pub mode: Option<&'static str>,
    /// The server's address as the container has to use it.
    pub server: String,
    /// The name to check the certificate against, where the address was changed.
    pub tls_server_name: Option<String>,
}

/// Chooses, or says why no container of this engine can reach the server.
pub fn choose(server: &str, place: Place, info: &EngineInfo, on_linux: bool) -> Result<Network, String> {
    let loopback = loopback_host(server);
    let machine = !on_linux || info.operating_system.contains("Docker Desktop");
    let unchanged = |mode| Network { mode, server: server.to_string(), tls_server_name: None };
    // The "host" of a rootless Docker is a network of its own, without this machine's loopback.
    let own_network = info.rootless && !info.podman && !machine;
    match (place, loopback) {
        (Place::Local, None) if own_network => Ok(unchanged(None)),
        (Place::Local, Some(host)) if own_network => Err(format!(
            "the API server's address {host} is this machine's own, which a rootless Docker does not reach"
        )),
        // The host's own network has its routes, its names and its VPN.
        (Place::Local, _) if !machine => Ok(unchanged(Some("host"))),
        (Place::Local, None) | (Place::Remote, None) => Ok(unchanged(None)),
        (Place::Local, Some(host)) => {
            let alias = if info.podman { "host.containers.internal" } else { "host.docker.internal" };
            Ok(Network {
                mode: None,
                server: server.replacen(&host, alias, 1),
                // Exactly what kubectl checks: the certificate is for this name or address.
                tls_server_name: Some(host.trim_matches(['[', ']']).to_string()),
            })
        }
        (Place::Remote, Some(host)) => {
            Err(format!("the API server's address {host} is this machine's own, and the engine runs on another one"))
        }
    }
}

/// The host of an address that means this machine.
fn loopback_host(server: &str) -> Option<String> {
    let rest = server.split_once("://").map_or(server, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(v6) => format!("[{}]", v6.split(']').next().unwrap_or_default()),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host).to_string(),
    };
    let bare = host.trim_matches(['[', ']']);
    let loopback = bare == "localhost"
        || bare.ends_with(".localhost")
        || bare == "kubernetes.docker.internal"
        || bare.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified());
    loopback.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_and_address_follow_from_where_engine_and_server_are() {
        let plain = EngineInfo { operating_system: "Debian GNU/Linux 12".into(), ..EngineInfo::default() };
        let desktop = EngineInfo { operating_system: "Docker Desktop".into(), ..EngineInfo::default() };
        let podman = EngineInfo { podman: true, ..plain.clone() };
        let rootless = EngineInfo { rootless: true, ..plain.clone() };
        let rootless_podman = EngineInfo { rootless: true, ..podman.clone() };
        let host = |s: &str| Ok((Some("host"), s.to_string(), None));
        for (server, place, info, linux, expected) in [
            ("https://127.0.0.1:6443", Place::Local, &plain, true, host("https://127.0.0.1:6443")),
            ("https://10.0.0.5:6443", Place::Local, &plain, true, host("https://10.0.0.5:6443")),
            ("https://10.0.0.5:6443", Place::Local, &desktop, true, Ok((None, "https://10.0.0.5:6443".into(), None))),
            (
                "https://127.0.0.1:6443/x",
                Place::Local,
                &desktop,
                false,
                Ok((None, "https://host.docker.internal:6443/x".into(), Some("127.0.0.1"))),
            ),
            (
                "https://[::1]:6443",
                Place::Local,
                &podman,
                false,
                Ok((None, "https://host.containers.internal:6443".into(), Some("::1"))),
            ),
            ("https://127.0.0.1:6443", Place::Local, &rootless, true, Err(())),
            ("https://10.0.0.5:6443", Place::Local, &rootless, true, Ok((None, "https://10.0.0.5:6443".into(), None))),
            ("https://127.0.0.1:6443", Place::Local, &rootless_podman, true, host("https://127.0.0.1:6443")),
            ("https://10.0.0.5:6443", Place::Remote, &plain, true, Ok((None, "https://10.0.0.5:6443".into(), None))),
            ("https://localhost:6443", Place::Remote, &plain, true, Err(())),
            ("https://0.0.0.0:6443", Place::Remote, &plain, true, Err(())),
        ] {
            let got = choose(server, place, info, linux);
            let got = got.map(|n| (n.mode, n.server, n.tls_server_name)).map_err(|_| ());
            let expected = expected.map(|(m, s, t): (_, _, Option<&str>)| (m, s, t.map(str::to_string)));
            assert_eq!(got, expected, "{server} {place:?} {}", info.operating_system);
        }
    }
}
