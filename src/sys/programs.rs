//! Programs of the machine, found in the directories that `PATH` lists.
//!
//! Reads the directories; runs nothing.

use std::ffi::OsStr;
use std::path::Path;

use rustix::fs::{Access, access};

/// Finds the program with this name in `path`, a list of directories, skipping relative directories and programs in
/// `project`, whose links must be resolved.
pub(crate) fn program_outside(name: &str, path: &OsStr, project: &Path) -> Option<String> {
    let is_outside = |file: &Path| {
        let resolved = file.canonicalize();
        !file.starts_with(project) && resolved.is_ok_and(|file| !file.starts_with(project))
    };
    let found = std::env::split_paths(path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| is_executable(file) && is_outside(file));
    found.as_deref().and_then(Path::to_str).map(str::to_owned)
}

/// Returns whether this is a file that may be executed.
pub(crate) fn is_executable(program: &Path) -> bool {
    program.is_file() && access(program, Access::EXEC_OK).is_ok()
}
