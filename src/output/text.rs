//! The report as text for people: verdict, evidence, next steps, hint; wrapped to the terminal.

use std::io::{self, Write};

use unicode_width::UnicodeWidthStr;

use super::escape::visible;
use super::run_text::run_lines;
use super::style::Styles;
use super::view::{EvidenceView, FindingView, GapView, ItemView, LockView, ReportView, StepView, WaitingView};

/// Columns of the label in front of each block.
const LABEL: usize = 6;

/// Writes the whole report.
pub fn render_text(out: &mut dyn Write, report: &ReportView, styles: Styles) -> io::Result<()> {
    let mut page = Page { out, styles };
    for (index, item) in report.items.iter().enumerate() {
        if index > 0 {
            page.line("")?;
        }
        page.item(item)?;
    }
    let general = report.unreadable.iter().filter(|g| !report.items.iter().any(|i| i.unreadable.contains(g)));
    let general: Vec<&GapView> = general.collect();
    if !general.is_empty() && !report.items.is_empty() {
        page.line("")?;
    }
    for gap in general {
        page.gap(gap)?;
    }
    if let Some(clock) = &report.source.clock {
        page.line("")?;
        let text = format!("times are counted from {} ({clock})", report.generated_at);
        page.block("", &styles.dim(&visible(&text)))?;
    }
    Ok(())
}

/// Writes only what could not be read, below a table.
pub fn render_gaps(out: &mut dyn Write, report: &ReportView, styles: Styles) -> io::Result<()> {
    let mut page = Page { out, styles };
    report.unreadable.iter().try_for_each(|gap| page.gap(gap))
}

struct Page<'a> {
    out: &'a mut dyn Write,
    styles: Styles,
}

impl Page<'_> {
    fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", text.trim_end())
    }

    /// A label and text that wraps under itself.
    fn block(&mut self, label: &str, text: &str) -> io::Result<()> {
        let width = self.styles.width.unwrap_or(usize::MAX).saturating_sub(LABEL + 2).max(20);
        for (index, part) in wrap(text, width).into_iter().enumerate() {
            let head = if index == 0 { label } else { "" };
            let pad = " ".repeat(LABEL.saturating_sub(head.len() + 2));
            self.line(&format!("  {}{pad}  {part}", self.styles.dim(head)))?;
        }
        Ok(())
    }

    /// A command: never wrapped, so that it can be copied whole.
    fn command(&mut self, text: &str) -> io::Result<()> {
        let indent = " ".repeat(LABEL + 5);
        self.line(&format!("{indent}{}", visible(text)))
    }

    fn item(&mut self, item: &ItemView) -> io::Result<()> {
        let object = visible_object(item);
        match item.verdict {
            Some(verdict) => {
                let word = self.styles.verdict(verdict, verdict.as_str());
                self.line(&format!("{}  {word}", self.styles.bold(&object)))?;
            }
            None => self.line(&self.styles.bold(&object))?,
        }
        if let Some(lock) = &item.lock {
            self.lock(lock)?;
        }
        for waiting in &item.waiting {
            self.waiting(waiting)?;
        }
        for (label, line) in item.runs.iter().flat_map(run_lines) {
            self.block(label, &line)?;
        }
        for finding in &item.findings {
            self.finding(finding)?;
        }
        for gap in &item.unreadable {
            self.gap(gap)?;
        }
        Ok(())
    }

    fn lock(&mut self, lock: &LockView) -> io::Result<()> {
        let Some(id) = &lock.id else {
            return self.block("lock", &format!("Lease {}", visible(&lock.lease)));
        };
        let id = if id.is_empty() { "\"\"" } else { id };
        let mut text = format!("{} on Lease {}", visible(id), visible(&lock.lease));
        if let Some(other) = &lock.annotated_id {
            text.push_str(&format!(" (lock-info says {})", visible(other)));
        }
        self.block("lock", &text)?;
        let by = lock.holder.as_deref().map_or("unknown".into(), visible);
        let mut held = format!("by {by}");
        for (word, value) in [("for", &lock.operation), ("with", &lock.version)] {
            if let Some(value) = value {
                held.push_str(&format!(" {word} {}", visible(value)));
            }
        }
        if let (Some(at), Some(age)) = (&lock.taken_at, &lock.age) {
            held.push_str(&format!(", taken {at} ({age})"));
        }
        self.block("held", &held)
    }

    fn waiting(&mut self, waiting: &WaitingView) -> io::Result<()> {
        let mut text = format!("Job {} waits for this lock", visible(&waiting.job));
        if let Some(seconds) = waiting.lock_timeout_seconds {
            text.push_str(&format!(", up to {seconds}s a step ({})", visible(&waiting.lock_timeout_from)));
        }
        if let Some(at) = &waiting.gives_up_after {
            text.push_str(&format!(", gives up {at} at the earliest"));
        }
        if let Some(at) = &waiting.deadline {
            text.push_str(&format!(", deadline {at}"));
        }
        self.block("wait", &text)
    }

    fn finding(&mut self, finding: &FindingView) -> io::Result<()> {
        let head = format!("{}[{}]", finding.severity.as_str(), finding.code);
        self.line(&self.styles.severity(finding.severity, &head))?;
        self.block("", &visible(&finding.summary))?;
        for (index, evidence) in finding.evidence.iter().enumerate() {
            let label = if index == 0 { "seen" } else { "" };
            self.evidence(label, evidence)?;
        }
        for (index, step) in finding.next_steps.iter().enumerate() {
            let label = if index == 0 { "next" } else { "" };
            self.step(label, index + 1, step)?;
        }
        self.block("more", &format!("kubectl captf explain {}", finding.code))
    }

    /// One piece of evidence. Lines of a log stay lines, each behind a mark that the log cannot forge.
    fn evidence(&mut self, label: &str, evidence: &EvidenceView) -> io::Result<()> {
        if !evidence.source.starts_with("log of ") || !evidence.value.contains('\n') {
            return self.block(label, &evidence_text(evidence));
        }
        self.block(label, &format!("{}:", visible(&evidence.source)))?;
        evidence.value.lines().try_for_each(|line| self.block("", &format!("| {}", visible(line))))
    }

    fn step(&mut self, label: &str, number: usize, step: &StepView) -> io::Result<()> {
        let mark = if step.changes { "[changes] " } else { "" };
        let colon = if step.command.is_some() { ":" } else { "" };
        self.block(label, &format!("{number}. {mark}{}{colon}", visible(&step.text)))?;
        match &step.command {
            Some(command) => self.command(command),
            None => Ok(()),
        }
    }

    fn gap(&mut self, gap: &GapView) -> io::Result<()> {
        let mut text = format!("not read: {} ({})", visible(&gap.what), gap.reason);
        if !gap.detail.is_empty() {
            text.push_str(&format!(": {}", visible(&gap.detail)));
        }
        let indent = self.styles.width.unwrap_or(usize::MAX).saturating_sub(2).max(20);
        for (index, part) in wrap(&text, indent).into_iter().enumerate() {
            let pad = if index == 0 { "" } else { "  " };
            self.line(&format!("{pad}{part}"))?;
        }
        match (&gap.permission, &gap.command) {
            (Some(permission), Some(command)) => {
                self.block("", &format!("the permission `{permission}` settles it; to check:"))?;
                self.command(command)
            }
            _ => Ok(()),
        }
    }
}

fn visible_object(item: &ItemView) -> String {
    format!("{} {}/{}", visible(&item.object.kind), visible(&item.object.namespace), visible(&item.object.name))
}

fn evidence_text(evidence: &EvidenceView) -> String {
    let at = evidence.at.as_ref().map(|at| format!("  ({at})")).unwrap_or_default();
    format!("{} = {}{at}", visible(&evidence.source), visible(&evidence.value))
}

/// Breaks at spaces so that no line is wider than `width`, if a word allows it.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(word.to_string());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_only() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("averyveryverylongword x", 5), ["averyveryverylongword", "x"]);
        assert_eq!(wrap("漢字 漢字 漢字", 9), ["漢字 漢字", "漢字"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
