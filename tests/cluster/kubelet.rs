//! The log endpoint of a kubelet on loopback, behind a Node of the test ground, so that the API server's own log
//! path runs: `kubectl logs`, and what the plugin asks for, go to the server, which asks this kubelet over TLS.
//!
//! It answers as the kubelet does: pods and container states come from the API server, a container that waits is
//! a 400 with the kubelet's words, and a followed log ends when the container does.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::ground::{Ground, ground};

/// The node whose pods have logs.
pub const NODE: &str = "node-with-logs";
/// Between two looks for more of a followed log.
const PACE: Duration = Duration::from_millis(50);

type Key = (String, String, String);

#[derive(Default)]
struct Log {
    lines: Vec<(Timestamp, String)>,
    /// The stream of this container is cut, although the container runs.
    cut: bool,
}

/// The kubelet of [`NODE`].
pub struct Kubelet {
    ground: &'static Ground,
    logs: Mutex<HashMap<Key, Log>>,
    asked: Mutex<Vec<String>>,
}

/// The kubelet that all tests of this process share.
pub fn kubelet() -> &'static Kubelet {
    static KUBELET: OnceLock<&'static Kubelet> = OnceLock::new();
    KUBELET.get_or_init(|| Box::leak(Box::new(Kubelet::empty())).start())
}

impl Kubelet {
    fn empty() -> Self {
        Self { ground: ground(), logs: Mutex::default(), asked: Mutex::default() }
    }

    fn start(&'static self) -> &'static Self {
        let read = |name: &str| self.ground.dir.join(name);
        let certificates = CertificateDer::pem_file_iter(read("server.crt")).expect("the certificate of the ground");
        let certificates: Vec<_> = certificates.map(|c| c.expect("a certificate")).collect();
        let key = PrivateKeyDer::from_pem_file(read("server.key")).expect("the key of the ground");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .expect("TLS 1.3")
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .expect("key and certificate belong together");
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port for the kubelet");
        let port = listener.local_addr().expect("its address").port();
        self.ground.apply_value(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
            "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                       "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
                       "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let config = config.clone();
                std::thread::spawn(move || {
                    let connection = ServerConnection::new(config).expect("a TLS connection");
                    // A client that goes away ends its answer only.
                    let _ = self.answer(StreamOwned::new(connection, stream));
                });
            }
        });
        self
    }

    /// Appends lines to the log of a container, as of now.
    pub fn write(&self, namespace: &str, pod: &str, container: &str, text: &str) {
        self.write_at(namespace, pod, container, text, Timestamp::now());
    }

    /// The same with the time at which the lines were written.
    pub fn write_at(&self, namespace: &str, pod: &str, container: &str, text: &str, at: Timestamp) {
        let mut logs = self.logs.lock().expect("no test panics while it writes");
        let log = logs.entry((namespace.into(), pod.into(), container.into())).or_default();
        log.lines.extend(text.lines().map(|line| (at, line.to_string())));
    }

    /// Cuts the streams of a container that runs on.
    pub fn cut(&self, namespace: &str, pod: &str, container: &str) {
        let mut logs = self.logs.lock().expect("no test panics while it writes");
        logs.entry((namespace.into(), pod.into(), container.into())).or_default().cut = true;
    }

    /// Path and query of every request about a pod, oldest first.
    pub fn asked_about(&self, namespace: &str, pod: &str) -> Vec<String> {
        let asked = self.asked.lock().expect("no test panics while it reads");
        asked.iter().filter(|line| line.starts_with(&format!("/containerLogs/{namespace}/{pod}/"))).cloned().collect()
    }

    fn answer(&self, mut stream: StreamOwned<ServerConnection, TcpStream>) -> std::io::Result<()> {
        let mut head = String::new();
        let mut reader = BufReader::new(&mut stream);
        loop {
            let mut line = String::new();
            if reader.by_ref().take(64 << 10).read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        drop(reader);
        let target = head.split_whitespace().nth(1).unwrap_or_default().to_string();
        self.asked.lock().expect("no test panics while it reads").push(target.clone());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let parts: Vec<&str> = path.split('/').collect();
        let ["", "containerLogs", namespace, pod, container] = parts[..] else {
            return refuse(&mut stream, 404, "404 page not found\n");
        };
        let part = |name: &str| query.split('&').find_map(|p| p.strip_prefix(name)?.strip_prefix('='));
        match self.state(namespace, pod, container) {
            Ok(_) => {}
            Err((code, words)) => return refuse(&mut stream, code, &words),
        }
        let asked = Asked {
            follow: part("follow") == Some("true"),
            tail: part("tailLines").and_then(|n| n.parse().ok()),
            since: part("sinceSeconds").and_then(|n| n.parse().ok()),
            limit: part("limitBytes").and_then(|n| n.parse().ok()),
        };
        let key = (namespace.to_string(), pod.to_string(), container.to_string());
        self.send(&mut stream, &key, &asked)
    }

    /// Whether the container runs; else why it has no log, in the kubelet's words.
    fn state(&self, namespace: &str, pod: &str, container: &str) -> Result<bool, (u16, String)> {
        let Some(found) = self.ground.find("Pod", namespace, pod) else {
            return Err((404, format!("pod \"{pod}\" does not exist\n")));
        };
        let lists = ["containerStatuses", "initContainerStatuses"];
        let mut statuses = lists.iter().flat_map(|l| found["status"][l].as_array().into_iter().flatten());
        let Some(status) = statuses.find(|s| s["name"] == container) else {
            return Err((400, format!("container \"{container}\" in pod \"{pod}\" is not available")));
        };
        let state = &status["state"];
        if state["running"].is_object() || state["terminated"].is_object() {
            return Ok(state["running"].is_object());
        }
        let why = match state["waiting"]["reason"].as_str().unwrap_or_default() {
            "ErrImagePull" => "image can't be pulled",
            "ImagePullBackOff" => "trying and failing to pull image",
            other => other,
        };
        Err((400, format!("container \"{container}\" in pod \"{pod}\" is waiting to start: {why}")))
    }

    fn send(&self, stream: &mut impl Write, key: &Key, asked: &Asked) -> std::io::Result<()> {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        )?;
        stream.flush()?;
        let (mut at, mut left) = (None, asked.limit.unwrap_or(u64::MAX));
        loop {
            // The state first: what was written before the end is sent before the end.
            let runs = self.state(&key.0, &key.1, &key.2) == Ok(true);
            let (text, next, cut) = {
                let logs = self.logs.lock().expect("no test panics while it writes");
                let lines = logs.get(key).map(|l| l.lines.as_slice()).unwrap_or_default();
                let from = at.unwrap_or_else(|| asked.tail.map_or(0, |n| lines.len().saturating_sub(n)));
                let old = asked.since.map(|s| Timestamp::now() - jiff::SignedDuration::from_secs(s));
                let new = lines[from..].iter().filter(|(time, _)| old.is_none_or(|old| *time >= old));
                let text: String = new.map(|(_, line)| format!("{line}\n")).collect();
                (text, lines.len(), logs.get(key).is_some_and(|l| l.cut))
            };
            at = Some(next);
            let bytes = &text.as_bytes()[..text.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            left -= bytes.len() as u64;
            if !bytes.is_empty() {
                write!(stream, "{:x}\r\n", bytes.len())?;
                stream.write_all(bytes)?;
                stream.write_all(b"\r\n")?;
                stream.flush()?;
            }
            if !asked.follow || !runs || cut || left == 0 {
                stream.write_all(b"0\r\n\r\n")?;
                return stream.flush();
            }
            std::thread::sleep(PACE);
        }
    }
}

/// What part of a log is asked for.
struct Asked {
    follow: bool,
    tail: Option<usize>,
    since: Option<i64>,
    limit: Option<u64>,
}

fn refuse(stream: &mut impl Write, code: u16, words: &str) -> std::io::Result<()> {
    let length = words.len();
    let head = format!(
        "HTTP/1.1 {code} refused\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(words.as_bytes())?;
    stream.flush()
}

/// The pod of a Job on [`NODE`], whose containers are in these states.
pub fn statuses(source: &Value, runner: Option<&Value>) -> Value {
    let one = |name: &str, state: &Value| json!({"name": name, "image": "i", "imageID": "", "ready": state["running"].is_object(), "restartCount": 0, "state": state});
    let mut all = json!({"containerStatuses": [one("source", source)]});
    if let Some(runner) = runner {
        all["initContainerStatuses"] = json!([one("runner", runner)]);
    }
    all
}
