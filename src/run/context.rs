//! The context passed to every workflow. Plain data.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::NaiveDate;

use super::code_context::CodeLimit;
use super::env_file::EnvFile;
use super::scratch::ScratchRun;
use super::telemetry::Telemetry;
use crate::edit::apply::Tree;
use crate::edit::protection::Protection;
use crate::model::pace::PACE;
use crate::model::price::Usd;
use crate::model::prompt::Inputs;
use crate::model::{Delivery, ModelTable, ReplyFormat, TableProblem, Tier, Unselected};
use crate::project::{DRAFT, Project, QUERY, configured};
use crate::record::event::{Event, Reporter};
use crate::secret::Redactor;
use crate::sys::environment::{Clock, Environment};
use crate::sys::interrupt::Interrupt;

/// Environment variable with the folder of the task that the process is a part of.
pub const TASK_FOLDER: &str = "CODE_COMMIT_TASK_FOLDER";

/// The project, environment and services that every workflow uses. Without its reporter, other threads can use it, too.
pub struct Context<'a, R: ?Sized = dyn Reporter + 'a> {
    /// The project that the command runs in.
    pub project: Project,
    /// The environment of the process, with defaults from the command's `.env`.
    pub environment: &'a Environment,
    /// The `.env` itself, if the command reads one.
    pub env_file: &'a EnvFile,
    /// The source of the time of day and of elapsed time.
    pub clock: &'a dyn Clock,
    /// The interrupt that ends a run when a signal arrives.
    pub interrupt: &'a Interrupt,
    /// The redactor of keys and other secrets.
    pub redactor: &'a Redactor,
    /// The receiver of the run's events.
    pub reporter: &'a R,
    /// The parts of every sandbox that do not depend on its mode.
    pub sandbox: SandboxSetup<'a>,
    /// The scratch tree that the whole command works in, if any; `project` then refers to that tree.
    pub scratch: Option<&'a ScratchRun>,
    /// The files and values that the project protects.
    pub protection: &'a Protection,
    /// The export of the run to a collector, if the environment asks for it.
    pub telemetry: Option<Telemetry<'a>>,
    /// The models that can be asked, or the reason their table cannot be used.
    pub models: &'a Result<ModelTable, ModelsProblem>,
}

/// The parts of every sandbox that do not depend on its mode.
#[derive(Clone)]
pub struct SandboxSetup<'a> {
    /// The program's own executable, which sets up sandboxes and which no reply may touch.
    pub program: Option<&'a Path>,
    /// A document of the program's own in the project, which sandboxed commands cannot write.
    pub document: Option<PathBuf>,
    /// Paths outside the project that are empty in the sandbox.
    pub hidden: Vec<PathBuf>,
    /// Variables passed to sandboxes and MCP servers although their names suggest a secret.
    pub passed: &'a [String],
    /// Sockets that a sandbox does not hide.
    pub allowed_sockets: &'a [PathBuf],
}

impl<R: ?Sized> Clone for Context<'_, R> {
    fn clone(&self) -> Self {
        self.reporting_to(self.reporter)
    }
}

impl<'a, R: ?Sized> Context<'a, R> {
    /// Returns a context whose events go to another reporter.
    pub fn with_reporter(&self, reporter: &'a dyn Reporter) -> Context<'a> {
        self.reporting_to(reporter)
    }

    /// Returns a context without a reporter, for other threads.
    pub fn shared(&self) -> Context<'a, ()> {
        self.reporting_to(&())
    }

    fn reporting_to<S: ?Sized>(&self, reporter: &'a S) -> Context<'a, S> {
        Context {
            project: self.project.clone(),
            environment: self.environment,
            env_file: self.env_file,
            clock: self.clock,
            interrupt: self.interrupt,
            redactor: self.redactor,
            reporter,
            sandbox: self.sandbox.clone(),
            scratch: self.scratch,
            protection: self.protection,
            models: self.models,
            telemetry: self.telemetry,
        }
    }
}

impl Context<'_> {
    /// Returns the default key files of all vendors, and those of the models if their table can be used.
    pub fn key_files(&self) -> Vec<&str> {
        ModelTable::all_key_files(self.models.as_ref().ok())
    }

    /// Shows the user a warning.
    pub fn warn(&self, text: impl Into<String>) {
        self.reporter.event(&Event::Warning(text.into()));
    }

    /// Shows the user a notice.
    pub fn notice(&self, text: impl Into<String>) {
        self.reporter.event(&Event::Notice(text.into()));
    }

    /// Returns today's date in the user's time zone.
    pub fn today(&self) -> NaiveDate {
        self.clock.now().date_naive()
    }

    /// Returns the user's home directory.
    pub fn home(&self) -> Option<&Path> {
        self.environment.os("HOME").map(Path::new)
    }

    /// Returns the paths below the project's root that the configuration of its repository names, relative to the root.
    pub fn configured_paths(&self) -> BTreeSet<PathBuf> {
        configured::paths_below(self.project.root(), self.home())
    }

    /// Returns the folder of the task that the process is a part of.
    pub fn task_folder(&self) -> Option<&Path> {
        self.environment.os(TASK_FOLDER).map(Path::new)
    }

    /// Returns the directory of the files that keep this process and other tasks within the servers' rate limits.
    pub fn pace(&self) -> Option<PathBuf> {
        Some(self.task_folder()?.parent()?.join(PACE))
    }

    /// Returns the tree that edits are applied to, with this directory for the journal.
    pub fn tree<'t>(&'t self, journal: &'t Path) -> Tree<'t> {
        Tree {
            root: self.project.root(),
            journal,
            now: self.clock.now().into(),
            staged: None,
        }
    }
}

/// The source of replies.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelChoice {
    /// The model requested by name; `None` for the recorded one, or the table's default.
    pub model: Option<String>,
    /// The run whose replies are replayed instead of calling a model.
    pub replay: Option<PathBuf>,
    /// The run to resume.
    pub resume: Option<PathBuf>,
    /// The models of the attempts besides the first one; `None` for the same model.
    pub others: Vec<Option<String>>,
    /// Time limit for a call, including its retries.
    pub timeout: Duration,
    /// Delivery of the answer: as a whole or piece by piece.
    pub delivery: Delivery,
    /// True if likely credentials may be sent; the project's own keys never are.
    pub allow_secrets: bool,
    /// True if the project must have no uncommitted changes.
    pub require_clean: bool,
    /// The inputs to send.
    pub inputs: InputOptions,
    /// True if a reply from a model other than the one requested is rejected.
    pub require_model: bool,
    /// The service tier to request; `None` for the one in the model's entry.
    pub tier: Option<Tier>,
    /// Maximum cost of all calls of the run.
    pub max_cost: Option<Usd>,
    /// The format of replies with edits; `None` for the one in the model's entry.
    pub reply_format: Option<ReplyFormat>,
}

impl ModelChoice {
    /// Creates the choice of an agent, which gets its answers piece by piece.
    pub fn streamed(model: Option<&str>, timeout: Duration) -> Self {
        Self {
            model: model.map(str::to_owned),
            timeout,
            delivery: Delivery::Streamed,
            allow_secrets: true,
            ..Self::default()
        }
    }

    /// Returns the choice with another model.
    pub fn with_model(&self, name: &str) -> Self {
        Self {
            model: Some(name.to_owned()),
            ..self.clone()
        }
    }
}

/// The sources of the query and the code base.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputOptions {
    /// The source of the query.
    pub query: QuerySource,
    /// True to roll up the code base for the run. If false, it is read from its file, and rolled up only if that file
    /// is missing and the query does not come from a file.
    pub roll_up: bool,
    /// True to roll up staged content instead of the files on disk.
    pub is_staged: bool,
    /// True if a report may read a code base that does not fit the model's context window by parts.
    pub by_parts: bool,
    /// The degree to which the code base must match the disk.
    pub freshness: Freshness,
    /// The limit on the part of the code base that is sent.
    pub limit: CodeLimit,
}

/// A source of a query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum QuerySource {
    /// `agent-config/query.txt`.
    #[default]
    File,
    /// The command line or standard input.
    Given(String),
    /// The run being resumed, which also supplies the code base.
    Recorded(Inputs),
    /// The user's editor: a draft, removed once a run has begun.
    Edited(String),
}

impl QuerySource {
    /// Returns the name shown to the user.
    pub fn name(&self) -> &'static str {
        match self {
            Self::File => QUERY,
            Self::Given(_) => "--message",
            Self::Recorded(_) => "the recorded query",
            Self::Edited(_) => DRAFT,
        }
    }

    /// Returns whether the query is a draft file that the program removes.
    pub fn is_draft(&self) -> bool {
        matches!(self, Self::Edited(_))
    }
}

/// The degree to which the code base must match the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Freshness {
    /// Must match the disk; passes if it cannot be compared.
    #[default]
    Compared,
    /// Must match the disk, and must be comparable.
    Required,
    /// May differ from the disk.
    Stale,
}

/// The state of standard input.
#[derive(Debug, Clone, Copy)]
pub struct Stdin {
    /// True if it is a terminal.
    pub is_terminal: bool,
    /// True if the user sees the input echoed: stdout is a terminal, too.
    pub is_seen: bool,
}

/// Errors from using a table of models: `agent-config/models.json`, or an agent's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[diagnostic(code("/settings"))]
pub enum ModelsProblem {
    /// The file cannot be read.
    #[error("{0}")]
    #[diagnostic(help("make it a readable UTF-8 file, or remove it"))]
    Unreadable(String),
    /// The file may not belong to the user.
    #[error("{problem}")]
    #[diagnostic(help("{hint}"))]
    NotUsers { problem: String, hint: String },
    /// The table contains a mistake.
    #[error(transparent)]
    #[diagnostic(help("fix it, or remove the file; docs/models.md describes the format"))]
    Mistake(#[from] TableProblem),
    /// The table does not select a model.
    #[error(transparent)]
    #[diagnostic(help("name one in `selectionRules`, or use `--model`"))]
    Unselected(#[from] Unselected),
}
