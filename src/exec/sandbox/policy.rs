//! The sandbox policy: paths to hide and to protect. Plain data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::repositories::settings;

/// Names under which this program is installed.
const NAMES: [&str; 3] = ["code-commit", "dev", "dev-agent"];

/// The sandboxed project, and the paths to hide or protect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxPolicy {
    /// Project root.
    pub root: PathBuf,
    /// Key folder, which is empty inside the sandbox.
    pub keys: PathBuf,
    /// Key files, which may be links to other places.
    pub key_files: Vec<PathBuf>,
    /// Directory around the project, if any; inside the sandbox, it contains nothing but the project.
    pub campaign: Option<PathBuf>,
    /// git's folder, which may not exist.
    pub git: PathBuf,
    /// Other repositories in the project: each a `.git`, or the directory of a bare one.
    pub repositories: Vec<PathBuf>,
    /// Other directories and files that are empty inside, if they exist at the start.
    pub hidden: Vec<PathBuf>,
    /// User's home directory, if known; a strict sandbox hides the credentials in it.
    pub home: Option<PathBuf>,
    /// Possible sockets of user services, hidden inside the sandbox.
    pub services: Vec<PathBuf>,
    /// Exceptions to `services`: sockets, or directories of sockets, that stay reachable.
    pub allowed_sockets: Vec<PathBuf>,
    /// Read-only paths, where they exist, in addition to git's settings and hooks and this program.
    pub protected: Vec<PathBuf>,
    /// Paths that only this program writes to during the run; read-only inside.
    pub read_only: Vec<PathBuf>,
}

impl SandboxPolicy {
    /// Returns the paths from which git reads settings and programs, for all repositories.
    pub(super) fn settings(&self) -> Vec<PathBuf> {
        let repositories = std::iter::once(&self.git).chain(&self.repositories);
        let settings: BTreeSet<PathBuf> = repositories.flat_map(|git| settings(git)).collect();
        settings.into_iter().collect()
    }
}

/// Returns the paths at which users may start this program.
pub(super) fn own_files(program: &Path) -> Vec<PathBuf> {
    std::iter::once(program.to_path_buf())
        .chain(NAMES.map(|name| program.with_file_name(name)))
        .collect()
}
