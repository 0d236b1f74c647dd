//! Terminal escape sequences, which are invisible and may split a key. Pure.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Pattern for colours, titles, links and other sequences.
const ESCAPES: &str = concat!(
    r"(?:\x1b\[|\u{9b})[0-?]*[ -/]*[@-~]",
    r"|(?:\x1b\]|\u{9d})[^\x07\x1b\u{9c}\n]*(?:\x07|\x1b\\|\u{9c})?",
    r"|(?:\x1b[PX^_])[^\x1b\n]*(?:\x1b\\)?",
    r"|\x1b[ -/]*[0-~]",
);

/// Pattern for colours and cursor movements, none of which can carry text.
const STYLES: &str = r"(?:\x1b\[|\u{9b})[0-9:;?]*[A-Za-z]|\x1b\([0B]";

static ESCAPE: LazyLock<Regex> = LazyLock::new(|| compiled(ESCAPES));
static STYLE: LazyLock<Regex> = LazyLock::new(|| compiled(STYLES));

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, which the tests compile"
)]
fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid pattern")
}

/// Removes terminal escape sequences from `text`.
pub(crate) fn without_escapes(text: &str) -> Cow<'_, str> {
    without(&ESCAPE, text)
}

/// Removes colours and cursor movements from `text`, for display to people. Titles, links and the like are kept, since
/// a command may contain what looks like one.
pub(crate) fn without_styles(text: &str) -> Cow<'_, str> {
    without(&STYLE, text)
}

fn without<'t>(pattern: &LazyLock<Regex>, text: &'t str) -> Cow<'t, str> {
    if has_any(text) {
        pattern.replace_all(text, "")
    } else {
        text.into()
    }
}

/// Returns whether `text` may contain escape sequences. Most texts do not, and compiling the pattern is slow.
fn has_any(text: &str) -> bool {
    let begins = ['\u{1b}', '\u{9b}', '\u{9d}'];
    begins.iter().any(|begin| text.contains(*begin))
}

/// The visible part of a text, with its positions in the original.
#[derive(Debug)]
pub(super) struct SeenText {
    /// Text without escape sequences.
    pub text: String,
    /// Positions of the gaps in `text`, each with the number of bytes removed so far.
    gaps: Vec<(usize, usize)>,
}

impl SeenText {
    /// Removes the escape sequences; `None` if `text` has none.
    pub fn of(text: &str) -> Option<Self> {
        if !has_any(text) {
            return None;
        }
        let mut seen = Self {
            text: String::with_capacity(text.len()),
            gaps: Vec::new(),
        };
        let mut done = 0;
        for escape in ESCAPE.find_iter(text) {
            seen.text.push_str(&text[done..escape.start()]);
            done = escape.end();
            seen.gaps.push((seen.text.len(), done - seen.text.len()));
        }
        seen.text.push_str(&text[done..]);
        Some(seen)
    }

    /// Maps a non-empty range of the visible text to the original text.
    pub fn whole(&self, range: &Range<usize>) -> Range<usize> {
        let left_out = |at: usize| {
            let before = self.gaps.partition_point(|(gap, _)| *gap <= at);
            before.checked_sub(1).map_or(0, |last| self.gaps[last].1)
        };
        let last = range.end - 1;
        range.start + left_out(range.start)..range.end + left_out(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_ranges_map_to_the_raw_text() {
        let text = "a\u{1b}[1mkey\u{1b}[0m\u{1b}(B-1\u{9b}m b";
        let seen = SeenText::of(text).unwrap();
        assert_eq!(seen.text, "akey-1 b");
        assert_eq!(seen.text, without_escapes(text));
        for (range, expected) in [
            (0..1, "a"),
            (1..4, "key"),
            (1..6, "key\u{1b}[0m\u{1b}(B-1"),
            (4..6, "-1"),
            (6..8, " b"),
        ] {
            assert_eq!(&text[seen.whole(&range)], expected, "{range:?}");
        }
        assert!(SeenText::of("plain").is_none());
    }
}
