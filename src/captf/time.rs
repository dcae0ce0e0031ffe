//! Timestamps as Go's JSON decoder takes them, and durations as people read them.

use jiff::Timestamp;

/// Reads RFC 3339 as strictly as Go's `time.Time` does when it decodes JSON: upper-case `T` and
/// `Z`, two-digit fields, a dot before any number of fractional digits, an offset below 24:00.
/// Digits beyond nanoseconds are dropped. `None` for anything else.
pub fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|s| s.iter().all(u8::is_ascii_digit));
    let at = |i: usize, b: u8| bytes.get(i) == Some(&b);
    let shape = digits(0..4)
        && at(4, b'-')
        && digits(5..7)
        && at(7, b'-')
        && digits(8..10)
        && at(10, b'T')
        && digits(11..13)
        && at(13, b':')
        && digits(14..16)
        && at(16, b':')
        && digits(17..19)
        && !matches!(&bytes[17..19], b"60");
    if !shape {
        return None;
    }
    let mut rest = &text[19..];
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        let len = after.bytes().take_while(u8::is_ascii_digit).count();
        if len == 0 {
            return None;
        }
        fraction = &after[..len.min(9)];
        rest = &after[len..];
    }
    if !offset_is_strict(rest) {
        return None;
    }
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{}{dot}{fraction}{rest}", &text[..19]).parse().ok()
}

fn offset_is_strict(offset: &str) -> bool {
    if offset == "Z" {
        return true;
    }
    let b = offset.as_bytes();
    let two = |i: usize| -> Option<u32> {
        let (x, y) = (*b.get(i)?, *b.get(i + 1)?);
        (x.is_ascii_digit() && y.is_ascii_digit()).then(|| u32::from(x - b'0') * 10 + u32::from(y - b'0'))
    };
    b.len() == 6
        && matches!(b[0], b'+' | b'-')
        && b[3] == b':'
        && two(1).is_some_and(|h| h < 24)
        && two(4).is_some_and(|m| m < 60)
}

/// Seconds from `from` to `to`, never below zero.
pub fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    (to.as_second() - from.as_second()).max(0)
}

/// A length of time the way kubectl writes ages: the two largest units (`4m10s`, `3h5m`, `2d4h`).
pub fn short_duration(seconds: i64) -> String {
    let s = seconds.max(0);
    let (d, h, m, sec) = (s / 86400, s % 86400 / 3600, s % 3600 / 60, s % 60);
    let pair = |a: i64, ua: &str, b: i64, ub: &str| {
        if b == 0 { format!("{a}{ua}") } else { format!("{a}{ua}{b}{ub}") }
    };
    if d > 0 {
        pair(d, "d", h, "h")
    } else if h > 0 {
        pair(h, "h", m, "m")
    } else if m > 0 {
        pair(m, "m", sec, "s")
    } else {
        format!("{sec}s")
    }
}

/// A length of time in milliseconds: `800ms`, then as [`short_duration`].
pub fn short_millis(millis: i64) -> String {
    if millis < 1000 { format!("{}ms", millis.max(0)) } else { short_duration(millis / 1000) }
}

/// A point in time as this tool prints it: RFC 3339 in UTC with whole seconds.
pub fn utc(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

/// `4m10s ago`, or `in 4m10s` for a time that lies ahead.
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now {
        format!("in {}", short_duration(seconds_between(now, at)))
    } else {
        format!("{} ago", short_duration(seconds_between(at, now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_that_go_decodes_are_read() {
        for (text, ok) in [
            ("2026-01-10T08:00:00Z", true),
            ("2022-06-15T22:27:10.244794577Z", true),
            ("2022-06-15T22:27:10.2447945771234Z", true),
            ("2026-01-10T08:00:00+02:00", true),
            ("2026-01-10T08:00:00-23:59", true),
            ("2024-02-29T00:00:00Z", true),
            ("2026-02-29T00:00:00Z", false),
            ("2026-01-10T08:00:00", false),
            ("2026-01-10 08:00:00Z", false),
            ("2026-01-10t08:00:00Z", false),
            ("2026-01-10T08:00:00z", false),
            ("2026-01-10T8:00:00Z", false),
            ("2026-01-10T08:00:60Z", false),
            ("2026-01-10T24:00:00Z", false),
            ("2026-01-10T08:00:00,5Z", false),
            ("2026-01-10T08:00:00.Z", false),
            ("2026-01-10T08:00:00+24:00", false),
            ("2026-01-10T08:00:00+02:60", false),
            ("2026-01-10T08:00:00+0200", false),
            ("2026-01-10T08:00:00Z ", false),
            ("2026-13-10T08:00:00Z", false),
            ("", false),
            ("é026-01-10T08:00:00Z", false),
        ] {
            assert_eq!(parse_rfc3339(text).is_some(), ok, "{text}");
        }
    }

    #[test]
    fn durations_show_their_two_largest_units() {
        for (s, text) in
            [(0, "0s"), (59, "59s"), (60, "1m"), (250, "4m10s"), (3600, "1h"), (11100, "3h5m"), (187200, "2d4h")]
        {
            assert_eq!(short_duration(s), text);
        }
    }
}
