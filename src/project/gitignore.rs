//! Git's ignore rules: nested `.gitignore` files, `.git/info/exclude` and `!` lines.
//!
//! Reads only ignore files and git's configuration. Guarantees the same verdict as `git check-ignore --no-index`,
//! except for the user's global excludes file, which is not part of the project. In particular, nothing below an
//! ignored directory is re-included: paths are checked from the top down, up to the first ignored directory.

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

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
    /// The `.gitignore` of each directory examined so far, by the directory's path relative to `top`.
    levels: RefCell<HashMap<Vec<u8>, Rc<IgnoreFile>>>,
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
            levels: RefCell::default(),
        })
    }

    /// Returns whether git would ignore `path`, which is relative to the loaded root and uses slashes. Everything
    /// below an ignored directory is ignored, too.
    ///
    /// # Errors
    /// Fails if an ignore file on the way exists but cannot be read.
    pub fn is_ignored(&self, path: &str, is_dir: bool) -> Result<bool, PathError> {
        let path = [&self.prefix, path.as_bytes()].concat();
        let ends = path
            .find_iter(b"/")
            .map(|slash| (slash, true))
            .chain([(path.len(), is_dir)]);
        for (end, is_dir) in ends {
            if self.is_excluded(&path[..end], is_dir)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether a rule excludes exactly this path. The innermost file with a matching rule decides.
    fn is_excluded(&self, path: &[u8], is_dir: bool) -> Result<bool, PathError> {
        let mut level = path;
        while let Some(slash) = level.rfind_byte(b'/') {
            level = &path[..slash];
            let rules = self.level(level)?;
            if let Some(ignored) = rules.verdict(&path[slash + 1..], is_dir, self.case) {
                return Ok(ignored);
            }
        }
        let at_top = self.level(b"")?.verdict(path, is_dir, self.case);
        Ok(at_top
            .or_else(|| self.exclude.verdict(path, is_dir, self.case))
            .unwrap_or(false))
    }

    fn level(&self, dir: &[u8]) -> Result<Rc<IgnoreFile>, PathError> {
        if let Some(known) = self.levels.borrow().get(dir) {
            return Ok(Rc::clone(known));
        }
        let file = self.top.join(dir.to_path_lossy()).join(GITIGNORE);
        // Git does not follow a link here.
        let rules = Rc::new(IgnoreFile::parse(&read_git(&file, Links::Refused)?));
        let mut levels = self.levels.borrow_mut();
        Ok(Rc::clone(levels.entry(dir.to_vec()).or_insert(rules)))
    }
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
        Err(error) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            error.to_string(),
        )),
    }
}
