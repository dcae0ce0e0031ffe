//! What was named on the command line: `KIND/NAME`, `KIND NAME`, a kind alone, or a lock ID.

use super::error::CommandError;
use crate::captf::kind::NamedKind;
use crate::cluster::resolve::closest;

/// One thing that was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Named {
        kind: NamedKind,
        name: String,
    },
    /// A kind without a name: all of it.
    Kind(NamedKind),
    /// A lock ID where an object's name belongs.
    LockId(String),
}

/// Reads the words in order. A kind takes every following plain word as a name, as in kubectl.
pub fn parse_targets(words: &[String]) -> Result<Vec<Target>, CommandError> {
    let mut targets = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if let Some((kind, name)) = word.split_once('/') {
            if name.is_empty() || name.contains('/') {
                return Err(CommandError::usage(format!("`{word}` is not KIND/NAME")));
            }
            targets.push(Target::Named { kind: parse_kind(kind)?, name: name.to_string() });
        } else if is_lock_id(word) {
            targets.push(Target::LockId(word.to_ascii_lowercase()));
        } else {
            let kinds = word.split(',').map(parse_kind).collect::<Result<Vec<_>, _>>()?;
            let mut names = Vec::new();
            while let Some(name) = words.next_if(|w| !(w.contains('/') || names.is_empty() && is_lock_id(w))) {
                names.push(name.clone());
            }
            for kind in kinds {
                if names.is_empty() {
                    targets.push(Target::Kind(kind));
                }
                targets.extend(names.iter().map(|name| Target::Named { kind, name: name.clone() }));
            }
        }
    }
    Ok(targets)
}

/// Reads words that must name exactly one object.
pub fn parse_one_object(words: &[String]) -> Result<(NamedKind, String), CommandError> {
    match parse_targets(words)?.as_slice() {
        [Target::Named { kind, name }] => Ok((*kind, name.clone())),
        [Target::Kind(_)] => {
            Err(CommandError::usage("the object's name is missing").hint("write KIND/NAME or KIND NAME"))
        }
        _ => Err(CommandError::usage("name exactly one object").hint("write KIND/NAME or KIND NAME")),
    }
}

fn parse_kind(word: &str) -> Result<NamedKind, CommandError> {
    NamedKind::parse(word).ok_or_else(|| {
        let known: Vec<String> = NamedKind::words().into_iter().map(str::to_string).collect();
        let error = CommandError::usage(format!("`{word}` is not a kind that CAPTF runs Jobs for"));
        match closest(&word.to_ascii_lowercase(), &known).first() {
            Some(close) => error.hint(format!("did you mean `{close}`?")),
            None => error.hint(format!("kinds: {}", known.join(", "))),
        }
    })
}

/// Whether a word has the form of the IDs that Terraform and OpenTofu give locks (a UUID).
pub fn is_lock_id(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    parts.iter().map(|p| p.len()).eq([8, 4, 4, 4, 12]) && parts.iter().all(|p| p.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captf::kind::{OwnerKind, WorkloadKind};

    fn parse(line: &str) -> Result<Vec<Target>, CommandError> {
        let words: Vec<String> = line.split(' ').filter(|w| !w.is_empty()).map(str::to_string).collect();
        parse_targets(&words)
    }

    fn named(kind: NamedKind, name: &str) -> Target {
        Target::Named { kind, name: name.to_string() }
    }

    #[test]
    fn objects_are_named_in_every_form_of_kubectl() {
        let cluster = NamedKind::Workload(WorkloadKind::Cluster);
        let machine = NamedKind::Workload(WorkloadKind::Machine);
        let id = "00000001-0000-4000-8000-00000000000a";
        for (line, expected) in [
            ("", vec![]),
            ("terraformcluster/prod", vec![named(cluster, "prod")]),
            ("terraformcluster prod", vec![named(cluster, "prod")]),
            ("tfc prod staging", vec![named(cluster, "prod"), named(cluster, "staging")]),
            ("tfc/prod tfm/web", vec![named(cluster, "prod"), named(machine, "web")]),
            ("tfc prod tfm/web", vec![named(cluster, "prod"), named(machine, "web")]),
            ("cluster/prod", vec![named(NamedKind::Owner(OwnerKind::Cluster), "prod")]),
            ("cluster cluster", vec![named(NamedKind::Owner(OwnerKind::Cluster), "cluster")]),
            ("tfc", vec![Target::Kind(cluster)]),
            ("tfc,tfm", vec![Target::Kind(cluster), Target::Kind(machine)]),
            (id, vec![Target::LockId(id.to_string())]),
            ("00000001-0000-4000-8000-00000000000A", vec![Target::LockId(id.to_string())]),
        ] {
            assert_eq!(parse(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn wrong_words_are_refused_with_a_hint() {
        for (line, hint) in
            [("terraformclustr/prod", "did you mean `terraformcluster`?"), ("pod/x", "kinds: "), ("prod", "kinds: ")]
        {
            let error = parse(line).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.hints.iter().any(|h| h.starts_with(hint)), "{line}: {:?}", error.hints);
        }
        for line in ["tfc/", "tfc/a/b", "/prod"] {
            assert_eq!(parse(line).expect_err(line).exit_code(), 2, "{line}");
        }
    }
}
