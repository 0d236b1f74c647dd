//! The user's files in an agent's home directory: read with care, and written so that only their owner can read them.
//!
//! Touches those files and the home directory. Guarantees that no error reveals a file's content.

use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};

use crate::sys::atomic_file;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError};
use crate::sys::positions::{self, Misplaced, Positions};

/// Mode bits that give other users access.
const OTHERS: u32 = 0o077;

/// Errors from finding the home directory, and from reading and writing its files. `own` names the variable that sets the home
/// directory itself.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum HomeFileProblem {
    /// A required variable is not set.
    #[error("there is no place for settings and sessions: `{variable}` is not set")]
    #[diagnostic(code("/settings"), help("{}", to_place(own)))]
    NoPlace {
        variable: &'static str,
        own: &'static str,
    },
    /// A variable does not contain an absolute path.
    #[error("`{variable}` is `{}`, which is not an absolute path", .value.escape_debug())]
    #[diagnostic(code("/settings"), help("{}", to_place(own)))]
    NotAbsolute {
        variable: &'static str,
        value: String,
        own: &'static str,
    },
    /// The file does not exist and cannot be created.
    #[error("`{}` cannot be made: {}", .problem.path.display(), .problem.source)]
    #[diagnostic(
        code("/settings"),
        help("make its directory writable, or set `{own}` to one that is")
    )]
    NotMade {
        own: &'static str,
        problem: PathError,
    },
    /// The file cannot be written.
    #[error(transparent)]
    #[diagnostic(help("make `{}` writable", .0.path.parent().unwrap_or(&.0.path).display()))]
    Unwritable(#[from] PathError),
    /// The file cannot be read.
    #[error("`{}` cannot be read: {source}", .path.display())]
    #[diagnostic(code("/settings"), help("make `{}` {}", path.display(), if files::is_too_large(source) { "smaller, or remove it" } else { "a readable file" }))]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file contains a mistake.
    #[error("`{}`, {mistake}", .path.display())]
    #[diagnostic(code("/settings"), help("fix it there, or remove the file: {without}"))]
    Mistake {
        /// Path of the file.
        path: PathBuf,
        /// The mistake and its position.
        mistake: Misplaced,
        /// Effect of removing the file.
        without: &'static str,
    },
}

/// Returns the hint on how to give an agent a home.
fn to_place(own: &str) -> String {
    format!("set `{own}` to the absolute path of a directory for settings and sessions")
}

/// Reads and parses a file; `None` if it does not exist.
///
/// # Errors
/// Fails if the file cannot be read or contains a mistake; `without` describes the effect of removing the file.
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

/// Parses the content of a file, named `path` in errors, as a JSON object; the default if there is no content.
///
/// # Errors
/// Fails if it contains a mistake; `without` describes the effect of removing the file.
pub fn parse_file<T: DeserializeOwned + Default>(
    content: Option<&[u8]>,
    path: impl Into<PathBuf>,
    without: &'static str,
) -> Result<T, HomeFileProblem> {
    let parsed = content.map(parse_json).transpose();
    let found = parsed.map_err(|mistake| HomeFileProblem::Mistake {
        path: path.into(),
        mistake,
        without,
    })?;
    Ok(found.unwrap_or_default())
}

/// Reads and parses a file that contains a JSON object; the default if it does not exist.
///
/// # Errors
/// Same as [`load`].
pub fn load_json<T: DeserializeOwned + Default>(
    path: &Path,
    without: &'static str,
) -> Result<T, HomeFileProblem> {
    parse_file(read(path)?.as_deref(), path, without)
}

/// Parses the content of a file as a JSON object.
///
/// # Errors
/// Returns the first mistake.
pub fn parse_json<'t, T: Deserialize<'t>>(content: &'t [u8]) -> Result<T, Misplaced> {
    let json = positions::text(content)?;
    Positions(json).object(json)
}

/// Reads a file; `None` if it does not exist.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn read(path: &Path) -> Result<Option<Vec<u8>>, HomeFileProblem> {
    let read = files::read(path, Links::Followed, MIB).if_there();
    read.map_err(|source| HomeFileProblem::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Creates a file with this content, and its directory. Returns `false` if the file already exists, which then stays.
///
/// # Errors
/// Fails if the file cannot be created.
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

/// Writes a file that only its owner may read, in a home directory that only its owner may enter.
///
/// # Errors
/// Fails if the file cannot be written; the old content then remains.
pub fn save(path: &Path, content: &[u8]) -> Result<(), PathError> {
    let write = || {
        let home = path.parent().unwrap_or(path);
        atomic_file::private_directory(home)?;
        // Fails if the directory belongs to another user, which is acceptable: the file itself is protected.
        let _ = close(home);
        atomic_file::replace_private(path, |file| file.write_all(content))
    };
    write().map_err(PathError::of("write", path))
}

/// Deserializes the version of a file format that has only one version.
///
/// # Errors
/// Fails if the version is not 1.
pub fn first_version<'de, D: Deserializer<'de>>(input: D) -> Result<u64, D::Error> {
    match u64::deserialize(input)? {
        1 => Ok(1),
        _ => Err(D::Error::custom("`version` must be 1")),
    }
}

/// Writes a value as indented JSON with [`save`].
///
/// # Errors
/// Same as [`save`].
pub fn save_json(path: &Path, value: &impl Serialize) -> Result<(), PathError> {
    // Fails only for maps whose keys are not strings, which no saved value has.
    let json = serde_json::to_string_pretty(value).unwrap_or_default();
    save(path, format!("{json}\n").as_bytes())
}

/// Removes other users' access to a file or directory, and returns whether they had any.
///
/// # Errors
/// Fails if the file belongs to another user.
pub fn close(path: &Path) -> io::Result<bool> {
    let mode = path.metadata()?.permissions().mode();
    let is_open = mode & OTHERS != 0;
    if is_open {
        fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))?;
    }
    Ok(is_open)
}
