//! Which files of a project were changed. Plain data.

use serde::{Deserialize, Serialize};

/// Which files a reply changed; paths relative to the project's root, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditsRecord {
    /// Files that have a new content, or are new.
    pub written: Vec<String>,
    /// Files that are gone now.
    pub removed: Vec<String>,
}

impl EditsRecord {
    /// The same with what was done after it.
    pub fn then(mut self, later: &Self) -> Self {
        let is_later = |path: &String| later.written.contains(path) || later.removed.contains(path);
        for (paths, more) in [
            (&mut self.written, &later.written),
            (&mut self.removed, &later.removed),
        ] {
            paths.retain(|path| !is_later(path));
            paths.extend_from_slice(more);
            paths.sort_unstable();
        }
        self
    }
}
