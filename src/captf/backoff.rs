//! How the controller counts failures and when it tries again.
//!
//! Per operation: walk the finished Jobs from newest to oldest, stop at the first success, count
//! the failures that count. The delay doubles from one minute and is ten minutes from the limit on.

use jiff::{SignedDuration, Timestamp};

/// How a finished Job ended, as far as backoff cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Succeeded,
    /// Failed in a way that backoff counts.
    Failed,
    /// Interrupted, blocked or plan-changed: looked past.
    NotCounted,
}

/// The next retry after counted failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    pub failures: u32,
    pub last_failure: Timestamp,
    pub at: Timestamp,
}

/// The retry that follows `finished` (newest first, one operation), or `None` when no failure counts.
/// `limit` is the effective `failedJobsHistoryLimit`; below 1 it acts as 1.
pub fn next_retry(finished: impl IntoIterator<Item = (Ended, Timestamp)>, limit: i64) -> Option<Retry> {
    let mut failures = 0;
    let mut last_failure = None;
    for (ended, at) in finished {
        match ended {
            Ended::Succeeded => break,
            Ended::NotCounted => {}
            Ended::Failed => {
                failures += 1;
                last_failure.get_or_insert(at);
            }
        }
    }
    let last_failure = last_failure?;
    let at = last_failure + SignedDuration::from_secs(delay_seconds(failures, limit));
    Some(Retry { failures, last_failure, at })
}

/// Seconds to wait after `failures` (at least 1) counted failures.
pub fn delay_seconds(failures: u32, limit: i64) -> i64 {
    const MINUTE: i64 = 60;
    const LONGEST: i64 = 10 * MINUTE;
    if i64::from(failures) >= limit.max(1) {
        return LONGEST;
    }
    let doubled = MINUTE.checked_shl(failures.saturating_sub(1)).filter(|s| *s > 0);
    doubled.unwrap_or(LONGEST).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_follow_the_limit() {
        for (limit, minutes) in [
            (0, vec![10, 10, 10]),
            (1, vec![10, 10, 10]),
            (2, vec![1, 10, 10]),
            (3, vec![1, 2, 10, 10, 10]),
            (5, vec![1, 2, 4, 8, 10, 10]),
            (100, vec![1, 2, 4, 8, 10, 10]),
        ] {
            for (n, m) in minutes.into_iter().enumerate() {
                let failures = u32::try_from(n).expect("small") + 1;
                assert_eq!(delay_seconds(failures, limit), m * 60, "limit {limit}, failure {failures}");
            }
        }
        assert_eq!(delay_seconds(99, 1000), 600);
    }

    #[test]
    fn counting_stops_at_a_success_and_looks_past_what_does_not_count() {
        use Ended::{Failed, NotCounted, Succeeded};
        let t = |s: i64| Timestamp::from_second(s).expect("in range");
        let retry =
            next_retry([(NotCounted, t(90)), (Failed, t(80)), (Failed, t(70)), (Succeeded, t(60)), (Failed, t(50))], 3);
        assert_eq!(retry, Some(Retry { failures: 2, last_failure: t(80), at: t(200) }));
        assert_eq!(next_retry([(Succeeded, t(9)), (Failed, t(8))], 3), None);
        assert_eq!(next_retry([(NotCounted, t(9))], 3), None);
        assert_eq!(next_retry([], 3), None);
    }
}
