//! Paths that git has and the work tree lacks: what a sparse checkout leaves out, and submodules.
//!
//! Reads git's index, when the first of them is asked for. A file written there would take the place of one that nobody
//! has seen, or would not be seen by git.

use std::cell::OnceCell;
use std::path::Path;

use super::Rule;
use crate::project::index;

/// The paths, and whether each is a submodule; read when first needed.
#[derive(Default)]
pub struct NotCheckedOut(OnceCell<Vec<(String, bool)>>);

impl NotCheckedOut {
    /// Returns the rule against creating the file at `path` below `root`, if there is one. Without a readable index, there
    /// is none.
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
