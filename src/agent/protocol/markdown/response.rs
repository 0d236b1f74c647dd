//! Which of a reply's lines are the response: those from the last `# Agent Response` on that stands in no code
//! block. Pure.
//!
//! A file or a command may hold the same line. Guarantees that none of theirs is taken for a response: where what
//! stands above a header may go on behind it, or a short fence is all that keeps it apart, it is a [`Fault`].

use super::super::Fault;
use super::lines::{ReplyLine, fenced, trimmed};
use super::sections::Sections;
use crate::agent::tool::{Parameter, ParameterKind, ToolSpec, Toolbox};
use crate::sys::fences::{FenceLine, FenceScanner};

/// A fence of this length may stand inside a file as well; a longer one is there to hold such a file.
const SHORT: usize = 3;

/// The response of a reply.
pub struct Response<'a, 'r> {
    /// Its lines, from the header on.
    pub lines: &'a [ReplyLine<'r>],
    /// The lines above all responses.
    pub above: &'a [ReplyLine<'r>],
    /// The number of others that stand above it that name a tool.
    pub others: usize,
}

/// Where a reply's headers are.
#[derive(Default)]
struct Headers {
    /// Those in no code block.
    outside: Vec<usize>,
    /// Those in one, with the line that opens it and the length of its fence.
    inside: Vec<(usize, usize, usize)>,
    /// The line that opens a block which nothing closes.
    open: Option<usize>,
}

impl Headers {
    fn of(lines: &[ReplyLine<'_>]) -> Self {
        let mut headers = Self::default();
        let mut fences = FenceScanner::default();
        for (at, line) in lines.iter().enumerate() {
            match fences.step(line.text()) {
                FenceLine::Opening => headers.open = Some(at),
                FenceLine::Closing => headers.open = None,
                _ if !line.is_header() => {}
                _ => match (headers.open, fences.open()) {
                    (Some(open), Some(fence)) => headers.inside.push((at, open, fence.length)),
                    _ => headers.outside.push(at),
                },
            }
        }
        headers
    }
}

/// The response among `lines`; `None` where there is no header.
///
/// # Errors
/// Where a header may be part of a file or of a command.
pub fn response<'a, 'r>(
    lines: &'a [ReplyLine<'r>],
    tools: &Toolbox<'_>,
) -> Result<Option<Response<'a, 'r>>, Fault> {
    let headers = Headers::of(lines);
    let lines = match headers.inside.first() {
        _ if !headers.outside.is_empty() => lines,
        None => return Ok(None),
        Some(&(first, opening, _)) => {
            unwrapped(lines, opening, first).ok_or_else(|| unclear(lines, first))?
        }
    };
    alone(lines, tools).map(Some)
}

/// The response that begins at the last header in no code block, where nothing says that it is part of another.
fn alone<'a, 'r>(
    lines: &'a [ReplyLine<'r>],
    tools: &Toolbox<'_>,
) -> Result<Response<'a, 'r>, Fault> {
    let headers = Headers::of(lines);
    let last = headers.outside.last().copied().unwrap_or_default();
    let is_short = |(at, _, length): &&(usize, usize, usize)| *at < last || *length <= SHORT;
    if let Some((at, ..)) = headers.inside.iter().find(is_short) {
        return Err(unclear(lines, *at));
    }
    if let Some(line) = headers.open.and_then(|at| lines.get(at)) {
        return Err(line.fault(
            "the code block that begins here is never closed: it ends with a line that has nothing but the \
             same fence; content that has such lines goes between longer fences",
        ));
    }
    let response = lines.get(last..).unwrap_or_default();
    let tool = Sections::of(response).and_then(|sections| sections.tool(tools));
    let tool = tool.ok().map(|(tool, _)| tool);
    // A reply without the header may write a file all the same.
    let first = headers.outside.first().copied().unwrap_or_default();
    let above = lines.get(..first).unwrap_or_default();
    if Sections::of(above).map_or(true, |above| above.name_a_tool()) {
        return Err(unclear(lines, first));
    }
    let mut others = 0;
    for (&from, &to) in headers.outside.iter().zip(headers.outside.iter().skip(1)) {
        // Right below a fence, it may be the first line of a block.
        let is_below_fence = lines.get(to - 1).is_some_and(|line| line.fence().is_some());
        let draft = draft(lines.get(from..to).unwrap_or_default(), tool, tools);
        let draft = draft.filter(|_| !is_below_fence);
        others += draft.ok_or_else(|| unclear(lines, to))?;
    }
    Ok(Response {
        lines: response,
        above,
        others,
    })
}

/// Returns the content of the block that opens at `opening` above a first header, if the block is around the whole
/// reply: where words stand beside it, it may be a file's content, or an example.
fn unwrapped<'a, 'r>(
    lines: &'a [ReplyLine<'r>],
    opening: usize,
    header: usize,
) -> Option<&'a [ReplyLine<'r>]> {
    let (above, between) = (lines.get(..opening)?, lines.get(opening + 1..header)?);
    let fence = lines.get(opening)?.fence()?;
    if !above.iter().chain(between).all(ReplyLine::is_blank) {
        return None;
    }
    let inner = trimmed(lines.get(header..)?);
    // A fence that opens a block on the last line is the end of the one around.
    let (_, last, place) = fenced(inner).last()?;
    let is_end = place == FenceLine::Opening && last.fence()?.closes(&fence);
    inner.get(..inner.len() - usize::from(is_end))
}

/// Returns the number of tools that a response above another names; `None` where what follows it may be part of it:
/// content of a file that is not closed where it seems, or a here-document. Whole contents before another use of the
/// same tool are a draft of it.
fn draft(lines: &[ReplyLine<'_>], last: Option<&ToolSpec>, tools: &Toolbox<'_>) -> Option<usize> {
    let blocks = |lines| {
        let opening = fenced(lines).filter(|(_, _, place)| *place == FenceLine::Opening);
        opening.count()
    };
    let sections = Sections::of(lines).ok()?;
    if !sections.name_a_tool() {
        return (blocks(lines) == 0).then_some(0);
    }
    let (tool, _) = sections.tool(tools).ok()?;
    let (input, _) = sections.input().unwrap_or_default();
    let is_raw = input.first().is_some_and(|line| line.fence().is_none());
    let is_content = |known: &&Parameter| known.kind == ParameterKind::Block;
    let contents = tool.parameters.iter().filter(is_content).count();
    let is_same = last.is_some_and(|last| last.name == tool.name);
    let is_whole = match contents {
        0 => blocks(input) <= 1,
        _ => blocks(input) == contents && is_same,
    };
    (is_whole && !(is_raw && tool.takes(ParameterKind::Command))).then_some(1)
}

fn unclear(lines: &[ReplyLine<'_>], at: usize) -> Fault {
    let number = lines.get(at).map_or(1, |line| line.number);
    Fault::at(
        number,
        "it cannot be told whether this `# Agent Response` is another response or part of what is written \
         above",
    )
    .with_remedy(
        "write one response alone, and put a file or a command that has such lines between longer fences (````)",
    )
}
