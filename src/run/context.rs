//! The context that every workflow is given. Plain data.

use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::NaiveDate;

use super::env_file::EnvFile;
use crate::edit::Allowances;
use crate::edit::apply::Tree;
use crate::model::price::Usd;
use crate::model::prompt::Inputs;
use crate::model::{Delivery, ModelTable, TableProblem, Tier, Unselected};
use crate::project::{DRAFT, Project, QUERY};
use crate::record::event::{Event, Reporter};
use crate::secret::Redactor;
use crate::sys::environment::{Clock, Environment};
use crate::sys::interrupt::Interrupt;

/// The context that every workflow works with.
#[derive(Clone)]
pub struct Context<'a> {
    /// The project that the command is run in.
    pub project: Project,
    /// The directory whose sessions an agent goes on with: the root, or one below it.
    pub directory: &'a Path,
    /// The environment the process was started with, and below that the command's `.env`.
    pub environment: &'a Environment,
    /// That file, where the command reads one.
    pub env_file: &'a EnvFile,
    /// Tells the time of day, and how long things take.
    pub clock: &'a dyn Clock,
    /// Ends a run early.
    pub interrupt: &'a Interrupt,
    /// Knows the keys.
    pub redactor: &'a Redactor,
    /// Hears what happens.
    pub reporter: &'a dyn Reporter,
    /// The program's own file, which no reply may touch.
    pub program: Option<&'a Path>,
    /// A file of the program's own in the project, which nothing sandboxed may write to.
    pub document: Option<PathBuf>,
    /// The variables that a sandbox, or an MCP server, gets though their names say that they hold a secret.
    pub passed: &'a [String],
    /// The losses that replies may cause in the files they replace.
    pub allowances: Allowances,
    /// The sockets that a sandbox does not hide.
    pub allowed_sockets: &'a [PathBuf],
    /// The models that can be asked, or why their table cannot be used.
    pub models: &'a Result<ModelTable, ModelsProblem>,
}

impl Context<'_> {
    /// The key files of all models, as far as their table can be used.
    pub fn key_files(&self) -> Vec<&str> {
        let built_in = || vec!["anthropic-key.txt", "gemini-key.txt", "openai-key.txt"];
        self.models
            .as_ref()
            .map_or_else(|_| built_in(), ModelTable::key_files)
    }

    /// Tells the user something that is no error.
    pub fn warn(&self, text: impl Into<String>) {
        self.reporter.event(&Event::Warning(text.into()));
    }

    /// Tells the user something by the way.
    pub fn notice(&self, text: impl Into<String>) {
        self.reporter.event(&Event::Notice(text.into()));
    }

    /// The day that it is where the user is.
    pub fn today(&self) -> NaiveDate {
        self.clock.now().date_naive()
    }

    /// The user's home directory.
    pub fn home(&self) -> Option<&Path> {
        self.environment.os("HOME").map(Path::new)
    }

    /// Returns the tree that edits go to, with this directory for the journal.
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
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    /// The name of the model asked for; `None`: the recorded one, or what the table says.
    pub model: Option<String>,
    /// The run to replay in place of calls.
    pub replay: Option<PathBuf>,
    /// The run to resume.
    pub resume: Option<PathBuf>,
    /// The maximum time of a call, its retries included.
    pub timeout: Duration,
    /// True if the answer comes piece by piece.
    pub delivery: Delivery,
    /// True if credentials are sent, but for the project's own keys.
    pub allow_secrets: bool,
    /// The inputs to send.
    pub inputs: InputOptions,
    /// True if a reply of another model than the one that was asked is none.
    pub require_model: bool,
    /// The tier of service to ask for; `None`: that of the model's entry.
    pub tier: Option<Tier>,
    /// The maximum cost of all calls of the run.
    pub max_cost: Option<Usd>,
}

/// The sources of the query and the code base.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InputOptions {
    /// The query.
    pub query: QuerySource,
    /// True if the code base is rolled up for the run; else, where the query is a file, it is one, too.
    pub roll_up: bool,
    /// The required agreement of the code base with the disk.
    pub freshness: Freshness,
}

/// The source of the query.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum QuerySource {
    /// From `agent-config/query.txt`.
    #[default]
    File,
    /// From the command line or standard input.
    Given(String),
    /// From the run that is resumed, and the code base, too.
    Recorded(Inputs),
    /// From the user's editor: a draft, which is removed when a run has begun.
    Edited(String),
}

impl QuerySource {
    /// Returns the name to show for it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::File => QUERY,
            Self::Given(_) => "--message",
            Self::Recorded(_) => "the recorded query",
            Self::Edited(_) => DRAFT,
        }
    }

    /// Returns whether it lies in a file that is the program's to remove.
    pub fn is_draft(&self) -> bool {
        matches!(self, Self::Edited(_))
    }
}

/// The required agreement of the code base with the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Freshness {
    /// It must be the one on the disk, as far as that can be told.
    #[default]
    Compared,
    /// It must be the one on the disk, and that must be certain.
    Required,
    /// It may be another.
    Stale,
}

/// The state of standard input.
#[derive(Debug, Clone, Copy)]
pub struct Stdin {
    /// True if somebody types there.
    pub is_terminal: bool,
    /// True if they see what they type: stdout is a terminal, too.
    pub is_seen: bool,
}

/// A table of models cannot be used: the one in `agent-config/models.json`, or an agent's own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum ModelsProblem {
    /// It cannot be read.
    #[error("{0}")]
    #[diagnostic(help("make it a readable UTF-8 file, or remove it"))]
    Unreadable(String),
    /// It may not be the user's.
    #[error("{problem}")]
    #[diagnostic(help("{hint}"))]
    NotUsers { problem: String, hint: String },
    /// There is a mistake in it.
    #[error(transparent)]
    #[diagnostic(help("fix it, or remove the file; docs/models.md describes the format"))]
    Mistake(#[from] TableProblem),
    /// It does not say whom to ask.
    #[error(transparent)]
    #[diagnostic(help("name one in `selectionRules`, or use `--model`"))]
    Unselected(#[from] Unselected),
}
