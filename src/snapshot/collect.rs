//! From parsed documents to objects, lists and problems, before anything is judged.
//!
//! Lists are taken apart here; documents that are not Kubernetes objects are dropped. A list without
//! its end (kubectl writes `kind` after `items`) is a problem, because YAML cut short still parses.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::error::Problem;
use super::kinds::{Key, Kinds};
use super::logs::Logs;
use super::parse;
use super::paths::FileInfo;

/// An object as it was found.
#[derive(Debug)]
pub(crate) struct RawObject {
    pub(crate) file: usize,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) value: Value,
    /// Whether it came in a list.
    pub(crate) listed: bool,
}

/// A list as it was found.
#[derive(Debug)]
pub(crate) struct RawList {
    pub(crate) file: usize,
    /// Its items among the objects.
    pub(crate) items: Range<usize>,
    /// The group and kind of its items, when its own kind tells.
    pub(crate) typed: Option<(String, String)>,
    /// Whether more items were on the server.
    pub(crate) cut: bool,
}

/// Everything found so far.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) files: Vec<FileInfo>,
    pub(crate) objects: Vec<RawObject>,
    pub(crate) lists: Vec<RawList>,
    pub(crate) logs: Logs,
    problems: Vec<(usize, Problem, bool)>,
    charts: HashSet<Vec<String>>,
}

impl Collected {
    /// Reads the documents of one file.
    pub(crate) fn add_file(&mut self, info: FileInfo, bytes: &[u8]) {
        if info.parts.last().is_some_and(|name| name == "Chart.yaml") {
            self.charts.insert(info.directory().to_vec());
        }
        let file = self.files.len();
        self.files.push(info);
        let parsed = parse::documents(bytes);
        for fault in parsed.faults {
            let problem = Problem::new(&self.files[file].display, Some(fault.line), fault.reason);
            self.problems.push((file, problem, fault.templated));
        }
        for (line, value) in parsed.documents {
            self.add_document(file, line, value);
        }
    }

    /// Notes a file that could not be used at all.
    pub(crate) fn add_problem(&mut self, info: FileInfo, reason: &str) {
        let problem = Problem::new(&info.display, None, reason);
        self.problems.push((self.files.len(), problem, false));
        self.files.push(info);
    }

    fn add_document(&mut self, file: usize, line: usize, value: Value) {
        if let Value::Array(items) = value {
            items.into_iter().for_each(|item| self.add_document(file, line, item));
            return;
        }
        match shape(&value) {
            Shape::List => self.add_list(file, line, value),
            Shape::Object => self.add_object(file, value, None),
            Shape::Unfinished => {
                let reason = "it looks like a list without its end";
                let problem = Problem::new(&self.files[file].display, Some(line), reason);
                self.problems.push((file, problem, false));
            }
            Shape::Other => {}
        }
    }

    fn add_list(&mut self, file: usize, line: usize, value: Value) {
        let typed = typed_item(&value);
        let start = self.objects.len();
        let mut cut = false;
        self.add_items(file, line, value, &mut cut);
        let items = start..self.objects.len();
        self.lists.push(RawList {
            file,
            items,
            typed: typed.map(|(version, kind)| (group_of(&version).to_owned(), kind)),
            cut,
        });
    }

    fn add_items(&mut self, file: usize, line: usize, mut list: Value, cut: &mut bool) {
        *cut |= is_cut(&list);
        let typed = typed_item(&list);
        let Some(Value::Array(items)) = list.get_mut("items").map(Value::take) else {
            return;
        };
        for item in items {
            match shape(&item) {
                Shape::List => self.add_items(file, line, item, cut),
                _ if name_of(&item).is_some() && (item.get("kind").is_some() || typed.is_some()) => {
                    self.add_object(file, item, Some(typed.as_ref()));
                }
                _ => {
                    let reason = "an item of the list is not a whole object";
                    let problem = Problem::new(&self.files[file].display, Some(line), reason);
                    self.problems.push((file, problem, false));
                }
            }
        }
    }

    /// `from_list` is the apiVersion and kind of the items of the list it came in.
    fn add_object(&mut self, file: usize, mut value: Value, from_list: Option<Option<&(String, String)>>) {
        if let (Some(Some((version, kind))), Some(map)) = (from_list, value.as_object_mut()) {
            map.entry("apiVersion").or_insert_with(|| Value::String(version.clone()));
            map.entry("kind").or_insert_with(|| Value::String(kind.clone()));
        }
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (version, kind) = (text("/apiVersion"), text("/kind"));
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        if name.contains("{{") {
            return;
        }
        let group = group_of(&version).to_owned();
        self.objects.push(RawObject { file, group, kind, namespace, name, value, listed: from_list.is_some() });
    }

    /// Plurals and scopes, with what the CRDs among the objects say.
    pub(crate) fn kinds(&self) -> Kinds {
        let mut kinds = Kinds::default();
        for object in self.objects.iter().filter(|o| o.kind == "CustomResourceDefinition") {
            let text = |pointer: &str| object.value.pointer(pointer).and_then(Value::as_str);
            let (group, kind) = (text("/spec/group"), text("/spec/names/kind"));
            if let (Some(group), Some(kind), Some(plural), Some(scope)) =
                (group, kind, text("/spec/names/plural"), text("/spec/scope"))
            {
                kinds.learn(group, kind, plural, scope == "Namespaced");
            }
        }
        kinds
    }

    /// The problems that count: templates of a Helm chart are left out.
    pub(crate) fn take_problems(&mut self) -> Vec<Problem> {
        let (files, charts) = (&self.files, &self.charts);
        let is_template = |file: usize| files[file].chart_directories().any(|dir| charts.contains(dir));
        std::mem::take(&mut self.problems)
            .into_iter()
            .filter(|(file, _, templated)| !(*templated && is_template(*file)))
            .map(|(_, problem, _)| problem)
            .collect()
    }

    /// The key of an object.
    pub(crate) fn key(&self, kinds: &Kinds, object: usize) -> Key {
        kinds.key(&self.objects[object].group, &self.objects[object].kind)
    }
}

enum Shape {
    List,
    Object,
    Unfinished,
    Other,
}

fn shape(value: &Value) -> Shape {
    let text = |field: &str| value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(_version) = text("apiVersion") else {
        return Shape::Other;
    };
    let named = name_of(value).is_some();
    let items = value.get("items");
    match (text("kind"), items) {
        (Some(kind), Some(Value::Array(_) | Value::Null)) if kind.ends_with("List") && !named => Shape::List,
        (_, Some(Value::Array(_))) if !named => Shape::Unfinished,
        (Some(kind), None) if kind.ends_with("List") && !named => Shape::Unfinished,
        (Some(_), _) if named => Shape::Object,
        _ => Shape::Other,
    }
}

fn name_of(value: &Value) -> Option<&str> {
    value.get("metadata")?.get("name")?.as_str().filter(|name| !name.is_empty())
}

/// The apiVersion and kind of the items of a typed list (`PodList`), none of a plain `List`.
fn typed_item(list: &Value) -> Option<(String, String)> {
    let kind = list.get("kind")?.as_str()?.strip_suffix("List").filter(|kind| !kind.is_empty())?;
    Some((list.get("apiVersion")?.as_str()?.to_owned(), kind.to_owned()))
}

fn is_cut(list: &Value) -> bool {
    let metadata = list.get("metadata");
    let field = |name: &str| metadata.and_then(|m| m.get(name));
    let token = field("continue").is_some_and(|token| !token.is_null() && token.as_str() != Some(""));
    token || field("remainingItemCount").is_some_and(|count| !count.is_null())
}

/// The group of an apiVersion; empty for the core group.
pub(crate) fn group_of(version: &str) -> &str {
    version.rsplit_once('/').map_or("", |(group, _)| group)
}
