//! What a command prints, on its way from a pipe to a file.
//!
//! Touches these two. Guarantees that the pipe is read to its end whatever becomes of the file, so that no
//! command waits for it; that no key reaches the file; and that whoever reads along sees what was printed.

use std::io::{self, PipeReader, Read as _, Write};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::ring::Ring;
use crate::secret::Redactor;
use crate::sys::interrupt::is_readable_within;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// An output, as far as it is kept. Cloning is cheap; all clones are of the same.
#[derive(Debug, Clone)]
pub struct Output(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    ring: Ring,
    /// Why the rest of it could not be kept.
    fault: Option<io::Error>,
}

impl Output {
    /// Nothing so far.
    pub fn new(ring: Ring) -> Self {
        Self(Arc::new(Mutex::new(Kept { ring, fault: None })))
    }

    /// What there is so far. Where it could not be kept or read, a line says so.
    pub fn text(&self) -> String {
        let kept = self.lock();
        match (&kept.fault, kept.ring.text()) {
            (None, Ok(text)) => text,
            (Some(error), Ok(text)) => {
                let line_end = line_end(&text);
                format!("{text}{line_end}[the rest of the output could not be kept: {error}]\n")
            }
            (_, Err(error)) => format!("[the output cannot be read: {error}]\n"),
        }
    }

    /// Fills it in the background with what comes; what is given back is closed when all of that was read.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn fill(&self, reader: PipeReader, redactor: Redactor) -> io::Result<Receiver<()>> {
        let (teller, filled) = mpsc::channel();
        let output = self.clone();
        thread::Builder::new().spawn(move || {
            output.read(reader, &redactor);
            output.finish();
            drop(teller);
        })?;
        Ok(filled)
    }

    fn read(&self, mut reader: PipeReader, redactor: &Redactor) {
        let mut writer = redactor.writer(self.clone());
        let mut chunk = vec![0; CHUNK];
        loop {
            // Writing does not fail: see below.
            match reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(amount) => {
                    let _ = writer.write_all(&chunk[..amount]);
                    // What nothing follows for long is to be seen all the same.
                    if !is_readable_within(reader.as_fd(), Duration::ZERO) {
                        let _ = writer.release();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An output that cannot be read has ended as far as we are concerned.
                Err(_) => break,
            }
        }
        let _ = writer.finish();
    }

    fn finish(&self) {
        let mut kept = self.lock();
        if let Err(error) = kept.ring.finish() {
            kept.fault.get_or_insert(error);
        }
    }

    /// Whoever panicked while it held this, has left it whole.
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Output {
    /// Takes everything: a command whose output cannot be kept goes on all the same.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut kept = self.lock();
        if kept.fault.is_none() {
            kept.fault = kept.ring.write_all(bytes).err();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a line that follows `text` needs before it.
pub fn line_end(text: &str) -> &'static str {
    if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_kept_is_read_all_the_same_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut ring = Ring::create(&dir.path().join("output.txt")).unwrap();
        // Nothing can be written to it any more.
        ring.finish().unwrap();
        let output = Output::new(ring);
        let (reader, mut writer) = io::pipe().unwrap();
        let filled = output.fill(reader, Redactor::default()).unwrap();
        // More than a pipe holds.
        writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
        drop(writer);
        assert!(filled.recv().is_err(), "it is closed");
        assert_eq!(
            output.text(),
            "[the rest of the output could not be kept: the output has ended]\n"
        );
    }
}
