//! A timeline as text: one line an entry, with bars on a common axis when there is a terminal to fill.

use std::io::{self, Write};

use super::escape::visible;
use super::run_view::EntryView;
use super::style::Styles;
use super::view::ReportView;
use crate::captf::time::short_duration;

/// Columns of an axis that is worth drawing, and of the widest.
const NARROWEST: usize = 12;
const WIDEST: usize = 40;
/// Columns that the words of a line get before the axis gets any.
const WORDS: usize = 78;

/// Writes every item's timeline.
pub fn render_timeline(out: &mut dyn Write, report: &ReportView, styles: Styles) -> io::Result<()> {
    for item in &report.items {
        let object = &item.object;
        let title = format!("{} {}/{}", visible(&object.kind), visible(&object.namespace), visible(&object.name));
        writeln!(out, "{}", styles.bold(&title))?;
        let entries = item.runs.as_ref().map(|r| r.timeline.as_slice()).unwrap_or_default();
        if entries.is_empty() {
            writeln!(out, "  nothing is left to see: no Jobs, no events, no conditions")?;
        }
        let axis = Axis::over(entries, styles.width);
        for entry in entries {
            writeln!(out, "{}", line(entry, axis.as_ref(), styles).trim_end())?;
        }
    }
    Ok(())
}

fn line(entry: &EntryView, axis: Option<&Axis>, styles: Styles) -> String {
    let bar = axis.map(|a| format!("{}  ", a.bar(entry))).unwrap_or_default();
    // A step says itself how long it took, to the millisecond.
    let took = entry
        .span
        .filter(|_| entry.lane != "step")
        .map(|(from, to)| format!(" [{}]", short_duration(to.as_second() - from.as_second())))
        .unwrap_or_default();
    let words = format!("{}{took} {}", visible(&entry.what), visible(&entry.text));
    let text = format!("{}  {bar}{:<9}  {words}", entry.at, entry.lane);
    match styles.width {
        Some(width) if text.chars().count() > width => {
            text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        _ => text,
    }
}

/// The common axis: from the first entry to the last end.
struct Axis {
    start: i64,
    seconds: i64,
    columns: usize,
}

impl Axis {
    fn over(entries: &[EntryView], width: Option<usize>) -> Option<Self> {
        let columns = width?.saturating_sub(WORDS).min(WIDEST);
        if columns < NARROWEST {
            return None;
        }
        let seconds = |t: &str| t.parse::<jiff::Timestamp>().ok().map(|t| t.as_second());
        let start = entries.iter().filter_map(|e| seconds(&e.at)).min()?;
        let end = entries.iter().filter_map(|e| seconds(e.until.as_deref().unwrap_or(&e.at))).max()?;
        Some(Self { start, seconds: (end - start).max(1), columns })
    }

    fn column(&self, second: i64) -> usize {
        let last = i64::try_from(self.columns - 1).unwrap_or(1);
        usize::try_from(((second - self.start) * last / self.seconds).clamp(0, last)).unwrap_or_default()
    }

    fn bar(&self, entry: &EntryView) -> String {
        let at = entry.at.parse::<jiff::Timestamp>().map(|t| t.as_second()).unwrap_or(self.start);
        let (from, to) = entry.span.map_or((at, at), |(from, to)| (from.as_second(), to.as_second()));
        let (from, to) = (self.column(from), self.column(to));
        let mark = if entry.span.is_some() { '█' } else { '•' };
        (0..self.columns).map(|c| if c >= from && c <= to { mark } else { '·' }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: &str, until: Option<&str>) -> EntryView {
        let time = |t: &str| t.parse::<jiff::Timestamp>().expect("a time");
        let span = until.map(|u| (time(at), time(u)));
        EntryView {
            at: at.to_string(),
            until: until.map(str::to_string),
            lane: "job",
            what: "x".to_string(),
            text: "y".to_string(),
            span,
        }
    }

    #[test]
    fn bars_fill_the_terminal_and_are_left_out_without_one() {
        let entries = [
            entry("2026-01-10T08:00:00Z", Some("2026-01-10T08:10:00Z")),
            entry("2026-01-10T08:10:00Z", Some("2026-01-10T08:20:00Z")),
            entry("2026-01-10T08:20:00Z", None),
        ];
        let axis = Axis::over(&entries, Some(100)).expect("an axis");
        assert_eq!(axis.columns, 22);
        let bars: Vec<String> = entries.iter().map(|e| axis.bar(e)).collect();
        assert!(bars[0].starts_with("███████") && bars[0].ends_with('·'), "{bars:?}");
        assert!(bars[1].starts_with('·') && bars[1].ends_with("███"), "{bars:?}");
        assert!(bars[2].ends_with("·•"), "{bars:?}");
        assert!(Axis::over(&entries, None).is_none());
        assert!(Axis::over(&entries, Some(80)).is_none());
    }
}
