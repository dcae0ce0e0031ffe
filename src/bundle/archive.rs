//! The archive: files in memory first, then one new file that only its owner may read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

/// Files of a bundle, by their path in it.
#[derive(Debug, Default)]
pub struct Files(Vec<(String, Vec<u8>)>);

impl Files {
    /// All objects of one kind in one namespace, a file each; an empty list where there is none. The paths tell kind and
    /// namespace, so that a snapshot knows what is absent, whatever labels the objects share.
    pub fn add_all(&mut self, namespace: Option<&str>, group: &str, plural: &str, items: &[Value]) {
        let group = if group.is_empty() { "core" } else { group };
        let place = match namespace {
            Some(namespace) => format!("namespaces/{namespace}/{group}/{plural}"),
            None => format!("cluster-scoped-resources/{group}/{plural}"),
        };
        if items.is_empty() {
            self.add_json(
                format!("{place}.json"),
                &json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []}),
            );
        }
        for item in items {
            let name = item.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            self.add_json(format!("{place}/{}.json", name.replace('/', "_")), item);
        }
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> usize {
        self.0.iter().map(|(_, content)| content.len()).sum()
    }

    /// The log of a container.
    pub fn add_log(&mut self, namespace: &str, pod: &str, container: &str, text: &str) {
        self.0.push((format!("logs/{namespace}/{pod}/{container}.log"), text.as_bytes().to_vec()));
    }

    /// One object by itself: it covers nothing but itself.
    pub fn add_json(&mut self, path: String, value: &Value) {
        let mut text = serde_json::to_vec_pretty(value).expect("a Value is JSON");
        text.push(b'\n');
        self.0.push((path, text));
    }

    /// The archive as bytes, gzip'd.
    pub fn pack(&self, mtime: u64) -> io::Result<Vec<u8>> {
        let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
        for (path, content) in &self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o600);
            header.set_mtime(mtime);
            builder.append_data(&mut header, format!("captf-bundle/{path}"), content.as_slice())?;
        }
        builder.into_inner()?.finish()
    }
}

/// Writes a new file with mode 0600. An existing one is never touched; a file that was not written whole is removed.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // What was begun is no bundle; that it cannot be removed either is not worth hiding the first error for.
        let _ = std::fs::remove_file(path);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_not_touched_and_a_new_one_is_private() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("bundle.tar.gz");
        write_new(&path, b"one").expect("a new file");
        assert_eq!(write_new(&path, b"two").expect_err("it exists").kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&path).expect("the file"), b"one");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
        }
    }
}
