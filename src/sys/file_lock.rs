//! File locks between processes, based on `flock`. The kernel releases a lock when its process ends for any reason.
//!
//! Touches lock files and reads the kernel's table of locks. Guarantees that a [`FileLock`] locks the file that is
//! currently at its path, so that a lock file can be removed while other processes wait for it.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, thread};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::identity::file_id;

/// Number of attempts at a lock that no living process seems to hold.
const TRIES: usize = 1000;
/// The time between them.
const PAUSE: Duration = Duration::from_micros(100);

/// Errors from taking a lock.
#[derive(Debug, thiserror::Error)]
pub enum LockProblem {
    /// Another process holds the lock.
    #[error("it is locked{}", holder_words(*.process))]
    Held { process: Option<u32> },
    /// The file cannot be opened or locked.
    #[error(transparent)]
    Unlockable(#[from] io::Error),
}

/// Formats the process that holds a lock, to be appended to a sentence; empty if unknown.
pub fn holder_words(process: Option<u32>) -> String {
    process.map_or(String::new(), |process| format!(": process {process}"))
}

/// A locked lock file. Dropping it releases the lock.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    path: PathBuf,
}

impl FileLock {
    /// Locks the file at `path`. A missing file is created, accessible only to its owner.
    ///
    /// # Errors
    /// Fails if another process holds the lock, or the file cannot be locked.
    pub fn take(path: &Path) -> Result<Self, LockProblem> {
        Self::by(path, lock)
    }

    /// Like [`take`](Self::take), but waits until the lock is free. Intended for locks that are held briefly.
    ///
    /// # Errors
    /// Fails if the file cannot be locked.
    pub fn wait(path: &Path) -> io::Result<Self> {
        Self::by(path, File::lock)
    }

    /// Locks the file at `path` with `lock`, and retries if it was removed between opening and locking.
    fn by<E: From<io::Error>>(path: &Path, lock: fn(&File) -> Result<(), E>) -> Result<Self, E> {
        loop {
            let file = files::open_to_lock(path)?;
            lock(&file)?;
            let locked = file.metadata()?;
            let there = path.metadata().if_there()?;
            if there.is_some_and(|there| file_id(&locked) == file_id(&there)) {
                let path = path.to_owned();
                return Ok(Self { file, path });
            }
        }
    }

    /// Removes the lock file, then releases the lock. A process that opened the file before notices that it is no
    /// longer at its path, and creates a new one.
    ///
    /// # Errors
    /// Fails if the file cannot be removed.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing the file may not be enough: a child process that is just being started holds it open until it
        // executes its program.
        let _ = self.file.unlock();
    }
}

/// Locks an open file or directory.
///
/// # Errors
/// Fails if another process holds the lock, or the file cannot be locked.
pub fn lock(file: &File) -> Result<(), LockProblem> {
    for _ in 0..TRIES {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if is_locked(file)? => {
                if holder(file).is_some_and(is_alive) {
                    break;
                }
                // A killed process was just starting a child, which holds the lock until it executes its program.
                thread::sleep(PAUSE);
            }
            // Another process was only probing the lock, see `is_held`.
            Err(TryLockError::WouldBlock) => thread::yield_now(),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
    }
    let process = holder(file);
    Err(LockProblem::Held { process })
}

/// Returns whether there is a process with this id.
fn is_alive(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    process.is_some_and(|process| test_kill_process(process) != Err(Errno::SRCH))
}

/// Returns whether a process holds the lock on the file at `path`. An unreadable file counts as not locked.
pub fn is_held(path: &Path) -> bool {
    let file = files::open(path, Links::Refused);
    file.is_ok_and(|file| is_locked(&file).unwrap_or(false))
}

/// Returns whether a process holds the lock on an open file.
///
/// # Errors
/// Fails if the lock cannot be probed.
pub fn is_locked(file: &File) -> io::Result<bool> {
    // A shared lock, so that probing processes neither block each other nor look like a holder.
    match file.try_lock_shared() {
        Ok(()) => file.unlock().map(|()| false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the process that holds the lock on `file`, according to Linux's table of locks, whose lines look like
/// `1: FLOCK  ADVISORY  WRITE 713 00:1b:4071 0 EOF`.
pub fn holder(file: &File) -> Option<u32> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = files::read(Path::new("/proc/locks"), Links::Refused, 64 * MIB).ok()?;
    String::from_utf8_lossy(&locks).lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_it = words.get(1) == Some(&"FLOCK") && words.get(5)?.ends_with(&inode);
        words.get(4).filter(|_| is_it)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn one_at_a_time_has_it_and_a_look_takes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(!is_held(&path));
        let lock = FileLock::take(&path).unwrap();
        assert!(is_held(&path));
        let Err(LockProblem::Held { process }) = FileLock::take(&path) else {
            panic!("it should be held");
        };
        if cfg!(target_os = "linux") {
            assert_eq!(process, Some(std::process::id()));
            assert_eq!(process, holder(&lock.file));
        }
        drop(lock);
        assert!(!is_held(&path));
        let looking = File::open(&path).unwrap();
        looking.try_lock_shared().unwrap();
        assert!(!is_held(&path));
        drop(looking);
        FileLock::take(&path).unwrap().remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn testing_a_lock_does_not_prevent_taking_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        thread::scope(|scope| {
            let taker = scope.spawn(|| {
                for _ in 0..200 {
                    FileLock::take(&path).unwrap();
                }
            });
            while !taker.is_finished() {
                let _ = is_held(&path);
            }
        });
    }

    #[test]
    fn waiters_for_a_removed_lock_file_still_exclude_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let (inside, rounds) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let lock = FileLock::wait(&path).unwrap();
                        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                        rounds.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                        lock.remove().unwrap();
                    }
                });
            }
        });
        assert_eq!(rounds.into_inner(), 800);
    }
}
