//! Renders the reports of backup, state and restore commands: their parts first, then the findings.

use std::io;

use super::args::{GlobalArgs, OutputFormat};
use super::error::CommandError;
use super::render::{Shape, render_view, write_stdout};
use super::session::Session;
use crate::facts::object::ObjectRef;
use crate::facts::reading::Gap;
use crate::output::json::{render_json, render_yaml};
use crate::output::state_text::{Layout, render_parts};
use crate::output::state_view::{Parts, StateReportView};
use crate::output::style::Styles;
use crate::output::view::view_of;
use crate::report::{Item, ItemObject, Report};
use crate::runbook::finding::Finding;

/// A report about one object.
pub fn report_of(
    session: &Session,
    command: &'static str,
    object: &ObjectRef,
    findings: Vec<Finding>,
    gaps: Vec<Gap>,
) -> Report {
    Report {
        items: vec![Item { findings, gaps, ..Item::new(ItemObject::workload(object)) }],
        ..session.report(command)
    }
}

/// Writes the report with its parts. `exit` overrules the code that follows from the findings, in JSON too.
pub fn render_state(report: &Report, parts: Parts, global: &GlobalArgs, exit: Option<u8>) -> Result<u8, CommandError> {
    let mut view = view_of(report, global.quiet);
    view.exit_code = exit.unwrap_or(view.exit_code);
    let code = view.exit_code;
    let mut buffer = Vec::new();
    write(&mut buffer, StateReportView { report: view, parts }, global)
        .map_err(|e| CommandError::failed("write the output").caused_by(e.to_string()))?;
    write_stdout(&buffer)?;
    Ok(code)
}

fn write(out: &mut Vec<u8>, mut view: StateReportView, global: &GlobalArgs) -> io::Result<()> {
    let styles = Styles::decide(global.color);
    match global.output {
        OutputFormat::Json => return render_json(out, &view),
        OutputFormat::Yaml => return render_yaml(out, &view),
        OutputFormat::Name => return render_view(out, &view.report, global, Shape::Findings, styles),
        OutputFormat::Text | OutputFormat::Wide => {}
    }
    let mut object = String::new();
    if let Some(item) = view.report.items.first() {
        object = format!("{} {}/{}", item.object.kind, item.object.namespace, item.object.name);
    }
    if !global.quiet {
        let layout = Layout { headers: !global.no_headers, wide: global.output == OutputFormat::Wide, styles };
        render_parts(out, &object, &view.parts, layout)?;
    }
    view.report.items.retain(|i| !i.findings.is_empty() || !i.unreadable.is_empty());
    let rest = !view.report.items.is_empty() || !view.report.unreadable.is_empty();
    if !out.is_empty() && rest {
        out.extend(b"\n");
    }
    render_view(out, &view.report, global, Shape::Findings, styles)
}
