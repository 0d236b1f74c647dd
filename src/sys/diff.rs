//! Differences between two states of files, as git shows them: `git diff --stat`, `git diff`, and hunks for a page.
//! Pure.
//!
//! Guarantees that the work is bounded by what is compared, never by a clock, so that equal input
//! gives equal output: files beyond [`MAX_BYTES`] or [`MAX_LINES`] are treated as binary, and where
//! a search for the difference would take too long, the lines count as replaced.

mod compare;
mod hunk;
mod quote;
mod stat;
#[cfg(test)]
mod tests;

pub use hunk::{Hunk, Line, LineKind, hunks};
pub use stat::{FileStat, Stat, StatKind, stat};

use quote::quoted_behind;

/// The size beyond which a file is not compared.
pub const MAX_BYTES: usize = 16 << 20;

/// The mode that a new file is assumed to have: the one that almost every umask produces.
pub const NEW_MODE: u32 = 0o644;

/// The number of lines beyond which a file is not compared.
pub const MAX_LINES: usize = 1 << 20;

/// The number of lines, between the first and the last that differ, beyond which on both sides all of
/// them count as replaced: a search among them takes a second at worst.
const MAX_SEARCHED: usize = 200_000;

/// One file, before and after. It was created where `before` is missing, deleted where `after` is;
/// where both are, there is nothing to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the project's root, with slashes.
    pub path: String,
    /// The state before.
    pub before: Option<FileState>,
    /// The state after.
    pub after: Option<FileState>,
}

/// A file's bytes and mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// All of its bytes.
    pub content: Vec<u8>,
    /// The permission bits, of which git keeps one: whether the owner may execute the file.
    pub mode: u32,
}

impl FileState {
    /// An empty file.
    #[must_use]
    pub fn empty(mode: u32) -> Self {
        Self {
            content: Vec::new(),
            mode,
        }
    }

    /// The mode as git writes it.
    fn git_mode(&self) -> &'static str {
        if self.mode & 0o100 == 0 {
            "100644"
        } else {
            "100755"
        }
    }
}

impl FileChange {
    /// Returns the change of a file in its bytes alone: its mode is that of a new file, and stays.
    #[must_use]
    pub fn of(path: String, before: Option<Vec<u8>>, after: Option<Vec<u8>>) -> Self {
        let state = |content| FileState {
            content,
            mode: NEW_MODE,
        };
        Self {
            path,
            before: before.map(state),
            after: after.map(state),
        }
    }

    /// The bytes that it had; none where it was not there.
    pub(crate) fn before(&self) -> &[u8] {
        content(self.before.as_ref())
    }

    /// The bytes that it has now; none where it is not there.
    pub(crate) fn after(&self) -> &[u8] {
        content(self.after.as_ref())
    }

    /// The modes as git writes them, of a side that is there.
    fn modes(&self) -> [Option<&'static str>; 2] {
        [&self.before, &self.after].map(|state| state.as_ref().map(FileState::git_mode))
    }

    /// Returns whether git has anything to show: an empty file that is created or deleted counts.
    fn is_shown(&self) -> bool {
        let [before, after] = self.modes();
        before != after || self.before() != self.after()
    }
}

/// A file that is not there has no bytes.
fn content(state: Option<&FileState>) -> &[u8] {
    state.map_or(&[], |state| &state.content)
}

/// Returns the changes that git shows, in git's order: by the paths' bytes.
pub(crate) fn in_order(changes: &[FileChange]) -> Vec<&FileChange> {
    let mut shown: Vec<&FileChange> = changes.iter().filter(|change| change.is_shown()).collect();
    shown.sort_by(|one, other| one.path.cmp(&other.path));
    shown
}

/// The changes as `git diff --no-renames` prints them, but for the `index` lines; what is not UTF-8 in
/// them is replaced.
#[must_use]
pub fn text(changes: &[FileChange]) -> String {
    String::from_utf8_lossy(&unified(changes)).into_owned()
}

/// The same as bytes, which `git apply` takes, where no file is binary.
fn unified(changes: &[FileChange]) -> Vec<u8> {
    let mut out = Vec::new();
    for change in in_order(changes) {
        let names = [("a/", &change.before), ("b/", &change.after)];
        let names = names.map(|(prefix, state)| match state {
            Some(_) => quoted_behind(prefix, &change.path),
            None => "/dev/null".to_owned(),
        });
        out.extend(header(change).bytes());
        match hunks(change.before(), change.after()) {
            Some(hunks) => push_hunks(&mut out, &names, &hunks),
            None if change.before() == change.after() => {}
            None => {
                let [before, after] = names;
                out.extend(format!("Binary files {before} and {after} differ\n").bytes());
            }
        }
    }
    out
}

fn header(change: &FileChange) -> String {
    let [before, after] = ["a/", "b/"].map(|prefix| quoted_behind(prefix, &change.path));
    let modes = match change.modes() {
        [None, Some(mode)] => format!("new file mode {mode}\n"),
        [Some(mode), None] => format!("deleted file mode {mode}\n"),
        [Some(old), Some(new)] if old != new => format!("old mode {old}\nnew mode {new}\n"),
        _ => String::new(),
    };
    format!("diff --git {before} {after}\n{modes}")
}

fn push_hunks(out: &mut Vec<u8>, [before, after]: &[String; 2], hunks: &[Hunk]) {
    if hunks.is_empty() {
        return;
    }
    for (sign, name) in [("---", before), ("+++", after)] {
        // Without the tab, a reader may take a blank for the name's end.
        let tab = if name.contains(' ') { "\t" } else { "" };
        out.extend(format!("{sign} {name}{tab}\n").bytes());
    }
    for hunk in hunks {
        push_hunk(out, hunk);
    }
}

fn push_hunk(out: &mut Vec<u8>, hunk: &Hunk) {
    let before = range(hunk.before_start, hunk.before_count());
    let after = range(hunk.after_start, hunk.after_count());
    out.extend(format!("@@ -{before} +{after} @@").bytes());
    if let Some(heading) = hunk.heading {
        out.extend([b" ", heading].concat());
    }
    out.push(b'\n');
    for line in &hunk.lines {
        out.push(match line.kind {
            LineKind::Context => b' ',
            LineKind::Removed => b'-',
            LineKind::Added => b'+',
        });
        out.extend(line.text);
        let end = if line.newline {
            "\n"
        } else {
            "\n\\ No newline at end of file\n"
        };
        out.extend(end.bytes());
    }
}

/// A hunk's place in one of the files; git leaves out a count of one.
fn range(start: usize, count: usize) -> String {
    match count {
        1 => start.to_string(),
        _ => format!("{start},{count}"),
    }
}
