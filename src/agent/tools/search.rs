//! The tool `search_files`: the lines of a project's files that a pattern matches.
//!
//! Looks where [`list`](super::list) looks: into no link and nothing that git ignores. Files that commonly hold
//! credentials, binary ones and large ones are left out. Guarantees that what is read and what is shown are bounded.

use std::path::Path;

use regex::Regex;

use super::list::files_below;
use super::place::{Found, Outside, ResolvedPath, missing, quoted, unreadable};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::sys::numbers::counted;
use crate::sys::text::{cut, escaped};

/// How many lines are shown.
const SHOWN: usize = 200;
/// How much of a line is shown, in characters.
const LONGEST_LINE: usize = 200;
/// How long a pattern may be, in bytes.
const LONGEST_PATTERN: usize = 1000;
/// A larger file is left out, in bytes.
const LARGEST: u64 = 4 << 20;
/// How much is read of all files together, in bytes.
const READ_AT_MOST: usize = 256 << 20;
/// How much of an error about a pattern is told, in characters.
const QUOTED_ERROR: usize = 300;

/// How the model knows the tool.
pub static SEARCH_FILES: ToolSpec = ToolSpec::new(
    "search_files",
    "Search the project's files, without those that git ignores, for the lines that a regular expression matches. Use \
     this to find out where something is defined or used.",
    &[
        Parameter::new(
            "pattern",
            ParameterKind::Text,
            "A regular expression; it is matched line by line, with regard to case",
        )
        .example("TODO|FIXME"),
        Parameter::new(
            "path",
            ParameterKind::Path,
            "A directory, or a file, to search",
        )
        .or("."),
    ],
    Effect::Reads,
);

/// Searches files.
#[derive(Debug, Clone, Copy)]
pub struct SearchFiles<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Whether files elsewhere may be searched.
    pub outside: Outside,
}

impl Tool for SearchFiles<'_> {
    fn spec(&self) -> &ToolSpec {
        &SEARCH_FILES
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let pattern = arguments.get("pattern");
        let found = parsed(pattern).and_then(|regex| self.search(&regex, arguments.get("path")));
        let found = found.map_err(ToolError::failed)?;
        Ok(ToolOutput {
            brief: Some(counted(found.lines.len() as u64, "line")),
            ..ToolOutput::said(found.told(pattern))
        })
    }
}

fn parsed(pattern: &str) -> Result<Regex, String> {
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

/// What a search has found.
#[derive(Debug, Default)]
struct Matches {
    /// `path:line: text`, each.
    lines: Vec<String>,
    /// How many files were read.
    files: u64,
    read: usize,
    /// Whether there was more to read or to show.
    is_cut_short: bool,
}

impl SearchFiles<'_> {
    fn search(&self, regex: &Regex, path: &str) -> Result<Matches, String> {
        let place = ResolvedPath::of(self.root, path, self.outside)?;
        let shown = place.shown();
        let mut matches = Matches::default();
        match place.look(self.root) {
            Ok(Found::Directory) => {}
            Ok(Found::File(_)) => {
                let content = place
                    .read(self.root, LARGEST)
                    .map_err(|error| match error {
                        ToolError::Failed(problem) => problem.message,
                        ToolError::Fatal(error) => error.to_string(),
                    })?;
                matches.search(regex, &place, &content);
                return Ok(matches);
            }
            Ok(Found::Missing) => return Err(missing(self.root, &place)),
            Ok(Found::Special) => return Err(format!("{shown} is a pipe, a device or the like")),
            Err(error) => return Err(unreadable(&shown, &error)),
        }
        let files = files_below(self.root, &place);
        let (files, is_cut_short) = files.map_err(|error| unreadable(&shown, &error))?;
        matches.is_cut_short = is_cut_short;
        for file in files {
            if matches.is_full() {
                matches.is_cut_short = true;
                break;
            }
            // What may not or cannot be read is no part of the search.
            if let Ok(content) = file.read(self.root, LARGEST) {
                matches.search(regex, &file, &content);
            }
        }
        Ok(matches)
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
        for (line, number) in String::from_utf8_lossy(content).lines().zip(1..) {
            if !regex.is_match(line) {
                continue;
            }
            if self.lines.len() >= SHOWN {
                self.is_cut_short = true;
                return;
            }
            let text = escaped(&cut(line.trim(), LONGEST_LINE));
            self.lines.push(format!("{path}:{number}: {text}"));
        }
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
