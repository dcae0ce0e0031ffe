//! What can go wrong while a snapshot is read: errors that end the reading, and problems that do not.
//!
//! No text here ever quotes a document: a snapshot holds Secrets, and YAML parsers like to cite them.

use std::fmt;
use std::io;

/// Why no snapshot could be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The path does not exist.
    #[error("snapshot `{path}`: no such file or directory")]
    Missing {
        /// The path as it was given.
        path: String,
    },
    /// The path exists and could not be read.
    #[error("read snapshot `{path}`")]
    Unreadable {
        /// The path as it was given.
        path: String,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// It was read, and no Kubernetes object was found in it.
    #[error("snapshot `{path}`: no Kubernetes object was found{}", first_problem(.problems))]
    Empty {
        /// The path as it was given.
        path: String,
        /// What could not be read in it.
        problems: Vec<Problem>,
    },
    /// It is larger than what is read into memory.
    #[error("snapshot `{path}` is larger than {limit} bytes")]
    TooLarge {
        /// The path as it was given.
        path: String,
        /// The limit, in bytes.
        limit: u64,
    },
}

fn first_problem(problems: &[Problem]) -> String {
    problems.first().map(|p| format!(" ({p})")).unwrap_or_default()
}

/// A part of a snapshot that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, relative to the snapshot.
    pub file: String,
    /// The line in that file, counted from 1; none when the whole file is meant.
    pub line: Option<usize>,
    /// A short fixed text: it never quotes the document.
    pub reason: String,
}

impl Problem {
    pub(crate) fn new(file: &str, line: Option<usize>, reason: &str) -> Self {
        Self { file: file.to_owned(), line, reason: reason.to_owned() }
    }

    /// `FILE line N`, or `FILE`.
    pub(crate) fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{} line {line}", self.file),
            None => self.file.clone(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place(), self.reason)
    }
}
