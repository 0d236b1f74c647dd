//! Records which files of a project were changed. Plain data.

use serde::{Deserialize, Serialize};

/// Files that a reply changed, as sorted paths relative to the project's root.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditsRecord {
    /// Files that were created or changed.
    pub written: Vec<String>,
    /// Files that were removed.
    pub removed: Vec<String>,
    /// Files whose content stayed the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unchanged: Vec<String>,
}

impl EditsRecord {
    /// Adds later changes to this record.
    pub fn then(mut self, later: &Self) -> Self {
        let is_later = |path: &String| later.written.contains(path) || later.removed.contains(path);
        for (paths, more) in [
            (&mut self.written, &later.written),
            (&mut self.removed, &later.removed),
            (&mut self.unchanged, &later.unchanged),
        ] {
            paths.retain(|path| !is_later(path));
            paths.extend_from_slice(more);
            paths.sort_unstable();
            paths.dedup();
        }
        self
    }
}
