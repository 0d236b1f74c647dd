//! Builds parts of bubblewrap's command line.
//!
//! Looks at which paths exist, but reads no contents.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::super::mounts::MountTable;
use super::targets::present;

/// Bubblewrap's arguments so far, and the mounts that they are made for.
pub(super) struct Arguments {
    pub list: Vec<OsString>,
    pub mounts: MountTable,
}

impl Arguments {
    /// Creates an empty list for the current mounts.
    pub fn new() -> Self {
        Self {
            list: Vec::new(),
            mounts: MountTable::read(),
        }
    }

    pub fn add(&mut self, option: &str, values: &[impl AsRef<OsStr>]) {
        self.list.push(option.into());
        let values = values.iter().map(|value| value.as_ref().to_owned());
        self.list.extend(values);
    }

    /// Adds an option for a directory, if there is one, under every name it is mounted at.
    pub fn add_names(&mut self, option: &str, directory: Option<&PathBuf>) {
        let names = directory.map(|path| self.mounts.names(path));
        for name in names.into_iter().flatten() {
            self.add(option, &[name]);
        }
    }

    /// Makes these paths read-only, where they exist, under every name they are mounted at. Paths inside another of
    /// them are covered by it.
    pub fn add_read_only(&mut self, paths: &[PathBuf]) {
        let mut closed: Vec<PathBuf> = Vec::new();
        for path in present(paths).collect::<BTreeSet<_>>() {
            // The paths are sorted, so a directory precedes its contents.
            if !closed.iter().any(|outer| path.starts_with(outer)) {
                for name in self.mounts.names(&path) {
                    self.add("--ro-bind", &[&name, &name]);
                }
                closed.push(path);
            }
        }
    }

    /// Makes a path empty inside the sandbox; returns whether it is a directory there.
    pub fn add_empty(&mut self, path: &Path) -> bool {
        let is_directory = path.is_dir() || !path.exists();
        if is_directory {
            self.add("--tmpfs", &[path]);
        } else {
            self.add("--ro-bind", &[Path::new("/dev/null"), path]);
        }
        is_directory
    }
}
