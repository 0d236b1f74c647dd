//! The choice of one of several attempts that have passed. Pure.

use crate::record::choice::AttemptRecord;
use crate::record::gate::GateChange;
use crate::sys::numbers::counted;

/// Returns the index of the attempt to take, and the reason. Among those that have passed, attempts that change
/// something come first, then those that leave the gate unchanged, then those with the smallest changes. Takes the
/// first in this order that `accepts` approves, or the very first if it approves none.
pub fn choose(
    attempts: &[AttemptRecord],
    accepts: impl FnMut(usize) -> bool,
) -> Option<(usize, String)> {
    let key = |attempt: &AttemptRecord| {
        let has_changed = attempt.gate == Some(GateChange::Changed);
        // A reply without edits passes if the project did, but is not a change.
        (attempt.lines == Some(0), has_changed, attempt.lines)
    };
    let mut passed: Vec<_> = attempts
        .iter()
        .enumerate()
        .filter(|(_, attempt)| attempt.passed)
        .collect();
    passed.sort_by_key(|(_, attempt)| key(attempt));
    let mut order = passed.iter().map(|(at, _)| *at);
    if let Some(rank @ 1..) = order.clone().position(accepts) {
        let why = "the best of those that `--gate` and `--deny-warnings` let pass";
        return Some((order.nth(rank)?, why.to_owned()));
    }
    let (at, best) = *passed.first()?;
    let lines = counted(best.lines.unwrap_or_default(), "line");
    let why = match passed.get(1) {
        None => "the only one that has passed".to_owned(),
        Some((_, next)) if key(next).0 != key(best).0 => {
            "the only one that has passed with a change".to_owned()
        }
        Some((_, next)) if key(next).1 != key(best).1 => {
            "the only one that has passed without changing the gate".to_owned()
        }
        Some((_, next)) if next.lines == best.lines => {
            format!("the first of those with the smallest change that has passed: {lines}")
        }
        Some(_) => format!("the smallest change that has passed: {lines}"),
    };
    Some((at, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_that_the_end_accepts_is_taken_and_no_more_are_judged_than_it_takes() {
        let attempt = |lines| AttemptRecord {
            passed: lines > 0,
            lines: Some(lines),
            ..AttemptRecord::default()
        };
        let attempts = [3, 1, 0, 2].map(attempt);
        for (accepted, taken, judged) in [
            (&[0, 1, 3][..], 1, &[1][..]),
            (&[0, 3], 3, &[1, 3]),
            (&[0], 0, &[1, 3, 0]),
            (&[], 1, &[1, 3, 0]),
        ] {
            let mut order = Vec::new();
            let accepts = |at| {
                order.push(at);
                accepted.contains(&at)
            };
            let chosen = choose(&attempts, accepts);
            assert_eq!(chosen.map(|(at, _)| at), Some(taken));
            assert_eq!(order, judged);
        }
    }

    #[test]
    fn an_unchanged_gate_comes_first_then_the_smallest_change_then_the_order() {
        use GateChange::{Added, Changed, None as Same};
        for (attempts, expected) in [
            (&[][..], None),
            (&[(false, Same, 1)][..], None),
            (
                &[(false, Same, 1), (true, Changed, 9)],
                Some((1, "the only one that has passed")),
            ),
            (
                &[(true, Changed, 1), (true, Same, 9)],
                Some((1, "the only one that has passed without changing the gate")),
            ),
            (
                &[(true, Same, 3), (true, Added, 2), (true, Changed, 1)],
                Some((1, "the smallest change that has passed: 2 lines")),
            ),
            (
                &[(true, Same, 0), (true, Changed, 9)],
                Some((1, "the only one that has passed with a change")),
            ),
            (
                &[(true, Same, 2), (true, Same, 2)],
                Some((
                    0,
                    "the first of those with the smallest change that has passed: 2 lines",
                )),
            ),
        ] {
            let attempts = attempts.iter().map(|(passed, gate, lines)| AttemptRecord {
                passed: *passed,
                gate: Some(*gate),
                lines: Some(*lines),
                ..AttemptRecord::default()
            });
            let chosen = choose(&attempts.collect::<Vec<_>>(), |_| true);
            assert_eq!(chosen, expected.map(|(at, why)| (at, why.to_owned())));
        }
    }
}
