//! The fenced blocks of a tool's input, alone or labelled with parameters' names. Pure.

use super::super::Fault;
use super::lines::{Block, BlockProblem, Fence, Line, joined};
use super::sections::Name;
use crate::agent::tool::Parameter;

/// The parameters whose names label the blocks.
pub struct Labels<'a> {
    /// The parameters.
    pub parameters: &'a [&'static Parameter],
    /// What is in the blocks.
    pub form: Form,
}

/// What a file's content is, as far as it matters to where it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Markdown, or text that may have some in it: a bare fence may open a block.
    Markdown,
    /// Something else, where a bare fence is more likely the end of it.
    Other,
}

/// What names of texts have between their dots.
const TEXTS: [&str; 12] = [
    "md", "markdown", "mdx", "mdc", "mdown", "mkd", "qmd", "rmd", "rst", "adoc", "txt", "readme",
];

impl Form {
    /// The form of what has this name: a file's, or that which stands behind a fence.
    pub fn of(name: &str) -> Self {
        let file = name.rsplit(['/', '\\']).next().unwrap_or_default();
        let is_text = |part: &str| TEXTS.iter().any(|text| part.eq_ignore_ascii_case(text));
        if file.split('.').any(is_text) {
            Self::Markdown
        } else {
            Self::Other
        }
    }
}

impl Labels<'_> {
    fn named(&self, fence: &Fence<'_>) -> Option<&'static Parameter> {
        let label = fence.label();
        let mut known = self.parameters.iter().copied();
        known.find(|known| known.name.eq_ignore_ascii_case(label))
    }

    /// `lines`, parted before each block: a fence with a known label begins one where the block before it
    /// may have ended.
    pub fn parts<'a, 'r>(&self, lines: &'a [Line<'r>]) -> Vec<&'a [Line<'r>]> {
        let mut parts = Vec::new();
        let mut rest = lines;
        while let Some(first) = rest.first() {
            let mut is_closed = false;
            let opening = first.fence();
            let begins = |line: &Line<'r>| {
                let (Some(fence), Some(opening)) = (line.fence(), opening) else {
                    return false;
                };
                let begins = is_closed && self.named(&fence).is_some();
                is_closed |= fence.closes(&opening);
                begins
            };
            let next = rest.iter().skip(1).position(begins);
            let (part, behind) = rest.split_at(next.map_or(rest.len(), |next| next + 1));
            parts.push(part);
            rest = behind;
        }
        parts
    }

    /// What the block at the beginning of `part` says.
    pub fn argument(&self, part: &[Line<'_>]) -> Result<(&'static Parameter, String), Fault> {
        let first = part.first().map_or(0, |line| line.number);
        let Some(fence) = part.first().and_then(Line::fence) else {
            return Err(Fault::at(
                first,
                format!("expected code blocks labelled {}", self.names()),
            ));
        };
        let parameter = self.named(&fence).ok_or_else(|| self.unknown(&fence))?;
        let block = block(part, &fence).and_then(|block| {
            nothing_else(&block)?;
            Ok(block)
        });
        let block = block.map_err(|fault| self.stray(part, &fence).unwrap_or(fault))?;
        let content = content(&block, &fence, self.form)?;
        Ok((parameter, without_last_line_end(joined(content))))
    }

    /// That a block with another label seems to follow the one that `opening` opens.
    fn stray(&self, part: &[Line<'_>], opening: &Fence<'_>) -> Option<Fault> {
        let fences = part.iter().skip(1).filter_map(Line::fence);
        let mut behind = fences.skip_while(|fence| !fence.closes(opening));
        let stray = behind.find(|fence| !fence.info.is_empty())?;
        Some(self.unknown(&stray))
    }

    fn unknown(&self, fence: &Fence<'_>) -> Fault {
        let problem = match fence.label() {
            "" => format!(
                "a code block without a label; expected are {}",
                self.names()
            ),
            label => format!(
                "a code block labelled `{label}`, where those that are expected are {}; content that has \
                 fences goes between longer ones",
                self.names()
            ),
        };
        Fault::at(fence.line, problem)
    }

    fn names(&self) -> String {
        let names: Vec<String> = self
            .parameters
            .iter()
            .map(|known| format!("`{}`", known.name))
            .collect();
        names.join(" and ")
    }
}

/// The content of the block that `fence` opens, where it is sure that it goes to the block's end.
pub fn content<'a, 'r>(
    block: &Block<'a, 'r>,
    fence: &Fence<'_>,
    form: Form,
) -> Result<&'a [Line<'r>], Fault> {
    // The block may have ended there, and words and another block have followed.
    let end = block.bare.filter(|_| form == Form::Other);
    match block.odd.or(end) {
        None => Ok(block.content),
        Some(line) => Err(unclear(fence, line)),
    }
}

/// The block that `fence`, the first of `lines`, opens.
pub fn block<'a, 'r>(lines: &'a [Line<'r>], fence: &Fence<'r>) -> Result<Block<'a, 'r>, Fault> {
    Block::of(lines, fence).map_err(|problem| match problem {
        BlockProblem::Open => open(fence),
        BlockProblem::Unclear(line) => unclear(fence, line),
    })
}

fn unclear(fence: &Fence<'_>, line: usize) -> Fault {
    let problem = format!(
        "it cannot be told where the code block that begins here ends: the fences from line {line} \
         on can be read in more ways than one; put content that has fences between longer ones, and nothing \
         behind the last"
    );
    Fault::at(fence.line, problem)
}

/// That nothing closes what `fence` opens.
pub fn open(fence: &Fence<'_>) -> Fault {
    let problem = "the code block that begins here is never closed: it ends with a line that has nothing \
        but the same fence";
    Fault::at(fence.line, problem)
}

/// Words behind a block are passed over; what could be meant as more input is not.
pub fn nothing_else(block: &Block<'_, '_>) -> Result<(), Fault> {
    let is_more = |line: &&Line<'_>| line.fence().is_some() || Name::of(line).is_some();
    match block.behind.iter().find(is_more) {
        None => Ok(()),
        Some(line) => {
            let problem = "nothing is expected behind the code block: a reply uses one tool";
            Err(Fault::at(line.number, problem))
        }
    }
}

/// `text` less its last line end.
pub fn without_last_line_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}
