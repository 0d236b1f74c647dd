//! The files that are compared, before and after, and how large they may be. Plain data.

/// The size beyond which a file is not compared.
pub const MAX_BYTES: usize = 16 << 20;

/// The mode that a new file is assumed to have: the one that almost every umask produces.
pub const NEW_MODE: u32 = 0o644;

/// The number of lines beyond which a file is not compared.
pub const MAX_LINES: usize = 1 << 20;

/// The number of lines, between the first and the last that differ, beyond which on both sides all of
/// them count as replaced: a search among them takes a second at worst.
pub(super) const MAX_SEARCHED: usize = 200_000;

/// One file, before and after. It was created where `before` is missing, deleted where `after` is;
/// where both are, there is nothing to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the project's root, with slashes.
    pub path: String,
    /// The state before.
    pub before: Option<FileState>,
    /// The state after.
    pub after: Option<FileState>,
}

/// A file's bytes and mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// All of its bytes.
    pub content: Vec<u8>,
    /// The permission bits, of which git keeps one: whether the owner may execute the file.
    pub mode: u32,
}

impl FileState {
    /// An empty file.
    pub fn empty(mode: u32) -> Self {
        Self {
            content: Vec::new(),
            mode,
        }
    }

    /// The mode as git writes it.
    pub(super) fn git_mode(&self) -> &'static str {
        if self.mode & 0o100 == 0 {
            "100644"
        } else {
            "100755"
        }
    }
}

impl FileChange {
    /// Returns the change of a file in its bytes alone: its mode is that of a new file, and stays.
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

    /// The bytes that it had; none where it was not there.
    pub(crate) fn before(&self) -> &[u8] {
        content(self.before.as_ref())
    }

    /// The bytes that it has now; none where it is not there.
    pub(crate) fn after(&self) -> &[u8] {
        content(self.after.as_ref())
    }

    /// The modes as git writes them, of a side that is there.
    pub(super) fn modes(&self) -> [Option<&'static str>; 2] {
        [&self.before, &self.after].map(|state| state.as_ref().map(FileState::git_mode))
    }

    /// Returns whether git has anything to show: an empty file that is created or deleted counts.
    pub(super) fn is_shown(&self) -> bool {
        let [before, after] = self.modes();
        before != after || self.before() != self.after()
    }
}

/// A file that is not there has no bytes.
fn content(state: Option<&FileState>) -> &[u8] {
    state.map_or(&[], |state| &state.content)
}

/// Returns the changes that git shows, in git's order: by the paths' bytes.
pub(crate) fn in_order(changes: &[FileChange]) -> Vec<&FileChange> {
    let mut shown: Vec<&FileChange> = changes.iter().filter(|change| change.is_shown()).collect();
    shown.sort_by(|one, other| one.path.cmp(&other.path));
    shown
}
