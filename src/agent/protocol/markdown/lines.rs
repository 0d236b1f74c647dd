//! The lines of a reply, and the headings among them. Pure.
//!
//! Guarantees that headings are recognized by a single rule, however they are decorated.

use std::sync::LazyLock;

use regex::Regex;

use super::super::Fault;
use crate::sys::fences::{Fence, FenceLine, FenceScanner};
use crate::sys::text::regex;

/// A line of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyLine<'r> {
    /// The line's number in the whole reply, counted from 1.
    pub number: usize,
    /// The text, including the line ending.
    pub raw: &'r str,
    /// True for a fence that belongs to the content of the block around it.
    pub is_content: bool,
}

/// Splits `text` into lines, without a byte order mark; the first line has the number `first`.
pub fn lines(text: &str, first: usize) -> Vec<ReplyLine<'_>> {
    let text = text.trim_start_matches('\u{feff}');
    let line = |(number, raw)| ReplyLine {
        number,
        raw,
        is_content: false,
    };
    let numbered = (first..).zip(text.split_inclusive('\n'));
    numbered.map(line).collect()
}

/// Marks labelled blocks inside labelled blocks as content, as in a README whose fences are the same as those it
/// contains; `None` if there are no such blocks.
///
/// # Errors
/// Fails if, read like this, a block is never closed.
pub fn with_inner_blocks<'r>(lines: &[ReplyLine<'r>]) -> Option<Result<Vec<ReplyLine<'r>>, Fault>> {
    let mut nested = lines.to_vec();
    // The fences of the open blocks with their lines, the outermost first.
    let mut open: Vec<(Fence<'r>, ReplyLine<'r>)> = Vec::new();
    for line in &mut nested {
        let Some(fence) = line.fence() else { continue };
        let Some((inner, _)) = open.last() else {
            open.push((fence, *line));
            continue;
        };
        let is_labelled = [inner, &fence].iter().all(|fence| !fence.info.is_empty());
        line.is_content = open.len() > 1;
        if fence.closes(inner) {
            open.pop();
        } else if is_labelled && fence.outlasts(inner) {
            line.is_content = true;
            open.push((fence, *line));
        }
    }
    let unclosed = open.first().map(|(_, line)| line.never_closed());
    let has_inner = nested.iter().any(|line| line.is_content);
    has_inner.then(|| unclosed.map_or(Ok(nested), Err))
}

/// Joins the text of `lines`.
pub fn joined(lines: &[ReplyLine<'_>]) -> String {
    lines.iter().map(|line| line.raw).collect()
}

/// Strips the blank lines from both ends of `lines`.
pub fn trimmed<'a, 'r>(lines: &'a [ReplyLine<'r>]) -> &'a [ReplyLine<'r>] {
    let first = lines.iter().position(|line| !line.is_blank());
    let last = lines.iter().rposition(|line| !line.is_blank());
    match (first, last) {
        (Some(first), Some(last)) => lines.get(first..=last).unwrap_or_default(),
        _ => &[],
    }
}

/// Pairs each of `lines` with its index and its role in code blocks.
pub fn fenced<'a, 'r>(
    lines: &'a [ReplyLine<'r>],
) -> impl Iterator<Item = (usize, &'a ReplyLine<'r>, FenceLine)> {
    let mut fences = FenceScanner::default();
    let step = move |(at, line): (usize, &'a ReplyLine<'r>)| (at, line, fences.step(line.mark()));
    lines.iter().enumerate().map(step)
}

impl<'r> ReplyLine<'r> {
    /// Returns the text without the line ending.
    pub fn text(&self) -> &'r str {
        let text = self.raw.strip_suffix('\n').unwrap_or(self.raw);
        text.strip_suffix('\r').unwrap_or(text)
    }

    pub fn is_blank(&self) -> bool {
        self.raw.trim().is_empty()
    }

    /// Returns the text for recognizing fences: empty for a line that is content.
    pub fn mark(&self) -> &'r str {
        if self.is_content { "" } else { self.text() }
    }

    /// Returns the code fence on this line, if it is one.
    pub fn fence(&self) -> Option<Fence<'r>> {
        Fence::of(self.mark())
    }

    /// Creates a fault at this line.
    pub fn fault(&self, problem: impl Into<String>) -> Fault {
        Fault::at(self.number, problem)
    }

    /// Creates the fault for a code block that begins at this line and does not end.
    pub fn never_closed(&self) -> Fault {
        self.fault(
            "the code block that begins here is never closed: it ends with a line that has nothing but the \
             same fence; content that has such lines goes between longer fences",
        )
    }

    /// Returns the heading on this line, and the text after its colon, which may be empty.
    ///
    /// A heading follows `#`, a number or a bullet, or is in bold; a bare one must be spelled exactly. The header of a
    /// response has no text after it, and must follow `#` or be in bold.
    pub fn heading(&self) -> Option<(Name, &'r str)> {
        let found = HEADING.captures(self.text())?;
        let marks = found.name("marks").map_or("", |marks| marks.as_str());
        let letters: String = found
            .get(2)
            .or(found.get(3))?
            .as_str()
            .chars()
            .filter(char::is_ascii_alphabetic)
            .collect();
        let name = match letters.to_ascii_lowercase().as_str() {
            "agentresponse" => Name::Response,
            "thoughts" => Name::Thoughts,
            "tasklist" => Name::TaskList,
            "toolchoice" => Name::ToolChoice,
            _ => Name::ToolInput,
        };
        let rest = self
            .text()
            .get(found.get(0)?.end()..)?
            .trim_start_matches(['*', '_', '`', ' ']);
        let value = match rest.strip_prefix(':') {
            None if rest.contains(char::is_alphanumeric) => return None,
            None => "",
            Some(value) => {
                // Strips the end of the bold text.
                let end = if marks.contains("**") { "**" } else { "" };
                value.strip_prefix(end).unwrap_or(value).trim()
            }
        };
        let is_ornament = value.chars().all(|c| "*_`#:".contains(c));
        let value = if is_ornament { "" } else { value };
        let is_header = value.is_empty() && (marks.contains('#') || marks.contains("**"));
        (name != Name::Response || is_header).then_some((name, value))
    }

    /// Returns whether the line is the header of a response: a heading of any level, or in bold.
    pub fn is_header(&self) -> bool {
        matches!(self.heading(), Some((Name::Response, _)))
    }

    /// Returns whether the line is the heading above a tool or its input.
    pub fn names_a_tool(&self) -> bool {
        matches!(
            self.heading(),
            Some((Name::ToolChoice | Name::ToolInput, _))
        )
    }
}

/// The headings that a response may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name {
    Response,
    Thoughts,
    TaskList,
    ToolChoice,
    ToolInput,
}

/// A heading up to the end of its name. Some models write invisible characters before it.
static HEADING: LazyLock<Regex> = LazyLock::new(|| {
    regex(concat!(
        r"^\x20{0,3}(?:[\x{feff}\x{a0}\x{200b}\x{2060}][\x20\x{feff}\x{a0}\x{200b}\x{2060}]*)?(?:",
        r"(?P<marks>#{1,6}(?:[^#\p{Alphabetic}]\P{Alphabetic}*)?|(?:\*\*|[0-9]",
        r"|[^\x00-\x7f\p{Alphabetic}\x{feff}\x{a0}\x{200b}\x{2060}])\P{Alphabetic}*)",
        r"((?i-u:agent)[\s_]*(?i-u:response)|(?i-u:thoughts)|(?i-u:task)[\s_]*(?i-u:list)",
        r"|(?i-u:tool)[\s_]*(?i-u:choice|input))",
        r"|(Agent Response|Thoughts|Task List|Tool Choice|Tool Input))"
    ))
});

#[cfg(test)]
mod tests {
    use super::*;

    fn line(raw: &str) -> ReplyLine<'_> {
        ReplyLine {
            number: 1,
            raw,
            is_content: false,
        }
    }

    #[test]
    fn a_labelled_block_in_a_labelled_block_is_its_content() {
        for (text, expected) in [
            ("```md\n```sh\nls\n```\n```\nx", Some(".+.+..")),
            ("```md\n```sh\n```\n\n```\n```sh\n```", Some(".++....")),
            ("````md\n```sh\n```\n````", None),
            ("```\n```sh\n```\n```", None),
            ("```md\n```\nls\n```\n```", None),
            ("```md\n~~~ sh\n~~~\n```", None),
            ("```md\n```sh\nls\n```", Some("line 1")),
            (
                "x\n```md\n```sh\n```\n```\n```md\n```sh\n```",
                Some("line 6"),
            ),
        ] {
            let content = |line: &ReplyLine<'_>| if line.is_content { '+' } else { '.' };
            let nested = with_inner_blocks(&lines(text, 1)).map(|lines| match lines {
                Ok(lines) => lines.iter().map(content).collect(),
                Err(fault) => fault.to_string()[..6].to_owned(),
            });
            assert_eq!(nested.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_heading_is_told_whatever_it_is_adorned_with() {
        let titled = |raw| match line(raw).heading() {
            Some((Name::ToolChoice, value)) => Some(value),
            _ => None,
        };
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
        let is_header = |raw| line(raw).is_header();
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
