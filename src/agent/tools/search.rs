//! `search_files`: finds the lines of a project's files that match a pattern.
//!
//! Covers the same files as [`list`](super::list): it follows no links and skips what git ignores. Files that commonly
//! contain credentials, binary files and large files are skipped, too. Guarantees that the amount of data read and
//! shown is limited, and that an interrupt ends it.

use regex::Regex;

use super::files::ReadAccess;
use super::list::files_below;
use super::resolved_path::{Found, ResolvedPath, quoted, unreadable};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::edit::beneath::{Beneath, Root};
use crate::record::tool::{Category, Verb};
use crate::sys::numbers::counted;
use crate::sys::text::{cut, escaped};

/// Maximum number of lines shown.
const SHOWN: usize = 200;
/// Maximum length of a shown line, in characters.
const LONGEST_LINE: usize = 200;
/// Maximum length of a pattern, in bytes.
const LONGEST_PATTERN: usize = 1000;
/// Maximum size of a file, in bytes; larger ones are skipped.
pub(super) const LARGEST: u64 = 4 << 20;
/// Maximum amount of data read from all files together, in bytes.
pub(super) const READ_AT_MOST: usize = 256 << 20;
/// Maximum length of an error about a pattern, in characters.
const QUOTED_ERROR: usize = 300;

/// The description of `search_files`.
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

/// The description of `search_project`, which can also show surrounding lines.
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
            "How many lines to show before and after each match",
        )
        .or("0"),
    ],
    Effect::Reads,
)
.of_category(Category::Search)
.doing(Verb::Search);

/// Searches files, and shows surrounding lines if the call has a `context`.
#[derive(Debug, Clone, Copy)]
pub struct SearchFiles<'a>(pub ReadAccess<'a>);

impl Tool for SearchFiles<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let pattern = arguments.get("pattern");
        let regex = parsed(pattern)?;
        let context = arguments.number("context");
        let mut matches = Matches {
            context: context.and_then(|lines| usize::try_from(lines).ok()),
            ..Matches::default()
        };
        let is_whole = self.each_file(arguments.get("path"), |file, content| {
            matches.search(&regex, file, &content);
            !matches.is_full()
        });
        self.0.interrupt.check()?;
        matches.is_cut_short |= !is_whole?;
        let brief = counted(matches.matching, "line");
        Ok(ToolOutput::text(matches.report(pattern)).in_brief(brief))
    }
}

/// Compiles the pattern of a call.
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
    /// The lines to show: `path:line: text` for a match, `path-line- text` for a line around one.
    lines: Vec<String>,
    /// The number of matching lines.
    matching: u64,
    /// The number of lines to show around a match, with indentation; if `None`, only matches are shown, trimmed.
    context: Option<usize>,
    /// The number of files read.
    files: u64,
    read: usize,
    /// Set if there was more to read or to show.
    is_cut_short: bool,
}

impl SearchFiles<'_> {
    /// Passes each file at or below `path` to `take`, until that returns `false` or an interrupt arrives; returns
    /// `true` if all files were covered. Files that may not or cannot be read are skipped.
    pub(super) fn each_file(
        &self,
        path: &str,
        mut take: impl FnMut(&ResolvedPath, Vec<u8>) -> bool,
    ) -> Result<bool, String> {
        let ReadAccess { root, outside, .. } = self.0;
        let place = ResolvedPath::of(root, path, outside)?;
        let shown = place.shown();
        match place.find(root)? {
            Found::Directory => {}
            Found::File(_) => {
                take(&place, place.read(root, LARGEST)?);
                return Ok(true);
            }
            Found::Special => {
                return Err(format!("{shown} is a pipe, a device or the like"));
            }
        }
        let (files, is_cut_short) =
            files_below(&self.0, &place).map_err(|error| unreadable(&shown, &error))?;
        let opened = Root::open(root).map_err(|errno| unreadable(&shown, &errno.into()))?;
        let mut below = Beneath::to_read(opened);
        let mut wants_more = true;
        for file in files {
            let path = file.path(root);
            if self.0.closed.iter().any(|closed| path.starts_with(closed)) {
                continue;
            }
            if !wants_more || self.0.interrupt.check().is_err() {
                return Ok(false);
            }
            if let Ok(content) = file.read_below(root, &mut below, LARGEST) {
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
        let quoted = file.shown();
        let path = quoted.trim_matches('`');
        let text = String::from_utf8_lossy(content);
        let lines: Vec<&str> = text.lines().collect();
        let context = self.context.unwrap_or_default();
        // The lines before this index have been dealt with.
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

    fn report(&self, pattern: &str) -> String {
        let mut message = match self.lines.as_slice() {
            [] => {
                let files = counted(self.files, "file");
                format!("no line in {files} matches {}\n", quoted(pattern))
            }
            lines => lines.iter().map(|line| format!("{line}\n")).collect(),
        };
        if self.is_cut_short {
            message.push_str("[there is more than is searched or shown at once; name a directory, or a narrower pattern]\n");
        }
        message
    }
}

#[cfg(test)]
mod tests;
