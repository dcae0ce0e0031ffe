//! `__complete WORD...`: what could follow a command line that is being typed, one candidate a line.
//!
//! The protocol is the one that kubectl speaks with `kubectl_complete-<plugin>`: `value<TAB>description` lines,
//! then `:<directive>`. It never fails, never asks and never takes longer than `LIMIT`: what cannot be known
//! in that time is left out.

mod line;
mod live;
mod sources;

use std::fmt::Write as _;
use std::sync::mpsc;
use std::time::Duration;

use clap::CommandFactory;

use self::line::{Line, Wanted};
use self::sources::Source;
use super::app::Cli;
use super::render::write_stdout;
use crate::output::escape::{is_hostile, visible};

/// The first argument that asks for candidates.
pub const WORD: &str = "__complete";
/// The longest that candidates may take to read; with the start of the process it stays below two seconds.
const LIMIT: Duration = Duration::from_millis(1600);
/// Characters of a description that are shown.
const DESCRIPTION: usize = 70;

/// Bits of the directive, as cobra numbers them.
const DEFAULT: u8 = 0;
const NO_SPACE: u8 = 2;
const NO_FILES: u8 = 4;

/// One thing that could stand where the cursor is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub value: String,
    pub about: String,
}

impl Candidate {
    /// A candidate with a description, which may be empty.
    pub fn new(value: impl Into<String>, about: impl Into<String>) -> Self {
        Self { value: value.into(), about: about.into() }
    }

    /// Whether it can be put on a shell's command line as it is. Text from a cluster is not trusted to be.
    fn is_plain(&self) -> bool {
        !self.value.is_empty()
            && self
                .value
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '=' | ','))
    }
}

/// Prints the candidates for the last of the words. Always succeeds.
pub fn run(words: &[String]) -> u8 {
    let words = words.to_vec();
    let (send, receive) = mpsc::channel();
    // Everything that could block (DNS, a dead server, a huge snapshot) happens on a thread that is left behind.
    std::thread::spawn(move || {
        let line = Line::parse(Cli::command(), &words);
        let (candidates, directive) = candidates(&line);
        // Nobody listens any more when the time is up.
        let _ = send.send(text(&line.current, &candidates, directive));
    });
    let out = receive.recv_timeout(LIMIT).unwrap_or_else(|_| format!(":{NO_FILES}\n"));
    let _ = write_stdout(out.as_bytes());
    super::error::OK
}

fn text(current: &str, candidates: &[Candidate], directive: u8) -> String {
    let mut out = String::new();
    for candidate in candidates.iter().filter(|c| c.is_plain() && c.value.starts_with(current)) {
        let about: String = candidate.about.chars().filter(|c| *c != '\n').take(DESCRIPTION).collect();
        let about = if about.chars().any(is_hostile) { visible(&about).into_owned() } else { about };
        let tab = if about.is_empty() { "" } else { "\t" };
        writeln!(out, "{}{tab}{about}", candidate.value).expect("writing to a String does not fail");
    }
    writeln!(out, ":{directive}").expect("writing to a String does not fail");
    out
}

fn candidates(line: &Line) -> (Vec<Candidate>, u8) {
    match &line.wanted {
        Wanted::Nothing => (Vec::new(), NO_FILES),
        Wanted::OneOf(all) => (all.clone(), NO_FILES),
        Wanted::Value(name) => match sources::of(name) {
            Some(Source::Files) => (Vec::new(), DEFAULT),
            Some(source) => {
                let all = sources::offline(source, line).unwrap_or_else(|| live::read(source, line));
                let open = all.iter().any(|c| c.value.starts_with(&line.current) && c.value.ends_with('/'));
                (all, NO_FILES | if open { NO_SPACE } else { 0 })
            }
            None => (Vec::new(), NO_FILES),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_string).collect();
        let line = Line::parse(Cli::command(), &words);
        let (candidates, directive) = candidates(&line);
        text(&line.current, &candidates, directive)
    }

    #[test]
    fn commands_flags_and_fixed_values_need_no_cluster() {
        for (line, has, lacks) in [
            ("", "lock\tJudge Terraform state locks", "__complete"),
            ("lo", "lock\t", "explain"),
            ("lock ", "inspect\tJudge locks", "explain"),
            ("-n team-a lock in", "inspect\t", "list\t"),
            ("--namespace=team-a lock ", "history\t", "runbook"),
            ("lock inspect --wa", "--watch\tKeep looking", "--all"),
            ("lock list --al", "--all-namespaces\t", "--watch"),
            ("lock list -o ", "wide", "html"),
            ("lock list --output=j", "json", "wide"),
            ("lock inspect ", "terraformcluster/\t", "explain"),
            ("lock inspect terraformm", "terraformmachinepool/\t", "terraformcluster"),
            ("lock inspect tfc", "tfc/", "terraformcluster"),
            ("explain lock-st", "lock-stale", "lock-foreign"),
            ("runbook show st", "stale-lock", "lock-stale"),
            ("runbook show stale-lock ", ":4", "stale-lock"),
        ] {
            let out = complete(line);
            assert!(out.contains(has) && !out.contains(lacks), "{line:?}: {out}");
        }
    }

    #[test]
    fn a_kind_takes_no_space_and_a_path_takes_files() {
        for (line, directive) in [
            ("lock inspect terraformc", ":6\n"),
            ("lock inspect --from ", ":0\n"),
            ("lock inspect --kubeconfig=", ":0\n"),
            ("lock list --no-such-flag", ":4\n"),
            ("explain ", ":4\n"),
            ("no-such-command ", ":4\n"),
        ] {
            assert!(complete(line).ends_with(directive), "{line}: {}", complete(line));
        }
    }

    #[test]
    fn hostile_candidates_are_left_out_and_hostile_descriptions_made_visible() {
        let all = [
            Candidate::new("good", "a\u{1b}[31m\tb\nc"),
            Candidate::new("$(reboot)", ""),
            Candidate::new("a b", ""),
            Candidate::new("go\u{202e}od", ""),
        ];
        assert_eq!(text("", &all, 4), "good\ta\\u{1b}[31m\\tbc\n:4\n");
        assert_eq!(text("x", &all, 4), ":4\n");
    }
}
