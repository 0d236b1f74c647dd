//! A reply's lines: which are headings, which are fences, and which of the fences belong together. Pure.

/// A line of the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'r> {
    /// Its number in the whole reply, from 1 on.
    pub number: usize,
    /// Its text with its line end.
    pub raw: &'r str,
}

/// What no reader sees in front of a line, as some models write it.
const INVISIBLE: [char; 4] = ['\u{feff}', '\u{a0}', '\u{200b}', '\u{2060}'];

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

impl<'r> Line<'r> {
    /// Its text, less its line end.
    pub fn text(&self) -> &'r str {
        let text = self.raw.strip_suffix('\n').unwrap_or(self.raw);
        text.strip_suffix('\r').unwrap_or(text)
    }

    pub fn is_blank(&self) -> bool {
        self.raw.trim().is_empty()
    }

    /// Its text, less the indentation that Markdown allows for; `None` where it is indented further.
    fn unindented(&self) -> Option<&'r str> {
        let text = self.text();
        let unindented = text.trim_start_matches(' ');
        (text.len() - unindented.len() <= 3).then_some(unindented)
    }

    /// The heading that it is: its level, and its title without any ornament.
    pub fn heading(&self) -> Option<(usize, &'r str)> {
        let text = self.unindented()?.trim_start_matches(INVISIBLE);
        let title = text.trim_start_matches('#');
        let level = text.len() - title.len();
        let ornament = |c: char| c.is_whitespace() || "#*_`:".contains(c);
        (1..=6)
            .contains(&level)
            .then(|| (level, title.trim_matches(ornament)))
    }

    /// Whether it is the header that a response begins with.
    pub fn is_header(&self) -> bool {
        let heading = self.heading();
        heading.is_some_and(|(level, title)| level == 1 && is_title(title, "Agent Response"))
    }

    /// The fence that it is.
    pub fn fence(&self) -> Option<Fence<'r>> {
        let text = self.unindented()?;
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        // Behind backticks, another backtick makes it a line of text with code in it.
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then(|| Fence {
            mark,
            length,
            info: info.trim(),
            line: self.number,
        })
    }
}

/// Whether a heading's title is `name`, in any letter case.
pub fn is_title(title: &str, name: &str) -> bool {
    let mut words = title.split_whitespace();
    let mut expected = name.split_whitespace();
    expected.all(|expected| {
        words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(expected))
    }) && words.next().is_none()
}

/// A line of three or more backticks or tildes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence<'r> {
    mark: char,
    length: usize,
    /// What stands behind it.
    pub info: &'r str,
    /// The number of its line.
    pub line: usize,
}

impl<'r> Fence<'r> {
    /// Whether it closes what `opening` opened.
    pub fn closes(&self, opening: &Fence<'_>) -> bool {
        self.info.is_empty() && self.is_within(opening)
    }

    /// Whether it could close what `opening` opened, but for what stands behind it.
    pub fn is_within(&self, opening: &Fence<'_>) -> bool {
        self.mark == opening.mark && self.length >= opening.length
    }

    /// The first word behind it.
    pub fn label(&self) -> &'r str {
        self.info.split_whitespace().next().unwrap_or_default()
    }
}

/// The fences that are open, the innermost last.
///
/// Markdown itself does not nest fences of one length, but models do. So a fence with an info string
/// opens another block, and a bare one closes the innermost, or opens one where none is open.
#[derive(Debug, Clone, Default)]
pub struct Nesting<'r>(Vec<Fence<'r>>);

impl<'r> Nesting<'r> {
    /// What is open behind `lines`.
    pub fn behind(lines: &[Line<'r>]) -> Self {
        let mut nesting = Self::default();
        for line in lines {
            nesting.step(line);
        }
        nesting
    }

    /// Takes the next line.
    pub fn step(&mut self, line: &Line<'r>) {
        if let Some(fence) = line.fence() {
            self.fence(fence);
        }
    }

    fn fence(&mut self, fence: Fence<'r>) {
        match self.0.last() {
            Some(innermost) if fence.closes(innermost) => {
                self.0.pop();
            }
            // Of a block with longer or other fences, it is content.
            Some(innermost) if !fence.is_within(innermost) => {}
            _ => self.0.push(fence),
        }
    }

    /// Whether no fence is open.
    pub fn is_closed(&self) -> bool {
        self.0.is_empty()
    }

    /// How many fences are open.
    pub fn depth(&self) -> usize {
        self.0.len()
    }

    /// The innermost open fence.
    pub fn innermost(&self) -> Option<&Fence<'r>> {
        self.0.last()
    }

    /// The outermost open fence.
    pub fn outermost(&self) -> Option<&Fence<'r>> {
        self.0.first()
    }

    /// The open fence, where it is the only one.
    pub fn only(&self) -> Option<&Fence<'r>> {
        self.innermost().filter(|_| self.0.len() == 1)
    }

    /// The first of the open fences that has an info string.
    fn labelled(&self) -> Option<&Fence<'r>> {
        self.0.iter().find(|fence| !fence.info.is_empty())
    }
}

/// A fenced block at the beginning of some lines.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a, 'r> {
    /// The lines between its fences.
    pub content: &'a [Line<'r>],
    /// The lines behind it.
    pub behind: &'a [Line<'r>],
    /// The line of a fence in its content that could have closed it, and belongs to no other.
    pub odd: Option<usize>,
    /// The line of the first fence in its content that could have closed it, and seems to open a block.
    pub bare: Option<usize>,
}

/// Why no block can be told from the rest.
#[derive(Debug, Clone, Copy)]
pub enum BlockProblem {
    /// Nothing closes it.
    Open,
    /// It could end at more than one fence; the line of one that makes it so.
    Unclear(usize),
}

impl<'a, 'r> Block<'a, 'r> {
    /// The block that `opening`, the first of `lines`, opens. It goes to the last fence that can close it,
    /// so that a file may hold fences of the same length.
    pub fn of(lines: &'a [Line<'r>], opening: &Fence<'r>) -> Result<Self, BlockProblem> {
        let rest = lines.get(1..).unwrap_or_default();
        let closes = |line: &Line<'r>| line.fence().is_some_and(|fence| fence.closes(opening));
        let end = rest.iter().rposition(closes).ok_or(BlockProblem::Open)?;
        let (content, behind) = rest.split_at(end);
        let behind = behind.get(1..).unwrap_or_default();
        let mut nesting = Nesting::default();
        let mut bare = None;
        let inner = content.iter().filter_map(Line::fence);
        for fence in inner.filter(|fence| fence.is_within(opening)) {
            if nesting.is_closed() && fence.info.is_empty() {
                bare = bare.or(Some(fence.line));
            }
            nesting.fence(fence);
        }
        // Either the last fence closes an inner block and the outer one is cut short, or the block ended
        // long before and another has followed.
        if let Some(labelled) = nesting.labelled() {
            return Err(BlockProblem::Unclear(labelled.line));
        }
        let odd = nesting.innermost().map(|fence| fence.line);
        if let Some(odd) = odd.filter(|_| !trimmed(behind).is_empty()) {
            return Err(BlockProblem::Unclear(odd));
        }
        Ok(Self {
            content,
            behind,
            odd,
            bare,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_told_whatever_it_is_adorned_with() {
        for (text, expected) in [
            ("# Agent Response", Some((1, "Agent Response"))),
            (
                "  #  **Agent Response** ## \r\n",
                Some((1, "Agent Response")),
            ),
            ("### Tool Choice:", Some((3, "Tool Choice"))),
            ("## `Tool Input`:**", Some((2, "Tool Input"))),
            ("#", Some((1, ""))),
            ("    # indented code", None),
            ("####### seven", None),
            ("> # quoted", None),
            ("\u{feff}# Agent Response", Some((1, "Agent Response"))),
            (
                " \u{a0}# Agent\u{a0}Response",
                Some((1, "Agent\u{a0}Response")),
            ),
            ("words", None),
            ("", None),
        ] {
            let line = Line {
                number: 1,
                raw: text,
            };
            assert_eq!(line.heading(), expected, "{text:?}");
        }
        let is_header = |raw| Line { number: 1, raw }.is_header();
        assert!(is_header("# AGENT  response\n"));
        assert!(is_header("\u{a0}# Agent\u{a0}Response"));
        assert!(!is_header("## Agent Response"));
        assert!(!is_header("# Agent Responses"));
    }

    #[test]
    fn a_fence_is_three_or_more_of_one_mark() {
        let fence = |raw| {
            let fence = Line { number: 1, raw }.fence();
            fence.map(|fence| (fence.mark, fence.length, fence.info))
        };
        for (text, expected) in [
            ("```\n", Some(('`', 3, ""))),
            ("   ````rust ignore \r\n", Some(('`', 4, "rust ignore"))),
            ("~~~ `a`", Some(('~', 3, "`a`"))),
            ("``", None),
            ("```a``` is code", None),
            ("    ```", None),
            ("x```", None),
        ] {
            assert_eq!(fence(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_block_goes_to_the_last_fence_that_can_close_it() {
        // `o`: a fence with an info string, `c`: a bare one, `C`: a longer bare one, `x`: text.
        let summary = |shape: &str| {
            let raw = |c| match c {
                'o' => "```sh\n",
                'c' => "```\n",
                'C' => "````\n",
                't' => "~~~\n",
                _ => "x\n",
            };
            let text: String = shape.chars().map(raw).collect();
            let lines = lines(&text);
            let opening = lines[0].fence().unwrap();
            match Block::of(&lines, &opening) {
                Ok(block) => format!("{}/{}", block.content.len(), block.behind.len()),
                Err(BlockProblem::Open) => "open".to_owned(),
                Err(BlockProblem::Unclear(line)) => format!("unclear at {line}"),
            }
        };
        for (shape, expected) in [
            ("oxc", "1/0"),
            ("oc", "0/0"),
            ("cxC", "1/0"),
            ("Cxc", "open"),
            ("Cxcxc", "open"),
            ("Coxcoxcxc", "open"),
            ("CoxcxC", "4/0"),
            ("oxt", "open"),
            // Blocks in a block of the same length.
            ("oxoxcxc", "5/0"),
            ("oxcxcxc", "5/0"),
            ("ocxcoxcc", "6/0"),
            // A stray fence in a file, with nothing behind the block that could be cut off.
            ("oxcxc", "3/0"),
            ("oxcx", "1/1"),
            ("oxcxcx", "unclear at 3"),
            // The end of the outer block is missing.
            ("oxoxc", "unclear at 3"),
            ("oxoxcx", "unclear at 3"),
            // One block after the other.
            ("oxcoxc", "unclear at 4"),
        ] {
            assert_eq!(summary(shape), expected, "{shape}");
        }
    }
}
