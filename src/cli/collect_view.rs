//! What `collect` says about the bundle that it wrote: one view for JSON and text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::args::{GlobalArgs, OutputFormat};
use super::error::CommandError;
use super::render::write_stdout;
use crate::output::escape::visible;
use crate::output::json::{render_json, render_yaml};

/// Columns of the lines that list codes.
const COLUMNS: usize = 110;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
/// The bundle.
pub struct CollectionView {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub generated_at: String,
    pub file: String,
    /// Of the file, in bytes.
    pub size: u64,
    pub taken: Vec<TakenView>,
    pub unreadable: Vec<UnreadableView>,
    /// Findings that cannot be made from the bundle, as it holds no Secret data.
    pub needs_payload: Vec<&'static str>,
    pub exit_code: u8,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
/// What was taken of one resource.
pub struct TakenView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    pub resource: String,
    pub count: usize,
    /// In the bundle, before it is packed.
    pub bytes: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
/// What was not.
pub struct UnreadableView {
    pub what: String,
    pub reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
}

/// Prints it; returns the exit code.
pub fn show(view: &CollectionView, global: &GlobalArgs) -> Result<u8, CommandError> {
    let mut out = Vec::new();
    match global.output {
        OutputFormat::Json => render_json(&mut out, view),
        OutputFormat::Yaml => render_yaml(&mut out, view),
        OutputFormat::Name => {
            out.extend(format!("{}\n", visible(&view.file)).bytes());
            Ok(())
        }
        OutputFormat::Text | OutputFormat::Wide => {
            out.extend(text(view, global.output == OutputFormat::Wide).bytes());
            Ok(())
        }
    }
    .map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
    write_stdout(&out)?;
    Ok(view.exit_code)
}

fn text(view: &CollectionView, by_namespace: bool) -> String {
    let mut rows: BTreeMap<(String, &str), (usize, usize)> = BTreeMap::new();
    for taken in &view.taken {
        let namespace = taken.namespace.clone().filter(|_| by_namespace).unwrap_or_default();
        let row = rows.entry((namespace, &taken.resource)).or_default();
        *row = (row.0 + taken.count, row.1 + taken.bytes);
    }
    let mut out = format!("{}: {}\n", visible(&view.file), size(view.size as usize));
    for ((namespace, resource), (count, bytes)) in rows {
        let place = if namespace.is_empty() { String::new() } else { format!("{}  ", visible(&namespace)) };
        let note = if resource == "secrets" { "  metadata, key names and sizes; no values" } else { "" };
        writeln!(out, "  {place}{resource:<56} {count:>5} {:>10}{note}", size(bytes))
            .expect("writing to a String does not fail");
    }
    for gap in &view.unreadable {
        let permission = gap.permission.as_ref().map(|p| format!("; permission: {p}")).unwrap_or_default();
        writeln!(out, "not taken: {} ({}{permission})", visible(&gap.what), gap.reason)
            .expect("writing to a String does not fail");
    }
    out.push_str("Cannot be told from it, for want of Secret data:\n");
    out.push_str(&wrapped(&view.needs_payload));
    out.push_str("What looks like a credential was masked. Read the bundle before you pass it on.\n");
    out
}

fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// Words in lines of at most so many columns, indented.
fn wrapped(words: &[&str]) -> String {
    let mut out = String::new();
    let mut line = String::from(" ");
    for word in words {
        if line.len() + word.len() + 2 > COLUMNS {
            writeln!(out, "{line}").expect("writing to a String does not fail");
            line = String::from(" ");
        }
        write!(line, " {word}").expect("writing to a String does not fail");
    }
    writeln!(out, "{line}").expect("writing to a String does not fail");
    out
}
