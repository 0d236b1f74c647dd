//! Git's ignore rules: nested `.gitignore` files, `.git/info/exclude` and `!` lines.
//!
//! Reads only ignore files and git's configuration. Guarantees the same verdict as `git check-ignore --no-index`,
//! except for the user's global excludes file, which is not part of the project. In particular, nothing below an
//! ignored directory is re-included: paths are checked from the top down, up to the first ignored directory.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::{io, iter};

use bstr::ByteSlice as _;
use gix_glob::Pattern;
use gix_glob::pattern::Mode as PatternMode;
use gix_glob::wildmatch::Mode;

use super::repository::Repository;
use crate::sys::files::{self, IfThere as _, Links, MIB, PathError, is_no_file};

/// Case sensitivity of matching.
pub use gix_glob::pattern::Case;

/// Name of git's ignore files.
pub const GITIGNORE: &str = ".gitignore";

/// Maximum size in bytes of git's own files.
pub(super) const LARGEST: u64 = MIB;

/// Patterns of one ignore file, matched by a port of git's own wildmatch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IgnoreFile(Vec<Pattern>);

impl IgnoreFile {
    /// Parses an ignore file. Comments and invalid patterns match nothing, as in git.
    pub fn parse(content: &[u8]) -> Self {
        // Like git, terminate the last line, so that a trailing `\r` is dropped there, too.
        let content = [content, b"\n"].concat();
        Self(
            gix_ignore::parse(&content, false)
                .map(|(pattern, _line, _kind)| pattern)
                .collect(),
        )
    }

    /// Returns this file's verdict on `path`, which is relative to the file's directory: `Some(true)` if it is ignored,
    /// `Some(false)` if a `!` line re-includes it, `None` if no line matches. The last matching line decides.
    pub fn verdict(&self, path: &[u8], is_dir: bool, case: Case) -> Option<bool> {
        let mut patterns = self.0.iter().rev();
        let found = patterns.find(|pattern| matches(pattern, path, is_dir, case));
        found.map(|pattern| !pattern.is_negative())
    }
}

/// Returns whether `pattern` matches `path`. A pattern with a slash is matched as in git: first the
/// literal text before the first wildcard, then the rest of the pattern against the rest of the path.
/// The difference matters for `.**/**`.
fn matches(pattern: &Pattern, path: &[u8], is_dir: bool, case: Case) -> bool {
    let by_name = pattern.mode.contains(PatternMode::NO_SUB_DIR);
    if by_name && !pattern.mode.contains(PatternMode::ABSOLUTE) {
        let name = path.rfind_byte(b'/').map(|slash| slash + 1);
        let mode = Mode::empty();
        return pattern.matches_repo_relative_path(path.into(), name, Some(is_dir), case, mode);
    }
    if pattern.mode.contains(PatternMode::MUST_BE_DIR) && !is_dir {
        return false;
    }
    let literal = pattern.first_wildcard_pos.unwrap_or(pattern.text.len());
    let (prefix, wild) = pattern.text.split_at(literal);
    let Some((start, rest)) = path.split_at_checked(prefix.len()) else {
        return false;
    };
    let (same, mode) = match case {
        Case::Sensitive => (start == prefix, Mode::NO_MATCH_SLASH_LITERAL),
        Case::Fold => {
            let mode = Mode::NO_MATCH_SLASH_LITERAL | Mode::IGNORE_CASE;
            (start.eq_ignore_ascii_case(prefix), mode)
        }
    };
    same && gix_glob::wildmatch(wild.into(), rest.into(), mode)
}

/// The ignore rules that apply in one directory of a (possible) git work tree.
#[derive(Debug)]
pub struct IgnoreRules {
    /// Top of the enclosing work tree, or the directory itself if there is none.
    top: PathBuf,
    /// Path of the directory, relative to `top`.
    prefix: Vec<u8>,
    /// Case sensitivity of paths in this repository, from `core.ignoreCase`.
    case: Case,
    /// Rules of `info/exclude`, which every `.gitignore` overrides.
    exclude: IgnoreFile,
    /// The directories examined so far, by their paths relative to `top`.
    directories: RefCell<HashMap<Vec<u8>, Directory>>,
}

/// The rules' verdict on a directory, and the rules that apply in it.
#[derive(Debug, Clone, Default)]
struct Directory {
    is_ignored: bool,
    /// The rules of the innermost `.gitignore` in it or above it, if there are any.
    rules: Option<Rc<Level>>,
}

/// A `.gitignore` with rules.
#[derive(Debug)]
struct Level {
    file: IgnoreFile,
    /// Length of its directory's path, with a slash at the end.
    start: usize,
    above: Option<Rc<Level>>,
}

impl IgnoreRules {
    /// Loads the rules for paths below `root`, an absolute directory. Searches upwards for the work tree as git does.
    ///
    /// # Errors
    /// Fails if an ignore file exists but cannot be read.
    pub fn load(root: &Path) -> Result<Self, PathError> {
        let repository = Repository::of(root)?;
        let top = repository.as_ref().map_or(root, |found| &found.top);
        let (mut case, mut exclude) = (Case::Sensitive, Vec::new());
        if let Some(repository) = &repository {
            // git follows a link here, but not for ignore files in the work tree.
            exclude = read_git(&repository.common.join("info/exclude"), Links::Followed)?;
            let config = repository.common.join("config");
            case = self::case(repository).map_err(PathError::of("read", config))?;
        }
        Ok(Self {
            top: top.to_path_buf(),
            prefix: Repository::prefix(top, root),
            case,
            exclude: IgnoreFile::parse(&exclude),
            directories: RefCell::default(),
        })
    }

    /// Returns whether git would ignore `path`, which is relative to the loaded root and uses slashes. Everything
    /// below an ignored directory is ignored, too.
    ///
    /// # Errors
    /// Fails if an ignore file on the way exists but cannot be read.
    pub fn is_ignored(&self, path: &str, is_dir: bool) -> Result<bool, PathError> {
        let path = [&self.prefix, path.as_bytes()].concat();
        let directory = self.directory(parent(&path))?;
        Ok(directory.is_ignored || self.is_excluded(&path, is_dir, directory.rules.as_deref()))
    }

    /// Returns whether a rule excludes exactly this path. The innermost file with a matching rule decides.
    fn is_excluded(&self, path: &[u8], is_dir: bool, rules: Option<&Level>) -> bool {
        let levels = iter::successors(rules, |level| level.above.as_deref());
        let mut verdicts = levels
            .map(|level| (&level.file, level.start))
            .chain([(&self.exclude, 0)])
            .filter_map(|(file, start)| file.verdict(&path[start..], is_dir, self.case));
        verdicts.next().unwrap_or(false)
    }

    /// Examines a directory, beginning at the nearest one above it that is known.
    fn directory(&self, path: &[u8]) -> Result<Directory, PathError> {
        let mut directories = self.directories.borrow_mut();
        let above = iter::successors(Some(path), |path| (!path.is_empty()).then(|| parent(path)));
        let unknown: Vec<_> = above
            .take_while(|path| !directories.contains_key(*path))
            .collect();
        for &path in unknown.iter().rev() {
            let above = match path {
                b"" => Directory::default(),
                path => directories.get(parent(path)).cloned().unwrap_or_default(),
            };
            let is_ignored = above.is_ignored
                || !path.is_empty() && self.is_excluded(path, true, above.rules.as_deref());
            let rules = if is_ignored {
                None
            } else {
                self.rules(path, above.rules)?
            };
            directories.insert(path.to_vec(), Directory { is_ignored, rules });
        }
        Ok(directories.get(path).cloned().unwrap_or_default())
    }

    /// Reads the `.gitignore` of a directory.
    fn rules(&self, path: &[u8], above: Option<Rc<Level>>) -> Result<Option<Rc<Level>>, PathError> {
        let start = path.len() + usize::from(!path.is_empty());
        let path = self.top.join(path.to_path_lossy());
        // Git does not follow a link here.
        let file = IgnoreFile::parse(&read_git(&path.join(GITIGNORE), Links::Refused)?);
        if file.0.is_empty() {
            return Ok(above);
        }
        Ok(Some(Rc::new(Level { file, start, above })))
    }
}

/// Returns the path of the directory that contains `path`; empty if that is the top.
fn parent(path: &[u8]) -> &[u8] {
    &path[..path.rfind_byte(b'/').unwrap_or(0)]
}

/// Reads one of git's files; empty if it is missing or not a regular file.
fn read_git(path: &Path, links: Links) -> Result<Vec<u8>, PathError> {
    match files::read(path, links, LARGEST).if_there() {
        Err(error) if is_no_file(&error) => Ok(Vec::new()),
        read => Ok(read
            .map_err(PathError::of("read", path))?
            .unwrap_or_default()),
    }
}

/// Reads `core.ignoreCase`, which `git init` sets on systems that need it.
fn case(repository: &Repository) -> io::Result<Case> {
    match repository.config()?.boolean("core.ignoreCase") {
        Ok(Some(true)) => Ok(Case::Fold),
        Ok(_) => Ok(Case::Sensitive),
        // git also refuses to work if the value is invalid.
        Err(error) => Err(io::Error::other(error)),
    }
}
