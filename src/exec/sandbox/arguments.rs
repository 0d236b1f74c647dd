//! Builds parts of bubblewrap's command line.
//!
//! Looks at which paths exist, but reads no contents.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::super::mounts::MountTable;
use super::targets::present;

pub(super) fn add(list: &mut Vec<OsString>, option: &str, values: &[impl AsRef<OsStr>]) {
    list.push(option.into());
    list.extend(values.iter().map(|value| value.as_ref().to_owned()));
}

/// Adds an option for a directory, if there is one, under every name it is mounted at.
pub(super) fn add_names(
    list: &mut Vec<OsString>,
    option: &str,
    mounts: &MountTable,
    directory: Option<&PathBuf>,
) {
    for name in directory.into_iter().flat_map(|path| mounts.names(path)) {
        add(list, option, &[name]);
    }
}

/// Makes these paths read-only, where they exist, under every name they are mounted at. Paths inside another of them
/// are covered by it.
pub(super) fn add_read_only(list: &mut Vec<OsString>, mounts: &MountTable, paths: &[PathBuf]) {
    let mut closed: Vec<PathBuf> = Vec::new();
    for path in present(paths).collect::<BTreeSet<_>>() {
        // The paths are sorted, so a directory precedes its contents.
        if !closed.iter().any(|outer| path.starts_with(outer)) {
            closed.push(path);
        }
    }
    for name in closed.iter().flat_map(|path| mounts.names(path)) {
        add(list, "--ro-bind", &[&name, &name]);
    }
}

/// Makes a path empty inside the sandbox; returns whether it is a directory there.
pub(super) fn add_empty(list: &mut Vec<OsString>, path: &Path) -> bool {
    let is_directory = path.is_dir() || !path.exists();
    if is_directory {
        add(list, "--tmpfs", &[path]);
    } else {
        add(list, "--ro-bind", &[Path::new("/dev/null"), path]);
    }
    is_directory
}
