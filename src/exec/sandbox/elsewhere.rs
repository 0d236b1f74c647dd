//! Keys and credentials of others than the project, by the places where they commonly are.
//!
//! Reads directories only.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::secret::credentials::SECRET_PLACES;

/// Where everybody may make directories, as in `/tmp`, there are no projects beside one another.
const WRITABLE_BY_ALL: u32 = 0o002;

/// Files and directories with credentials, in the home directory, as far as they are there. Each costs a mount.
pub(super) fn credentials(home: &Path) -> Vec<PathBuf> {
    let all = SECRET_PLACES.split(' ').map(|name| home.join(name));
    all.filter(|path| path.exists()).collect()
}

/// The folders by the name of `keys` above the project and beside it, links resolved.
pub(super) fn other_projects(root: &Path, keys: &Path) -> Vec<PathBuf> {
    let Some((name, parent)) = keys.file_name().zip(root.parent()) else {
        return Vec::new();
    };
    let above = parent.ancestors().map(|ancestor| ancestor.join(name));
    let is_shared = parent
        .metadata()
        .is_ok_and(|found| found.mode() & WRITABLE_BY_ALL != 0);
    let listed = (!is_shared).then(|| fs::read_dir(parent));
    let siblings = listed.into_iter().flatten().flatten().flatten();
    let siblings = siblings
        .filter(|entry| !entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .filter(|path| path != root);
    above
        .chain(siblings.map(|sibling| sibling.join(name)))
        .filter(|path| path.symlink_metadata().is_ok_and(|found| found.is_dir()))
        // Nothing can be mounted over a link, which a build may have made there.
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| !path.starts_with(root))
        .collect()
}
