//! Every stage's error under one roof: its exit code, and what to do about it.

mod chat;

use std::io;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::agent::mcp::{McpAddressProblem, McpError};
use crate::agent::session::SessionError;
use crate::commands::plan::file::PlanFileError;
use crate::edit::error::{ApplyError, RecoverError};
use crate::edit::undo::UndoError;
use crate::edit::undo_log::UndoLogError;
use crate::edit::{Rejection, Rule, VerifyError};
use crate::exec::build_script::BuildError;
use crate::exec::process::ProcessError;
use crate::exec::sandbox::SandboxProblem;
use crate::model::ModelError;
use crate::model::catalogue;
use crate::model::estimate::OverBudget;
use crate::project::MEND_REPOSITORY;
use crate::project::index::IndexProblem;
use crate::record::exit::Exit;
use crate::record::replay::RecordingProblem;
use crate::run::gate::GateChanged;
use crate::run::keys::NoKey;
use crate::run::not_ready::NotReady;
use crate::run::past::naming::NoSuchRun;
use crate::run::shown::ChangedMeanwhile;
use crate::sys::files::{PathError, is_too_large};
use crate::sys::interrupt::Interrupted;
use crate::sys::numbers;
use crate::ui::editor::EditorProblem;
use crate::ui::input::InputError;

pub use self::chat::ChatError;
pub(crate) use self::chat::hint_in_chat;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The project is not ready for a run.
    #[error(transparent)]
    NotReady(#[from] NotReady),
    /// The model that was asked for is not in the table.
    #[error("there is no model `{name}`: known are {known}")]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The names of those that are known.
        known: String,
    },
    /// The model that is to be added is not in the catalogue.
    #[error("the catalogue has no model `{name}`: it has {known}")]
    NotInCatalogue {
        /// What was asked for.
        name: String,
        /// The names of those that it has.
        known: String,
    },
    /// The model that is to be added is in the table.
    #[error("there is a model `{0}` already")]
    ModelIsThere(String),
    /// The next call may cost more than is left.
    #[error(transparent)]
    OverBudget(#[from] OverBudget),
    /// A repair's prompt does not fit into the model's window.
    #[error(
        "the next prompt does not fit into the window of `{model}`: about {} tokens, and the window has {}",
        numbers::grouped(*.prompt_tokens),
        numbers::grouped(*.window)
    )]
    DoesNotFit {
        /// The model that was to be asked for the repair.
        model: String,
        /// The prompt's size.
        prompt_tokens: u64,
        /// The window, in tokens.
        window: u64,
    },
    /// The folder given to `--replay` cannot be replayed.
    #[error(transparent)]
    Recording(#[from] RecordingProblem),
    /// The directory for the demo has something in it.
    #[error("`{}` already exists and is not empty", .0.display())]
    DemoNotEmpty(PathBuf),
    /// A file of the program's own, as of the run's log, could not be read or written.
    #[error(transparent)]
    File(#[from] PathError),
    /// There is no whole reply.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The same, where an agent asked.
    #[error(transparent)]
    AgentsModel(ModelError),
    /// The reply is not verified.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The reply breaks the grammar or the policy, or loses code.
    #[error("{rejection}")]
    Rejected {
        /// All that is wrong with it.
        rejection: Rejection,
        /// The run's folder, relative to the root.
        run: String,
    },
    /// The reply changes nothing, though it is to.
    #[error("the reply is rejected: it has no edits, and `--require-edits` was given")]
    NoEdits,
    /// Somebody has changed what the reply replaces.
    #[error(transparent)]
    Changed(#[from] ChangedMeanwhile),
    /// The edits could not be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The tree could not be put in order after an earlier run.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The file that a summary is to be written to is none that may be changed.
    #[error("the summary cannot be written to `{}`: {rule}", .path.display())]
    ProtectedSummary {
        /// The file, as it was named.
        path: PathBuf,
        /// Why not.
        rule: Rule,
    },
    /// The project that was named is none.
    #[error("`{}` is not a directory that can be entered: {source}", .path.display())]
    NoRoot {
        /// As it was named.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// There is no such command.
    #[error("there is no command `{0}`")]
    NoSuchCommand(String),
    /// What git tracks is not known.
    #[error("git does not list the project's files: {0}")]
    NoIndex(IndexProblem),
    /// A path that was named leads out of the project, or git tracks nothing there.
    #[error("`{}` names nothing that git tracks", .0.display())]
    NotTracked(PathBuf),
    /// No file is left to roll up.
    #[error("there is nothing to roll up; {0} left out")]
    EmptyRollup(String),
    /// There is no such run.
    #[error(transparent)]
    NoSuchRun(#[from] NoSuchRun),
    /// What a run has done could not be read.
    #[error(transparent)]
    UndoLog(#[from] UndoLogError),
    /// The run could not be undone.
    #[error(transparent)]
    Undo(#[from] UndoError),
    /// The build could not be run.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A command could not be run.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The build still fails after the last repair.
    #[error("`build.sh` still fails after {repairs} repairs: {status}")]
    BuildFailed {
        /// How many repairs were tried.
        repairs: u16,
        /// How the last build ended.
        status: String,
        /// The file with its output, relative to the root.
        log: String,
    },
    /// A build has changed what it is judged by.
    #[error(transparent)]
    GateChanged(#[from] GateChanged),
    /// An agent did not get to the end of its work.
    #[error(transparent)]
    Agent(AgentError),
    /// A model's replies are not of the form often enough.
    #[error("{percent} % of the replies are of the form, and {at_least} % are wanted")]
    Unreliable {
        /// How many of a hundred are.
        percent: u8,
        /// How many were to be.
        at_least: u8,
    },
    /// The plan cannot be read or kept.
    #[error(transparent)]
    Plan(#[from] PlanFileError),
    /// The file for the plan is none of the project's.
    #[error("`{}` is no file of the project", .0.display())]
    PlanOutside(PathBuf),
    /// The plan of a session is in another file than the one that is named.
    #[error("the session's plan is `{}`, not `{}`", .known.display(), .path.display())]
    PlanElsewhere {
        /// The file that is named.
        path: PathBuf,
        /// The plan.
        known: PathBuf,
    },
    /// The file for the plan is something else.
    #[error("`{}` is there, and is no plan: it has no heading of one, like `## Goal`", .0.display())]
    NoPlan(PathBuf),
    /// Nothing was asked for, and there is nothing to go on with.
    #[error("nothing is asked for")]
    NothingAsked,
    /// The session cannot be used, or kept.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// What the user has to say cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A file could not be opened for the user.
    #[error(transparent)]
    Editor(#[from] EditorProblem),
    /// The MCP server that is to be asked has no address that can be used.
    #[error(transparent)]
    McpAddress(#[from] McpAddressProblem),
    /// What a tool is to be given is none.
    #[error("the arguments of a tool are a JSON object: {0}")]
    ToolArguments(String),
    /// What is said to the agent at the terminal cannot be done.
    #[error(transparent)]
    Chat(#[from] ChatError),
    /// A signal came between two steps.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl From<AgentError> for Error {
    /// What other workflows fail with, too, is told as there.
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Model(error) => Self::AgentsModel(error),
            AgentError::Process(error) => Self::Process(error),
            AgentError::Host(error) => match error.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Agent(AgentError::Host(other)),
            },
            error => Self::Agent(error),
        }
    }
}

impl From<NoKey> for Error {
    fn from(problem: NoKey) -> Self {
        match problem {
            NoKey::Interrupted(interrupted) => interrupted.into(),
            problem => NotReady::from(problem).into(),
        }
    }
}

impl From<McpError> for Error {
    fn from(error: McpError) -> Self {
        match error {
            McpError::Interrupted(interrupted) => interrupted.into(),
            error => Self::Agent(AgentError::Mcp(error)),
        }
    }
}

impl From<Error> for AgentError {
    /// What a host fails with, for the agent in it.
    fn from(error: Error) -> Self {
        match error {
            Error::Agent(error) => error,
            error => match (error.exit(), error) {
                (Exit::Interrupted(signal), _) => Self::Interrupted(Interrupted { signal }),
                (_, Error::Model(error) | Error::AgentsModel(error)) => Self::Model(error),
                (_, Error::Process(error)) => Self::Process(error),
                (_, Error::OverBudget(over)) => Self::OverBudget(over),
                (
                    _,
                    Error::DoesNotFit {
                        prompt_tokens,
                        window,
                        ..
                    },
                ) => Self::TooLong {
                    tokens: prompt_tokens,
                    window,
                    larger: None,
                    is_at_once: false,
                },
                (_, error) => Self::Host(Box::new(error)),
            },
        }
    }
}

impl Error {
    /// How the process ends.
    #[must_use]
    #[expect(clippy::too_many_lines, reason = "it is a table")]
    pub fn exit(&self) -> Exit {
        match self {
            Self::Model(ModelError::Interrupted(interrupted))
            | Self::AgentsModel(ModelError::Interrupted(interrupted))
            | Self::Build(BuildError::Interrupted(interrupted))
            | Self::Process(ProcessError::Interrupted(interrupted))
            | Self::Agent(
                AgentError::Interrupted(interrupted)
                | AgentError::Mcp(McpError::Interrupted(interrupted)),
            )
            | Self::Input(InputError::Interrupted(interrupted))
            | Self::Interrupted(interrupted) => Exit::Interrupted(interrupted.signal),
            Self::Agent(AgentError::OverBudget(over)) if !over.is_at_once() => Exit::OverBudget,
            Self::NotReady(_)
            | Self::Plan(PlanFileError::Unreadable { .. })
            | Self::NoIndex(_)
            | Self::EmptyRollup(_)
            | Self::Editor(_)
            | Self::Session(
                SessionError::InUse { .. }
                | SessionError::Damaged { .. }
                | SessionError::Unlockable { .. },
            )
            | Self::Agent(
                AgentError::OverBudget(_)
                | AgentError::TooLong {
                    is_at_once: true, ..
                },
            ) => Exit::NotReady,
            Self::UnknownModel { .. }
            | Self::NoRoot { .. }
            | Self::NotInCatalogue { .. }
            | Self::ModelIsThere(_)
            | Self::NoSuchCommand(_)
            | Self::ProtectedSummary { .. }
            | Self::NotTracked(_)
            | Self::Recording(_)
            | Self::NoSuchRun(
                NoSuchRun::Missing(_) | NoSuchRun::Ambiguous { .. } | NoSuchRun::NoRun(_),
            )
            | Self::DemoNotEmpty(_)
            | Self::Session(
                SessionError::Missing { .. }
                | SessionError::Exists { .. }
                | SessionError::NoneIn { .. }
                | SessionError::Elsewhere { .. },
            )
            | Self::Input(
                InputError::NotUtf8 { .. }
                | InputError::LineTooLong { .. }
                | InputError::TooLong
                | InputError::Blank,
            )
            | Self::PlanOutside(_)
            | Self::NoPlan(_)
            | Self::PlanElsewhere { .. }
            | Self::McpAddress(_)
            | Self::ToolArguments(_)
            | Self::NothingAsked => Exit::Usage,
            Self::Agent(AgentError::Mcp(_)) => Exit::McpFailed,
            Self::Model(error) | Self::AgentsModel(error) if !error.is_local() => Exit::ModelFailed,
            Self::Agent(
                AgentError::NotCompressed { .. }
                | AgentError::TooLong { .. }
                | AgentError::Model(_),
            ) => Exit::ModelFailed,
            Self::Changed(_)
            | Self::NoEdits
            | Self::Rejected { .. }
            | Self::Verify(VerifyError::Rejected(_))
            | Self::Agent(AgentError::NotUnderstood { .. }) => Exit::ReplyRejected,
            Self::BuildFailed { .. } | Self::OverBudget(_) | Self::DoesNotFit { .. } => {
                Exit::BuildFailed
            }
            Self::Agent(AgentError::GateFailed { .. }) => Exit::BuildFailed,
            Self::Agent(AgentError::StepFailed { .. }) => Exit::StepFailed,
            Self::Agent(AgentError::Rejected { .. }) => Exit::Stopped,
            Self::Unreliable { .. } => Exit::Unreliable,
            Self::Chat(error) => error.exit(),
            Self::GateChanged(_) => Exit::GateChanged,
            Self::Agent(AgentError::ToolsFailed { .. }) => Exit::ToolsFailed,
            Self::Agent(AgentError::AuditFailed { .. }) => Exit::AuditFailed,
            Self::Agent(AgentError::LoopLimit { .. }) => Exit::LoopLimit,
            Self::Agent(AgentError::IterationLimit { .. }) => Exit::IterationLimit,
            Self::Agent(AgentError::BranchTimeout { .. }) => Exit::BranchTimeout,
            Self::Agent(AgentError::PublishFailed { .. }) => Exit::PublishFailed,
            Self::Agent(AgentError::Process(_) | AgentError::Host(_))
            | Self::Apply(_)
            | Self::Build(_)
            | Self::File(_)
            | Self::Input(InputError::Io(_))
            | Self::Model(_)
            | Self::AgentsModel(_)
            | Self::NoSuchRun(_)
            | Self::Plan(PlanFileError::File(_))
            | Self::Process(_)
            | Self::Recover(_)
            | Self::Session(_)
            | Self::Undo(_)
            | Self::UndoLog(_)
            | Self::Verify(VerifyError::Io { .. }) => Exit::LocalIo,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            // Each of its problems has a hint of its own.
            Self::NotReady(_) => return None,
            Self::Unreliable { .. } => "another model may keep to the form better",
            Self::Plan(problem) => problem.hint(),
            Self::PlanOutside(_) | Self::NoPlan(_) => PLAN_OUTSIDE_HINT,
            Self::PlanElsewhere { .. } => "leave `--plan-file` out: the session knows its plan",
            Self::Recording(problem) => return Some(problem.hint()),
            Self::Model(error) => return Some(error.hint()),
            Self::AgentsModel(error) => return Some(error.hint_for_agent()),
            Self::Session(error) => return Some(error.hint()),
            Self::Agent(error) => return error.hint(),
            Self::GateChanged(changed) => return Some(changed.hint()),
            Self::Chat(error) => return Some(error.hint()),
            Self::BuildFailed { log, .. } => {
                return Some(format!(
                    "see the build's log, `{log}`; `code-commit --resume last` asks for more repairs"
                ));
            }
            Self::Build(BuildError::Unfit { problem }) => problem.hint(),
            Self::Apply(error) | Self::Undo(UndoError::Apply(error)) => apply_hint(error),
            Self::Recover(error) | Self::Undo(UndoError::Recover(error)) => recover_hint(error),
            Self::NotInCatalogue { .. } => {
                "write its entry into `agent-config/models.json`: docs/models.md describes the form"
            }
            Self::ModelIsThere(_) => "`code-commit models` shows it",
            Self::UnknownModel { name, .. }
                if catalogue::known(name).is_some_and(|known| known.entry.is_some()) =>
            {
                return Some(format!("`code-commit models --add {name}` adds it"));
            }
            Self::UnknownModel { .. } => {
                "`code-commit models` shows them; `agent-config/models.json` adds others"
            }
            Self::ProtectedSummary { .. } => "name another file; nothing was done",
            Self::NoRoot { .. } => "name the project's directory: `--root DIR`",
            Self::NoSuchCommand(_) => "`code-commit --help` lists them",
            Self::NoIndex(IndexProblem::NoRepository) => {
                "make the project a repository: `git init && git add --all`"
            }
            Self::NoIndex(_) => MEND_REPOSITORY,
            Self::EmptyRollup(_) => {
                "`git add` files of text, or name other paths; a rollup that was there is as it was"
            }
            Self::NotTracked(_) => {
                "name files that git tracks, or directories with such: `git add` adds new ones"
            }
            Self::DoesNotFit { .. } => {
                "leave files out of the rollup, let build.sh print less, or name a model with a \
                 larger window for repairs (one of Ollama's is loaded with its entry's `numCtx`)"
            }
            Self::OverBudget(over) => return Some(format!("{}, and run again", over.hint())),
            Self::DemoNotEmpty(_) => "name another directory: `code-commit demo DIR`",
            Self::Rejected { rejection, run } => return Some(rejected_hint(rejection, run)),
            Self::Verify(VerifyError::Rejected(_)) => REJECTED_HINT,
            Self::NoEdits => NO_EDITS_HINT,
            Self::Changed(_) => CHANGED_HINT,
            Self::NothingAsked => NOTHING_ASKED_HINT,
            Self::McpAddress(problem) => return Some(problem.hint()),
            Self::ToolArguments(_) => "write them like `'{\"name\": \"value\"}'`",
            Self::Editor(_) => "set `VISUAL` or `EDITOR` to the command of an editor",
            Self::Interrupted(_)
            | Self::Build(BuildError::Interrupted(_))
            | Self::Process(ProcessError::Interrupted(_)) => "run again",
            Self::Input(error) => input_hint(error),
            Self::Verify(VerifyError::Io(error)) | Self::File(error)
                if is_too_large(&error.source) =>
            {
                "make it smaller, or move it away"
            }
            Self::Verify(VerifyError::Io { .. }) | Self::File(PathError { action: "read", .. }) => {
                "make it readable"
            }
            // A refusal of this program's own.
            Self::File(error) if error.source.kind() == io::ErrorKind::Other => {
                "name another path, or move what is there out of the way"
            }
            Self::File(_)
            | Self::Build(BuildError::Log(_))
            | Self::Process(ProcessError::Output { .. }) => {
                "see that the disk has room and the directory is writable"
            }
            Self::Build(BuildError::Sandbox(problem))
            | Self::Process(ProcessError::Sandbox(problem)) => sandbox_hint(problem),
            Self::Process(ProcessError::NotStarted { .. }) => "name a program that is there",
            Self::Process(ProcessError::NoSupervisor) => "start this program from its own file",
            Self::Process(ProcessError::ForeignProc) => FOREIGN_PROC_HINT,
            Self::Build(BuildError::Io { .. }) | Self::Process(ProcessError::Io(_)) => {
                "see that the machine can start another process"
            }
            Self::NoSuchRun(error) => error.hint(),
            Self::UndoLog(_) => {
                "put the files back by hand: `replaced` in the run's folder holds them"
            }
            Self::Undo(UndoError::Changed(_)) => {
                "nothing was undone; keep your changes elsewhere, put these files back by hand, and undo again"
            }
            Self::Undo(UndoError::Io { .. }) => "make it readable; nothing was undone",
        };
        Some(hint.to_owned())
    }
}

/// Names the flags that accept the reply as it is, where that is all it needs.
fn rejected_hint(rejection: &Rejection, run: &str) -> String {
    let accepting = rejection.flags().map(|flags| {
        format!("; if it is right as it is, `code-commit --replay {run} {flags}` accepts it without a call")
    });
    format!("{REJECTED_HINT}{}", accepting.unwrap_or_default())
}

fn input_hint(error: &InputError) -> &'static str {
    match error {
        InputError::Interrupted(_) => "run again",
        InputError::Io(_) => "see where standard input comes from",
        _ => "say what is to be done as text; `-`, in place of the text, reads standard input",
    }
}

const FOREIGN_PROC_HINT: &str =
    "mount `/proc` in the container, as `unshare --mount-proc` does, or let bubblewrap work";
const PLAN_OUTSIDE_HINT: &str =
    "name another file, in a directory of the project that is there; not a link";
const NOTHING_ASKED_HINT: &str =
    "give a task with `-p`, or resume an unfinished session with `--resume` or `--session`";
const REJECTED_HINT: &str = "nothing of the reply was applied; run again, or say in the query what it got wrong; \
    `--reask N` asks again by itself";
const NO_EDITS_HINT: &str =
    "see in the run's folder what the model says, and say in the query what is to change";
const CHANGED_HINT: &str = "the reply is kept in the run's folder: put the files back as the model was shown them, \
    or allow to replace them with `--allow-stale`; then `code-commit --resume RUN` applies it";

fn sandbox_hint(problem: &SandboxProblem) -> &'static str {
    match problem {
        SandboxProblem::Moved(_) => {
            "see who did that, build.sh or a command perhaps, and put it back as it was"
        }
        _ => "mend the cause, or use `--sandbox off`",
    }
}

fn apply_hint(error: &ApplyError) -> &'static str {
    match error {
        ApplyError::NotRolledBack { .. } => "mend the cause, and run `code-commit recover`",
        ApplyError::Earlier(error) => recover_hint(error),
        ApplyError::RolledBack { .. } | ApplyError::Journal(_) => {
            // What has become of the project is told by the run.
            "mend the cause and run again"
        }
    }
}

fn recover_hint(error: &RecoverError) -> &'static str {
    match error {
        RecoverError::Io { .. } => "mend the cause, and run `code-commit recover`",
        RecoverError::Changed(_) => {
            "put right what is named, by hand: keep the version you want under its own name, and \
             move the other away; then run `code-commit recover`"
        }
        RecoverError::Journal(_) => {
            "mend the cause: the journal tells how to undo what was cut short. If no run wrote it, remove it"
        }
    }
}
