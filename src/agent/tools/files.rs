//! Shared parts of the tools that read and change files: how files are put, and how a change is shown.

use std::path::Path;

use super::place::{Outside, ResolvedPath, leads_through_config};
use crate::agent::tool::{ToolError, ToolOutput};
use crate::edit::EditKind;
use crate::sys::diff::FileChange;
use crate::sys::numbers::grouped;

/// The schema of a number of things, of which there is one at least.
pub(super) const COUNT: &str = r#"{"type": "integer", "minimum": 1}"#;

/// The edit of a file by its path: plain names joined by `/`, relative to the project's root.
pub type PathEdit = (String, EditKind);

/// Puts files where they belong: verified and undoable inside the project.
pub trait Files {
    /// Makes all of these edits, or none; of a path there is one at the most. What the model should know about that:
    /// sentences.
    ///
    /// # Errors
    /// When a file may not be changed so, or could not be; nothing was changed then.
    fn apply(&self, edits: Vec<PathEdit>) -> Result<Vec<String>, ToolError>;

    /// Sees that these edits may be made, before anybody is asked about them; [`apply`](Self::apply) does so, too.
    ///
    /// # Errors
    /// When a file may not be changed so.
    fn check(&self, _edits: Vec<PathEdit>) -> Result<(), ToolError> {
        Ok(())
    }
}

/// The files that a tool may change.
#[derive(Clone, Copy)]
pub struct FileAccess<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// Allows or refuses files elsewhere.
    pub outside: Outside,
    /// Writes the project's files.
    pub files: &'a dyn Files,
}

impl FileAccess<'_> {
    /// The place that a call names, where a file may be changed.
    ///
    /// # Errors
    /// A sentence for the model: the path is none, or nothing may be changed there.
    pub fn resolve(&self, path: &str) -> Result<ResolvedPath, String> {
        let place = ResolvedPath::of(self.root, path, self.outside)?;
        match &place {
            // As the path policy has it inside.
            ResolvedPath::Outside(path) if leads_through_config(path) => Err(format!(
                "{} is in another project's `agent-config`, where nothing may be changed",
                place.shown()
            )),
            _ => Ok(place),
        }
    }
}

/// A file as a call would leave it, for the user who is asked about it.
pub(super) struct Proposed {
    pub place: ResolvedPath,
    /// The current content; `None` if there is no file.
    pub before: Option<Vec<u8>>,
    /// The new content; `None` if the file is removed.
    pub after: Option<String>,
}

/// Shows what would become of these files, as a unified diff.
///
/// # Errors
/// When a file may not be changed so.
pub(super) fn preview_of(files: &dyn Files, proposed: Vec<Proposed>) -> Result<String, ToolError> {
    let inside = proposed.iter().filter_map(Proposed::edit);
    files.check(inside.collect())?;
    let changes = proposed.into_iter().map(|proposed| {
        let path = proposed.place.named();
        FileChange::of(
            path,
            proposed.before,
            proposed.after.map(String::into_bytes),
        )
    });
    Ok(crate::sys::diff::text(&changes.collect::<Vec<_>>()))
}

impl Proposed {
    /// The edit, where the file is in the project.
    fn edit(&self) -> Option<PathEdit> {
        let ResolvedPath::Inside(path) = &self.place else {
            return None;
        };
        let after = self.after.clone();
        let kind = after.map_or(EditKind::Remove, EditKind::Write);
        Some((path.clone(), kind))
    }
}

/// A warning behind each change of a file elsewhere than in the project.
pub(super) const NOT_UNDONE: &str = "it is outside the project: `undo` does not take this back";

/// An output with warnings behind it, each on a line of its own.
pub(super) fn with_warnings(said: String, warnings: Vec<String>) -> ToolOutput {
    let lines = warnings.iter().map(|text| format!("\nwarning: {text}"));
    ToolOutput {
        text: said + &lines.collect::<String>(),
        warnings,
        ..ToolOutput::default()
    }
}

/// Counts the lines of a text; one that does not end counts.
pub(super) fn line_count(content: &[u8]) -> usize {
    let newlines = memchr::memchr_iter(b'\n', content).count();
    newlines + usize::from(content.last().is_some_and(|last| *last != b'\n'))
}

/// `lines 4, 17 and 90`; no more than ten are named.
pub(super) fn at_lines(lines: &[usize]) -> String {
    const NAMED: usize = 10;
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
