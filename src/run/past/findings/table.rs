//! The table of the lines with which tools report problems. Pure.

use std::sync::{LazyLock, OnceLock};

use clap::ValueEnum;
use regex::bytes::{Captures, Regex, RegexBuilder, RegexSet, RegexSetBuilder};

/// The patterns, in order.
const PATTERNS: &str = include_str!("patterns.txt");
/// The abbreviations in patterns.
const PARTS: [(&str, &str); 2] = [
    ("{at}", r"(?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?"),
    ("{message}", r"(?P<message>\S.*)$"),
];
/// Memory limit for the automaton of all patterns, more than any output requires.
const MEMORY: usize = 64 << 20;

/// The meaning of a line, as explained in `patterns.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Line,
    Row,
    Head,
    Named,
    Under,
    First,
    Place,
    Site,
    Tag,
    Rest,
    Mark,
    Topic,
    Warning,
    Skip,
}

/// A kind of line that a tool writes.
#[derive(Debug)]
pub struct Pattern {
    /// The tool; `None`: any.
    pub tool: Option<String>,
    /// The meaning of such lines.
    pub kind: Kind,
    text: String,
    regex: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Reads a line of the table.
    fn read(line: &str) -> Option<Self> {
        let (tool, rest) = line.split_once(char::is_whitespace)?;
        let (kind, text) = rest.trim_start().split_once(char::is_whitespace)?;
        let expand = |text: String, (name, part): &(&str, &str)| text.replace(name, part);
        Some(Self {
            tool: (tool != "-").then(|| tool.replace('_', " ")),
            kind: Kind::from_str(kind, false).ok()?,
            text: PARTS.iter().fold(text.trim_start().to_owned(), expand),
            regex: OnceLock::new(),
        })
    }

    /// Returns the parts of a line that the pattern captures, if it matches.
    pub fn captures<'l>(&self, line: &'l str) -> Option<Captures<'l>> {
        let build = || RegexBuilder::new(&self.text).unicode(false).build().ok();
        let regex = self.regex.get_or_init(build).as_ref()?;
        regex.captures(line.as_bytes())
    }
}

struct Table {
    patterns: Vec<Pattern>,
    all: RegexSet,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let lines = PATTERNS.lines().filter(|line| !line.starts_with('#'));
    let patterns: Vec<Pattern> = lines.filter_map(Pattern::read).collect();
    let all = RegexSetBuilder::new(patterns.iter().map(|pattern| &pattern.text))
        .unicode(false)
        .dfa_size_limit(MEMORY)
        .size_limit(MEMORY)
        .build();
    Table {
        // The pattern is a constant, which the tests compile.
        all: all.unwrap_or_default(),
        patterns,
    }
});

/// Returns the first pattern that matches a line.
pub fn pattern(line: &str) -> Option<&'static Pattern> {
    // Most lines match no pattern, which this check detects three times as fast.
    if !TABLE.all.is_match(line.as_bytes()) {
        return None;
    }
    let matched = TABLE.all.matches(line.as_bytes());
    TABLE.patterns.get(matched.iter().next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_pattern() {
        let lines: Vec<&str> = PATTERNS
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
            .collect();
        assert_eq!(
            (lines.len(), lines.len()),
            (TABLE.patterns.len(), TABLE.all.len())
        );
        for (line, pattern) in lines.iter().zip(&TABLE.patterns) {
            assert!(pattern.captures("").is_none(), "{line}");
            assert!(pattern.regex.get().unwrap().is_some(), "{line}");
        }
    }
}
