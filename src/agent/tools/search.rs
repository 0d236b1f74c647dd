//! The tool `search_files`: the lines of a project's files that a pattern matches.
//!
//! Looks where [`list`](super::list) looks: into no link and nothing that git ignores. Files that commonly hold
//! credentials, binary ones and large ones are left out. Guarantees that what is read and what is shown are bounded, and
//! that a stop ends it.

use std::path::{Path, PathBuf};

use regex::Regex;

use super::list::files_below;
use super::place::{Found, Outside, ResolvedPath, quoted, unreadable};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::model::Category;
use crate::record::tool::Verb;
use crate::sys::interrupt::Interrupt;
use crate::sys::numbers::counted;
use crate::sys::text::{cut, escaped};

/// The most lines that are shown.
const SHOWN: usize = 200;
/// Characters shown of a line.
const LONGEST_LINE: usize = 200;
/// The longest pattern, in bytes.
const LONGEST_PATTERN: usize = 1000;
/// A larger file is left out, in bytes.
pub(super) const LARGEST: u64 = 4 << 20;
/// The most that is read of all files together, in bytes.
pub(super) const READ_AT_MOST: usize = 256 << 20;
/// Characters shown of an error about a pattern.
const QUOTED_ERROR: usize = 300;

/// The tool, as the model knows it.
pub static SEARCH_FILES: ToolSpec = ToolSpec::new(
    "search_files",
    "Search the project's files, without those that git ignores, for the lines that a regular expression matches. Use \
     this to find out where something is defined or used.",
    &[
        Parameter::text("pattern", "A regular expression; it is matched line by line, with regard to case")
        .example("TODO|FIXME"),
        Parameter::path("path", "A directory, or a file, to search")
        .or("."),
    ],
    Effect::Reads,
)
.doing(Verb::Search);

/// The tool that shows lines around, too, as the model knows it.
pub static SEARCH_PROJECT: ToolSpec = ToolSpec::new(
    "search_project",
    "Searches the project's text files, without those that git ignores and those that hold credentials, for the lines \
     that a regular expression matches. At most 200 lines are shown.",
    &[
        Parameter::text("pattern", "A regular expression in Rust's syntax, matched line by line; `(?i)` before it takes letters of either case"),
        Parameter::path("path", "The directory, or the file, to search")
        .or("."),
        Parameter::new(
            "context",
            ParameterKind::Json(r#"{"type": "integer", "minimum": 0, "maximum": 20}"#),
            "How many lines to show before and behind each that matches",
        )
        .or("0"),
    ],
    Effect::Reads,
)
.of_category(Category::Search)
.doing(Verb::Search);

/// Searches files, and shows the lines around, where a call has a `context`.
#[derive(Debug, Clone, Copy)]
pub struct SearchFiles<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Allows or refuses files elsewhere.
    pub outside: Outside,
    /// Paths left out of a search with what lies below them: absolute, links resolved.
    pub closed: &'a [PathBuf],
    /// Ends it.
    pub interrupt: &'a Interrupt,
}

impl Tool for SearchFiles<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let pattern = arguments.get("pattern");
        let regex = parsed(pattern).map_err(ToolError::failed)?;
        let context = arguments.number("context");
        let mut matches = Matches {
            context: context.and_then(|lines| usize::try_from(lines).ok()),
            ..Matches::default()
        };
        let is_whole = self.each_file(arguments.get("path"), |file, content| {
            matches.search(&regex, file, &content);
            !matches.is_full()
        });
        self.interrupt.check()?;
        matches.is_cut_short |= !is_whole.map_err(ToolError::failed)?;
        Ok(ToolOutput {
            brief: Some(counted(matches.matching, "line")),
            ..ToolOutput::said(matches.told(pattern))
        })
    }
}

/// The pattern that a call has.
pub(super) fn parsed(pattern: &str) -> Result<Regex, String> {
    if pattern.is_empty() {
        return Err("the pattern is empty: it would match every line".to_owned());
    }
    if pattern.len() > LONGEST_PATTERN {
        return Err(format!(
            "the pattern is longer than {LONGEST_PATTERN} bytes; use a shorter one"
        ));
    }
    Regex::new(pattern).map_err(|error| {
        format!(
            "{} is no regular expression: {}; put a `\\` before a sign that is to stand for itself",
            quoted(pattern),
            cut(&error.to_string(), QUOTED_ERROR)
        )
    })
}

/// The findings of a search.
#[derive(Debug, Default)]
struct Matches {
    /// `path:line: text`, each; of a line around it, `path-line- text`.
    lines: Vec<String>,
    /// The number of lines that match.
    matching: u64,
    /// Lines shown around a match, all with their indentation; `None` for the matches alone, trimmed.
    context: Option<usize>,
    /// Files that were read.
    files: u64,
    read: usize,
    /// Set if there was more to read or to show.
    is_cut_short: bool,
}

impl SearchFiles<'_> {
    /// Hands each file at `path` to `take`, or below it, until it wants no more, or a stop comes; tells whether that was all of them. What
    /// may not or cannot be read is no part of them.
    pub(super) fn each_file(
        &self,
        path: &str,
        mut take: impl FnMut(&ResolvedPath, Vec<u8>) -> bool,
    ) -> Result<bool, String> {
        let place = ResolvedPath::of(self.root, path, self.outside)?;
        let shown = place.shown();
        match place.find(self.root)? {
            Found::Directory => {}
            Found::File(_) => {
                let content = place
                    .read(self.root, LARGEST)
                    .map_err(|error| match error {
                        ToolError::Failed(problem) => problem.message,
                        ToolError::Fatal(error) => error.to_string(),
                    })?;
                take(&place, content);
                return Ok(true);
            }
            Found::Special | Found::Missing => {
                return Err(format!("{shown} is a pipe, a device or the like"));
            }
        }
        let files = files_below(self.root, &place, self.interrupt);
        let (files, is_cut_short) = files.map_err(|error| unreadable(&shown, &error))?;
        let mut wants_more = true;
        for file in files {
            let path = file.path(self.root);
            if self.closed.iter().any(|closed| path.starts_with(closed)) {
                continue;
            }
            if !wants_more || self.interrupt.check().is_err() {
                return Ok(false);
            }
            if let Ok(content) = file.read(self.root, LARGEST) {
                wants_more = take(&file, content);
            }
        }
        Ok(!is_cut_short)
    }
}

impl Matches {
    fn is_full(&self) -> bool {
        self.lines.len() >= SHOWN || self.read >= READ_AT_MOST
    }

    /// Searches a file.
    fn search(&mut self, regex: &Regex, file: &ResolvedPath, content: &[u8]) {
        self.read += content.len();
        self.files += 1;
        if content.contains(&0) {
            return;
        }
        let path = file.shown();
        let path = path.trim_matches('`');
        let text = String::from_utf8_lossy(content);
        let lines: Vec<&str> = text.lines().collect();
        let context = self.context.unwrap_or_default();
        // Those before this one are shown, or not to be.
        let mut next = 0;
        for (at, line) in lines.iter().enumerate() {
            if self.is_cut_short {
                return;
            }
            if !regex.is_match(line) {
                continue;
            }
            self.matching += 1;
            let first = at.saturating_sub(context).max(next);
            if context > 0 && (first > next || next == 0) && !self.lines.is_empty() {
                self.lines.push("--".to_owned());
            }
            next = lines.len().min(at + context + 1);
            for (line, text) in (first..).zip(lines.get(first..next).unwrap_or_default()) {
                self.show(path, line + 1, text, line == at || regex.is_match(text));
            }
        }
    }

    fn show(&mut self, path: &str, number: usize, line: &str, is_match: bool) {
        if self.lines.len() >= SHOWN {
            self.is_cut_short = true;
            return;
        }
        let line = match self.context {
            None => line.trim(),
            Some(_) => line.trim_end(),
        };
        let text = escaped(&cut(line, LONGEST_LINE));
        let sign = if is_match { ':' } else { '-' };
        self.lines
            .push(format!("{path}{sign}{number}{sign} {text}"));
    }

    fn told(&self, pattern: &str) -> String {
        let mut told = match self.lines.as_slice() {
            [] => {
                let files = counted(self.files, "file");
                format!("no line in {files} matches {}\n", quoted(pattern))
            }
            lines => lines.iter().map(|line| format!("{line}\n")).collect(),
        };
        if self.is_cut_short {
            told.push_str("[there is more than is searched or shown at once; name a directory, or a narrower pattern]\n");
        }
        told
    }
}

#[cfg(test)]
mod tests;
