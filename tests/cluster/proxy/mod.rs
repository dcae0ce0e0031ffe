//! A proxy in front of an engine's socket or of the API server, through which a test stops the world at exactly
//! one request: holds it, cuts it, loses its answer, or changes the answer.

mod http;

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::ground::Ground;
use http::{Half, header, is_framed};

/// A request as it went by.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// With its query.
    pub path: String,
    pub agent: String,
    pub body: Vec<u8>,
    pub at: Instant,
}

impl Request {
    /// `POST /containers/create`, whatever API version stands in front.
    pub fn is(&self, method: &str, part: &str) -> bool {
        self.method == method && self.path.contains(part)
    }

    /// Sent by the binary in a container, not by us.
    pub fn of_the_runtime(&self) -> bool {
        self.agent.contains("Terraform")
    }
}

/// What happens to a request that a rule is for.
#[derive(Clone)]
pub enum Act {
    /// It waits at the gate.
    Hold,
    /// It never arrives: the connection ends.
    Cut,
    /// It arrives, and its answer does not.
    Swallow,
    /// Its answer, a JSON object, is changed.
    Change(fn(&mut Value)),
}

struct Rule {
    fits: Box<dyn Fn(&Request) -> bool + Send>,
    /// So many that fit go by first.
    skip: usize,
    /// So many are treated; the others go by.
    times: usize,
    act: Act,
    gate: Gate,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    Closed,
    Open,
    Cut,
}

/// Where a rule's requests are seen, and wait.
#[derive(Clone)]
pub struct Gate(Arc<(Mutex<(usize, Door)>, Condvar)>);

impl Gate {
    /// Returns when a request of the rule has come.
    #[track_caller]
    pub fn reached(&self) {
        let (state, changed) = &*self.0;
        let guard = state.lock().expect("the gate");
        let limit = Duration::from_secs(90);
        let (guard, late) = changed.wait_timeout_while(guard, limit, |(seen, _)| *seen == 0).expect("the gate");
        assert!(!late.timed_out() && guard.0 > 0, "no request came to the gate");
    }

    /// How many requests of the rule have come.
    pub fn seen(&self) -> usize {
        self.0.0.lock().expect("the gate").0
    }

    /// Lets what waits go on.
    pub fn open(&self) {
        self.turn(Door::Open);
    }

    /// Cuts what waits; it never arrives.
    pub fn cut(&self) {
        self.turn(Door::Cut);
    }

    fn turn(&self, door: Door) {
        self.0.0.lock().expect("the gate").1 = door;
        self.0.1.notify_all();
    }

    fn arrive(&self) {
        self.0.0.lock().expect("the gate").0 += 1;
        self.0.1.notify_all();
    }

    fn wait(&self) -> Door {
        let guard = self.0.0.lock().expect("the gate");
        self.0.1.wait_while(guard, |(_, door)| *door == Door::Closed).expect("the gate").1
    }
}

#[derive(Default)]
struct Shared {
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<Request>>,
}

/// A running proxy. It ends with the process.
pub struct Proxy {
    /// `unix:///…` or `https://127.0.0.1:PORT`.
    pub url: String,
    /// The certificate to trust, for the API server's.
    authority: Option<String>,
    folder: tempfile::TempDir,
    shared: Arc<Shared>,
}

impl Proxy {
    /// In front of an engine (`unix:///path`).
    pub fn of_engine(engine: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("captf-proxy-").tempdir().expect("a folder");
        let path = folder.path().join("engine.sock");
        let listener = UnixListener::bind(&path).expect("bind a socket");
        let behind = PathBuf::from(engine.strip_prefix("unix://").expect("a socket"));
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (own, behind) = (own.clone(), behind.clone());
                thread::spawn(move || own.serve(client, || UnixStream::connect(&behind)));
            }
        });
        Self { url: format!("unix://{}", path.display()), authority: None, folder, shared }
    }

    /// In front of the API server, with TLS on both sides and a certificate of its own.
    pub fn of_server(ground: &Ground) -> Self {
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_string(), "localhost".to_string()]);
        let own = own.expect("a certificate");
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).expect("a key");
        let server = ServerConfig::builder().with_no_client_auth();
        let server = Arc::new(server.with_single_cert(vec![own.cert.der().clone()], key).expect("a configuration"));
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_file_iter(&ground.ca).expect("the authority").flatten() {
            roots.add(authority).expect("an authority");
        }
        let client = Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
        let behind = ground.server.strip_prefix("https://").expect("an address").to_string();
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind a port");
        let url = format!("https://{}", listener.local_addr().expect("an address"));
        let shared = Arc::new(Shared::default());
        let all = shared.clone();
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (all, server, client, behind) = (all.clone(), server.clone(), client.clone(), behind.clone());
                thread::spawn(move || {
                    let session = ServerConnection::new(server).expect("a session");
                    all.serve(StreamOwned::new(session, socket), || {
                        let name = ServerName::try_from("127.0.0.1").expect("a name");
                        let session = ClientConnection::new(client.clone(), name).map_err(io::Error::other)?;
                        Ok(StreamOwned::new(session, TcpStream::connect(&behind)?))
                    });
                });
            }
        });
        let folder = tempfile::Builder::new().prefix("captf-proxy-").tempdir().expect("a folder");
        Self { url, authority: Some(own.cert.pem()), folder, shared }
    }

    /// A kubeconfig as another one, with this proxy as its server. Logins by certificate do not pass a proxy.
    pub fn kubeconfig(&self, of: &Path) -> PathBuf {
        let text = std::fs::read_to_string(of).expect("a kubeconfig");
        let mut config: Value = serde_json::from_str(&text).expect("JSON");
        let authority = self.folder.path().join("ca.crt");
        std::fs::write(&authority, self.authority.as_ref().expect("a proxy of the API server")).expect("write");
        config["clusters"][0]["cluster"] = json!({"server": self.url, "certificate-authority": authority});
        let file = self.folder.path().join(of.file_name().expect("a name"));
        std::fs::write(&file, config.to_string()).expect("write a kubeconfig");
        file
    }

    /// Treats the first request that fits.
    pub fn at(&self, act: Act, fits: impl Fn(&Request) -> bool + Send + 'static) -> Gate {
        self.rule(act, 0, 1, fits)
    }

    /// Treats the request that fits after `skip` others.
    pub fn after(&self, skip: usize, act: Act, fits: impl Fn(&Request) -> bool + Send + 'static) -> Gate {
        self.rule(act, skip, 1, fits)
    }

    /// Treats every request that fits from now on.
    pub fn always(&self, act: Act, fits: impl Fn(&Request) -> bool + Send + 'static) -> Gate {
        self.rule(act, 0, usize::MAX, fits)
    }

    fn rule(&self, act: Act, skip: usize, times: usize, fits: impl Fn(&Request) -> bool + Send + 'static) -> Gate {
        let gate = Gate(Arc::new((Mutex::new((0, Door::Closed)), Condvar::new())));
        let rule = Rule { fits: Box::new(fits), skip, times, act, gate: gate.clone() };
        self.shared.rules.lock().expect("the rules").push(rule);
        gate
    }

    /// Everything that went by so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.seen.lock().expect("the requests").clone()
    }
}

impl Shared {
    fn rule_for(&self, request: &Request) -> Option<(Act, Gate)> {
        let mut rules = self.rules.lock().expect("the rules");
        let rule = rules.iter_mut().find(|r| r.times > 0 && (r.fits)(request))?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times = rule.times.saturating_sub(1);
        Some((rule.act.clone(), rule.gate.clone()))
    }

    /// One connection, request by request. Any error of either side ends it, as it would without us.
    fn serve<S: Read + Write>(&self, client: impl Read + Write, connect: impl Fn() -> io::Result<S>) {
        let mut client = Half::new(client);
        let mut behind = None;
        while let Ok(true) = self.exchange(&mut client, &mut behind, &connect) {}
    }

    /// Whether the connection goes on.
    fn exchange<C: Read + Write, S: Read + Write>(
        &self,
        client: &mut Half<C>,
        behind: &mut Option<Half<S>>,
        connect: &impl Fn() -> io::Result<S>,
    ) -> io::Result<bool> {
        let head = client.head()?;
        let mut raw = Vec::new();
        let body = client.body(&head, false, &mut |bytes| {
            raw.extend_from_slice(bytes);
            Ok(())
        })?;
        let mut words = head.lines().next().unwrap_or_default().split(' ').map(str::to_string);
        let request = Request {
            method: words.next().unwrap_or_default(),
            path: words.next().unwrap_or_default(),
            agent: header(&head, "user-agent").unwrap_or_default(),
            body,
            at: Instant::now(),
        };
        self.seen.lock().expect("the requests").push(request.clone());
        let rule = self.rule_for(&request);
        if let Some((act, gate)) = &rule {
            gate.arrive();
            match act {
                Act::Cut => return Ok(false),
                Act::Hold if gate.wait() == Door::Cut => return Ok(false),
                Act::Hold | Act::Swallow | Act::Change(_) => {}
            }
        }
        if behind.is_none() {
            *behind = Some(Half::new(connect()?));
        }
        let behind = behind.as_mut().expect("just connected");
        behind.stream.write_all(head.as_bytes())?;
        behind.stream.write_all(&raw)?;
        behind.stream.flush()?;
        let answer = behind.head()?;
        let no_body = request.method == "HEAD" || [" 204 ", " 304 "].iter().any(|c| answer[..16].contains(c));
        match rule {
            Some((Act::Swallow, _)) => return Ok(false),
            Some((Act::Change(change), _)) => {
                let body = behind.body(&answer, true, &mut |_| Ok(()))?;
                let mut value: Value = serde_json::from_slice(&body).map_err(io::Error::other)?;
                change(&mut value);
                let (body, line) = (value.to_string(), answer.lines().next().unwrap_or_default());
                let head =
                    format!("{line}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
                client.stream.write_all(head.as_bytes())?;
                client.stream.write_all(body.as_bytes())?;
                client.stream.flush()?;
                return Ok(true);
            }
            _ => {}
        }
        client.stream.write_all(answer.as_bytes())?;
        client.stream.flush()?;
        if no_body {
            return Ok(true);
        }
        behind.body(&answer, true, &mut |bytes| {
            client.stream.write_all(bytes)?;
            client.stream.flush()
        })?;
        Ok(is_framed(&answer))
    }
}
