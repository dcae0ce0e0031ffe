//! Pod logs where dumps put them: cluster-info dump, must-gather, and our own bundle.
//!
//! Files are read when they are asked for; logs from archives stay in memory, compressed. A container
//! without a log is not in the snapshot: there is no way to know that it logged nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use jiff::{SignedDuration, Timestamp};

const MAX_LOG: u64 = 512 << 20;

/// The logs of a snapshot, by namespace and pod.
#[derive(Debug, Default)]
pub(crate) struct Logs(BTreeMap<(String, String), Vec<Stored>>);

#[derive(Debug)]
struct Stored {
    /// None: all containers in one file, with markers.
    container: Option<String>,
    previous: bool,
    /// Each line starts with the time it was written.
    timed: bool,
    source: LogSource,
}

/// Where the text of a log is.
#[derive(Debug)]
pub(crate) enum LogSource {
    /// In a file.
    File(PathBuf),
    /// In memory, deflated.
    Packed(Vec<u8>),
}

/// What a log request asks for.
#[derive(Debug, Default)]
pub(crate) struct LogQuery {
    pub(crate) container: Option<String>,
    pub(crate) previous: bool,
    pub(crate) timestamps: bool,
    pub(crate) tail_lines: Option<usize>,
    pub(crate) limit_bytes: Option<usize>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) since_seconds: Option<i64>,
}

/// Why there is no log.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoLog {
    Missing(String),
    Ambiguous(String),
}

impl LogSource {
    /// Compresses a log into memory.
    pub(crate) fn pack(bytes: &[u8]) -> io::Result<Self> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes)?;
        encoder.finish().map(Self::Packed)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Self::File(path) => File::open(path)?.take(MAX_LOG).read_to_end(&mut bytes)?,
            Self::Packed(packed) => DeflateDecoder::new(packed.as_slice()).take(MAX_LOG).read_to_end(&mut bytes)?,
        };
        Ok(bytes)
    }
}

/// Whether a path is one where dumps put a pod log.
pub(crate) fn is_log_path(parts: &[String]) -> bool {
    place(parts).is_some()
}

/// Namespace, pod, container, previous, and whether lines are timed.
fn place(parts: &[String]) -> Option<(&str, &str, Option<&str>, bool, bool)> {
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [.., "namespaces", ns, "pods", pod, container, again, "logs", file] if container == again => {
            let previous = match *file {
                "current.log" => false,
                "previous.log" => true,
                _ => return None,
            };
            Some((ns, pod, Some(container), previous, true))
        }
        [.., "logs", ns, pod, file] => {
            let stem = file.strip_suffix(".log")?;
            let (container, previous) = stem.strip_suffix(".previous").map_or((stem, false), |stem| (stem, true));
            Some((ns, pod, Some(container), previous, false))
        }
        [.., ns, pod, "logs.txt"] => Some((ns, pod, None, false, false)),
        _ => None,
    }
}

impl Logs {
    /// Adds the log at a path, if it is a place for logs.
    pub(crate) fn add(&mut self, parts: &[String], source: LogSource) {
        if let Some((ns, pod, container, previous, timed)) = place(parts) {
            let container = container.map(str::to_owned);
            let stored = Stored { container, previous, timed, source };
            self.0.entry((ns.to_owned(), pod.to_owned())).or_default().push(stored);
        }
    }

    /// The namespaces that have logs.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|(ns, _)| ns.as_str())
    }

    /// The log of a container; `now` is what `sinceSeconds` counts back from.
    pub(crate) fn get(&self, ns: &str, pod: &str, query: &LogQuery, now: Option<Timestamp>) -> Result<Vec<u8>, NoLog> {
        let mut found: Vec<(String, Vec<u8>)> = Vec::new();
        let stored = self.0.get(&(ns.to_owned(), pod.to_owned())).map(Vec::as_slice).unwrap_or_default();
        for log in stored.iter().filter(|log| log.previous == query.previous) {
            let Ok(bytes) = log.source.read() else {
                return Err(NoLog::Missing(format!("the logs of pod {ns}/{pod} could not be read")));
            };
            let parts = match &log.container {
                Some(container) => vec![(container.clone(), bytes)],
                None => sections(&bytes, &format!("{ns}/{pod}")),
            };
            let wanted = parts.into_iter().filter(|(name, _)| query.container.as_ref().is_none_or(|c| c == name));
            found.extend(wanted.map(|(name, bytes)| (name, limit(bytes, log.timed, query, now))));
        }
        let names: BTreeSet<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        if names.len() > 1 {
            let names: Vec<&str> = names.into_iter().collect();
            let names = names.join(" ");
            return Err(NoLog::Ambiguous(format!(
                "a container name must be specified for pod {pod}, choose one of: [{names}]"
            )));
        }
        let mut logs = found.into_iter().map(|(_, bytes)| bytes);
        let container = query.container.as_ref().map(|c| format!("container {c} of ")).unwrap_or_default();
        let which = if query.previous { "previous logs" } else { "logs" };
        match (logs.next(), logs.next()) {
            (None, _) => {
                Err(NoLog::Missing(format!("the {which} of {container}pod {ns}/{pod} are not in the snapshot")))
            }
            (Some(one), Some(other)) if one != other => {
                Err(NoLog::Missing(format!("the snapshot has two different {which} of {container}pod {ns}/{pod}")))
            }
            (Some(one), _) => Ok(one),
        }
    }
}

/// The logs of the containers in a `logs.txt` of cluster-info dump. `pod` is `namespace/name`.
fn sections(bytes: &[u8], pod: &str) -> Vec<(String, Vec<u8>)> {
    let container = |line: &[u8], word: &str| -> Option<String> {
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let name = line.strip_prefix(&format!("==== {word} logs for container "))?;
        name.strip_suffix(&format!(" of pod {pod} ====")).map(str::to_owned)
    };
    let mut sections = Vec::new();
    let mut open: Option<(String, Vec<u8>)> = None;
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        if let Some((name, text)) = open.as_mut() {
            if container(line, "END").as_ref() == Some(name) {
                sections.extend(open.take());
            } else {
                text.extend_from_slice(line);
            }
        } else {
            open = container(line, "START").map(|name| (name, Vec::new()));
        }
    }
    sections.extend(open);
    let failed = |text: &[u8]| {
        ["Create log request error:", "Request log error:"].iter().any(|word| text.starts_with(word.as_bytes()))
            && text.iter().filter(|b| **b == b'\n').count() <= 1
    };
    sections.retain(|(_, text)| !failed(text));
    sections
}

fn limit(bytes: Vec<u8>, timed: bool, query: &LogQuery, now: Option<Timestamp>) -> Vec<u8> {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    let time = |line: &[u8]| -> Option<(Timestamp, usize)> {
        let end = line.iter().take(64).position(|b| *b == b' ')?;
        Some((std::str::from_utf8(&line[..end]).ok()?.parse().ok()?, end + 1))
    };
    let all_timed = timed && lines.iter().all(|line| time(line).is_some());
    let since_seconds = query.since_seconds.zip(now);
    let since = query
        .since
        .or_else(|| since_seconds.and_then(|(seconds, now)| now.checked_sub(SignedDuration::from_secs(seconds)).ok()));
    let recent = |line: &&[u8]| match since {
        Some(since) if all_timed => time(line).is_none_or(|(at, _)| at >= since),
        _ => true,
    };
    let bare = |line: &'_ [u8]| {
        if all_timed && !query.timestamps { time(line).map_or(0, |(_, at)| at) } else { 0 }
    };
    let kept: Vec<&[u8]> = lines.into_iter().filter(recent).map(|line| &line[bare(line)..]).collect();
    let skip = query.tail_lines.map_or(0, |tail| kept.len().saturating_sub(tail));
    let mut text = kept[skip..].concat();
    text.truncate(query.limit_bytes.unwrap_or(usize::MAX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::paths::harmless_parts;

    fn logs(entries: &[(&str, &str)]) -> Logs {
        let mut logs = Logs::default();
        for (path, text) in entries {
            logs.add(&harmless_parts(path), LogSource::pack(text.as_bytes()).unwrap());
        }
        logs
    }

    fn query(container: &str) -> LogQuery {
        LogQuery { container: (!container.is_empty()).then(|| container.to_owned()), ..LogQuery::default() }
    }

    #[test]
    fn layouts() {
        let dump = "==== START logs for container a of pod n/p ====\none\n==== START logs for container b of pod n/p ====\ntwo\n\
            ==== END logs for container a of pod n/p ====\n==== START logs for container b of pod n/p ====\nthree\n==== END logs for container b of pod n/p ====\n\
            ==== START logs for container c of pod n/p ====\nRequest log error: gone\n==== END logs for container c of pod n/p ====\n";
        let logs = logs(&[
            ("dump/n/p/logs.txt", dump),
            ("mg/namespaces/n/pods/q/c/c/logs/current.log", "2024-01-01T00:00:00.1Z x\n2024-01-01T00:01:00.1Z y\n"),
            ("mg/namespaces/n/pods/q/c/c/logs/previous.log", "z\n"),
            ("logs/n/r/c.log", "1\n2\n3\n"),
        ]);
        let text = |pod: &str, query: &LogQuery| {
            logs.get("n", pod, query, "2024-01-01T00:01:10Z".parse().ok()).map(|b| String::from_utf8(b).unwrap())
        };
        assert!(text("p", &query("a")).unwrap().starts_with("one\n==== START logs for container b"));
        assert_eq!(text("p", &query("b")).unwrap(), "three\n");
        assert!(matches!(text("p", &query("c")), Err(NoLog::Missing(_))));
        assert!(matches!(text("p", &query("")), Err(NoLog::Ambiguous(_))));
        assert_eq!(text("q", &query("c")).unwrap(), "x\ny\n");
        assert_eq!(
            text("q", &LogQuery { since_seconds: Some(30), timestamps: true, ..query("c") }).unwrap(),
            "2024-01-01T00:01:00.1Z y\n"
        );
        assert_eq!(text("q", &LogQuery { previous: true, ..query("") }).unwrap(), "z\n");
        assert_eq!(text("r", &LogQuery { tail_lines: Some(2), ..query("") }).unwrap(), "2\n3\n");
        assert_eq!(text("r", &LogQuery { limit_bytes: Some(3), ..query("c") }).unwrap(), "1\n2");
        assert!(matches!(text("r", &LogQuery { previous: true, ..query("c") }), Err(NoLog::Missing(_))));
        assert!(matches!(text("s", &query("c")), Err(NoLog::Missing(_))));
    }
}
