//! Paths that git has and the work tree lacks: what a sparse checkout leaves out, and submodules.
//!
//! Reads git's index, when the first of them is asked for. A file written there would take the place of one that nobody
//! has seen, or would not be seen by git.

use std::cell::OnceCell;
use std::path::Path;

use super::Rule;
use crate::project::index;

/// The paths, read when first needed.
#[derive(Default)]
pub struct NotCheckedOut(OnceCell<Vec<(String, Rule)>>);

impl NotCheckedOut {
    /// Returns the rule against creating the file at `path` below `root`, if there is one. Without a readable index, there
    /// is none.
    pub fn rule(&self, root: &Path, path: &str) -> Option<Rule> {
        let known = self.0.get_or_init(|| {
            let paths = index::not_checked_out(root).unwrap_or_default();
            let rule = |is_submodule| match is_submodule {
                true => Rule::NestedRepo,
                false => Rule::NotCheckedOut,
            };
            paths
                .into_iter()
                .map(|(path, is)| (path, rule(is)))
                .collect()
        });
        let is_there = |known: &str| match path.strip_prefix(known) {
            Some(rest) => rest.is_empty() || known.ends_with('/') || rest.starts_with('/'),
            None => false,
        };
        let found = known.iter().find(|(known, _)| is_there(known))?;
        Some(found.1)
    }
}
