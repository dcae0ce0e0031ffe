//! What a snapshot could have held: for which kinds and namespaces its lists speak.
//!
//! Only coverage lets an answer say "not there". It comes from lists and must-gather directories, never
//! from single objects; a list that was cut or looks selected covers nothing and leaves its reason.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::collect::{Collected, RawList, RawObject};
use super::kinds::{Key, Kinds};
use super::paths::FileInfo;
use super::selected::shared_label;

/// What is known of one kind.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// All namespaces.
    pub(crate) all: bool,
    /// The whole kind, which is not namespaced.
    pub(crate) cluster: bool,
    /// Some namespaces.
    pub(crate) namespaces: BTreeSet<String>,
    /// Why lists of it do not count; with their namespace when they have one.
    pub(crate) refusals: Vec<(Option<String>, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Extent {
    Cluster,
    All,
    Namespace(String),
    /// It could be any namespace.
    Unknown,
}

/// What the objects and lists cover, by kind.
pub(crate) fn coverage(collected: &Collected, kinds: &Kinds) -> HashMap<Key, Coverage> {
    let mut scan = Scan { collected, kinds, hints: Hints::new(collected, kinds), found: HashMap::new() };
    for list in &collected.lists {
        if list.items.is_empty() { scan.empty_list(list) } else { scan.list(list) }
    }
    for (at, object) in collected.objects.iter().enumerate() {
        scan.must_gather_object(at, object);
    }
    scan.found
}

struct Scan<'a> {
    collected: &'a Collected,
    kinds: &'a Kinds,
    hints: Hints<'a>,
    found: HashMap<Key, Coverage>,
}

impl Scan<'_> {
    fn list(&mut self, list: &RawList) {
        let info = &self.collected.files[list.file];
        let mut by_kind: BTreeMap<Key, Vec<&RawObject>> = BTreeMap::new();
        for at in list.items.clone() {
            by_kind.entry(self.collected.key(self.kinds, at)).or_default().push(&self.collected.objects[at]);
        }
        let extent = self.extent_of(list, info);
        for (key, objects) in by_kind {
            let without = objects.iter().filter(|o| o.namespace.is_empty()).count();
            let namespaced = self.kinds.namespaced(&key);
            let extent = if namespaced.unwrap_or(without < objects.len()) { extent.clone() } else { Extent::Cluster };
            let values: Vec<&Value> = objects.iter().map(|o| &o.value).collect();
            let refusal = if list.cut {
                Some(format!("{}: the list was cut (continue token)", info.display))
            } else if extent != Extent::Cluster && without > 0 {
                Some(format!("{} has objects without a namespace", info.display))
            } else {
                shared_label(&key, &values)
                    .map(|label| format!("{} looks like it was taken with a selector ({label})", info.display))
            };
            self.note(key, extent, refusal);
        }
    }

    fn extent_of(&self, list: &RawList, info: &FileInfo) -> Extent {
        let namespaces = namespaces_of(self.collected, list);
        let told = info.must_gather().and_then(|told| told.namespace);
        let mut names = namespaces.into_iter();
        match (names.next(), names.next()) {
            (Some(_), Some(_)) => Extent::All,
            (Some(one), None) => Extent::Namespace(one.to_owned()),
            (None, _) => told.map_or(Extent::Unknown, Extent::Namespace),
        }
    }

    fn empty_list(&mut self, list: &RawList) {
        let info = &self.collected.files[list.file];
        let told = info.must_gather().filter(|told| !told.file_per_object);
        let stem = told.as_ref().map(|told| told.key.clone()).or_else(|| self.kinds.key_of_stem(info.stem()));
        let typed = list.typed.as_ref().map(|(group, kind)| self.kinds.key(group, kind));
        let Some(key) = typed.or_else(|| stem.clone()) else {
            return;
        };
        let named_so = stem.as_ref() == Some(&key);
        let extent = match (self.kinds.namespaced(&key), told) {
            (Some(false), _) => Extent::Cluster,
            (None, Some(told)) if named_so && told.namespace.is_none() => Extent::Cluster,
            (_, Some(told)) if named_so && told.namespace.is_some() => {
                told.namespace.map_or(Extent::Unknown, Extent::Namespace)
            }
            _ => self.hints.namespace_of_empty(list, info, named_so).map_or(Extent::Unknown, Extent::Namespace),
        };
        let refusal = if list.cut {
            Some(format!("{}: the list was cut (continue token)", info.display))
        } else if extent == Extent::Unknown {
            Some(format!("{} is an empty list and does not tell its namespace", info.display))
        } else {
            None
        };
        self.note(key, extent, refusal);
    }

    fn must_gather_object(&mut self, at: usize, object: &RawObject) {
        let told = self.collected.files[object.file].must_gather();
        let Some(told) = told.filter(|told| told.file_per_object && !object.listed) else {
            return;
        };
        if told.key != self.collected.key(self.kinds, at) {
            return;
        }
        match told.namespace {
            Some(ns) if ns == object.namespace => self.note(told.key, Extent::Namespace(ns), None),
            None if object.namespace.is_empty() && self.kinds.namespaced(&told.key) != Some(true) => {
                self.note(told.key, Extent::Cluster, None);
            }
            _ => {}
        }
    }

    fn note(&mut self, key: Key, extent: Extent, refusal: Option<String>) {
        let coverage = self.found.entry(key).or_default();
        match (refusal, extent) {
            (Some(why), Extent::Namespace(ns)) => coverage.refusals.push((Some(ns), why)),
            (Some(why), _) => coverage.refusals.push((None, why)),
            (None, Extent::Cluster) => coverage.cluster = true,
            (None, Extent::All) => coverage.all = true,
            (None, Extent::Namespace(ns)) => drop(coverage.namespaces.insert(ns)),
            (None, Extent::Unknown) => {}
        }
    }
}

fn namespaces_of<'a>(collected: &'a Collected, list: &RawList) -> BTreeSet<&'a str> {
    let objects = &collected.objects[list.items.clone()];
    objects.iter().map(|o| o.namespace.as_str()).filter(|ns| !ns.is_empty()).collect()
}

/// What the neighbours of an empty list tell about its namespace.
struct Hints<'a> {
    collected: &'a Collected,
    /// The namespaces of the lists of a file, and of a directory.
    by_file: HashMap<usize, BTreeSet<&'a str>>,
    by_directory: HashMap<&'a [String], BTreeSet<&'a str>>,
    /// The namespaces of all objects whose file lies directly in a directory.
    held_in: HashMap<&'a [String], BTreeSet<&'a str>>,
    known: HashSet<&'a str>,
    /// Directories that have a `nodes.json`, as a cluster-info dump has.
    dumps: HashSet<&'a [String]>,
}

impl<'a> Hints<'a> {
    fn new(collected: &'a Collected, kinds: &Kinds) -> Self {
        let mut by_file: HashMap<usize, BTreeSet<&str>> = HashMap::new();
        let mut by_directory: HashMap<&[String], BTreeSet<&str>> = HashMap::new();
        for list in &collected.lists {
            let namespaces = namespaces_of(collected, list);
            by_directory.entry(collected.files[list.file].directory()).or_default().extend(&namespaces);
            by_file.entry(list.file).or_default().extend(namespaces);
        }
        let mut held_in: HashMap<&[String], BTreeSet<&str>> = HashMap::new();
        let mut known = HashSet::new();
        for (at, object) in collected.objects.iter().enumerate() {
            if !object.namespace.is_empty() {
                known.insert(object.namespace.as_str());
                held_in.entry(collected.files[object.file].directory()).or_default().insert(&object.namespace);
            } else if object.kind == "Namespace" && collected.key(kinds, at) == Key::new("", "namespaces") {
                known.insert(object.name.as_str());
            }
        }
        let is_nodes = |info: &&FileInfo| info.parts.last().is_some_and(|name| name == "nodes.json");
        let dumps = collected.files.iter().filter(is_nodes).map(FileInfo::directory).collect();
        Self { collected, by_file, by_directory, held_in, known, dumps }
    }

    fn namespace_of_empty(&self, list: &RawList, info: &'a FileInfo, named_so: bool) -> Option<String> {
        let directory = info.directory();
        if let Some(parent) = info.parent().filter(|_| named_so) {
            let in_dump = self.dumps.contains(&directory[..directory.len() - 1]);
            let agreed = self.held_in.get(directory).is_none_or(|held| held.iter().all(|ns| *ns == parent));
            if agreed && (in_dump || self.known.contains(parent)) {
                return Some(parent.to_owned());
            }
        }
        let in_file = self.by_file.get(&list.file).filter(|names| !names.is_empty());
        let names = in_file.or_else(|| self.by_directory.get(self.collected.files[list.file].directory()))?;
        let mut names = names.iter();
        match (names.next(), names.next()) {
            (Some(only), None) => Some((*only).to_owned()),
            _ => None,
        }
    }
}
