//! Reads a snapshot from a directory, a file, an archive or standard input.
//!
//! Symbolic links are not followed below the path given: one that stays inside leads to what is read
//! anyway, one that leads out is a problem. What a file is, its first bytes tell, not its name.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::archive::{self, MAX_ENTRY, MAX_TOTAL, add_archive, gunzip, gzip_start, is_gzip, is_tar};
use super::collect::Collected;
use super::error::SnapshotError;
use super::logs::{LogSource, is_log_path};
use super::paths::{FileInfo, is_document, may_be_log};
use super::stack::with_room;
use super::store::Snapshot;

/// Where a snapshot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotSource {
    /// A directory, a file or an archive.
    Path(PathBuf),
    /// Standard input: YAML, JSON, or a tar archive.
    Stdin,
}

/// Loads a snapshot.
///
/// # Errors
///
/// The path is missing, cannot be read or is too large, or there is no Kubernetes object in it.
pub fn load(source: &SnapshotSource) -> Result<Snapshot, SnapshotError> {
    match source {
        SnapshotSource::Stdin => {
            let bytes = bounded("-", io::stdin().lock())?;
            load_bytes("-", bytes)
        }
        SnapshotSource::Path(path) => roomy(&path.display().to_string(), || load_path(path)),
    }
}

/// Loads a snapshot from the bytes of one file or archive called `name`.
///
/// # Errors
///
/// There is no Kubernetes object in it.
pub fn load_bytes(name: &str, bytes: Vec<u8>) -> Result<Snapshot, SnapshotError> {
    roomy(name, || {
        let mut collected = Collected::default();
        add_named(&mut collected, FileInfo::new(name, vec![name.to_owned()]), bytes);
        finish(name, collected)
    })
}

fn roomy(name: &str, load: impl FnOnce() -> Result<Snapshot, SnapshotError> + Send) -> Result<Snapshot, SnapshotError> {
    let unreadable = |source| SnapshotError::Unreadable { path: name.to_owned(), source };
    with_room(load).unwrap_or_else(|error| Err(unreadable(error)))
}

fn load_path(path: &Path) -> Result<Snapshot, SnapshotError> {
    let name = path.display().to_string();
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => SnapshotError::Missing { path: name.clone() },
        _ => SnapshotError::Unreadable { path: name.clone(), source },
    };
    let root = path.canonicalize().map_err(unreadable)?;
    let mut collected = Collected::default();
    if root.is_dir() {
        let mut walk = Walk { root: &root, collected: &mut collected, total: 0 };
        let entries = fs::read_dir(&root).map_err(unreadable)?;
        walk.directory(entries, 0);
    } else {
        let bytes = bounded(&name, File::open(&root).map_err(unreadable)?)?;
        let shown = path.file_name().map_or(name.clone(), |file| file.to_string_lossy().into_owned());
        let info = FileInfo::new(&shown, components(&root));
        add_named(&mut collected, info, bytes);
    }
    finish(&name, collected)
}

fn bounded(name: &str, reader: impl Read) -> Result<Vec<u8>, SnapshotError> {
    let mut bytes = Vec::new();
    let read = reader.take(MAX_TOTAL + 1).read_to_end(&mut bytes);
    let size = read.map_err(|source| SnapshotError::Unreadable { path: name.to_owned(), source })?;
    if size as u64 > MAX_TOTAL {
        return Err(SnapshotError::TooLarge { path: name.to_owned(), limit: MAX_TOTAL });
    }
    Ok(bytes)
}

fn add_named(collected: &mut Collected, info: FileInfo, bytes: Vec<u8>) {
    if is_gzip(&bytes) {
        if is_tar(&gzip_start(&bytes)) {
            add_archive(collected, &info.display, &bytes);
            return;
        }
        let (content, whole) = gunzip(&bytes);
        if !whole {
            collected.add_problem(info.clone(), "the gzip stream is broken or too large");
        }
        collected.add_file(info, &content);
    } else if archive::is_tar(&bytes) {
        add_archive(collected, &info.display, &bytes);
    } else {
        collected.add_file(info, &bytes);
    }
}

fn finish(name: &str, collected: Collected) -> Result<Snapshot, SnapshotError> {
    let snapshot = Snapshot::new(name, collected);
    if snapshot.object_count() == 0 {
        return Err(SnapshotError::Empty { path: name.to_owned(), problems: snapshot.problems().to_vec() });
    }
    Ok(snapshot)
}

struct Walk<'a> {
    root: &'a Path,
    collected: &'a mut Collected,
    total: u64,
}

impl Walk<'_> {
    fn directory(&mut self, entries: fs::ReadDir, depth: usize) {
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in entries {
            match entry {
                Ok(entry) => paths.push(entry.path()),
                Err(_) => self.problem(self.root, "a directory could not be read"),
            }
        }
        paths.sort();
        for path in paths {
            self.path(&path, depth);
        }
    }

    fn path(&mut self, path: &Path, depth: usize) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Ok(metadata) = fs::symlink_metadata(path) else {
            return self.problem(path, "it could not be read");
        };
        let kind = metadata.file_type();
        if kind.is_symlink() {
            self.link(path, &name);
        } else if kind.is_dir() {
            match fs::read_dir(path) {
                _ if name == ".git" => {}
                Ok(entries) if depth < 100 => self.directory(entries, depth + 1),
                _ => self.problem(path, "the directory could not be read"),
            }
        } else if kind.is_file() && is_document(&name) {
            self.document(path, metadata.len());
        } else if kind.is_file() && may_be_log(&name) && is_log_path(&components(path)) {
            self.collected.logs.add(&components(path), LogSource::File(path.to_owned()));
        }
    }

    fn link(&mut self, path: &Path, name: &str) {
        let inside = path.canonicalize().is_ok_and(|target| target.starts_with(self.root));
        if !inside && (is_document(name) || path.is_dir()) {
            self.problem(path, "a symbolic link that leads out of the snapshot is not followed");
        }
    }

    fn document(&mut self, path: &Path, size: u64) {
        self.total = self.total.saturating_add(size);
        if size > MAX_ENTRY || self.total > MAX_TOTAL {
            return self.problem(path, "the file is too large");
        }
        let mut bytes = Vec::new();
        match File::open(path).and_then(|file| file.take(MAX_ENTRY).read_to_end(&mut bytes)) {
            Ok(_) => self.collected.add_file(self.info(path), &bytes),
            Err(_) => self.problem(path, "the file could not be read"),
        }
    }

    fn info(&self, path: &Path) -> FileInfo {
        let shown = path.strip_prefix(self.root).unwrap_or(path).display().to_string();
        FileInfo::new(&shown, components(path))
    }

    fn problem(&mut self, path: &Path, reason: &str) {
        let info = self.info(path);
        self.collected.add_problem(info, reason);
    }
}

fn components(path: &Path) -> Vec<String> {
    path.iter().map(|part| part.to_string_lossy().into_owned()).filter(|part| part != "/").collect()
}
