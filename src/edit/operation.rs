//! The operations on the tree, file by file. Plain data.

use super::beneath::Root;
use super::changes::Before;
use super::digest::Present;

/// Steps that are done all at once, or not at all.
pub struct ChangeSet<'w, 's> {
    /// File by file, sorted by path.
    pub steps: &'w [FileOperation<'s>],
    /// Directories to remove in the end, inner ones first, as far as they are empty.
    pub directories: Vec<String>,
    /// The safety net for a kill or a power cut.
    pub journalling: Journalling,
}

/// An operation on one file.
pub struct FileOperation<'e> {
    /// The path, relative to the root.
    pub path: &'e str,
    /// The operation.
    pub action: Operation<'e>,
    /// The file that is there now.
    pub present: Option<Present>,
}

/// An operation at a path.
pub enum Operation<'e> {
    /// A file with this content is written.
    Write(&'e str),
    /// The file whose bytes are kept at `path`, relative to the root, is put back.
    Restore {
        path: String,
        before: &'e Before,
        /// The folder that holds `replaced`, where that is not looked for at its path.
        held: Option<&'e Root>,
    },
    /// The file is removed.
    Remove,
}

/// Selects whether a kill or a power cut leaves nothing half done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Journalling {
    /// A journal says what is under way, and new files are on the disk before they count.
    On,
    /// Neither: the last resort of a run that takes its edits back on a disk that takes no more.
    Off,
}
