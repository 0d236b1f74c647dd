//! What a reply's lines say aloud: less what was thought. Pure.
//!
//! Some servers leave a model's thoughts in its reply, between tags. A file or a command may hold the same tags:
//! guarantees that nothing is cut out of either, where it can be told.

use super::super::Fault;
use super::lines::{Line, Nesting};
use super::sections::Name;

/// What thoughts stand between, where a server does not tell them apart itself.
const THINKING: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// `lines` less the parts that were thought.
///
/// Such a part begins with a line and stands outside of any fence: a file may hold the same words. Behind a
/// header, it must be outside of those since the header alone, and no fence may follow up to the next header,
/// which could be the end of a block of content that is around it. Nor may it stand in the middle of a tool's
/// input that has no fences: a command may write the same words. A part whose beginning the server has
/// swallowed is known by its end.
///
/// # Errors
/// Where all is thought: a part in front of any header never ends.
pub fn spoken<'r>(lines: &[Line<'r>]) -> Result<Vec<Line<'r>>, Fault> {
    let mut kept = Kept::default();
    let mut tags = THINKING.to_vec();
    let ahead = Ahead::of(lines);
    let mut rest = lines;
    let mut remainder = None;
    // Up to here, what is thought is content.
    let mut content = 0;
    while let Some(line) = remainder.take().or_else(|| first(&mut rest)) {
        let may_open = kept.is_outside() && line.number > content;
        let opens = |open: &str| may_open && line.raw.trim_start().starts_with(open);
        if let Some((open, close)) = tags.iter().copied().find(|(open, _)| opens(open)) {
            match end_of_thought(line, rest, close) {
                Some((end, _)) if kept.has_header && ahead.is_fence(end) => content = end.number,
                Some((end, behind)) if kept.input == Begun::Words && goes_on(end, rest, behind) => {
                    content = end.number;
                }
                Some((end, behind)) => {
                    remainder = Some(end);
                    rest = behind;
                    continue;
                }
                None if !kept.has_header => return Err(endless(line.number, open, close)),
                // Nor is there an end for any later one.
                None => tags.retain(|(known, _)| *known != open),
            }
        }
        if line.number > content
            && let Some(end) = kept.end_of_swallowed(&line, &ahead)
        {
            kept = Kept::default();
            remainder = Some(end);
        } else {
            kept.push(line);
        }
    }
    Ok(kept.lines)
}

/// Of each line, whether the next that is a header or a fence is a fence.
struct Ahead {
    /// The first line's number.
    first: usize,
    fences: Vec<bool>,
}

impl Ahead {
    fn of(lines: &[Line<'_>]) -> Self {
        let mut next = false;
        let behind = |line: &Line<'_>| {
            let is_fence = next;
            next = !line.is_header() && (line.fence().is_some() || next);
            is_fence
        };
        let mut fences: Vec<bool> = lines.iter().rev().map(behind).collect();
        fences.reverse();
        let first = lines.first().map_or(1, |line| line.number);
        Self { first, fences }
    }

    /// Whether a fence follows, so that this line may be in a block that ends there.
    fn is_fence(&self, line: Line<'_>) -> bool {
        let at = line.number.checked_sub(self.first);
        at.and_then(|at| self.fences.get(at).copied())
            .unwrap_or_default()
    }
}

/// Whether the thought is about no response, and what stands behind it is neither the end nor another part of
/// one.
fn goes_on(end: Line<'_>, rest: &[Line<'_>], behind: &[Line<'_>]) -> bool {
    let thought = rest.len() - behind.len();
    let has_header = rest.iter().take(thought).any(Line::is_header);
    let mut next = std::iter::once(&end).chain(behind);
    let next = next.find(|line| !line.is_blank());
    !has_header && next.is_some_and(|line| !line.is_header() && Name::of(line).is_none())
}

fn endless(line: usize, open: &str, close: &str) -> Fault {
    Fault::at(
        line,
        format!(
            "all from `{open}` on is thought, since no `{close}` follows: end your thoughts, and reply"
        ),
    )
}

/// Takes the first line.
fn first<'r>(lines: &mut &[Line<'r>]) -> Option<Line<'r>> {
    let (first, rest) = lines.split_first()?;
    *lines = rest;
    Some(*first)
}

/// What stands behind the first `close` from `line` on: the rest of that line, and the lines behind it.
fn end_of_thought<'a, 'r>(
    line: Line<'r>,
    rest: &'a [Line<'r>],
    close: &str,
) -> Option<(Line<'r>, &'a [Line<'r>])> {
    if let Some(end) = behind(&line, close) {
        return Some((end, rest));
    }
    let mut ends = rest.iter().enumerate();
    let (at, end) = ends.find_map(|(at, line)| Some((at, behind(line, close)?)))?;
    Some((end, rest.get(at + 1..).unwrap_or_default()))
}

/// The rest of the line behind the first `close`.
fn behind<'r>(line: &Line<'r>, close: &str) -> Option<Line<'r>> {
    let (_, raw) = line.raw.split_once(close)?;
    Some(Line { raw, ..*line })
}

/// What was kept so far.
#[derive(Default)]
struct Kept<'r> {
    lines: Vec<Line<'r>>,
    nesting: Nesting<'r>,
    /// The same since the last header.
    since_header: Nesting<'r>,
    has_header: bool,
    /// The same of a tool's input.
    input: Begun,
}

/// How far a tool's input has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Begun {
    #[default]
    No,
    Heading,
    Words,
    Fences,
}

impl<'r> Kept<'r> {
    fn push(&mut self, line: Line<'r>) {
        self.nesting.step(&line);
        if line.is_header() {
            self.has_header = true;
            self.since_header = Nesting::default();
            self.input = Begun::No;
        }
        self.input = match self.input {
            Begun::No if Name::of(&line) == Some(Name::ToolInput) => Begun::Heading,
            Begun::Heading | Begun::Words if line.fence().is_some() => Begun::Fences,
            Begun::Heading if !line.is_blank() => Begun::Words,
            input => input,
        };
        self.since_header.step(&line);
        self.lines.push(line);
    }

    /// Whether no fence is open, however the fences are counted.
    fn is_outside(&self) -> bool {
        self.nesting.is_closed() && self.since_header.is_closed()
    }

    /// The rest of a line that ends a thought whose beginning is not there.
    fn end_of_swallowed(&self, line: &Line<'r>, ahead: &Ahead) -> Option<Line<'r>> {
        if self.has_header && ahead.is_fence(*line) {
            return None;
        }
        let text = line.raw.trim();
        let ends =
            |close: &str| text.starts_with(close) || !self.has_header && text.ends_with(close);
        let mut tags = THINKING.iter().filter(|_| self.is_outside());
        let (_, close) = tags.find(|(_, close)| ends(close))?;
        behind(line, close)
    }
}
