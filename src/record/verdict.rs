//! Verdicts of an auditor: read from the last `Overall:` line, and from the rows of the tables. Pure.
//!
//! Guarantees that nothing passes but what such a line passes, and that under a row that says FAIL not even
//! that does. What stands in a code fence is quoted, unless the whole answer is one.

#[cfg(test)]
mod tests;

use crate::sys::fences::{Fence, FenceLine, FenceScanner};

/// The form of the verdict, explained to the auditor.
pub const FORM: &str = "when you know enough, end your answer, in the place of a tool, with a line `Overall: PASS` or \
                        a line `Overall: FAIL`, outside code fences, and a line `Feedback: ...` under it";

/// An auditor's verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// True if the work is accepted.
    pub passed: bool,
    /// Instructions for the one who did the work. Never blank where the work is not accepted.
    pub feedback: String,
    /// A report for the reader of the auditor's checks: the text in front of the verdict. May be blank.
    pub seen: String,
}

impl Verdict {
    /// Formats it for a reader; for accepted work, with the report of the checks.
    pub fn told(&self) -> String {
        match (self.passed, self.seen.as_str(), self.feedback.as_str()) {
            (true, "", "") => "The work is accepted.".to_owned(),
            (true, seen, feedback) => format!("{seen}\n{feedback}").trim().to_owned(),
            (false, _, feedback) => feedback.to_owned(),
        }
    }
}

/// Reads an auditor's answer.
///
/// # Errors
/// A description of what is missing or unclear, for the auditor.
pub fn read(text: &str) -> Result<Verdict, String> {
    let lines = lines(text);
    let overall = |line: &AnswerLine<'_>| value(line, "overall");
    let Some(at) = lines.iter().rposition(|line| overall(line).is_some()) else {
        return Err(format!("there is no `Overall:` line: {FORM}"));
    };
    let said = passes(&overall(&lines[at]).unwrap_or_default()).ok_or_else(|| {
        let line = lines[at].text.trim().escape_debug();
        format!("`{line}` does not say plainly whether the work passes: {FORM}")
    })?;
    let failed = lines.iter().copied().filter(AnswerLine::is_failed_row);
    let failed: Vec<AnswerLine<'_>> = failed.collect();
    let seen = joined(&lines[..at]).trim().to_owned();
    let mut feedback = feedback(&lines[at + 1..]);
    let passed = said && failed.is_empty();
    if !passed && !failed.is_empty() {
        // Where the words praise the work, this is why it comes back.
        feedback = format!("These checks failed:\n{}\n\n{feedback}", joined(&failed));
        feedback.truncate(feedback.trim_end().len());
    } else if !passed && feedback.is_empty() {
        feedback.clone_from(&seen);
    }
    if !passed && feedback.is_empty() {
        return Err(format!("there is no feedback to work by: {FORM}"));
    }
    Ok(Verdict {
        passed,
        feedback,
        seen,
    })
}

/// A line of the answer.
#[derive(Debug, Clone, Copy)]
struct AnswerLine<'t> {
    text: &'t str,
    /// True if it stands outside code fences.
    is_outside: bool,
}

impl AnswerLine<'_> {
    /// Returns whether it is a table's row in which a cell says FAIL: at its beginning and in capitals, or as its only
    /// word. Others may tell of failures that are handled.
    fn is_failed_row(&self) -> bool {
        let is_row = self.is_outside && self.text.trim_start().starts_with('|');
        let mut cells = self.text.split('|').map(words);
        is_row
            && cells.any(|words| match words.first().map(String::as_str) {
                None => false,
                Some("FAIL" | "FAILED") => true,
                Some(_) => words.iter().all(|word| is_fail(word)),
            })
    }
}

/// The lines, and which stand in fences; of an answer that is one fenced block, the lines in it.
fn lines(text: &str) -> Vec<AnswerLine<'_>> {
    let mut fences = FenceScanner::default();
    let lines = text.trim_matches(['\n', '\r', '\u{feff}']).lines();
    let lines: Vec<_> = lines.map(|line| (line, fences.step(line))).collect();
    let is_inner =
        |(line, kind): &(&str, FenceLine)| *kind == FenceLine::Inside && Fence::of(line).is_none();
    if let [(_, FenceLine::Opening), inner @ .., _] = lines.as_slice()
        && fences.open().is_none()
        && inner.iter().all(is_inner)
    {
        let inner = inner.iter().map(|(text, _)| AnswerLine {
            text,
            is_outside: true,
        });
        return inner.collect();
    }
    let lines = lines.into_iter().map(|(text, kind)| AnswerLine {
        text,
        is_outside: kind == FenceLine::Outside,
    });
    lines.collect()
}

/// Returns the text behind a label and its colon, less the marks of bold text.
fn value(line: &AnswerLine<'_>, label: &str) -> Option<String> {
    let plain = line.text.replace("**", "").replace("__", "");
    let plain = plain.trim_start_matches(['#', '-', '*', '_', ' ', '\t']);
    let (start, rest) = plain.split_at_checked(label.len())?;
    let value = rest.trim_start().strip_prefix(':')?;
    (line.is_outside && start.eq_ignore_ascii_case(label)).then(|| value.trim().to_owned())
}

/// Reads the first word, with or without marks, if the words behind it do not say that work fails.
fn passes(value: &str) -> Option<bool> {
    let words = words(value);
    match words.as_slice() {
        [first, ..] if is_fail(first) => Some(false),
        [first, rest @ ..] if is_one(first, ["PASS", "PASSED"]) && !value.contains('?') => {
            (!rest.iter().any(|word| is_fail(word))).then_some(true)
        }
        _ => None,
    }
}

fn is_fail(word: &str) -> bool {
    is_one(word, ["FAIL", "FAILED"])
}

fn is_one(word: &str, words: [&str; 2]) -> bool {
    words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

/// The words; a sign that stands for a failure is one.
fn words(text: &str) -> Vec<String> {
    let text = text.replace(['❌', '✗', '✘', '✖', '❎', '🔴'], " FAIL ");
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// Returns the text behind `Feedback:`, to the end; without that, all that is there.
fn feedback(lines: &[AnswerLine<'_>]) -> String {
    let labelled = |line| value(line, "feedback");
    let at = lines.iter().position(|line| labelled(line).is_some());
    let below = joined(&lines[at.map_or(0, |at| at + 1)..]);
    let first = at.and_then(|at| labelled(&lines[at]));
    let all = format!("{}\n{below}", first.unwrap_or_default());
    all.trim().to_owned()
}

fn joined(lines: &[AnswerLine<'_>]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.text).collect();
    lines.join("\n")
}
