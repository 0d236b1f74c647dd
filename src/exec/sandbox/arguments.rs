//! Words of bubblewrap's command line.
//!
//! Looks at what is there, and reads no content.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::mounts::MountTable;
use super::targets::present;

pub(super) fn add(list: &mut Vec<OsString>, option: &str, values: &[impl AsRef<OsStr>]) {
    list.push(option.into());
    list.extend(values.iter().map(|value| value.as_ref().to_owned()));
}

/// Lets nothing inside write to these, as far as they are there, by whatever name. What lies in one of them is closed
/// with it.
pub(super) fn add_read_only(list: &mut Vec<OsString>, mounts: &MountTable, paths: &[PathBuf]) {
    let mut closed: Vec<PathBuf> = Vec::new();
    for path in present(paths).collect::<BTreeSet<_>>() {
        // Whatever contains it comes before it.
        if !closed.iter().any(|outer| path.starts_with(outer)) {
            closed.push(path);
        }
    }
    for name in closed.iter().flat_map(|path| mounts.names(path)) {
        add(list, "--ro-bind", &[&name, &name]);
    }
}

/// Has what is at a path empty; whether that is a directory then.
pub(super) fn add_empty(list: &mut Vec<OsString>, path: &Path) -> bool {
    let is_directory = path.is_dir() || !path.exists();
    if is_directory {
        add(list, "--tmpfs", &[path]);
    } else {
        add(list, "--ro-bind", &[Path::new("/dev/null"), path]);
    }
    is_directory
}
