//! `edit_file`: replaces one passage of a file, or all its occurrences.
//!
//! Works like [`replace`](super::replace), with other parameter names and support for several occurrences.

use super::replace::{FindAndReplace, Passage};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec,
};

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

/// Replaces a passage of a file, once or everywhere.
pub struct EditFile<'a>(pub FindAndReplace<'a>);

impl Tool for EditFile<'_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        self.0.change(&passage(arguments))
    }

    fn preview(&self, arguments: &Arguments) -> Result<Option<String>, ToolError> {
        self.0.preview(&passage(arguments))
    }
}

fn passage(arguments: &Arguments) -> Passage<'_> {
    Passage {
        path: arguments.get("path"),
        find: arguments.get("old_string"),
        replace: arguments.get("new_string"),
        is_everywhere: arguments.is_set("replace_all"),
        words: ["old_string", "new_string"],
        once: "add lines around it, so that it is there once, or set `replace_all`",
    }
}

#[cfg(test)]
mod tests;
