//! The policy of a sandbox: paths to hide and to protect. Plain data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::repositories::settings;

/// Names of this program.
const NAMES: [&str; 3] = ["code-commit", "dev", "dev-agent"];

/// The project that is sandboxed, and the paths to hide from it or protect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// The project's root.
    pub root: PathBuf,
    /// The folder with the keys, which is empty inside.
    pub keys: PathBuf,
    /// Key files, which may be links to somewhere else.
    pub key_files: Vec<PathBuf>,
    /// git's folder, which may be missing.
    pub git: PathBuf,
    /// Other repositories in the project: each a `.git`, or the directory of a bare one.
    pub repositories: Vec<PathBuf>,
    /// Other directories and files that are empty inside, as far as they are there in the beginning.
    pub hidden: Vec<PathBuf>,
    /// The user's home directory, where there is one; a strict sandbox hides credentials in there.
    pub home: Option<PathBuf>,
    /// Possible sockets of the user's services, which nothing inside reaches;
    pub services: Vec<PathBuf>,
    /// except these, or those in these directories.
    pub allowed_sockets: Vec<PathBuf>,
    /// Read-only paths, as far as they exist, besides git's settings and hooks and this program.
    pub protected: Vec<PathBuf>,
    /// Paths that the program itself writes to while the run goes on, and nothing inside may.
    pub read_only: Vec<PathBuf>,
}

impl SandboxPolicy {
    /// Of the repositories, what git takes settings and programs from.
    pub(super) fn settings(&self) -> Vec<PathBuf> {
        let repositories = std::iter::once(&self.git).chain(&self.repositories);
        let settings: BTreeSet<PathBuf> = repositories.flat_map(|git| settings(git)).collect();
        settings.into_iter().collect()
    }
}

/// The files that users start this program by.
pub(super) fn own_files(program: &Path) -> Vec<PathBuf> {
    let others = NAMES.map(|name| program.with_file_name(name));
    std::iter::once(program.to_path_buf())
        .chain(others)
        .collect()
}
