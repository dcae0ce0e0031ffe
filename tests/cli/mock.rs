//! Replies that a real server will not give on demand: overload, a gateway's error page, a stall, a cut connection.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::run::{binary, shown};

/// Serves each connection with `answer(n)`, n counting requests from 0; returns the address and the count.
fn server(answer: impl Fn(usize, &mut TcpStream) + Send + 'static) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut seen = [0; 4096];
            if stream.read(&mut seen).is_ok_and(|n| n > 0) {
                answer(counter.fetch_add(1, Ordering::SeqCst), &mut stream);
            }
        }
    });
    (address, count)
}

fn reply(stream: &mut TcpStream, status: &str, kind: &str, body: &str) {
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let _ = stream.write_all(text.as_bytes());
}

fn inspect(address: &str) -> (Option<i32>, String) {
    let line = ["lock", "inspect", "tfc/prod", "-n", "team-a", "--request-timeout", "3s", "--server", address];
    let output = binary().args(line).output().expect("run");
    (output.status.code(), shown(&output))
}

const BUSY: &str =
    r#"{"kind":"Status","status":"Failure","code":429,"reason":"TooManyRequests","message":"slow down"}"#;

/// What a server is asked by the completion of these words.
fn completed(words: &str) -> Vec<String> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut seen = [0; 4096];
            let n = stream.read(&mut seen).unwrap_or_default();
            let _ = send.send(String::from_utf8_lossy(&seen[..n]).to_lowercase());
            reply(&mut stream, "200 OK", "application/json", r#"{"kind":"Table","metadata":{},"rows":[]}"#);
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("config");
    let config = serde_json::json!({"apiVersion": "v1", "kind": "Config", "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}], "users": [{"name": "x", "user": {"token": "t"}}],
        "clusters": [{"name": "x", "cluster": {"server": address}}]});
    std::fs::write(&file, config.to_string()).expect("write the kubeconfig");
    let mut command = binary();
    command.arg("__complete").args(["-n", "team-a"]).args(words.split(' ')).env("KUBECONFIG", &file);
    assert_eq!(command.output().expect("run").status.code(), Some(0));
    receive.try_iter().collect()
}

#[test]
fn completion_never_asks_for_the_payload_of_a_secret() {
    for words in [
        "backups verify tfc/prod ",
        "restore retry tfc/prod --serial ",
        "restore tfc/prod ",
        "backups diff tfc/prod 41 ",
    ] {
        let asked = completed(words);
        assert!(asked.iter().any(|r| r.starts_with("get /api/v1/namespaces/team-a/secrets?")), "{words}: {asked:?}");
        for request in asked.iter().filter(|r| r.contains("/secrets")) {
            // A table has columns and metadata; a single Secret is never asked for.
            assert!(request.contains("accept: application/json;as=table;"), "{words}: {request}");
            assert!(!request.contains("/secrets/") && !request.contains("includeobject=object"), "{words}: {request}");
        }
    }
    for words in ["lock inspect tfc/", "jobs logs tfc/prod --job ", "lock inspect 0", "lock list -n "] {
        let asked = completed(words);
        assert!(!asked.is_empty() && asked.iter().all(|r| !r.contains("/secrets")), "{words}: {asked:?}");
    }
}

#[test]
fn an_overloaded_server_is_asked_again_a_few_times() {
    let (address, count) = server(|_, stream| reply(stream, "429 Too Many Requests", "application/json", BUSY));
    let (code, text) = inspect(&address);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("slow down"), "{text}");
    assert!((4..=16).contains(&count.load(Ordering::SeqCst)), "{count:?}");
}

#[test]
fn a_gateways_page_is_not_absence() {
    for (status, body) in [
        ("404 Not Found", "<html>no such page</html>"),
        ("502 Bad Gateway", "<html>upstream</html>"),
        ("200 OK", "<html>log in</html>"),
    ] {
        let (address, _) = server(move |_, stream| reply(stream, status, "text/html", body));
        let (code, text) = inspect(&address);
        assert_eq!(code, Some(1), "{status}: {text}");
        assert!(
            !text.contains("not found in team-a") && !text.contains("free") && !text.contains("html>"),
            "{status}: {text}"
        );
    }
}

#[test]
fn a_stall_ends_at_the_request_timeout() {
    let (address, _) = server(|_, _| std::thread::sleep(std::time::Duration::from_secs(20)));
    let began = std::time::Instant::now();
    let (code, text) = inspect(&address);
    assert_eq!(code, Some(124), "{text}");
    assert!(text.contains("no answer") && began.elapsed().as_secs() < 15, "{text}");
}

#[test]
fn a_cut_connection_and_an_answer_about_another_object_are_no_verdict() {
    let (address, _) = server(|_, _| {});
    let (code, text) = inspect(&address);
    assert_eq!(code, Some(1), "{text}");
    let other = r#"{"kind":"TerraformCluster","metadata":{"name":"other","namespace":"team-a","uid":"u"}}"#;
    let (address, _) = server(move |_, stream| reply(stream, "200 OK", "application/json", other));
    let (code, text) = inspect(&address);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("about another object"), "{text}");
}

#[test]
fn a_proxy_is_used_named_in_errors_and_never_for_the_loopback_address() {
    let (proxy, count) = server(|_, stream| reply(stream, "403 Forbidden", "text/plain", "no"));
    let line = ["lock", "inspect", "tfc/prod", "-n", "team-a", "--request-timeout", "3s", "--server"];
    let run = |target: &str, vars: &[(&str, &str)]| {
        let output = binary().envs(vars.iter().copied()).args(line).arg(target).output().expect("run");
        (output.status.code(), shown(&output))
    };
    let through = proxy.replace("http://", "http://user:SECRET-WORD@");
    let (code, text) = run("https://api.example.invalid:6443", &[("HTTPS_PROXY", &through)]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains(&format!("through proxy {proxy}")) && !text.contains("SECRET-WORD"), "{text}");
    let asked = count.load(Ordering::SeqCst);
    assert!(asked > 0, "the proxy was asked");
    let (busy, _) = server(|_, stream| reply(stream, "429 Too Many Requests", "application/json", BUSY));
    let (_, text) = run(&busy, &[("HTTP_PROXY", &proxy), ("HTTPS_PROXY", &proxy)]);
    assert!(text.contains("slow down") && !text.contains("through proxy"), "{text}");
    assert_eq!(count.load(Ordering::SeqCst), asked, "the proxy was not asked for the loopback address");
}
