//! Finds errors and warnings in the output of a build, whichever tool wrote them. Pure.

mod reader;
mod table;

use std::sync::LazyLock;

use regex::Regex;

use self::reader::overwritten;
pub use self::reader::read;
use self::table::{Kind, pattern};
use crate::record::finding::Severity;
use crate::secret::escapes::without_escapes;
use crate::sys::text::{cut, regex};

/// Maximum number of lines found of each severity.
pub const MOST: usize = 200;
/// Maximum distance, in lines, from a compiler's message down to its location.
const NEAR: usize = 3;
/// Number of lines shown as the reasons for a failed build.
const REASONS: usize = 10;
/// Number of lines shown as an excerpt of the output.
const EXCERPT: usize = 12;
/// Maximum distance, in lines, from a message up to its location.
const ABOVE: usize = 5;
/// Maximum number of characters shown of a line.
const LONGEST: usize = 300;

/// A line that reports an error or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line's index, starting at 0.
    pub line: usize,
    /// The line's severity: an error or a failed test, or a warning.
    pub severity: Severity,
    /// The location in the sources, if one of the next lines gives it.
    pub place: Option<String>,
}

/// The line that gives the location below rustc's message or Python's heading.
static AT: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"^\s*--> (\S.*:\d+:\d+)\s*$|^\s+File "(.+", line \d+)"#));
/// A location anywhere in a line: `a_test.go:6`, `a.ts(3,5)`.
static IN_LINE: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"[\w/-]\.\w+(?::\d|\(\d)|^\s*File ".+", line \d"#));
/// The line that gives the location above the message in node and Python.
static OVER: LazyLock<Regex> = LazyLock::new(|| regex(r#"^\S+:\d+$|^\s+File ".+", line \d"#));

/// Finds the lines that report errors and warnings, in order.
pub fn find(lines: &[&str]) -> Vec<Diagnostic> {
    let mut left = [MOST, MOST];
    let mut findings = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(severity) = severity(line) else {
            continue;
        };
        let left = &mut left[usize::from(severity == Severity::Warning)];
        if *left > 0 {
            *left -= 1;
            findings.push(Diagnostic {
                line: at,
                severity,
                place: place(&lines[at + 1..]),
            });
        }
    }
    findings
}

/// Returns the reasons that a build failed, in a few lines: the errors in its output, or its last lines if no error is
/// found.
pub fn reasons(output: &str) -> Vec<String> {
    let lines = seen_lines(output);
    let errors = errors_in(&lines);
    if !errors.is_empty() {
        return errors;
    }
    let latest = lines
        .iter()
        .filter(|line| !line.is_empty())
        .rev()
        .take(REASONS);
    let mut last: Vec<String> = latest.map(|line| cut(line, LONGEST).into_owned()).collect();
    last.reverse();
    if last.is_empty() {
        last.push("it printed nothing".to_owned());
    }
    last
}

/// Returns the first errors in an output, each with its location.
pub fn errors(output: &str) -> Vec<String> {
    errors_in(&seen_lines(output))
}

/// Returns the lines of an output as a terminal shows them.
fn seen_lines(output: &str) -> Vec<String> {
    let seen = |line: &str| overwritten(line).trim_end().replace('\t', "    ");
    without_escapes(output).lines().map(seen).collect()
}

fn errors_in(lines: &[String]) -> Vec<String> {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let mut found = find(&lines);
    found.retain(|one| one.severity == Severity::Error);
    if found.is_empty() || found.iter().any(|error| error.is_complete(&lines)) {
        return listed(&found, &lines);
    }
    excerpt(&found, &lines)
}

/// Lists the first errors, one per line.
fn listed(found: &[Diagnostic], lines: &[&str]) -> Vec<String> {
    let first = found.iter().take(REASONS);
    let mut errors: Vec<String> = first.map(|error| error.described(lines)).collect();
    let at_least = if found.len() < MOST { "" } else { "at least " };
    let more = found.len().saturating_sub(REASONS);
    if more > 0 {
        errors.push(format!("and {at_least}{more} more"));
    }
    errors
}

/// Returns an excerpt for errors that are mere headings: the output from the first error with a location nearby;
/// without one, all the rest of a short output, or the errors of a longer one.
fn excerpt(found: &[Diagnostic], lines: &[&str]) -> Vec<String> {
    let ends = found
        .iter()
        .skip(1)
        .map(|next| next.line)
        .chain([lines.len()]);
    let mut starts = found.iter().zip(ends).filter_map(|(error, end)| {
        let at = error.line;
        // The cause is far from the beginning of a trace.
        if lines[at].starts_with("Traceback") {
            return None;
        }
        let above = (at.saturating_sub(ABOVE)..at)
            .rev()
            .find(|above| OVER.is_match(lines[*above]));
        let below = || {
            let near = lines[at..end].iter().filter(|line| !line.is_empty());
            let is_place = near.take(EXCERPT).any(|line| IN_LINE.is_match(line));
            is_place.then_some(at)
        };
        above.or_else(below)
    });
    let near = starts.next();
    let excerpt = lines[near.unwrap_or(found[0].line)..]
        .iter()
        .filter(|line| !line.is_empty());
    if near.is_none() && excerpt.clone().count() > EXCERPT {
        return listed(found, lines);
    }
    let first = excerpt.take(EXCERPT);
    first.map(|line| cut(line, LONGEST).into_owned()).collect()
}

impl Diagnostic {
    /// Returns the line itself, with its location.
    fn described(&self, lines: &[&str]) -> String {
        let line = cut(lines[self.line].trim(), LONGEST);
        match &self.place {
            Some(place) => format!("{line} ({})", cut(place, LONGEST)),
            None => line.into_owned(),
        }
    }

    /// Returns whether the line by itself gives both the problem and its location.
    fn is_complete(&self, lines: &[&str]) -> bool {
        let line = lines[self.line];
        !line.ends_with(':') && (self.place.is_some() || IN_LINE.is_match(line))
    }
}

fn severity(line: &str) -> Option<Severity> {
    match pattern(line)?.kind {
        Kind::Warning => Some(Severity::Warning),
        Kind::Place | Kind::Tag | Kind::Topic | Kind::Skip => None,
        _ => Some(Severity::Error),
    }
}

/// Finds the location in the lines after a message, up to the next message.
fn place(behind: &[&str]) -> Option<String> {
    let mut near = behind
        .iter()
        .take(NEAR)
        .take_while(|line| severity(line).is_none());
    near.find_map(|line| {
        let found = AT.captures(line)?;
        Some(found.get(1).or(found.get(2))?.as_str().replace('"', ""))
    })
}

#[cfg(test)]
mod tests;
