//! Every verb of a command's printed Role is taken away once, and what the command then says is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::world::{account, printed, without};
use crate::ground::Namespace;
use crate::plugin::{Ran, captf_as};

/// Rights whose want is no gap, or that no line here can show.
const QUIET: &[(&str, &str)] = &[
    // Hints beside an error: names that are close to a mistyped one, and a namespace that does not exist.
    ("", "list terraformclusters.infrastructure.cluster.x-k8s.io"),
    ("", "list terraformmachines.infrastructure.cluster.x-k8s.io"),
    ("", "list terraformmachinepools.infrastructure.cluster.x-k8s.io"),
    ("", "get namespaces"),
    // Nothing serves logs here, so that neither credentials in them nor steps are looked for.
    ("jobs logs", "get secrets"),
    // A fleet of so few objects is asked for one by one.
    ("jobs why", "list clusters.cluster.x-k8s.io"),
    ("jobs why", "list leases.coordination.k8s.io"),
    ("jobs why", "list terraformplans.infrastructure.cluster.x-k8s.io"),
    ("restore", "get pods/log"),
    ("restore status", "get pods/log"),
    ("restore retry", "get pods/log"),
];
/// Rights that only a change uses; `changes` takes them away.
const CHANGING: &[&str] = &[
    "create leases.coordination.k8s.io",
    "update leases.coordination.k8s.io",
    "delete leases.coordination.k8s.io",
    "create events",
    "create serviceaccounts/token",
    "create jobs.batch",
    "get jobs.batch",
    "delete jobs.batch",
];

/// Rights by which `jobs why` tells a cause, and a restore that failed with it; each is proved with `jobs why`.
const CAUSES: &[&str] = &[
    "get jobs.batch",
    "get leases.coordination.k8s.io",
    "get pods",
    "list pods",
    "get secrets",
    "list secrets",
    "get configmaps",
    "get nodes",
    "list nodes",
    "list events",
];

/// Processes at the same time.
const THREADS: usize = 3;

/// A verb on a resource, as `permissions check` lists it.
#[derive(Debug, Clone)]
pub struct Right {
    pub verb: String,
    pub qualified: String,
    pub needed: bool,
    pub outside: bool,
}

impl Right {
    pub fn named(&self) -> String {
        format!("{} {}", self.verb, self.qualified)
    }

    /// Group and resource as RBAC has them.
    fn parts(&self) -> (String, String) {
        let (plural, sub) =
            self.qualified.split_once('/').map_or((self.qualified.as_str(), None), |(p, s)| (p, Some(s)));
        let (plural, group) = plural.split_once('.').unwrap_or((plural, ""));
        (group.to_string(), sub.map_or_else(|| plural.to_string(), |sub| format!("{plural}/{sub}")))
    }

    pub fn taken_from(&self, roles: &[Value]) -> Vec<Value> {
        let (group, resource) = self.parts();
        without(roles, &group, &resource, &self.verb, self.outside)
    }
}

/// What `permissions check` lists for the command.
pub fn rights(ns: &Namespace<'_>, kubeconfig: &Path, command: &str) -> Vec<Right> {
    let check = captf_as(ns, kubeconfig, &format!("permissions check {command} -o json"));
    assert_eq!((check.code, &check.json()["exitCode"]), (Some(0), &json!(0)), "{check:?}");
    let text = |value: &Value| value.as_str().expect("a text").to_string();
    let json = check.json();
    let all = json["permissions"].as_array().expect("permissions").iter();
    all.map(|p| {
        assert_eq!(p["allowed"], "yes", "{command}: {p}");
        Right {
            verb: text(&p["verb"]),
            qualified: text(&p["resource"]),
            needed: p["needed"] == true,
            outside: p["scope"] == "cluster",
        }
    })
    .collect()
}

/// A line with a file of its own behind `{to}`, which goes away when this does.
struct Line {
    words: String,
    file: PathBuf,
}

impl Line {
    fn of(ns: &Namespace<'_>, line: &str) -> Self {
        static FILES: AtomicUsize = AtomicUsize::new(0);
        let file = ns.ground().dir.join(format!("{}-to-{}", ns.name(), FILES.fetch_add(1, Ordering::Relaxed)));
        Self { words: format!("{} -o json", line.replace("{to}", &file.display().to_string())), file }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file); // a command that refused wrote none
    }
}

/// Runs a line through kubectl.
pub fn through_kubectl(ns: &Namespace<'_>, kubeconfig: &Path, line: &str) -> Ran {
    captf_as(ns, kubeconfig, &Line::of(ns, line).words)
}

/// Runs a line without kubectl between, which is quicker for hundreds of them.
pub fn directly(ns: &Namespace<'_>, kubeconfig: &Path, line: &str) -> Ran {
    crate::plugin::direct(ns, kubeconfig, &Line::of(ns, line).words)
}

/// Everything that a run says, gaps and errors alike.
pub fn said(ran: &Ran) -> String {
    format!("{}{}", ran.stdout, ran.stderr)
}

/// The claims of a run: its exit code, and of each item the verdict and the codes; for the rest, how much there is.
fn claims(ran: &Ran) -> Vec<String> {
    let json: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    let mut all = vec![format!("exit {:?}", ran.code)];
    for item in json["items"].as_array().into_iter().flatten() {
        let codes: BTreeSet<String> =
            item["findings"].as_array().into_iter().flatten().map(|f| f["code"].to_string()).collect();
        // Whether the time of an attempt has come by now is no claim about what was read.
        let state = |next: &Value| next["state"].to_string().replace("scheduled", "due");
        let attempts = item["runs"]["nextAttempts"].as_array().into_iter().flatten();
        let next: Vec<String> = attempts.map(|n| format!("{} {}", n["operation"], state(n))).collect();
        all.push(format!("{} {} {codes:?} {next:?}", item["object"], item["verdict"]));
    }
    for (key, value) in json.as_object().into_iter().flatten() {
        let size = value.as_array().map(Vec::len).or(value.as_object().map(serde_json::Map::len));
        if !["items", "unreadable", "exitCode", "generatedAt", "taken"].contains(&key.as_str()) && size.is_some() {
            all.push(format!("{key} {size:?}"));
        }
    }
    all
}

/// Whether a gap of the run is a missing permission.
pub fn forbidden(ran: &Ran) -> bool {
    let json: Value = serde_json::from_str(&ran.stdout).unwrap_or_default();
    json["unreadable"].as_array().into_iter().flatten().any(|g| g["reason"] == "forbidden")
        || said(ran).contains("forbidden")
}

fn may_be_quiet(command: &str, right: &Right) -> bool {
    let changes = ["restore", "restore retry", "claim reclaim", "lock force-unlock"].contains(&command);
    let listed = QUIET.iter().any(|(of, named)| (of.is_empty() || *of == command) && *named == right.named());
    let needs_a_list = right.needed && right.verb == "list" && right.qualified.starts_with("terraform");
    let retried = command == "restore retry" && right.verb == "patch";
    let of_a_cause = command.starts_with("restore") && !right.needed && CAUSES.contains(&right.named().as_str());
    of_a_cause || (listed && !needs_a_list) || retried || (changes && CHANGING.contains(&right.named().as_str()))
}

/// What is wrong with the row of a command: with the whole Role and these lines, and with each verb less.
pub fn problems(ns: &Namespace<'_>, command: &str, lines: &[&str]) -> Vec<String> {
    let roles = printed(ns, command);
    let stem = command.replace(' ', "-");
    let whole = account(ns, &stem, &roles);
    let mut wrong = Vec::new();
    let mut before = BTreeMap::new();
    for line in lines {
        let ran = through_kubectl(ns, &whole, line);
        if forbidden(&ran) || ran.stderr.contains("unexpected argument") {
            wrong.push(format!("too narrow: `{line}`: {ran:?}"));
        }
        before.insert(*line, claims(&ran));
    }
    let rights = rights(ns, &whole, command);
    assert!(!rights.is_empty(), "{command}");
    let accounts: Vec<(Right, PathBuf)> = rights
        .into_iter()
        .enumerate()
        .map(|(i, right)| (right.clone(), account(ns, &format!("{stem}-{i}"), &right.taken_from(&roles))))
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(wrong));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((right, less)) = accounts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut named = false;
                    for line in lines {
                        let ran = directly(ns, less, line);
                        let here = said(&ran).contains(&right.named());
                        named |= here;
                        if !here && claims(&ran) != before[line] {
                            let text = format!(
                                "`{line}` without `{}` claims {:?} instead of {:?}: {ran:?}",
                                right.named(),
                                claims(&ran),
                                before[line]
                            );
                            found.lock().expect("no panic").push(text);
                        }
                    }
                    if !named && !may_be_quiet(command, right) {
                        let text = format!("too wide: `{command}` never misses `{}`", right.named());
                        found.lock().expect("no panic").push(text);
                    }
                }
            });
        }
    });
    found.into_inner().expect("no panic")
}
