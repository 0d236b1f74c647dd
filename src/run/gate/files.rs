//! The states of files before a build, and their changes since.
//!
//! Reads these files. Guarantees that no link is followed, that nothing but regular files is read, and that at most
//! [`ROOM`] bytes of them are held at a time, or twice that while two states are compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::edit::beneath::{Beneath, PathEntry};
use crate::sys::diff::{self, FileChange, FileState, NEW_MODE};
use crate::sys::files::{PathError, is_missing, read_open};
use crate::sys::text::escaped;

/// Maximum total content held, in bytes. A file beyond it counts as changed if its metadata differs in any way.
const ROOM: usize = 8 << 20;

/// The path of a file, split by where links are followed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GatePath {
    /// A directory, whose own path may go through links.
    base: PathBuf,
    /// The path below it, in which no link is followed.
    path: String,
}

impl GatePath {
    /// Creates the path of a file in the project at `root`.
    pub fn below(root: &Path, path: String) -> Self {
        let base = root.to_path_buf();
        Self { base, path }
    }

    /// Creates the path of a file that git looks up, even through links; `None` if its name is not UTF-8.
    pub fn of(path: &Path) -> Option<Self> {
        Some(Self {
            base: path.parent()?.to_path_buf(),
            path: path.file_name()?.to_str()?.to_owned(),
        })
    }
}

/// The states of files, by path.
#[derive(Debug, Default)]
pub struct GateFiles {
    states: BTreeMap<GatePath, GateFile>,
}

impl GateFiles {
    /// Reads the files at these paths.
    ///
    /// # Errors
    /// Fails if a file cannot be examined.
    pub fn new(paths: BTreeSet<GatePath>) -> Result<Self, PathError> {
        let mut room = ROOM;
        let mut states = BTreeMap::new();
        let mut opened = OpenBase::default();
        for path in paths {
            let found = opened.look(&path, room)?;
            if let GateFile::File(state) = &found {
                room -= state.content.len();
            }
            states.insert(path, found);
        }
        Ok(Self { states })
    }

    /// Returns the changes to these files, and to those at `more` paths, which did not exist before; by path as shown
    /// to a user of the project at `root`. Adds details for the log to `diff`.
    ///
    /// # Errors
    /// Fails if a file cannot be examined.
    pub fn changes(
        &self,
        root: &Path,
        more: &BTreeSet<GatePath>,
        diff: &mut String,
    ) -> Result<Vec<Change>, PathError> {
        let mut all: BTreeMap<_, _> = more.iter().map(|path| (path, &GateFile::Missing)).collect();
        all.extend(&self.states);
        let mut changes = Vec::new();
        let mut opened = OpenBase::default();
        for (path, before) in all {
            let room = match before {
                GateFile::Large { .. } => 0,
                _ => ROOM,
            };
            let after = opened.look(path, room)?;
            if after != *before {
                let path = shown(root, &path.base.join(&path.path));
                diff.push_str(&difference(&path, before, &after));
                changes.push((path, words_for(before, &after)));
            }
        }
        Ok(changes)
    }
}

/// Returns the path for display: relative to the root if it is below the root.
pub fn shown(root: &Path, path: &Path) -> String {
    let shown = path.strip_prefix(root).unwrap_or(path);
    match shown.to_string_lossy().as_ref() {
        "" => ".".to_owned(),
        shown => shown.to_owned(),
    }
}

/// The state of a path.
#[derive(Debug, PartialEq, Eq)]
enum GateFile {
    Missing,
    File(FileState),
    /// A file too large to hold.
    Large {
        size: u64,
        inode: u64,
        /// Time of the last change to its content or metadata (ctime), which programs cannot set.
        changed: (i64, i64),
    },
    Link(PathBuf),
    /// A directory, a pipe or the like, or a file that cannot be read.
    SomethingElse,
}

/// A path as shown to the user, and the words for its change.
pub type Change = (String, &'static str);

/// The words for a file that did not exist before.
pub const MADE: &str = "was created";

fn words_for(before: &GateFile, after: &GateFile) -> &'static str {
    let is_file = |state: &GateFile| matches!(state, GateFile::File(_) | GateFile::Large { .. });
    match (before, after) {
        (GateFile::Missing, _) => MADE,
        (_, GateFile::Missing) => "was removed",
        _ if is_file(before) && is_file(after) => "was changed",
        _ => "was replaced by something else",
    }
}

/// The most recently used base directory, which stays open; with sorted paths, each one is opened only once.
#[derive(Default)]
struct OpenBase(Option<(PathBuf, Beneath)>);

impl OpenBase {
    /// Returns the state of the path, without following links.
    fn look(&mut self, place: &GatePath, room: usize) -> Result<GateFile, PathError> {
        match self.found(place, room) {
            // A build may have removed the permission.
            Err(error) if is_denied(&error) => Ok(GateFile::SomethingElse),
            Err(error) if is_missing(&error) => Ok(GateFile::Missing),
            found => found.map_err(PathError::of("read", &place.path)),
        }
    }

    fn found(&mut self, GatePath { base, path }: &GatePath, room: usize) -> io::Result<GateFile> {
        let (_, beneath) = match self.0.take() {
            Some(opened) if opened.0 == *base => self.0.insert(opened),
            _ => self.0.insert((base.clone(), Beneath::open(base)?)),
        };
        match beneath.entry(path)? {
            PathEntry::Nothing => Ok(GateFile::Missing),
            PathEntry::File(file) => read(file, room),
            PathEntry::SomethingElse => match base.join(path).read_link() {
                // Not a link.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    Ok(GateFile::SomethingElse)
                }
                target => target.map(GateFile::Link),
            },
        }
    }
}

/// Returns whether permission was denied, which a build may have caused.
pub fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

fn read(file: File, room: usize) -> io::Result<GateFile> {
    let metadata = file.metadata()?;
    // Only the executable bit of the mode matters.
    let mode = if metadata.mode() & 0o111 == 0 {
        NEW_MODE
    } else {
        NEW_MODE | 0o111
    };
    match read_open(file, room as u64) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(GateFile::Large {
            size: metadata.len(),
            inode: metadata.ino(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }),
        content => Ok(GateFile::File(FileState {
            content: content?,
            mode,
        })),
    }
}

/// Returns the change of a file as a diff; for anything but two small files, a description in words.
fn difference(path: &str, before: &GateFile, after: &GateFile) -> String {
    let state = |file: &GateFile| match file {
        GateFile::Missing => Some(None),
        GateFile::File(state) => Some(Some(state.clone())),
        _ => None,
    };
    if let (Some(before), Some(after)) = (state(before), state(after)) {
        let path = path.to_owned();
        return diff::text(&[FileChange {
            path,
            before,
            after,
        }]);
    }
    let (before, after) = (words(before), words(after));
    format!("`{}` was {before}, and is {after}\n", escaped(path))
}

fn words(file: &GateFile) -> String {
    match file {
        GateFile::Missing => "missing".to_owned(),
        GateFile::File(state) => format!("a file of {} bytes", state.content.len()),
        GateFile::Large { size, .. } => format!("a file of {size} bytes"),
        GateFile::Link(target) => format!("a link to `{}`", escaped(&target.to_string_lossy())),
        GateFile::SomethingElse => "something that cannot be read as a file".to_owned(),
    }
}
