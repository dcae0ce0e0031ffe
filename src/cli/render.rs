//! The one place where a report becomes output.

use std::io::{self, Write};

use super::args::{GlobalArgs, OutputFormat};
use super::error::CommandError;
use crate::output::fleet_table::{render_fleet, render_jobs};
use crate::output::json::{render_json, render_yaml};
use crate::output::style::Styles;
use crate::output::table::{TableOptions, render_locks};
use crate::output::text::render_text;
use crate::output::timeline_text::render_timeline;
use crate::output::view::{ReportView, view_of};
use crate::report::Report;

/// How a report is laid out for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Findings in full.
    Findings,
    /// A table of locks.
    Locks { namespaces: bool },
    /// A line for each object whose Jobs fail or wait.
    Fleet { namespaces: bool },
    /// A table of the Jobs of an object.
    Jobs,
    /// What happened, in order of time.
    Timeline,
}

/// Writes the report to standard output and returns its exit code.
pub fn render(report: &Report, global: &GlobalArgs, shape: Shape) -> Result<u8, CommandError> {
    let view = view_of(report, global.quiet);
    let mut buffer = Vec::new();
    render_view(&mut buffer, &view, global, shape, Styles::decide(global.color))
        .map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
    write_stdout(&buffer)?;
    Ok(report.exit_code())
}

/// Renders a view in the format that was asked for.
pub fn render_view(
    out: &mut dyn Write,
    view: &ReportView,
    global: &GlobalArgs,
    shape: Shape,
    styles: Styles,
) -> io::Result<()> {
    match global.output {
        OutputFormat::Json => render_json(out, view),
        OutputFormat::Yaml => render_yaml(out, view),
        OutputFormat::Name => {
            view.items.iter().try_for_each(|i| writeln!(out, "{}", crate::output::escape::visible(&i.object.resource)))
        }
        OutputFormat::Text | OutputFormat::Wide => match shape {
            Shape::Findings => render_text(out, view, styles),
            Shape::Fleet { namespaces } => {
                render_fleet(out, view, table_options(global, namespaces), styles)?;
                crate::output::text::render_gaps(out, view, styles)
            }
            Shape::Jobs => {
                render_jobs(out, view, table_options(global, false), styles)?;
                crate::output::text::render_gaps(out, view, styles)
            }
            Shape::Timeline => {
                render_timeline(out, view, styles)?;
                crate::output::text::render_gaps(out, view, styles)
            }
            Shape::Locks { namespaces } => {
                let wide = global.output == OutputFormat::Wide;
                render_locks(out, view, TableOptions { headers: !global.no_headers, namespaces, wide }, styles)?;
                crate::output::text::render_gaps(out, view, styles)
            }
        },
    }
}

fn table_options(global: &GlobalArgs, namespaces: bool) -> TableOptions {
    TableOptions { headers: !global.no_headers, namespaces, wide: global.output == OutputFormat::Wide }
}

/// Writes bytes to standard output. A closed pipe ends quietly.
pub fn write_stdout(bytes: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(e) => Err(CommandError::failed("write to standard output").caused_by(e.to_string())),
    }
}
