//! Makes text safe to show: removes keys, escape sequences and invisible characters. Pure.
//!
//! All untrusted text passes through [`HtmlEscaper`] before it becomes markup, which then escapes it. Keys are
//! redacted from the whole text before it is cut or highlighted, since part of a key would no longer be
//! recognized.

use crate::secret::Redactor;
use crate::secret::escapes::without_styles;
use crate::sys::numbers::grouped;
use crate::sys::text::{cut, printable};

/// The maximum length of a line, in characters.
pub const LINE: usize = 1000;

/// The limits of a message, in lines and bytes.
const PASSAGE: (usize, usize) = (200, 16 << 10);

/// Redacts and cleans all text of a page.
#[derive(Debug, Clone, Copy)]
pub struct HtmlEscaper<'r> {
    redactor: &'r Redactor,
}

impl<'r> HtmlEscaper<'r> {
    /// Creates an escaper that removes the keys known to `redactor`.
    pub fn new(redactor: &'r Redactor) -> Self {
        Self { redactor }
    }

    /// Cleans a text of one or more lines. Replaces control characters and bidirectional overrides, which can
    /// make code read differently from how it runs.
    pub fn text(self, text: &str) -> String {
        let redacted = self.redactor.text(text);
        let plain = without_styles(&redacted).replace('\u{feff}', "\u{fffd}");
        printable(&plain, &['\n', '\t'])
    }

    /// Cleans a single line, replacing line breaks.
    pub fn line(self, line: &str) -> String {
        self.text(line).replace('\n', "\u{fffd}")
    }

    /// Cleans a text that should be short, such as a message, and cuts it if it is not.
    pub fn passage(self, text: &str) -> String {
        let text = self.text(text);
        let (shown, is_all) = beginning(&text, PASSAGE.0, PASSAGE.1);
        format!("{shown}{}", if is_all { "" } else { "\u{2026}" })
    }

    /// Cleans a line of a file or of output; a long line is cut and marked as such.
    pub fn cut_line(self, line: &[u8]) -> String {
        let mut text = self.line(&String::from_utf8_lossy(line));
        if let Some((end, _)) = text.char_indices().nth(LINE) {
            let more = grouped(text.split_off(end).chars().count() as u64);
            text += &format!(" \u{2026} {more} more characters");
        }
        text
    }

    /// Cleans a name and cuts it if it is long.
    pub fn name(self, name: &str) -> String {
        cut(&self.line(name), LINE / 4).into_owned()
    }
}

/// Returns the first `lines` lines of a text, up to `bytes` bytes, and whether that is all of it.
pub fn beginning(text: &str, lines: usize, bytes: usize) -> (&str, bool) {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(lines) {
        if end + line.len() > bytes {
            if end == 0 {
                end = text.floor_char_boundary(bytes);
            }
            break;
        }
        end += line.len();
    }
    (&text[..end], end == text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_and_keys_are_removed_or_shown() {
        let redactor = Redactor::new(["sk-key-1234567890"]);
        let escaper = HtmlEscaper::new(&redactor);
        for (text, expected) in [
            ("a\n\tb", "a\n\tb"),
            ("\u{1b}[1;31merror\u{1b}[0m: x", "error: x"),
            (
                "\u{1b}]8;;http://x\u{7}link",
                "\u{fffd}]8;;http://x\u{fffd}link",
            ),
            ("\u{1b}]0;title\u{1b}\\x", "\u{fffd}]0;title\u{fffd}\\x"),
            ("\u{1b}(Bx\u{9b}2Ky", "xy"),
            ("\u{1b}Pdata\u{1b}\\x", "\u{fffd}Pdata\u{fffd}\\x"),
            ("a\0b\u{7f}\u{85}\r", "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}"),
            ("x\u{202e}y\u{2066}z", "x\u{fffd}y\u{fffd}z"),
            ("key: sk-key-\u{1b}[0m1234567890", "key: [REDACTED]90"),
        ] {
            assert_eq!(escaper.text(text), expected, "{text:?}");
        }
        assert_eq!(escaper.line("a\nb"), "a\u{fffd}b");
    }

    #[test]
    fn keys_are_taken_out_before_a_line_is_cut() {
        let redactor = Redactor::new(["sk-key-1234567890"]);
        let line = format!("{}sk-key-1234567890", "x".repeat(LINE - 5));
        let cut = HtmlEscaper::new(&redactor).cut_line(line.as_bytes());
        assert!(cut.ends_with("x[REDA \u{2026} 7 more characters"), "{cut}");
    }

    #[test]
    fn a_beginning_is_whole_lines_where_there_are_any() {
        for (text, lines, bytes, expected) in [
            ("", 2, 9, ("", true)),
            ("a\nb\n", 2, 9, ("a\nb\n", true)),
            ("a\nb\nc", 2, 9, ("a\nb\n", false)),
            ("aaa\nbbb\n", 9, 6, ("aaa\n", false)),
            ("\u{e4}\u{e4}\u{e4}", 9, 3, ("\u{e4}", false)),
        ] {
            assert_eq!(beginning(text, lines, bytes), expected, "{text:?}");
        }
    }
}
