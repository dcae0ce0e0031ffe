//! Where the values of each argument come from: one table, and the sources that need no cluster.

use super::Candidate;
use super::line::{Line, ValueOf};
use crate::captf::kind::NamedKind;
use crate::cli::target::is_lock_id;
use crate::runbook::code::Code;
use crate::runbook::words::RUNBOOKS;

/// Where values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Nothing can be offered: free text, numbers, times.
    Nothing,
    /// Files, which the shell completes by itself.
    Files,
    /// `KIND/NAME`, `KIND NAME`, or a lock ID.
    Objects,
    LockIds,
    /// Serials of an object's state backups.
    Serials,
    /// Jobs of the object that is named before.
    Jobs,
    /// An object, then its serials.
    ObjectThenSerials,
    Namespaces,
    Codes,
    Runbooks,
    Contexts,
    Clusters,
    Users,
    /// Paths of commands.
    Commands,
}

/// By value name, or by `id:` and the ID where a value name means two things.
const SOURCES: &[(&str, Source)] = &[
    ("id:as_user", Source::Nothing),
    ("id:tls_server_name", Source::Nothing),
    ("KIND/NAME", Source::Objects),
    ("ID", Source::LockIds),
    ("SERIAL", Source::Serials),
    ("KIND/NAME [SERIAL]", Source::ObjectThenSerials),
    ("KIND/NAME SERIAL [SERIAL2]", Source::ObjectThenSerials),
    ("SERIAL [KIND/NAME]", Source::ObjectThenSerials),
    ("NAMESPACE", Source::Namespaces),
    ("CODE", Source::Codes),
    ("RUNBOOK", Source::Runbooks),
    ("CONTEXT", Source::Contexts),
    ("CLUSTER", Source::Clusters),
    ("USER", Source::Users),
    ("COMMAND", Source::Commands),
    ("PATH", Source::Files),
    ("FILE", Source::Files),
    ("DIR", Source::Files),
    ("SELECTOR", Source::Nothing),
    ("TIME", Source::Nothing),
    ("LEVEL", Source::Nothing),
    ("URL", Source::Nothing),
    ("JOB", Source::Jobs),
    ("NAME", Source::Nothing),
    ("IMAGE", Source::Nothing),
    ("KIND", Source::Nothing),
    ("OP", Source::Nothing),
    ("TEXT", Source::Nothing),
    ("WHO", Source::Nothing),
    ("WHERE", Source::Nothing),
    ("BOOL", Source::Nothing),
    ("LINES", Source::Nothing),
    ("TOKEN", Source::Nothing),
    ("GROUP", Source::Nothing),
    ("DURATION", Source::Nothing),
    ("N", Source::Nothing),
    ("COUNT", Source::Nothing),
];

/// Where the values of an argument come from; `None` when its name has no row.
pub fn of(value: &ValueOf) -> Option<Source> {
    let by_id = format!("id:{}", value.id);
    let row = SOURCES.iter().find(|(name, _)| *name == by_id);
    row.or_else(|| SOURCES.iter().find(|(name, _)| *name == value.value_name)).map(|(_, source)| *source)
}

/// The candidates of a source that needs neither a cluster nor a snapshot at this place, else `None`.
pub fn offline(source: Source, line: &Line) -> Option<Vec<Candidate>> {
    match source {
        Source::Nothing | Source::Files => Some(Vec::new()),
        Source::Codes => Some(Code::ALL.iter().map(|c| Candidate::new(c.as_str(), c.severity().as_str())).collect()),
        Source::Runbooks => Some(RUNBOOKS.iter().map(|b| Candidate::new(b.name, "")).collect()),
        Source::Commands => Some(commands(&line.positionals)),
        Source::ObjectThenSerials => offline(then_serials(line), line),
        Source::Objects if object_place(line) == ObjectPlace::Kind && !may_be_lock_id(&line.current) => Some(kinds()),
        _ => None,
    }
}

/// Serials once an object is named, else objects.
pub fn then_serials(line: &Line) -> Source {
    if object_before(line).is_some() { Source::Serials } else { Source::Objects }
}

/// What of an object belongs at the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectPlace {
    Kind,
    /// A name of this kind; what stands before the name in the same word.
    Name {
        kind: NamedKind,
        before: String,
    },
    /// A kind that does not exist.
    Nothing,
}

/// Reads the words before the cursor as the commands will read them.
pub fn object_place(line: &Line) -> ObjectPlace {
    if let Some((kind, _)) = line.current.split_once('/') {
        return match NamedKind::parse(kind) {
            Some(named) => ObjectPlace::Name { kind: named, before: format!("{kind}/") },
            None => ObjectPlace::Nothing,
        };
    }
    let mut kind = None;
    for word in &line.positionals {
        if word.contains('/') || is_lock_id(word) {
            kind = None;
        } else if kind.is_none() {
            kind = NamedKind::parse(word);
        }
    }
    kind.map_or(ObjectPlace::Kind, |kind| ObjectPlace::Name { kind, before: String::new() })
}

/// The object named earlier on the line, as kind and name.
pub fn object_before(line: &Line) -> Option<(NamedKind, String)> {
    let mut kind = None;
    for word in &line.positionals {
        if let Some((kind, name)) = word.split_once('/') {
            return NamedKind::parse(kind).map(|kind| (kind, name.to_string()));
        }
        match kind {
            Some(kind) => return Some((kind, word.clone())),
            None => kind = NamedKind::parse(word),
        }
    }
    None
}

/// Whether the beginning of a word could be that of a lock ID. No kind starts with a digit or has one.
pub fn may_be_lock_id(word: &str) -> bool {
    word.bytes().any(|b| b.is_ascii_digit()) && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Every kind with its slash; short names behind the long ones.
pub fn kinds() -> Vec<Candidate> {
    let about = |kind: &NamedKind| match kind {
        NamedKind::Workload(kind) => kind.kind().to_string(),
        NamedKind::Owner(kind) => format!("{} (the Terraform object behind it)", kind.kind()),
    };
    let short = ["tfc", "tfm", "tfmp"];
    let words = NamedKind::words().into_iter().chain(short);
    words.filter_map(|w| NamedKind::parse(w).map(|kind| Candidate::new(format!("{w}/"), about(&kind)))).collect()
}

fn commands(typed: &[String]) -> Vec<Candidate> {
    use clap::CommandFactory;
    let root = crate::cli::app::Cli::command();
    let mut at = &root;
    for word in typed.iter().filter(|w| *w != "check") {
        match at.find_subcommand(word) {
            Some(next) => at = next,
            None => return Vec::new(),
        }
    }
    let shown = at.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help");
    let check = typed.is_empty().then(|| Candidate::new("check", "Ask the API server which permissions are missing"));
    shown
        .map(|c| Candidate::new(c.get_name(), c.get_about().map(ToString::to_string).unwrap_or_default()))
        .chain(check)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn without_a_row(command: &clap::Command, missing: &mut Vec<String>) {
        for arg in
            command.get_arguments().filter(|a| a.get_action().takes_values() && a.get_possible_values().is_empty())
        {
            if of(&ValueOf::of(arg)).is_none() {
                missing.push(format!("{}: {:?}", command.get_name(), ValueOf::of(arg)));
            }
        }
        command.get_subcommands().for_each(|c| without_a_row(c, missing));
    }

    #[test]
    fn every_argument_has_a_row() {
        let mut root = crate::cli::app::Cli::command();
        root.build();
        let mut missing = Vec::new();
        without_a_row(&root, &mut missing);
        assert!(missing.is_empty(), "add to SOURCES: {missing:#?}");
    }

    fn line(words: &str) -> Line {
        let words: Vec<String> = words.split(' ').map(str::to_string).collect();
        Line::parse(crate::cli::app::Cli::command(), &words)
    }

    #[test]
    fn what_of_an_object_is_wanted() {
        let machine = NamedKind::parse("tfm").expect("a kind");
        let name = |before: &str| ObjectPlace::Name { kind: machine, before: before.to_string() };
        for (words, expected) in [
            ("lock inspect ", ObjectPlace::Kind),
            ("lock inspect tfc/prod ", ObjectPlace::Kind),
            ("lock inspect tfm/", name("tfm/")),
            ("lock inspect tfm/we", name("tfm/")),
            ("lock inspect tfm ", name("")),
            ("lock inspect tfm web ", name("")),
            ("lock inspect -n team-a tfm we", name("")),
            ("lock inspect pod/x", ObjectPlace::Nothing),
        ] {
            assert_eq!(object_place(&line(words)), expected, "{words}");
        }
        assert_eq!(object_before(&line("lock history tfm web ")), Some((machine, "web".to_string())));
        assert_eq!(object_before(&line("lock history tfm/web -n a ")), Some((machine, "web".to_string())));
        assert_eq!(object_before(&line("lock history tfm ")), None);
        for (word, yes) in
            [("0a", true), ("00000001-0000", true), ("", false), ("cluster", false), ("c", false), ("m4x", false)]
        {
            assert_eq!(may_be_lock_id(word), yes, "{word}");
        }
    }
}
