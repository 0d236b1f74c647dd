//! Walks a directory tree, skipping what git ignores.
//!
//! Lists directories and reads git's ignore files. Guarantees that it enters no links and no `.git`, descends at most
//! [`DEEPEST`] levels, and examines at most the given number of entries, however large the tree is.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};

use super::gitignore::IgnoreRules;
use super::repository::DOT_GIT;
use crate::sys::files;
use crate::sys::interrupt::Interrupt;

/// Maximum depth of a walk.
pub const DEEPEST: usize = 128;

/// Kind of a directory entry.
#[derive(Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    /// A link and its target.
    Link(String),
}

/// A directory entry.
#[derive(Debug)]
pub struct Entry {
    /// Name, with invalid UTF-8 replaced.
    pub name: String,
    pub kind: EntryKind,
}

/// Function that opens a directory by its path from the top of a tree.
type Open<'w> = dyn Fn(&str) -> io::Result<OwnedFd> + 'w;

/// A walk through a directory tree.
pub struct Walk<'w> {
    open: Box<Open<'w>>,
    /// Git's ignore rules, and the path of the tree's top relative to them.
    rules: Option<(IgnoreRules, String)>,
    /// Number of entries that may still be examined.
    left: usize,
    interrupt: Option<&'w Interrupt>,
    /// True if some entries were not examined.
    pub is_cut_short: bool,
}

impl<'w> Walk<'w> {
    /// Creates a walk that examines at most `limit` entries. `open` opens a directory by its path from the top of the
    /// tree, which itself is ""; `rules` come with the path of that top relative to them.
    pub fn new(
        open: impl Fn(&str) -> io::Result<OwnedFd> + 'w,
        rules: Option<(IgnoreRules, String)>,
        limit: usize,
    ) -> Self {
        Self {
            open: Box::new(open),
            rules,
            left: limit,
            interrupt: None,
            is_cut_short: false,
        }
    }

    /// Makes a signal end the walk.
    pub fn until(self, interrupt: &'w Interrupt) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// Returns whether the walk has ended, because of the limit or a signal.
    pub fn is_over(&self) -> bool {
        self.left == 0 || self.interrupt.is_some_and(|stop| stop.check().is_err())
    }

    /// Lists the directory at `path`, sorted by name, and returns whether git ignores anything in it. Entries whose
    /// status is unknown are listed.
    ///
    /// # Errors
    /// Fails if the directory cannot be read.
    pub fn entries(&mut self, path: &str) -> io::Result<(Vec<Entry>, bool)> {
        let handle = (self.open)(path)?;
        let (mut entries, mut ignores) = (Vec::new(), false);
        for found in Dir::read_from(&handle)? {
            let found = found?;
            let name = found.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || name.to_bytes() == DOT_GIT.as_bytes() {
                continue;
            }
            if self.left == 0 {
                self.is_cut_short = true;
                break;
            }
            self.left -= 1;
            let mut file_type = found.file_type();
            if file_type == FileType::Unknown
                && let Ok(stat) = statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW)
            {
                file_type = FileType::from_raw_mode(stat.st_mode);
            }
            let kind = match file_type {
                FileType::Directory => EntryKind::Directory,
                FileType::Symlink => {
                    let target = readlinkat(&handle, name, Vec::new()).unwrap_or_default();
                    EntryKind::Link(target.to_string_lossy().into_owned())
                }
                _ => EntryKind::File,
            };
            let name = name.to_string_lossy().into_owned();
            if self.is_ignored(&joined(path, &name), &kind) {
                ignores = true;
            } else {
                entries.push(Entry { name, kind });
            }
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok((entries, ignores))
    }

    fn is_ignored(&self, path: &str, kind: &EntryKind) -> bool {
        let Some((rules, prefix)) = &self.rules else {
            return false;
        };
        let is_dir = matches!(kind, EntryKind::Directory);
        let ignored = rules.is_ignored(&joined(prefix, path), is_dir);
        ignored.unwrap_or(false)
    }

    /// Passes each entry below the top to `take` with its path, breadth first. Directories are entered if `take`
    /// returns true; the contents of unreadable directories are skipped.
    ///
    /// # Errors
    /// Fails if the top cannot be read.
    pub fn each(&mut self, mut take: impl FnMut(String, EntryKind) -> bool) -> io::Result<()> {
        let mut queue = VecDeque::from([(String::new(), 0_usize)]);
        while let Some((path, depth)) = queue.pop_front() {
            let listed = if self.is_over() || depth >= DEEPEST {
                None
            } else if depth == 0 {
                Some(self.entries(&path)?)
            } else {
                self.entries(&path).ok()
            };
            let Some((entries, _)) = listed else {
                self.is_cut_short = true;
                continue;
            };
            for Entry { name, kind } in entries {
                let below = joined(&path, &name);
                let is_directory = kind == EntryKind::Directory;
                if take(below.clone(), kind) && is_directory {
                    queue.push_back((below, depth + 1));
                }
            }
        }
        Ok(())
    }
}

/// Maximum number of entries examined in a project.
const MOST: usize = 100_000;

/// Passes each entry of the project at `root` that git does not ignore to `take`, as [`Walk::each`] does. Returns
/// whether all were examined: a limited number of them is, and none if the root or git's rules cannot be read.
pub fn each_in_project(root: &Path, take: impl FnMut(String, EntryKind) -> bool) -> bool {
    let open = |path: &str| files::open_directory(&root.join(path)).map(OwnedFd::from);
    IgnoreRules::load(root).is_ok_and(|rules| {
        let mut walk = Walk::new(open, Some((rules, String::new())), MOST);
        walk.each(take).is_ok() && !walk.is_cut_short
    })
}

/// Joins a directory and a name with a slash; either may be empty.
pub fn joined(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", path) | (path, "") => path.to_owned(),
        _ => format!("{directory}/{name}"),
    }
}
