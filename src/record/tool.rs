//! A tool's use as data: what was done, and how the command that it ran came out. What shows a run reads these, and no
//! words of a result.

/// The verb for a tool's action, as shown to a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verb {
    /// Nothing that has a word of its own: the tool's name stands in its place.
    #[default]
    Use,
    Read,
    List,
    Search,
    Write,
    Edit,
    Delete,
    Run,
    /// Looks at a process in the background.
    Watch,
    ListProcesses,
    EndProcess,
    /// Replaces a list that is shown by itself.
    Note,
    /// Asks the user, who has seen the question.
    Ask,
}

impl Verb {
    /// The words for it while it is under way and once it is done; `name` is the tool's.
    pub fn words(self, name: &str) -> (&str, &str) {
        match self {
            Self::Use | Self::Ask => (name, name),
            Self::Read => ("Reading", "Read"),
            Self::List => ("Listing", "Listed"),
            Self::Search => ("Searching", "Searched"),
            Self::Write => ("Writing", "Wrote"),
            Self::Edit => ("Editing", "Edited"),
            Self::Delete => ("Deleting", "Deleted"),
            Self::Run => ("Running", "Ran"),
            Self::Watch => ("Looking at", "Looked at"),
            Self::ListProcesses => ("Listing processes", "Listed processes"),
            Self::EndProcess => ("Ending", "Ended"),
            Self::Note => ("Updating the task list", "Updated the task list"),
        }
    }
}

/// The way the command that a tool ran has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommandEnd {
    /// The tool ran none.
    #[default]
    None,
    /// It has ended with this exit code.
    Exited(i32),
    /// It was ended: by a signal, or because its time was over.
    Killed,
    /// It goes on in the background.
    InBackground,
}

impl CommandEnd {
    /// The exit code, where the command has one.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }

    /// Returns whether the command has failed.
    pub fn is_failure(self) -> bool {
        !matches!(self, Self::None | Self::InBackground | Self::Exited(0))
    }
}
