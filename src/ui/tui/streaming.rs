//! Markdown that is still coming, as blocks. Pure.
//!
//! Guarantees that the work for a text that grows is that for its last blocks: what comes before them is settled, and
//! never looked at again.

use pulldown_cmark::{Event, Options, Parser};

/// A block that is longer is cut, in bytes: a frame draws no more than what is seen, and that is a part of a few blocks.
const LONGEST: usize = 8 << 10;

/// A piece of a text that is shown by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkdownBlock {
    /// The Markdown.
    pub text: String,
    /// True if it goes on with the block before, so that nothing stands between them.
    pub continues: bool,
}

/// Takes all blocks but the last off `text`, which goes on as that one; `continues` as [`MarkdownBlock::continues`] of it.
pub fn take_settled(text: &mut String, continues: &mut bool) -> Vec<MarkdownBlock> {
    let mut settled = Vec::new();
    let starts = block_starts(text);
    let rest = text.split_off(starts.last().copied().unwrap_or_default());
    let whole = std::mem::replace(text, rest);
    let mut from = 0;
    for to in starts.into_iter().skip(1) {
        let mut block = MarkdownBlock {
            text: whole[from..to].to_owned(),
            continues: std::mem::take(continues),
        };
        from = to;
        settled.extend(take_parts(&mut block));
        settled.push(block);
    }
    let mut last = MarkdownBlock {
        text: std::mem::take(text),
        continues: *continues,
    };
    settled.extend(take_parts(&mut last));
    (*text, *continues) = (last.text, last.continues);
    settled
}

/// Where the blocks of the outermost level begin, the first at 0.
fn block_starts(text: &str) -> Vec<usize> {
    let (mut starts, mut depth) = (vec![0], 0_usize);
    // What the last line is, its end decides: a bar may begin a row of the table before.
    let lines = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    for (event, range) in Parser::new_ext(lines, Options::ENABLE_TABLES).into_offset_iter() {
        if depth == 0 {
            // Indentation is a part of some blocks.
            let start = lines[..range.start].rfind('\n').map_or(0, |at| at + 1);
            if starts.last().is_some_and(|last| *last < start) {
                starts.push(start);
            }
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    starts
}

/// Takes what is too much off the beginning of a block.
fn take_parts(block: &mut MarkdownBlock) -> Vec<MarkdownBlock> {
    if block.text.len() <= LONGEST {
        return Vec::new();
    }
    // A rule, not a heuristic: what is a fence stands in the first line.
    let fence = block.text.lines().next().unwrap_or_default().to_owned();
    let line = fence.trim_start();
    let marks = &line[..line.len() - line.trim_start_matches(['`', '~']).len()];
    let is_code = marks.len() >= 3;
    let (open, close) = if is_code {
        (format!("{fence}\n"), format!("\n{marks}\n"))
    } else {
        Default::default()
    };
    let whole = std::mem::take(&mut block.text);
    let (mut parts, mut from) = (Vec::new(), 0);
    while whole.len() - from > LONGEST {
        let limit = (from..=from + LONGEST).rfind(|at| whole.is_char_boundary(*at));
        let limit = limit.unwrap_or(whole.len());
        let cut = whole[from..limit].rfind('\n').map(|at| from + at + 1);
        // A line that long is cut anywhere; so is what has nothing but the fence before it.
        let cut = cut.filter(|cut| from > 0 || *cut > open.len());
        let cut = cut.unwrap_or(limit);
        let (open, part) = (if from > 0 { open.as_str() } else { "" }, &whole[from..cut]);
        let part = if is_code {
            part.trim_end_matches('\n')
        } else {
            part
        };
        parts.push(MarkdownBlock {
            text: format!("{open}{part}{close}"),
            continues: std::mem::replace(&mut block.continues, true),
        });
        from = cut;
    }
    block.text = if from > 0 { open } else { String::new() } + &whole[from..];
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ui::markdown::{rendered, uncolored};

    /// The text that comes in pieces of this size, as blocks.
    fn streamed(text: &str, size: usize) -> Vec<MarkdownBlock> {
        let (mut open, mut continues, mut blocks) = (String::new(), false, Vec::new());
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size.max(1)) {
            open.extend(piece);
            blocks.extend(take_settled(&mut open, &mut continues));
        }
        blocks.push(MarkdownBlock {
            text: open,
            continues,
        });
        blocks
    }

    fn lines(text: &str) -> Vec<String> {
        let lines = rendered(text, 60, false, &uncolored).into_iter();
        lines.map(|line| line.to_string()).collect()
    }

    fn shown(blocks: &[MarkdownBlock]) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for block in blocks {
            let shown = lines(&block.text);
            if !block.continues && !all.is_empty() && !shown.is_empty() {
                all.push(String::new());
            }
            all.extend(shown);
        }
        all
    }

    const TEXT: &str = "# Head\n\nOne *two*\nthree.\n\n- a\n- b\n\n  more of b\n- c\n\n```rust\nfn x() {\n\n}\n```\n\
                        Text\n\n    indented\n\n    code\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> said\n\n---\nEnd\n===\n";

    #[test]
    fn a_text_looks_the_same_however_it_comes() {
        let whole = lines(TEXT);
        for size in [1, 2, 3, 7, 40, 10_000] {
            assert_eq!(shown(&streamed(TEXT, size)), whole, "{size}");
        }
    }

    #[test]
    fn blocks_are_bounded_and_code_stays_code() {
        let line = "let x = 1;\n";
        let code = format!("~~~~rust\n{}~~~~\n\nEnd", line.repeat(3000));
        for text in [code, "a ".repeat(LONGEST), "ä".repeat(LONGEST)] {
            let blocks = streamed(&text, 997);
            assert!(blocks.len() > 1);
            assert!(blocks.iter().all(|block| block.text.len() < LONGEST + 99));
            let is_code = |line: &String| line.starts_with("    let x = 1;");
            let lines = shown(&blocks);
            if text.starts_with('~') {
                assert_eq!(lines.iter().filter(|line| is_code(line)).count(), 3000);
                assert!(!lines[..3000].contains(&String::new()));
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "([a-z`#>|~*\\-0-9. ]{0,12}\n{0,3}){0,20}", size in 1_usize..30) {
            let blocks = streamed(&text, size);
            let all: String = blocks.into_iter().map(|block| block.text).collect();
            prop_assert_eq!(all, text);
        }
    }
}
