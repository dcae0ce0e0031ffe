//! `runbook list` and `runbook show`: the embedded runbooks.

use std::fmt::Write as _;

use clap::{Args, Subcommand};

use super::args::{GlobalArgs, OutputFormat};
use super::error::CommandError;
use super::explain::{markdown, readable};
use super::render::write_stdout;
use crate::output::style::Styles;
use crate::runbook::code::Code;
use crate::runbook::words::{RUNBOOKS, sections};

/// List and print the embedded runbooks
#[derive(Debug, Args)]
pub struct RunbookArgs {
    #[command(subcommand)]
    pub command: RunbookCommand,
}

#[derive(Debug, Subcommand)]
pub enum RunbookCommand {
    /// List the runbooks and the finding codes in each (needs no cluster)
    ///
    /// Needs no cluster and no permission.
    #[command(after_help = "Examples:
  kubectl captf runbook list
  kubectl captf runbook list -o name")]
    List,
    /// Print a runbook (needs no cluster)
    ///
    /// Needs no cluster and no permission.
    #[command(after_help = "Examples:
  kubectl captf runbook show stale-lock
  kubectl captf runbook show stale-lock | less")]
    Show {
        /// Name of the runbook, as `runbook list` prints it
        #[arg(value_name = "RUNBOOK")]
        name: String,
    },
}

/// Runs `runbook`.
pub fn run(global: &GlobalArgs, args: &RunbookArgs) -> Result<u8, CommandError> {
    let styles = Styles::decide(global.color);
    let out = match &args.command {
        RunbookCommand::List => list(global, styles),
        RunbookCommand::Show { name } => {
            let Some(book) = RUNBOOKS.iter().find(|b| b.name == name) else {
                let known: Vec<&str> = RUNBOOKS.iter().map(|b| b.name).collect();
                return Err(CommandError::usage(format!("`{name}` is not a runbook"))
                    .hint(format!("runbooks: {}", known.join(", "))));
            };
            markdown(&readable(book.text), styles)
        }
    };
    write_stdout(out.as_bytes())?;
    Ok(super::error::OK)
}

fn list(global: &GlobalArgs, styles: Styles) -> String {
    let mut out = String::new();
    for book in RUNBOOKS {
        writeln!(
            out,
            "{}",
            if global.output == OutputFormat::Name { book.name.to_string() } else { styles.bold(book.name) }
        )
        .expect("writing to a String does not fail");
        if global.output == OutputFormat::Name {
            continue;
        }
        for section in sections(book) {
            let severity = Code::parse(&section.code).map(Code::severity);
            let word = severity.map_or(String::new(), |s| styles.severity(s, &format!("{:<8}", s.as_str())));
            writeln!(out, "  {word} {}", section.code).expect("writing to a String does not fail");
        }
    }
    out
}
