//! The attempts of a commit, in one sentence each and as a table. Pure.

use crate::record::choice::{AttemptRecord, ChoiceRecord};
use crate::record::gate::GateChange;
use crate::run::past::table::{Row, Table};
use crate::sys::numbers::counted;
use crate::sys::text::one_line;

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

/// Lists the attempts.
pub fn table(choice: &ChoiceRecord) -> Table {
    let rows = choice.attempts.iter().map(|attempt| {
        let gate = attempt.gate.map(|gate| match gate {
            GateChange::None => "none",
            GateChange::Added => "added",
            GateChange::Changed => "changed",
        });
        let passed = match (attempt.passed, attempt.findings, &attempt.error) {
            (true, ..) => "yes",
            // The run was killed before it was built.
            (false, None, None) => "-",
            (false, ..) => "no",
        };
        let lines = attempt
            .lines
            .map_or("-".to_owned(), |lines| lines.to_string());
        let cost = attempt.cost.map_or("?".to_owned(), |cost| cost.to_string());
        let texts = [&attempt.step, &attempt.model, passed, gate.unwrap_or("-")];
        let numbers = [lines, cost, attempt.seconds.to_string()];
        Row::new(texts.map(str::to_owned), numbers)
    });
    let (texts, numbers) = (
        ["attempt", "model", "pass", "gate"],
        ["lines", "dollars", "seconds"],
    );
    Table::new(&texts, &numbers, "", rows, usize::MAX)
}

/// Says which attempt was taken.
pub fn taken(choice: &ChoiceRecord) -> String {
    match (&choice.taken, &choice.why) {
        (Some(taken), Some(why)) => format!("{taken} is taken: {why}"),
        (Some(taken), None) => format!("{taken} is taken"),
        (None, Some(why)) => why.clone(),
        (None, None) => "none is taken: nothing was applied".to_owned(),
    }
}
