//! What a review's log says of the change. Pure.

use crate::record::orchestration::ReviewVerdict;

/// The log's first verdict, at the beginning of a line but for marks such as Markdown's; whatever is not clean is an
/// issue. `None`: it has none.
#[must_use]
pub fn verdict_of(log: &str) -> Option<ReviewVerdict> {
    const LABEL: &str = "verdict";
    let is_mark = |c: char| !c.is_alphanumeric();
    let mut said = log.lines().filter_map(|line| {
        let line = line.trim_start_matches(is_mark);
        let (label, rest) = line.split_at_checked(LABEL.len())?;
        (label.eq_ignore_ascii_case(LABEL) && rest.starts_with(is_mark)).then_some(rest)
    });
    let said = said.next()?.trim_start_matches(is_mark);
    let word = said.split_whitespace().next().unwrap_or_default();
    let is_clean = word.trim_end_matches(is_mark).eq_ignore_ascii_case("clean");
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
            ("\u{feff}\n# Verdict: clean.\n", Some(Clean)),
            ("**VERDICT:** CLEAN\nVERDICT: ISSUES", Some(Clean)),
            ("# Review\n\n> `VERDICT: ISSUES`\n", Some(Issues)),
            ("{\"verdict\": \"ISSUES\"}", Some(Issues)),
            ("VERDICT: CLEAN|ISSUES", Some(Issues)),
            ("VERDICT: not clean", Some(Issues)),
            ("VERDICT: CLEANUP", Some(Issues)),
            ("VERDICT:", Some(Issues)),
            ("Verdicts differ: CLEAN", None),
            ("The VERDICT: ISSUES", None),
            ("No findings.", None),
            ("", None),
        ] {
            assert_eq!(verdict_of(log), expected, "{log}");
        }
    }
}
