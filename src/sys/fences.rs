//! Code fences as defined by CommonMark: determines which lines of a text are inside a fenced block. Pure.
//!
//! A fence is a run of three or more backticks or tildes, indented by at most three blanks. It opens a block and may
//! have an info string. The first bare fence of the same character that is at least as long closes the block.
//! Fences do not nest; an unclosed block extends to the end of the text.

/// A line that is a code fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence<'t> {
    pub mark: char,
    /// Number of fence characters: at least three.
    pub length: usize,
    /// Info string: the trimmed text after the fence characters.
    pub info: &'t str,
}

impl<'t> Fence<'t> {
    /// Parses `line`, with or without its line end; `None` if it is not a fence.
    pub fn of(line: &'t str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            return None;
        }
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        // A backtick in the info string makes the line inline code instead of a fence.
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then(|| Self {
            mark,
            length,
            info: info.trim(),
        })
    }

    /// Returns whether this fence closes the block that `opening` opened.
    pub fn closes(&self, opening: &Fence<'_>) -> bool {
        self.info.is_empty() && self.outlasts(opening)
    }

    /// Returns whether every fence that closes this one's block would also close that of `other`.
    pub fn outlasts(&self, other: &Fence<'_>) -> bool {
        self.mark == other.mark && self.length >= other.length
    }
}

/// Returns the opening fence and the content of a block that encloses all of the text.
pub(crate) fn enclosed(text: &str) -> Option<(Fence<'_>, &str)> {
    let (first, rest) = text.split_once('\n')?;
    let (content, last) = rest.rsplit_once('\n')?;
    let opening = Fence::of(first)?;
    Fence::of(last)?
        .closes(&opening)
        .then_some((opening, content))
}

/// Role of a line with respect to fenced blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FenceLine {
    /// The line is outside any block.
    Outside,
    /// The line opens a block.
    Opening,
    /// The line is inside a block.
    Inside,
    /// The line closes a block.
    Closing,
}

/// A tracker of the fenced blocks in a text, line by line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FenceScanner<'t> {
    open: Option<Fence<'t>>,
}

impl<'t> FenceScanner<'t> {
    /// Processes the next line.
    pub fn step(&mut self, line: &'t str) -> FenceLine {
        match (self.open, Fence::of(line)) {
            (None, None) => FenceLine::Outside,
            (None, opening) => {
                self.open = opening;
                FenceLine::Opening
            }
            (Some(opening), Some(fence)) if fence.closes(&opening) => {
                self.open = None;
                FenceLine::Closing
            }
            (Some(_), _) => FenceLine::Inside,
        }
    }

    /// Returns the fence that opened the current block, if any.
    pub fn open(&self) -> Option<&Fence<'t>> {
        self.open.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_three_or_more_of_one_mark() {
        for (text, expected) in [
            ("```\n", Some(('`', 3, ""))),
            ("   ````rust ignore \r\n", Some(('`', 4, "rust ignore"))),
            ("~~~ `a`", Some(('~', 3, "`a`"))),
            ("``", None),
            ("```a``` is code", None),
            ("    ```", None),
            ("\t```", None),
            ("x```", None),
            ("", None),
        ] {
            let fence = Fence::of(text).map(|fence| (fence.mark, fence.length, fence.info));
            assert_eq!(fence, expected, "{text:?}");
        }
    }

    #[test]
    fn the_first_bare_fence_that_is_long_enough_closes_a_block() {
        let places = |text: &str| {
            let mut scanner = FenceScanner::default();
            let sign = |line| match scanner.step(line) {
                FenceLine::Outside => '.',
                FenceLine::Opening => '(',
                FenceLine::Inside => 'x',
                FenceLine::Closing => ')',
            };
            text.lines().map(sign).collect::<String>()
        };
        for (text, expected) in [
            ("a\n```\nb\n```\nc", ".(x)."),
            ("```md\n```sh\n```\n```", "(x)("),
            ("````md\n```\n```\n````\n", "(xx)"),
            ("```\n~~~\n```  \n~~~", "(x)("),
            ("```\n````\na", "()."),
            ("````\n```\n    ````\n```` a\n`````", "(xxx)"),
            ("~~~ a\n~~~~\r\n", "()"),
            ("```a```\n```", ".("),
        ] {
            assert_eq!(places(text), expected, "{text}");
        }
    }
}
