//! The lines typed in earlier sessions, in a file in an agent's home.
//!
//! Reads and appends to that file only; when it grows too large, it is replaced under a lock file next to it.
//! Guarantees that only the user can read the file, that its size is bounded, that appending never waits while
//! it is small enough, and that it contains nothing with a known key or text that looks like a credential. The
//! history is a convenience: if the file cannot be read or written, there is no history, and entries added by
//! another session during truncation may be lost.

use std::io::Write as _;
use std::path::PathBuf;

use crate::secret::{Redactor, credentials};
use crate::sys::atomic_file;
use crate::sys::file_lock::FileLock;
use crate::sys::files::{self, Links, MIB};

/// The name of the file in an agent's home.
pub const FILE: &str = "history";
/// The maximum number of entries kept.
const KEPT: usize = 1000;
/// The maximum size of an entry, in bytes.
const LONGEST: usize = 4 << 10;
/// The maximum size of the file that is read, in bytes.
const LARGEST: u64 = 8 * MIB;
/// The size above which the file is truncated, in bytes.
const LARGE: u64 = 4 * MIB;

/// The entries of earlier sessions and of this one, stored as one JSON string per line.
#[derive(Debug, Clone)]
pub struct History {
    path: PathBuf,
    redactor: Redactor,
}

impl History {
    /// Opens the history in this file, which need not exist.
    pub fn of(path: PathBuf, redactor: &Redactor) -> Self {
        let redactor = redactor.clone();
        Self { path, redactor }
    }

    /// Returns the latest entries, oldest first, without consecutive duplicates.
    pub fn entries(&self) -> Vec<String> {
        let content = files::read(&self.path, Links::Refused, LARGEST).unwrap_or_default();
        let lines = content.split(|byte| *byte == b'\n');
        let parsed = lines.filter_map(|line| serde_json::from_slice(line).ok());
        let mut entries: Vec<String> = parsed.collect();
        entries.dedup();
        entries.split_off(entries.len().saturating_sub(KEPT))
    }

    /// Adds an entry, unless it is blank, too long or secret.
    pub fn add(&self, entry: &str) {
        if entry.trim().is_empty() || entry.len() > LONGEST || self.is_secret(entry) {
            return;
        }
        // A failure only means that the entry cannot be recalled.
        let Ok(mut file) = files::append_private(&self.path) else {
            return;
        };
        // Write in one call, so that entries of concurrent sessions do not interleave.
        let _ = file.write_all(line(entry).as_bytes());
        if files::check_size(&file, LARGE).is_err() {
            self.shorten();
        }
    }

    /// Truncates the file to the latest entries.
    fn shorten(&self) {
        let lock = FileLock::wait(&self.path.with_extension("lock"));
        let content: String = self.entries().iter().map(|entry| line(entry)).collect();
        let _ = atomic_file::replace_private(&self.path, |file| file.write_all(content.as_bytes()));
        if let Ok(lock) = lock {
            let _ = lock.remove();
        }
    }

    fn is_secret(&self, entry: &str) -> bool {
        self.redactor.text(entry) != entry
            || !credentials::find(FILE, entry, &self.redactor).is_empty()
    }
}

fn line(entry: &str) -> String {
    format!("{}\n", serde_json::Value::from(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    #[test]
    fn entries_outlive_the_session_and_are_private() {
        let home = tempfile::tempdir().unwrap();
        let history = History::of(home.path().join(FILE), &Redactor::new([]));
        assert!(history.entries().is_empty());
        for entry in ["one", "two\nlines", "two\nlines", " \n"] {
            history.add(entry);
        }
        assert_eq!(history.entries(), ["one", "two\nlines"]);
        let mode = fs::metadata(home.path().join(FILE)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn it_is_bounded_and_what_is_damaged_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        let history = History::of(home.path().join(FILE), &Redactor::new([]));
        let lines: String = (0..KEPT + 5).map(|nth| format!("\"{nth}\"\n")).collect();
        fs::write(home.path().join(FILE), format!("{lines}{{damaged\n")).unwrap();
        history.add("last");
        history.add(&"x".repeat(LONGEST + 1));
        let entries = history.entries();
        assert_eq!(entries.len(), KEPT);
        assert_eq!(
            (entries[0].as_str(), entries[KEPT - 1].as_str()),
            ("6", "last")
        );
        let entry = "x".repeat(LONGEST);
        let full = line(&entry).repeat(usize::try_from(LARGE).unwrap() / LONGEST);
        fs::write(home.path().join(FILE), full).unwrap();
        history.add("last");
        assert_eq!(history.entries(), [entry.as_str(), "last"]);
        let length = fs::metadata(home.path().join(FILE)).unwrap().len();
        assert!(length < 2 * LONGEST as u64);
    }

    #[test]
    fn an_entry_is_added_without_waiting_for_another_session() {
        let home = tempfile::tempdir().unwrap();
        let history = History::of(home.path().join(FILE), &Redactor::new([]));
        let lock = FileLock::take(&home.path().join("history.lock")).unwrap();
        history.add("one");
        assert_eq!(history.entries(), ["one"]);
        lock.remove().unwrap();
    }

    #[test]
    fn nothing_secret_is_kept_and_no_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let history = History::of(home.path().join(FILE), &Redactor::new(["known-key-1234"]));
        let token = format!("ghp_{}", "a1B2c3D4e5".repeat(4).split_at(36).0);
        for entry in ["use known-key-1234", &format!("use {token}")] {
            history.add(entry);
            assert!(history.entries().is_empty(), "{entry}");
        }
        let other = home.path().join("other");
        fs::write(&other, "\"theirs\"\n").unwrap();
        symlink(&other, home.path().join(FILE)).unwrap();
        assert!(history.entries().is_empty());
        history.add("mine");
        assert_eq!(fs::read_to_string(&other).unwrap(), "\"theirs\"\n");
    }
}
