//! The use of a tool as data: the kind of thing that it works on, the action, and how the command that it ran ended.
//! Code that shows a run relies on these, and never parses the text of a result.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::seconds::seconds;

/// The kind of thing that a tool works on; decides how the tool is shown to users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Files and directories as a whole.
    File,
    /// Programs.
    Shell,
    /// The content of many files.
    Search,
    /// The content of one file.
    Edit,
    /// Anything that an MCP server offers; such tools are added at run time.
    Mcp,
    /// The agent itself: its task list, its helpers, its final answer.
    Agent,
}

/// The verb for a tool's action, as shown to a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verb {
    /// An action without a verb of its own, shown by the tool's name.
    #[default]
    Use,
    Read,
    List,
    Search,
    Write,
    Edit,
    Delete,
    Run,
    /// Checks on a background process.
    Watch,
    ListProcesses,
    EndProcess,
    /// Replaces a list that is displayed separately.
    Note,
    /// Asks the user, who sees the question itself.
    Ask,
    /// Ends the work, which is displayed separately.
    Finish,
}

impl Verb {
    /// Returns the words for an action in progress, a finished one, and an imperative; `name` is the tool's.
    fn forms(self, name: &str) -> [&str; 3] {
        match self {
            Self::Use | Self::Ask => [name; 3],
            Self::Read => ["Reading", "Read", "Read"],
            Self::List => ["Listing", "Listed", "List"],
            Self::Search => ["Searching", "Searched", "Search"],
            Self::Write => ["Writing", "Wrote", "Write"],
            Self::Edit => ["Editing", "Edited", "Edit"],
            Self::Delete => ["Deleting", "Deleted", "Delete"],
            Self::Run => ["Running", "Ran", "$"],
            Self::Watch => ["Looking at", "Looked at", "Look at"],
            Self::ListProcesses => ["Listing processes", "Listed processes", "List processes"],
            Self::EndProcess => ["Ending", "Ended", "End"],
            Self::Note => [
                "Updating the task list",
                "Updated the task list",
                "Update the list",
            ],
            Self::Finish => ["Finishing", "Finished", "Finish"],
        }
    }

    /// Returns the words for an action in progress and for a finished one; `name` is the tool's.
    pub fn words(self, name: &str) -> (&str, &str) {
        let [doing, done, _] = self.forms(name);
        (doing, done)
    }

    /// Returns the imperative for an action, such as `Edit`, or `$` before a command; `name` is the tool's.
    pub fn order(self, name: &str) -> &str {
        let [.., order] = self.forms(name);
        order
    }
}

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolEnd {
    /// The result, as sent to the model.
    pub text: String,
    /// The result for a person, in a few words.
    #[serde(skip)]
    pub brief: Option<String>,
    /// The warnings for the user, which are also part of the text.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// True if the tool failed.
    pub failed: bool,
    /// The outcome of the command that it ran.
    #[serde(skip)]
    pub command: CommandEnd,
    /// The duration.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub took: Duration,
}

impl ToolEnd {
    /// Returns whether the tool failed with an error rather than with the output of a command.
    pub fn is_error(&self) -> bool {
        self.failed && self.command == CommandEnd::None
    }
}

#[cfg(test)]
impl ToolEnd {
    /// Creates a result with this text, whose warnings are the lines that begin with `warning: `.
    pub fn of_text(text: &str, brief: Option<&str>, failed: bool) -> Self {
        let warnings = text
            .lines()
            .filter_map(|line| line.strip_prefix("warning: "));
        Self {
            text: text.to_owned(),
            brief: brief.map(str::to_owned),
            warnings: warnings.map(str::to_owned).collect(),
            failed,
            ..Self::default()
        }
    }
}

/// The outcome of the command that a tool ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandEnd {
    /// The tool ran no command.
    #[default]
    None,
    /// The command ended with this exit code.
    Exited(i32),
    /// A signal or the time limit ended the command.
    Killed,
    /// The command continues in the background.
    InBackground,
}

impl CommandEnd {
    /// Returns the exit code, if the command has one.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }

    /// Returns whether the command failed.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::None | Self::InBackground | Self::Exited(0))
    }
}
