//! A command line that is still being typed, walked along the tree of commands. No I/O.

use clap::{Arg, Command};

use super::Candidate;

/// What was typed so far, and what could stand at the cursor.
#[derive(Debug)]
pub struct Line {
    /// The part of the word at the cursor that a candidate replaces: behind `--flag=` only the value.
    pub current: String,
    pub wanted: Wanted,
    /// The words that are no flags, behind the command.
    pub positionals: Vec<String>,
    /// Global flags with their values, as they were typed.
    pub globals: Vec<String>,
}

/// What belongs at the cursor.
#[derive(Debug)]
pub enum Wanted {
    Nothing,
    /// One of these words.
    OneOf(Vec<Candidate>),
    /// A value, by the ID and the value name of its argument.
    Value(ValueOf),
}

/// Which argument's value is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueOf {
    pub id: String,
    pub value_name: String,
}

impl ValueOf {
    /// The names of an argument.
    pub fn of(arg: &Arg) -> Self {
        let id = arg.get_id().as_str().to_string();
        let named = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
        Self { value_name: named.unwrap_or_else(|| id.to_uppercase()), id }
    }
}

impl Line {
    /// Walks the words; the last one is the word at the cursor, maybe empty.
    pub fn parse(mut root: Command, words: &[String]) -> Self {
        root.build();
        let (current, before) = words.split_last().map_or((String::new(), words), |(last, rest)| (last.clone(), rest));
        let mut walk =
            Walk { command: &root, pending: None, positionals: Vec::new(), globals: Vec::new(), ended: false };
        before.iter().for_each(|word| walk.word(word));
        let (current, wanted) = walk.at_cursor(current);
        if walk.pending.is_some_and(Arg::is_global_set) {
            // A flag without its value could not be parsed.
            walk.globals.pop();
        }
        Self { current, wanted, positionals: walk.positionals, globals: walk.globals }
    }
}

struct Walk<'a> {
    command: &'a Command,
    /// A flag whose value comes next.
    pending: Option<&'a Arg>,
    positionals: Vec<String>,
    globals: Vec<String>,
    /// Whether `--` was seen.
    ended: bool,
}

impl<'a> Walk<'a> {
    fn word(&mut self, word: &str) {
        if let Some(flag) = self.pending.take() {
            self.keep(flag, word);
        } else if self.ended {
            self.positionals.push(word.to_string());
        } else if word == "--" {
            self.ended = true;
        } else if let Some(flag) = word.strip_prefix("--") {
            let name = flag.split_once('=').map_or(flag, |(name, _)| name);
            if let Some(arg) = self.long(name) {
                self.keep(arg, word);
                self.pending = (takes_value(arg) && !flag.contains('=')).then_some(arg);
            }
        } else if word.len() > 1 && word.starts_with('-') {
            self.short(word);
        } else if let (true, Some(next)) = (self.positionals.is_empty(), self.command.find_subcommand(word)) {
            self.command = next;
        } else {
            self.positionals.push(word.to_string());
        }
    }

    /// `-A`, `-n x`, `-nx`, `-An x`.
    fn short(&mut self, word: &str) {
        let letters: Vec<char> = word.chars().skip(1).collect();
        for (at, letter) in letters.iter().enumerate() {
            let Some(arg) = self.command.get_arguments().find(|a| a.get_short() == Some(*letter)) else { return };
            if takes_value(arg) {
                let rest: String = letters[at + 1..].iter().collect();
                self.keep(arg, &format!("-{letter}{rest}"));
                self.pending = rest.is_empty().then_some(arg);
                return;
            }
            self.keep(arg, &format!("-{letter}"));
        }
    }

    fn keep(&mut self, arg: &Arg, word: &str) {
        if arg.is_global_set() {
            self.globals.push(word.to_string());
        }
    }

    fn long(&self, name: &str) -> Option<&'a Arg> {
        let aliased = |arg: &Arg| arg.get_all_aliases().is_some_and(|all| all.contains(&name));
        self.command.get_arguments().find(|arg| arg.get_long() == Some(name) || aliased(arg))
    }

    fn at_cursor(&self, current: String) -> (String, Wanted) {
        if let Some(flag) = self.pending {
            return (current, value_of(flag));
        }
        if !self.ended
            && let Some((flag, value)) = current.strip_prefix("--").and_then(|flag| flag.split_once('='))
        {
            let wanted = self.long(flag).filter(|arg| takes_value(arg)).map_or(Wanted::Nothing, value_of);
            return (value.to_string(), wanted);
        }
        if !self.ended && current.starts_with('-') {
            return (current, Wanted::OneOf(self.flags()));
        }
        let has_words = self.command.get_positionals().next().is_some();
        if self.positionals.is_empty() && self.command.has_subcommands() && !has_words {
            return (current, Wanted::OneOf(self.subcommands()));
        }
        let all: Vec<&Arg> = self.command.get_positionals().collect();
        let many = |arg: &&&Arg| arg.get_num_args().is_some_and(|n| n.max_values() > 1);
        let wanted = all.get(self.positionals.len()).or_else(|| all.last().filter(many));
        (current, wanted.map_or(Wanted::Nothing, |arg| value_of(arg)))
    }

    fn flags(&self) -> Vec<Candidate> {
        let shown = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
        let about = |arg: &Arg| arg.get_help().map(ToString::to_string).unwrap_or_default();
        shown.filter_map(|arg| arg.get_long().map(|long| Candidate::new(format!("--{long}"), about(arg)))).collect()
    }

    fn subcommands(&self) -> Vec<Candidate> {
        let shown = self.command.get_subcommands().filter(|c| !c.is_hide_set());
        shown
            .map(|c| Candidate::new(c.get_name(), c.get_about().map(ToString::to_string).unwrap_or_default()))
            .collect()
    }
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values() && !arg.is_require_equals_set()
}

fn value_of(arg: &Arg) -> Wanted {
    let fixed = arg.get_possible_values();
    if fixed.is_empty() {
        return Wanted::Value(ValueOf::of(arg));
    }
    let shown = fixed.iter().filter(|value| !value.is_hide_set());
    Wanted::OneOf(
        shown
            .map(|v| Candidate::new(v.get_name(), v.get_help().map(ToString::to_string).unwrap_or_default()))
            .collect(),
    )
}
