//! The verdict in a review's log. Pure.

use std::sync::LazyLock;

use regex::Regex;

use crate::record::orchestration::ReviewVerdict;
use crate::secret::escapes::without_escapes;
use crate::sys::text::regex;

/// Matches a verdict's label and the rest of its line.
static VERDICT: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"(?i)\bverdict["*_`]*[ \t]*:(?<said>[^\n]*)"#));

/// Characters that may surround a verdict: punctuation of Markdown and JSON.
const MARKS: &[char] = &['*', '_', '`', '"', ',', '.', '}', ' ', '\t', '\r'];

/// The verdict after the log's first `VERDICT:`; `None` if the log has no verdict. Clean only if it says `CLEAN` and
/// nothing else.
pub fn verdict_of(log: &str) -> Option<ReviewVerdict> {
    let log = without_escapes(log);
    let said = VERDICT.captures(&log)?;
    let is_clean = said["said"]
        .trim_matches(MARKS)
        .eq_ignore_ascii_case("clean");
    Some(if is_clean {
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
            // What is not to the letter has passed nothing.
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
        ] {
            assert_eq!(verdict_of(log), expected, "{log}");
        }
    }
}
