//! The tools of an agent at the terminal: the profile's words over the engine's tools.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::outgoing::check_marks;
use crate::agent::tool::{Effect, Parameter, ParameterKind, ToolSpec, Toolbox};
use crate::agent::tools::background::{BackgroundAction, BackgroundTool};
use crate::agent::tools::command::{ExecuteCommand, RunCommand, Shell};
use crate::agent::tools::delete::DeleteFile;
use crate::agent::tools::edit::{EDIT_FILE, EditFile};
use crate::agent::tools::files::Files;
use crate::agent::tools::list::{ListDirectory, ListFiles};
use crate::agent::tools::place::Outside;
use crate::agent::tools::read::{ReadFile, ReadPart};
use crate::agent::tools::replace::FindAndReplace;
use crate::agent::tools::replace_all::{REPLACE_IN_FILES, ReplaceInFiles};
use crate::agent::tools::search::{SearchFiles, SearchProject};
use crate::agent::tools::spawn::{SpawnAgent, Work};
use crate::agent::tools::todos::UpdateTodos;
use crate::agent::tools::worded::Worded;
use crate::agent::tools::write::WriteFile;
use crate::exec::process::Processes;
use crate::model::Category;
use crate::record::todos::Todo;
use crate::record::tool::Verb;
use crate::sys::interrupt::Interrupt;

static WRITE_FILE: ToolSpec = ToolSpec::new(
    "write_file",
    "Gives a file this content as a whole, and makes it and its directories where they are not there. To change a part of \
     a file, use edit_file.",
    &[
        Parameter::new(
            "path",
            ParameterKind::Path,
            "The file, relative to the project's root",
        ),
        Parameter::new("content", ParameterKind::Block, "Its whole content"),
    ],
    Effect::Writes,
)
.doing(Verb::Write);

const PROCESS: &[Parameter] = &[Parameter::new(
    "process",
    ParameterKind::Text,
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

/// The project and the run that the tools work on.
#[derive(Clone, Copy)]
pub struct ChatTools<'p, 'a> {
    /// The project's root, links resolved.
    pub root: &'p Path,
    /// Access to files elsewhere.
    pub outside: Outside,
    /// Paths that no search and no replacement looks into: absolute paths, links resolved.
    pub closed: &'p [PathBuf],
    /// Stops searches and listings.
    pub interrupt: &'p Interrupt,
    /// Writes the project's files.
    pub files: &'p dyn Files,
    /// Runs commands.
    pub processes: &'p RefCell<Processes<'a>>,
    /// Time limit of a command, unless a call has its own.
    pub patience: Duration,
    /// Names a file for a command's output: another each time, in a directory that is there.
    pub output_files: &'p dyn Fn() -> PathBuf,
    /// Keeps the list of what is to be done, and shows it.
    pub todos: &'p dyn Fn(Vec<Todo>),
    /// Lets a helper work; `None` where there are no helpers, as for a helper itself.
    pub spawn: Option<&'p Work<'p>>,
}

impl<'p> ChatTools<'p, '_> {
    /// All of them, in the order in which they are described.
    #[must_use]
    pub fn toolbox(self) -> Toolbox<'p> {
        let Self {
            root,
            outside,
            files,
            processes,
            ..
        } = self;
        let search = self.search();
        let write = WriteFile {
            root,
            outside,
            files,
        };
        let edit = EditFile(FindAndReplace {
            root,
            outside,
            files,
        });
        let execute = ExecuteCommand(RunCommand {
            processes,
            patience: self.patience,
            shell: Shell::Full,
            output_files: self.output_files,
        });
        let mut tools = self
            .looking()
            .with(Worded {
                check: |_, given| check_marks(given.get("content"), ""),
                ..Worded::new(&WRITE_FILE, &[], write)
            })
            .with(Worded {
                check: |_, given| check_marks(given.get("new_string"), given.get("old_string")),
                ..Worded::new(&EDIT_FILE, &[], edit)
            })
            .with(Worded {
                check: |_, given| check_marks(given.get("replacement"), ""),
                ..Worded::new(&REPLACE_IN_FILES, &[], ReplaceInFiles { search, files })
            })
            .with(DeleteFile {
                root,
                outside,
                files,
            })
            .with(execute);
        for (spec, action) in [
            (&READ_BACKGROUND, BackgroundAction::Read),
            (&LIST_BACKGROUND, BackgroundAction::List),
            (&KILL_BACKGROUND, BackgroundAction::Kill),
        ] {
            tools = tools.with(Worded::new(spec, &[], BackgroundTool { processes, action }));
        }
        tools = tools.with(UpdateTodos { keep: self.todos });
        match self.spawn {
            Some(work) => tools.with(SpawnAgent { work }),
            None => tools,
        }
    }

    /// Tools that only read the project's files.
    #[must_use]
    pub fn looking(self) -> Toolbox<'p> {
        let Self {
            root,
            outside,
            interrupt,
            ..
        } = self;
        Toolbox::new()
            .with(ReadPart(ReadFile { root, outside }))
            .with(ListFiles(ListDirectory {
                root,
                outside,
                interrupt,
            }))
            .with(SearchProject(self.search()))
    }

    fn search(&self) -> SearchFiles<'p> {
        SearchFiles {
            root: self.root,
            outside: self.outside,
            closed: self.closed,
            interrupt: self.interrupt,
        }
    }
}

#[cfg(test)]
mod tests;
