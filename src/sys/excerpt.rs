//! Keeps the beginning and the end of a stream that is too long to keep whole. Pure.
//!
//! Guarantees that at most [`Excerpt::LIMIT`] bytes are kept, and that the omitted bytes are counted.

pub mod text;

use std::collections::VecDeque;
use std::io::{self, Write};

/// A stream that is kept complete up to the limit, otherwise its beginning and its end, of half the limit each.
#[derive(Debug, Clone, Default)]
pub struct Excerpt {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Excerpt {
    /// Maximum number of bytes kept.
    pub const LIMIT: usize = 1 << 20;
    /// Number of bytes kept of the end.
    pub const HALF: usize = Self::LIMIT / 2;

    /// Returns the excerpt with more bytes appended.
    pub fn followed_by(mut self, bytes: &[u8]) -> Self {
        self.add(bytes);
        self
    }

    fn add(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let (first, rest) = bytes.split_at(bytes.len().min(Self::HALF - self.head.len()));
        self.head.extend_from_slice(first);
        // Skips bytes that the tail would drop again.
        let rest = &rest[rest.len().saturating_sub(Self::HALF)..];
        let excess = (self.tail.len() + rest.len()).saturating_sub(Self::HALF);
        self.tail.drain(..excess);
        self.tail.extend(rest);
    }

    /// Converts the stream to text. A line in place of an omitted part gives its number of bytes.
    /// Invalid UTF-8 is replaced.
    pub fn into_text(mut self) -> String {
        let mut text = std::mem::take(&mut self.head);
        if self.tail_start() > text.len() as u64 {
            // Cuts at a character boundary, so that no character is split.
            let last = text.utf8_chunks().last();
            let torn = last.map_or(0, |chunk| chunk.invalid().len());
            text.truncate(text.len() - torn);
        }
        let ends_line = text.ends_with(b"\n");
        text.extend(self.rest(text.len() as u64, ends_line));
        lossy(text)
    }

    /// Returns the text that follows the first `kept` bytes of the stream, which are at least half the limit, except
    /// for a split character: the whole rest, or a line with the number of omitted bytes followed by the end.
    /// `ends_line` is true if the text before it ends with a newline.
    pub fn rest(self, kept: u64, ends_line: bool) -> Vec<u8> {
        let begin = self.tail_start();
        let mut tail = Vec::from(self.tail);
        if kept >= begin {
            let known = usize::try_from(kept - begin).unwrap_or(usize::MAX);
            tail.drain(..known.min(tail.len()));
            return tail;
        }
        let is_continuation = |byte: &&u8| **byte & 0xC0 == 0x80;
        let torn = tail.iter().take(3).take_while(is_continuation).count();
        let left_out = begin - kept + torn as u64;
        let newline = if ends_line { "" } else { "\n" };
        let mut rest = format!("{newline}{BEFORE}{left_out}{BEHIND}\n").into_bytes();
        rest.extend(&tail[torn..]);
        rest
    }

    /// Returns the position in the stream at which the kept end begins.
    fn tail_start(&self) -> u64 {
        self.total - self.tail.len() as u64
    }
}

/// Text around the number in the line for an omitted part.
const BEFORE: &str = "[... ";
const BEHIND: &str = " bytes left out ...]";

/// Parses the number of omitted bytes from such a line, with or without a count of lines. The line is trusted,
/// whatever its origin.
fn left_out(line: &str) -> Option<u64> {
    let size = line.strip_prefix(BEFORE)?.strip_suffix(BEHIND)?;
    let bytes = match size.rsplit_once(", ") {
        Some((lines, bytes)) if lines.contains("line") => bytes,
        _ => size,
    };
    bytes.replace(',', "").parse().ok()
}

impl Write for Excerpt {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Converts `bytes` to text, replacing invalid UTF-8.
pub fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn excerpt(chunks: &[&[u8]]) -> String {
        let mut excerpt = Excerpt::default();
        for chunk in chunks {
            excerpt.write_all(chunk).unwrap();
        }
        excerpt.into_text()
    }

    #[test]
    fn a_stream_up_to_the_limit_is_kept_whole() {
        let half = "x".repeat(Excerpt::LIMIT / 2);
        assert_eq!(excerpt(&[half.as_bytes(), half.as_bytes()]), half.repeat(2));
        assert_eq!(excerpt(&[]), "");
        assert_eq!(excerpt(&[b"a\xffb"]), "a\u{fffd}b");
    }

    #[test]
    fn rest_continues_after_the_kept_beginning() {
        let half = Excerpt::HALF as u64;
        for (length, kept, expected) in [
            (2 * half, 2 * half, 0),
            (2 * half, half + 3, half - 3),
            (3 * half, 2 * half, half),
            (3 * half, 3 * half, 0),
        ] {
            let mut excerpt = Excerpt::default();
            let stream = "x".repeat(usize::try_from(length).unwrap());
            excerpt.write_all(stream.as_bytes()).unwrap();
            assert_eq!(excerpt.rest(kept, false).len() as u64, expected);
        }
        let mut excerpt = Excerpt::default();
        let stream = "x\n".repeat(2 * Excerpt::HALF);
        excerpt.write_all(stream.as_bytes()).unwrap();
        let end = "x\n".repeat(Excerpt::HALF / 2);
        let left_out = format!("[... {half} bytes left out ...]\n");
        let rest = excerpt.rest(2 * half, true);
        assert_eq!(String::from_utf8(rest).unwrap(), left_out + &end);
    }

    #[test]
    fn a_longer_text_keeps_both_ends_and_the_count() {
        let text = format!("{}{}", "a".repeat(Excerpt::LIMIT), "b".repeat(7));
        let kept = excerpt(&[text.as_bytes()]);
        let half = Excerpt::LIMIT / 2;
        let expected = format!(
            "{}\n[... 7 bytes left out ...]\n{}bbbbbbb",
            "a".repeat(half),
            "a".repeat(half - 7)
        );
        assert_eq!(kept, expected);
    }

    #[test]
    fn no_character_is_torn() {
        // The first cut falls into an é; so does the second.
        let text = format!("x{}", "é".repeat(Excerpt::LIMIT));
        let kept = excerpt(&[text.as_bytes()]);
        assert!(!kept.contains('\u{fffd}'));
        let shown: usize = kept
            .lines()
            .filter(|line| !line.starts_with('['))
            .map(str::len)
            .sum();
        let left_out = text.len() - shown;
        assert!(kept.contains(&format!("[... {left_out} bytes left out ...]")));
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(sizes in prop::collection::vec(0usize..400_000, 0..8)) {
            let total: usize = sizes.iter().sum();
            let stream: Vec<u8> = (b'a'..=b'z').cycle().take(total).collect();
            let mut from = 0;
            let chunks: Vec<&[u8]> = sizes.iter().map(|size| { let c = &stream[from..from + size]; from += size; c }).collect();
            prop_assert_eq!(excerpt(&chunks), excerpt(&[&stream]));
        }
    }
}
