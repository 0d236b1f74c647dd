//! Splits Markdown into blocks while it arrives. Pure.
//!
//! Guarantees that the work for growing text depends only on its last blocks: earlier blocks are complete and
//! never parsed again.

use pulldown_cmark::{Event, Options, Parser};

/// Removes all blocks but the last from `text`, and returns them.
pub fn take_settled(text: &mut String) -> Vec<String> {
    let starts = block_starts(text);
    let rest = text.split_off(starts.last().copied().unwrap_or_default());
    let whole = std::mem::replace(text, rest);
    let blocks = starts.windows(2);
    blocks
        .map(|block| whole[block[0]..block[1]].to_owned())
        .collect()
}

/// Returns the start of each top-level block, the first at 0.
fn block_starts(text: &str) -> Vec<usize> {
    let (mut starts, mut depth) = (vec![0], 0_usize);
    // Ignore an incomplete last line: a bar in it may begin a row of the preceding table.
    let lines = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
    for (event, range) in Parser::new_ext(lines, Options::ENABLE_TABLES).into_offset_iter() {
        if depth == 0 {
            // Indentation is part of some blocks.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ui::markdown::rendered;

    /// Returns the blocks of a text that arrives in pieces of this size.
    fn streamed(text: &str, size: usize) -> Vec<String> {
        let (mut open, mut blocks) = (String::new(), Vec::new());
        let letters: Vec<char> = text.chars().collect();
        for piece in letters.chunks(size.max(1)) {
            open.extend(piece);
            blocks.extend(take_settled(&mut open));
        }
        blocks.push(open);
        blocks
    }

    fn lines(text: &str) -> Vec<String> {
        let lines = rendered(text, 60, false, None).into_iter();
        lines.map(|line| line.to_string()).collect()
    }

    fn shown(blocks: &[String]) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for block in blocks {
            let shown = lines(block);
            if !all.is_empty() && !shown.is_empty() {
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

    proptest! {
        #[test]
        fn nothing_is_lost(text in "([a-z`#>|~*\\-0-9. ]{0,12}\n{0,3}){0,20}", size in 1_usize..30) {
            let blocks = streamed(&text, size);
            let all: String = blocks.concat();
            prop_assert_eq!(all, text);
        }
    }
}
