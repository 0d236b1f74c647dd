//! Paths that git tracks and the work tree lacks: those left out by a sparse checkout, and submodules.
//!
//! Reads git's index on first use. A file written at such a path would replace one that nobody has seen, or would be
//! invisible to git.

use std::cell::OnceCell;
use std::path::Path;

use super::Rule;
use crate::project::index;

/// The paths, and whether each is a submodule; read when first needed.
#[derive(Default)]
pub struct NotCheckedOut(OnceCell<Vec<(String, bool)>>);

impl NotCheckedOut {
    /// Returns the rule against creating the file at `path` below `root`; `None` if no rule forbids it, or the index
    /// cannot be read.
    pub fn rule(&self, root: &Path, path: &str) -> Option<Rule> {
        let read = || index::not_checked_out(root).unwrap_or_default();
        let mut known = self.0.get_or_init(read).iter();
        let is_below =
            |path: &str, above: &str| match path.strip_prefix(above.trim_end_matches('/')) {
                Some(rest) => rest.is_empty() || rest.starts_with('/'),
                None => false,
            };
        let is_hit = |known: &str| is_below(path, known) || is_below(known, path);
        let (_, is_submodule) = known.find(|(known, _)| is_hit(known))?;
        Some(match is_submodule {
            true => Rule::NestedRepo,
            false => Rule::NotCheckedOut,
        })
    }
}
