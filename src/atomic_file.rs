//! Writes a file of the program's own in one step.
//!
//! Touches the file and its directory. Guarantees that a reader sees the old content or the new one
//! whole, and that a link in the file's place is replaced rather than followed.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Replaces `path`, or makes it, with what `write` writes.
///
/// # Errors
/// When the file cannot be written; what was there is then still there.
pub fn replace(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    // The mode that a file commonly gets; the user's umask takes from it.
    let mode = Permissions::from_mode(0o666);
    let mut staged = tempfile::Builder::new()
        .prefix(".staged-")
        .permissions(mode)
        .tempfile_in(directory)?;
    write(staged.as_file_mut())?;
    staged.persist(path)?;
    Ok(())
}
