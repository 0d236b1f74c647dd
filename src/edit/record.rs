//! The records of a journal: each rename under way, and the data needed to undo it.
//!
//! Pure. Guarantees that what is read names nothing that no run may change: a journal may lie where a
//! build can write.

use std::collections::BTreeSet;
use std::io;

use serde::{Deserialize, Serialize};

use super::beneath::{ancestors, split};
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
    /// The change there.
    pub change: UnitChange,
}

/// A change at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitChange {
    /// A file is made where none was.
    Create { new: Digest },
    /// A directory is made where none was.
    CreateDirectory { files: Vec<(String, Digest)> },
    /// A file takes the place of another.
    Replace { old: Old, new: Digest },
    /// A file is removed.
    Remove { old: Option<Old> },
}

/// A file that is replaced or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Old {
    /// Which file it is, in which state.
    pub fingerprint: Fingerprint,
}

/// The content of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub version: u32,
    /// The folder of the run that did it, relative to the root; none where it was no run.
    pub folder: Option<String>,
    /// The time that every new file says it was last written at.
    pub stamp: Stamp,
    /// The renames that are under way.
    pub units: Vec<RecordedUnit>,
    /// Directories to remove in the end, inner ones first, where they are empty.
    pub directories: Vec<String>,
    /// The scope of the paths.
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
        let is_barred = |path: &String| spelling::broken_rule(path, self.scope).is_some();
        let units = self.units.iter();
        let below = units.clone().flat_map(|unit| {
            let files = match &unit.change {
                UnitChange::CreateDirectory { files } => files.as_slice(),
                _ => &[],
            };
            files
                .iter()
                .map(|(file, _)| format!("{}/{file}", unit.target))
        });
        let folder = self.folder.clone().filter(|folder| !is_run(folder));
        folder
            .or_else(|| below.into_iter().find(is_barred))
            .or_else(|| {
                let targets = units.clone().map(|unit| &unit.target);
                targets
                    .chain(&self.directories)
                    .find(|path| is_barred(path))
                    .cloned()
            })
            .or_else(|| {
                let misnamed = |unit: &&RecordedUnit| !is_staged(&unit.staged, &unit.target);
                units.clone().find(misnamed).map(|unit| unit.staged.clone())
            })
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

/// Returns whether this is a name beside `target` that only this program gives.
fn is_staged(staged: &str, target: &str) -> bool {
    let ((parent, name), (expected, _)) = (split(staged), split(target));
    let number = name.strip_prefix(STAGED).unwrap_or_default();
    parent == expected
        && !number.is_empty()
        && number
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
