//! Which of a reply's lines are the response: those from the `# Agent Response` header on that counts. Pure.
//!
//! Models write drafts, so it is the last header. But a header inside a fenced block of the response is a
//! file's content, or a quotation; unless the block stands behind all that the tool takes, and holds the
//! last response. Guarantees that none is taken for the other: where that cannot be told, it is a
//! [`Fault`].

use std::cmp::Ordering;

use super::super::Fault;
use super::documents::{Place, may_be_within, places};
use super::lines::{Block, Fence, Line, Nesting};
use super::sections::{Name, Sections};
use crate::agent::tool::{Effect, Parameter, ParameterKind, ToolSpec};

/// So many drafts are looked at one by one; of more, the last header counts. It bounds the work.
const DRAFTS: usize = 16;

/// So many blocks of a draft that begin with a header are looked at: no tool takes as many.
const BLOCKS: usize = 4;

/// How responses are read, as far as it matters to which of them counts.
pub trait Reads {
    /// The tool that a draft uses, where it waits for no further block.
    fn used(&self, draft: &[Line<'_>]) -> Option<&'static ToolSpec>;

    /// Whether these lines are a response by themselves.
    fn is_response(&self, lines: &[Line<'_>]) -> bool;
}

/// A response's lines, from its header on.
#[derive(Debug, Clone, Copy)]
pub struct Response<'a, 'r> {
    lines: &'a [Line<'r>],
    /// The fence right above it: some models put the whole response into a block.
    above: Option<Above<'r>>,
}

/// A fence right above a response.
#[derive(Debug, Clone, Copy)]
struct Above<'r> {
    fence: Fence<'r>,
    /// What it does, as far as can be told from what stands before.
    role: Role,
}

/// What a fence does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It opens a block.
    Opens,
    /// It closes one.
    Closes,
    /// It is content of one.
    Content,
}

impl<'a, 'r> Response<'a, 'r> {
    /// The response among `lines`; `None` where there is no header.
    ///
    /// # Errors
    /// Where it cannot be told whether a header is part of a file's content.
    pub fn of(lines: &'a [Line<'r>], reads: &dyn Reads) -> Result<Option<Self>, Fault> {
        let candidates = candidates(lines);
        let Some((last, drafts)) = candidates.split_last() else {
            return Ok(None);
        };
        for draft in drafts.iter().take(DRAFTS).map(Self::outside) {
            if draft.is_command_around(last, reads) {
                return Err(unclear(last.number()));
            }
            if draft.holds_all_headers(reads)? {
                return if draft.may_break_off(last, reads) {
                    Err(unclear(last.number()))
                } else {
                    Ok(Some(draft))
                };
            }
        }
        if drafts.is_empty() || are_closed(lines) || last.stands_alone() {
            Ok(Some(*last))
        } else {
            Err(unclear(last.number()))
        }
    }

    /// The same, where what closes the block of a draft before opens none around it.
    fn outside(&self) -> Self {
        Self {
            lines: self.lines,
            above: self.above.filter(|above| above.role != Role::Closes),
        }
    }

    /// The header's line.
    fn number(&self) -> usize {
        self.lines.first().map_or(0, |line| line.number)
    }

    /// Where in its lines another one's header is.
    fn place_of(&self, other: &Self) -> usize {
        self.lines.len() - other.lines.len()
    }

    /// Whether it uses a command that stands in no fences, and `last` may stand in a here-document of that, or in quotes.
    fn is_command_around(&self, last: &Self, reads: &dyn Reads) -> bool {
        let at = self.place_of(last);
        let ahead = self.lines.get(..at).unwrap_or_default();
        let Some(input) = Sections::of(ahead).input_at().map(|heading| heading + 1) else {
            return false;
        };
        let used = reads.used(ahead);
        let command = ahead.get(input..).unwrap_or_default();
        let first = command.iter().find(|line| !line.is_blank());
        used.is_some_and(|tool| tool.takes(ParameterKind::Command))
            && first.is_some_and(|line| line.fence().is_none())
            && (may_be_within(command)
                || last.ends_quotes(at - input, self.lines.get(input..).unwrap_or_default()))
    }

    /// Whether its header, at `at` of a command, stands in quotes, which the last line may close.
    fn ends_quotes(&self, at: usize, command: &[Line<'_>]) -> bool {
        let quote = match places(command).get(at) {
            Some(Place::Quoted) => '\'',
            Some(Place::DoublyQuoted) => '"',
            _ => return false,
        };
        let last = self.lines.iter().rfind(|line| !line.is_blank());
        last.is_some_and(|line| line.text().contains(quote))
    }

    /// Whether `last`, which seems to be content of its, would be a response as well if a block of this draft was
    /// never closed.
    fn may_break_off(&self, last: &Self, reads: &dyn Reads) -> bool {
        let ahead = self.lines.get(..self.place_of(last)).unwrap_or_default();
        let nesting = Nesting::behind(ahead);
        let Some(around) = nesting.outermost() else {
            return false;
        };
        let inner = ahead.iter().filter_map(Line::fence);
        let mut inner = inner.filter(|fence| fence.line > around.line);
        let mut responses = last.unwrapped().into_iter().chain([last.lines]);
        inner.any(|fence| fence.is_within(around))
            && responses.any(|lines| are_closed(lines) && reads.is_response(lines))
    }

    /// Whether its fences belong together, and no other fence stands behind the block that it may be in.
    fn stands_alone(&self) -> bool {
        let Some(inner) = self.outside().unwrapped() else {
            return are_closed(self.lines);
        };
        let mut behind = self.lines.iter().skip(inner.len() + 1);
        are_closed(inner) && behind.all(|line| line.fence().is_none())
    }

    /// Its lines up to the end of the block that it may be in: the likelier way to read it.
    pub fn unwrapped(&self) -> Option<&'a [Line<'r>]> {
        self.above.and_then(|above| above.unwrapped(self.lines))
    }

    /// Its lines as they are.
    pub fn lines(&self) -> &'a [Line<'r>] {
        self.lines
    }

    /// Whether all headers behind its own stand in fenced blocks of it.
    fn holds_all_headers(&self, reads: &dyn Reads) -> Result<bool, Fault> {
        for lines in self.unwrapped().into_iter().chain([self.lines]) {
            if is_whole(lines, reads)? {
                return Ok(!self.has_ended(lines, reads)?);
            }
        }
        Ok(false)
    }

    /// Whether the block that it stands in ends before one of the headers in `lines`.
    fn has_ended(&self, lines: &[Line<'_>], reads: &dyn Reads) -> Result<bool, Fault> {
        let ends = self.possible_ends(lines);
        let ends = ends.into_iter().take(BLOCKS);
        let used = |at: usize| reads.used(lines.get(..at).unwrap_or_default());
        let mut ends = ends.filter_map(|at| Some((at, used(at)?)));
        let Some((end, tool)) = ends.next() else {
            return Ok(false);
        };
        let behind = lines.get(end..).unwrap_or_default();
        let Some(header) = behind.iter().position(Line::is_header) else {
            return Ok(false);
        };
        let mut above = behind.iter().take(header).skip(1);
        let above = above.rfind(|line| !line.is_blank());
        let takes_lines = |known: &Parameter| known.kind != ParameterKind::Path;
        let has_content = tool.parameters.iter().any(takes_lines);
        if !has_content || above.is_some_and(|line| line.fence().is_some()) {
            return Ok(true);
        }
        let header = behind.get(header).map_or(0, |line| line.number);
        Err(unclear(header))
    }

    /// Where in its input the block that it stands in may end, rather than another begin.
    fn possible_ends(&self, lines: &[Line<'_>]) -> Vec<usize> {
        let input = Sections::outside_of_fences(lines).and_then(|sections| sections.input_at());
        let (Some(above), Some(input)) = (self.above, input) else {
            return Vec::new();
        };
        let openings = openings(lines, input).into_iter();
        let ends = openings.filter(|(_, fence)| fence.closes(&above.fence));
        ends.map(|(at, _)| at).collect()
    }
}

/// The fences behind `from` that open a block, but for blocks in other blocks.
fn openings<'r>(lines: &[Line<'r>], from: usize) -> Vec<(usize, Fence<'r>)> {
    let mut nesting = Nesting::default();
    let mut openings = Vec::new();
    for (at, line) in lines.iter().enumerate().skip(from) {
        if let Some(fence) = line.fence().filter(|_| nesting.is_closed()) {
            openings.push((at, fence));
        }
        nesting.step(line);
    }
    openings
}

impl<'r> Above<'r> {
    /// `lines` up to the end of the block that the fence opens; `None` where it seems to open none.
    fn unwrapped<'a>(&self, lines: &'a [Line<'r>]) -> Option<&'a [Line<'r>]> {
        let (inner, behind) = lines.split_at(last_end(lines, &self.fence)?);
        let behind = behind.get(1..).unwrap_or_default();
        let is_last = behind.iter().all(Line::is_blank);
        let is_sure = self.role == Role::Opens && is_last || are_paired(inner, &self.fence);
        (is_sure && !behind.iter().any(Line::is_header)).then_some(inner)
    }
}

/// Whether the fences of these lines belong together.
fn are_closed(lines: &[Line<'_>]) -> bool {
    Nesting::behind(lines).is_closed()
}

/// Where the last fence is that closes what `opening` opened.
fn last_end(lines: &[Line<'_>], opening: &Fence<'_>) -> Option<usize> {
    let closes = |line: &Line<'_>| line.fence().is_some_and(|fence| fence.closes(opening));
    lines.iter().rposition(closes)
}

/// Whether the fences that could close what `opening` opened belong together in pairs.
fn are_paired(lines: &[Line<'_>], opening: &Fence<'_>) -> bool {
    let mut nesting = Nesting::default();
    let is_within = |line: &&Line<'_>| line.fence().is_some_and(|fence| fence.is_within(opening));
    lines
        .iter()
        .filter(is_within)
        .for_each(|line| nesting.step(line));
    nesting.is_closed()
}

/// What begins with each of the headers.
fn candidates<'a, 'r>(lines: &'a [Line<'r>]) -> Vec<Response<'a, 'r>> {
    let mut candidates = Vec::new();
    let mut nesting = Nesting::default();
    let mut above = None;
    for (at, line) in lines.iter().enumerate() {
        if line.is_header() {
            candidates.push(Response {
                lines: lines.get(at..).unwrap_or_default(),
                above,
            });
        }
        let open = nesting.depth();
        nesting.step(line);
        if !line.is_blank() {
            above = line.fence().map(|fence| Above {
                fence,
                role: match nesting.depth().cmp(&open) {
                    Ordering::Greater => Role::Opens,
                    Ordering::Less => Role::Closes,
                    Ordering::Equal => Role::Content,
                },
            });
        }
    }
    candidates
}

/// Whether the fences of `lines` belong together, and all headers but the first stand between them and
/// are content.
fn is_whole(lines: &[Line<'_>], reads: &dyn Reads) -> Result<bool, Fault> {
    let mut nesting = Nesting::default();
    let mut above = 0;
    let mut wrapped = Vec::new();
    for (at, line) in lines.iter().enumerate().skip(1) {
        if line.is_header() {
            if nesting.is_closed() {
                return if is_unclear(lines, at) {
                    Err(unclear(line.number))
                } else {
                    Ok(false)
                };
            }
            let fence = lines.get(above).and_then(Line::fence);
            if fence.is_some() && fence.as_ref() == nesting.only() {
                wrapped.push(Wrapped {
                    lines,
                    fence: above,
                    header: at,
                });
            }
        }
        nesting.step(line);
        if !line.is_blank() {
            above = at;
        }
    }
    Ok(nesting.is_closed() && holds(lines, &wrapped, reads)?)
}

/// Whether a draft has sections of its own, and holds all of `wrapped` as content, or as quotations in
/// front of its input.
fn holds(
    lines: &[Line<'_>],
    wrapped: &[Wrapped<'_, '_>],
    reads: &dyn Reads,
) -> Result<bool, Fault> {
    let Some(input) = Sections::outside_of_fences(lines).and_then(|sections| sections.input_at())
    else {
        return Ok(false);
    };
    let inputs: Vec<_> = wrapped.iter().filter(|block| block.fence > input).collect();
    for block in inputs.iter().take(BLOCKS) {
        if !block.is_content(input, reads)? {
            return Ok(false);
        }
    }
    inputs
        .get(BLOCKS)
        .map_or(Ok(true), |block| Err(unclear(block.number())))
}

/// A header right inside a block of a draft that no other block is around.
#[derive(Debug, Clone, Copy)]
struct Wrapped<'a, 'r> {
    /// The draft.
    lines: &'a [Line<'r>],
    /// Where in it the block's fence is.
    fence: usize,
    /// Where in it the header is.
    header: usize,
}

impl<'a, 'r> Wrapped<'a, 'r> {
    /// Whether it is content of the tool's input, which is headed at `input`, rather than a response that
    /// stands behind.
    fn is_content(&self, input: usize, reads: &dyn Reads) -> Result<bool, Fault> {
        if self.is_covered(input) {
            return Err(unclear(self.number()));
        }
        match reads.used(self.draft()) {
            // It may wait for this block.
            None => Ok(true),
            Some(tool) if self.may_be_quoted(tool) => Err(unclear(self.number())),
            Some(_) => Ok(false),
        }
    }

    /// The header's line.
    fn number(&self) -> usize {
        self.lines.get(self.header).map_or(0, |line| line.number)
    }

    /// The draft in front of the block.
    fn draft(&self) -> &'a [Line<'r>] {
        self.lines.get(..self.fence).unwrap_or_default()
    }

    /// Whether a block of the input that seems to have ended may go on beyond the header.
    fn is_covered(&self, input: usize) -> bool {
        let openings = openings(self.draft(), input);
        let mut ends = openings.first().into_iter().chain(openings.last());
        ends.any(|(at, opening)| covers(self.lines, *at, opening, self.header))
    }

    /// Whether the draft may quote the block: it says more behind it, or announces it. A shell command
    /// announces nothing.
    fn may_be_quoted(&self, tool: &ToolSpec) -> bool {
        let above = self.draft().iter().rfind(|line| !line.is_blank());
        let is_first = above.is_some_and(|line| Name::of(line).is_some());
        let is_announced = !is_first && above.is_some_and(is_announcement);
        let is_input =
            is_first && (tool.takes(ParameterKind::Text) || tool.takes(ParameterKind::Command));
        self.has_more_behind() || is_input || is_announced && tool.effect != Effect::Runs
    }

    fn has_more_behind(&self) -> bool {
        let lines = self.lines.get(self.fence..).unwrap_or_default();
        let fence = lines.first().and_then(Line::fence);
        let end = fence.and_then(|fence| last_end(lines.get(1..)?, &fence));
        let behind = end.and_then(|end| lines.get(end + 2..));
        behind.is_some_and(|behind| !behind.iter().all(Line::is_blank))
    }
}

/// Whether a line says that something follows.
fn is_announcement(line: &Line<'_>) -> bool {
    let text = line.text().trim_end();
    text.trim_end_matches(['*', '_']).ends_with(':')
}

/// Whether the block that is opened at `first` may go beyond `at`.
fn covers(lines: &[Line<'_>], first: usize, opening: &Fence<'_>, at: usize) -> bool {
    let block = Block::of(lines.get(first..).unwrap_or_default(), opening);
    block.is_ok_and(|block| at <= first + block.content.len())
}

/// Whether the header at `at` may be either: the fence right above it closes a draft's block, or opens a
/// block in that block.
fn is_unclear(lines: &[Line<'_>], at: usize) -> bool {
    let above = at
        .checked_sub(1)
        .and_then(|above| lines.get(above)?.fence());
    let opening = lines.iter().enumerate();
    let mut opening = opening.filter_map(|(at, line)| Some((at, line.fence()?)));
    let (Some(above), Some((first, opening))) = (above, opening.next()) else {
        return false;
    };
    let block = Block::of(lines.get(first..).unwrap_or_default(), &opening);
    let holds = |block: Block<'_, '_>| block.odd.is_none() && at <= first + block.content.len();
    above.info.is_empty() && block.is_ok_and(holds)
}

fn unclear(line: usize) -> Fault {
    let problem = "it cannot be told whether this `# Agent Response` is another response or part of what is \
        written above: write one response alone, and put a file or a command that has such lines or fences \
        between longer fences";
    Fault::at(line, problem)
}
