//! Shortens a text to its beginning and its end. Pure.
//!
//! Guarantees that everything omitted is counted, including earlier omissions.

use super::left_out;
use crate::sys::numbers::counted;
use crate::sys::text::line_end;

/// Number of additional bytes that a character takes in JSON if it is escaped like `\u0000`.
const GROWTH: usize = 5;

/// Returns whether JSON writes this byte as a numeric escape.
fn is_escaped(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\x08' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

/// Maximum length of the line for the omitted part.
const MARKER: usize = 96;

/// Returns `text` unchanged up to `limit` bytes, otherwise its beginning and its end, with a line in between that
/// counts the omitted part. Cuts are at line breaks where possible, and never inside a character. If escaping its
/// control characters in JSON would exceed the limit, each of them is replaced.
pub fn bounded(text: &str, limit: usize) -> String {
    let growth = GROWTH * text.bytes().filter(|byte| is_escaped(*byte)).count();
    let text = if growth > 0 && text.len() + growth > limit {
        &text.replace(|c: char| u8::try_from(c).is_ok_and(is_escaped), "\u{fffd}")
    } else {
        text
    };
    if text.len() <= limit {
        return text.to_owned();
    }
    let half = limit.saturating_sub(MARKER) / 2;
    let head = head_of(text, half);
    let tail = tail_of(text, half);
    let middle = text
        .get(head.len()..text.len() - tail.len())
        .unwrap_or_default();
    let newline = line_end(head);
    format!("{head}{newline}[... {} left out ...]\n{tail}", size(middle))
}

/// Formats the size of the omitted text. If it contains earlier omissions, the number of lines is unknown.
fn size(middle: &str) -> String {
    let before = middle
        .lines()
        .filter_map(|line| Some((line, left_out(line)?)));
    let (mut bytes, mut is_known) = (middle.len() as u64, true);
    for (line, left_out) in before {
        bytes = bytes
            .saturating_sub(line.len() as u64 + 1)
            .saturating_add(left_out);
        is_known = false;
    }
    let bytes = counted(bytes, "byte");
    if is_known {
        let lines = counted(middle.lines().count() as u64, "line");
        format!("{lines}, {bytes}")
    } else {
        bytes
    }
}

/// Returns at most `budget` bytes of the beginning, up to the end of a line if one is near.
fn head_of(text: &str, budget: usize) -> &str {
    let head = &text[..text.floor_char_boundary(budget)];
    let whole_lines = head.rfind('\n').map_or(0, |newline| newline + 1);
    // A line break in the first half would cost too much of the budget.
    if whole_lines > budget / 2 {
        head.get(..whole_lines).unwrap_or(head)
    } else {
        head
    }
}

/// Maximum number of bytes of a running command's output that are shown.
pub const FOLLOWED: usize = 8 << 10;

/// Returns at most `budget` bytes of the end, from the beginning of a line if one is near.
pub fn tail_of(text: &str, budget: usize) -> &str {
    let Some(earliest) = text.len().checked_sub(budget).filter(|at| *at > 0) else {
        return text;
    };
    let (before, tail) = text.split_at(text.ceil_char_boundary(earliest));
    if before.ends_with('\n') {
        return tail;
    }
    let skipped = tail.find('\n').map_or(tail.len(), |newline| newline + 1);
    if tail.len() - skipped > budget / 2 {
        tail.get(skipped..).unwrap_or(tail)
    } else {
        tail
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sys::numbers::grouped;

    const LIMIT: usize = 32 << 10;

    #[test]
    fn short_text_is_shown_whole() {
        for text in ["", "a", &"x".repeat(LIMIT)] {
            assert_eq!(bounded(text, LIMIT), text);
        }
    }

    #[test]
    fn control_characters_do_not_make_it_longer_in_json() {
        let few = format!("a\0b\u{1b}[1m{}", "x".repeat(LIMIT / 2));
        assert_eq!(bounded(&few, LIMIT), few);
        let signs = "\0\u{1b}\u{1f}\t\r\n\x0c\u{7f}".repeat(LIMIT / 16);
        let shown = bounded(&signs, LIMIT);
        assert_eq!(shown, signs.replace(['\0', '\u{1b}', '\u{1f}'], "\u{fffd}"));
        for many in ["\0".repeat(LIMIT), "\u{1b}".repeat(LIMIT * 9)] {
            let sent = serde_json::to_string(&bounded(&many, LIMIT)).unwrap();
            assert!(sent.len() <= LIMIT + 4, "{}", sent.len());
        }
    }

    #[test]
    fn long_text_loses_whole_lines_in_the_middle() {
        let text: String = (1..=9000).map(|line| format!("line {line}\n")).collect();
        let shown = bounded(&text, LIMIT);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!((lines[0], lines[lines.len() - 1]), ("line 1", "line 9000"));
        let marker = lines
            .iter()
            .position(|line| line.starts_with("[..."))
            .unwrap();
        let kept = lines.len() - 1;
        let left_out = grouped((9000 - kept) as u64);
        assert!(
            lines[marker].starts_with(&format!("[... {left_out} lines, ")),
            "{}",
            lines[marker]
        );
        assert_eq!(lines[marker - 1], format!("line {marker}"));
    }

    #[test]
    fn earlier_omissions_are_counted_too() {
        let (head, tail) = ("h\n".repeat(20_000), "t\n".repeat(20_000));
        let text = format!("{head}[... 5840320 bytes left out ...]\n{tail}");
        let shown = bounded(&text, LIMIT);
        let (kept_head, behind) = shown.split_once("[... ").unwrap();
        let (counted, kept_tail) = behind.split_once(" bytes left out ...]\n").unwrap();
        let kept = kept_head.len() + kept_tail.len();
        let left_out = head.len() + tail.len() + 5_840_320 - kept;
        assert_eq!(counted, grouped(left_out as u64));
    }

    proptest! {
        #[test]
        fn head_and_tail_are_the_texts_own_and_the_rest_is_counted(
            text in "[aä€😀\r\n]{0,400}", limit in 100_usize..400,
        ) {
            let shown = bounded(&text, limit);
            prop_assert!(shown.len() <= limit);
            if text.len() <= limit {
                prop_assert_eq!(shown, text);
                return Ok(());
            }
            let at = shown.find("[... ").unwrap();
            let (before, behind) = shown.split_at(at);
            let (marker, tail) = behind.split_once('\n').unwrap();
            // The newline before the marker is the text's own, or was set there.
            let heads = [before, before.strip_suffix('\n').unwrap_or(before)];
            prop_assert!(text.ends_with(tail));
            let is_right = heads.into_iter().filter(|head| text.starts_with(head)).any(|head| {
                let left_out = text.len() - head.len() - tail.len();
                marker.ends_with(&format!(", {} left out ...]", counted(left_out as u64, "byte")))
            });
            prop_assert!(is_right, "{}", shown);
        }
    }
}
