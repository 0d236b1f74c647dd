//! Every stage's error under one roof: its exit code, and what to do about it.

use std::io;
use std::path::PathBuf;

use crate::agent::AgentError;
use crate::agent::session::SessionError;
use crate::edit::error::{ApplyError, RecoverError};
use crate::edit::undo::UndoError;
use crate::edit::undo_log::UndoLogError;
use crate::edit::{Rejection, VerifyError};
use crate::exec::build_script::BuildError;
use crate::exec::process::ProcessError;
use crate::exec::sandbox::SandboxProblem;
use crate::model::ModelError;
use crate::model::estimate::OverBudget;
use crate::model::price::Usd;
use crate::project::ROLLUP;
use crate::record::ExitRecord;
use crate::record::replay::RecordingProblem;
use crate::record::run_log::LogError;
use crate::review::history::NoSuchRun;
use crate::sys::interrupt::{Interrupted, Signal};
use crate::sys::numbers;
use crate::ui::editor::EditorProblem;
use crate::ui::input::InputError;
use crate::workflow::NotReady;

/// How the process ends: the contract's exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The build passed, or the report was written.
    Done,
    /// The build still fails after the last repair.
    BuildFailed,
    /// The command line is wrong.
    Usage,
    /// The project lacks something.
    NotReady,
    /// There is no whole reply.
    ModelFailed,
    /// The reply is not to be applied.
    ReplyRejected,
    /// A local read, write or log failed.
    LocalIo,
    /// The audit has not passed an agent's work.
    AuditFailed,
    /// An agent's tools failed too often.
    ToolsFailed,
    /// An agent has asked the model as often as it may.
    LoopLimit,
    /// An agent's next call may cost more than is left.
    OverBudget,
    /// A signal came.
    Interrupted(Signal),
}

impl Exit {
    /// The code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            // What was asked for was not reached.
            Self::BuildFailed
            | Self::AuditFailed
            | Self::ToolsFailed
            | Self::LoopLimit
            | Self::OverBudget => 1,
            Self::Usage => 2,
            Self::NotReady => 3,
            Self::ModelFailed => 4,
            Self::ReplyRejected => 5,
            Self::LocalIo => 6,
            Self::Interrupted(signal) => 128 + signal.number(),
        }
    }

    /// The code's name in the contract.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::BuildFailed => "build-failed",
            Self::AuditFailed => "audit-failed",
            Self::ToolsFailed => "tools-failed",
            Self::LoopLimit => "loop-limit",
            Self::OverBudget => "over-budget",
            Self::Usage => "usage",
            Self::NotReady => "not-ready",
            Self::ModelFailed => "model-failed",
            Self::ReplyRejected => "reply-rejected",
            Self::LocalIo => "local-io",
            Self::Interrupted(_) => "interrupted",
        }
    }

    /// Both, for `result.json`.
    #[must_use]
    pub fn record(self) -> ExitRecord {
        ExitRecord {
            code: self.code(),
            name: self.name().into(),
        }
    }
}

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
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
        /// The model.
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
    /// A file could not be written that is no part of a reply.
    #[error("cannot write `{}`: {source}", .path.display())]
    Unwritable {
        /// The file, or its directory.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// The page could not be written.
    #[error("cannot write `{}`: {source}", .path.display())]
    Page {
        /// The page.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// There is no whole reply.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The reply is not verified.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The edits could not be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The tree could not be put in order after an earlier run.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// There is no such command.
    #[error("there is no command `{0}`")]
    NoSuchCommand(String),
    /// The code base could not be rolled up.
    #[error(transparent)]
    Rollup(#[from] RollupError),
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
    },
    /// An agent did not get to the end of its work.
    #[error(transparent)]
    Agent(AgentError),
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
    /// The run could not be logged.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A signal came between two steps.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Why nothing was rolled up.
#[derive(Debug, thiserror::Error)]
pub enum RollupError {
    /// There is no git, or it will not list files.
    #[error("git does not list the project's files: {reason}")]
    Git {
        /// What it said.
        reason: String,
    },
    /// A path that was named leads out of the project, or git tracks nothing there.
    #[error("`{}` names nothing that git tracks", .0.display())]
    NoSuchPath(PathBuf),
    /// No file is left to take.
    #[error("there is nothing to roll up; {0} left out")]
    Nothing(String),
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}")]
    Unreadable {
        /// The file, relative to the root.
        path: String,
        /// The system's word.
        source: io::Error,
    },
    /// The rollup cannot be written.
    #[error("cannot write `{ROLLUP}`: {0}")]
    Unwritable(io::Error),
}

impl From<AgentError> for Error {
    /// What other workflows fail with, too, is told as there.
    fn from(error: AgentError) -> Self {
        match error {
            AgentError::Model(error) => Self::Model(error),
            AgentError::Process(error) => Self::Process(error),
            AgentError::Host(error) => match error.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Agent(AgentError::Host(other)),
            },
            error => Self::Agent(error),
        }
    }
}

impl From<Error> for AgentError {
    /// What a host fails with, for the agent in it.
    fn from(error: Error) -> Self {
        match error {
            Error::Agent(error) => error,
            Error::Model(error) => Self::Model(error),
            Error::Process(error) => Self::Process(error),
            Error::OverBudget(over) => Self::OverBudget(over),
            error => match error.exit() {
                Exit::Interrupted(signal) => Self::Interrupted(Interrupted { signal }),
                _ => Self::Host(Box::new(error)),
            },
        }
    }
}

impl Error {
    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::NotReady(_) | Self::Rollup(RollupError::Git { .. } | RollupError::Nothing(_)) => {
                Exit::NotReady
            }
            Self::UnknownModel { .. }
            | Self::NoSuchCommand(_)
            | Self::Rollup(RollupError::NoSuchPath(_))
            | Self::Recording(_)
            | Self::NoSuchRun(NoSuchRun::Missing(_) | NoSuchRun::NoRun(_))
            | Self::DemoNotEmpty(_)
            | Self::NothingAsked => Exit::Usage,
            Self::Model(ModelError::Interrupted(interrupted))
            | Self::Build(BuildError::Interrupted(interrupted))
            | Self::Process(ProcessError::Interrupted(interrupted))
            | Self::Agent(AgentError::Interrupted(interrupted))
            | Self::Interrupted(interrupted) => Exit::Interrupted(interrupted.signal),
            Self::Model(error) if !error.is_local() => Exit::ModelFailed,
            Self::Verify(VerifyError::Rejected(_))
            | Self::Agent(AgentError::NotUnderstood { .. }) => Exit::ReplyRejected,
            Self::BuildFailed { .. } | Self::OverBudget(_) | Self::DoesNotFit { .. } => {
                Exit::BuildFailed
            }
            Self::Session(error) => match error {
                SessionError::Missing { .. }
                | SessionError::Exists { .. }
                | SessionError::NoneIn { .. }
                | SessionError::Elsewhere { .. } => Exit::Usage,
                SessionError::InUse { .. }
                | SessionError::Damaged { .. }
                | SessionError::Unlockable { .. } => Exit::NotReady,
                SessionError::Io { .. } => Exit::LocalIo,
            },
            Self::Input(error) => match error {
                InputError::Interrupted(interrupted) => Exit::Interrupted(interrupted.signal),
                InputError::Io(_) => Exit::LocalIo,
                InputError::NotUtf8 { .. }
                | InputError::LineTooLong { .. }
                | InputError::TooLong
                | InputError::Blank => Exit::Usage,
            },
            Self::Editor(_) => Exit::NotReady,
            Self::Agent(AgentError::ToolsFailed { .. }) => Exit::ToolsFailed,
            Self::Agent(AgentError::AuditFailed { .. }) => Exit::AuditFailed,
            Self::Agent(AgentError::LoopLimit { .. }) => Exit::LoopLimit,
            Self::Agent(AgentError::OverBudget(over)) if over.spent == Usd::ZERO => Exit::NotReady,
            Self::Agent(AgentError::OverBudget(_)) => Exit::OverBudget,
            Self::Agent(AgentError::NotCompressed { .. } | AgentError::Model(_)) => {
                Exit::ModelFailed
            }
            Self::Agent(AgentError::Process(_) | AgentError::Host(_))
            | Self::Unwritable { .. }
            | Self::Model(_)
            | Self::Verify(VerifyError::Io { .. })
            | Self::Apply(_)
            | Self::Recover(_)
            | Self::NoSuchRun(NoSuchRun::Unreadable { .. })
            | Self::UndoLog(_)
            | Self::Undo(_)
            | Self::Build(_)
            | Self::Process(_)
            | Self::Page { .. }
            | Self::Rollup(RollupError::Unreadable { .. } | RollupError::Unwritable(_))
            | Self::Log(_) => Exit::LocalIo,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::UnknownModel { .. } => {
                "`code-commit models` shows them; `agent-config/models.json` adds others"
            }
            Self::Page { .. } => {
                "name a page of before, or a file that is not there yet in a directory that is; and see \
                 that the disk has room"
            }
            Self::NoSuchCommand(_) => "`code-commit --help` lists them",
            Self::Rollup(RollupError::Git { .. }) => {
                "install git, and make the project a repository: `git init && git add --all`"
            }
            Self::Rollup(RollupError::Nothing(_)) => {
                "the rollup is as it was; name other paths, or `git add` files of text"
            }
            Self::Rollup(RollupError::NoSuchPath(_)) => {
                "name files that git tracks, or directories with such: `git add` adds new ones"
            }
            Self::DoesNotFit { .. } => {
                "leave files out of the rollup, let build.sh print less, or name a model with a \
                 larger window for repairs"
            }
            Self::OverBudget(_) => "give it more with `--max-cost`, and run again",
            // Each of its problems has a hint of its own.
            Self::NotReady(_) => return None,
            Self::Recording(problem) => return Some(problem.hint()),
            Self::Model(error) => return Some(error.hint()),
            Self::Build(BuildError::Unfit { problem }) => {
                return Some(problem.hint().to_owned());
            }
            Self::DemoNotEmpty(_) => "name another directory: `code-commit demo DIR`",
            Self::Verify(VerifyError::Rejected(Rejection { .. })) => {
                "nothing of the reply was applied; run again, or say in the query what it got wrong"
            }
            Self::Apply(error) | Self::Undo(UndoError::Apply(error)) => return apply_hint(error),
            Self::Recover(error) | Self::Undo(UndoError::Recover(error)) => {
                return recover_hint(error);
            }
            Self::Agent(error) => return error.hint().map(str::to_owned),
            Self::NothingAsked => {
                "say what is to be done: `-p \"…\"`, or without `-p` at the prompt; an empty one goes on \
                 with a session that is not done, by `--resume` or `--session`"
            }
            Self::Session(error) => return Some(error.hint()),
            Self::Editor(_) => "set `VISUAL` or `EDITOR` to the command of an editor",
            Self::BuildFailed { .. } => "see the build's log in the run's folder",
            Self::Interrupted(_)
            | Self::Build(BuildError::Interrupted(_))
            | Self::Process(ProcessError::Interrupted(_))
            | Self::Input(InputError::Interrupted(_)) => "run again",
            Self::Input(InputError::Io(_)) => "see where standard input comes from",
            Self::Input(_) => "say what is to be done as text, at the prompt or by `-p -`",
            Self::Unwritable { .. }
            | Self::Rollup(RollupError::Unwritable(_))
            | Self::Process(ProcessError::Output { .. })
            | Self::Log(_) => "see that the disk has room and the directory is writable",
            Self::Build(BuildError::Log(_)) => "see that the disk has room",
            Self::Process(ProcessError::Sandbox(SandboxProblem::Moved(_))) => {
                "see who did that, a command perhaps, and put it back as it was"
            }
            Self::Build(BuildError::Sandbox(SandboxProblem::Moved(_))) => {
                "see who did that, build.sh perhaps, and put it back as it was"
            }
            Self::Build(BuildError::Sandbox(_)) | Self::Process(ProcessError::Sandbox(_)) => {
                "mend the cause, or use `--sandbox off`"
            }
            Self::Verify(VerifyError::Io { .. })
            | Self::Rollup(RollupError::Unreadable { .. })
            | Self::NoSuchRun(NoSuchRun::Unreadable { .. }) => "make it readable",
            Self::Process(ProcessError::NotStarted { .. }) => "name a program that is there",
            Self::Process(ProcessError::NoSupervisor) => "start this program from its own file",
            Self::Process(ProcessError::ForeignProc) => {
                "mount `/proc` in the container, as `unshare --mount-proc` does, or let bubblewrap work"
            }
            Self::Build(BuildError::Io { .. }) | Self::Process(ProcessError::Io(_)) => {
                "see that the machine can start another process"
            }
            Self::NoSuchRun(NoSuchRun::Missing(_)) => {
                "name a folder below `logs`, by its path or its name"
            }
            Self::NoSuchRun(NoSuchRun::NoRun(_)) => "`code-commit log` lists the runs",
            Self::UndoLog(_) | Self::Undo(UndoError::Damaged(_)) => {
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

fn apply_hint(error: &ApplyError) -> Option<String> {
    let hint = match error {
        ApplyError::NotRolledBack { .. } => "mend the cause, and run `code-commit recover`",
        ApplyError::Earlier(error) => return recover_hint(error),
        ApplyError::RolledBack { .. } | ApplyError::Journal(_) => {
            "nothing of it was applied; mend the cause and run again"
        }
    };
    Some(hint.to_owned())
}

fn recover_hint(error: &RecoverError) -> Option<String> {
    let hint = match error {
        RecoverError::Io { .. } => "mend the cause, and run `code-commit recover`",
        RecoverError::Changed(_) => {
            "put right what is named, by hand: keep the version you want under its own name, and \
             move the other away; then run `code-commit recover`"
        }
        RecoverError::Journal(_) => {
            "mend the cause: the journal tells how to undo what was cut short. If no run wrote it, remove it"
        }
        RecoverError::Torn(error) => return apply_hint(error),
    };
    Some(hint.to_owned())
}
