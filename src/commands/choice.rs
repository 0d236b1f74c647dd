//! The attempts of a commit as text: in a sentence each, and as a table.

use crate::record::choice::{AttemptRecord, ChoiceRecord};
use crate::record::gate::GateChange;
use crate::sys::numbers::counted;
use crate::sys::text::one_line;
use crate::ui::columns::{self, Align};

/// Maximum length of an error, in characters.
const LONGEST: usize = 200;

/// Describes an attempt in a sentence.
pub fn line(attempt: &AttemptRecord) -> String {
    let step = &attempt.step;
    match (&attempt.error, attempt.passed) {
        (Some(error), _) => format!("{step} came to no build: {}", one_line(error, LONGEST)),
        (None, true) => format!("{step} has passed"),
        (None, false) => {
            let found = counted(attempt.findings.unwrap_or_default() as u64, "finding");
            format!("{step} has not passed: {found}")
        }
    }
}

/// Lists the attempts, and tells which one was taken.
pub fn table(choice: &ChoiceRecord) -> Vec<String> {
    let head = [
        "attempt", "model", "pass", "gate", "lines", "dollars", "seconds",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(choice.attempts.iter().map(|attempt| {
        let gate = attempt.gate.map(|gate| match gate {
            GateChange::None => "none",
            GateChange::Added => "added",
            GateChange::Changed => "changed",
        });
        let lines = attempt.lines.map(|lines| lines.to_string());
        let cost = attempt.cost.map(|cost| cost.to_string());
        vec![
            attempt.step.clone(),
            attempt.model.clone(),
            if attempt.passed { "yes" } else { "no" }.to_owned(),
            gate.unwrap_or("-").to_owned(),
            lines.unwrap_or("-".to_owned()),
            cost.unwrap_or("?".to_owned()),
            attempt.seconds.to_string(),
        ]
    }));
    let aligns = [
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Right,
    ];
    let mut lines = columns::aligned(&rows, &aligns);
    lines.push(match choice.taken.as_ref().zip(choice.why.as_ref()) {
        Some((taken, why)) => format!("{taken} is taken: {why}"),
        None => "none is taken".to_owned(),
    });
    lines
}
