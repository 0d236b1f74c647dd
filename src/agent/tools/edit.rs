//! `edit_file`: replaces one passage of a file, or all its occurrences.
//!
//! Works like [`replace`](super::replace), with other parameter names and support for several occurrences.

use super::replace::PassageWords;
use crate::agent::tool::{Effect, Parameter, ParameterKind, ToolSpec};

/// The description of `edit_file`.
pub static EDIT_FILE: ToolSpec = ToolSpec::new(
    "edit_file",
    "Replaces a passage of a text file of at most 10 MiB; all else stays as it is. Read the file first. The passage must \
     be there exactly once, letter by letter, blanks and line ends included: take as many lines around it as that \
     needs. With replace_all, it is replaced wherever it is there.",
    &[
        Parameter::path("path", "The file"),
        Parameter::block("old_string", "The passage as it is in the file"),
        Parameter::block("new_string", "What takes its place"),
        Parameter::new(
            "replace_all",
            ParameterKind::Flag,
            "Whether it is replaced wherever it is there",
        )
        .or("false"),
    ],
    Effect::Writes,
);

/// The tool's names for the parameters of a replacement.
pub static STRINGS: PassageWords = PassageWords {
    find: "old_string",
    replace: "new_string",
    once: "add lines around it, so that it is there once, or set `replace_all`",
};

#[cfg(test)]
mod tests;
