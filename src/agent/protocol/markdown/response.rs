//! Selection of the response among a reply's lines: it starts at the last `# Agent Response` outside of code blocks.
//! Pure.
//!
//! A file or a command may contain the same line. Guarantees that such a line is not taken for a response: if the text
//! above a header may continue below it, or only a short fence separates the two, the reply is a [`Fault`].

use super::super::Fault;
use super::lines::{ReplyLine, fenced, trimmed};
use super::sections::Sections;
use super::thoughts::ends_thought;
use crate::agent::tool::{Parameter, ParameterKind, ToolSpec, Toolbox};
use crate::sys::fences::{FenceLine, FenceScanner};

/// Fences of up to this length may also be part of a file's content; a longer one is there to enclose such content.
const SHORT: usize = 3;

/// The response found in a reply.
pub struct Response<'a, 'r> {
    /// The lines of the response, from its header on.
    pub lines: &'a [ReplyLine<'r>],
    /// The lines above the first response.
    pub above: &'a [ReplyLine<'r>],
    /// The number of earlier responses that name a tool.
    pub others: usize,
}

/// Finds the response in `lines`; `None` if they have no header.
///
/// # Errors
/// Fails if a header may be part of a file or of a command.
pub fn response<'a, 'r>(
    lines: &'a [ReplyLine<'r>],
    tools: &Toolbox<'_>,
) -> Result<Option<Response<'a, 'r>>, Fault> {
    let lines = unwrapped(lines).unwrap_or(lines);
    // Headers outside of code blocks; headers inside, with the length of the fence; and the opening line of an unclosed
    // block.
    let (mut outside, mut inside, mut open) = (Vec::new(), Vec::new(), None);
    let mut fences = FenceScanner::default();
    for (at, line) in lines.iter().enumerate() {
        match fences.step(line.mark()) {
            FenceLine::Opening => open = Some(line),
            FenceLine::Closing => open = None,
            _ if !line.is_header() => {}
            _ => match fences.open() {
                Some(fence) => inside.push((at, fence.length)),
                None => outside.push(at),
            },
        }
    }
    let (Some(&first), Some(&last)) = (outside.first(), outside.last()) else {
        return inside
            .first()
            .map_or(Ok(None), |(at, _)| Err(unclear(lines, *at)));
    };
    if let Some((at, _)) = inside
        .iter()
        .find(|(at, length)| *at < last || *length <= SHORT)
    {
        return Err(unclear(lines, *at));
    }
    if let Some(line) = open {
        return Err(line.never_closed());
    }
    let response = lines.get(last..).unwrap_or_default();
    let outside_blocks = fenced(response).filter(|(_, _, place)| *place == FenceLine::Outside);
    if let Some((_, line, _)) = outside_blocks
        .into_iter()
        .find(|(_, line, _)| ends_thought(line))
    {
        let fault = line.fault("all up to this end of a thought is no response");
        return Err(fault.with_remedy("write the response after your thoughts"));
    }
    // A reply may try to write a file even without the header.
    let above = lines.get(..first).unwrap_or_default();
    if above.iter().any(ReplyLine::names_a_tool) {
        return Err(unclear(lines, first));
    }
    let tool = Sections::of(response)
        .and_then(|sections| sections.tool(tools))
        .ok()
        .map(|(tool, _)| tool);
    let mut others = 0;
    for (&from, &to) in outside.iter().zip(outside.iter().skip(1)) {
        // Right below a fence, the header may be the first line of a block.
        let is_below_fence = lines.get(to - 1).is_some_and(|line| line.fence().is_some());
        let draft =
            draft(lines.get(from..to).unwrap_or_default(), tool, tools).filter(|_| !is_below_fence);
        others += draft.ok_or_else(|| unclear(lines, to))?;
    }
    Ok(Some(Response {
        lines: response,
        above,
        others,
    }))
}

/// Returns the content of a code block around the whole reply, if it begins with a header. With words next to the
/// block, it may be a file's content or an example instead.
fn unwrapped<'a, 'r>(lines: &'a [ReplyLine<'r>]) -> Option<&'a [ReplyLine<'r>]> {
    let (opening, inner) = trimmed(lines).split_first()?;
    let (fence, inner) = (opening.fence()?, trimmed(inner));
    inner.first().filter(|line| line.is_header())?;
    // An opening fence on the last line is really the end of the enclosing block.
    let (_, last, place) = fenced(inner).last()?;
    let is_end = place == FenceLine::Opening && last.fence()?.closes(&fence);
    inner.get(..inner.len() - usize::from(is_end))
}

/// Counts the tools named by an earlier response; `None` if the text after it may belong to it, as part of a file whose
/// block ends elsewhere or of a here-document. Complete contents before another use of the same tool are considered a
/// draft, and so is a tool's name with nothing behind it.
fn draft(lines: &[ReplyLine<'_>], last: Option<&ToolSpec>, tools: &Toolbox<'_>) -> Option<usize> {
    let blocks = |lines| {
        let opening = fenced(lines).filter(|(_, _, place)| *place == FenceLine::Opening);
        opening.count()
    };
    let sections = Sections::of(lines).ok()?;
    if !sections.name_a_tool() {
        return (blocks(lines) == 0).then_some(0);
    }
    let (tool, named_at) = sections.tool(tools).ok()?;
    let is_bare = trimmed(lines)
        .last()
        .is_some_and(|last| last.number == named_at);
    let (input, _) = sections.input().unwrap_or_default();
    let is_raw = input.first().is_some_and(|line| line.fence().is_none());
    let is_content = |known: &&Parameter| known.kind == ParameterKind::Block;
    let contents = tool.parameters.iter().filter(is_content).count();
    let is_same = last.is_some_and(|last| last.name == tool.name);
    let is_whole = match contents {
        0 => blocks(input) <= 1,
        _ => is_bare || blocks(input) == contents && is_same,
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
