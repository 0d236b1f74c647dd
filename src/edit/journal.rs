//! The journal of an application: what is under way, and what may not have reached the disk.
//!
//! Writes its files in a directory that no reply may write to. Guarantees that the journal is whole
//! and on the disk before any of the project's files is changed, that the moment when the new tree
//! counts is one rename, and that a journal which names what no run may change is not obeyed.
//!
//! ```text
//! armed        new files are being written under staged names; the old tree counts, and is untouched
//!   │
//! installing ─ roll back ─ rolled back: the old tree is there, and something staged may be left
//!   │
//! installed    the new tree counts, as far as it has reached the disk whole; else the old one
//!   │
//! ended        the same, and the run has come to its end
//! ```
//!
//! Each step is one rename. The journal is removed when the old tree is there again, or the new one on
//! the disk for good.

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::beneath::split;
use super::disk;
use super::spelling;
use super::undo_log::{Before, kept_path};

/// A journal that was still being written; it speaks of nothing that has happened.
const UNFINISHED: &str = ".code-commit-journal-new";
/// Beside a journal whose new files a power cut has torn, from when that is known until they are gone.
const TORN: &str = ".code-commit-journal-torn";
/// The beginning of the names of staged files.
pub const STAGED: &str = ".code-commit-";
/// The version of the journal's form.
const VERSION: u32 = 2;

/// How far an application has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Nothing is in its place yet.
    Armed,
    /// Everything is staged; some of it may be in its place.
    Installing,
    /// It is rolled back, and something staged may be left to remove.
    RolledBack,
    /// Everything is in its place.
    Installed,
    /// And the run that did it has ended.
    Ended,
}

impl State {
    const ALL: [Self; 5] = [
        Self::Armed,
        Self::Installing,
        Self::RolledBack,
        Self::Installed,
        Self::Ended,
    ];

    /// The name of the journal's file.
    fn file_name(self) -> &'static str {
        match self {
            Self::Armed => ".code-commit-journal",
            Self::Installing => ".code-commit-journal-installing",
            Self::RolledBack => ".code-commit-journal-rolled-back",
            Self::Installed => ".code-commit-journal-installed",
            Self::Ended => ".code-commit-journal-ended",
        }
    }
}

/// The journal could not be written, read or removed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the journal `{}`: {source}", .path.display())]
pub struct JournalError {
    /// What was being done.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
}

/// What a file's content comes down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    size: u64,
    /// XXH3: it tells files apart, not adversaries.
    hash: u64,
}

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self {
            size: content.len() as u64,
            hash: xxh3_64(content),
        }
    }

    /// The digest of a file's content.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of_file(mut file: File) -> io::Result<Self> {
        let mut digest = DigestWriter::default();
        io::copy(&mut file, &mut digest)?;
        Ok(digest.finish())
    }

    /// Whether the file may be what a power cut has left of this content: the end of it is missing, or a
    /// part of it is empty.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn may_be_torn_to(self, mut file: File) -> io::Result<bool> {
        let size = file.metadata()?.len();
        if size != self.size {
            return Ok(size < self.size);
        }
        let mut chunk = vec![0; 64 << 10];
        loop {
            match file.read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(amount) if chunk[..amount].contains(&0) => return Ok(true),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the file has this content.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn is_of(self, file: File) -> io::Result<bool> {
        Ok(file.metadata()?.len() == self.size && Self::of_file(file)? == self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.hash)
    }
}

/// Works out the digest of what is written to it.
#[derive(Default)]
pub struct DigestWriter {
    size: u64,
    hash: Xxh3,
}

impl DigestWriter {
    /// The digest of all that was written.
    pub fn finish(&self) -> Digest {
        Digest {
            size: self.size,
            hash: self.hash.digest(),
        }
    }
}

impl io::Write for DigestWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.size += bytes.len() as u64;
        self.hash.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What tells a file from another, and from itself after an edit, without reading it. The device is
/// left out: its number may change from boot to boot, and nothing here leaves its directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// The inode.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// When it was last written to: seconds and nanoseconds.
    pub modified: Stamp,
}

impl Fingerprint {
    /// The file's.
    #[must_use]
    pub fn of(stat: &Stat) -> Self {
        Self {
            inode: number(stat.st_ino),
            size: number(stat.st_size),
            modified: modified(stat),
        }
    }

    /// Whether this is the file.
    #[must_use]
    pub fn is_of(self, stat: &Stat) -> bool {
        self == Self::of(stat)
    }
}

/// When a file was last written to.
pub fn modified(stat: &Stat) -> Stamp {
    (number(stat.st_mtime), number(stat.st_mtime_nsec))
}

/// When a file was last written to, renamed, or had its mode or times changed. Nobody can set that.
pub fn changed(stat: &Stat) -> Stamp {
    (number(stat.st_ctime), number(stat.st_ctime_nsec))
}

/// The fields of `stat` have other types on other systems.
fn number<T: TryInto<U>, U: Default>(value: T) -> U {
    value.try_into().unwrap_or_default()
}

/// One rename that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedUnit {
    /// Where it goes, relative to the root.
    pub target: String,
    /// Where it is made, in the same directory.
    pub staged: String,
    /// What happens there.
    pub change: Change,
}

/// What happens at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// A file is made where none was.
    Create {
        /// Its content.
        new: Digest,
    },
    /// A directory is made where none was.
    CreateDirectory {
        /// Its files, relative to it, with their content.
        files: Vec<(String, Digest)>,
    },
    /// A file takes the place of another.
    Replace {
        /// The one that was there.
        old: Old,
        /// The new content.
        new: Digest,
    },
    /// A file is removed.
    Remove {
        /// The one that was there.
        old: Option<Old>,
    },
}

/// A file that is replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Old {
    /// Which file it is, in which state.
    pub fingerprint: Fingerprint,
    /// Where its bytes are kept, below the root; nowhere where the new ones are on the disk before
    /// they count.
    pub kept: Option<(String, Before)>,
}

/// A point in time: seconds and nanoseconds since 1970.
pub type Stamp = (i64, i64);
/// No time is later.
pub const FOR_EVER: Stamp = (i64::MAX, i64::MAX);

/// What the journal says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// The folder of the run that did it, relative to the root; none where it was no run.
    pub folder: Option<String>,
    /// Whether the new files were on the disk before they counted, so that no power cut has torn them.
    pub durable: bool,
    /// The time that every new file says it was last written at: what says so still, was not changed
    /// since, even where a power cut has torn it.
    pub stamp: Stamp,
    /// What is under way.
    pub units: Vec<RecordedUnit>,
    /// Directories to remove in the end, inner ones first, where they are empty.
    pub directories: Vec<String>,
}

impl Record {
    /// The record of these renames.
    #[must_use]
    pub fn new(
        folder: Option<String>,
        durable: bool,
        stamp: Stamp,
        units: Vec<RecordedUnit>,
        directories: Vec<String>,
    ) -> Self {
        Self {
            version: VERSION,
            folder,
            durable,
            stamp,
            units,
            directories,
        }
    }
}

impl Record {
    /// The first thing that is named and no run may change: a journal may lie where a build can write.
    fn forbidden(&self) -> Option<&str> {
        let run = |folder: &str| Some(folder.strip_prefix("logs/")?.to_owned());
        let name = self.folder.as_deref().and_then(run);
        if let Some(folder) = &self.folder
            && name
                .as_ref()
                .is_none_or(|name| name.contains('/') || name.starts_with('.'))
        {
            return Some(folder);
        }
        let barred = |path: &str| spelling::broken_rule(path).is_some();
        let units = self.units.iter().flat_map(|unit| {
            let below = match &unit.change {
                Change::CreateDirectory { files } => files.as_slice(),
                _ => &[],
            };
            let files = below
                .iter()
                .map(|(file, _)| file.as_str())
                .filter(|file| barred(&format!("{}/{file}", unit.target)));
            let target = Some(unit.target.as_str()).filter(|target| barred(target));
            let staged =
                Some(unit.staged.as_str()).filter(|staged| !is_staged(staged, &unit.target));
            files
                .chain(target)
                .chain(staged)
                .chain(self.misplaced(unit))
        });
        let directories = self.directories.iter().map(String::as_str);
        units.chain(directories.filter(|path| barred(path))).next()
    }

    /// A place that is said to keep a file, and is none.
    fn misplaced<'r>(&self, unit: &'r RecordedUnit) -> Option<&'r str> {
        let (Change::Replace { old, .. } | Change::Remove { old: Some(old) }) = &unit.change else {
            return None;
        };
        let (path, before) = old.kept.as_ref()?;
        let expected = self
            .folder
            .as_deref()
            .map(|folder| kept_path(folder, before));
        (expected.as_ref() != Some(path)).then_some(path.as_str())
    }

    /// The files that are written, with their content.
    pub fn new_files(&self) -> Vec<(String, Digest)> {
        let mut files = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            match &unit.change {
                Change::Create { new } | Change::Replace { new, .. } => {
                    files.push((unit.target.clone(), *new));
                }
                Change::CreateDirectory { files: below } => {
                    let path = |file: &String| format!("{}/{file}", unit.target);
                    files.extend(below.iter().map(|(file, new)| (path(file), *new)));
                }
                Change::Remove { .. } => {}
            }
        }
        files
    }
}

/// Whether this is a name beside `target` that only this program gives.
fn is_staged(staged: &str, target: &str) -> bool {
    let ((parent, name), (expected, _)) = (split(staged), split(target));
    let number = name.strip_prefix(STAGED).unwrap_or_default();
    parent == expected
        && !number.is_empty()
        && number
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}

/// A journal on the disk.
#[derive(Debug)]
pub struct Journal {
    /// None: there is no file, and nothing outlives the process.
    directory: Option<PathBuf>,
    state: State,
}

impl Journal {
    /// Writes the journal, and sees that it is on the disk. From when this returns, whatever happens
    /// is undone unless [`install`](Self::install) has returned too.
    ///
    /// # Errors
    /// When it cannot be written; then it is not there.
    pub fn arm(directory: &Path, record: &Record) -> Result<Self, JournalError> {
        let journal = Self {
            directory: Some(directory.to_path_buf()),
            state: State::Armed,
        };
        let path = directory.join(State::Armed.file_name());
        let unfinished = directory.join(UNFINISHED);
        if !record.durable {
            // Of an application that is over; one that is being mended is still needed.
            let _ = disk::remove_file(&directory.join(TORN));
        }
        let written = write_new(&unfinished, record)
            .and_then(|()| disk::rename(&unfinished, &path))
            .and_then(|()| disk::sync(&disk::open(directory)?));
        match written {
            Ok(()) => Ok(journal),
            Err(source) => {
                // Should one be there all the same, it speaks of nothing that has happened.
                let _ = disk::remove_file(&unfinished);
                let _ = disk::remove_file(&path);
                Err(JournalError {
                    action: "write",
                    path,
                    source,
                })
            }
        }
    }

    /// A journal that is not written down.
    pub fn without_file() -> Self {
        Self {
            directory: None,
            state: State::Armed,
        }
    }

    /// Looks for a journal that an earlier process, or an earlier application, has left behind; the
    /// one that is under way first.
    ///
    /// # Errors
    /// When there is one that cannot be read: then nothing is known about the tree.
    pub fn find(directory: &Path) -> Result<Option<(Self, Record)>, JournalError> {
        let unfinished = directory.join(UNFINISHED);
        if let Err(source) = remove_if_there(&unfinished) {
            return Err(JournalError {
                action: "remove",
                path: unfinished,
                source,
            });
        }
        for state in State::ALL {
            let journal = Self {
                directory: Some(directory.to_path_buf()),
                state,
            };
            if let Some(record) = read(&directory.join(state.file_name()))? {
                return Ok(Some((journal, record)));
            }
        }
        Ok(None)
    }

    /// How far the application has come.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Notes that everything is staged.
    ///
    /// # Errors
    /// When the rename fails; nothing is in its place then.
    pub fn begin_installing(&mut self) -> Result<(), JournalError> {
        self.become_of(State::Installing, "write on")
    }

    /// Notes that a power cut has torn the new files. From then on that need not be found out again,
    /// which it could not: what is done about it leaves traces on them.
    ///
    /// # Errors
    /// When that cannot be noted.
    pub fn mark_torn(&mut self) -> Result<(), JournalError> {
        // The application that mends it takes this one's place in one rename.
        self.become_of(State::Installed, "write on")?;
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let marker = directory.join(TORN);
        match disk::create_new(&marker) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(failed("write on", marker)(error)),
        }
    }

    /// Whether that was noted.
    fn is_marked_torn(&self) -> bool {
        let marker = self
            .directory
            .as_ref()
            .map(|directory| directory.join(TORN));
        marker.is_some_and(|marker| disk::stat(&marker).is_ok())
    }

    /// Makes the new tree the one that counts. The journal's file is from then on as old as the tree: what
    /// changes later, is younger.
    ///
    /// # Errors
    /// When the rename fails; the old tree then counts.
    pub fn install(&mut self) -> Result<(), JournalError> {
        if let Some(path) = self.path() {
            disk::touch(&path).map_err(failed("complete", path))?;
        }
        self.become_of(State::Installed, "complete")
    }

    /// Until when a change to a new file is this application's own: when the tree that counts was complete;
    /// or for ever, where it is known to be torn.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn own_until(&self) -> Result<Stamp, JournalError> {
        match self.path() {
            _ if self.is_marked_torn() => Ok(FOR_EVER),
            None => Ok(Stamp::default()),
            Some(path) => {
                let stat = disk::stat(&path).map_err(failed("read", path))?;
                Ok(modified(&stat))
            }
        }
    }

    /// Notes that the old tree is there again.
    ///
    /// # Errors
    /// When the rename fails; should the roll-back be cut short now, it is begun anew.
    pub fn mark_rolled_back(&mut self) -> Result<(), JournalError> {
        self.become_of(State::RolledBack, "end")
    }

    /// Notes that the run has come to its end.
    ///
    /// # Errors
    /// When the rename fails; the next run then takes this one for cut short.
    pub fn end(&mut self) -> Result<(), JournalError> {
        self.become_of(State::Ended, "end")
    }

    fn become_of(&mut self, state: State, action: &'static str) -> Result<(), JournalError> {
        if let (Some(path), Some(directory)) = (self.path(), &self.directory) {
            let new = directory.join(state.file_name());
            disk::rename(&path, &new).map_err(failed(action, path))?;
        }
        self.state = state;
        Ok(())
    }

    /// Removes the journal, once there is nothing left to do.
    ///
    /// # Errors
    /// When it cannot be removed; the next run then looks at it once more.
    pub fn remove(&self) -> Result<(), JournalError> {
        match self.path() {
            None => Ok(()),
            Some(path) => {
                // The mark is of what is installed, not of what is under way to mend it.
                let installed = matches!(self.state, State::Installed | State::Ended);
                if installed && self.is_marked_torn() {
                    let marker = path.with_file_name(TORN);
                    disk::remove_file(&marker).map_err(failed("remove", marker))?;
                }
                disk::remove_file(&path).map_err(failed("remove", path))
            }
        }
    }

    fn path(&self) -> Option<PathBuf> {
        let directory = self.directory.as_ref()?;
        Some(directory.join(self.state.file_name()))
    }
}

fn failed<E: Into<io::Error>>(
    action: &'static str,
    path: PathBuf,
) -> impl FnOnce(E) -> JournalError {
    move |error| JournalError {
        action,
        path,
        source: error.into(),
    }
}

/// Reads a journal, where there is one.
fn read(path: &Path) -> Result<Option<Record>, JournalError> {
    let parsed = match disk::read(path) {
        Ok(json) => serde_json::from_slice::<Record>(&json).map_err(io::Error::from),
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => Err(error),
    };
    match parsed {
        Ok(record) if record.version == VERSION => match record.forbidden() {
            None => Ok(Some(record)),
            Some(path) => Err(io::Error::other(format!(
                "it names `{}`, which no run may change so",
                path.escape_debug()
            ))),
        },
        Ok(_) => Err(io::Error::other("it is of another version of this program")),
        Err(error) => Err(error),
    }
    .map_err(failed("read", path.to_path_buf()))
}

/// Writes the record to a file that must not exist, and to the disk.
fn write_new(path: &Path, record: &Record) -> io::Result<()> {
    let mut file = disk::create_new(path)?;
    disk::write_all(&mut file, &serde_json::to_vec(record)?)?;
    disk::sync(&file)
}

/// Nothing is there; perhaps not even the directory.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    // A look first: removing what is not there fails where nothing can be written.
    match path.symlink_metadata() {
        Ok(_) => disk::remove_file(path),
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}
