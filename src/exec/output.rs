//! What a command prints, on its way from a pipe to where it is kept.
//!
//! Touches the pipe, and a file for the output of a command that may run in the background. Guarantees that the pipe
//! is read to its end whatever becomes of such a file, so that no command waits for it; that the file and the memory
//! hold a bounded beginning and end of an output, with what was left out counted; that nobody but the user may read
//! the file; and that whoever reads along sees what was printed.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read as _, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::secret::Redactor;
use crate::sys::excerpt::{Excerpt, lossy};
use crate::sys::interrupt::is_readable_within;
use crate::sys::text::line_end;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// Reads a command's output. To be [run](Self::run) on a thread of its own.
pub(super) struct Pump {
    reader: PipeReader,
    stop: PipeReader,
    progress: SyncSender<()>,
}

/// What the others have of a [`Pump`]. When this is dropped, the pump stops, whoever still holds the pipe.
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
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        Ok(Self::new(options.open(path)?))
    }

    fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(Captured {
            file,
            excerpt: Some(Excerpt::default()),
            total: 0,
            fault: None,
        })))
    }

    /// What there is so far; what is not UTF-8 is replaced. Where the file does not have it, a line says so.
    pub fn text(&self) -> String {
        let captured = self.lock();
        let text = match &captured.excerpt {
            Some(excerpt) => Ok(excerpt.clone().into_text()),
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

    /// Takes in all that a pump reads, less what `redactor` knows.
    pub fn fill(&self, mut pump: Pump, redactor: &Redactor) {
        let mut writer = redactor.writer(self.clone());
        // Writing does not fail: see below.
        let _ = pump.run(|chunk, more| {
            writer.write_all(chunk)?;
            // What nothing follows for long is to be seen all the same.
            if more { Ok(()) } else { writer.release() }
        });
        let _ = writer.finish();
        self.lock().finish();
    }

    /// Whoever panicked while it held this, has left it whole.
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
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// An output of these chunks that has come to its end, and its file.
    fn captured(chunks: &[&[u8]]) -> (CapturedOutput, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.txt");
        let mut output = CapturedOutput::create(&path).unwrap();
        for chunk in chunks {
            output.write_all(chunk).unwrap();
        }
        let before = output.text();
        output.lock().finish();
        let on_disk = std::fs::read(path).unwrap();
        assert_eq!(output.text(), lossy(on_disk.clone()));
        assert_eq!(output.text(), before);
        assert!(output.lock().excerpt.is_none());
        (output, on_disk)
    }

    #[test]
    fn a_short_output_is_the_files_content() {
        let (output, on_disk) = captured(&[b"one\n", b"", b"two \xff"]);
        assert_eq!(output.text(), "one\ntwo \u{fffd}");
        assert_eq!(on_disk, b"one\ntwo \xff");
    }

    #[test]
    fn a_file_that_is_there_is_not_touched_and_a_new_one_is_the_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.txt");
        let mut output = CapturedOutput::create(&path).unwrap();
        output.write_all(b"x").unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let again = CapturedOutput::create(&path).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(path).unwrap(), b"x");
    }

    #[test]
    fn a_long_output_keeps_both_ends_however_it_comes() {
        let lines: String = (0..300_000).map(|number| format!("{number}\n")).collect();
        let (limit, bytes) = (1 << 20, lines.as_bytes());
        for cuts in [
            vec![],
            vec![1, 2, limit / 2, limit / 2 + 1],
            vec![limit - 1, limit + 1],
            vec![limit],
        ] {
            let ends = cuts.iter().copied().chain([bytes.len()]);
            let starts = [0].into_iter().chain(cuts.iter().copied());
            let chunks: Vec<&[u8]> = starts
                .zip(ends)
                .map(|(from, to)| &bytes[from..to])
                .collect();
            let (output, _) = captured(&chunks);
            let text = output.text();
            assert!(text.starts_with("0\n1\n") && text.ends_with("\n299998\n299999\n"));
            let left_out = text.split("\n[... ").nth(1).unwrap();
            let left_out = left_out.split(" bytes left out ...]\n").next().unwrap();
            assert_eq!(left_out.parse::<usize>().unwrap(), bytes.len() - limit);
        }
    }

    #[test]
    fn no_character_is_torn() {
        let (output, _) = captured(&[format!("x{}", "é".repeat(1 << 20)).as_bytes()]);
        assert!(!output.text().contains('\u{fffd}'));
    }

    #[test]
    fn what_cannot_be_kept_is_read_all_the_same_and_told() {
        let output = CapturedOutput::new(File::open("/dev/null").unwrap());
        let (reader, mut writer) = io::pipe().unwrap();
        let (pump, handle) = Pump::new(reader).unwrap();
        let clone = output.clone();
        let filling = std::thread::spawn(move || clone.fill(pump, &Redactor::default()));
        // More than a pipe holds.
        writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
        drop(writer);
        assert!(handle.drain(Duration::from_secs(60), || false));
        filling.join().unwrap();
        let text = output.text();
        let told =
            "x\n[the output could not be kept in its file: Bad file descriptor (os error 9)]\n";
        assert!(text.ends_with(told), "{}", &text[text.len() - 100..]);
    }

    #[test]
    fn a_pipe_that_somebody_holds_is_not_waited_for() {
        let (reader, mut held) = io::pipe().unwrap();
        let (mut pump, handle) = Pump::new(reader).unwrap();
        held.write_all(b"x").unwrap();
        let mut read = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pump.run(|chunk, _| {
                    read.extend_from_slice(chunk);
                    Ok(())
                })
            });
            assert!(!handle.drain(Duration::from_millis(100), || false));
            drop(handle);
        });
        assert_eq!(read, b"x");
    }
}
