//! Tables in kubectl's manner: no borders, three spaces between columns, optional headers.

use std::io::{self, Write};

use comfy_table::{Cell, Color, ContentArrangement, Table};

use super::escape::visible;
use super::style::Styles;
use super::view::{ItemView, ReportView};
use crate::runbook::verdict::Verdict;

/// What a table of locks shows.
#[derive(Debug, Clone, Copy)]
pub struct TableOptions {
    pub headers: bool,
    pub namespaces: bool,
    pub wide: bool,
}

/// `lock list`: object, verdict, holder, operation, age.
pub fn render_locks(out: &mut dyn Write, report: &ReportView, options: TableOptions, styles: Styles) -> io::Result<()> {
    let mut header = vec!["OBJECT", "VERDICT", "HOLDER", "OPERATION", "AGE"];
    if options.namespaces {
        header.insert(0, "NAMESPACE");
    }
    if options.wide {
        header.extend(["LOCK-ID", "LEASE", "CODES"]);
    }
    let rows = report.items.iter().map(|item| row(item, options)).collect();
    write_table(out, header, rows, options, styles)
}

/// A table in kubectl's manner; nothing at all without rows.
pub(super) fn write_table(
    out: &mut dyn Write,
    header: Vec<&str>,
    rows: Vec<Vec<Cell>>,
    options: TableOptions,
    styles: Styles,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if styles.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    if options.headers {
        table.set_header(header);
    }
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    for column in table.column_iter_mut() {
        column.set_padding((0, 3));
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn row(item: &ItemView, options: TableOptions) -> Vec<Cell> {
    let lock = item.lock.as_ref();
    let shown =
        |value: Option<&String>| value.filter(|v| !v.is_empty()).map_or("-".to_string(), |v| visible(v).into_owned());
    let kind = item.object.kind.to_ascii_lowercase();
    let verdict = item.verdict.map_or("-", Verdict::as_str);
    let age = lock.and_then(|l| l.age.as_deref()).map_or("-".to_string(), |a| a.trim_end_matches(" ago").to_string());
    let mut cells = vec![
        Cell::new(format!("{kind}/{}", visible(&item.object.name))),
        colored(Cell::new(verdict), item.verdict),
        Cell::new(shown(lock.and_then(|l| l.holder.as_ref()))),
        Cell::new(shown(lock.and_then(|l| l.operation.as_ref()))),
        Cell::new(age),
    ];
    if options.namespaces {
        cells.insert(0, Cell::new(visible(&item.object.namespace)));
    }
    if options.wide {
        let codes: Vec<&str> = item.findings.iter().map(|f| f.code).collect();
        cells.push(Cell::new(shown(lock.and_then(|l| l.id.as_ref()))));
        cells.push(Cell::new(shown(lock.map(|l| &l.lease))));
        cells.push(Cell::new(codes.join(",")));
    }
    cells
}

fn colored(cell: Cell, verdict: Option<Verdict>) -> Cell {
    match verdict {
        Some(Verdict::Free) => cell.fg(Color::Green),
        Some(Verdict::Live | Verdict::NotEvaluated) => cell.fg(Color::Cyan),
        Some(Verdict::Stale | Verdict::Orphan | Verdict::Undetermined) => cell.fg(Color::Yellow),
        Some(Verdict::Foreign | Verdict::EmptyHolder) => cell.fg(Color::Red),
        None => cell,
    }
}
