//! Runs as lines of text: how a Job ended, its steps as bars, the next attempt.

use super::escape::visible;
use super::run_view::{AttemptView, JobView, RunsView, StepTimeView};
use crate::captf::time::{short_duration, short_millis};

/// Columns of the longest bar.
const BAR: i64 = 20;

/// Labelled lines for an item. A line without a label goes on from the one above.
pub fn run_lines(runs: &RunsView) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    for job in &runs.jobs {
        lines.extend(job_lines(job));
    }
    for attempt in &runs.next_attempts {
        lines.extend(attempt_lines(attempt));
    }
    if let Some(cause) = runs.cause.as_ref().filter(|c| !c.waiting_may_cure) {
        let again = runs.next_attempts.iter().any(|a| matches!(a.state, "scheduled" | "due"));
        let text = if again {
            "The next attempt fails the same way until this is fixed"
        } else {
            "Waiting does not cure this"
        };
        lines.push(("", format!("{text} ({}).", cause.code)));
    }
    lines
}

fn job_lines(job: &JobView) -> Vec<(&'static str, String)> {
    let op = job.operation.unwrap_or("unknown operation");
    let attempt = job.attempt.map(|a| format!(", attempt {a}")).unwrap_or_default();
    let step = job.failed_step.as_deref().map(|s| format!(" at step {}", visible(s))).unwrap_or_default();
    let counted = match job.counted {
        Some(true) => ", counts as a failure",
        Some(false) if job.outcome != "succeeded" => ", does not count as a failure",
        _ => "",
    };
    let mut lines = vec![("job", format!("{} ({op}{attempt}): {}{step}{counted}", visible(&job.name), job.outcome))];
    if let Some(seconds) = job.duration_seconds {
        let from = job.started_at.as_ref().map(|t| format!(" from {t}")).unwrap_or_default();
        let to = job.finished_at.as_ref().map_or(", not finished".to_string(), |t| format!(" to {t}"));
        let length = short_duration(seconds);
        lines.push(match job.outcome {
            "starting" | "suspended" => ("age", format!("{length}, not started")),
            _ => ("ran", format!("{length}{from}{to}")),
        });
    }
    if let Some(image) = &job.image {
        let digest = job.image_digest.as_deref().filter(|d| !image.contains(*d));
        let digest = digest.map(|d| format!(" (ran as {})", visible(d))).unwrap_or_default();
        lines.push(("", format!("image {}{digest}", visible(image))));
    }
    for (index, line) in step_lines(&job.steps).into_iter().enumerate() {
        lines.push((if index == 0 { "step" } else { "" }, line));
    }
    lines
}

/// One line a step: name, bar, time, share, exit code when it is not 0.
fn step_lines(steps: &[StepTimeView]) -> Vec<String> {
    let width = steps.iter().map(|s| s.name.chars().count()).max().unwrap_or_default();
    let longest = steps.iter().map(|s| s.milliseconds).max().unwrap_or(1).max(1);
    let line = |s: &StepTimeView| {
        let cells = usize::try_from((s.milliseconds * BAR + longest - 1) / longest).unwrap_or_default();
        let bar = format!(
            "{}{}",
            "█".repeat(cells),
            "·".repeat(usize::try_from(BAR).unwrap_or_default().saturating_sub(cells))
        );
        let exit = match (s.exit_code, s.name.as_str()) {
            (0, _) => String::new(),
            (2, "plan") => "  exit code 2 (there are changes)".to_string(),
            (code, _) => format!("  exit code {code}"),
        };
        let name = visible(&s.name).into_owned();
        format!("{name:<width$}  {bar}  {} ({}%){exit}", short_millis(s.milliseconds), s.percent)
    };
    steps.iter().map(line).collect()
}

fn attempt_lines(attempt: &AttemptView) -> Vec<(&'static str, String)> {
    let op = attempt.operation;
    let when = match (attempt.state, &attempt.at, &attempt.relative) {
        ("running", Some(at), Some(relative)) if relative.ends_with("ago") => {
            format!("{op}: after this Job, whose deadline was {at} ({relative})")
        }
        ("running", Some(at), Some(relative)) => {
            format!("{op}: after this Job, which its deadline ends {at} ({relative}) at the latest")
        }
        ("running", _, _) => format!("{op}: after this Job"),
        ("never", _, _) => format!("{op}: no next attempt by itself"),
        ("unknown", _, _) => format!("{op}: when is unknown"),
        ("held", Some(at), Some(relative)) if relative != "now due" => {
            format!("{op}: held, and not before {at} ({relative})")
        }
        ("held", _, _) => format!("{op}: held, not by backoff"),
        ("due", Some(at), _) => format!("{op}: due since {at}, with the next reconcile"),
        ("due", None, _) => format!("{op}: due, with the next reconcile"),
        (_, Some(at), Some(relative)) => format!("{op}: {at} ({relative})"),
        _ => format!("{op}: {}", attempt.state),
    };
    let mut text = when;
    if attempt.failures > 0 {
        let failures = if attempt.failures == 1 {
            "1 failure".to_string()
        } else {
            format!("{} failures in a row", attempt.failures)
        };
        text.push_str(&format!("; {failures}"));
        if let (Some(limit), Some(from)) = (attempt.limit, attempt.limit_from) {
            text.push_str(&format!(", limit {limit} ({from})"));
        }
        if let Some(delay) = attempt.delay_seconds {
            text.push_str(&format!(", delay {}", short_duration(delay)));
        }
    }
    let mut lines = vec![("when", text)];
    for because in &attempt.because {
        let at = because.at.as_ref().map(|at| format!(" ({at})")).unwrap_or_default();
        lines.push(("", format!("{}: {}{at}", visible(&because.source), visible(&because.value))));
    }
    lines
}
