//! What changed between two states of files, as git shows it: `git diff --stat`, `git diff`, and
//! hunks for a page. Pure.
//!
//! Guarantees that the work is bounded by what is compared, never by a clock, so that equal input
//! gives equal output: files beyond [`MAX_BYTES`] or [`MAX_LINES`] are treated as binary, and where
//! a search for the shortest difference would take too long, what is left counts as replaced.

mod compare;
mod hunk;
mod quote;
mod slide;
mod stat;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::{self, Write};

pub use hunk::{Hunk, Kind, Line, hunks};
pub use stat::{Content, FileStat, Stat, stat};

use quote::quoted_behind;

/// The size beyond which a file is not compared.
pub const MAX_BYTES: usize = 16 << 20;

/// What a new file's mode is taken for: what almost every umask makes of it.
pub const NEW_MODE: u32 = 0o644;

/// The number of lines beyond which a file is not compared.
pub const MAX_LINES: usize = 1 << 20;

/// One file, before and after. It was created where `before` is missing, deleted where `after` is;
/// where both are, there is nothing to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Relative to the project's root, with slashes.
    pub path: String,
    /// What it was.
    pub before: Option<State>,
    /// What it is now.
    pub after: Option<State>,
}

/// A file's bytes and mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// All of its bytes.
    pub content: Vec<u8>,
    /// The permission bits, of which git keeps one: whether the owner may execute the file.
    pub mode: u32,
}

impl State {
    /// An empty file.
    #[must_use]
    pub fn empty(mode: u32) -> Self {
        Self {
            content: Vec::new(),
            mode,
        }
    }

    fn is_executable(&self) -> bool {
        self.mode & 0o100 != 0
    }

    /// The mode as git writes it.
    fn git_mode(&self) -> &'static str {
        if self.is_executable() {
            "100755"
        } else {
            "100644"
        }
    }
}

impl FileChange {
    fn before(&self) -> &[u8] {
        content(self.before.as_ref())
    }

    fn after(&self) -> &[u8] {
        content(self.after.as_ref())
    }

    fn changes_mode(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.is_executable() != after.is_executable(),
            _ => false,
        }
    }

    /// Whether git has anything to show: an empty file that is created or deleted counts.
    fn is_shown(&self) -> bool {
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => before.content != after.content || self.changes_mode(),
            (before, after) => before.is_some() != after.is_some(),
        }
    }
}

/// A file that is not there has no bytes.
fn content(state: Option<&State>) -> &[u8] {
    state.map_or(&[], |state| &state.content)
}

/// What git shows of `changes`, in git's order: by the paths' bytes.
fn in_order(changes: &[FileChange]) -> Vec<&FileChange> {
    let mut shown: Vec<&FileChange> = changes.iter().filter(|change| change.is_shown()).collect();
    shown.sort_by(|one, other| one.path.cmp(&other.path));
    shown
}

/// The changes as a unified diff; what is not UTF-8 in them is replaced.
#[must_use]
pub fn text(changes: &[FileChange]) -> String {
    let mut text = Vec::new();
    // A vector takes all that is written.
    let _ = unified(changes, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Writes what `git diff --no-renames` prints, but for the `index` lines; `git apply` takes it,
/// where no file is binary.
///
/// # Errors
/// The writer's.
pub fn unified(changes: &[FileChange], out: &mut dyn Write) -> io::Result<()> {
    for change in in_order(changes) {
        let names = Names::of(change);
        write_header(change, out)?;
        match hunks(change.before(), change.after()) {
            Some(hunks) => write_hunks(&names, &hunks, out)?,
            None if change.before() == change.after() => {}
            None => {
                let Names { before, after } = names;
                writeln!(out, "Binary files {before} and {after} differ")?;
            }
        }
    }
    Ok(())
}

/// What the two sides of a change are called.
struct Names<'a> {
    before: Cow<'a, str>,
    after: Cow<'a, str>,
}

impl Names<'_> {
    fn of(change: &FileChange) -> Self {
        let name = |state: &Option<State>, prefix| match state {
            Some(_) => Cow::Owned(quoted_behind(prefix, &change.path)),
            None => Cow::Borrowed("/dev/null"),
        };
        Self {
            before: name(&change.before, "a/"),
            after: name(&change.after, "b/"),
        }
    }
}

fn write_header(change: &FileChange, out: &mut dyn Write) -> io::Result<()> {
    let path = &change.path;
    writeln!(
        out,
        "diff --git {} {}",
        quoted_behind("a/", path),
        quoted_behind("b/", path)
    )?;
    match (&change.before, &change.after) {
        (None, Some(after)) => writeln!(out, "new file mode {}", after.git_mode()),
        (Some(before), None) => writeln!(out, "deleted file mode {}", before.git_mode()),
        (Some(before), Some(after)) if change.changes_mode() => {
            writeln!(out, "old mode {}", before.git_mode())?;
            writeln!(out, "new mode {}", after.git_mode())
        }
        _ => Ok(()),
    }
}

fn write_hunks(names: &Names, hunks: &[Hunk], out: &mut dyn Write) -> io::Result<()> {
    if hunks.is_empty() {
        return Ok(());
    }
    for (sign, name) in [("---", &names.before), ("+++", &names.after)] {
        // Without the tab, a reader may take a blank for the name's end.
        let tab = if name.contains(' ') { "\t" } else { "" };
        writeln!(out, "{sign} {name}{tab}")?;
    }
    hunks.iter().try_for_each(|hunk| write_hunk(hunk, out))
}

fn write_hunk(hunk: &Hunk, out: &mut dyn Write) -> io::Result<()> {
    let before = range(hunk.before_start, hunk.before_count());
    let after = range(hunk.after_start, hunk.after_count());
    write!(out, "@@ -{before} +{after} @@")?;
    if let Some(heading) = hunk.heading {
        out.write_all(b" ")?;
        out.write_all(heading)?;
    }
    out.write_all(b"\n")?;
    for line in &hunk.lines {
        let sign: &[u8] = match line.kind {
            Kind::Context => b" ",
            Kind::Removed => b"-",
            Kind::Added => b"+",
        };
        out.write_all(sign)?;
        out.write_all(line.text)?;
        out.write_all(b"\n")?;
        if !line.newline {
            out.write_all(b"\\ No newline at end of file\n")?;
        }
    }
    Ok(())
}

/// A hunk's place in one of the files; git leaves out a count of one.
fn range(start: usize, count: usize) -> String {
    if count == 1 {
        start.to_string()
    } else {
        format!("{start},{count}")
    }
}
