//! `FIND_AND_REPLACE_IN_FILE`: replaces one passage of a file.
//!
//! Guarantees that nothing changes unless the passage occurs exactly once or every occurrence should be replaced; the
//! rest of the file stays byte for byte the same. Writes as [`write`](super::write) does.

use std::ops::Range;

use memchr::{memchr_iter, memmem};

use super::files::{FileAccess, MOST_LINES, Proposed, at_lines, line_count, preview_of};
use super::resolved_path::ResolvedPath;
use super::write::put;
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::sys::numbers::{counted, grouped};
use crate::sys::text::{ends_lines_with_crlf, line_of, with_crlf};

/// Maximum size of a file to change, in bytes.
const LARGEST: u64 = 10 << 20;
/// Lines shown before and after a change.
const AROUND: usize = 2;

/// The description of `FIND_AND_REPLACE_IN_FILE`.
pub static FIND_AND_REPLACE_IN_FILE: ToolSpec = ToolSpec::new(
    "FIND_AND_REPLACE_IN_FILE",
    "Replaces a passage of a file of at most 10 MiB. It must be there exactly once: take as many lines around it as \
     that needs.",
    &[
        Parameter::path("path", "the file").example("src/config.ts"),
        Parameter::block("find", "the passage, letter by letter").example("const timeout = 30;"),
        Parameter::block("replace", "what takes its place").example("const timeout = 60;"),
    ],
    Effect::Writes,
);

/// A tool's names for the parameters of a replacement.
pub struct PassageWords {
    /// The parameter with the text to find.
    pub find: &'static str,
    /// The parameter with the replacement.
    pub replace: &'static str,
    /// Advice for a passage that occurs more than once, as the end of a sentence.
    pub once: &'static str,
}

/// The names used by `FIND_AND_REPLACE_IN_FILE`.
pub static FIND: PassageWords = PassageWords {
    find: "find",
    replace: "replace",
    once: "add lines around it, so that it is there once",
};

/// Replaces passages of files: all occurrences if `replace_all` is set; otherwise, there must be exactly one.
pub struct FindAndReplace<'a>(pub FileAccess<'a>, pub &'static PassageWords);

/// A file with a passage replaced, before it is written.
struct Edited {
    place: ResolvedPath,
    before: String,
    change: Replaced,
}

impl Tool for FindAndReplace<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let Edited { place, change, .. } = self.edited(arguments)?;
        let shown = place.shown();
        let message = match change.lines.as_slice() {
            [_] => format!("changed {shown}:\n{}", excerpt(&change)),
            lines => format!(
                "changed {shown} at {}: {}",
                counted(lines.len() as u64, "place"),
                at_lines(lines)
            ),
        };
        let words = message.trim_end().to_owned();
        put(self.0.files, &place, Some(change.text), words, None)
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        let edited = self.edited(arguments)?;
        let proposed = Proposed {
            place: edited.place,
            before: Some(edited.before.into_bytes()),
            after: Some(edited.change.text),
        };
        preview_of(self.0.files, vec![proposed]).map(Some)
    }
}

impl FindAndReplace<'_> {
    fn edited(&self, arguments: &Arguments) -> Result<Edited, String> {
        let place = self.0.resolve(arguments.get("path"))?;
        let shown = place.shown();
        let failed = |problem: String| format!("{shown}: {problem}");
        let content = place.read(self.0.read.root, LARGEST)?;
        let before = String::from_utf8(content).map_err(|error| {
            let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
            failed(format!(
                "it is not UTF-8, see line {line}; only a command can change it"
            ))
        })?;
        let change = replaced(&before, arguments, self.1).map_err(failed)?;
        Ok(Edited {
            place,
            before,
            change,
        })
    }
}

/// A text with a passage replaced.
#[derive(Debug, PartialEq, Eq)]
struct Replaced {
    text: String,
    /// The range of the last replacement, in bytes.
    range: Range<usize>,
    /// The line numbers, counted from 1, at which the replacements begin; one for each.
    lines: Vec<usize>,
}

/// Replaces the passage in `text`.
fn replaced(text: &str, arguments: &Arguments, words: &PassageWords) -> Result<Replaced, String> {
    let (find, replace) = (arguments.get(words.find), arguments.get(words.replace));
    let is_everywhere = arguments.is_set("replace_all");
    if find.is_empty() {
        return Err(format!(
            "nothing is to be found: `{}` is empty; to change all of a file, write it as a whole",
            words.find
        ));
    }
    if find == replace {
        return Err(format!(
            "it changes nothing: `{}` and `{}` are the same",
            words.find, words.replace
        ));
    }
    // New lines in a file that uses CRLF throughout get CRLF, too; and a reply may use other line endings than the
    // file.
    let is_crlf = !find.contains('\n') && ends_lines_with_crlf(text) == Some(true);
    let as_it_is = if is_crlf {
        with_crlf(replace)
    } else {
        replace.to_owned()
    };
    for (find, replace) in [
        (find.to_owned(), as_it_is),
        (with_crlf(find), with_crlf(replace)),
        (with_lf(find), with_lf(replace)),
    ] {
        let mut found: Vec<usize> = memmem::find_iter(text.as_bytes(), &find).collect();
        if let ([only], false) = (&*found, is_everywhere) {
            // An overlapping occurrence counts as another one.
            let last = memmem::rfind(text.as_bytes(), find.as_bytes());
            found.extend(last.filter(|last| last != only));
        }
        match found.len() {
            0 => {}
            2.. if !is_everywhere => return Err(ambiguous(text, &found, words)),
            _ => return Ok(spliced(text, &found, find.len(), &replace)),
        }
    }
    Err(not_found(text, find, words.find))
}

/// Replaces `length` bytes at each of these offsets of `text` with `replace`.
fn spliced(text: &str, starts: &[usize], length: usize, replace: &str) -> Replaced {
    let mut spliced = Replaced {
        text: String::with_capacity(text.len() + replace.len()),
        range: 0..0,
        lines: Vec::with_capacity(starts.len()),
    };
    let (mut done, mut line) = (0, 1);
    for start in starts {
        let kept = text.get(done..*start).unwrap_or_default();
        spliced.text.push_str(kept);
        line += newlines(kept);
        spliced.lines.push(line);
        let at = spliced.text.len();
        spliced.text.push_str(replace);
        spliced.range = at..spliced.text.len();
        line += newlines(replace);
        done = start + length;
    }
    spliced.text.push_str(text.get(done..).unwrap_or_default());
    spliced
}

fn newlines(text: &str) -> usize {
    memchr_iter(b'\n', text.as_bytes()).count()
}

fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn ambiguous(text: &str, found: &[usize], words: &PassageWords) -> String {
    let lines: Vec<usize> = found
        .iter()
        .take(MOST_LINES)
        .map(|at| line_of(text.as_bytes(), *at))
        .collect();
    format!(
        "`{}` is found {} times: {}; {}",
        words.find,
        grouped(found.len() as u64),
        at_lines(&lines),
        words.once
    )
}

/// Formats the message for a passage that was not found, with the lines that may have been meant.
fn not_found(text: &str, find: &str, word: &str) -> String {
    let first = find.lines().map(str::trim).find(|line| !line.is_empty());
    let lines: Vec<usize> = first.map_or_else(Vec::new, |first| {
        let numbered = text.lines().zip(1..);
        let holding = numbered.filter(|(line, _)| line.contains(first));
        holding.map(|(_, number)| number).take(MOST_LINES).collect()
    });
    if lines.is_empty() {
        return format!(
            "`{word}` is not found, nor is its first line; read the file to see what is there"
        );
    }
    format!(
        "`{word}` is not found; its first line is at {}, but what is around it differs, often in blanks or line \
         ends; read the file to see what is there",
        at_lines(&lines)
    )
}

/// Formats the changed lines with their surroundings, numbered.
fn excerpt(change: &Replaced) -> String {
    let bytes = change.text.as_bytes();
    let first = line_of(bytes, change.range.start);
    // A replacement that ends with a newline does not change the next line.
    let replacement = bytes.get(change.range.clone()).unwrap_or_default();
    let last = first + line_count(replacement).max(1) - 1;
    let from = first.saturating_sub(AROUND).max(1);
    let to = last + AROUND;
    let width = to.to_string().len();
    let lines = change
        .text
        .lines()
        .zip(1..)
        .skip(from - 1)
        .take_while(|(_, number)| *number <= to);
    let shown = lines.map(|(line, number)| {
        let is_changed = (first..=last).contains(&number);
        let mark = if is_changed { '>' } else { ' ' };
        format!("{mark}{number:>width$} | {line}\n")
    });
    shown.collect()
}

#[cfg(test)]
mod tests;
