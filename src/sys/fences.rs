//! Code fences, as CommonMark has them: which lines of a text stand in a fenced block. Pure.
//!
//! A fence is a run of three or more backticks or tildes behind at most three blanks. It opens a block, with an
//! info string where there is one, and the first bare fence of the same mark that is at least as long closes it.
//! Fences do not nest; a block that nothing closes goes to the end of the text.

/// A line that is a fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence<'t> {
    pub mark: char,
    /// The number of marks it has: at least three.
    pub length: usize,
    /// The info string: what stands behind the marks, trimmed.
    pub info: &'t str,
}

impl<'t> Fence<'t> {
    /// The fence that `line` is, with or without its line end.
    pub fn of(line: &'t str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        if line.len() - text.len() > 3 {
            return None;
        }
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        // Behind backticks, another backtick makes it a line of words with code in it.
        let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
        is_fence.then(|| Self {
            mark,
            length,
            info: info.trim(),
        })
    }

    /// Returns whether it closes the block that `opening` opened.
    pub fn closes(&self, opening: &Fence<'_>) -> bool {
        self.info.is_empty() && self.mark == opening.mark && self.length >= opening.length
    }
}

/// The role of a line among fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FenceLine {
    /// It stands in no block.
    Outside,
    /// It opens a block.
    Opening,
    /// It stands in a block.
    Inside,
    /// It closes a block.
    Closing,
}

/// Reads a text line by line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FenceScanner<'t> {
    open: Option<Fence<'t>>,
}

impl<'t> FenceScanner<'t> {
    /// Takes the next line.
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

    /// The fence that opened the block that the text is in.
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
