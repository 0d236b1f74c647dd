//! Paths that a model names: where they lead, and what is there.
//!
//! Looks at the disk and changes nothing. Guarantees that a place that is said to be inside the project
//! is reached through handles that cannot leave it, even while the tree is being changed.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use crate::agent::tool::ToolError;
use crate::edit::beneath::{Root, open_regular, split};
use crate::project::CONFIG;
use crate::secret::credentials::is_secret_file;
use crate::sys::files::{self, Links, is_missing};
use crate::sys::numbers::counted;
use crate::sys::text::escaped;

/// The longest path that a system takes, less the root's own part.
const LONGEST: usize = 4000;
/// Names of a directory that are told where the one that was meant is missing.
const NAMED: usize = 20;
/// The most names that are looked at.
const LOOKED_AT: usize = 10_000;
/// Files of an `agent-config` that hold no key.
const WITHOUT_KEYS: [&str; 5] = [
    ".gitignore",
    "codeRollup.txt",
    "consistency-report.txt",
    "models.json",
    "query.txt",
];

/// Permission for paths that lead out of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// No path may.
    Refused,
    /// The user has said that it may: `--allow-outside`.
    Allowed,
}

/// The place that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedPath {
    /// Into the project: plain names joined by `/`, relative to the root, which is "" itself. Links are
    /// as they were named.
    Inside(String),
    /// Elsewhere: an absolute path, links resolved as far as it is there.
    Outside(PathBuf),
}

/// The thing at a place.
#[derive(Debug)]
pub enum Found {
    /// A file, opened for reading.
    File(File),
    /// A directory.
    Directory,
    /// A pipe, a device or the like.
    Special,
    /// There is nothing of that name.
    Missing,
}

impl ResolvedPath {
    /// Resolves `path`, untrusted text, from `root`, the project's root with links resolved. `.` and
    /// `..` are taken by their letters; `~` is a name like any other.
    ///
    /// # Errors
    /// A sentence for the model: the path is none, or leads out where that is refused.
    pub fn of(root: &Path, path: &str, outside: Outside) -> Result<Self, String> {
        check_form(path)?;
        let clean = path_clean::clean(root.join(path));
        // What links make of it, and what their letters make of it where the root was named by a link.
        let resolved = resolved(&clean);
        let place = match (resolved.strip_prefix(root), clean.strip_prefix(root)) {
            (Ok(_), Ok(named)) | (Ok(named), Err(_)) => Self::Inside(plain(named, path)?),
            (Err(_), _) => Self::Outside(resolved),
        };
        match (&place, outside) {
            (Self::Outside(_), Outside::Refused) => Err(format!(
                "{} leads out of the project, to {}; stay inside it, or let the user start the program with \
                 `--allow-outside`",
                quoted(path),
                place.shown()
            )),
            _ => Ok(place),
        }
    }

    /// The place as the model is told of it.
    pub fn shown(&self) -> String {
        match self {
            Self::Inside(path) if path.is_empty() => "`.`".to_owned(),
            Self::Inside(path) => quoted(path),
            Self::Outside(path) => quoted(&path.to_string_lossy()),
        }
    }

    /// The path, as diffs name it.
    pub fn named(&self) -> String {
        match self {
            Self::Inside(path) => path.clone(),
            Self::Outside(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// The absolute path.
    pub fn path(&self, root: &Path) -> PathBuf {
        match self {
            Self::Inside(path) => root.join(path),
            Self::Outside(path) => path.clone(),
        }
    }

    /// Looks at what is there. Links inside the project are followed where they stay in it.
    ///
    /// # Errors
    /// When the system does not let it be seen, or a link leads out meanwhile.
    pub fn look(&self, root: &Path) -> io::Result<Found> {
        let path = self.path(root);
        let resolved = match path.canonicalize() {
            Ok(resolved) => resolved,
            Err(error) if is_missing(&error) => return Ok(Found::Missing),
            Err(error) => return Err(error),
        };
        let opened = match self {
            Self::Inside(_) => {
                let inside = below(root, &resolved)?;
                let (parent, name) = split(&inside);
                if name.is_empty() {
                    return Ok(Found::Directory);
                }
                let parent = Root::open(root)?.directory_to_read(parent)?;
                open_regular(parent.as_fd(), name)?
            }
            Self::Outside(_) => files::open_regular(&resolved, Links::Refused)?,
        };
        Ok(match (opened, resolved.symlink_metadata()) {
            (Some(file), _) => Found::File(file),
            (None, Ok(metadata)) if metadata.is_dir() => Found::Directory,
            (None, Ok(_)) => Found::Special,
            (None, Err(_)) => Found::Missing,
        })
    }

    /// Looks at what is there, which must be something.
    ///
    /// # Errors
    /// A sentence for the model where nothing is, or nothing can be seen.
    pub fn find(&self, root: &Path) -> Result<Found, String> {
        match self.look(root) {
            Ok(Found::Missing) => Err(missing(root, self)),
            Ok(found) => Ok(found),
            Err(error) => Err(unreadable(&self.shown(), &error)),
        }
    }

    /// The file that is there, where it may be read and is no longer than `limit` bytes.
    ///
    /// # Errors
    /// [`ToolError::Failed`] with the way out where there is no such file.
    pub fn read(&self, root: &Path, limit: u64) -> Result<Vec<u8>, ToolError> {
        self.check_secrets(root).map_err(ToolError::failed)?;
        let shown = self.shown();
        let failed = |problem: String| Err(ToolError::failed(problem));
        let file = match self.find(root).map_err(ToolError::failed)? {
            Found::File(file) => file,
            Found::Directory => {
                return failed(format!(
                    "{shown} is a directory; list it to see what is in it"
                ));
            }
            Found::Special | Found::Missing => {
                return failed(format!(
                    "{shown} is a pipe, a device or the like, not a file; there is nothing to read"
                ));
            }
        };
        let mut content = Vec::new();
        match file.take(limit + 1).read_to_end(&mut content) {
            Ok(_) if content.len() as u64 > limit => failed(format!(
                "{shown} is larger than {} MiB; look at parts of it with a command",
                limit >> 20
            )),
            Ok(_) => Ok(content),
            Err(error) => failed(unreadable(&shown, &error)),
        }
    }

    /// Refuses a place that commonly holds credentials, by its name or by that of what it links to.
    ///
    /// # Errors
    /// A sentence that says so.
    pub fn check_secrets(&self, root: &Path) -> Result<(), String> {
        let named = self.path(root);
        let resolved = resolved(&named);
        let is_secret = [&named, &resolved].into_iter().any(|path| {
            let path = path.strip_prefix(root).unwrap_or(path);
            is_secret_file(path) || holds_keys(path)
        });
        if is_secret {
            return Err(format!(
                "{} commonly holds credentials, and is neither read nor written; go on without it, or ask for what is needed from it",
                self.shown()
            ));
        }
        Ok(())
    }

    /// Reports whether it is a `.env` by its own name, and by that of what it links to.
    pub fn is_environment(&self, root: &Path) -> bool {
        let named = self.path(root);
        [resolved(&named), named].iter().all(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name == ".env" || name.starts_with(".env.")
        })
    }

    /// A handle below which the directory lies, and its path from there on; "" is the handle itself.
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

/// Reports whether `path`, untrusted text, leads from `root` to `closed` or below it; both with links resolved.
pub fn leads_into(root: &Path, path: &str, closed: &Path) -> bool {
    let clean = path_clean::clean(root.join(path));
    clean.starts_with(closed) || resolved(&clean).starts_with(closed)
}

/// Reports whether a path, relative to the root where it leads inside, is that of a key: it leads through an `agent-config`,
/// the project's or another's, to what is not known to hold none.
fn holds_keys(path: &Path) -> bool {
    let names = || path.iter().zip(path.iter().skip(1));
    let mut in_config = names().filter(|(directory, _)| is_config(directory));
    in_config.any(|(_, name)| !WITHOUT_KEYS.iter().any(|known| name == *known))
}

/// Reports whether a path is, or leads through, an `agent-config`.
pub(super) fn leads_through_config(path: &Path) -> bool {
    path.iter().any(is_config)
}

/// Some file systems take letters of either case for the same.
fn is_config(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(CONFIG)
}

/// Text of a model or the disk, as it stands in a sentence.
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

/// The absolute `path` with links resolved, as far as it is there.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        // One that cannot be resolved is not there, or nobody gets through it.
        if let Ok(resolved) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            // Joined to "", a path would end in a slash.
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
    let text = relative.to_str();
    text.map(str::to_owned).ok_or_else(|| {
        format!(
            "{} leads to a name that is not UTF-8; only a command can get at it",
            quoted(path)
        )
    })
}

/// `resolved` from the root on.
fn below(root: &Path, resolved: &Path) -> io::Result<String> {
    let inside = resolved.strip_prefix(root).ok().and_then(Path::to_str);
    inside.map(str::to_owned).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it leads out of the project",
        )
    })
}

/// Says that the system does not let a place be read.
pub(super) fn unreadable(shown: &str, error: &io::Error) -> String {
    format!("{shown} cannot be read: {error}")
}

/// Says that nothing is at a place, and what is near it, the likest names first.
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
    let wanted = path.strip_prefix(parent).unwrap_or(&path).iter().next();
    let wanted = wanted.unwrap_or_default().to_string_lossy();
    let mut names = names_in(parent);
    names.sort_by_cached_key(|name| Reverse(likeness(&wanted, name)));
    let told: Vec<String> = names.iter().take(NAMED).map(|name| quoted(name)).collect();
    let told = match told.join(", ") {
        none if none.is_empty() => "nothing".to_owned(),
        told => told,
    };
    let more = if names.len() > NAMED { " and more" } else { "" };
    format!(
        "{shown} does not exist; {} holds {told}{more}",
        directory.shown()
    )
}

fn names_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = directory.read_dir() else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .take(LOOKED_AT)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != ".git")
        .collect();
    names.sort();
    names
}

/// Counts the letters with which two names begin in common, whatever their case.
fn likeness(one: &str, other: &str) -> usize {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let pairs = one.chars().zip(other.chars());
    pairs.take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests;
