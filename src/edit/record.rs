//! What a journal says: each rename that is under way, and what makes it possible to undo it.
//!
//! Pure. Guarantees that what is read names nothing that no run may change: a journal may lie where a
//! build can write.

use std::collections::BTreeSet;
use std::io;

use serde::{Deserialize, Serialize};

use super::beneath::{ancestors, split};
use super::changes::{Before, kept_path};
use super::digest::{Digest, Fingerprint, Stamp};
use super::spelling::{self, PathScope};

/// The beginning of the names of staged files.
pub const STAGED: &str = ".code-commit-";
/// The version of the journal's form.
pub const VERSION: u32 = 2;

/// One rename that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedUnit {
    /// Where it goes, relative to the root.
    pub target: String,
    /// Where it is made, in the same directory.
    pub staged: String,
    /// What happens there.
    pub change: UnitChange,
}

/// What happens at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitChange {
    /// A file is made where none was.
    Create {
        /// What tells the content that it gets.
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

/// When the new files of an application were written.
#[derive(Clone, Copy)]
pub struct Written {
    /// What every one of them says of when it was last written to.
    pub stamp: Stamp,
    /// What was changed later than this, was changed by somebody else, whatever it says.
    pub until: Stamp,
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

/// A file that is written or removed.
pub struct FileRecord<'r> {
    /// Where, relative to the root.
    pub path: String,
    /// The new content; none where it is removed.
    pub new: Option<Digest>,
    /// The file that was there.
    pub old: Option<&'r Old>,
}

/// What the journal says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub version: u32,
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
    /// Whose writes they are.
    #[serde(default, skip_serializing_if = "PathScope::is_reply")]
    pub scope: PathScope,
}

impl Record {
    /// Reads what was written down as JSON.
    ///
    /// # Errors
    /// When it is something else, of another version, or names what no run may change.
    pub fn parse(json: &[u8]) -> io::Result<Self> {
        let record: Self = serde_json::from_slice(json)?;
        if record.version != VERSION {
            return Err(io::Error::other("it is of another version of this program"));
        }
        match record.forbidden() {
            None => Ok(record),
            Some(path) => Err(io::Error::other(format!(
                "it names `{}`, which no run may change so",
                path.escape_debug()
            ))),
        }
    }

    /// The first thing that is named and no run may change: a journal may lie where a build can write.
    fn forbidden(&self) -> Option<String> {
        let is_run = |folder: &String| {
            let name = folder.strip_prefix("logs/");
            name.is_some_and(|name| !name.contains('/') && !name.starts_with('.'))
        };
        let folder = self.folder.iter().filter(|folder| !is_run(folder));
        let files = self.files();
        let targets = self.units.iter().map(|unit| &unit.target);
        let paths = files.iter().map(|file| &file.path).chain(targets);
        let paths = paths.chain(&self.directories);
        let barred = paths.filter(|path| spelling::broken_rule(path, self.scope).is_some());
        let staged = self.units.iter().map(|unit| (&unit.staged, &unit.target));
        let misnamed = staged.filter(|(name, target)| !is_staged(name, target));
        // A place that is said to keep a file, and is none.
        let misplaced = files.iter().filter_map(|file| {
            let (path, before) = file.old?.kept.as_ref()?;
            let expected = self.folder.as_ref().map(|folder| kept_path(folder, before));
            (expected.as_ref() != Some(path)).then_some(path)
        });
        let named = folder.chain(barred).chain(misnamed.map(|(name, _)| name));
        named.chain(misplaced).next().cloned()
    }

    /// What is done, file by file.
    pub fn files(&self) -> Vec<FileRecord<'_>> {
        let mut files = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            let mut add = |path: String, new, old| files.push(FileRecord { path, new, old });
            match &unit.change {
                UnitChange::Create { new } => add(unit.target.clone(), Some(*new), None),
                UnitChange::Replace { old, new } => add(unit.target.clone(), Some(*new), Some(old)),
                UnitChange::Remove { old: Some(old) } => add(unit.target.clone(), None, Some(old)),
                UnitChange::Remove { old: None } => {}
                UnitChange::CreateDirectory { files: below } => {
                    for (file, new) in below {
                        add(format!("{}/{file}", unit.target), Some(*new), None);
                    }
                }
            }
        }
        files
    }

    /// When the new files were written; who changed them later than `until`, is somebody else.
    pub fn written(&self, until: Stamp) -> Written {
        Written {
            stamp: self.stamp,
            until,
        }
    }

    /// The files that are written, with their content.
    pub fn new_files(&self) -> Vec<(String, Digest)> {
        let files = self.files().into_iter();
        files
            .filter_map(|file| Some((file.path, file.new?)))
            .collect()
    }

    /// The directories that are made, outer ones first.
    pub fn new_directories(&self) -> BTreeSet<String> {
        let mut made = BTreeSet::new();
        for unit in &self.units {
            if let UnitChange::CreateDirectory { files } = &unit.change {
                made.insert(unit.target.clone());
                let below = files.iter().flat_map(|(file, _)| ancestors(file));
                made.extend(below.map(|below| format!("{}/{below}", unit.target)));
            }
        }
        made
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
