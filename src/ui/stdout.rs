//! Standard output.

use std::io::{self, Write as _};

/// Writes what a person reads. A reader who has gone, as `head` does, has what it wanted.
pub fn told(text: &str) -> io::Result<()> {
    match written(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes what a program reads: a program that has gone has not got it.
pub fn written(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}
