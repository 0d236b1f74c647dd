//! The summary of a change: `git diff --stat`. Pure.

use crate::sys::text::text_width;
use serde::Serialize;

use super::change::{FileChange, in_order};
use super::compare::Comparison;
use super::quote::quoted;

/// Changes per file, as `git diff --stat` shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Stat {
    /// Changed files, sorted by the bytes of their paths.
    pub files: Vec<FileStat>,
}

/// Change of one file. Serialized as its path and line counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileStat {
    /// Path, as in the [`FileChange`].
    pub path: String,
    /// Number of added lines; 0 for a binary file.
    pub added: u64,
    /// Number of removed lines; 0 for a binary file.
    pub removed: u64,
    /// Kind of file.
    #[serde(skip)]
    pub kind: StatKind,
}

/// Kind of a changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatKind {
    /// Text, whose lines are counted.
    Text,
    /// Binary before or after. Sizes are in bytes.
    Binary { before: u64, after: u64 },
    /// Binary or too large to compare, with only its mode changed.
    SameBinary,
}

/// Counts the changes per file.
pub fn stat(changes: &[FileChange]) -> Stat {
    let files = in_order(changes).into_iter().map(FileStat::of).collect();
    Stat { files }
}

impl FileStat {
    fn of(change: &FileChange) -> Self {
        Self::between(&change.path, change.before(), change.after())
    }

    /// Counts the changes of the file at this path.
    pub fn between(path: &str, before: &[u8], after: &[u8]) -> Self {
        let (mut added, mut removed, mut kind) = (0, 0, StatKind::Text);
        if let Some(lines) = Comparison::counts(before, after) {
            (removed, added) = lines;
        } else if before == after {
            kind = StatKind::SameBinary;
        } else {
            kind = StatKind::Binary {
                before: before.len() as u64,
                after: after.len() as u64,
            };
        }
        Self {
            path: path.to_owned(),
            added,
            removed,
            kind,
        }
    }

    fn changed(&self) -> u64 {
        self.added + self.removed
    }

    /// Returns the width of "Bin 1 -> 2 bytes" with the actual sizes.
    fn binary_width(&self) -> Option<usize> {
        match self.kind {
            StatKind::Text => None,
            StatKind::SameBinary => Some(14 + 1 + 1),
            StatKind::Binary { before, after } => Some(14 + digits(before) + digits(after)),
        }
    }
}

impl Stat {
    /// Returns the total number of added lines.
    pub fn added(&self) -> u64 {
        self.files.iter().map(|file| file.added).sum()
    }

    /// Returns the total number of removed lines.
    pub fn removed(&self) -> u64 {
        self.files.iter().map(|file| file.removed).sum()
    }

    /// Formats the changes like `git diff --stat=<width> --no-renames`: one line per file, then the summary, each
    /// ending with a newline. Empty if nothing changed.
    pub fn text(&self, width: usize) -> String {
        if self.files.is_empty() {
            return String::new();
        }
        let names: Vec<String> = self.files.iter().map(|file| quoted(&file.path)).collect();
        let columns = Columns::of(&self.files, &names, width);
        let line = |(file, name): (_, &String)| format!(" {}\n", columns.line(file, name));
        let lines: String = self.files.iter().zip(&names).map(line).collect();
        format!("{lines} {}\n", self.summary())
    }

    /// Formats the last line of [`Self::text`]: "2 files changed, 3 insertions(+), 1 deletion(-)".
    pub fn summary(&self) -> String {
        let (added, removed) = (self.added(), self.removed());
        let mut summary = counted(self.files.len() as u64, "file", " changed");
        // If no line changed, git shows both counts.
        if added > 0 || removed == 0 {
            summary += &format!(", {}", counted(added, "insertion", "(+)"));
        }
        if removed > 0 || added == 0 {
            summary += &format!(", {}", counted(removed, "deletion", "(-)"));
        }
        summary
    }
}

fn counted(count: u64, what: &str, rest: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}{rest}")
}

/// Column widths. The width of a name is the number of terminal columns it takes.
#[derive(Debug)]
struct Columns {
    name: usize,
    number: usize,
    graph: usize,
    /// Largest number of changed lines in one file.
    most: u64,
}

impl Columns {
    /// Gives the names as much width as they need, as long as the graph keeps three eighths of it.
    fn of(files: &[FileStat], names: &[String], width: usize) -> Self {
        let most = files.iter().map(FileStat::changed).max().unwrap_or(0);
        let longest = names.iter().map(|name| text_width(name)).max().unwrap_or(0);
        let binary = files.iter().filter_map(FileStat::binary_width).max();
        let number = digits(most).max(binary.map_or(0, |_| "Bin".len()));
        let width = width.max(16 + 6 + number);
        let wanted = usize::try_from(most).unwrap_or(usize::MAX);
        let mut columns = Self {
            name: longest,
            number,
            graph: wanted.max(binary.unwrap_or(0).saturating_sub(4)),
            most,
        };
        let rest = width - number - 6;
        if longest.saturating_add(columns.graph) > rest {
            columns.share(rest, (width * 3 / 8).saturating_sub(number + 6));
        }
        columns
    }

    /// Shares out the remaining width between names and graph.
    fn share(&mut self, room: usize, for_graph: usize) {
        if self.graph > for_graph {
            self.graph = for_graph.max(6);
        }
        if self.name + self.graph > room {
            self.name = room - self.graph;
        } else {
            self.graph = room - self.name;
        }
    }

    fn line(&self, file: &FileStat, name: &str) -> String {
        let (shortened, number) = (self.shortened(name), self.number);
        let blanks = " ".repeat(self.name.saturating_sub(text_width(&shortened)));
        let name = format!("{shortened}{blanks} |");
        match file.kind {
            StatKind::SameBinary => format!("{name} {:>number$}", "Bin"),
            StatKind::Binary { before, after } => {
                format!("{name} {:>number$} {before} -> {after} bytes", "Bin")
            }
            StatKind::Text => format!("{name} {:>number$} {}", file.changed(), self.graph(file))
                .trim_end()
                .to_owned(),
        }
    }

    /// Removes the beginning of a name that is too long, if possible up to a slash.
    fn shortened(&self, name: &str) -> String {
        if text_width(name) <= self.name {
            return name.to_owned();
        }
        let room = self.name.saturating_sub(3);
        let mut ends = name.char_indices().map(|(at, _)| &name[at..]);
        let longest = ends.find(|end| text_width(end) <= room).unwrap_or_default();
        format!("...{}", &longest[longest.find('/').unwrap_or(0)..])
    }

    /// Returns one plus or minus sign per line, or scales their number down if there is too little room.
    fn graph(&self, file: &FileStat) -> String {
        let (mut added, mut removed) = (file.added, file.removed);
        if self.graph as u64 <= self.most {
            let mut total = self.scaled(added + removed);
            if total < 2 && added > 0 && removed > 0 {
                total = 2;
            }
            if added < removed {
                added = self.scaled(added);
                removed = total - added;
            } else {
                removed = self.scaled(removed);
                added = total - removed;
            }
        }
        let signs = |sign: &str, count| sign.repeat(usize::try_from(count).unwrap_or(0));
        signs("+", added) + &signs("-", removed)
    }

    /// Scales a count; a nonzero count gives at least one sign.
    fn scaled(&self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        1 + count * (self.graph as u64 - 1) / self.most
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}
