//! A Job that ended at its deadline: a slow step, a wait for the lock, a call that hung, or nothing started.

use super::code::Code;
use super::finding::{Evidence, Finding};
use super::job_case::Case;
use super::job_end::{job, last_lines, log_place, waited_for_lock};
use super::job_start;
use crate::captf::time::{short_duration, short_millis};
use crate::facts::pod::PodFacts;

/// A call that has not come back for this share of the deadline hangs rather than being one of many.
const HUNG_SHARE: i64 = 2;

pub fn deadline(case: &Case<'_>) -> Vec<Finding> {
    let limit = case.job.active_deadline_seconds;
    let base = |code| {
        let deadline = limit.map_or("unknown".to_string(), short_duration);
        let ran = Evidence::new(
            format!("Job/{} .spec.activeDeadlineSeconds", case.job.name),
            limit.map_or("unset".to_string(), |s| s.to_string()),
        );
        job(case, code).seen(ran.at(case.job.started)).with("deadline", deadline)
    };
    let started = case.newest_pod().and_then(PodFacts::source_started);
    let never = started.is_none() && case.details.steps.is_empty() && case.log().is_none();
    let mut start = if never { job_start::findings(case) } else { Vec::new() };
    if never && (case.newest_pod().is_some() || !start.is_empty()) {
        start.push(base(Code::DeadlineNeverStarted));
        return start;
    }
    let slowest = case.details.steps.iter().max_by_key(|s| s.millis);
    let seen_step =
        slowest.map(|s| Evidence::new(format!("{} steps[{}]", case.details.from, s.name), short_millis(s.millis)));
    let log = case.log();
    if log.is_some_and(|l| l.waits_for_lock) || waited_for_lock(case, case.details.error.as_ref()) {
        let lines = log.map(|l| last_lines(case, l)).unwrap_or_default();
        return vec![base(Code::DeadlineLockWait).seen_all(seen_step).seen_all(lines)];
    }
    if let Some((address, elapsed)) = log.and_then(|l| l.still.clone())
        && limit.is_none_or(|l| elapsed >= l / HUNG_SHARE)
    {
        let line = Evidence::new(
            format!("log of {}", log_place(case)),
            format!("{address} was not done after {}", short_duration(elapsed)),
        );
        return vec![base(Code::DeadlineHungCall).seen(line).seen_all(seen_step).with("address", address)];
    }
    match slowest {
        Some(step) => {
            let lines = log.map(|l| last_lines(case, l)).unwrap_or_default();
            vec![
                base(Code::DeadlineSlowStep)
                    .seen_all(seen_step)
                    .seen_all(lines)
                    .with("step", step.name.clone())
                    .with("took", short_millis(step.millis)),
            ]
        }
        None => vec![base(Code::DeadlineUnknown).seen_all(log.map(|l| last_lines(case, l)).unwrap_or_default())],
    }
}
