//! The log of a build: its outcome and its output.
//!
//! Writes one file, and reads none. Guarantees that neither the log nor the output in a prompt contains a key or
//! anything that looks like a credential, and that both are bounded, whatever a build prints.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write};
use std::path::PathBuf;

use crate::secret::credentials::Censor;
use crate::secret::{RedactingWriter, Redactor};
use crate::sys::excerpt::Excerpt;
use crate::sys::excerpt::text::bounded;
use crate::sys::files::PathError;

/// The first line of a build's log while the build is running.
const UNFINISHED: &str = "unfinished: the build was still running when this was written";
/// The first line's length, with its newline. It is written before the output and overwritten afterwards, so that
/// output of any length can stay in place; hence the padding with spaces.
const FIRST_LINE: usize = 80;

fn first_line(status: &str) -> Vec<u8> {
    // In ASCII, there are as many characters as bytes.
    let status = status
        .replace(|c: char| c.is_ascii_control(), " ")
        .replace(|c: char| !c.is_ascii(), "?");
    let width = FIRST_LINE - 1;
    format!("{status:<width$.width$}\n").into_bytes()
}

/// Maximum size of a build's log, in bytes; larger files are not read again.
const LOG_LIMIT: u64 = 64 << 20;
/// Limit on the output that is written as it arrives, in bytes. Once the build has ended, the end of longer output
/// follows, after a line that says how much is missing.
const LOG_HEAD: u64 = LOG_LIMIT - (FIRST_LINE + LEFT_OUT + Excerpt::HALF) as u64;
/// Space for that line, in bytes.
const LEFT_OUT: usize = 64;
/// Maximum size of the output in a prompt, in bytes: that of an excerpt, with the line that says it was cut.
const PROMPT_LIMIT: usize = Excerpt::LIMIT + LEFT_OUT;

/// The log of a running build: the output as it arrives, without keys and anything that looks like a credential.
#[derive(Debug)]
pub struct BuildLog<'r> {
    redactor: &'r Redactor,
    path: PathBuf,
    output: RedactingWriter<'r, Censor<Copies>>,
}

/// The output of a build.
#[derive(Debug)]
pub struct BuildOutput {
    /// The output for the next prompt.
    pub text: String,
    /// The kinds of secrets that were removed from the output and the log.
    pub redacted: Vec<&'static str>,
}

/// The output's two destinations: its beginning goes to disk, and its beginning and end to the next prompt.
#[derive(Debug)]
struct Copies {
    file: File,
    /// The space left in the file in bytes, the length written so far, and whether that ends a line.
    room: u64,
    kept: u64,
    ends_line: bool,
    excerpt: Excerpt,
}

impl Copies {
    fn new(file: File, room: u64) -> Self {
        Self {
            file,
            room,
            kept: 0,
            ends_line: true,
            excerpt: Excerpt::default(),
        }
    }

    /// Writes the end of the output to the file, and returns the excerpt for the next prompt.
    fn finish(mut self) -> io::Result<(File, String)> {
        let rest = self.excerpt.clone().rest(self.kept, self.ends_line);
        self.file.write_all(&rest)?;
        // Replacing invalid UTF-8 has lengthened the text, and escaping control characters will.
        Ok((self.file, bounded(&self.excerpt.into_text(), PROMPT_LIMIT)))
    }
}

impl Write for Copies {
    /// Accepts everything, so that even a build with endless output can continue.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = usize::try_from(self.room).unwrap_or(usize::MAX);
        let kept = &bytes[..bytes.len().min(room)];
        self.file.write_all(kept)?;
        self.room -= kept.len() as u64;
        self.kept += kept.len() as u64;
        self.ends_line = kept.last().map_or(self.ends_line, |last| *last == b'\n');
        self.excerpt.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<'r> BuildLog<'r> {
    /// Begins the log in the empty `file`, whose path is `path`.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(super) fn new(
        mut file: File,
        path: PathBuf,
        redactor: &'r Redactor,
    ) -> Result<Self, PathError> {
        file.write_all(&first_line(UNFINISHED))
            .map_err(PathError::of("write", &path))?;
        let output = Copies::new(file, LOG_HEAD);
        Ok(Self {
            redactor,
            path,
            output: redactor.writer(Censor::new(output)),
        })
    }

    /// Writes the build's outcome into the first line, and returns the output for the next prompt.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn finish(self, status: &str) -> Result<BuildOutput, PathError> {
        let Self {
            path,
            output,
            redactor,
        } = self;
        let status = redactor.text(status);
        let finish = || {
            let (output, has_keys) = output.finish_found()?;
            let (copies, kinds) = output.finish()?;
            let (mut file, text) = copies.finish()?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&first_line(&status))?;
            let keys = has_keys.then_some("an API key or the value of a secret variable");
            io::Result::Ok(BuildOutput {
                text,
                redacted: keys.into_iter().chain(kinds).collect(),
            })
        };
        finish().map_err(PathError::of("write", &path))
    }
}

impl Write for BuildLog<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_build_log_has_the_status_first_and_the_output_byte_by_byte() {
        let dir = tempfile::tempdir().unwrap();
        let redactor = Redactor::new(["sekret-key-1"]);
        let path = dir.path().join("repair-query-1-build.txt");
        let file = File::create(&path).unwrap();
        let mut build = BuildLog::new(file, path.clone(), &redactor).unwrap();
        build.write_all(b"out \xff sekret-").unwrap();
        assert!(fs::read(&path).unwrap().starts_with(b"unfinished"));
        build.write_all(b"key-1\nend").unwrap();
        let output = build.finish("exit code: 101").unwrap();
        assert_eq!(output.text, "out \u{fffd} [REDACTED]-1\nend");
        assert_eq!(output.redacted.len(), 1);
        let logged = fs::read(&path).unwrap();
        let newline = logged.iter().position(|byte| *byte == b'\n').unwrap();
        assert_eq!(logged[..newline].trim_ascii_end(), b"exit code: 101");
        assert_eq!(&logged[newline + 1..], b"out \xff [REDACTED]-1\nend");
    }

    #[test]
    fn a_log_is_bounded_whatever_a_build_prints() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let half = Excerpt::HALF;
        for (printed, expected) in [
            (half + 2, None),
            (2 * half + 1004, None),
            (2 * half + 1104, Some("[... 100 bytes left out ...]\n")),
        ] {
            let file = File::create(&path).unwrap();
            let mut copies = Copies::new(file, half as u64 + 1004);
            let output = "a\n".repeat(printed / 2);
            copies.write_all(output.as_bytes()).unwrap();
            copies.finish().unwrap();
            let logged = fs::read_to_string(&path).unwrap();
            let Some(line) = expected else {
                assert!(logged == output);
                continue;
            };
            let (head, tail) = logged.split_once(line).unwrap();
            assert!(output.starts_with(head) && head.len() == half + 1004);
            assert!(output.ends_with(tail) && tail.len() == half);
        }
        assert!(LOG_HEAD + (FIRST_LINE + LEFT_OUT + half) as u64 <= LOG_LIMIT);
    }

    #[test]
    fn an_output_for_a_prompt_is_no_longer_for_being_binary() {
        for byte in [0, 0x1b, 0xff] {
            let mut copies = Copies::new(tempfile::tempfile().unwrap(), 0);
            copies.write_all(&vec![byte; 3 * Excerpt::LIMIT]).unwrap();
            let (_, text) = copies.finish().unwrap();
            let sent = serde_json::to_string(&text).unwrap();
            assert!(sent.len() < Excerpt::LIMIT + 200, "{byte}: {}", sent.len());
        }
    }

    #[test]
    fn no_status_reaches_into_the_output() {
        for status in ["ü".repeat(100), "two\nlines".to_owned(), String::new()] {
            let line = first_line(&status);
            assert_eq!(line.len(), FIRST_LINE);
            assert_eq!(
                line.iter().position(|byte| *byte == b'\n'),
                Some(FIRST_LINE - 1)
            );
        }
    }
}
