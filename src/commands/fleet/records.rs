//! JSON Lines files to which several processes append, on one machine or a shared disk.
//!
//! Accesses only those files. Guarantees that only one process at a time uses a file, and that an incomplete line left
//! by a killed process is dropped.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sys::files::{PathError, open_to_lock};

/// An open file of records, locked until it is dropped.
pub struct Records {
    file: File,
    path: PathBuf,
}

impl Records {
    /// Opens the file once no other process uses it; creates it if it is missing.
    ///
    /// # Errors
    /// Fails if the file cannot be opened or locked.
    pub fn lock(path: &Path) -> Result<Self, PathError> {
        let file = open_to_lock(path)
            .and_then(|file| file.lock().map(|()| file))
            .map_err(PathError::of("lock", path))?;
        let path = path.to_owned();
        Ok(Self { file, path })
    }

    /// Reads all records.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or a line is not a valid record.
    pub fn read<T: DeserializeOwned>(&mut self) -> Result<Vec<T>, PathError> {
        let mut read = || -> io::Result<Vec<T>> {
            let mut text = String::new();
            self.file.seek(SeekFrom::Start(0))?;
            self.file.read_to_string(&mut text)?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            if whole < text.len() {
                self.file.set_len(whole as u64)?;
            }
            let lines = text[..whole].lines();
            let records = lines.map(|line| serde_json::from_str(line).map_err(io::Error::from));
            records.collect()
        };
        read().map_err(PathError::of("read", &self.path))
    }

    /// Appends records. They are on disk when this returns.
    ///
    /// # Errors
    /// Fails if the records cannot be written.
    pub fn append<T: Serialize>(&mut self, records: &[T]) -> Result<(), PathError> {
        self.note(records)?;
        let synced = self.file.sync_data();
        synced.map_err(PathError::of("write", &self.path))
    }

    /// Appends records without syncing them: a power failure may lose them.
    ///
    /// # Errors
    /// Fails if the records cannot be written.
    pub fn note<T: Serialize>(&mut self, records: &[T]) -> Result<(), PathError> {
        let mut append = || -> io::Result<()> {
            let mut lines = Vec::new();
            for record in records {
                serde_json::to_writer(&mut lines, record)?;
                lines.push(b'\n');
            }
            self.file.seek(SeekFrom::End(0))?;
            self.file.write_all(&lines)
        };
        append().map_err(PathError::of("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_line_that_was_not_finished_is_dropped_and_what_is_not_a_record_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, "1\n2\n3").unwrap();
        let mut records = Records::lock(&path).unwrap();
        assert_eq!(records.read::<u8>().unwrap(), [1, 2]);
        records.append(&[4, 5]).unwrap();
        assert_eq!(records.read::<u8>().unwrap(), [1, 2, 4, 5]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n2\n4\n5\n");
        fs::write(&path, "{\n").unwrap();
        assert!(records.read::<u8>().is_err());
    }

    #[test]
    fn each_of_several_processes_sees_what_the_others_have_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let mut records = Records::lock(&path).unwrap();
                        let next = records.read::<usize>().unwrap().len();
                        records.append(&[next]).unwrap();
                    }
                });
            }
        });
        let all: Vec<usize> = Records::lock(&path).unwrap().read().unwrap();
        assert_eq!(all, (0..160).collect::<Vec<_>>());
    }
}
