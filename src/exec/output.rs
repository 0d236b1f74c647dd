//! Captures the output of a command from its pipe.
//!
//! Touches the pipe, and a file for the output of a command that may run in the background. Guarantees that the pipe is
//! read to its end even if the file cannot be written, so that no command blocks on it; that file and memory hold
//! a bounded beginning and end of the output, with the omitted part counted and credentials removed; that only the
//! user may read the file; and that a reader who follows along sees the output as it is printed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::secret::Redactor;
use crate::secret::credentials::Censor;
use crate::sys::excerpt::{Excerpt, lossy};
use crate::sys::files;
use crate::sys::interrupt::is_readable_within;
use crate::sys::text::line_end;

/// Number of bytes read at a time.
const CHUNK: usize = 64 << 10;

/// A reader of a command's output. Must be [run](Self::run) on its own thread.
pub(super) struct Pump {
    reader: PipeReader,
    stop: PipeReader,
    progress: SyncSender<()>,
}

/// A handle on a [`Pump`]. Dropping it stops the pump, even if a process still holds the pipe.
pub(super) struct PumpHandle {
    /// Channel that signals that output was read; closed at the end of the output.
    progress: Receiver<()>,
    _stop: PipeWriter,
}

impl Pump {
    /// Creates a pump that reads from `reader`.
    ///
    /// # Errors
    /// Fails if no more pipes can be created.
    pub fn new(reader: PipeReader) -> io::Result<(Self, PumpHandle)> {
        let (stop, stopper) = io::pipe()?;
        let (sender, progress) = sync_channel(1);
        let handle = PumpHandle {
            progress,
            _stop: stopper,
        };
        let pump = Self {
            reader,
            stop,
            progress: sender,
        };
        Ok((pump, handle))
    }

    /// Passes each chunk of output to `take`, with a flag that is true if more is already available. Returns at the end
    /// of the output; the handle is notified when the pump is dropped.
    ///
    /// # Errors
    /// Returns the first error of `take`, which stops the pump.
    pub fn run(&mut self, mut take: impl FnMut(&[u8], bool) -> io::Result<()>) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        while self.wait() {
            match self.reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(amount) => {
                    let more = is_readable_within(self.reader.as_fd(), Duration::ZERO);
                    take(&chunk[..amount], more)?;
                    // A full channel already holds a signal that has not been received; one is enough.
                    let _ = self.progress.try_send(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Output that cannot be read is treated as ended.
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Waits until there is something to read; returns `false` when the pump must stop.
    fn wait(&self) -> bool {
        let mut fds = [&self.stop, &self.reader].map(|fd| PollFd::new(fd, PollFlags::IN));
        // If a signal interrupts the wait, the caller reads and then waits again.
        let _ = poll(&mut fds, None);
        fds[0].revents().is_empty()
    }
}

impl PumpHandle {
    /// Waits until all output has been read, the output pauses for longer than `pause`, or `is_late` returns true.
    /// Returns `false` if some output may remain.
    pub fn drain(&self, pause: Duration, is_late: impl Fn() -> bool) -> bool {
        while !is_late() {
            match self.progress.recv_timeout(pause) {
                Ok(()) => {}
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        }
        false
    }
}

/// Kinds of credentials that commands have printed. Clones share their contents.
#[derive(Debug, Clone, Default)]
pub(super) struct CredentialKinds(Arc<Mutex<BTreeSet<&'static str>>>);

impl CredentialKinds {
    fn add(&self, kinds: &BTreeSet<&'static str>) {
        self.lock().extend(kinds);
    }

    /// Returns the kinds added since the last call.
    pub fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.lock()).into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bounded output of a command, in memory and in a file: complete up to [`Excerpt::LIMIT`], otherwise its beginning
/// and its end. Cloning is cheap, and clones share their contents.
#[derive(Debug, Clone)]
pub(super) struct CapturedOutput(Arc<Mutex<Captured>>);

#[derive(Debug)]
struct Captured {
    /// File that receives the beginning as it is printed and, when the output ends, the whole excerpt.
    file: File,
    /// Excerpt of the output; `None` once the file holds all of it.
    excerpt: Option<Excerpt>,
    /// Incomplete last line, which is in neither the file nor the excerpt yet.
    pending: Vec<u8>,
    total: u64,
    /// Error that kept the output from being written to the file.
    fault: Option<io::Error>,
}

impl CapturedOutput {
    const LIMIT: u64 = Excerpt::LIMIT as u64;

    /// Creates an empty output and its file.
    ///
    /// # Errors
    /// Fails if the file already exists or cannot be created.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self::new(files::create_new(path, 0o600)?))
    }

    fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(Captured {
            file,
            excerpt: Some(Excerpt::default()),
            pending: Vec::new(),
            total: 0,
            fault: None,
        })))
    }

    /// Returns the output so far, with invalid UTF-8 replaced. If the file could not be written, the last line says so.
    pub fn text(&self) -> String {
        let captured = self.lock();
        let text = match &captured.excerpt {
            Some(excerpt) => Ok(excerpt.clone().followed_by(&captured.pending).into_text()),
            None => captured.read().map(lossy),
        };
        match (text, &captured.fault) {
            (Ok(text), None) => text,
            (Ok(text), Some(error)) => {
                let line_end = line_end(&text);
                format!("{text}{line_end}[the output could not be kept in its file: {error}]\n")
            }
            (Err(error), _) => format!("[the output cannot be read: {error}]\n"),
        }
    }

    /// Captures everything that a pump reads, without the secrets that `redactor` knows and without likely credentials.
    /// Adds the kinds of the latter to `kinds`; if that is `None`, likely credentials stay.
    pub fn fill(&self, mut pump: Pump, redactor: &Redactor, kinds: Option<&CredentialKinds>) {
        let censor = Censor::new(self.clone()).opened(kinds.is_none());
        let kinds = kinds.cloned().unwrap_or_default();
        let mut writer = redactor.writer(censor);
        let mut reported = 0;
        // Writing to the captured output never fails; see `write` below.
        let _ = pump.run(|chunk, more| {
            writer.write_all(chunk)?;
            if !more {
                // Output that may stay the last for a long time, such as a prompt, must be visible to a reader.
                writer.release()?;
                self.lock().pending = writer.inner().pending().to_vec();
            }
            // Kinds are reported here as well as at the end, because a background command may outlast the run.
            let found = writer.inner().kinds();
            if found.len() > reported {
                reported = found.len();
                kinds.add(found);
            }
            Ok(())
        });
        if let Ok((_, found)) = writer.finish().and_then(Censor::finish)
            && found.len() > reported
        {
            kinds.add(&found);
        }
        self.lock().finish();
    }

    /// Locks the output. A poisoned lock is usable: a panic leaves no partial update.
    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Captured {
    /// Writes the final excerpt to the file, for people to read.
    fn finish(&mut self) {
        if self.fault.is_none() && self.total > CapturedOutput::LIMIT {
            self.fault = self.rewrite().err();
        }
        if self.fault.is_none() {
            self.excerpt = None;
        }
    }

    fn rewrite(&self) -> io::Result<()> {
        let text = self.excerpt.clone().unwrap_or_default().into_text();
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        // Reads at most what was stored, even if another process has extended the file.
        let length = self.file.metadata()?.len().min(2 * CapturedOutput::LIMIT);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

impl Write for CapturedOutput {
    /// Accepts all bytes: a command keeps running even if its output cannot be stored.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut captured = self.lock();
        let left = Self::LIMIT.saturating_sub(captured.total);
        let room = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        if captured.fault.is_none() {
            let at = captured.total;
            captured.fault = captured.file.write_all_at(&bytes[..room], at).err();
        }
        captured.total += bytes.len() as u64;
        captured.pending.clear();
        let excerpt = captured.excerpt.as_mut();
        excerpt.map_or(Ok(bytes.len()), |excerpt| excerpt.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
