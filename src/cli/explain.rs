//! `explain CODE`: the section of a finding code, rendered for a terminal.

use std::fmt::Write as _;

use clap::Args;

use super::args::GlobalArgs;
use super::error::CommandError;
use super::render::write_stdout;
use crate::cluster::resolve::closest;
use crate::output::style::Styles;
use crate::output::text::wrap;
use crate::runbook::code::Code;
use crate::runbook::words::{PLACEHOLDERS, Section};

/// Print what a finding code means and what to do
///
/// Needs no cluster and no permission. The words are those of the installed version.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  kubectl captf explain lock-stale
  kubectl captf explain lock-foreign-host | less")]
pub struct ExplainArgs {
    /// The code, as printed in brackets behind a severity
    #[arg(value_name = "CODE")]
    pub code: String,
}

/// Runs `explain`.
pub fn run(global: &GlobalArgs, args: &ExplainArgs) -> Result<u8, CommandError> {
    let typed = args.code.trim_matches(['[', ']']).to_ascii_lowercase();
    let Some(code) = Code::parse(&typed) else {
        let known: Vec<String> = Code::ALL.iter().map(|c| c.as_str().to_string()).collect();
        let close = closest(&typed, &known);
        let error = CommandError::usage(format!("`{}` is not a finding code", args.code));
        return Err(if close.is_empty() {
            error.hint("`kubectl captf runbook list` lists the runbooks and their codes")
        } else {
            error.hint(format!(
                "did you mean {}?",
                close.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ")
            ))
        });
    };
    let Some(section) = Section::of(code) else {
        return Err(CommandError::failed(format!("no words for `{code}`")));
    };
    let styles = Styles::decide(global.color);
    let mut out = String::new();
    let head = format!("{}[{code}]", code.severity());
    writeln!(out, "{}\n", styles.severity(code.severity(), &head)).expect("writing to a String does not fail");
    out.push_str(&markdown(&readable(&section.body), styles));
    write_stdout(out.as_bytes())?;
    Ok(super::error::OK)
}

/// A section as it reads without an object: placeholders as `<name>`, marks in words.
pub fn readable(text: &str) -> String {
    let mut text = text.replace("[clears]", "[changes]");
    for (name, _) in PLACEHOLDERS {
        let shown = match *name {
            "kubectl" => "kubectl".to_string(),
            "captf" => "kubectl captf".to_string(),
            name => format!("<{}>", name.replace('_', "-")),
        };
        text = text.replace(&format!("{{{name}}}"), &shown);
    }
    text
}

/// Markdown as a terminal shows it: headings bold, paragraphs wrapped, list items hanging.
pub fn markdown(text: &str, styles: Styles) -> String {
    let width = styles.width.unwrap_or(100).clamp(40, 100);
    let mut out = String::new();
    for block in text.trim().split("\n\n") {
        for piece in blocks_of(block) {
            if let Some(title) = piece.strip_prefix('#') {
                out.push_str(&styles.bold(title.trim_start_matches('#').trim()));
                out.push('\n');
                continue;
            }
            let hang = if piece.starts_with(|c: char| c.is_ascii_digit()) { "   " } else { "" };
            for (index, line) in wrap(&piece, width - hang.len()).iter().enumerate() {
                out.push_str(if index == 0 { "" } else { hang });
                out.push_str(line);
                out.push('\n');
            }
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Lines of one markdown block joined: headings and list items each stand alone.
fn blocks_of(block: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for line in block.lines() {
        let starts = line.starts_with('#')
            || line.split_once(". ").is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        match pieces.last_mut() {
            Some(last) if !starts && !last.starts_with('#') => {
                last.push(' ');
                last.push_str(line.trim());
            }
            _ => pieces.push(line.to_string()),
        }
    }
    pieces
}
