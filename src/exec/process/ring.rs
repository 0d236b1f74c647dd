//! The beginning and the end of a long output, kept in a file.
//!
//! Touches that file alone. Guarantees that it holds at most [`Ring::LIMIT`] bytes and one line, that what was
//! left out is counted, and that nobody but the user may read it. Memory is used while it is read.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::sys::excerpt::{joined, lossy};

/// Collects an output: whole up to the limit, else its first part and its last. While it is written, the
/// last part goes round in its half of the file; [`finish`](Self::finish) puts it in order.
#[derive(Debug)]
pub struct Ring {
    file: File,
    /// How much was written.
    total: u64,
    finished: bool,
}

impl Ring {
    /// How many bytes are kept.
    pub const LIMIT: u64 = 1 << 20;
    /// How many of them are the first.
    const HEAD: u64 = 256 << 10;
    /// How many of them are the last.
    const TAIL: u64 = Self::LIMIT - Self::HEAD;

    /// A ring in a file that is not there yet.
    ///
    /// # Errors
    /// When it is there, or cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self {
            file,
            total: 0,
            finished: false,
        })
    }

    /// The output so far as text; where something was left out, a line in its place says how many bytes.
    /// What is not UTF-8 is replaced.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn text(&self) -> io::Result<String> {
        self.bytes().map(lossy)
    }

    /// Puts the file in order, so that it can be read by people: nothing is written to it after that.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn finish(&mut self) -> io::Result<()> {
        if !self.finished && self.total > Self::LIMIT {
            let bytes = self.bytes()?;
            self.file.write_all_at(&bytes, 0)?;
            self.file.set_len(bytes.len() as u64)?;
        }
        self.finished = true;
        Ok(())
    }

    fn bytes(&self) -> io::Result<Vec<u8>> {
        if self.finished || self.total <= Self::LIMIT {
            return self.read(0, self.file.metadata()?.len());
        }
        // Where the next byte would go, the oldest one of the last part stands.
        let turn = Self::place(self.total);
        let mut tail = self.read(turn, Self::LIMIT - turn)?;
        tail.extend(self.read(Self::HEAD, turn - Self::HEAD)?);
        let left_out = self.total - Self::LIMIT;
        Ok(joined(self.read(0, Self::HEAD)?, left_out, &tail))
    }

    fn read(&self, from: u64, length: u64) -> io::Result<Vec<u8>> {
        // No more than was kept, whatever somebody else has done to the file.
        let length = usize::try_from(length.min(2 * Self::LIMIT)).unwrap_or_default();
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok(bytes)
    }

    /// Where in the file the byte of this number stands.
    fn place(number: u64) -> u64 {
        match number.checked_sub(Self::HEAD) {
            None => number,
            Some(behind) => Self::HEAD + behind % Self::TAIL,
        }
    }

    /// The number of the first byte, from this one on, that is not written right behind its neighbour.
    fn next_cut(number: u64) -> u64 {
        match number.checked_sub(Self::HEAD) {
            None => Self::HEAD,
            Some(behind) => number + (Self::TAIL - behind % Self::TAIL),
        }
    }
}

impl Write for Ring {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.finished {
            return Err(io::Error::other("the output has ended"));
        }
        let room = usize::try_from(Self::next_cut(self.total) - self.total).unwrap_or(usize::MAX);
        let piece = &bytes[..bytes.len().min(room)];
        self.file.write_all_at(piece, Self::place(self.total))?;
        self.total += piece.len() as u64;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn ring(chunks: &[&[u8]]) -> (Ring, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = Ring::create(&dir.path().join("output.txt")).unwrap();
        for chunk in chunks {
            ring.write_all(chunk).unwrap();
        }
        (ring, dir)
    }

    fn on_disk(dir: &tempfile::TempDir) -> Vec<u8> {
        std::fs::read(dir.path().join("output.txt")).unwrap()
    }

    /// What is to be seen of a stream, made in memory.
    fn expected(stream: &[u8]) -> String {
        let (limit, first) = (1 << 20, 256 << 10);
        if stream.len() <= limit {
            return lossy(stream.to_vec());
        }
        let tail = &stream[stream.len() - (limit - first)..];
        let left_out = (stream.len() - limit) as u64;
        lossy(joined(stream[..first].to_vec(), left_out, tail))
    }

    #[test]
    fn a_short_output_is_the_files_content() {
        let (mut ring, dir) = ring(&[b"one\n", b"", b"two \xff"]);
        assert_eq!(ring.text().unwrap(), "one\ntwo \u{fffd}");
        assert_eq!(on_disk(&dir), b"one\ntwo \xff");
        ring.finish().unwrap();
        assert_eq!(ring.text().unwrap(), "one\ntwo \u{fffd}");
    }

    #[test]
    fn a_file_that_is_there_is_not_touched_and_a_new_one_is_the_users_alone() {
        let (_, dir) = ring(&[b"x"]);
        let path = dir.path().join("output.txt");
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = Ring::create(&path).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(on_disk(&dir), b"x");
    }

    #[test]
    fn a_long_output_keeps_both_ends_and_is_put_in_order_in_the_end() {
        let lines: String = (0..300_000).map(|number| format!("{number}\n")).collect();
        let (mut ring, dir) = ring(&[lines.as_bytes()]);
        let text = ring.text().unwrap();
        assert!(text.starts_with("0\n1\n") && text.ends_with("\n299998\n299999\n"));
        let left_out = lines.len() - (1 << 20);
        assert!(text.contains(&format!("\n[... {left_out} bytes left out ...]\n")));
        ring.finish().unwrap();
        assert_eq!(ring.text().unwrap(), text);
        assert_eq!(on_disk(&dir), text.as_bytes());
        assert!(ring.write_all(b"more").is_err());
    }

    #[test]
    fn no_character_is_torn() {
        let text = format!("x{}", "é".repeat(1 << 20));
        let (ring, _dir) = ring(&[text.as_bytes()]);
        assert!(!ring.text().unwrap().contains('\u{fffd}'));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn chunks_make_no_difference(sizes in prop::collection::vec(0usize..900_000, 0..6)) {
            let total: usize = sizes.iter().sum();
            let stream: Vec<u8> = (b'a'..=b'z').cycle().take(total).collect();
            let mut from = 0;
            let chunks: Vec<&[u8]> = sizes.iter().map(|size| { let c = &stream[from..from + size]; from += size; c }).collect();
            let (mut ring, dir) = ring(&chunks);
            let expected = expected(&stream);
            prop_assert_eq!(ring.text().unwrap(), expected.clone());
            ring.finish().unwrap();
            prop_assert_eq!(on_disk(&dir), expected.into_bytes());
        }
    }
}
