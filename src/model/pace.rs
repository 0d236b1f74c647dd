//! The pace that several processes keep together, so that they stay within a server's rate limits.
//!
//! Touches a file for each server and key, which holds the time before which no process makes calls. Guarantees that
//! the key is not in the file, and that the latest time wins. If the file cannot be used, calls are made without a
//! pace.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::sys::files::{self, Links, open_to_lock};
use crate::sys::sha256;

/// Name of the directory with the files.
pub const PACE: &str = ".pace";
/// Maximum size of a file, in bytes.
const LARGEST: u64 = 100;

/// The pace of calls to a server with a key.
#[derive(Debug)]
pub struct Pace {
    path: PathBuf,
}

impl Pace {
    /// Creates the pace of calls to `server` with `key`, whose file is in a directory that the processes share.
    pub fn new(directory: &Path, server: &str, key: &str) -> Self {
        let path = directory.join(&sha256::of(format!("{server}\n{key}"))[..16]);
        Self { path }
    }

    /// Returns the time before which no process makes calls, if set; it may have passed.
    pub fn until(&self) -> Option<DateTime<Utc>> {
        read(&self.path)
    }

    /// Makes all processes wait until `time`, unless they wait longer already.
    pub fn wait_until(&self, time: DateTime<Utc>) {
        let write = || -> io::Result<()> {
            fs::create_dir_all(self.path.parent().unwrap_or(&self.path))?;
            let file = open_to_lock(&self.path)?;
            file.lock()?;
            if self.until().is_none_or(|known| known < time) {
                // All times are of the same length.
                let text = time.to_rfc3339_opts(SecondsFormat::Nanos, true);
                file.write_all_at(text.as_bytes(), 0)?;
            }
            Ok(())
        };
        // If this fails, other processes may exceed the limit; this one still waits.
        let _ = write();
    }
}

/// Returns the latest time before which no process makes calls, across all servers and keys.
pub fn latest(directory: &Path) -> Option<DateTime<Utc>> {
    let files = fs::read_dir(directory).ok()?.flatten();
    files.filter_map(|file| read(&file.path())).max()
}

fn read(path: &Path) -> Option<DateTime<Utc>> {
    let text = files::read(path, Links::Refused, LARGEST).ok()?;
    std::str::from_utf8(&text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_time_counts_for_all_calls_to_a_server_with_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let directory = dir.path().join(PACE);
        let pace = |key| Pace::new(&directory, "https://host", key);
        let time = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
        assert_eq!((pace("a").until(), latest(&directory)), (None, None));
        let (early, late) = (
            time("2026-11-21T19:15:10.5Z"),
            time("2026-11-21T19:15:11.000000001Z"),
        );
        for (written, expected) in [(early, early), (late, late), (early, late)] {
            pace("a").wait_until(written);
            assert_eq!(pace("a").until(), Some(expected));
        }
        assert_eq!(pace("b").until(), None);
        pace("b").wait_until(early);
        assert_eq!(pace("b").until(), Some(early));
        assert_eq!(latest(&directory), Some(late));
        // Content that is not a time is overwritten.
        fs::write(&pace("b").path, "x").unwrap();
        pace("b").wait_until(early);
        assert_eq!(pace("b").until(), Some(early));
        assert_ne!(
            pace("a").path,
            Pace::new(&directory, "https://other", "a").path
        );
    }
}
