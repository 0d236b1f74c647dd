//! What was typed in earlier sessions: a file in an agent's home.
//!
//! Reads and replaces that file alone, under a lock beside it. Guarantees that nobody but the user may read it, that it is bounded, and that
//! nothing that holds a known key or looks like a credential is in it. It is a comfort: where it cannot be read or
//! written, there is none.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::secret::Redactor;
use crate::secret::credentials;
use crate::sys::atomic_file;
use crate::sys::file_lock::FileLock;
use crate::sys::files::{self, Links, MIB};

/// The file, in an agent's home.
pub const FILE: &str = "history";
/// How many entries are kept, the last ones.
const KEPT: usize = 1000;
/// How many bytes an entry may have.
const LONGEST: usize = 4 << 10;
/// How large the file may be.
const LARGEST: u64 = 8 * MIB;

/// The entries of earlier sessions and of this one: a JSON text a line.
#[derive(Debug, Clone)]
pub struct History {
    path: PathBuf,
    redactor: Redactor,
}

impl History {
    /// The one in this home.
    #[must_use]
    pub fn at(home: &Path, redactor: &Redactor) -> Self {
        Self::of(home.join(FILE), redactor)
    }

    /// The one in this file, which need not be there.
    #[must_use]
    pub fn of(path: PathBuf, redactor: &Redactor) -> Self {
        let redactor = redactor.clone();
        Self { path, redactor }
    }

    /// All entries, the oldest first.
    #[must_use]
    pub fn entries(&self) -> Vec<String> {
        let content = files::read(&self.path, Links::Refused, LARGEST).unwrap_or_default();
        let lines = content.split(|byte| *byte == b'\n');
        lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }

    /// Adds an entry, unless it is the last one already, too long, or secret.
    pub fn add(&self, entry: &str) {
        // Two sessions that add at once would lose an entry; where nothing can be locked, that is what it comes to.
        let lock = FileLock::wait(&self.path.with_extension("lock"));
        self.append(entry);
        if let Ok(lock) = lock {
            let _ = lock.remove();
        }
    }

    fn append(&self, entry: &str) {
        let mut entries = self.entries();
        let is_last = entries.last().is_some_and(|last| last == entry);
        if entry.trim().is_empty() || entry.len() > LONGEST || is_last || self.is_secret(entry) {
            return;
        }
        entries.push(entry.to_owned());
        let from = entries.len().saturating_sub(KEPT);
        let lines = entries[from..].iter();
        let lines = lines.map(|entry| format!("{}\n", serde_json::Value::from(entry.as_str())));
        let content: String = lines.collect();
        // Without it, an entry cannot be had again: nothing else is lost.
        let _ = atomic_file::replace_private(&self.path, |file| file.write_all(content.as_bytes()));
    }

    fn is_secret(&self, entry: &str) -> bool {
        self.redactor.text(entry) != entry
            || !credentials::find(FILE, entry, &self.redactor).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    #[test]
    fn entries_outlive_the_session_and_nobody_else_reads_them() {
        let home = tempfile::tempdir().unwrap();
        let history = History::at(home.path(), &Redactor::new([]));
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
        let history = History::at(home.path(), &Redactor::new([]));
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
    }

    #[test]
    fn nothing_secret_is_kept_and_no_link_is_followed() {
        let home = tempfile::tempdir().unwrap();
        let history = History::at(home.path(), &Redactor::new(["known-key-1234"]));
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
