//! Rate limits, as vendors' response headers report them. Pure.

use std::time::Duration;

use chrono::{DateTime, FixedOffset};
use jiff::SignedDuration;

/// Header names of rate limits, where `*` is `remaining` or `reset`. The flag is true for limits on tokens, false for
/// limits on requests.
const LIMITS: [(&str, bool); 6] = [
    ("anthropic-ratelimit-requests-*", false),
    ("anthropic-ratelimit-tokens-*", true),
    ("anthropic-ratelimit-input-tokens-*", true),
    ("anthropic-ratelimit-output-tokens-*", false),
    ("x-ratelimit-*-requests", false),
    ("x-ratelimit-*-tokens", true),
];

/// Returns the time until another call like this one, whose prompt has `tokens`, is within all limits; `None` if it
/// already is. The response was received at `now`; `header` looks one up by name.
pub fn reset<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    now: DateTime<FixedOffset>,
    tokens: u64,
) -> Option<Duration> {
    let resets = LIMITS.iter().filter_map(|(limit, of_tokens)| {
        let header = |what| header(&limit.replace('*', what));
        let left: u64 = header("remaining")?.trim().parse().ok()?;
        let needed = if *of_tokens { tokens.max(1) } else { 1 };
        (left < needed).then(|| parse(header("reset")?, now))?
    });
    resets.max()
}

/// Parses a time such as `2026-11-21T19:15:10Z`, or the time until then, such as `6m0s`.
fn parse(value: &str, now: DateTime<FixedOffset>) -> Option<Duration> {
    let value = value.trim();
    let until = match DateTime::parse_from_rfc3339(value) {
        Ok(time) => (time - now).to_std().ok()?,
        Err(_) => value.parse::<SignedDuration>().ok()?.try_into().ok()?,
    };
    Some(until).filter(|until| !until.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_with_too_little_left_shows_when_it_is_full_again() {
        let now = DateTime::parse_from_rfc3339("2026-11-21T20:15:03+01:00").unwrap();
        let openai = |kind: &str, left: &str, reset: &str| {
            [
                (format!("x-ratelimit-remaining-{kind}"), left.to_owned()),
                (format!("x-ratelimit-reset-{kind}"), reset.to_owned()),
            ]
        };
        let anthropic = |kind: &str, left: &str, reset: &str| {
            [
                (
                    format!("anthropic-ratelimit-{kind}-remaining"),
                    left.to_owned(),
                ),
                (
                    format!("anthropic-ratelimit-{kind}-reset"),
                    reset.to_owned(),
                ),
            ]
        };
        let time = "2026-11-21T19:15:10Z";
        for (headers, expected) in [
            (openai("requests", "0", "1s"), Some(1_000)),
            (openai("requests", "0", "6m0s"), Some(360_000)),
            (openai("requests", "0", "1h2m3s"), Some(3_723_000)),
            (openai("requests", "0", " 120ms "), Some(120)),
            (openai("requests", "0", "2m59.56s"), Some(179_560)),
            (openai("requests", "1", "1s"), None),
            (openai("tokens", "99", "1s"), Some(1_000)),
            (openai("tokens", "100", "1s"), None),
            (openai("tokens", "0", "0s"), None),
            (openai("tokens", "0", "-1s"), None),
            (openai("tokens", "0", "soon"), None),
            (openai("tokens", "-1", "1s"), None),
            (openai("tokens", "none", "1s"), None),
            (anthropic("requests", "0", time), Some(7_000)),
            (anthropic("tokens", "99", time), Some(7_000)),
            (anthropic("input-tokens", "99", time), Some(7_000)),
            // The length of an answer says nothing about the next one.
            (anthropic("output-tokens", "99", time), None),
            (anthropic("output-tokens", "0", time), Some(7_000)),
            (anthropic("requests", "0", "2026-11-21T19:15:02Z"), None),
        ] {
            let header = |name: &str| {
                let mut headers = headers.iter();
                let found = headers.find(|(known, _)| known == name)?;
                Some(&*found.1)
            };
            let expected = expected.map(Duration::from_millis);
            assert_eq!(reset(header, now, 100), expected, "{headers:?}");
        }
        let both = [openai("requests", "0", "1s"), openai("tokens", "0", "2s")].concat();
        let header = |name: &str| {
            let found = both.iter().find(|(known, _)| known == name)?;
            Some(&*found.1)
        };
        assert_eq!(reset(header, now, 1), Some(Duration::from_secs(2)));
    }
}
