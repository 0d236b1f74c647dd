//! Standard output.

use std::io::{self, Write as _};

/// Writes text for a person. A closed pipe is not an error: readers like `head` have what they wanted.
pub fn print(text: &str) -> io::Result<()> {
    match written(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes output for a program; a closed pipe is an error.
pub fn written(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
