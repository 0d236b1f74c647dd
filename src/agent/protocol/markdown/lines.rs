//! A reply's lines, and the headings among them. Pure.
//!
//! Guarantees that a line is told to be a heading in one way only, however it is adorned.

use super::super::Fault;
use crate::sys::fences::{Fence, FenceLine, FenceScanner};

/// A line of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'r> {
    /// Its number in the whole reply, from 1 on.
    pub number: usize,
    /// Its text with its line end.
    pub raw: &'r str,
}

/// What no reader sees in front of a line, as some models write it.
const INVISIBLE: [char; 5] = [' ', '\u{feff}', '\u{a0}', '\u{200b}', '\u{2060}'];

/// The lines of `text`, less a byte order mark.
pub fn lines(text: &str) -> Vec<Line<'_>> {
    let text = text.trim_start_matches('\u{feff}');
    let numbered = (1..).zip(text.split_inclusive('\n'));
    numbered.map(|(number, raw)| Line { number, raw }).collect()
}

/// The bytes of `lines`.
pub fn joined(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| line.raw).collect()
}

/// `lines` less the blank ones at both ends.
pub fn trimmed<'a, 'r>(lines: &'a [Line<'r>]) -> &'a [Line<'r>] {
    let first = lines.iter().position(|line| !line.is_blank());
    let last = lines.iter().rposition(|line| !line.is_blank());
    match (first, last) {
        (Some(first), Some(last)) => lines.get(first..=last).unwrap_or_default(),
        _ => &[],
    }
}

/// `lines`, each with what it is to the fences.
pub fn fenced<'a, 'r>(
    lines: &'a [Line<'r>],
) -> impl Iterator<Item = (usize, &'a Line<'r>, FenceLine)> {
    let mut fences = FenceScanner::default();
    let step = move |(at, line): (usize, &'a Line<'r>)| (at, line, fences.step(line.text()));
    lines.iter().enumerate().map(step)
}

impl<'r> Line<'r> {
    /// Its text, less its line end.
    pub fn text(&self) -> &'r str {
        let text = self.raw.strip_suffix('\n').unwrap_or(self.raw);
        text.strip_suffix('\r').unwrap_or(text)
    }

    pub fn is_blank(&self) -> bool {
        self.raw.trim().is_empty()
    }

    /// The fence that it is.
    pub fn fence(&self) -> Option<Fence<'r>> {
        Fence::of(self.text())
    }

    /// A fault of this line.
    pub fn fault(&self, problem: impl Into<String>) -> Fault {
        Fault::at(self.number, problem)
    }

    /// What stands behind the colon, where it is the heading `name`: "" where nothing does.
    ///
    /// It is one behind `#`, in bold, behind a number or a sign; or bare, if it is written just so.
    pub fn titled(&self, name: &str) -> Option<&'r str> {
        let (marks, title) = self.marks()?;
        let rest = if marks.is_empty() {
            title.strip_prefix(name)?
        } else {
            without_words(title, name)?
        };
        let rest = rest.trim_start_matches(['*', '_', '`', ' ']);
        let Some(value) = rest.strip_prefix(':') else {
            return (!rest.contains(char::is_alphanumeric)).then_some("");
        };
        // What was bold ends there.
        let end = if marks.contains("**") { "**" } else { "" };
        let value = value.strip_prefix(end).unwrap_or(value).trim();
        let is_ornament = value.chars().all(|c| "*_`#:".contains(c));
        Some(if is_ornament { "" } else { value })
    }

    /// Whether it is the header that a response begins with: at any level, or in bold.
    pub fn is_header(&self) -> bool {
        let is_marked = |marks: &str| marks.contains('#') || marks.contains("**");
        self.marks().is_some_and(|(marks, _)| is_marked(marks))
            && self.titled("Agent Response") == Some("")
    }

    /// What stands in front of its first letter, and the rest; `None` where that makes no heading.
    fn marks(&self) -> Option<(&'r str, &'r str)> {
        let text = self.text();
        if text.len() - text.trim_start_matches(' ').len() > 3 {
            return None;
        }
        let text = text.trim_start_matches(INVISIBLE);
        let title = text.trim_start_matches(|c: char| !c.is_alphabetic());
        let marks = text.get(..text.len() - title.len())?;
        let is_mark = match marks.chars().next() {
            None => true,
            Some('#') => marks.chars().take_while(|c| *c == '#').count() <= 6,
            Some('*') => marks.starts_with("**"),
            Some(c) => c.is_ascii_digit() || !c.is_ascii(),
        };
        is_mark.then_some((marks, title))
    }
}

/// What stands behind the words of `name`, in any letter case.
fn without_words<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    name.split(' ').try_fold(text, |text, word| {
        let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '_');
        let (begin, rest) = text.split_at_checked(word.len())?;
        begin.eq_ignore_ascii_case(word).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_told_whatever_it_is_adorned_with() {
        let titled = |raw| Line { number: 1, raw }.titled("Tool Choice");
        for (text, expected) in [
            ("## Tool Choice", Some("")),
            ("  ###### **TOOL  choice** ## \r\n", Some("")),
            ("## `Tool Choice`:**", Some("")),
            ("**Tool Choice**", Some("")),
            ("**Tool Choice:**\n", Some("")),
            ("3. Tool Choice", Some("")),
            ("## 3. Tool Choice:", Some("")),
            ("## \u{1f527} Tool Choice \u{1f527}", Some("")),
            ("\u{1f527} tool choice", Some("")),
            ("## Tool_Choice", Some("")),
            ("Tool Choice:", Some("")),
            ("Tool Choice", Some("")),
            ("## Tool Choice: COMMAND", Some("COMMAND")),
            ("**Tool Choice:** `COMMAND`\n", Some("`COMMAND`")),
            ("**Tool Choice**: **/*.rs", Some("**/*.rs")),
            ("## Tool Choice: **/*.rs", Some("**/*.rs")),
            ("Tool Choice: COMMAND", Some("COMMAND")),
            ("tool choice: COMMAND", None),
            ("## Tool Choices", None),
            ("## Tool Choice of today", None),
            ("## My Tool Choice", None),
            ("    ## Tool Choice", None),
            ("####### Tool Choice", None),
            ("> ## Tool Choice", None),
            ("- Tool Choice", None),
            ("* Tool Choice", None),
            ("\"## Tool Choice\"", None),
            ("", None),
        ] {
            assert_eq!(titled(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_header_is_a_heading_of_any_level() {
        let is_header = |raw| Line { number: 1, raw }.is_header();
        for text in [
            "# AGENT  response\n",
            "## Agent Response",
            "**Agent Response**",
            "**# Agent Response:**",
            "# \u{1f916} Agent Response",
            "\u{1f916} **Agent Response**",
            "\u{a0}# Agent\u{a0}Response",
            "\u{feff}# Agent Response",
        ] {
            assert!(is_header(text), "{text}");
        }
        for text in [
            "# Agent Responses",
            "Agent Response",
            "1. Agent Response",
            "# Agent Response: so",
            "> # Agent Response",
            "see # Agent Response",
        ] {
            assert!(!is_header(text), "{text}");
        }
    }
}
