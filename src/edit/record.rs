//! What a journal says: each rename that is under way, and what makes it possible to undo it.
//!
//! Pure. Guarantees that what is read names nothing that no run may change: a journal may lie where a
//! build can write.

use std::io;

use serde::{Deserialize, Serialize};

use super::beneath::split;
use super::changes::{Before, kept_path};
use super::digest::{Digest, Fingerprint, Stamp};
use super::spelling;

/// The beginning of the names of staged files.
pub const STAGED: &str = ".code-commit-";
/// The version of the journal's form.
const VERSION: u32 = 2;

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

    /// Reads what [`to_json`](Self::to_json) has made.
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

    /// The form in which it is written down.
    ///
    /// # Errors
    /// The serializer's.
    pub fn to_json(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

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
