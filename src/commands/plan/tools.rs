//! The tools of the plan agent: the engine's tools, with this agent's names and descriptions.

use std::cell::Cell;
use std::path::Path;

use super::plan_tools::{INITIALIZE_PLAN, InitializePlan, PlanUpdater, UPDATE_PLAN, UpdatePlan};
use crate::agent::judge::{JudgedProgram, ScriptState, judge};
use crate::agent::tool::{
    Arguments, Effect, Parameter, ParameterKind, Tool, ToolError, ToolOutput, ToolSpec, Toolbox,
};
use crate::agent::tools::command::RunCommand;
use crate::agent::tools::diff::{SHOW_DIFF, ShowDiff};
use crate::agent::tools::files::{FileAccess, ReadAccess};
use crate::agent::tools::list::ListDirectory;
use crate::agent::tools::notes::{AskUser, REQUEST_APPROVAL, RequestApproval, User};
use crate::agent::tools::read::{ReadFile, ReadWhole};
use crate::agent::tools::renamed::RenamedTool;
use crate::agent::tools::replace::{FIND, FindAndReplace};
use crate::agent::tools::resolved_path::ResolvedPath;
use crate::agent::tools::search::{SEARCH_FILES, SearchFiles};
use crate::agent::tools::write::WriteFile;
use crate::record::tool::{CommandEnd, Verb};

/// Names that models mistake for tools, each with the reply to the model.
pub const NO_TOOLS: &[(&str, &str)] = &[(
    super::forms::ANALYZE,
    "`analyze` is no tool but a step that needs none: think, and say in a `response` what you have found",
)];

const FILE_PATH: Parameter = Parameter::path(
    "file_path",
    "Path to the file, relative to the project or absolute inside it",
);

static READ_FILE: ToolSpec = ToolSpec::new(
    "read_file",
    "Read the complete contents of a file from the filesystem. Use this when you need to view file contents.",
    &[
        FILE_PATH,
        Parameter::text("encoding", "File encoding").or("utf-8"),
    ],
    Effect::Reads,
);

static WRITE_FILE: ToolSpec = ToolSpec::new(
    "write_file",
    "Write content to a file on the filesystem. Use this to create a file, or to replace all of it.",
    &[
        FILE_PATH,
        Parameter::block("content", "Content to write to the file"),
        Parameter::new(
            "create_directories",
            ParameterKind::Flag,
            "Create parent directories if they don't exist",
        )
        .or("true"),
    ],
    Effect::Writes,
)
.doing(Verb::Write);

static REPLACE_IN_FILE: ToolSpec = ToolSpec::new(
    "replace_in_file",
    "Replace one passage of a file, which must be there exactly once. Use this to change a part of a file that you have \
     read; the rest stays as it is.",
    &[
        FILE_PATH,
        Parameter::block(
            "find",
            "The passage, letter by letter, with as many lines around it as make it unique",
        ),
        Parameter::block("replace", "What takes its place"),
    ],
    Effect::Writes,
);

static LIST_FILES: ToolSpec = ToolSpec::new(
    "list_files",
    "List what is in a directory as a tree, without what git ignores. Use this to find out which files there are.",
    &[Parameter::path("path", "A directory, or a glob such as src/**/*.ts")
    .or(".")],
    Effect::Reads,
)
.doing(Verb::List);

/// The tool that runs commands.
pub const SHELL_TOOL: &str = "shell_exec";

static SHELL_EXEC: ToolSpec = ToolSpec::new(
    SHELL_TOOL,
    "Run a shell command in the project's root, without input, and get its exit code and output. Use this to build, to \
     test, or for what no other tool does. A command that takes too long is ended.",
    &[
        Parameter::new("command", ParameterKind::Command, "The command to run")
            .example("./build.sh"),
    ],
    Effect::Runs,
);

static ASK_USER: ToolSpec = ToolSpec::new(
    "ask_user",
    "Ask the user a question, and get the answer. Use this when a requirement is unclear and you cannot find it out \
     yourself.",
    &[Parameter::text("question", "The question").example("Which file contains the bug?")],
    Effect::Asks,
);

/// The dependencies of the tools.
pub struct PlanTools<'p, 'a> {
    /// Reads and writes the project's files.
    pub access: FileAccess<'p>,
    /// Runs commands, only in the foreground.
    pub command: RunCommand<'p, 'a>,
    /// `true` after a command that has failed, `false` after any other.
    pub has_failed: &'p Cell<bool>,
    /// Returns the unified diff of the changes made in the run so far.
    pub changes: Box<dyn Fn() -> String + 'p>,
    /// Applies changes to the plan.
    pub updater: &'p dyn PlanUpdater,
    /// Answers questions; `None` if nobody can.
    pub user: Option<&'p dyn User>,
}

impl<'p> PlanTools<'p, '_> {
    /// Returns the tools, in the order in which they are described to the model.
    pub fn toolbox(self) -> Toolbox<'p>
    where
        Self: 'p,
    {
        const RENAMED: &[(&str, &str)] = &[("file_path", "path")];
        let access = self.access;
        let read = RenamedTool(RENAMED, check_encoding, ReadWhole(ReadFile(access.read)));
        let write = RenamedTool(RENAMED, check_directory, WriteFile(access));
        let replace = RenamedTool(RENAMED, |_, _| Ok(()), FindAndReplace(access, &FIND));
        let tools = Toolbox::default()
            .with(&READ_FILE, read)
            .with(&WRITE_FILE, write)
            .with(&REPLACE_IN_FILE, replace)
            .with(&LIST_FILES, ListDirectory(access.read))
            .with(&SEARCH_FILES, SearchFiles(access.read))
            .with(&SHELL_EXEC, ShellExec(self.command, self.has_failed))
            .with(&SHOW_DIFF, ShowDiff(self.changes))
            .with(&INITIALIZE_PLAN, InitializePlan(self.updater))
            .with(&UPDATE_PLAN, UpdatePlan(self.updater));
        match self.user {
            Some(user) => tools
                .with(&ASK_USER, AskUser(user))
                .with(&REQUEST_APPROVAL, RequestApproval(user)),
            None => tools,
        }
    }
}

/// Returns the same tools, without those that ask the user, only for parsing calls: they do nothing
/// when run.
pub fn described() -> Toolbox<'static> {
    let specs = [
        &READ_FILE,
        &WRITE_FILE,
        &REPLACE_IN_FILE,
        &LIST_FILES,
        &SEARCH_FILES,
        &SHELL_EXEC,
        &SHOW_DIFF,
        &INITIALIZE_PLAN,
        &UPDATE_PLAN,
    ];
    let tools = specs.into_iter();
    tools.fold(Toolbox::default(), |tools, spec| {
        tools.with(spec, Described)
    })
}

/// A tool that does nothing.
struct Described;

impl Tool for Described {
    fn run(&self, _arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::default())
    }
}

/// Runs commands. Reports a command that fails as a failed call, and records whether the last
/// command has failed.
struct ShellExec<'p, 'a>(RunCommand<'p, 'a>, &'p Cell<bool>);

/// Programs whose exit code 1 is a result, not a failure.
const ANSWERING: [&str; 4] = ["grep", "diff", "test", "["];

impl Tool for ShellExec<'_, '_> {
    fn run(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let output = self.0.run(arguments)?;
        let judged = judge(arguments.get("command"), &|_| ScriptState::Tracked);
        let answers = |program: &JudgedProgram| {
            let mut known = ANSWERING.iter();
            known.any(|name| program.covered_by(name).is_some())
        };
        // Behind `&&`, the exit code may be that of the program before.
        let mut pairs = judged.programs.windows(2).rev();
        let mut joined = pairs
            .by_ref()
            .take_while(|pair| matches!(&*pair[1].operator, "&&" | "|" | "|&"));
        let is_its_own = joined.all(|pair| {
            pair[1].operator != "&&" || answers(&pair[0]) || pair[0].covered_by("cd").is_some()
        });
        let answers = is_its_own && judged.programs.last().is_some_and(answers);
        let is_answer = answers && output.command == CommandEnd::Exited(1);
        let is_failure = output.command.is_failure() && !is_answer;
        self.1.set(is_failure);
        Ok(ToolOutput {
            is_failure,
            ..output
        })
    }
}

fn check_encoding(_tool: &ReadWhole<'_>, arguments: &Arguments) -> Result<(), String> {
    let encoding = arguments.get("encoding");
    let is = |known| encoding.trim().eq_ignore_ascii_case(known);
    if is("utf-8") || is("utf8") {
        return Ok(());
    }
    Err(format!(
        "files are read as utf-8 alone, not as {}; leave `encoding` out",
        crate::agent::tools::resolved_path::quoted(encoding)
    ))
}

/// Checks that the file's directory exists, unless `create_directories` lets the tool create it.
fn check_directory(tool: &WriteFile<'_>, arguments: &Arguments) -> Result<(), String> {
    let ReadAccess { root, outside, .. } = tool.0.read;
    let place = ResolvedPath::of(root, arguments.get("file_path"), outside)?;
    let is_there = place.path(root).parent().is_none_or(Path::is_dir);
    if is_there || arguments.is_set("create_directories") {
        return Ok(());
    }
    Err(format!(
        "the directory of {} does not exist, and `create_directories` is false",
        place.shown()
    ))
}

#[cfg(test)]
mod tests;
