//! The terminal agent's tools: the engine's tools, with this profile's descriptions.

use super::outgoing::check_marks;
use crate::agent::tool::{Effect, Parameter, ToolSpec, Toolbox};
use crate::agent::tools::background::{BackgroundAction, BackgroundTool};
use crate::agent::tools::command::{EXECUTE_COMMAND, RunCommand};
use crate::agent::tools::delete::{DELETE_FILE, DeleteFile};
use crate::agent::tools::edit::{EDIT_FILE, STRINGS};
use crate::agent::tools::files::{FileAccess, ReadAccess};
use crate::agent::tools::list::{LIST_FILES, ListDirectory};
use crate::agent::tools::read::{READ_PART, ReadFile, ReadPart};
use crate::agent::tools::renamed::RenamedTool;
use crate::agent::tools::replace::FindAndReplace;
use crate::agent::tools::replace_all::{REPLACE_IN_FILES, ReplaceInFiles};
use crate::agent::tools::search::{SEARCH_PROJECT, SearchFiles};
use crate::agent::tools::spawn::{SPAWN_AGENT, SpawnAgent, Work};
use crate::agent::tools::todos::{UPDATE_TODOS, UpdateTodos};
use crate::agent::tools::write::WriteFile;
use crate::record::todos::Todo;
use crate::record::tool::{Category, Verb};

static WRITE_FILE: ToolSpec = ToolSpec::new(
    "write_file",
    "Gives a file this content as a whole, and makes it and its directories where they are not there. To change a part of \
     a file, use edit_file.",
    &[
        Parameter::path("path", "The file, relative to the project's root"),
        Parameter::block("content", "Its whole content"),
    ],
    Effect::Writes,
)
.doing(Verb::Write);

const PROCESS: &[Parameter] = &[Parameter::text(
    "process",
    "The process's name, as execute_command has told it",
)];

static READ_BACKGROUND: ToolSpec = ToolSpec::new(
    "read_background",
    "Shows how a command stands that goes on in the background, and what it has printed so far.",
    PROCESS,
    Effect::Reads,
)
.of_category(Category::Shell)
.doing(Verb::Watch);

static LIST_BACKGROUND: ToolSpec = ToolSpec::new(
    "list_background",
    "Lists all commands that went on in the background, those that have ended too.",
    &[],
    Effect::Reads,
)
.of_category(Category::Shell)
.doing(Verb::ListProcesses);

static KILL_BACKGROUND: ToolSpec = ToolSpec::new(
    "kill_background",
    "Ends a command in the background and all that it has started.",
    PROCESS,
    Effect::Runs,
)
.doing(Verb::EndProcess);

/// The descriptions of all tools.
static SPECS: [&ToolSpec; 13] = [
    &READ_PART,
    &LIST_FILES,
    &SEARCH_PROJECT,
    &WRITE_FILE,
    &EDIT_FILE,
    &REPLACE_IN_FILES,
    &DELETE_FILE,
    &EXECUTE_COMMAND,
    &READ_BACKGROUND,
    &LIST_BACKGROUND,
    &KILL_BACKGROUND,
    &UPDATE_TODOS,
    &SPAWN_AGENT,
];

/// Returns the names of all tools.
pub fn names() -> [&'static str; 13] {
    SPECS.map(|spec| &*spec.name)
}

/// Returns the description of the tool of this name.
pub fn named(name: &str) -> Option<&'static ToolSpec> {
    SPECS.into_iter().find(|spec| spec.name == name)
}

/// The project and the run in which the tools work.
#[derive(Clone, Copy)]
pub struct ChatTools<'p, 'a> {
    /// Reads and writes the project's files.
    pub access: FileAccess<'p>,
    /// Runs commands.
    pub command: RunCommand<'p, 'a>,
    /// Stores and shows the to-do list.
    pub todos: &'p dyn Fn(Vec<Todo>),
    /// Runs a helper; `None` if there are no helpers, as is the case for a helper itself.
    pub spawn: Option<&'p Work<'p>>,
}

impl<'p> ChatTools<'p, '_> {
    /// Returns all tools, in the order in which they are described.
    pub fn toolbox(self) -> Toolbox<'p> {
        let (access, command) = (self.access, self.command);
        let background = |action| BackgroundTool {
            processes: command.processes,
            action,
        };
        let write = RenamedTool(
            &[],
            |_, given| check_marks(given.get("content"), ""),
            WriteFile(access),
        );
        let edit = RenamedTool(
            &[],
            |_, given| check_marks(given.get("new_string"), given.get("old_string")),
            FindAndReplace(access, &STRINGS),
        );
        let replace = RenamedTool(
            &[],
            |_, given| check_marks(given.get("replacement"), ""),
            ReplaceInFiles(access),
        );
        let tools = looking(access.read)
            .with(&WRITE_FILE, write)
            .with(&EDIT_FILE, edit)
            .with(&REPLACE_IN_FILES, replace)
            .with(&DELETE_FILE, DeleteFile(access))
            .with(&EXECUTE_COMMAND, command)
            .with(&READ_BACKGROUND, background(BackgroundAction::Read))
            .with(&LIST_BACKGROUND, background(BackgroundAction::List))
            .with(&KILL_BACKGROUND, background(BackgroundAction::Kill))
            .with(&UPDATE_TODOS, UpdateTodos(self.todos));
        match self.spawn {
            Some(work) => tools.with(&SPAWN_AGENT, SpawnAgent(work)),
            None => tools,
        }
    }
}

/// Returns the tools that only read the project's files.
pub fn looking(read: ReadAccess<'_>) -> Toolbox<'_> {
    Toolbox::default()
        .with(&READ_PART, ReadPart(ReadFile(read)))
        .with(&LIST_FILES, ListDirectory(read))
        .with(&SEARCH_PROJECT, SearchFiles(read))
}

#[cfg(test)]
mod tests;
