//! The tools, one implementation each, and what they share.

pub mod background;
pub mod command;
pub mod delete;
pub mod diff;
pub mod edit;
pub mod list;
pub mod notes;
pub mod place;
pub mod plan;
pub mod read;
pub mod replace;
pub mod replace_all;
pub mod search;
pub mod spawn;
pub mod todos;
pub mod worded;
pub mod write;

use crate::agent::tool::ToolError;
use crate::sys::numbers::grouped;

/// How many bytes of a tool's output a model is shown.
pub const OUTPUT_LIMIT: usize = 32 << 10;

/// Puts files where they belong: verified and undoable inside the project.
pub trait Files {
    /// Gives the file at `path`, plain names joined by `/` and relative to the project's root, this
    /// content, and makes it where it is not there. What the model should know about that: sentences.
    ///
    /// # Errors
    /// When the file may not be written, or could not be; nothing was changed then.
    fn write(&self, path: &str, content: String) -> Result<Vec<String>, ToolError>;
}

/// How many lines a text has; one that does not end counts.
fn line_count(content: &[u8]) -> usize {
    let newlines = memchr::memchr_iter(b'\n', content).count();
    newlines + usize::from(content.last().is_some_and(|last| *last != b'\n'))
}

/// `lines 4, 17 and 90`; no more than ten are named.
fn at_lines(lines: &[usize]) -> String {
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
