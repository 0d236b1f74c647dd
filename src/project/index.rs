//! Reads which paths git tracks from its index.
//!
//! Reads the index and, if it is split, the shared index, without starting git. Guarantees that memory use is
//! limited, whatever the index contains, and that unreadable data causes an error, never an incomplete list.

mod essential;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use gix_index::decode::Options;
use gix_index::entry::{Flags, Mode};
use gix_index::hash::{Kind, ObjectId, hasher};
use gix_index::{Entry, State};

use super::problem::ProjectProblem;
use super::repository::{self, Repository};
use crate::sys::files::PathError;

/// Maximum size of an index in bytes. The index of half a million files is half this size.
const LARGEST: u64 = 128 << 20;

/// The paths that git tracks in and below a directory, sorted and without duplicates.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TrackedPaths(Vec<String>);

impl TrackedPaths {
    /// Reads the paths that git tracks below `root`, an absolute directory. Without an index, git tracks nothing.
    ///
    /// # Errors
    /// Fails if there is no repository or its index cannot be read.
    pub fn below(root: &Path) -> Result<Self, ProjectProblem> {
        let mut paths = Vec::new();
        for_each_below(root, |path, _, _| paths.push(path))?;
        paths.sort();
        paths.dedup();
        Ok(Self(paths))
    }

    /// Returns the files, sorted by bytes and without duplicates, even for conflicts. Directories that a sparse
    /// checkout leaves out are not listed, since their files are not on disk.
    pub fn files(self) -> impl Iterator<Item = String> {
        self.0.into_iter().filter(|path| !path.ends_with('/'))
    }

    /// Returns the tracked path that equals `path` or one of its parents, ignoring ASCII case.
    pub fn find(&self, path: &str) -> Option<&str> {
        let mut tracked = self.0.iter().map(|tracked| tracked.trim_end_matches('/'));
        tracked.find(|tracked| {
            let start = path.get(..tracked.len());
            let same = start.is_some_and(|start| start.eq_ignore_ascii_case(tracked));
            same && matches!(path.as_bytes().get(tracked.len()), None | Some(b'/'))
        })
    }
}

/// Returns the paths below the absolute directory `root` that git tracks and that are not checked out, and whether each is
/// a submodule: those that a sparse checkout leaves out, directories with a slash at their end, and all submodules.
///
/// # Errors
/// Fails if there is no repository or its index cannot be read.
pub fn not_checked_out(root: &Path) -> Result<Vec<(String, bool)>, ProjectProblem> {
    let mut paths = Vec::new();
    for_each_below(root, |path, entry, _| {
        let is_submodule = entry.mode == Mode::COMMIT;
        if is_submodule || entry.mode.is_sparse() || entry.flags.contains(Flags::SKIP_WORKTREE) {
            paths.push((path, is_submodule));
        }
    })?;
    Ok(paths)
}

/// Passes each index entry below the absolute directory `root` to `see`, with its path from there and the hash kind.
///
/// # Errors
/// Fails if there is no repository or its index cannot be read.
pub(super) fn for_each_below(
    root: &Path,
    mut see: impl FnMut(String, &Entry, Kind),
) -> Result<(), ProjectProblem> {
    let repository = Repository::of(root)?.ok_or(ProjectProblem::NoRepository)?;
    let kind = object_format(&repository).map_err(PathError::of("read", root.join(".git")))?;
    let prefix = Repository::prefix(&repository.top, root);
    for_each_entry(&repository.own, kind, |path, entry| {
        if let Some(path) = below(&prefix, path) {
            see(path, entry, kind);
        }
    })
}

/// Strips the prefix from a path of the index; `None` if the path is not below it.
fn below(prefix: &[u8], path: &[u8]) -> Option<String> {
    let inside = path.strip_prefix(prefix)?;
    (!inside.is_empty()).then(|| String::from_utf8_lossy(inside).into_owned())
}

/// Returns the hash function for the repository's object names.
fn object_format(repository: &Repository) -> io::Result<Kind> {
    let format = repository.config()?.string("extensions.objectFormat");
    let is_sha256 = format.is_some_and(|format| format.eq_ignore_ascii_case(b"sha256"));
    Ok(if is_sha256 { Kind::Sha256 } else { Kind::Sha1 })
}

/// Passes each path of the index in `directory`, with its entry, to `add`. If the index is split, the entry may be
/// outdated.
fn for_each_entry(
    directory: &Path,
    kind: Kind,
    mut add: impl FnMut(&[u8], &Entry),
) -> Result<(), ProjectProblem> {
    let path = directory.join("index");
    let Some(index) = decode(&path, kind, None)? else {
        return Ok(());
    };
    if let Some(link) = index.link() {
        let checksum = link.shared_index_checksum;
        let path = directory.join(format!("sharedindex.{checksum}"));
        let damaged = |cause: &str| ProjectProblem::DamagedIndex {
            path: path.clone(),
            cause: cause.to_owned(),
        };
        let shared =
            decode(&path, kind, Some(checksum))?.ok_or_else(|| damaged("it is missing"))?;
        let mut removed = vec![false; shared.entries().len()];
        let bitmaps = link.bitmaps.as_ref();
        let marked = bitmaps.is_none_or(|bitmaps| {
            let mut mark = |at| removed.get_mut(at).map(|it: &mut bool| *it = true);
            bitmaps.delete.for_each_set_bit(&mut mark).is_some()
        });
        if !marked || shared.link().is_some() {
            return Err(damaged("it does not fit the index that refers to it"));
        }
        let entries = shared.entries().iter().zip(removed);
        let kept = entries.filter(|(_, removed)| !removed);
        kept.for_each(|(entry, _)| add(entry.path(&shared), entry));
    }
    // Entries that replace one in the shared index have no path.
    let has_path = |entry: &&Entry| !entry.path(&index).is_empty();
    let own = index.entries().iter().filter(has_path);
    own.for_each(|entry| add(entry.path(&index), entry));
    Ok(())
}

/// Reads an index if it exists. Unless its checksum is zero, it must match the content and `expected`, if given.
fn decode(
    path: &Path,
    kind: Kind,
    expected: Option<ObjectId>,
) -> Result<Option<State>, ProjectProblem> {
    let read = repository::read(path, LARGEST);
    let Some(content) = read.map_err(PathError::of("read", path))? else {
        return Ok(None);
    };
    let damaged = |cause: String| ProjectProblem::DamagedIndex {
        path: path.to_path_buf(),
        cause,
    };
    check(&content, kind, expected).map_err(damaged)?;
    let essential = essential::part(&content, kind.len_in_bytes())
        .ok_or_else(|| damaged("its entries do not fit".to_owned()))?;
    let options = Options {
        thread_limit: Some(1),
        ..Options::default()
    };
    // The time of writing is not used.
    let time = State::new(kind).timestamp();
    let (state, _) = State::from_bytes(&essential, time, kind, options)
        .map_err(|error| damaged(error.to_string()))?;
    Ok(Some(state))
}

/// Verifies the content against the checksum at its end, unless that is zero.
fn check(content: &[u8], kind: Kind, expected: Option<ObjectId>) -> Result<(), String> {
    let at = content.len().checked_sub(kind.len_in_bytes());
    let (rest, end) = content.split_at(at.ok_or("it is too short")?);
    let noted = ObjectId::from_bytes_or_panic(end);
    if noted.is_null() {
        return Ok(());
    }
    let mut hasher = hasher(kind);
    hasher.update(rest);
    let sum = hasher.try_finalize().map_err(|error| error.to_string())?;
    if sum != noted || expected.is_some_and(|expected| expected != sum) {
        return Err("its checksum is wrong".to_owned());
    }
    Ok(())
}
