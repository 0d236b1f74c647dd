//! Parses an auditor's verdict from the last `Overall:` line and the rows of its tables. Pure.
//!
//! Guarantees that work passes only if that line says so and no row says FAIL. Text in a code fence is a quotation,
//! unless the whole answer is in one.

#[cfg(test)]
mod tests;

use crate::sys::fences::{Fence, FenceLine, FenceScanner};

/// The format of a verdict, as explained to the auditor.
pub const FORM: &str = "when you know enough, end your answer, in the place of a tool, with a line `Overall: PASS` or \
                        a line `Overall: FAIL`, outside code fences, and a line `Feedback: ...` under it";

/// The characters between the cells of a table's row.
const BARS: [char; 2] = ['|', '│'];

/// An auditor's verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// True if the work is accepted.
    pub passed: bool,
    /// Instructions for the agent that did the work; never blank if the work is not accepted.
    pub feedback: String,
    /// The report on the auditor's checks: the text before the verdict. May be blank.
    pub seen: String,
}

impl Verdict {
    /// Formats the verdict for a reader; for accepted work, with the report on the checks.
    pub fn message(&self) -> String {
        let is_none = self
            .feedback
            .trim_end_matches('.')
            .eq_ignore_ascii_case("none");
        let feedback = if is_none { "" } else { &self.feedback };
        match (self.passed, self.seen.as_str(), feedback) {
            (true, "", "") => "The work is accepted.".to_owned(),
            (true, seen, feedback) => format!("{seen}\n{feedback}").trim().to_owned(),
            (false, ..) => self.feedback.clone(),
        }
    }
}

/// Parses an auditor's answer.
///
/// # Errors
/// A description of what is missing or unclear; [`FORM`] tells the auditor what to write.
pub fn read(text: &str) -> Result<Verdict, String> {
    let lines = lines(text);
    let overall = |line: &AnswerLine<'_>| value(line, "overall");
    let Some(at) = lines.iter().rposition(|line| overall(line).is_some()) else {
        return Err("there is no `Overall:` line".to_owned());
    };
    let said = passes(&overall(&lines[at]).unwrap_or_default()).ok_or_else(|| {
        let line = lines[at].text.trim().escape_debug();
        format!("`{line}` does not say plainly whether the work passes")
    })?;
    let mut failed = lines.clone();
    failed.retain(AnswerLine::is_failed_row);
    let seen = joined(&lines[..at]).trim().to_owned();
    let mut feedback = feedback(&lines[at + 1..]);
    let passed = said && failed.is_empty();
    if !passed && !failed.is_empty() {
        // The failed checks are the reason for the verdict, even if the text praises the work.
        feedback = format!("These checks failed:\n{}\n\n{feedback}", joined(&failed));
        feedback.truncate(feedback.trim_end().len());
    } else if !passed && feedback.is_empty() {
        feedback.clone_from(&seen);
    }
    if !passed && feedback.is_empty() {
        return Err("there is no feedback to work by".to_owned());
    }
    Ok(Verdict {
        passed,
        feedback,
        seen,
    })
}

/// A line of an auditor's answer.
#[derive(Debug, Clone, Copy)]
struct AnswerLine<'t> {
    text: &'t str,
    /// True if the line is outside code fences.
    is_outside: bool,
}

impl AnswerLine<'_> {
    /// Returns whether the line is a table row, wherever the table stands, with a cell that says FAIL: at its start and
    /// in capitals, or as its only word. Other cells may describe failures that are handled.
    fn is_failed_row(&self) -> bool {
        let is_row =
            self.is_outside && self.text.contains(BARS) && value(self, "overall").is_none();
        let mut cells = self.text.split(BARS).map(words);
        is_row
            && cells.any(|words| match words.first().map(String::as_str) {
                None => false,
                Some("FAIL" | "FAILED") => true,
                Some(_) => words.iter().all(|word| is_fail(word)),
            })
    }
}

/// Splits an answer into lines, noting which are in code fences. Strips the fence from an answer that is one block.
fn lines(text: &str) -> Vec<AnswerLine<'_>> {
    let mut fences = FenceScanner::default();
    let whole = text.trim_matches(['\n', '\r', '\u{feff}']).lines();
    let all: Vec<_> = whole.map(|line| (line, fences.step(line))).collect();
    let is_inner =
        |(line, kind): &(&str, FenceLine)| *kind == FenceLine::Inside && Fence::of(line).is_none();
    let (lines, is_block) = match all.as_slice() {
        [(_, FenceLine::Opening), inner @ .., _]
            if fences.open().is_none() && inner.iter().all(is_inner) =>
        {
            (inner, true)
        }
        lines => (lines, false),
    };
    let line = |&(text, kind)| AnswerLine {
        text,
        is_outside: is_block || kind == FenceLine::Outside,
    };
    lines.iter().map(line).collect()
}

/// Returns the text after a label and its colon, without the markers of bold text.
fn value(line: &AnswerLine<'_>, label: &str) -> Option<String> {
    let plain = line.text.replace("**", "").replace("__", "");
    let bare = plain.trim_start_matches(['#', '-', '*', '_', ' ', '\t']);
    let (start, rest) = bare.split_at_checked(label.len())?;
    let value = rest.trim_start().strip_prefix(':')?;
    (line.is_outside && start.eq_ignore_ascii_case(label)).then(|| value.trim().to_owned())
}

/// Reads a verdict: PASS and nothing more than punctuation, or FAIL as the first word; `None` for anything else, such
/// as a condition.
fn passes(value: &str) -> Option<bool> {
    match words(value).as_slice() {
        [first, ..] if is_fail(first) => Some(false),
        [only] if only.eq_ignore_ascii_case("PASS") && !value.contains('?') => Some(true),
        _ => None,
    }
}

fn is_fail(word: &str) -> bool {
    word.eq_ignore_ascii_case("FAIL") || word.eq_ignore_ascii_case("FAILED")
}

/// Splits text into words; a symbol for failure becomes the word `FAIL`.
fn words(text: &str) -> Vec<String> {
    let words = text
        .replace(['❌', '✗', '✘', '✖', '❎', '🔴'], " FAIL ")
        .replace(|c: char| !c.is_alphanumeric(), " ");
    words.split_whitespace().map(str::to_owned).collect()
}

/// Returns the text after `Feedback:`, to the end; without that label, all lines.
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
