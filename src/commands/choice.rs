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

/// The heads of the columns of text and of numbers.
pub const HEADS: [&[&str]; 2] = [
    &["attempt", "model", "pass", "gate"],
    &["lines", "dollars", "seconds"],
];

/// Returns the cells of text and of numbers about each attempt.
pub fn rows(choice: &ChoiceRecord) -> impl Iterator<Item = [Vec<String>; 2]> {
    choice.attempts.iter().map(|attempt| {
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
        let lines = attempt.lines.map(|lines| lines.to_string());
        let cost = attempt.cost.map(|cost| cost.to_string());
        let texts = vec![
            attempt.step.clone(),
            attempt.model.clone(),
            passed.to_owned(),
            gate.unwrap_or("-").to_owned(),
        ];
        let numbers = vec![
            lines.unwrap_or("-".to_owned()),
            cost.unwrap_or("?".to_owned()),
            attempt.seconds.to_string(),
        ];
        [texts, numbers]
    })
}

/// Tells which attempt was taken.
pub fn taken(choice: &ChoiceRecord) -> String {
    match (&choice.taken, &choice.why) {
        (Some(taken), Some(why)) => format!("{taken} is taken: {why}"),
        (Some(taken), None) => format!("{taken} is taken"),
        (None, Some(why)) => why.clone(),
        (None, None) => "none is taken: nothing was applied".to_owned(),
    }
}

/// Lists the attempts, and tells which one was taken.
pub fn table(choice: &ChoiceRecord) -> Vec<String> {
    let head = HEADS.concat().into_iter().map(str::to_owned).collect();
    let mut table = vec![head];
    table.extend(rows(choice).map(|row| row.concat()));
    let [texts, numbers] = HEADS.map(<[&str]>::len);
    let aligns = [vec![Align::Left; texts], vec![Align::Right; numbers]].concat();
    let mut lines = columns::aligned(&table, &aligns);
    lines.push(taken(choice));
    lines
}
