//! The objects of a snapshot and the one decision that matters: found, absent, or unreadable.
//!
//! Absent needs coverage and no problem anywhere. Everything that cannot be told is unreadable, with a
//! one-line reason. The HTTP side of it is in `service`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use serde_json::Value;

use super::collect::Collected;
use super::coverage::{Coverage, coverage};
use super::error::Problem;
use super::events;
use super::kinds::{Key, Kinds};
use super::logs::Logs;
use super::service::SnapshotService;
use super::{clock, paths::FileInfo};

/// Kubernetes objects, logs and what they cover, read from files.
#[derive(Debug)]
pub struct Snapshot {
    name: String,
    files: Vec<FileInfo>,
    pub(crate) kinds: Kinds,
    held: HashMap<Key, BTreeMap<String, BTreeMap<String, Entry>>>,
    coverage: HashMap<Key, Coverage>,
    problems: Vec<Problem>,
    pub(crate) logs: Logs,
    newest: OnceLock<Option<(Timestamp, String)>>,
}

#[derive(Debug)]
struct Entry {
    value: Value,
    file: usize,
    /// The file of a copy that differs.
    differs: Option<usize>,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The kind is held in another version of its group.
    OtherVersion,
    /// The object is known not to exist.
    Absent,
    /// It cannot be told; why.
    Unreadable(String),
}

impl Snapshot {
    pub(crate) fn new(name: &str, mut collected: Collected) -> Self {
        let kinds = collected.kinds();
        let coverage = coverage(&collected, &kinds);
        let problems = collected.take_problems();
        let mut held: HashMap<Key, BTreeMap<String, BTreeMap<String, Entry>>> = HashMap::new();
        for object in collected.objects {
            let key = kinds.key(&object.group, &object.kind);
            let names = held.entry(key.clone()).or_default().entry(object.namespace).or_default();
            match names.get_mut(&object.name) {
                None => {
                    names.insert(object.name, Entry { value: object.value, file: object.file, differs: None });
                }
                Some(first) if first.differs.is_none() && !same(&key, &first.value, &object.value) => {
                    first.differs = Some(object.file);
                }
                Some(_) => {}
            }
        }
        let newest = OnceLock::new();
        Self {
            name: name.to_owned(),
            files: collected.files,
            kinds,
            held,
            coverage,
            problems,
            logs: collected.logs,
            newest,
        }
    }

    /// The places that could not be read; while there is one, nothing is known to be absent.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The newest time found in any object, and where: about when the snapshot was taken.
    pub fn newest_timestamp(&self) -> Option<(Timestamp, String)> {
        self.newest.get_or_init(|| clock::newest(self.objects())).clone()
    }

    /// The number of different objects.
    pub fn object_count(&self) -> usize {
        self.entries().count()
    }

    /// The namespaces that are held, covered or have objects or logs, sorted.
    pub fn namespaces(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = self.logs.namespaces().map(str::to_owned).collect();
        names.extend(self.held.values().flat_map(|by_ns| by_ns.keys().filter(|ns| !ns.is_empty()).cloned()));
        names.extend(self.coverage.values().flat_map(|c| c.namespaces.iter().cloned()));
        names.extend(self.namespace_objects().map(str::to_owned));
        names.into_iter().collect()
    }

    /// The namespaces that hold an object of a kind that CAPTF runs Jobs for, sorted.
    pub fn workload_namespaces(&self) -> Vec<String> {
        let kinds = crate::captf::kind::WorkloadKind::ALL.map(|k| Key::new(crate::captf::keys::GROUP, k.plural()));
        let held = kinds.iter().filter_map(|key| self.held.get(key)).flat_map(BTreeMap::keys);
        let names: BTreeSet<String> = held.cloned().collect();
        names.into_iter().collect()
    }

    /// A short text: `snapshot PATH: 42 objects in 7 files`.
    pub fn description(&self) -> String {
        let files: BTreeSet<usize> =
            self.entries().flat_map(|entry| [Some(entry.file), entry.differs]).flatten().collect();
        let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        format!("snapshot {}: {} in {}", self.name, plural(self.object_count(), "object"), plural(files.len(), "file"))
    }

    /// A client whose API is this snapshot. It must be made inside a tokio runtime.
    pub fn into_client(self: Arc<Self>, default_namespace: &str) -> kube::Client {
        kube::Client::new(SnapshotService::new(self), default_namespace)
    }

    /// One object. `namespace` is empty for a kind that is not namespaced.
    pub(crate) fn get(&self, key: &Key, version: &str, namespace: &str, name: &str) -> Result<&Value, Refusal> {
        if let Some(entry) = self.held.get(key).and_then(|held| held.get(namespace)?.get(name)) {
            if let Some(other) = entry.differs {
                let text = self.differs(key, namespace, name, entry.file, other);
                return Err(Refusal::Unreadable(text));
            }
            return if is_version(key, &entry.value, version) { Ok(&entry.value) } else { Err(Refusal::OtherVersion) };
        }
        self.served(key, version)?;
        let subject =
            if namespace.is_empty() { key.display() } else { format!("{} of namespace {namespace}", key.display()) };
        let covered = |c: &Coverage| {
            if namespace.is_empty() { c.cluster } else { c.all || c.namespaces.contains(namespace) }
        };
        self.known(key, namespace, &subject, covered, "").map_err(Refusal::Unreadable)?;
        Err(Refusal::Absent)
    }

    /// All objects of a kind, of one namespace or of all. The kind may be one that is not namespaced.
    pub(crate) fn list(&self, key: &Key, version: &str, namespace: Option<&str>) -> Result<Vec<&Value>, Refusal> {
        self.served(key, version)?;
        let in_scope = |ns: &str| namespace.is_none_or(|wanted| wanted == ns);
        let by_namespace = self.held.get(key).into_iter().flatten().filter(|(ns, _)| in_scope(ns));
        let entries: Vec<(&str, &str, &Entry)> = by_namespace
            .flat_map(|(ns, names)| names.iter().map(|(name, entry)| (ns.as_str(), name.as_str(), entry)))
            .collect();
        let subject = match namespace {
            Some(ns) => format!("{} of namespace {ns}", key.display()),
            None if self.kinds.namespaced(key) == Some(false) => key.display(),
            None => format!("{} of all namespaces", key.display()),
        };
        let held = if entries.is_empty() { String::new() } else { format!(" ({} held)", entries.len()) };
        let covered = |c: &Coverage| match namespace {
            Some(ns) => c.all || c.namespaces.contains(ns),
            None => c.all || c.cluster || self.covers_each_namespace(c),
        };
        self.known(key, namespace.unwrap_or_default(), &subject, covered, &held).map_err(Refusal::Unreadable)?;
        for (ns, name, entry) in &entries {
            if let Some(other) = entry.differs {
                return Err(Refusal::Unreadable(self.differs(key, ns, name, entry.file, other)));
            }
            if !is_version(key, &entry.value, version) {
                let text = format!("{subject} are held in more than one version{held}");
                return Err(Refusal::Unreadable(text));
            }
        }
        Ok(entries.into_iter().map(|(_, _, entry)| &entry.value).collect())
    }

    /// Whether a version of a kind is not contradicted by the objects held.
    fn served(&self, key: &Key, version: &str) -> Result<(), Refusal> {
        let mut objects = self.held.get(key).into_iter().flatten().flat_map(|(_, names)| names.values()).peekable();
        let other = objects.peek().is_some() && !objects.any(|entry| is_version(key, &entry.value, version));
        if other { Err(Refusal::OtherVersion) } else { Ok(()) }
    }

    /// Whether what is not held is known to be absent; if not, why.
    fn known(
        &self,
        key: &Key,
        namespace: &str,
        subject: &str,
        covered: impl Fn(&Coverage) -> bool,
        held: &str,
    ) -> Result<(), String> {
        let problem = self.problems.first().map(|problem| {
            let more = self.problems.len() - 1;
            let more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
            match problem.line {
                Some(_) => format!("{} could not be parsed{more}", problem.place()),
                None => format!("{problem}{more}"),
            }
        });
        let coverage = self.coverage.get(key);
        if !coverage.is_some_and(covered) {
            let refusals = coverage.map(|c| c.refusals.as_slice()).unwrap_or_default();
            let applies = |ns: &Option<String>| namespace.is_empty() || ns.as_deref().is_none_or(|ns| ns == namespace);
            let why = refusals.iter().find(|(ns, _)| applies(ns)).map(|(_, why)| why.clone());
            return Err(match why.or(problem.filter(|_| !held.is_empty())) {
                Some(why) => format!("{subject} may be incomplete: {why}{held}"),
                None => format!(
                    "{subject} are not in the snapshot{}",
                    if held.is_empty() { String::new() } else { format!(" as a whole{held}") }
                ),
            });
        }
        if let Some(problem) = problem {
            return Err(format!("{subject} may be incomplete: {problem}{held}"));
        }
        let by_namespace = self.held.get(key);
        let stray = by_namespace.and_then(|held| held.get("")?.iter().next());
        if let (Some((name, entry)), true) =
            (stray, by_namespace.is_some_and(|h| h.len() > 1 || self.kinds.namespaced(key) == Some(true)))
        {
            let file = &self.files[entry.file].display;
            return Err(format!("{subject} may be incomplete: {name} in {file} has no namespace{held}"));
        }
        Ok(())
    }

    /// Whether the namespaces themselves are all known and each of them is covered.
    fn covers_each_namespace(&self, kind: &Coverage) -> bool {
        let namespaces = self.coverage.get(&Key::new("", "namespaces")).is_some_and(|c| c.cluster);
        namespaces && !kind.namespaces.is_empty() && self.namespace_objects().all(|ns| kind.namespaces.contains(ns))
    }

    fn namespace_objects(&self) -> impl Iterator<Item = &str> {
        let held = self.held.get(&Key::new("", "namespaces"));
        held.into_iter().flatten().flat_map(|(_, names)| names.keys().map(String::as_str))
    }

    fn differs(&self, key: &Key, ns: &str, name: &str, one: usize, other: usize) -> String {
        let (one, other) = (&self.files[one].display, &self.files[other].display);
        let full = if ns.is_empty() { name.to_owned() } else { format!("{ns}/{name}") };
        if one == other {
            return format!("{} {full} is in {one} twice, and the copies differ", key.display());
        }
        format!("{} {full} differs between {one} and {other}", key.display())
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.held.values().flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }

    fn objects(&self) -> impl Iterator<Item = &Value> {
        self.entries().map(|entry| &entry.value)
    }
}

fn is_version(key: &Key, value: &Value, version: &str) -> bool {
    if *key == Key::new("", "events") {
        return version == "v1";
    }
    let stored = value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    stored.rsplit_once('/').map_or(stored, |(_, version)| version) == version
}

/// Whether two copies of an object are equal apart from `metadata.managedFields`.
fn same(key: &Key, one: &Value, other: &Value) -> bool {
    if *key == Key::new("", "events") && one.get("apiVersion") != other.get("apiVersion") {
        return same_fields(&events::comparable(one), &events::comparable(other));
    }
    same_fields(one, other)
}

fn same_fields(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return one == other;
    };
    let metadata = |value: Option<&Value>| {
        let mut value = value.cloned().unwrap_or_default();
        value.as_object_mut().map(|map| map.remove("managedFields"));
        value
    };
    one.len() == other.len()
        && one.iter().all(|(field, value)| match other.get(field) {
            None => false,
            copy if field == "metadata" => metadata(Some(value)) == metadata(copy),
            Some(copy) => value == copy,
        })
}
