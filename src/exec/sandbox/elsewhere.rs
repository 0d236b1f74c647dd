//! Finds keys and credentials outside the project, in their usual places.
//!
//! Reads directories only.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::secret::credentials::SECRET_PLACES;
use crate::sys::files;

/// Mode bit of directories where everyone may create files, such as `/tmp`. Their entries are not sibling projects.
const WRITABLE_BY_ALL: u32 = 0o002;

/// Returns the existing files and directories with credentials in the home directory. Each costs a mount.
pub(super) fn credentials(home: &Path) -> Vec<PathBuf> {
    let all = SECRET_PLACES.split(' ').map(|name| home.join(name));
    all.filter(|path| path.exists()).collect()
}

/// Returns the folders named like `keys` above the project and in its siblings, with links resolved.
pub(super) fn other_projects(root: &Path, keys: &Path) -> Vec<PathBuf> {
    let Some((name, parent)) = keys.file_name().zip(root.parent()) else {
        return Vec::new();
    };
    let above = parent.ancestors().map(|ancestor| ancestor.join(name));
    let is_shared = parent
        .metadata()
        .is_ok_and(|found| found.mode() & WRITABLE_BY_ALL != 0);
    let listed = (!is_shared).then(|| fs::read_dir(parent));
    let entries = listed.into_iter().flatten().flatten().flatten();
    let siblings = entries
        .filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .filter(|path| path != root);
    above
        .chain(siblings.map(|sibling| sibling.join(name)))
        .filter(|path| files::is_directory(path))
        // A build may have created a link there, and a mount cannot cover a link.
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| !path.starts_with(root))
        .collect()
}
