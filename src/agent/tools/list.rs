//! `LIST_DIRECTORY`: lists a directory, or the matches of a glob, as a tree.
//!
//! Reads directories and git's ignore files. Guarantees that it follows no links, that its output and the number of
//! entries it examines are limited however large the tree is, and that an interrupt ends it.

use std::cmp::Ordering;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;

use globset::{GlobBuilder, GlobSet};

use super::files::ReadAccess;
use super::resolved_path::{Found, ResolvedPath, quoted, unreadable};
use crate::agent::tool::{Arguments, Effect, Parameter, Tool, ToolError, ToolOutput, ToolSpec};
use crate::edit::beneath::split;
use crate::project::gitignore::IgnoreRules;
use crate::project::repository::nearest_top;
use crate::project::walk::{DEEPEST, Entry, EntryKind, Walk, joined};
use crate::record::tool::Verb;
use crate::sys::numbers::{counted, grouped};
use crate::sys::text::{cut, escaped};

/// Maximum number of entries shown.
const SHOWN: usize = 1000;
/// Maximum number of entries examined to find the matches of a glob.
const LOOKED_AT: usize = 200_000;
/// Maximum length of a glob, in bytes. Nested groups are parsed recursively, and matching time grows with the length.
const LONGEST_GLOB: usize = 1000;
/// Maximum length of an error about a glob, in characters; it may quote the pattern that the glob was converted to.
const QUOTED_ERROR: usize = 200;

/// The description of `LIST_DIRECTORY`.
pub static LIST_DIRECTORY: ToolSpec = ToolSpec::new(
    "LIST_DIRECTORY",
    "Shows what is in a directory, or what a glob matches, as a tree of at most 1,000 entries. What git ignores is \
     left out. A glob has at most 1,000 bytes.",
    &[Parameter::path("path", "a directory, `.` for the project's root, or a glob like `src/**/*.ts`")
    .example("src/**/*.ts")],
    Effect::Reads,
)
.doing(Verb::List);

/// Lists directories, or the matches of a glob in them.
#[derive(Debug, Clone, Copy)]
pub struct ListDirectory<'a>(pub ReadAccess<'a>);

impl Tool for ListDirectory<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let path = arguments.get("path");
        let listed = match arguments.get("pattern").trim() {
            // Without a pattern, the path may be a glob.
            "" => self.list(path),
            pattern => self.tree(path, Some(pattern)),
        };
        self.0.interrupt.check()?;
        let (text, shown) = listed?;
        let brief = shown.map(|count| match count {
            1 => "1 entry".to_owned(),
            count => format!("{} entries", grouped(count as u64)),
        });
        Ok(ToolOutput::text(text).in_brief(brief))
    }
}

/// The description of `list_files`, which takes a directory and a glob.
pub static LIST_FILES: ToolSpec = ToolSpec::new(
    "list_files",
    "Shows what is in a directory, or what a glob matches there, as a tree of at most 1,000 entries, without what git \
     ignores.",
    &[
        Parameter::path("path", "The directory").or("."),
        Parameter::text("pattern", "A glob, relative to the directory: `*.rs` for the files in it, `**/*.rs` for those below it, too")
        .optional(),
    ],
    Effect::Reads,
)
.doing(Verb::List);

/// The tree as text, and its number of entries.
type Listing = (String, Option<usize>);

impl ListDirectory<'_> {
    /// Lists a path that may be a glob.
    fn list(&self, path: &str) -> Result<Listing, String> {
        let (directory, pattern) = self.split_glob(path);
        self.tree(directory, pattern)
    }

    fn tree(&self, directory: &str, pattern: Option<&str>) -> Result<Listing, String> {
        let ReadAccess { root, outside, .. } = self.0;
        let place = ResolvedPath::of(root, directory, outside)?;
        let shown = place.shown();
        match place.find(root)? {
            Found::Directory => {}
            _ if pattern.is_some() => return Err(format!("{shown} is not a directory")),
            Found::File(file) => {
                let bytes = file.metadata().map_or(0, |metadata| metadata.len());
                let size = counted(bytes, "byte");
                let text = format!("{shown} is a file of {size}; read it to see what is in it");
                return Ok((text, None));
            }
            Found::Special => {
                return Ok((format!("{shown} is a pipe, a device or the like"), None));
            }
        }
        let glob = pattern.map(Glob::parse).transpose()?;
        let walk = walk_of(&self.0, &place);
        let tree = walk
            .and_then(|(walk, _)| Tree::new(walk, glob).run())
            .map_err(|error| unreadable(&shown, &error))?;
        let count = tree.shown;
        Ok((tree.render(&shown, pattern), Some(count)))
    }

    /// Splits a path into its directory and the glob after it. A path that exists literally is not a glob.
    fn split_glob<'p>(&self, path: &'p str) -> (&'p str, Option<&'p str>) {
        let is_glob = |text: &str| text.contains(['*', '?', '[', '{']);
        if !is_glob(path) || self.0.root.join(path).symlink_metadata().is_ok() {
            return (path, None);
        }
        let parts = path.split_inclusive('/');
        let start = parts.take_while(|part| !is_glob(part)).map(str::len).sum();
        match path.split_at(start) {
            ("", pattern) => (".", Some(pattern)),
            (directory, pattern) => (directory, Some(pattern)),
        }
    }
}

/// A glob without its directory part.
struct Glob {
    /// A set of one pattern: unlike a single matcher, it reports an error if the pattern is too complex.
    matcher: GlobSet,
    /// The maximum number of path components in a match.
    depth: usize,
}

impl Glob {
    fn parse(pattern: &str) -> Result<Self, String> {
        let pattern = pattern.trim_end_matches('/');
        if pattern.split('/').any(|name| name == "..") {
            return Err(format!(
                "{} has a `..` after a wildcard; name the directory in front of it",
                quoted(pattern)
            ));
        }
        if pattern.len() > LONGEST_GLOB {
            return Err(format!(
                "the glob is longer than {LONGEST_GLOB} bytes; use a shorter one, or several"
            ));
        }
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let matcher = glob
            .and_then(|glob| GlobSet::new([glob]))
            .map_err(|error| {
                format!(
                    "{} is no glob: {}; `*`, `?`, `**`, `[ab]` and `{{a,b}}` are known",
                    quoted(pattern),
                    cut(&error.kind().to_string(), QUOTED_ERROR)
                )
            })?;
        let depth = if pattern.contains("**") {
            usize::MAX
        } else {
            pattern.matches('/').count() + 1
        };
        Ok(Self { matcher, depth })
    }
}

/// A directory of the displayed tree.
#[derive(Debug, Default)]
struct Node {
    entries: Vec<Entry>,
    /// The number of entries omitted for lack of room.
    left_out: u64,
    /// Set if the directory was not read.
    is_closed: bool,
    /// Set if git ignores everything in it; to git, a directory is its content.
    is_ignored: bool,
}

/// The tree to display. Directories are traversed breadth-first, so that shallow entries are shown before deep ones.
struct Tree<'w> {
    walk: Walk<'w>,
    glob: Option<Glob>,
    /// Directories by their paths relative to the listed one, which is "" itself.
    nodes: HashMap<String, Node>,
    shown: usize,
}

impl<'w> Tree<'w> {
    fn new(walk: Walk<'w>, glob: Option<Glob>) -> Self {
        Self {
            walk,
            glob,
            nodes: HashMap::new(),
            shown: 0,
        }
    }

    fn run(mut self) -> io::Result<Self> {
        let mut queue = VecDeque::from([(String::new(), 0_usize)]);
        while let Some((path, depth)) = queue.pop_front() {
            let is_full = self.shown >= SHOWN || self.walk.is_over();
            if is_full && depth > 0 || depth >= DEEPEST {
                self.close(path);
                continue;
            }
            let entries = self.entries(&path);
            if entries.is_err() && depth > 0 {
                self.close(path);
                continue;
            }
            // A large directory must not hide the ones next to it.
            let left = SHOWN.saturating_sub(self.shown);
            let room = if queue.is_empty() { left } else { left / 2 };
            let most = self.shown + room.max(1);
            for entry in entries? {
                let below = joined(&path, &entry.name);
                let is_directory = entry.kind == EntryKind::Directory;
                let enters = match &self.glob {
                    Some(glob) => {
                        let may_match = depth + 1 < glob.depth;
                        if glob.matcher.is_match(&below) {
                            self.insert_with_parents(&path, entry);
                        }
                        may_match
                    }
                    None => self.insert(&path, entry, most),
                };
                if is_directory && enters {
                    queue.push_back((below, depth + 1));
                }
            }
        }
        Ok(self)
    }

    /// Marks a directory as not read.
    fn close(&mut self, path: String) {
        self.walk.is_cut_short = true;
        if self.glob.is_none() {
            self.nodes.entry(path).or_default().is_closed = true;
        }
    }

    /// Lists the directory at `path`, files before directories.
    fn entries(&mut self, path: &str) -> io::Result<Vec<Entry>> {
        let (mut entries, ignores) = self.walk.entries(path)?;
        if entries.is_empty() && ignores && !path.is_empty() {
            self.nodes.entry(path.to_owned()).or_default().is_ignored = true;
        }
        entries.sort_by(order);
        Ok(entries)
    }
}

/// Starts a walk at a place; also returns the place's own path in the project.
fn walk_of<'w>(access: &ReadAccess<'w>, place: &ResolvedPath) -> io::Result<(Walk<'w>, String)> {
    let root = access.root;
    let (top, start) = place.directory(root)?;
    let rules = rules(root, place, &start);
    let from = start.clone();
    let open = move |path: &str| Ok(top.directory_to_read(&joined(&from, path))?);
    Ok((
        Walk::new(open, rules, LOOKED_AT).until(access.interrupt),
        start,
    ))
}

/// Lists the files below a directory, shallow ones before deep ones, up to the limit on examined entries; also returns
/// `true` if there are more.
pub(super) fn files_below(
    access: &ReadAccess<'_>,
    place: &ResolvedPath,
) -> io::Result<(Vec<ResolvedPath>, bool)> {
    let (mut walk, start) = walk_of(access, place)?;
    let mut files = Vec::new();
    walk.each(|below, kind| {
        if kind == EntryKind::File {
            files.push(match place {
                ResolvedPath::Inside(_) => ResolvedPath::Inside(joined(&start, &below)),
                ResolvedPath::Outside(top) => ResolvedPath::Outside(top.join(below)),
            });
        }
        true
    })?;
    Ok((files, walk.is_cut_short))
}

/// Returns git's ignore rules below a place; `None` if git ignores the place itself, since it was named explicitly, or
/// if a place outside the project is in no repository.
fn rules(root: &Path, place: &ResolvedPath, start: &str) -> Option<(IgnoreRules, String)> {
    let (top, prefix) = match place {
        ResolvedPath::Inside(_) => (root, start),
        ResolvedPath::Outside(path) => {
            nearest_top(path)?;
            (path.as_path(), "")
        }
    };
    let rules = IgnoreRules::load(top).ok()?;
    let is_ignored = !prefix.is_empty() && rules.is_ignored(prefix, true).unwrap_or(false);
    (!is_ignored).then(|| (rules, prefix.to_owned()))
}

impl Tree<'_> {
    /// Adds an entry if fewer than `most` are shown, and returns whether it was added.
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

    /// Adds an entry and all its parents.
    fn insert_with_parents(&mut self, directory: &str, entry: Entry) {
        if !self.insert(directory, entry, SHOWN) {
            return;
        }
        // A parent that is already in the tree has its own parents there.
        let mut path = directory;
        while !path.is_empty() {
            let (parent, name) = split(path);
            let node = self.nodes.entry(parent.to_owned()).or_default();
            let is_there = |entry: &Entry| entry.kind == EntryKind::Directory && entry.name == name;
            if node.entries.iter().any(is_there) {
                break;
            }
            node.entries.push(Entry {
                name: name.to_owned(),
                kind: EntryKind::Directory,
            });
            path = parent;
        }
    }

    /// Renders the tree as text; `shown` is the directory's name for the model.
    fn render(mut self, shown: &str, pattern: Option<&str>) -> String {
        let mut text = match pattern {
            _ if !self.nodes.is_empty() => {
                let mut text = format!("{}/\n", shown.trim_matches('`').trim_end_matches('/'));
                self.render_below("", "", &mut text);
                text
            }
            Some(pattern) => format!("no files in {shown} match {}\n", quoted(pattern)),
            None => format!("{shown} is empty, or all in it is ignored by git\n"),
        };
        if self.walk.is_cut_short {
            text.push_str(
                "[the tree is too large to be searched whole: what is marked `…` was not looked into; name a \
                 directory in it]\n",
            );
        }
        text
    }

    /// Renders the content of a directory, each line prefixed with `indent`.
    fn render_below(&mut self, path: &str, indent: &str, text: &mut String) {
        let Some(mut node) = self.nodes.remove(path) else {
            return;
        };
        // A glob adds entries in the order in which its matches are found.
        node.entries.sort_by(order);
        let mut lines = Vec::new();
        for Entry { name, kind } in node.entries {
            let below = joined(path, &name);
            let name = escaped(&name);
            match (kind, self.nodes.get(&below)) {
                (EntryKind::Directory, Some(node)) if node.is_ignored => {}
                (EntryKind::Directory, Some(node)) if node.is_closed => {
                    lines.push((format!("{name}/ …"), None));
                }
                (EntryKind::Directory, _) => lines.push((format!("{name}/"), Some(below))),
                (EntryKind::File, _) => lines.push((name, None)),
                (EntryKind::Link(target), _) => {
                    lines.push((format!("{name} -> {}", escaped(&target)), None));
                }
            }
        }
        if node.left_out > 0 {
            lines.push((format!("[... {} more ...]", grouped(node.left_out)), None));
        }
        let last = lines.len().saturating_sub(1);
        for (at, (line, below)) in lines.into_iter().enumerate() {
            let (branch, rail) = if at == last {
                ("└── ", "    ")
            } else {
                ("├── ", "│   ")
            };
            text.push_str(&format!("{indent}{branch}{line}\n"));
            if let Some(below) = below {
                self.render_below(&below, &format!("{indent}{rail}"), text);
            }
        }
    }
}

fn order(one: &Entry, other: &Entry) -> Ordering {
    let key = |entry: &Entry| entry.kind == EntryKind::Directory;
    (key(one), &one.name).cmp(&(key(other), &other.name))
}

#[cfg(test)]
mod tests;
