//! The records of a journal: each rename in progress, and the data needed to undo it.
//!
//! Pure. Guarantees that a parsed record names nothing that no run may change: a journal may be where a build can
//! write.

use std::collections::BTreeSet;
use std::io;

use serde::{Deserialize, Serialize};

use super::beneath::{ancestors, split};
use super::digest::Digest;
use super::spelling::{self, PathScope};
use crate::project::walk::joined;
use crate::sys::defaults::is_default;
use crate::sys::identity::{Fingerprint, Stamp};

/// The prefix of staged names.
pub const STAGED: &str = ".code-commit-";
/// Version of the journal's format.
pub const VERSION: u32 = 2;

/// A rename in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedUnit {
    /// The final path, relative to the root.
    pub target: String,
    /// The staged path, in the same directory.
    pub staged: String,
    /// The change at the final path.
    pub change: UnitChange,
}

/// A change at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitChange {
    /// A new file is created.
    Create { new: Digest },
    /// A new directory is created.
    CreateDirectory { files: Vec<(String, Digest)> },
    /// A file replaces another.
    Replace { old: Old, new: Digest },
    /// A file is removed.
    Remove { old: Option<Old> },
}

/// A file that is replaced or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Old {
    /// The identity and state of the file.
    pub fingerprint: Fingerprint,
}

/// The content of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The format version: [`VERSION`].
    pub version: u32,
    /// The folder of the run that wrote it, relative to the root; `None` if it was not written by a run.
    pub folder: Option<String>,
    /// The modification time of all new files.
    pub stamp: Stamp,
    /// The renames in progress.
    pub units: Vec<RecordedUnit>,
    /// Directories to remove at the end if empty, innermost first.
    pub directories: Vec<String>,
    /// The scope of the paths.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scope: PathScope,
}

impl Record {
    /// Parses a record from JSON.
    ///
    /// # Errors
    /// Fails if the JSON is not a record, has another version, or names something that no run may change.
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

    /// Returns the first name that no run may change, if any: a journal may be where a build can write.
    fn forbidden(&self) -> Option<String> {
        let is_run = |folder: &String| {
            let name = folder.strip_prefix("logs/");
            name.is_some_and(|name| !name.contains('/') && !name.starts_with('.'))
        };
        let is_barred = |path: &String| spelling::broken_rule(path, self.scope).is_some();
        let below = self.units.iter().flat_map(|unit| {
            let files = match &unit.change {
                UnitChange::CreateDirectory { files } => files.as_slice(),
                _ => &[],
            };
            files.iter().map(|(file, _)| joined(&unit.target, file))
        });
        let targets = self.units.iter().map(|unit| unit.target.clone());
        let paths = below.chain(targets).chain(self.directories.clone());
        let misnamed = self.units.iter().filter(|unit| !unit.is_staged());
        let folder = self.folder.clone().filter(|folder| !is_run(folder));
        folder
            .into_iter()
            .chain(paths.filter(is_barred))
            .chain(misnamed.map(|unit| unit.staged.clone()))
            .next()
    }

    /// Returns the directories to be created, outermost first.
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

impl RecordedUnit {
    /// Returns whether the staged path is next to the final one, with a name as only this program creates.
    fn is_staged(&self) -> bool {
        let ((parent, name), (expected, _)) = (split(&self.staged), split(&self.target));
        let number = name.strip_prefix(STAGED).unwrap_or_default();
        let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
        parent == expected && !number.is_empty() && number.bytes().all(is_digit)
    }
}
