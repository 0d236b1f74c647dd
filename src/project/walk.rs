//! The walk of a tree: what is in its directories, without what git ignores.
//!
//! Lists directories and reads git's ignore files. Guarantees that it looks into no link and no `.git`, no deeper than
//! [`DEEPEST`] names, and at no more entries than it is told to, however large the tree is.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};

use super::gitignore::IgnoreRules;
use super::repository::DOT_GIT;
use crate::sys::files;
use crate::sys::interrupt::Interrupt;

/// The number of names that a walk goes down.
pub const DEEPEST: usize = 128;

/// The kind of an entry.
#[derive(Debug, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Directory,
    /// A link, and what it names.
    Link(String),
}

/// Something in a directory.
#[derive(Debug)]
pub struct Entry {
    /// The name; what is not UTF-8 in it is replaced.
    pub name: String,
    pub kind: EntryKind,
}

/// Opens a directory by its path from the top of a tree.
type Open<'w> = dyn Fn(&str) -> io::Result<OwnedFd> + 'w;

/// A walk through the directories of a tree.
pub struct Walk<'w> {
    open: Box<Open<'w>>,
    /// Git's rules, and the path of the tree's top as they have it.
    rules: Option<(IgnoreRules, String)>,
    /// The number of entries that may still be looked at.
    left: usize,
    interrupt: Option<&'w Interrupt>,
    /// Set if more was there than was looked at.
    pub is_cut_short: bool,
}

impl<'w> Walk<'w> {
    /// A walk that looks at so many entries at the most. `open` opens a directory by its path from the top of the tree,
    /// which is "" itself; `rules` have that top at the path beside them.
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

    /// A walk through all of a project.
    pub fn of_project(root: &'w Path, rules: IgnoreRules, limit: usize) -> Self {
        let open = |path: &str| files::open_directory(&root.join(path)).map(OwnedFd::from);
        Self::new(open, Some((rules, String::new())), limit)
    }

    /// Lets a signal end the walk.
    pub fn until(self, interrupt: &'w Interrupt) -> Self {
        Self {
            interrupt: Some(interrupt),
            ..self
        }
    }

    /// Reports whether nothing more is looked at.
    pub fn is_over(&self) -> bool {
        self.left == 0 || self.interrupt.is_some_and(|stop| stop.check().is_err())
    }

    /// Lists the directory at `path`, by name, and tells whether git ignores anything in it. What cannot be told of is
    /// listed.
    ///
    /// # Errors
    /// When it cannot be read.
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
            let kind = match found.file_type() {
                FileType::Unknown => statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| {
                        FileType::from_raw_mode(stat.st_mode)
                    }),
                known => known,
            };
            let kind = match kind {
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

    /// Hands on each entry below the top by its path, those that are near before those that are deep. A directory is
    /// entered where `take` says so; one that cannot be read hides what is in it, and nothing else.
    ///
    /// # Errors
    /// When the top cannot be read.
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

/// The path of a name in a directory; either may be "".
pub fn joined(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", path) | (path, "") => path.to_owned(),
        _ => format!("{directory}/{name}"),
    }
}
