//! Tables of `jobs`: objects that fail with their cause, and the Jobs of one object.

use std::io::{self, Write};

use comfy_table::{Cell, Color};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::escape::visible;
use super::style::Styles;
use super::table::{TableOptions, write_table};
use super::view::{ItemView, ReportView};
use crate::captf::time::short_duration;
use crate::runbook::finding::Severity;

/// Characters of a reason that a line shows; the rest is in `-o wide`, JSON and the full view.
const WHY: usize = 90;
/// Columns that the reason gets at least, and those between two columns.
const FEWEST: usize = 25;
const GAP: usize = 3;

/// One line an object: operation, since when, next attempt, cause.
pub fn render_fleet(out: &mut dyn Write, report: &ReportView, options: TableOptions, styles: Styles) -> io::Result<()> {
    let mut header = vec!["OBJECT", "OP", "SINCE", "FAILURES", "NEXT", "CAUSE", "WHY"];
    if options.namespaces {
        header.insert(0, "NAMESPACE");
    }
    let mut rows: Vec<Vec<Cell>> = report.items.iter().map(|i| fleet_row(i, options)).collect();
    fit(&header, &mut rows, options, styles.width);
    write_table(out, header, rows, options, styles)
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
    fit(&header, &mut rows, options, styles.width);
    write_table(out, header, rows, options, styles)
}

/// Shortens the last column so that a row takes no more lines of the terminal than its other columns need with a
/// few words of the last.
fn fit(header: &[&str], rows: &mut [Vec<Cell>], options: TableOptions, width: Option<usize>) {
    let Some(width) = width.filter(|w| *w > 0 && !options.wide) else {
        return;
    };
    let last = header.len() - 1;
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.content().width());
        cells.chain([header[column].width()]).max().unwrap_or_default()
    };
    let used: usize = (0..last).map(|column| widest(column) + GAP).sum();
    let room = (used + FEWEST).div_ceil(width) * width - used;
    for cell in rows.iter_mut().filter_map(|row| row.get_mut(last)) {
        let text = cell.content();
        if text.width() > room {
            *cell = Cell::new(cut(&text, room));
        }
    }
}

/// The start of a text with `...`, no wider than `room`.
fn cut(text: &str, room: usize) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if out.width() + c.width().unwrap_or_default() + 3 > room {
            break;
        }
        out.push(c);
    }
    out + "..."
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_is_shortened_to_the_terminal_and_never_elsewhere() {
        let header = ["OBJECT", "WHY"];
        let fitted = |text: &str, wide: bool, width: Option<usize>| {
            let mut rows = vec![vec![Cell::new("tfm/web"), Cell::new(text)]];
            fit(&header, &mut rows, TableOptions { headers: true, namespaces: false, wide }, width);
            rows[0][1].content()
        };
        let long = "a reason of exactly 40 characters, or so";
        assert_eq!(long.len(), 40);
        for (text, wide, width, shown) in [
            (long, false, Some(40), "a reason of exactly 40 char..."),
            (long, false, Some(50), long),
            // Where the line wraps anyway, it wraps once.
            (long, false, Some(30), long),
            (
                "\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}\u{5b57}",
                false,
                Some(36),
                "\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}\u{5b57}\u{6f22}...",
            ),
            (long, true, Some(40), long),
            (long, false, None, long),
        ] {
            assert_eq!(fitted(text, wide, width), shown, "{text} {wide} {width:?}");
        }
    }
}
