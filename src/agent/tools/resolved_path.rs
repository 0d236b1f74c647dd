//! Paths given by a model: resolution, and access to the files they refer to.
//!
//! Reads from the disk and changes nothing. Guarantees that a place reported as inside the project is accessed through
//! handles that cannot leave it, even while the tree is being changed.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::agent::tool::CallFailure;
use crate::edit::beneath::{Beneath, Root};
use crate::project::CONFIG;
use crate::secret::credentials::is_secret_file;
use crate::sys::files::{self, IfThere as _, Links};
use crate::sys::numbers::counted;
use crate::sys::text::escaped;

/// Maximum length of a path in bytes: the system's limit less the root's own part.
const LONGEST: usize = 4000;
/// Maximum number of names suggested when a path is missing.
const NAMED: usize = 20;
/// Files in an `agent-config` that contain no key.
const WITHOUT_KEYS: [&str; 6] = [
    ".gitignore",
    "codeOutline.txt",
    "codeRollup.txt",
    "consistency-report.txt",
    "models.json",
    "query.txt",
];

/// Permission for paths that lead out of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// Such paths are refused.
    Refused,
    /// The user allows such paths: `--allow-outside`.
    Allowed,
}

/// The place that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedPath {
    /// A path inside the project: plain names joined by `/`, relative to the root, which is "" itself. Links are not
    /// resolved.
    Inside(String),
    /// A path outside: absolute, with links resolved as far as the path exists.
    Outside(PathBuf),
}

/// The kind of object found at a place.
#[derive(Debug)]
pub enum Found {
    /// A file, opened for reading.
    File(File),
    /// A directory.
    Directory,
    /// A pipe, a device or other special file.
    Special,
}

impl ResolvedPath {
    /// Resolves the untrusted `path` relative to `root`, the project's root with links resolved. `.` and `..` are
    /// resolved lexically; `~` is an ordinary name.
    ///
    /// # Errors
    /// Fails if the path is invalid, or it leads out of the project and that is refused.
    pub fn of(root: &Path, path: &str, outside: Outside) -> Result<Self, CallFailure> {
        check_form(path)?;
        let clean = path_clean::clean(root.join(path));
        // Both the resolved path and the lexical one are checked, in case the root was named through a link.
        let resolved = resolved(&clean);
        let place = match (resolved.strip_prefix(root), clean.strip_prefix(root)) {
            (Ok(_), Ok(named)) | (Ok(named), Err(_)) => Self::Inside(plain(named, path)?),
            (Err(_), _) => Self::Outside(resolved),
        };
        match (&place, outside) {
            (Self::Outside(_), Outside::Refused) => Err(CallFailure::new(
                CallFailure::TOOL_FAILED,
                format!(
                    "{} leads out of the project, to {}, which needs `--allow-outside`",
                    quoted(path),
                    place.shown()
                ),
                "stay inside it, or let the user start the program with that flag",
            )),
            _ => Ok(place),
        }
    }

    /// Returns the place in the form shown to the model.
    pub fn shown(&self) -> String {
        match self {
            Self::Inside(path) if path.is_empty() => "`.`".to_owned(),
            Self::Inside(path) => quoted(path),
            Self::Outside(path) => quoted(&path.to_string_lossy()),
        }
    }

    /// Returns the path in the form used in diffs.
    pub fn named(&self) -> String {
        match self {
            Self::Inside(path) => path.clone(),
            Self::Outside(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// Returns the absolute path.
    pub fn path(&self, root: &Path) -> PathBuf {
        match self {
            Self::Inside(path) => root.join(path),
            Self::Outside(path) => path.clone(),
        }
    }

    /// Opens whatever exists at the path, if anything. Links inside the project are followed if they stay inside.
    ///
    /// # Errors
    /// Fails if access is denied, or a link now leads out of the project.
    pub fn look(&self, root: &Path) -> io::Result<Option<Found>> {
        let resolved = self.path(root).canonicalize().if_there()?;
        resolved.map_or(Ok(None), |resolved| self.look_at(root, &resolved))
    }

    /// Opens whatever exists at the path; `resolved` is the path without links.
    fn look_at(&self, root: &Path, resolved: &Path) -> io::Result<Option<Found>> {
        let opened = match self {
            Self::Inside(_) => {
                let inside = below(root, resolved)?;
                if inside.is_empty() {
                    return Ok(Some(Found::Directory));
                }
                Beneath::to_read(Root::open(root)?).file(&inside)?
            }
            Self::Outside(_) => files::open_regular(resolved, Links::Refused)?,
        };
        Ok(match (opened, resolved.symlink_metadata()) {
            (Some(file), _) => Some(Found::File(file)),
            (None, Ok(metadata)) if metadata.is_dir() => Some(Found::Directory),
            (None, Ok(_)) => Some(Found::Special),
            (None, Err(_)) => None,
        })
    }

    /// Opens whatever exists at the path.
    ///
    /// # Errors
    /// A sentence for the model if nothing exists, or it cannot be accessed.
    pub fn find(&self, root: &Path) -> Result<Found, String> {
        self.found(root, self.look(root))
    }

    fn found(&self, root: &Path, looked: io::Result<Option<Found>>) -> Result<Found, String> {
        let found = looked.map_err(|error| unreadable(&self.shown(), &error))?;
        found.ok_or_else(|| missing(root, self))
    }

    /// Reads the file at the path, if it may be read and has at most `limit` bytes.
    ///
    /// # Errors
    /// A sentence for the model, with advice, if there is no such file.
    pub fn read(&self, root: &Path, limit: u64) -> Result<Vec<u8>, String> {
        let resolved = resolved(&self.path(root));
        self.check_secrets_at(root, &resolved)?;
        let shown = self.shown();
        let file = match self.found(root, self.look_at(root, &resolved))? {
            Found::File(file) => file,
            Found::Directory => {
                return Err(format!(
                    "{shown} is a directory; list it to see what is in it"
                ));
            }
            Found::Special => {
                return Err(format!(
                    "{shown} is a pipe, a device or the like, not a file; there is nothing to read"
                ));
            }
        };
        self.content(file, limit)
    }

    /// Reads the file as [`read`](Self::read) does, but where no link is on its way below the root of `files`, without
    /// looking for links first.
    ///
    /// # Errors
    /// Same as for `read`.
    pub fn read_below(
        &self,
        root: &Path,
        files: &mut Beneath,
        limit: u64,
    ) -> Result<Vec<u8>, String> {
        if let Self::Inside(path) = self
            && let Ok(Some(file)) = files.file(path)
        {
            self.check_secrets_at(root, &self.path(root))?;
            return self.content(file, limit);
        }
        self.read(root, limit)
    }

    fn content(&self, file: File, limit: u64) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        match file.take(limit + 1).read_to_end(&mut content) {
            Ok(_) if content.len() as u64 > limit => Err(format!(
                "{} is larger than {} MiB; look at parts of it with a command",
                self.shown(),
                limit >> 20
            )),
            Ok(_) => Ok(content),
            Err(error) => Err(unreadable(&self.shown(), &error)),
        }
    }

    /// Refuses a place that commonly contains credentials, by its own name or that of its link target.
    ///
    /// # Errors
    /// Fails if the file is refused.
    pub fn check_secrets(&self, root: &Path) -> Result<(), CallFailure> {
        self.check_secrets_at(root, &resolved(&self.path(root)))
    }

    fn check_secrets_at(&self, root: &Path, resolved: &Path) -> Result<(), CallFailure> {
        let is_secret = [&*self.path(root), resolved].into_iter().any(|path| {
            let path = path.strip_prefix(root).unwrap_or(path);
            is_secret_file(path) || holds_keys(path)
        });
        if is_secret {
            return Err(CallFailure::new(
                CallFailure::TOOL_FAILED,
                format!(
                    "{} commonly holds credentials, and is neither read nor written",
                    self.shown()
                ),
                "go on without it, or ask for what is needed from it",
            ));
        }
        Ok(())
    }

    /// Returns whether it is a `.env` file, both by its own name and by that of its link target.
    pub fn is_environment(&self, root: &Path) -> bool {
        let named = self.path(root);
        [resolved(&named), named].iter().all(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name == ".env" || name.starts_with(".env.")
        })
    }

    /// Returns a handle to this directory or one above it, and the directory's path relative to that; "" is the handle
    /// itself.
    pub(super) fn directory(&self, root: &Path) -> io::Result<(Root, String)> {
        match self {
            Self::Inside(_) => {
                let resolved = self.path(root).canonicalize()?;
                Ok((Root::open(root)?, below(root, &resolved)?))
            }
            Self::Outside(path) => Ok((Root::open(path)?, String::new())),
        }
    }
}

/// Returns whether the untrusted `path`, relative to `root`, leads to `closed` or below it; `root` and `closed` have
/// links resolved.
pub fn leads_into(root: &Path, path: &str, closed: &Path) -> bool {
    let clean = path_clean::clean(root.join(path));
    clean.starts_with(closed) || resolved(&clean).starts_with(closed)
}

/// Returns whether a path (relative to the root if inside) may be that of a key: it leads through an `agent-config`, of
/// this or another project, to a file that is not known to be free of keys.
fn holds_keys(path: &Path) -> bool {
    let names = || path.iter().zip(path.iter().skip(1));
    let mut in_config = names().filter(|(directory, _)| is_config(directory));
    in_config.any(|(_, name)| !WITHOUT_KEYS.iter().any(|known| name == *known))
}

/// Returns whether a path is, or leads through, an `agent-config`.
pub(super) fn leads_through_config(path: &Path) -> bool {
    path.iter().any(is_config)
}

/// Returns whether this is the name of an `agent-config`, ignoring case as some file systems do.
fn is_config(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(CONFIG)
}

/// Quotes text from a model or the disk for use in a sentence.
pub(crate) fn quoted(text: &str) -> String {
    format!("`{}`", escaped(text))
}

fn check_form(path: &str) -> Result<(), String> {
    if path.trim().is_empty() {
        return Err("the path is empty; `.` is the project's root".to_owned());
    }
    if path.contains('\0') {
        return Err(format!(
            "{} has a NUL in it, which no path has",
            quoted(path)
        ));
    }
    if path.len() > LONGEST {
        return Err(format!(
            "the path has {}; no more than {LONGEST} make a path",
            counted(path.len() as u64, "byte")
        ));
    }
    let drive =
        matches!(path.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    if drive || path.starts_with("\\\\") {
        return Err(format!(
            "{} is a Windows path, and there is none here; name it from the project's root, with `/` \
             between names: `src/main.rs`",
            quoted(path)
        ));
    }
    Ok(())
}

/// Resolves the links in the absolute `path`, as far as it exists.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        // An ancestor that cannot be resolved does not exist or is not accessible.
        if let Ok(resolved) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            // Joining "" would add a trailing slash.
            return if rest.as_os_str().is_empty() {
                resolved
            } else {
                resolved.join(rest)
            };
        }
    }
    path.to_path_buf()
}

fn plain(relative: &Path, path: &str) -> Result<String, String> {
    relative.to_str().map(str::to_owned).ok_or_else(|| {
        format!(
            "{} leads to a name that is not UTF-8; only a command can get at it",
            quoted(path)
        )
    })
}

/// Returns the path of `resolved` relative to the root.
fn below(root: &Path, resolved: &Path) -> io::Result<String> {
    let inside = resolved.strip_prefix(root).ok().and_then(Path::to_str);
    let problem = "it leads out of the project";
    let leads_out = || io::Error::new(io::ErrorKind::PermissionDenied, problem);
    inside.map(str::to_owned).ok_or_else(leads_out)
}

/// Formats the message for a place that the system does not allow to be read.
pub(super) fn unreadable(shown: &str, error: &io::Error) -> String {
    format!("{shown} cannot be read: {error}")
}

/// Formats the message for a missing path, suggesting existing names, the most similar ones first.
fn missing(root: &Path, place: &ResolvedPath) -> String {
    let shown = place.shown();
    let path = place.path(root);
    let Some(parent) = path.ancestors().skip(1).find(|parent| parent.is_dir()) else {
        return format!("{shown} does not exist");
    };
    let directory = match parent.strip_prefix(root) {
        Ok(inside) => ResolvedPath::Inside(inside.to_string_lossy().into_owned()),
        Err(_) => ResolvedPath::Outside(parent.to_owned()),
    };
    let wanted = path
        .strip_prefix(parent)
        .unwrap_or(&path)
        .iter()
        .next()
        .unwrap_or_default()
        .to_string_lossy();
    let mut names = files::names(parent).unwrap_or_default();
    names.retain(|name| name != ".git");
    names.sort_by_cached_key(|name| Reverse(likeness(&wanted, name)));
    let nearest: Vec<String> = names.iter().take(NAMED).map(|name| quoted(name)).collect();
    let listed = match nearest.join(", ") {
        none if none.is_empty() => "nothing".to_owned(),
        listed => listed,
    };
    let more = if names.len() > NAMED { " and more" } else { "" };
    format!(
        "{shown} does not exist; {} holds {listed}{more}",
        directory.shown()
    )
}

/// Counts the letters at the start that two names have in common, ignoring case.
fn likeness(one: &str, other: &str) -> usize {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests;
