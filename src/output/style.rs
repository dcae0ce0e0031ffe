//! Colour as a value: plain by default, decided once from `--color`, the environment and the terminal.

use std::io::IsTerminal;

use owo_colors::{OwoColorize, Style};

use crate::runbook::finding::Severity;
use crate::runbook::verdict::Verdict;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorChoice {
    Auto,
    Always,
    Never,
}

/// How wide and how colourful the output is.
#[derive(Debug, Clone, Copy)]
pub struct Styles {
    pub color: bool,
    /// Columns, or nothing when the output is no terminal.
    pub width: Option<usize>,
}

impl Styles {
    /// Decides from the flag, `NO_COLOR`, `CLICOLOR_FORCE`, `TERM` and whether stdout is a terminal.
    pub fn decide(choice: ColorChoice) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let forced = std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| !v.is_empty() && v != "0");
        let color = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto if set("NO_COLOR") => false,
            ColorChoice::Auto if forced => true,
            ColorChoice::Auto => terminal && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        };
        Self { color, width: terminal.then(terminal_width).flatten() }
    }

    /// No colour, unlimited width.
    pub fn plain() -> Self {
        Self { color: false, width: None }
    }

    pub fn severity(self, severity: Severity, text: &str) -> String {
        self.paint(
            text,
            match severity {
                Severity::Info => Style::new().cyan(),
                Severity::Warning => Style::new().yellow().bold(),
                Severity::Error => Style::new().red().bold(),
            },
        )
    }

    pub fn verdict(self, verdict: Verdict, text: &str) -> String {
        self.paint(
            text,
            match verdict {
                Verdict::Free => Style::new().green().bold(),
                Verdict::Live | Verdict::NotEvaluated => Style::new().cyan().bold(),
                Verdict::Stale | Verdict::Orphan | Verdict::Undetermined => Style::new().yellow().bold(),
                Verdict::Foreign | Verdict::EmptyHolder => Style::new().red().bold(),
            },
        )
    }

    pub fn bold(self, text: &str) -> String {
        self.paint(text, Style::new().bold())
    }

    pub fn dim(self, text: &str) -> String {
        self.paint(text, Style::new().dimmed())
    }

    fn paint(self, text: &str, style: Style) -> String {
        if self.color { text.style(style).to_string() } else { text.to_string() }
    }
}

/// The terminal's width: of stdout, else `COLUMNS`.
pub fn terminal_width() -> Option<usize> {
    let table = comfy_table::Table::new();
    table.width().map(usize::from).or_else(|| std::env::var("COLUMNS").ok()?.parse().ok()).filter(|w| *w >= 20)
}
