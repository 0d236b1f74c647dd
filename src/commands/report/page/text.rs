//! Makes text fit to be shown: without keys, escape sequences, or characters that are not to be seen. Pure.
//!
//! Whatever was written by others goes through [`HtmlEscaper`] before it goes into markup, which then escapes it.
//! Keys are taken out of a whole text, before it is cut or coloured: half a key would not be known any more.

use crate::secret::Redactor;
use crate::secret::escapes::without_escapes;
use crate::sys::numbers::grouped;
use crate::sys::text::{cut, printable};

/// A longer line is cut, in characters.
pub const LINE: usize = 1000;

/// The limits of a shown message, in lines and bytes.
const PASSAGE: (usize, usize) = (200, 16 << 10);

/// Escapes and redacts all text of a page.
#[derive(Debug, Clone, Copy)]
pub struct HtmlEscaper<'r> {
    redactor: &'r Redactor,
}

impl<'r> HtmlEscaper<'r> {
    /// Leaves out what `redactor` knows.
    pub fn new(redactor: &'r Redactor) -> Self {
        Self { redactor }
    }

    /// A text that may have several lines, fit to be shown. Beside controls, what turns the direction of text around is
    /// replaced: with it, code reads otherwise than it runs.
    pub fn text(self, text: &str) -> String {
        let text = self.redactor.text(text);
        let text = without_escapes(&text).replace('\u{feff}', "\u{fffd}");
        printable(&text, &['\n', '\t'])
    }

    /// Escapes a single line: a line break in it is shown as a character.
    pub fn line(self, line: &str) -> String {
        self.text(line).replace('\n', "\u{fffd}")
    }

    /// A text that is to be short, like a message; one that is not is cut.
    pub fn passage(self, text: &str) -> String {
        let text = self.text(text);
        let (shown, is_all) = beginning(&text, PASSAGE.0, PASSAGE.1);
        format!("{shown}{}", if is_all { "" } else { "\u{2026}" })
    }

    /// A line of a file or of an output; one that is too long is cut, and says so.
    pub fn cut_line(self, line: &[u8]) -> String {
        let mut text = self.line(&String::from_utf8_lossy(line));
        if let Some((end, _)) = text.char_indices().nth(LINE) {
            let more = grouped(text.split_off(end).chars().count() as u64);
            text += &format!(" \u{2026} {more} more characters");
        }
        text
    }

    /// A name that may be long, cut.
    pub fn name(self, name: &str) -> String {
        cut(&self.line(name), LINE / 4).into_owned()
    }
}

/// The first `lines` lines of a text, of at most `bytes` bytes; and whether that is all.
pub fn beginning(text: &str, lines: usize, bytes: usize) -> (&str, bool) {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(lines) {
        if end + line.len() > bytes {
            end = boundary(text, if end == 0 { bytes } else { end });
            break;
        }
        end += line.len();
    }
    (&text[..end], end == text.len())
}

/// The last place up to `at` where a text may be cut.
pub fn boundary(text: &str, at: usize) -> usize {
    let mut back = (0..=at.min(text.len())).rev();
    back.find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_to_be_seen_is_taken_out_or_shown() {
        let redactor = Redactor::new(["sk-key-1234567890"]);
        let escaper = HtmlEscaper::new(&redactor);
        for (text, expected) in [
            ("a\n\tb", "a\n\tb"),
            ("\u{1b}[1;31merror\u{1b}[0m: x", "error: x"),
            ("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{7}", "link"),
            ("\u{1b}]0;title\u{1b}\\x", "x"),
            ("\u{1b}(Bx\u{9b}2Ky", "xy"),
            ("\u{1b}Pdata\u{1b}\\x", "x"),
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
