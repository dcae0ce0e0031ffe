//! Which proxy a connection takes: the kubeconfig's own, else that of the environment unless `NO_PROXY` or the
//! loopback address keeps it away. As kubectl decides; the library matches `NO_PROXY` against the proxy itself.

use std::net::IpAddr;

use http::Uri;
use ipnet::IpNet;

/// The proxy for `server`. `own` is `proxy-url` of the kubeconfig, which no variable overrules; `env` reads a
/// variable. `Err` names the value that is no URL.
pub fn proxy_for(server: &Uri, own: Option<&str>, env: impl Fn(&str) -> Option<String>) -> Result<Option<Uri>, String> {
    let parse = |text: &str| text.parse::<Uri>().map_err(|_| "the proxy is not a URL".to_string());
    if let Some(own) = own.filter(|p| !p.is_empty()) {
        return parse(own).map(Some);
    }
    let variable = |upper: &str| env(upper).or_else(|| env(&upper.to_ascii_lowercase())).filter(|v| !v.is_empty());
    let name = if server.scheme_str() == Some("http") { "HTTP_PROXY" } else { "HTTPS_PROXY" };
    let Some(proxy) = variable(name) else {
        return Ok(None);
    };
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let kept_away =
        is_loopback(host) || variable("NO_PROXY").is_some_and(|list| matches_no_proxy(host, server.port_u16(), &list));
    if kept_away { Ok(None) } else { parse(&proxy).map(Some) }
}

/// The proxy as it may be shown: without a user and a password.
pub fn shown(proxy: &Uri) -> String {
    let scheme = proxy.scheme_str().unwrap_or("http");
    let authority = proxy.authority().map(|a| a.as_str().rsplit('@').next().unwrap_or_default()).unwrap_or_default();
    format!("{scheme}://{authority}")
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Go's rules: `*`, addresses, networks, and domains with everything below them; each with an optional port.
fn matches_no_proxy(host: &str, port: Option<u16>, list: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    list.split(',').map(|e| e.trim().to_ascii_lowercase()).filter(|e| !e.is_empty()).any(|entry| {
        if entry == "*" {
            return true;
        }
        if let (Some(ip), Ok(net)) = (address, entry.parse::<IpNet>()) {
            return net.contains(&ip);
        }
        let (name, wanted) = match entry.rsplit_once(':') {
            Some((name, digits)) if !name.contains(':') => (name.to_string(), digits.parse::<u16>().ok()),
            _ => (entry.trim_matches(['[', ']']).to_string(), None),
        };
        if wanted.is_some() && wanted != port.or(Some(443)) {
            return false;
        }
        let bare = name.trim_start_matches('*').trim_start_matches('.');
        let below = host.strip_suffix(bare).is_some_and(|head| head.ends_with('.'));
        !bare.is_empty() && (below || (host == bare && !name.starts_with('.') && !name.starts_with('*')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(server: &str, own: Option<&str>, vars: &[(&str, &str)]) -> Option<String> {
        let env = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_string());
        proxy_for(&server.parse().expect("a URL"), own, env).expect("a proxy").map(|p| shown(&p))
    }

    #[test]
    fn no_proxy_is_matched_against_the_server() {
        let https = ("HTTPS_PROXY", "http://user:secret@p:3128");
        let used = Some("http://p:3128".to_string());
        for (server, no_proxy, through) in [
            ("https://10.0.0.5:6443", "", true),
            ("https://10.0.0.5:6443", "10.0.0.0/8,.svc", false),
            ("https://11.0.0.5:6443", "10.0.0.0/8,.svc", true),
            ("https://10.0.0.5:6443", "10.0.0.5", false),
            ("https://10.0.0.5:6443", "10.0.0.5:6443", false),
            ("https://10.0.0.5:6443", "10.0.0.5:443", true),
            ("https://api.example.com", "example.com", false),
            ("https://api.example.com", ".example.com", false),
            ("https://example.com", ".example.com", true),
            ("https://example.com", "example.com", false),
            ("https://badexample.com", "example.com", true),
            ("https://api.example.com", "p", true),
            ("https://api.example.com", "*", false),
            ("https://API.example.com", "api.EXAMPLE.com", false),
            ("https://127.0.0.1:6443", "", false),
            ("https://localhost:6443", "", false),
            ("https://[::1]:6443", "", false),
        ] {
            let expected = through.then(|| used.clone()).flatten();
            assert_eq!(proxy(server, None, &[https, ("NO_PROXY", no_proxy)]), expected, "{server} {no_proxy}");
        }
        assert_eq!(
            proxy("https://10.0.0.5", None, &[("https_proxy", "http://p:3128"), ("no_proxy", "10.0.0.5")]),
            None
        );
        assert_eq!(proxy("http://10.0.0.5", None, &[https]), None, "HTTPS_PROXY is not for http");
        assert_eq!(proxy("https://10.0.0.5", None, &[]), None);
    }

    #[test]
    fn the_kubeconfigs_own_proxy_is_overruled_by_nothing() {
        let own = Some("socks5://s:1080");
        assert_eq!(proxy("https://127.0.0.1:6443", own, &[("NO_PROXY", "*")]), Some("socks5://s:1080".to_string()));
    }
}
