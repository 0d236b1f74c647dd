//! The directories above protected paths: a command that renames one could put other files in its place, but
//! a mount point cannot be renamed. Resolves links, and reads nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::policy::SandboxPolicy;
use super::targets::resolved;

/// Directories to mount at their own paths, outermost first.
pub(super) struct Pins {
    /// Those in the project.
    within: BTreeSet<PathBuf>,
    /// Those in the user's home, outside the project.
    outside: BTreeSet<PathBuf>,
}

impl Pins {
    /// Returns the directories above these paths, whose links must be resolved.
    pub fn above(policy: &SandboxPolicy, paths: impl Iterator<Item = PathBuf>) -> Self {
        let home = policy.home.as_deref().map(resolved);
        let is_below = |path: &Path, top: &Path| path != top && path.starts_with(top);
        let (mut within, mut outside) = (BTreeSet::new(), BTreeSet::new());
        for path in paths {
            for directory in path.ancestors().skip(1) {
                if is_below(directory, &policy.root) {
                    within.insert(directory.to_path_buf());
                } else if home.as_ref().is_some_and(|home| is_below(directory, home)) {
                    outside.insert(directory.to_path_buf());
                }
            }
        }
        Self { within, outside }
    }

    /// Adds those outside the project.
    pub fn add_outside(&self, option: &str, list: &mut Arguments) {
        for directory in &self.outside {
            add(option, list, directory, directory);
        }
    }

    /// Adds those in the project, whose files are in `source`; git's own folder is always at its place.
    pub fn add_within(
        &self,
        option: &str,
        list: &mut Arguments,
        policy: &SandboxPolicy,
        source: &Path,
    ) {
        for directory in &self.within {
            let inner = directory.strip_prefix(&policy.root);
            match inner {
                Ok(inner) if !directory.starts_with(&policy.git) => {
                    add(option, list, &source.join(inner), directory);
                }
                _ => add(option, list, directory, directory),
            }
        }
    }
}

/// Mounts `source` at the directory's path, and the directory at its other names.
fn add(option: &str, list: &mut Arguments, source: &Path, directory: &Path) {
    list.add(option, &[source, directory]);
    for name in list.mounts.names(directory).into_iter().skip(1) {
        list.add(option, &[&name, &name]);
    }
}
