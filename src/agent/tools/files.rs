//! Parts shared by the tools that read and change files: applying edits and previewing them.

use std::path::{Path, PathBuf};

use super::resolved_path::{Outside, ResolvedPath, leads_through_config};
use crate::agent::tool::{ToolError, ToolOutput};
use crate::edit::EditKind;
use crate::sys::diff::FileChange;
use crate::sys::interrupt::Interrupt;
use crate::sys::numbers::grouped;

/// The schema of a count of at least one.
pub(super) const COUNT: &str = r#"{"type": "integer", "minimum": 1}"#;

/// An edit of the file at a path: plain names joined by `/`, relative to the project's root.
pub type PathEdit = (String, EditKind);

/// Applies edits to files: verified and undoable inside the project.
pub trait Files {
    /// Makes all of these edits or none, with at most one per path. Returns notes for the model, as sentences.
    ///
    /// # Errors
    /// Fails if an edit is not permitted or fails; nothing was changed then.
    fn apply(&self, edits: Vec<PathEdit>) -> Result<Vec<String>, ToolError>;

    /// Checks that these edits are permitted before the user is asked about them; [`apply`](Self::apply) checks this,
    /// too.
    ///
    /// # Errors
    /// Fails if an edit is not permitted.
    fn check(&self, _edits: Vec<PathEdit>) -> Result<(), ToolError> {
        Ok(())
    }
}

/// The project that a tool reads, and its access to other files.
#[derive(Debug, Clone, Copy)]
pub struct ReadAccess<'a> {
    /// The root, with links resolved.
    pub root: &'a Path,
    /// Allows or refuses files and directories outside the project.
    pub outside: Outside,
    /// Paths that searches and replacements skip, with everything below them: absolute, with links resolved.
    pub closed: &'a [PathBuf],
    /// Interrupts listings and searches.
    pub interrupt: &'a Interrupt,
}

#[cfg(test)]
impl<'a> ReadAccess<'a> {
    /// Creates access that skips nothing and that nothing interrupts.
    pub fn to(root: &'a Path, outside: Outside) -> Self {
        Self {
            root,
            outside,
            closed: &[],
            interrupt: Interrupt::leaked(),
        }
    }
}

/// Access to the files that a tool may change.
#[derive(Clone, Copy)]
pub struct FileAccess<'a> {
    /// The project, and access to files outside it.
    pub read: ReadAccess<'a>,
    /// Applies edits to the project's files.
    pub files: &'a dyn Files,
}

impl FileAccess<'_> {
    /// Resolves the path in a call to a place where a file may be changed.
    ///
    /// # Errors
    /// A sentence for the model: the path is invalid, or nothing may be changed there.
    pub fn resolve(&self, path: &str) -> Result<ResolvedPath, String> {
        let place = ResolvedPath::of(self.read.root, path, self.read.outside)?;
        match &place {
            // Inside the project, the path policy enforces the same rule.
            ResolvedPath::Outside(path) if leads_through_config(path) => Err(format!(
                "{} is in another project's `agent-config`, where nothing may be changed",
                place.shown()
            )),
            _ => Ok(place),
        }
    }
}

/// The proposed state of a file, shown to the user who is asked about the call.
pub(super) struct Proposed {
    pub place: ResolvedPath,
    /// The current content; `None` if there is no file.
    pub before: Option<Vec<u8>>,
    /// The new content; `None` if the file is removed.
    pub after: Option<String>,
}

/// Previews the changes to these files as a unified diff.
///
/// # Errors
/// Fails if an edit is not permitted.
pub(super) fn preview_of(files: &dyn Files, proposed: Vec<Proposed>) -> Result<String, ToolError> {
    files.check(proposed.iter().filter_map(Proposed::edit).collect())?;
    let changes = proposed.into_iter().map(|proposed| {
        let after = proposed.after.map(String::into_bytes);
        FileChange::of(proposed.place.named(), proposed.before, after)
    });
    Ok(crate::sys::diff::text(&changes.collect::<Vec<_>>()))
}

impl Proposed {
    /// Returns the edit, if the file is inside the project.
    pub fn edit(&self) -> Option<PathEdit> {
        let ResolvedPath::Inside(path) = &self.place else {
            return None;
        };
        let kind = self.after.clone().map_or(EditKind::Remove, EditKind::Write);
        Some((path.clone(), kind))
    }
}

/// A warning added to each change of a file outside the project.
pub(super) const NOT_UNDONE: &str = "it is outside the project: `undo` does not take this back";

/// Creates an output followed by warnings, each on its own line.
pub(super) fn with_warnings(words: String, warnings: Vec<String>) -> ToolOutput {
    let lines = warnings.iter().map(|text| format!("\nwarning: {text}"));
    ToolOutput {
        text: words + &lines.collect::<String>(),
        warnings,
        ..ToolOutput::default()
    }
}

/// Counts the lines of a text, including an unterminated last line.
pub(super) fn line_count(content: &[u8]) -> usize {
    let newlines = memchr::memchr_iter(b'\n', content).count();
    newlines + usize::from(content.last().is_some_and(|last| *last != b'\n'))
}

/// Maximum number of line numbers named in a message.
const NAMED: usize = 10;
/// The maximum number of lines that [`at_lines`] needs: those it names, and one to show that there are more.
pub(super) const MOST_LINES: usize = NAMED + 1;

/// Formats line numbers as in `lines 4, 17 and 90`, naming at most ten.
pub(super) fn at_lines(lines: &[usize]) -> String {
    let named: Vec<String> = lines
        .iter()
        .take(NAMED)
        .map(|line| grouped(*line as u64))
        .collect();
    match named.as_slice() {
        [line] if lines.len() == 1 => format!("line {line}"),
        [first @ .., last] if lines.len() <= NAMED => {
            format!("lines {} and {last}", first.join(", "))
        }
        all => format!("lines {} and more", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_as_people_do() {
        for (lines, expected) in [
            (&[4][..], "line 4"),
            (&[4, 17], "lines 4 and 17"),
            (&[4, 17, 1090], "lines 4, 17 and 1,090"),
        ] {
            assert_eq!(at_lines(lines), expected);
        }
        let many: Vec<usize> = (1..=11).collect();
        assert_eq!(
            at_lines(&many),
            "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more"
        );
    }
}
