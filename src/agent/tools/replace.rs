//! The tool FIND_AND_REPLACE_IN_FILE: replaces one passage of a file.
//!
//! Guarantees that nothing is changed unless the passage is there exactly once; all else of the file stays
//! byte by byte. Writes as [`write`](super::write) does.

use std::ops::Range;
use std::path::Path;

use memchr::{memchr_iter, memmem};

use super::place::{Outside, ResolvedPath};
use super::write::put;
use super::{Files, at_lines, line_count};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};

/// The largest file that is changed, in bytes.
const LARGEST: u64 = 10 << 20;
/// Matches are not counted beyond.
const MOST_MATCHES: usize = 11;
/// How many lines around a change are shown.
const AROUND: usize = 2;

/// The description of FIND_AND_REPLACE_IN_FILE.
pub static FIND_AND_REPLACE_IN_FILE: ToolSpec = ToolSpec::new(
    "FIND_AND_REPLACE_IN_FILE",
    "Replaces a passage of a file of at most 10 MiB. It must be there exactly once: take as many lines around it as \
     that needs.",
    &[
        Parameter::new("path", ParameterKind::Path, "the file").example("src/config.ts"),
        Parameter::new(
            "find",
            ParameterKind::Block,
            "the passage, letter by letter",
        )
        .example("const timeout = 30;"),
        Parameter::new("replace", ParameterKind::Block, "what takes its place")
            .example("const timeout = 60;"),
    ],
    Effect::Writes,
);

/// Replaces passages of files.
#[derive(Clone, Copy)]
pub struct FindAndReplace<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Whether files elsewhere may be changed.
    pub outside: Outside,
    /// Where the project's files are put.
    pub files: &'a dyn Files,
}

impl Tool for FindAndReplace<'_> {
    fn spec(&self) -> &ToolSpec {
        &FIND_AND_REPLACE_IN_FILE
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let path = arguments.get("path");
        let place = ResolvedPath::of(self.root, path, self.outside).map_err(ToolError::failed)?;
        let shown = place.shown();
        let failed = |problem: String| ToolError::failed(format!("{shown}: {problem}"));
        let content = place.read(self.root, LARGEST)?;
        let text = String::from_utf8(content).map_err(|error| {
            let line = line_of(error.as_bytes(), error.utf8_error().valid_up_to());
            failed(format!(
                "it is not UTF-8, see line {line}; only a command can change it"
            ))
        })?;
        let change = replaced(&text, arguments.get("find"), arguments.get("replace"));
        let change = change.map_err(failed)?;
        let excerpt = excerpt(&change);
        let said = format!("changed {shown}:\n{excerpt}");
        put(self.files, &place, change.text, said.trim_end())
    }
}

/// A text with a passage replaced.
#[derive(Debug, PartialEq, Eq)]
struct Replaced {
    text: String,
    /// Where the replacement stands in it.
    range: Range<usize>,
}

/// `text` with `replace` in the place of `find`.
fn replaced(text: &str, find: &str, replace: &str) -> Result<Replaced, String> {
    if find.is_empty() {
        return Err(
            "nothing is to be found: `find` is empty; to change all of a file, write it as a whole"
                .into(),
        );
    }
    if find == replace {
        return Err("it changes nothing: `find` and `replace` are the same".into());
    }
    // New lines of a file that has CRLF throughout end so too; and a reply may have other line ends than the file.
    let is_crlf = !find.contains('\n') && has_crlf_throughout(text);
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
        match matches(text, &find).as_slice() {
            [] => {}
            [start] => return Ok(spliced(text, *start, find.len(), &replace)),
            several => return Err(ambiguous(text, several)),
        }
    }
    Err(not_found(text, find))
}

fn spliced(text: &str, start: usize, length: usize, replace: &str) -> Replaced {
    let (before, rest) = text.split_at(start);
    let behind = rest.get(length..).unwrap_or_default();
    Replaced {
        text: [before, replace, behind].concat(),
        range: start..start + replace.len(),
    }
}

/// Where `find` stands; no more than [`MOST_MATCHES`].
fn matches(text: &str, find: &str) -> Vec<usize> {
    let (text, find) = (text.as_bytes(), find.as_bytes());
    let found: Vec<usize> = memmem::find_iter(text, find).take(MOST_MATCHES).collect();
    match (found.as_slice(), memmem::rfind(text, find)) {
        // They overlap.
        ([first], Some(last)) if *first != last => vec![*first, last],
        _ => found,
    }
}

fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n")
}

fn with_crlf(text: &str) -> String {
    with_lf(text).replace('\n', "\r\n")
}

fn has_crlf_throughout(text: &str) -> bool {
    let newlines = text.matches('\n').count();
    newlines > 0 && newlines == text.matches("\r\n").count()
}

/// The line of a byte, from 1 on.
fn line_of(text: &[u8], at: usize) -> usize {
    memchr_iter(b'\n', text.get(..at).unwrap_or(text)).count() + 1
}

fn ambiguous(text: &str, found: &[usize]) -> String {
    let lines = found.iter().map(|at| line_of(text.as_bytes(), *at));
    let lines: Vec<usize> = lines.collect();
    format!(
        "`find` is found more than once: {}; add lines around it, so that it is there once",
        at_lines(&lines)
    )
}

/// Says that nothing was found, and where the passage may have been meant.
fn not_found(text: &str, find: &str) -> String {
    let first = find.lines().map(str::trim).find(|line| !line.is_empty());
    let lines: Vec<usize> = first.map_or_else(Vec::new, |first| {
        let numbered = text.lines().zip(1..);
        let holding = numbered.filter(|(line, _)| line.contains(first));
        holding.map(|(_, number)| number).take(11).collect()
    });
    if lines.is_empty() {
        return "`find` is not found, nor is its first line; read the file to see what is there"
            .into();
    }
    format!(
        "`find` is not found; its first line is at {}, but what is around it differs, often in blanks or line \
         ends; read the file to see what is there",
        at_lines(&lines)
    )
}

/// The changed lines with some around them, numbered.
fn excerpt(change: &Replaced) -> String {
    let bytes = change.text.as_bytes();
    let first = line_of(bytes, change.range.start);
    // A replacement that ends its line changes nothing of the next one.
    let replacement = bytes.get(change.range.clone()).unwrap_or_default();
    let last = first + line_count(replacement).max(1) - 1;
    let from = first.saturating_sub(AROUND).max(1);
    let to = last + AROUND;
    let width = to.to_string().len();
    let lines = change.text.lines().zip(1..).skip(from - 1);
    let lines = lines.take_while(|(_, number)| *number <= to);
    let shown = lines.map(|(line, number)| {
        let mark = if (first..=last).contains(&number) {
            '>'
        } else {
            ' '
        };
        format!("{mark}{number:>width$} | {line}\n")
    });
    shown.collect()
}

#[cfg(test)]
mod tests;
