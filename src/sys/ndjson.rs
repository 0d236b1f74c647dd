//! Parses newline-delimited JSON, the format of Ollama's streamed responses. Pure.
//!
//! Each line is a JSON text that ends with `\n`. Blank lines are skipped. Guarantees that no byte is examined twice,
//! however long a line is and however the stream is split.

use memchr::memchr;

use super::text::without_mark;

/// An extractor of lines from a stream of bytes, however it is split into pieces.
#[derive(Debug, Default)]
pub struct Lines {
    /// Incomplete last line.
    line: Vec<u8>,
    /// True once a line has ended: a byte order mark before the first line is skipped.
    begun: bool,
}

impl Lines {
    /// Processes more bytes, and passes every completed line to `line`.
    ///
    /// # Errors
    /// Returns the first error of `line`, and stops there.
    pub fn read<E>(
        &mut self,
        mut bytes: &[u8],
        mut line: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(end) = memchr(b'\n', bytes) {
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end(&mut line)?;
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// Passes the last line to `line` at the end of the stream. It may lack a line end, or be truncated.
    ///
    /// # Errors
    /// Returns the error of `line`.
    pub fn end<E>(&mut self, line: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        let text = if is_first {
            without_mark(&self.line)
        } else {
            &self.line
        };
        let read = match text.trim_ascii() {
            b"" => Ok(()),
            text => line(text),
        };
        self.line.clear();
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = Lines::default();
        let mut found = Vec::new();
        let mut note = |line: &[u8]| {
            found.push(String::from_utf8_lossy(line).into_owned());
            Ok::<(), ()>(())
        };
        for piece in pieces {
            reader.read(piece, &mut note).unwrap();
        }
        reader.end(&mut note).unwrap();
        found
    }

    #[test]
    fn a_line_ends_at_a_newline_or_the_end_of_the_stream() {
        for (stream, expected) in [
            ("{}\n", &["{}"][..]),
            ("{}\r\n\n \r\n[1]", &["{}", "[1]"]),
            ("\u{feff}{}\n\u{feff}{}", &["{}", "\u{feff}{}"]),
            ("", &[]),
            ("\n\n", &[]),
        ] {
            assert_eq!(lines(&[stream.as_bytes()]), expected, "{stream:?}");
        }
    }

    #[test]
    fn the_first_error_ends_the_reading() {
        let mut read = 0;
        let told = Lines::default().read(b"1\n2\n3\n", |line| {
            read += 1;
            if line == b"2" { Err("two") } else { Ok(()) }
        });
        assert_eq!((told, read), (Err("two"), 2));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_stream_is_cut(stream in "\u{feff}?([a-c\u{e9}{} ]{0,5}\r?\n?){0,6}", cuts in proptest::collection::vec(0usize..40, 0..6)) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut from = 0;
            let pieces: Vec<&[u8]> = cuts.iter().map(|&to| { let piece = &bytes[from..to]; from = to; piece }).collect();
            prop_assert_eq!(lines(&pieces), lines(&[bytes]));
        }
    }
}
