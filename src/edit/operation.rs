//! The operations on the tree, file by file. Plain data.

use super::beneath::Root;
use super::changes::Before;
use super::digest::Present;

/// Operations that are carried out all or nothing.
pub struct ChangeSet<'w, 's> {
    /// The operations on files, sorted by path.
    pub steps: &'w [FileOperation<'s>],
    /// Directories to remove at the end if empty, innermost first.
    pub directories: Vec<String>,
    /// Protection against a kill or a power cut.
    pub journalling: Journalling,
}

/// An operation on one file.
pub struct FileOperation<'e> {
    /// The path, relative to the root.
    pub path: &'e str,
    /// The operation to perform.
    pub action: Operation<'e>,
    /// The file currently at the path, if any.
    pub present: Option<Present>,
}

/// An operation at a path.
pub enum Operation<'e> {
    /// Writes a file with this content.
    Write(&'e str),
    /// Restores the file whose bytes are saved at `path`, relative to the root.
    Restore {
        path: String,
        before: &'e Before,
        /// A handle on the folder that contains `replaced`, if it is not looked up by path.
        held: Option<&'e Root>,
    },
    /// Removes the file.
    Remove,
}

/// The protection of a transaction against a kill or a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journalling {
    /// A journal records the operation in progress, and new files are synced before they take effect.
    On,
    /// No journal and no syncing: the last resort for reverting a run on a full disk.
    Off,
}
