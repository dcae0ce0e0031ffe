//! Rendering: one view type, and text, table, JSON, YAML and names made from it.

pub mod escape;
pub mod fleet_table;
pub mod json;
pub mod run_text;
pub mod run_view;
pub mod state_text;
pub mod state_view;
pub mod style;
pub mod table;
pub mod text;
pub mod timeline_text;
pub mod view;

use std::io::Write;

/// Writes one escaped line to standard error; a closed standard error is ignored.
pub fn stderr_line(text: &str) {
    let line = format!("{}\n", escape::visible(text));
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
