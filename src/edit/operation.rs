//! What is to be done to the tree, file by file. Plain data.

use super::beneath::Root;
use super::changes::Before;
use super::digest::Present;

/// Steps that are done all at once, or not at all.
pub struct ChangeSet<'w, 's> {
    /// File by file, sorted by path.
    pub steps: &'w [FileOperation<'s>],
    /// Directories to remove in the end, inner ones first, as far as they are empty.
    pub directories: Vec<String>,
    /// When new files are on the disk for good.
    pub durability: Durability,
}

/// What is to be done to one file.
pub struct FileOperation<'e> {
    /// The path, relative to the root.
    pub path: &'e str,
    /// What is to be done there.
    pub action: Operation<'e>,
    /// What is there now.
    pub present: Option<Present>,
}

/// What is to be done at a path.
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
    /// What is there is removed.
    Remove,
}

/// When new files are on the disk for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before they count.
    AtOnce,
    /// When somebody has called [`Applied::flush`](super::apply::Applied::flush); until then they count
    /// only as far as they are whole.
    Later,
}
