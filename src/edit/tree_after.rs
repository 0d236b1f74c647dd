//! The directories that git would take for repositories after a reply. Reads the disk.

use std::collections::HashSet;
use std::path::Path;

use super::beneath::{ancestors, split};
use super::{EditKind, FileEdit, spelling};

/// The names that, next to `HEAD`, make git take a directory for a repository; folded because git may find them in any
/// case.
const REPOSITORY: [&str; 3] = ["objects", "refs", "commondir"];

/// The tree after a reply, as needed to detect repositories.
pub(super) struct TreeAfter<'e> {
    root: &'e Path,
    /// Directories, with the folded names in them that indicate a repository.
    made: HashSet<(&'e str, String)>,
    removed: HashSet<&'e str>,
}

impl<'e> TreeAfter<'e> {
    pub fn of(root: &'e Path, edits: &'e [FileEdit]) -> Self {
        let (removed, written): (Vec<_>, Vec<_>) =
            edits.iter().partition(|edit| edit.kind == EditKind::Remove);
        let folded = |path: &'e str| (split(path).0, spelling::fold(split(path).1));
        let made = written.iter().flat_map(|edit| {
            let path = edit.path.as_str();
            let head = Some(folded(path)).filter(|(_, name)| name == "head");
            let others = ancestors(path).chain([path]).map(folded);
            let is_other = |(_, name): &(_, String)| REPOSITORY.contains(&name.as_str());
            head.into_iter().chain(others.filter(is_other))
        });
        Self {
            root,
            made: made.collect(),
            removed: removed.iter().map(|edit| edit.path.as_str()).collect(),
        }
    }

    fn has(&self, directory: &'e str, name: &str) -> bool {
        let path = Path::new(directory).join(name);
        self.made.contains(&(directory, name.to_ascii_lowercase()))
            || self.root.join(&path).symlink_metadata().is_ok()
                && !path
                    .to_str()
                    .is_some_and(|path| self.removed.contains(path))
    }

    pub fn is_repository(&self, directory: &'e str) -> bool {
        self.has(directory, "HEAD") && REPOSITORY.iter().any(|name| self.has(directory, name))
    }
}
