//! The verdict in a review's log, and findings that contradict it. Pure.

use std::sync::LazyLock;

use regex::Regex;

use crate::record::branches::ReviewVerdict;
use crate::secret::escapes::without_escapes;
use crate::sys::text::regex;

/// Matches a verdict's label and the rest of its line: the first pattern only at the beginning of a line, the second
/// anywhere.
static VERDICTS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [r"^[^\w\n]*", r"\b"].map(|before| {
        regex(&format!(
            r#"(?im){before}verdict["*_`]*[ \t]*:(?<said>[^\n]*)"#
        ))
    })
});

/// Matches a line with a P0 or P1 finding, after any list markers, and captures its text.
static FINDING: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?im)^[^\w\n]*(?:\d+[.)][^\w\n]*)?P[01][*_`\])]*[ \t]*:(?<said>[^\n]*)")
});

/// Matches text after `P0:` that states that there is no finding.
static NOTHING: LazyLock<Regex> = LazyLock::new(|| {
    let things = r"(\w+ )?(issue|finding|problem|bug)s?\b";
    regex(&format!(
        r"(?i)^(\W*$|none(\W*$|\W+(found|identified|remaining|left)\b)|(0|no)(\W*$| {things}))"
    ))
});

/// Characters that may surround a verdict: punctuation of Markdown and JSON.
const MARKS: &[char] = &['*', '_', '`', '"', ',', '.', '}', ' ', '\t', '\r'];

/// Returns the verdict in the log's first line that begins with `VERDICT:`, or else after the first `VERDICT:`
/// anywhere; `None` if the log has neither a verdict nor a finding. The verdict is clean only if it is exactly `CLEAN`
/// and no line is a P0 or P1 finding.
pub fn verdict_of(log: &str) -> Option<ReviewVerdict> {
    let log = without_escapes(log);
    let mut findings = FINDING.captures_iter(&log);
    let is_finding =
        |line: regex::Captures<'_>| !NOTHING.is_match(line["said"].trim_matches(MARKS));
    if findings.any(is_finding) {
        return Some(ReviewVerdict::Issues);
    }
    let verdict = VERDICTS.iter().find_map(|verdict| verdict.captures(&log))?;
    let said = verdict["said"].trim_matches(MARKS);
    Some(if said.eq_ignore_ascii_case("clean") {
        ReviewVerdict::Clean
    } else {
        ReviewVerdict::Issues
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_the_first_that_stands_in_a_log() {
        use ReviewVerdict::{Clean, Issues};
        for (log, expected) in [
            ("VERDICT: CLEAN\n", Some(Clean)),
            ("VERDICT: ISSUES\nP0 ...", Some(Issues)),
            ("\u{feff}\n# VERDICT:CLEAN\r\n", Some(Clean)),
            ("**VERDICT:** CLEAN\nVERDICT: ISSUES", Some(Clean)),
            ("# Review\n\n> - `VERDICT: ISSUES`\n", Some(Issues)),
            ("* **VERDICT: CLEAN**", Some(Clean)),
            // Anything but an exact verdict counts as issues.
            ("VERDICT: CLEAN?", Some(Issues)),
            ("VERDICT: CLEAN (but see P1)", Some(Issues)),
            ("VERDICT: CLEAN|ISSUES", Some(Issues)),
            ("VERDICT: not clean", Some(Issues)),
            ("VERDICT: CLEANUP", Some(Issues)),
            ("VERDICT:", Some(Issues)),
            ("Verdicts differ: CLEAN", None),
            ("Verdict: clean.", Some(Clean)),
            ("{\"verdict\": \"CLEAN\"}", Some(Clean)),
            ("{\"verdict\": \"ISSUES\"}", Some(Issues)),
            ("2026-11-23 [codex] FINAL VERDICT: ISSUES", Some(Issues)),
            ("\u{1b}[1mVERDICT: ISSUES\u{1b}[0m", Some(Issues)),
            ("No findings.", None),
            ("", None),
            // Prose about verdicts is ignored if a line begins with a verdict.
            (
                "I write `VERDICT: CLEAN` once P1 is gone.\nVERDICT: ISSUES",
                Some(Issues),
            ),
            (
                "The last VERDICT: ISSUES is mended.\nVERDICT: CLEAN",
                Some(Clean),
            ),
            // A finding outweighs the verdict.
            ("VERDICT: CLEAN\nP0: data is lost", Some(Issues)),
            (
                "VERDICT: CLEAN\n\n  - **P1**: no tests for the flag",
                Some(Issues),
            ),
            ("VERDICT: CLEAN\n1. [P1] : a race\n", Some(Issues)),
            ("P0: a crash\nVERDICT: CLEAN", Some(Issues)),
            ("VERDICT: CLEAN\n* P0: none\n* P1: 0\n", Some(Clean)),
            ("VERDICT: CLEAN\nP0: No.\nP1: **None** found", Some(Clean)),
            ("VERDICT: CLEAN\nP0: 0 issues", Some(Clean)),
            (
                "VERDICT: CLEAN\nP1: None of the new tests run",
                Some(Issues),
            ),
            ("VERDICT: CLEAN\nP0: 0 tests cover the flag", Some(Issues)),
            ("VERDICT: CLEAN\nP0: no issues\n## P1:\nNone\n", Some(Clean)),
            (
                "VERDICT: CLEAN\nNo P0/P1 issues found\nP2: a name",
                Some(Clean),
            ),
            ("VERDICT: CLEAN\nThe P0: a crash is mended.", Some(Clean)),
            // This also applies without a verdict.
            ("Findings\n- P1: broken\n", Some(Issues)),
            ("P0: none\nP1: none\n", None),
        ] {
            assert_eq!(verdict_of(log), expected, "{log}");
        }
    }
}
