//! What the path of a file tells: the layouts of must-gather and of `kubectl cluster-info dump`.
//!
//! Paths are compared by their components. They are hints about namespaces and kinds only; what an
//! object itself says always wins, and a path that its objects contradict tells nothing.

use super::kinds::Key;

/// A file of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileInfo {
    /// The path to show, relative to the snapshot, without control characters.
    pub(crate) display: String,
    /// The components of its path, the file name last.
    pub(crate) parts: Vec<String>,
}

/// What a must-gather path tells of the objects in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// The namespace; none below `cluster-scoped-resources`.
    pub(crate) namespace: Option<String>,
    /// The kind.
    pub(crate) key: Key,
    /// Whether each object has its own file.
    pub(crate) file_per_object: bool,
}

impl FileInfo {
    /// A file with the components `parts`, shown as `display`.
    pub(crate) fn new(display: &str, parts: Vec<String>) -> Self {
        let display = display.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        Self { display, parts }
    }

    /// The directory it lies in.
    pub(crate) fn directory(&self) -> &[String] {
        &self.parts[..self.parts.len().saturating_sub(1)]
    }

    /// The name of the directory it lies in.
    pub(crate) fn parent(&self) -> Option<&str> {
        self.directory().last().map(String::as_str)
    }

    /// Its name without the last extension: `leases.coordination.k8s.io` of `leases.coordination.k8s.io.yaml`.
    pub(crate) fn stem(&self) -> &str {
        let name = self.parts.last().map_or("", String::as_str);
        match name.rsplit_once('.') {
            Some((stem, "yaml" | "yml" | "json")) => stem,
            _ => name,
        }
    }

    /// What a must-gather path tells, if it is one.
    pub(crate) fn must_gather(&self) -> Option<Told> {
        let key = |group: &str, plural: &str| Key::new(if group == "core" { "" } else { group }, plural);
        let parts: Vec<&str> = self.directory().iter().map(String::as_str).collect();
        match parts.as_slice() {
            [.., "namespaces", ns, group] => {
                Some(Told { namespace: Some((*ns).to_owned()), key: key(group, self.stem()), file_per_object: false })
            }
            [.., "namespaces", ns, group, plural] => {
                Some(Told { namespace: Some((*ns).to_owned()), key: key(group, plural), file_per_object: true })
            }
            [.., "cluster-scoped-resources", group] => {
                Some(Told { namespace: None, key: key(group, self.stem()), file_per_object: false })
            }
            [.., "cluster-scoped-resources", group, plural] => {
                Some(Told { namespace: None, key: key(group, plural), file_per_object: true })
            }
            _ => None,
        }
    }

    /// The directory that has this file below its `templates` directory, if there is one.
    pub(crate) fn chart_directories(&self) -> impl Iterator<Item = &[String]> {
        let parts = self.directory();
        (0..parts.len()).filter(|at| parts[*at] == "templates").map(|at| &parts[..at])
    }
}

/// Whether a file of this name is read as documents.
pub(crate) fn is_document(name: &str) -> bool {
    has_extension(name, &["yaml", "yml", "json"])
}

/// Whether a file of this name may be a pod log.
pub(crate) fn may_be_log(name: &str) -> bool {
    has_extension(name, &["log", "txt"])
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, extension)| extensions.iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// The components of a path from an archive: nothing in them leads up or out.
pub(crate) fn harmless_parts(path: &str) -> Vec<String> {
    path.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | "..")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn must_gather_paths() {
        for (path, want) in [
            ("mg/namespaces/a/core/pods.yaml", Some((Some("a"), "pods", false))),
            ("namespaces/a/batch/jobs.yaml", Some((Some("a"), "jobs.batch", false))),
            ("namespaces/a/events.k8s.io/events.yaml", Some((Some("a"), "events", false))),
            ("namespaces/a/batch/jobs/j1.yaml", Some((Some("a"), "jobs.batch", true))),
            ("cluster-scoped-resources/core/nodes/n1.yaml", Some((None, "nodes", true))),
            ("cluster-scoped-resources/core/nodes.yaml", Some((None, "nodes", false))),
            ("namespaces/a/a.yaml", None),
            ("namespaces/a/x/y/z/w.yaml", None),
            ("core/pods.yaml", None),
        ] {
            let told = FileInfo::new(path, harmless_parts(path)).must_gather();
            let got = told.map(|t| (t.namespace, t.key.display(), t.file_per_object));
            assert_eq!(got, want.map(|(ns, key, each)| (ns.map(str::to_owned), key.to_owned(), each)), "{path}");
        }
    }

    #[test]
    fn traversal_is_harmless() {
        assert_eq!(harmless_parts("../../etc/./passwd"), ["etc", "passwd"]);
        assert_eq!(harmless_parts("/a//b\\..\\c"), ["a", "b", "c"]);
    }
}
