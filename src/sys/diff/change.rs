//! The files to compare, before and after, and their size limits. Plain data.

use rustix::fs::RawMode;

/// Maximum size of a compared file in bytes.
pub const MAX_BYTES: usize = 16 << 20;

/// Assumed mode of a new file: the one that results from almost every umask.
pub const NEW_MODE: RawMode = 0o644;

/// Number of lines at which a file is too large to be compared.
pub const MAX_LINES: usize = 1 << 20;

/// Maximum number of lines to search between the first and the last difference. If both sides exceed it, all of these
/// lines count as replaced. A search within the limit takes at most about a second.
pub(super) const MAX_SEARCHED: usize = 200_000;

/// One file, before and after. Without `before`, it was created; without `after`, it was deleted;
/// without both, there is nothing to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path relative to the project's root, with slashes.
    pub path: String,
    /// State before the change.
    pub before: Option<FileState>,
    /// State after the change.
    pub after: Option<FileState>,
}

/// A file's bytes and mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// Content of the file.
    pub content: Vec<u8>,
    /// Permission bits. git records only one of them: whether the owner may execute the file.
    pub mode: RawMode,
}

impl FileState {
    /// Creates the state of an empty file.
    pub fn empty(mode: RawMode) -> Self {
        Self {
            content: Vec::new(),
            mode,
        }
    }
}

impl FileChange {
    /// Creates a change of content only, between files with the mode of a new file.
    pub fn of(path: String, before: Option<Vec<u8>>, after: Option<Vec<u8>>) -> Self {
        let state = |content| FileState {
            content,
            mode: NEW_MODE,
        };
        Self {
            path,
            before: before.map(state),
            after: after.map(state),
        }
    }

    /// Returns the content before the change; empty if the file did not exist.
    pub(crate) fn before(&self) -> &[u8] {
        content(self.before.as_ref())
    }

    /// Returns the content after the change; empty if the file no longer exists.
    pub(crate) fn after(&self) -> &[u8] {
        content(self.after.as_ref())
    }

    /// Returns the modes before and after as git writes them; `None` for a missing file.
    pub(super) fn modes(&self) -> [Option<&'static str>; 2] {
        [&self.before, &self.after].map(|state| match state.as_ref()?.mode & 0o100 {
            0 => Some("100644"),
            _ => Some("100755"),
        })
    }

    /// Returns whether git shows the change. The creation or deletion of an empty file counts.
    pub(super) fn is_shown(&self) -> bool {
        let [before, after] = self.modes();
        before != after || self.before() != self.after()
    }
}

/// Returns the content of a state; empty if the file does not exist.
fn content(state: Option<&FileState>) -> &[u8] {
    state.map_or(&[], |state| &state.content)
}

/// Returns the changes that git shows, sorted by the bytes of their paths as in git.
pub(crate) fn in_order(changes: &[FileChange]) -> Vec<&FileChange> {
    let mut shown: Vec<&FileChange> = changes.iter().filter(|change| change.is_shown()).collect();
    shown.sort_by(|one, other| one.path.cmp(&other.path));
    shown
}
