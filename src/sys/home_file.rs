//! The files that a user keeps in an agent's home: read with care, and written for nobody but their owner.
//!
//! Touches those files and the home. Guarantees that no error shows what a file holds.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize as _, Deserializer, Serialize};

use crate::sys::atomic_file;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::positions::{self, Misplaced, Positions};

/// The bits of a mode that let others in.
const OTHERS: u32 = 0o077;

/// A file of the user's cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum HomeFileProblem {
    /// It cannot be read.
    #[error("`{}` cannot be read: {source}", .path.display())]
    #[diagnostic(help("make `{}` {}", path.display(), if files::is_too_large(source) { "smaller, or remove it" } else { "a readable file" }))]
    Unreadable { path: PathBuf, source: io::Error },
    /// There is a mistake in it.
    #[error("`{}`, {mistake}", .path.display())]
    #[diagnostic(help("fix it there, or remove the file: {without}"))]
    Mistake {
        /// The file.
        path: PathBuf,
        /// Mistake and place.
        mistake: Misplaced,
        /// Effect of removing the file.
        without: &'static str,
    },
}

/// Parses the file's content; `None` where it is missing.
///
/// # Errors
/// When it cannot be read, or has a mistake; `without` is the effect of removing the file.
pub fn load<T>(
    path: &Path,
    without: &'static str,
    parse: impl FnOnce(&[u8]) -> Result<T, Misplaced>,
) -> Result<Option<T>, HomeFileProblem> {
    let parsed = read(path)?.as_deref().map(parse).transpose();
    parsed.map_err(|mistake| HomeFileProblem::Mistake {
        path: path.to_owned(),
        mistake,
        without,
    })
}

/// Parses a file that holds a JSON object; `None` where it is missing.
///
/// # Errors
/// Those of [`load`].
pub fn load_json<T: DeserializeOwned>(
    path: &Path,
    without: &'static str,
) -> Result<Option<T>, HomeFileProblem> {
    load(path, without, parse_json)
}

/// Parses the content of a file that holds a JSON object.
///
/// # Errors
/// The first mistake in it.
pub fn parse_json<T: DeserializeOwned>(content: &[u8]) -> Result<T, Misplaced> {
    let json = positions::text(content)?;
    Positions(json).object(json)
}

/// The file's content; `None` where it is missing.
///
/// # Errors
/// When it cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, HomeFileProblem> {
    let read = files::read(path, Links::Followed, MIB).if_there();
    read.map_err(|source| HomeFileProblem::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Makes the file with this content, and the home, and tells if it did: a file that is there by now stays.
///
/// # Errors
/// When it cannot be made.
pub fn create(path: &Path, content: &[u8]) -> Result<bool, PathError> {
    let make = || {
        atomic_file::private_directory(path.parent().unwrap_or(path))?;
        atomic_file::create_private(path, |file| file.write_all(content))
    };
    match make() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        made => made.map(|()| true).map_err(PathError::of("write", path)),
    }
}

/// Writes a file that nobody but its owner may read, into a home that nobody else may look into.
///
/// # Errors
/// When it cannot be written; what was there is then still there.
pub fn save(path: &Path, content: &[u8]) -> Result<(), PathError> {
    let write = || {
        let home = path.parent().unwrap_or(path);
        atomic_file::private_directory(home)?;
        // A home that is somebody else's stays as it is: the file itself is closed.
        let _ = close(home);
        atomic_file::replace_private(path, |file| file.write_all(content))
    };
    write().map_err(PathError::of("write", path))
}

/// Reads the version of a form, of which there is but one.
///
/// # Errors
/// When it is another.
pub fn first_version<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    match u64::deserialize(input)? {
        1 => Ok(1),
        _ => Err(D::Error::custom("`version` must be 1")),
    }
}

/// Writes a value as indented JSON, as [`save`] does.
///
/// # Errors
/// Those of [`save`].
pub fn save_json(path: &Path, value: &impl Serialize) -> Result<(), PathError> {
    // Nothing that is kept has keys which are no strings.
    let json = serde_json::to_string_pretty(value).unwrap_or_default();
    save(path, format!("{json}\n").as_bytes())
}

/// Takes the rights of others to a file or directory away, and says whether they had any.
///
/// # Errors
/// When it is not the user's.
pub fn close(path: &Path) -> io::Result<bool> {
    let mode = path.metadata()?.permissions().mode();
    let is_open = mode & OTHERS != 0;
    if is_open {
        fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))?;
    }
    Ok(is_open)
}
