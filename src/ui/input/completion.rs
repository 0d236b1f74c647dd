//! `@path` at the prompt: Tab completes it with the project's files.
//!
//! Reads directories of the project and git's ignore files, when Tab is pressed. What git ignores is left out, and so
//! are names that would deceive whoever reads them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use crate::project::gitignore::IgnoreRules;
use crate::sys::text::is_deceptive;

/// So many names of a directory are looked at.
const LOOKED_AT: usize = 10_000;

/// Completes paths, and knows whether anything stands on the line. All clones are of the same line.
#[derive(Debug, Clone)]
pub(super) struct PathHelper {
    root: PathBuf,
    has_text: Arc<AtomicBool>,
}

impl PathHelper {
    /// One that completes with paths below `root`.
    pub fn new(root: PathBuf) -> Self {
        let has_text = Arc::new(AtomicBool::new(false));
        Self { root, has_text }
    }

    /// Whether anything stood on the line since this was asked last.
    pub fn take_has_text(&self) -> bool {
        self.has_text.swap(false, Ordering::Relaxed)
    }
}

impl Completer for PathHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = line.get(..pos).unwrap_or_default();
        let found = typed_path(before).map(|(start, typed)| (start, paths(&self.root, typed)));
        Ok(found.unwrap_or((pos, Vec::new())))
    }
}

/// rustyline asks for a hint whenever the line has changed.
impl Hinter for PathHelper {
    type Hint = String;

    fn hint(&self, line: &str, _pos: usize, _context: &Context<'_>) -> Option<String> {
        self.has_text.store(!line.is_empty(), Ordering::Relaxed);
        None
    }
}

impl Highlighter for PathHelper {}
impl Validator for PathHelper {}
impl Helper for PathHelper {}

/// Where a path begins that stands behind an `@` at the end of `text`, and what of it is there.
pub(crate) fn typed_path(text: &str) -> Option<(usize, &str)> {
    let word = text.rsplit(char::is_whitespace).next()?;
    let typed = word.strip_prefix('@')?;
    Some((text.len() - typed.len(), typed))
}

/// The paths below `root` that begin so, directories with a slash behind them.
fn paths(root: &Path, typed: &str) -> Vec<String> {
    let (directory, start) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed),
    };
    let names = directory.split_terminator('/');
    if names
        .into_iter()
        .any(|name| matches!(name, "" | "." | ".."))
    {
        return Vec::new();
    }
    let Ok(rules) = IgnoreRules::load(root) else {
        return Vec::new();
    };
    let entries = fs::read_dir(root.join(directory)).into_iter().flatten();
    let found = entries.take(LOOKED_AT).flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_wanted = name.starts_with(start) && name != ".git" && !name.contains(is_deceptive);
        let path = format!("{directory}{name}");
        let is_directory = entry.file_type().ok()?.is_dir();
        let ignored = if is_directory {
            rules.is_directory_ignored(&path)
        } else {
            rules.is_ignored(&path)
        };
        let slash = if is_directory { "/" } else { "" };
        (is_wanted && !ignored.unwrap_or(true)).then(|| format!("{path}{slash}"))
    });
    let mut found: Vec<String> = found.collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stands_behind_an_at_that_begins_a_word() {
        for (text, expected) in [
            ("@", Some((1, ""))),
            ("see @src/l", Some((5, "src/l"))),
            ("see @types/node@1", Some((5, "types/node@1"))),
            ("mail a@b", None),
            ("see @src then", None),
            ("see src", None),
        ] {
            assert_eq!(typed_path(text), expected, "{text:?}");
        }
    }

    #[test]
    fn paths_are_those_that_git_does_not_ignore() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for directory in ["src/deep", ".git", "target"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in [
            "src/lib.rs",
            "src/list.rs",
            "src/x.log",
            "s.txt",
            "a\u{202e}b",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        fs::write(root.join(".gitignore"), "target\n*.log\n").unwrap();
        for (typed, expected) in [
            ("", &[".gitignore", "s.txt", "src/"][..]),
            ("s", &["s.txt", "src/"]),
            ("src/", &["src/deep/", "src/lib.rs", "src/list.rs"]),
            ("src/li", &["src/lib.rs", "src/list.rs"]),
            ("target/", &[]),
            ("../", &[]),
            ("/", &[]),
            ("nothing/", &[]),
        ] {
            assert_eq!(paths(root, typed), expected, "{typed:?}");
        }
    }
}
