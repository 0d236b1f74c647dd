//! The output of a command, on its way from a pipe to where it is kept.
//!
//! Touches the pipe, and a file for the output of a command that may run in the background. Guarantees that the pipe is
//! read to its end whatever becomes of such a file, so that no command waits for it; that the file and the memory hold
//! a bounded beginning and end of an output, with what was left out counted, and no credentials; that nobody but the
//! user may read the file; and that a reader who follows along sees what was printed.

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

/// The bytes read at once.
const CHUNK: usize = 64 << 10;

/// Reads a command's output. To be [run](Self::run) on a thread of its own.
pub(super) struct Pump {
    reader: PipeReader,
    stop: PipeReader,
    progress: SyncSender<()>,
}

/// The other end of a [`Pump`]. When this is dropped, the pump stops, even if a process still holds
/// the pipe.
pub(super) struct PumpHandle {
    /// Tells of what was read; closed when all was.
    progress: Receiver<()>,
    _stop: PipeWriter,
}

impl Pump {
    /// One that reads from `reader`.
    ///
    /// # Errors
    /// When there can be no more pipes.
    pub fn new(reader: PipeReader) -> io::Result<(Self, PumpHandle)> {
        let (stop, stopper) = io::pipe()?;
        let (teller, progress) = sync_channel(1);
        let handle = PumpHandle {
            progress,
            _stop: stopper,
        };
        let pump = Self {
            reader,
            stop,
            progress: teller,
        };
        Ok((pump, handle))
    }

    /// Gives all that comes to `take`, with whether more is there already. When this returns, all was read; the
    /// handle is told so when the pump is dropped.
    ///
    /// # Errors
    /// Those of `take`, which end it.
    pub fn run(&mut self, mut take: impl FnMut(&[u8], bool) -> io::Result<()>) -> io::Result<()> {
        let mut chunk = vec![0; CHUNK];
        while self.wait() {
            match self.reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(amount) => {
                    let more = is_readable_within(self.reader.as_fd(), Duration::ZERO);
                    take(&chunk[..amount], more)?;
                    // Where one is not heard yet, it will do.
                    let _ = self.progress.try_send(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // An output that cannot be read has ended as far as we are concerned.
                Err(_) => break,
            }
        }
        Ok(())
    }

    /// Waits until there is something to read; `false` when the pump is to stop.
    fn wait(&self) -> bool {
        let mut fds = [&self.stop, &self.reader].map(|fd| PollFd::new(fd, PollFlags::IN));
        // A wait that a signal has ended is begun again by the next read.
        let _ = poll(&mut fds, None);
        fds[0].revents().is_empty()
    }
}

impl PumpHandle {
    /// Waits until all was read, for as long as nothing pauses for longer than `pause`, and until `is_late`.
    /// `false` where some is left.
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

/// The kinds of credentials that commands have printed. All clones are of the same.
#[derive(Debug, Clone, Default)]
pub(super) struct CredentialKinds(Arc<Mutex<BTreeSet<&'static str>>>);

impl CredentialKinds {
    fn add(&self, kinds: &BTreeSet<&'static str>) {
        self.lock().extend(kinds);
    }

    /// Those that were added since this was asked last.
    pub fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.lock()).into_iter().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The output of a command, bounded, in memory and in a file: whole up to [`Excerpt::LIMIT`], else its beginning and
/// its end. Cloning is cheap; all clones are of the same.
#[derive(Debug, Clone)]
pub(super) struct CapturedOutput(Arc<Mutex<Captured>>);

#[derive(Debug)]
struct Captured {
    /// Has the beginning, as it comes; in the end, all that is kept.
    file: File,
    /// Let go of when the file has it all.
    excerpt: Option<Excerpt>,
    /// The beginning of a line that has not ended, which is not in these yet.
    pending: Vec<u8>,
    total: u64,
    /// Why the file does not have it.
    fault: Option<io::Error>,
}

impl CapturedOutput {
    const LIMIT: u64 = Excerpt::LIMIT as u64;

    /// Nothing so far, in a file that is not there yet.
    ///
    /// # Errors
    /// When it is there, or cannot be made.
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

    /// The output so far; what is not UTF-8 is replaced. Where the file does not have it, a line says so.
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

    /// Takes in all that a pump reads, less what `redactor` knows and what looks like a credential. Adds the kinds of
    /// these to `kinds`; without it, they stay.
    pub fn fill(&self, mut pump: Pump, redactor: &Redactor, kinds: Option<&CredentialKinds>) {
        let censor = Censor::new(self.clone()).opened(kinds.is_none());
        let kinds = kinds.cloned().unwrap_or_default();
        let mut writer = redactor.writer(censor);
        let mut told = 0;
        // Writing does not fail: see below.
        let _ = pump.run(|chunk, more| {
            writer.write_all(chunk)?;
            if !more {
                // What nothing follows for long is to be seen all the same.
                writer.release()?;
                self.lock().pending = writer.inner().pending().to_vec();
            }
            // What goes on in the background may not end before the run does.
            let found = writer.inner().kinds();
            if found.len() > told {
                told = found.len();
                kinds.add(found);
            }
            Ok(())
        });
        if let Ok((_, found)) = writer.finish().and_then(Censor::finish)
            && found.len() > told
        {
            kinds.add(&found);
        }
        self.lock().finish();
    }

    /// A thread that panicked while it held this has left it whole.
    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Captured {
    /// Gives the file what it is to have in the end, for people to read.
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
        // No more than was kept, whatever somebody else has done to the file.
        let length = self.file.metadata()?.len().min(2 * CapturedOutput::LIMIT);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

impl Write for CapturedOutput {
    /// Takes everything: a command whose output cannot be kept goes on all the same.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut captured = self.lock();
        let room = Self::LIMIT.saturating_sub(captured.total);
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        if captured.fault.is_none() {
            let at = captured.total;
            captured.fault = captured.file.write_all_at(&bytes[..room], at).err();
        }
        captured.total += bytes.len() as u64;
        captured.pending.clear();
        match &mut captured.excerpt {
            Some(excerpt) => excerpt.write(bytes),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
