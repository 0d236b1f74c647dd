//! Decides which failures are worth a retry, and how long to wait. Pure.
//!
//! Follows the rules of the vendors' own SDKs, see `reference/llm-apis.md`.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};

/// Maximum number of attempts at a call.
pub const MAX_TRIES: u32 = 5;

/// Retry advice in a response with an error status.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advice {
    /// Value of the header `x-should-retry`.
    pub should_retry: Option<bool>,
    /// Value of `retry-after-ms` or `Retry-After`.
    pub wait: Option<Duration>,
}

impl Advice {
    /// Parses the headers of a response received at `now`; `header` looks one up by name.
    pub fn read<'h>(header: impl Fn(&str) -> Option<&'h str>, now: DateTime<FixedOffset>) -> Self {
        let milliseconds = header("retry-after-ms").and_then(|value| parse_number(value, 0.001));
        let retry_after = || header("retry-after").and_then(|value| parse_retry_after(value, now));
        Self {
            should_retry: match header("x-should-retry") {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
            // Zero is ignored, because it would use up all attempts immediately.
            wait: milliseconds
                .or_else(retry_after)
                .filter(|wait| !wait.is_zero()),
        }
    }
}

/// Returns whether a response with this status is worth a retry.
pub fn is_retryable(status: u16, advice: &Advice) -> bool {
    let may_pass = matches!(status, 408 | 409 | 429 | 500..=599);
    advice.should_retry.unwrap_or(may_pass)
}

/// Returns the time to wait after `failed` attempts if the server gives no advice: 0.5 s, doubling up to 8 s,
/// reduced by up to a quarter. `jitter` is between 0 and 1.
pub fn backoff(failed: u32, jitter: f64) -> Duration {
    const FIRST: f64 = 0.5;
    const LONGEST: f64 = 8.0;
    let doubled = FIRST * f64::from(1u32 << failed.saturating_sub(1).min(16));
    Duration::from_secs_f64(doubled.min(LONGEST) * (1.0 - 0.25 * jitter.clamp(0.0, 1.0)))
}

/// Parses either form of RFC 9110: seconds or a date.
fn parse_retry_after(value: &str, now: DateTime<FixedOffset>) -> Option<Duration> {
    parse_number(value, 1.0).or_else(|| {
        let date = DateTime::parse_from_rfc2822(value.trim()).ok()?;
        // A date in the past means no wait.
        Some((date - now).to_std().unwrap_or_default())
    })
}

fn parse_number(value: &str, unit: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value.trim().parse::<f64>().ok()? * unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<FixedOffset> {
        DateTime::parse_from_rfc3339("2026-11-21T20:15:03+01:00").unwrap()
    }

    fn advice(headers: &[(&str, &'static str)]) -> Advice {
        let header = |name: &str| {
            headers
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| *value)
        };
        Advice::read(header, now())
    }

    #[test]
    fn both_forms_of_retry_after_and_its_milliseconds_are_read() {
        for (headers, expected) in [
            (&[("retry-after", "7")][..], Some(7000)),
            (&[("retry-after", " 0.5 ")], Some(500)),
            (
                &[("retry-after", "Sat, 21 Nov 2026 19:15:10 GMT")],
                Some(7000),
            ),
            (&[("retry-after", "Sat, 21 Nov 2026 19:00:00 GMT")], None),
            (&[("retry-after", "0")], None),
            (
                &[("retry-after", "9"), ("retry-after-ms", "1500")],
                Some(1500),
            ),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "-3")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "1e300")], None),
            (&[], None),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(advice(headers).wait, expected, "{headers:?}");
        }
    }

    #[test]
    fn only_transient_statuses_are_retried() {
        for (status, expected) in [
            (408, true),
            (409, true),
            (429, true),
            (500, true),
            (503, true),
            (504, true),
            (529, true),
            (400, false),
            (401, false),
            (403, false),
            (404, false),
            (413, false),
            (422, false),
        ] {
            assert_eq!(
                is_retryable(status, &Advice::default()),
                expected,
                "{status}"
            );
        }
        let advised = |status, should| is_retryable(status, &advice(&[("x-should-retry", should)]));
        assert!(!advised(500, "false"));
        assert!(advised(400, "true"));
    }

    #[test]
    fn the_wait_doubles_up_to_eight_seconds_less_a_quarter() {
        let waits: Vec<u128> = (1..=6)
            .map(|failed| backoff(failed, 0.0).as_millis())
            .collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 8000]);
        assert_eq!(backoff(5, 1.0).as_millis(), 6000);
        assert_eq!(backoff(u32::MAX, 0.0).as_millis(), 8000);
    }
}
