//! Differences between two states of files, as git shows them: `git diff --stat`, `git diff`, and hunks for a page.
//! Pure.
//!
//! Guarantees that the work is bounded by the size of the input, never by a clock, so that equal input
//! gives equal output: all lines of files that exceed [`MAX_BYTES`] or `MAX_LINES` count as replaced, and if the
//! search for a minimal difference would take too long, the lines count as replaced.

mod change;
mod compare;
mod hunk;
mod quote;
mod stat;
#[cfg(test)]
mod tests;

pub(crate) use change::in_order;
pub use change::{FileChange, FileState, MAX_BYTES, NEW_MODE};
pub(crate) use compare::{Comparison, LineChange};
pub use hunk::{Hunk, Line, LineKind, hunks};
pub use stat::{FileStat, Stat, stat};

use compare::is_text;
use quote::quoted_behind;

/// Formats the changes like `git diff --no-renames`, but without `index` lines; invalid UTF-8 is replaced.
pub fn text(changes: &[FileChange]) -> String {
    String::from_utf8_lossy(&unified(changes)).into_owned()
}

/// Formats the changes as bytes. `git apply` accepts them if no file is binary.
fn unified(changes: &[FileChange]) -> Vec<u8> {
    let mut out = Vec::new();
    for change in in_order(changes) {
        let names =
            [("a/", &change.before), ("b/", &change.after)].map(|(prefix, state)| match state {
                Some(_) => quoted_behind(prefix, &change.path),
                None => "/dev/null".to_owned(),
            });
        out.extend(header(change).bytes());
        match hunks(change.before(), change.after()) {
            Some(hunks) => push_hunks(&mut out, &names, &hunks),
            None if change.before() == change.after() => {}
            None => {
                let [before, after] = names;
                let is_text = is_text(change.before()) && is_text(change.after());
                // git takes both for binary files, and refuses to apply them.
                let line = if is_text {
                    format!("Files {before} and {after} are too large to compare, and differ\n")
                } else {
                    format!("Binary files {before} and {after} differ\n")
                };
                out.extend(line.bytes());
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
        // Without the tab, some tools take the first blank for the end of the name.
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

/// Formats a hunk's position in one of the files; like git, omits a count of 1.
fn range(start: usize, count: usize) -> String {
    match count {
        1 => start.to_string(),
        _ => format!("{start},{count}"),
    }
}
