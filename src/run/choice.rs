//! The choice of one of several attempts that have passed. Pure.

use crate::record::choice::AttemptRecord;
use crate::record::gate::GateChange;
use crate::sys::numbers::counted;

/// Returns the index of the attempt to take, and the reason: of those that have passed, one that changes anything; of
/// these, one that leaves the gate as it was; of these, the one with the smallest change.
pub fn choose(attempts: &[AttemptRecord]) -> Option<(usize, String)> {
    let key = |attempt: &AttemptRecord| {
        let has_changed = attempt.gate == Some(GateChange::Changed);
        // A reply that does nothing passes where the project did, and is no change.
        (attempt.lines == Some(0), has_changed, attempt.lines)
    };
    let passed = attempts.iter().enumerate();
    let mut passed: Vec<_> = passed.filter(|(_, attempt)| attempt.passed).collect();
    passed.sort_by_key(|(_, attempt)| key(attempt));
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
            let chosen = choose(&attempts.collect::<Vec<_>>());
            let chosen = chosen.as_ref().map(|(at, why)| (*at, why.as_str()));
            assert_eq!(chosen, expected);
        }
    }
}
