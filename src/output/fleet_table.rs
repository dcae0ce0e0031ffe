//! Tables of `jobs`: objects that fail with their cause, and the Jobs of one object.

use std::io::{self, Write};

use comfy_table::{Cell, Color};

use super::escape::visible;
use super::style::Styles;
use super::table::{TableOptions, write_table};
use super::view::{ItemView, ReportView};
use crate::captf::time::short_duration;
use crate::runbook::finding::Severity;

/// Characters of a reason that a line shows; the rest is in `-o wide`, JSON and the full view.
const WHY: usize = 90;

/// One line an object: operation, since when, next attempt, cause.
pub fn render_fleet(out: &mut dyn Write, report: &ReportView, options: TableOptions, styles: Styles) -> io::Result<()> {
    let mut header = vec!["OBJECT", "OP", "SINCE", "FAILURES", "NEXT", "CAUSE", "WHY"];
    if options.namespaces {
        header.insert(0, "NAMESPACE");
    }
    write_table(out, header, report.items.iter().map(|i| fleet_row(i, options)).collect(), options, styles)
}

fn fleet_row(item: &ItemView, options: TableOptions) -> Vec<Cell> {
    let runs = item.runs.as_ref();
    let cause = runs.and_then(|r| r.cause.as_ref());
    let finding = cause.and_then(|c| item.findings.iter().find(|f| f.code == c.code));
    let attempt = runs.and_then(|r| {
        let op = cause.and_then(|c| c.operation);
        r.next_attempts.iter().find(|a| Some(a.operation) == op).or(r.next_attempts.first())
    });
    let next = attempt.map_or("-".to_string(), |a| match (a.state, &a.at, &a.relative) {
        ("scheduled", Some(at), Some(relative)) => format!("{at} ({relative})"),
        (state, _, _) => state.to_string(),
    });
    let failures =
        attempt.map_or("-".to_string(), |a| if a.failures == 0 { "-".to_string() } else { a.failures.to_string() });
    let since =
        cause.and_then(|c| c.age.as_deref()).map_or("-".to_string(), |a| a.trim_end_matches(" ago").to_string());
    let why = cause.and_then(|c| c.detail.as_ref()).or(finding.map(|f| &f.summary));
    let why = why.map_or_else(|| not_read(item), |w| visible(w).into_owned());
    let mut cells = vec![
        Cell::new(format!("{}/{}", item.object.kind.to_ascii_lowercase(), visible(&item.object.name))),
        Cell::new(cause.and_then(|c| c.operation).unwrap_or("-")),
        Cell::new(since),
        Cell::new(failures),
        Cell::new(next),
        colored(Cell::new(cause.map_or("-", |c| c.code)), finding.map(|f| f.severity)),
        Cell::new(if options.wide { why } else { clipped(&why) }),
    ];
    if options.namespaces {
        cells.insert(0, Cell::new(visible(&item.object.namespace)));
    }
    cells
}

fn not_read(item: &ItemView) -> String {
    item.unreadable.first().map_or("-".to_string(), |g| format!("not read: {} ({})", visible(&g.what), g.reason))
}

/// One line a Job, newest first.
pub fn render_jobs(out: &mut dyn Write, report: &ReportView, options: TableOptions, styles: Styles) -> io::Result<()> {
    let mut header = vec!["JOB", "OP", "ATTEMPT", "OUTCOME", "COUNTED", "DURATION", "FINISHED", "WHY"];
    let several = report.items.len() > 1;
    if several {
        header.insert(0, "OBJECT");
    }
    let mut rows = Vec::new();
    for item in &report.items {
        for job in item.runs.iter().flat_map(|r| &r.jobs) {
            let why = job.why.as_deref().map_or("-".to_string(), |w| visible(w).into_owned());
            let counted = match job.counted {
                Some(true) => "yes",
                Some(false) if job.outcome != "succeeded" => "no",
                _ => "-",
            };
            let severity = match (job.outcome, job.counted) {
                ("succeeded", _) => None,
                (_, Some(true)) => Some(Severity::Error),
                (_, Some(false)) => Some(Severity::Warning),
                (_, None) => Some(Severity::Info),
            };
            let mut cells = vec![
                Cell::new(visible(&job.name)),
                Cell::new(job.operation.unwrap_or("-")),
                Cell::new(job.attempt.map_or("-".to_string(), |a| a.to_string())),
                colored(Cell::new(job.outcome), severity),
                Cell::new(counted),
                Cell::new(job.duration_seconds.map_or("-".to_string(), short_duration)),
                Cell::new(job.finished_at.as_deref().unwrap_or("-")),
                Cell::new(if options.wide { why } else { clipped(&why) }),
            ];
            if several {
                cells.insert(
                    0,
                    Cell::new(format!("{}/{}", item.object.kind.to_ascii_lowercase(), visible(&item.object.name))),
                );
            }
            rows.push(cells);
        }
    }
    write_table(out, header, rows, options, styles)
}

fn colored(cell: Cell, severity: Option<Severity>) -> Cell {
    match severity {
        Some(Severity::Error) => cell.fg(Color::Red),
        Some(Severity::Warning) => cell.fg(Color::Yellow),
        Some(Severity::Info) => cell.fg(Color::Cyan),
        None => cell.fg(Color::Green),
    }
}

fn clipped(text: &str) -> String {
    if text.chars().count() <= WHY {
        return text.to_string();
    }
    text.chars().take(WHY - 3).chain("...".chars()).collect()
}
