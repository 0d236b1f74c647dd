//! Completions of paths after an `@`, and of commands after a `/`.
//!
//! Reads the project's directories and git's ignore files on a separate thread when an `@` is typed. Omits
//! files that git ignores and names with deceptive characters. Guarantees that the number of entries read is
//! bounded, and that no key waits for them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use nucleo_matcher::pattern::{AtomKind, CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher};

use super::CommandHint;
use super::channel::Wake;
use crate::project::walk::{self, EntryKind};
use crate::sys::text::is_deceptive;

/// The maximum number of candidates, which can be scrolled.
const MOST: usize = 50;

/// A replacement for the typed word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text to insert.
    pub text: String,
    /// A note shown next to it.
    pub note: String,
}

/// The paths of a project, listed on demand.
#[derive(Debug, Clone, Default)]
pub struct ProjectPaths {
    root: PathBuf,
    listed: Arc<Mutex<Arc<Vec<String>>>>,
    is_listing: Arc<AtomicBool>,
    wake: Option<Wake>,
}

impl ProjectPaths {
    /// Creates an empty list for the paths below `root`; `wake` is notified when it changes.
    pub fn new(root: PathBuf, wake: Option<Wake>) -> Self {
        Self {
            root,
            wake,
            ..Self::default()
        }
    }

    /// Returns the project's root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Lists the paths again in the background; until that is done, the old list is used.
    pub fn refresh(&self) {
        if self.is_listing.swap(true, Ordering::SeqCst) {
            return;
        }
        let this = self.clone();
        let started = thread::Builder::new().spawn(move || {
            this.list();
            this.is_listing.store(false, Ordering::SeqCst);
            if let Some(wake) = &this.wake {
                wake.wake();
            }
        });
        if started.is_err() {
            self.is_listing.store(false, Ordering::SeqCst);
        }
    }

    fn list(&self) {
        let paths = Arc::new(paths_below(&self.root));
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = paths;
    }

    /// Returns the paths as last listed.
    pub fn listed(&self) -> Arc<Vec<String>> {
        let listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&listed)
    }
}

/// Returns the files and directories below `root` that git does not ignore, those nearest the root first.
/// Directories end with a slash.
fn paths_below(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk::each_in_project(root, |path, kind| {
        let is_shown = !path.contains(is_deceptive);
        let slash = if kind == EntryKind::Directory {
            "/"
        } else {
            ""
        };
        if is_shown {
            found.push(path + slash);
        }
        is_shown
    });
    found
}

impl Completion {
    /// Returns the text to insert: after a directory, completion continues.
    pub fn written(&self) -> String {
        let name = &self.text;
        let mark = if name.contains(char::is_whitespace) {
            "\""
        } else {
            ""
        };
        if name.ends_with('/') {
            format!("{mark}{name}")
        } else {
            format!("{mark}{name}{mark} ")
        }
    }
}

/// The part of a text before the cursor that can be completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completing<'t> {
    /// A path without the quotation mark in front of it, and the byte at which both begin.
    Path(usize, &'t str),
    /// A command's name.
    Command(&'t str),
}

/// Returns the completable word before the cursor: one that begins with `@`, with all that follows an open `@"`, or a
/// `/` at the start of the text.
pub fn completing(before: &str) -> Option<Completing<'_>> {
    let quoted = before.rsplit_once("@\"").filter(|(text, typed)| {
        !typed.contains(['"', '\n']) && !text.ends_with(|c: char| !c.is_whitespace())
    });
    if let Some((text, typed)) = quoted {
        return Some(Completing::Path(text.len() + 1, typed));
    }
    let word = before.rsplit(char::is_whitespace).next()?;
    if let Some(typed) = word.strip_prefix('@') {
        return Some(Completing::Path(before.len() - typed.len(), typed));
    }
    let name = before.strip_prefix('/')?;
    (!name.contains(char::is_whitespace)).then_some(Completing::Command(name))
}

/// Returns the paths that match `typed`, best first.
pub fn matching_paths(paths: &[String], typed: &str) -> Vec<Completion> {
    let candidate = |path: &String| Completion {
        text: path.clone(),
        note: String::new(),
    };
    if typed.is_empty() {
        return paths.iter().take(MOST).map(candidate).collect();
    }
    let pattern = pattern(typed, CaseMatching::Smart);
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let found = pattern.match_list(paths, &mut matcher).into_iter();
    let best = found.take(MOST);
    best.map(|(path, _)| candidate(path)).collect()
}

/// Returns the commands that match `typed`: first those that begin with it, then fuzzy matches.
pub fn matching_commands(commands: &[CommandHint], typed: &str) -> Vec<Completion> {
    let pattern = pattern(typed, CaseMatching::Ignore);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let fuzzy = pattern.match_list(commands, &mut matcher);
    let (first, rest): (Vec<_>, Vec<_>) = fuzzy
        .into_iter()
        .map(|(command, _)| command)
        .partition(|command| command.name.starts_with(typed));
    let found = first.into_iter().chain(rest).take(MOST);
    let note = |command: &CommandHint| match command.argument.as_str() {
        "" => command.description.clone(),
        argument => format!("{argument}  {}", command.description),
    };
    found
        .map(|command| Completion {
            text: command.name.clone(),
            note: note(command),
        })
        .collect()
}

/// Creates a fuzzy pattern in which all characters of `typed` are literal.
pub fn pattern(typed: &str, case: CaseMatching) -> Pattern {
    Pattern::new(typed, case, Normalization::Smart, AtomKind::Fuzzy)
}

impl AsRef<str> for CommandHint {
    /// Returns the name, by which it is matched.
    fn as_ref(&self) -> &str {
        &self.name
    }
}

/// Returns whether a typed command name is sent as it is, and whether completing it to `marked` also sends it, which
/// requires that `marked` was selected or is the only match, and that it takes no argument.
pub fn as_command(
    commands: &[CommandHint],
    typed: &str,
    marked: &str,
    is_selected: bool,
) -> (bool, bool) {
    let alike = commands.iter().filter(|it| it.name.starts_with(typed));
    let is_only = !typed.is_empty() && alike.count() == 1;
    let is_known = commands.iter().any(|command| command.name == typed);
    let is_like = is_selected || marked.starts_with(typed);
    let mut bare = commands.iter().filter(|it| it.argument.is_empty());
    let is_bare = bare.any(|command| command.name == marked);
    (is_known || !is_like, is_bare && (is_selected || is_only))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn paths_and_commands_are_completed_where_they_begin() {
        for (before, expected) in [
            ("@", Some(Completing::Path(1, ""))),
            ("see @src/l", Some(Completing::Path(5, "src/l"))),
            ("see\u{a0}@ä", Some(Completing::Path(6, "ä"))),
            ("mail a@b", None),
            ("see @src then", None),
            ("see @\"a dir/b", Some(Completing::Path(5, "a dir/b"))),
            ("see @\"a dir/b\" then", None),
            ("mail a@\"b c", None),
            ("/mo", Some(Completing::Command("mo"))),
            ("/", Some(Completing::Command(""))),
            ("/model x", None),
            ("see /mo", None),
            ("", None),
        ] {
            assert_eq!(completing(before), expected, "{before:?}");
        }
    }

    #[test]
    fn ignored_paths_are_not_candidates() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for directory in ["src/deep", ".git", "target"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for file in [
            "src/lib.rs",
            "src/deep/list.rs",
            "x.log",
            "target/y",
            "a\u{202e}b",
        ] {
            fs::write(root.join(file), "").unwrap();
        }
        fs::write(root.join(".gitignore"), "target\n*.log\n").unwrap();
        let paths = ProjectPaths::new(root.to_owned(), None);
        assert!(paths.listed().is_empty());
        paths.list();
        let listed = paths.listed();
        let expected = [
            ".gitignore",
            "src/",
            "src/deep/",
            "src/lib.rs",
            "src/deep/list.rs",
        ];
        assert_eq!(*listed, expected);
        let texts = |typed| -> Vec<String> {
            let found = matching_paths(&listed, typed).into_iter();
            found.map(|candidate| candidate.text).collect()
        };
        assert_eq!(texts(""), expected);
        assert_eq!(texts("lib"), ["src/lib.rs"]);
        assert_eq!(texts("sdl"), ["src/deep/list.rs"]);
        assert!(texts("zzz").is_empty());
    }

    #[test]
    fn commands_that_begin_so_come_first() {
        let hint = |name: &str, argument: &str| CommandHint {
            name: name.to_owned(),
            argument: argument.to_owned(),
            description: "D".to_owned(),
        };
        let all = [
            hint("compact", "[focus]"),
            hint("command", "NAME"),
            hint("mode", ""),
            hint("model", ""),
        ];
        let names = |typed| -> Vec<String> {
            let found = matching_commands(&all, typed).into_iter();
            found.map(|candidate| candidate.text).collect()
        };
        assert_eq!(names("mo"), ["mode", "model"]);
        assert_eq!(names("").len(), 4);
        assert_eq!(names("cmd"), ["command"]);
        assert!(names("x").is_empty());
        assert_eq!(matching_commands(&all, "compact")[0].note, "[focus]  D");
    }
}
