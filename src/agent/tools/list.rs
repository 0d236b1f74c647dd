//! The tool LIST_DIRECTORY: what is in a directory, or what a glob matches, as a tree.
//!
//! Reads directories and git's ignore files. Guarantees that it looks into no link, and that what it shows
//! and how much it looks at are bounded, however large the tree is.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};

use super::place::{Found, Outside, ResolvedPath, missing, quoted, unreadable};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};
use crate::edit::beneath::{Root, split};
use crate::project::gitignore::IgnoreRules;
use crate::sys::numbers::{counted, grouped};
use crate::sys::text::escaped;

/// How many entries are shown.
const SHOWN: usize = 1000;
/// How many are looked at to find what a glob matches.
const LOOKED_AT: usize = 200_000;
/// How many names deep anything is looked at.
const DEEPEST: usize = 128;

/// Its description.
pub static LIST_DIRECTORY: ToolSpec = ToolSpec::new(
    "LIST_DIRECTORY",
    "Shows what is in a directory, or what a glob matches, as a tree. What git ignores is left out.",
    &[Parameter {
        name: "path",
        kind: ParameterKind::Path,
        meaning: "a directory, `.` for the project's root, or a glob like `src/**/*.ts`",
    }],
    Effect::Reads,
);

/// Lists directories.
#[derive(Debug, Clone, Copy)]
pub struct ListDirectory<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Whether directories elsewhere may be listed.
    pub outside: Outside,
}

impl Tool for ListDirectory<'_> {
    fn spec(&self) -> &ToolSpec {
        &LIST_DIRECTORY
    }

    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let text = self.list(arguments.get("path"));
        text.map(ToolOutput::said).map_err(ToolError::Failed)
    }
}

impl ListDirectory<'_> {
    fn list(&self, path: &str) -> Result<String, String> {
        let (directory, pattern) = self.split_glob(path);
        let place = ResolvedPath::of(self.root, directory, self.outside)?;
        let shown = place.shown();
        match place.look(self.root) {
            Ok(Found::Directory) => {}
            Ok(Found::Missing) => return Err(missing(self.root, &place)),
            Ok(_) if pattern.is_some() => return Err(format!("{shown} is not a directory")),
            Ok(Found::File(file)) => {
                let size = file.metadata().map_or(0, |metadata| metadata.len());
                return Ok(format!(
                    "{shown} is a file of {}; read it to see what is in it",
                    counted(size, "byte")
                ));
            }
            Ok(Found::Special) => return Ok(format!("{shown} is a pipe, a device or the like")),
            Err(error) => return Err(unreadable(&shown, &error)),
        }
        let wanted = pattern.map(Wanted::parse).transpose()?;
        let walked = Walk::of(self.root, &place, wanted.as_ref())
            .and_then(Walk::run)
            .map_err(|error| unreadable(&shown, &error))?;
        Ok(walked.render(&place, pattern))
    }

    /// The directory part of a path, and the glob behind it. What is there by that very name is no glob.
    fn split_glob<'p>(&self, path: &'p str) -> (&'p str, Option<&'p str>) {
        let is_glob = |text: &str| text.contains(['*', '?', '[', '{']);
        if !is_glob(path) || self.root.join(path).symlink_metadata().is_ok() {
            return (path, None);
        }
        let mut start = 0;
        for part in path.split_inclusive('/') {
            if is_glob(part) {
                break;
            }
            start += part.len();
        }
        let (directory, pattern) = path.split_at(start);
        let directory = if directory.is_empty() { "." } else { directory };
        (directory, Some(pattern))
    }
}

/// What a glob matches, below its directory part.
struct Wanted {
    glob: GlobMatcher,
    /// How many names deep a match can be.
    depth: usize,
}

impl Wanted {
    fn parse(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.trim_end_matches('/');
        if pattern.split('/').any(|name| name == "..") {
            return Err(format!(
                "{} has a `..` behind a wildcard; name the directory in front of it",
                quoted(pattern)
            ));
        }
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let glob = glob.map_err(|error| {
            format!(
                "{} is no glob: {}; `*`, `?`, `**`, `[ab]` and `{{a,b}}` are known",
                quoted(pattern),
                error.kind()
            )
        })?;
        let depth = if pattern.contains("**") {
            usize::MAX
        } else {
            pattern.matches('/').count() + 1
        };
        Ok(Self {
            glob: glob.compile_matcher(),
            depth,
        })
    }
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    /// A link, and what it names.
    Link(String),
}

/// Something in a directory.
#[derive(Debug, Clone)]
struct Entry {
    name: String,
    kind: Kind,
}

/// What is in a directory.
struct Entries {
    kept: Vec<Entry>,
    /// How many are left out, since git ignores them.
    left_out: usize,
    /// Whether there are more than are looked at.
    is_cut_short: bool,
}

/// One directory of the tree that is shown.
#[derive(Debug, Default)]
struct Node {
    entries: Vec<Entry>,
    /// How many there was no room for.
    left_out: u64,
    /// Whether nobody has looked into it.
    is_closed: bool,
}

/// Goes through directories by breadth, so that what is near is shown before what is deep.
struct Walk<'w> {
    top: Root,
    /// The directory's own path from the handle on.
    start: String,
    /// Git's rules, and the directory's path as they have it.
    rules: Option<(IgnoreRules, String)>,
    wanted: Option<&'w Wanted>,
    tree: Tree,
    looked_at: usize,
}

/// What was found, by the directories' paths from the listed one on, which is "" itself.
#[derive(Debug, Default)]
struct Tree {
    nodes: HashMap<String, Node>,
    shown: usize,
    /// How many directories nobody has looked into.
    closed: u64,
    /// Whether more was there than is looked at.
    cut_short: bool,
    /// How many directories could not be read.
    unreadable: u64,
}

impl<'w> Walk<'w> {
    fn of(root: &Path, place: &ResolvedPath, wanted: Option<&'w Wanted>) -> io::Result<Self> {
        let (top, start) = place.directory(root)?;
        Ok(Self {
            rules: rules(root, place, &start),
            top,
            start,
            wanted,
            tree: Tree::default(),
            looked_at: 0,
        })
    }

    fn run(mut self) -> io::Result<Tree> {
        let mut queue = VecDeque::from([(String::new(), 0_usize)]);
        while let Some((path, depth)) = queue.pop_front() {
            let is_full = self.tree.shown >= SHOWN || self.looked_at >= LOOKED_AT;
            if is_full && depth > 0 || depth >= DEEPEST {
                self.close(&path);
                continue;
            }
            let Entries {
                kept,
                left_out,
                is_cut_short,
            } = match self.entries(&path) {
                Ok(entries) => entries,
                Err(error) if depth == 0 => return Err(error),
                Err(_) => {
                    self.tree.unreadable += 1;
                    self.tree.nodes.entry(path).or_default().is_closed = true;
                    continue;
                }
            };
            self.looked_at += kept.len() + left_out;
            self.tree.cut_short |= is_cut_short;
            if kept.is_empty() && left_out > 0 {
                // To git, a directory is what is in it.
                self.tree.remove(&path);
            }
            // One large directory must not hide what is beside it.
            let left = SHOWN.saturating_sub(self.tree.shown);
            let room = if queue.is_empty() { left } else { left / 2 };
            let most = self.tree.shown + room.max(1);
            for entry in kept {
                let below = joined(&path, &entry.name);
                let is_directory = entry.kind == Kind::Directory;
                let is_shown = self.take(&path, &below, entry, most);
                let may_match = self.wanted.is_none_or(|wanted| depth + 1 < wanted.depth);
                if is_directory && may_match && is_shown {
                    queue.push_back((below, depth + 1));
                }
            }
        }
        Ok(self.tree)
    }

    /// Notes that nobody looks into a directory.
    fn close(&mut self, path: &str) {
        if self.wanted.is_some() {
            self.tree.cut_short = true;
            return;
        }
        self.tree.closed += 1;
        self.tree
            .nodes
            .entry(path.to_owned())
            .or_default()
            .is_closed = true;
    }

    /// Takes an entry into the tree where it is wanted and no more than `most` are there; whether what is
    /// below it may be shown.
    fn take(&mut self, directory: &str, path: &str, entry: Entry, most: usize) -> bool {
        if let Some(wanted) = self.wanted {
            if wanted.glob.is_match(path) {
                self.tree.insert_with_parents(directory, entry);
            }
            return true;
        }
        self.tree.insert(directory, entry, most)
    }

    /// What is in a directory: files first, each kind by name.
    fn entries(&self, path: &str) -> io::Result<Entries> {
        let handle = self.top.directory_to_read(&joined(&self.start, path))?;
        let (mut kept, mut left_out, mut is_cut_short) = (Vec::new(), 0, false);
        let most = LOOKED_AT.saturating_sub(self.looked_at);
        let directory = Dir::read_from(&handle)?;
        for found in directory {
            let found = found?;
            let name = found.file_name();
            if matches!(name.to_bytes(), b"." | b".." | b".git") {
                continue;
            }
            if kept.len() + left_out >= most {
                is_cut_short = true;
                break;
            }
            let kind = match found.file_type() {
                FileType::Unknown => statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| {
                        FileType::from_raw_mode(stat.st_mode)
                    }),
                known => known,
            };
            let kind = match kind {
                FileType::Directory => Kind::Directory,
                FileType::Symlink => {
                    let target = readlinkat(&handle, name, Vec::new()).unwrap_or_default();
                    Kind::Link(target.to_string_lossy().into_owned())
                }
                _ => Kind::File,
            };
            let name = name.to_string_lossy().into_owned();
            if self.is_left_out(&joined(path, &name), &kind) {
                left_out += 1;
            } else {
                kept.push(Entry { name, kind });
            }
        }
        kept.sort_by(|a, b| order(a).cmp(&order(b)));
        Ok(Entries {
            kept,
            left_out,
            is_cut_short,
        })
    }

    /// Whether git ignores what is at a path. Where that cannot be told, it is shown.
    fn is_left_out(&self, path: &str, kind: &Kind) -> bool {
        let Some((rules, prefix)) = &self.rules else {
            return false;
        };
        let path = joined(prefix, path);
        let ignored = match kind {
            Kind::Directory => rules.is_directory_ignored(&path),
            _ => rules.is_ignored(&path),
        };
        ignored.unwrap_or(false)
    }
}

/// Git's rules for what is below a place; none where git ignores the place itself, as it was named all the
/// same, and none elsewhere than in a repository.
fn rules(root: &Path, place: &ResolvedPath, start: &str) -> Option<(IgnoreRules, String)> {
    let (top, prefix): (PathBuf, &str) = match place {
        ResolvedPath::Inside(_) => (root.to_path_buf(), start),
        ResolvedPath::Outside(path) => {
            let mut above = path.ancestors();
            above.find(|directory| directory.join(".git").symlink_metadata().is_ok())?;
            (path.clone(), "")
        }
    };
    let rules = IgnoreRules::load(&top).ok()?;
    let is_ignored = !prefix.is_empty() && rules.is_directory_ignored(prefix).unwrap_or(false);
    (!is_ignored).then(|| (rules, prefix.to_owned()))
}

fn joined(directory: &str, name: &str) -> String {
    match (directory, name) {
        ("", path) | (path, "") => path.to_owned(),
        _ => format!("{directory}/{name}"),
    }
}

impl Tree {
    /// Whether there was room, `most` being how many may be there.
    fn insert(&mut self, directory: &str, entry: Entry, most: usize) -> bool {
        let node = self.nodes.entry(directory.to_owned()).or_default();
        if self.shown >= most {
            node.left_out += 1;
            return false;
        }
        self.shown += 1;
        node.entries.push(entry);
        true
    }

    /// Takes a directory out that has nothing in it.
    fn remove(&mut self, path: &str) {
        let (parent, name) = split(path);
        if let Some(node) = self.nodes.get_mut(parent) {
            let before = node.entries.len();
            node.entries.retain(|entry| entry.name != name);
            self.shown -= before - node.entries.len();
        }
    }

    fn insert_with_parents(&mut self, directory: &str, entry: Entry) {
        if !self.insert(directory, entry, SHOWN) {
            return;
        }
        // The way there is shown too; a parent that is there already has its own parents.
        let mut path = directory;
        while !path.is_empty() {
            let (parent, name) = split(path);
            let node = self.nodes.entry(parent.to_owned()).or_default();
            let is_there = node
                .entries
                .iter()
                .any(|entry| entry.kind == Kind::Directory && entry.name == name);
            if is_there {
                break;
            }
            let name = name.to_owned();
            let kind = Kind::Directory;
            node.entries.push(Entry { name, kind });
            path = parent;
        }
    }

    fn render(mut self, place: &ResolvedPath, pattern: Option<&str>) -> String {
        let nothing = self.nodes.is_empty();
        let top = match place {
            ResolvedPath::Inside(path) if path.is_empty() => "./".to_owned(),
            ResolvedPath::Inside(path) => format!("{}/", escaped(path)),
            ResolvedPath::Outside(path) => {
                let path = path.to_string_lossy();
                format!("{}/", escaped(path.trim_end_matches('/')))
            }
        };
        let mut text = match pattern {
            _ if !nothing => {
                let mut text = format!("{top}\n");
                self.render_below("", "", &mut text);
                text
            }
            Some(pattern) => format!("no files in {} match {}\n", place.shown(), quoted(pattern)),
            None => format!(
                "{} is empty, or all in it is ignored by git\n",
                place.shown()
            ),
        };
        if self.closed > 0 {
            let closed = several(self.closed, "directory", "directories");
            text.push_str(&format!(
                "[{closed} marked `…` not looked into; list them by their own paths]\n"
            ));
        }
        if self.cut_short {
            text.push_str("[the tree is too large to be searched whole; name a directory in it]\n");
        }
        if self.unreadable > 0 {
            let count = self.unreadable;
            text.push_str(&format!("[not readable, and marked `…`: {count}]\n"));
        }
        text
    }

    fn render_below(&mut self, path: &str, indent: &str, text: &mut String) {
        let Some(mut node) = self.nodes.remove(path) else {
            return;
        };
        // A glob's way to a match is noted when the match is found.
        node.entries.sort_by(|a, b| order(a).cmp(&order(b)));
        let more = (node.left_out > 0).then(|| {
            let entries = several(node.left_out, "entry more", "entries more");
            format!("[... {entries} ...]")
        });
        let count = node.entries.len() + usize::from(more.is_some());
        for (at, entry) in node.entries.iter().enumerate() {
            let is_last = at + 1 == count;
            let branch = if is_last { "└── " } else { "├── " };
            let below = joined(path, &entry.name);
            let name = escaped(&entry.name);
            let is_closed = self.nodes.get(&below).is_some_and(|node| node.is_closed);
            let line = match &entry.kind {
                Kind::File => name,
                Kind::Directory if is_closed => format!("{name}/ …"),
                Kind::Directory => format!("{name}/"),
                Kind::Link(target) => format!("{name} -> {}", escaped(target)),
            };
            text.push_str(&format!("{indent}{branch}{line}\n"));
            if entry.kind == Kind::Directory {
                let rail = if is_last { "    " } else { "│   " };
                self.render_below(&below, &format!("{indent}{rail}"), text);
            }
        }
        if let Some(more) = more {
            text.push_str(&format!("{indent}└── {more}\n"));
        }
    }
}

fn several(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(count), if count == 1 { one } else { many })
}

/// Files first, each kind by name.
fn order(entry: &Entry) -> (bool, &str) {
    (entry.kind == Kind::Directory, &entry.name)
}

#[cfg(test)]
mod tests;
