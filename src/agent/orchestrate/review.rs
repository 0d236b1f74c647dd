//! What a review's log says of the change. Pure.

use crate::record::orchestration::ReviewVerdict;

/// What may stand around a verdict: Markdown's marks, blanks, and a mark of the byte order.
const MARKS: &[char] = &['#', '*', '>', '-', '`', '_', ' ', '\t', '\u{feff}'];

/// What the first line says that begins with `VERDICT:`, less marks: clean where nothing but `CLEAN` follows. `None`:
/// there is no such line.
#[must_use]
pub fn verdict_of(log: &str) -> Option<ReviewVerdict> {
    const LABEL: &str = "VERDICT:";
    let said = log.lines().find_map(|line| {
        let (label, said) = line
            .trim_start_matches(MARKS)
            .split_at_checked(LABEL.len())?;
        label.eq_ignore_ascii_case(LABEL).then_some(said)
    })?;
    Some(match said.trim_matches(MARKS) {
        "CLEAN" => ReviewVerdict::Clean,
        _ => ReviewVerdict::Issues,
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
            ("Verdict: clean", Some(Issues)),
            ("VERDICT: CLEAN?", Some(Issues)),
            ("VERDICT: CLEAN.", Some(Issues)),
            ("VERDICT: CLEAN (but see P1)", Some(Issues)),
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
