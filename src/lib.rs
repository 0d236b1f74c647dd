//! `code-commit`: asks a language model for whole-file edits, verifies every byte of the answer,
//! applies all or nothing, and proves the result with the project's own `build.sh`.
//!
//! # The pipeline
//!
//! ```text
//! main → commands::dispatch → commit ─┬─ run::ready          checks that nothing is missing
//!                                     ├─ model::prompt       query + code base → messages
//!                                     ├─ model               messages → reply, from a vendor or a recording
//!                                     ├─ edit                reply → parse → verify → apply
//!                                     ├─ exec::build_script  runs build.sh
//!                                     └─ record              records every step, without keys
//! ```
//!
//! # The layers
//!
//! A module imports only from layers below its own, and the files of a module form no import cycle:
//! `tests/architecture.rs` checks both.
//!
//! | layer | modules | content |
//! |---|---|---|
//! | 6 | `commands` | the commands: each agent in a folder of its own, most others in one file |
//! | 5 | `agent` | the engine of every agent: loop, protocols, tools, permissions, memory, sessions |
//! | 4 | `run` | a run: readiness, models and keys, builds, proof, and past runs |
//! | 4 | `ui` | output to users, their input, and events for programs |
//! | 3 | `record` | a run as data: events, steps, files, diff, replay |
//! | 3 | `edit` | from untrusted text to changed files: parse, verify, apply, recover, undo |
//! | 2 | `project`, `model`, `exec` | the project on disk; every language model; running programs |
//! | 1 | `secret`, `sys` | keys and redaction; the system |
//!
//! Nothing below `main` reads the time, the current directory or the environment: they are passed as arguments.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        reason = "tests open the files that they have made"
    )
)]

pub(crate) mod agent;
pub(crate) mod commands;
pub(crate) mod edit;
pub(crate) mod exec;
pub(crate) mod model;
pub(crate) mod project;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod secret;
pub(crate) mod sys;
pub(crate) mod ui;

/// Internals exposed for tests and benches.
#[doc(hidden)]
pub mod measured {
    pub use crate::agent::tool::{Arguments, Tool, ToolError};
    pub use crate::agent::tools::background::{BackgroundAction, BackgroundTool};
    pub use crate::agent::tools::command::{AllowedCommand, RunCommand, Shell};
    pub use crate::commands::plan::document::PlanDocument;
    pub use crate::commands::plan::types::LogEntry;
    pub use crate::edit::{EditKind, PathPolicy, Sent, VerifyError, read};
    pub use crate::exec::build_script::{BuildScript, BuildStatus};
    pub use crate::exec::child_env::ChildEnv;
    pub use crate::exec::process::{
        CommandStatus, Invocation, ProcessError, Processes, Ran, Report, SpawnOptions,
    };
    pub use crate::exec::sandbox::{Sandbox, SandboxMode, SandboxPolicy};
    pub use crate::exec::scratch::{Scratch, ScratchChange, ScratchKind, ScratchPlace};
    pub use crate::model::ReplyFormat;
    pub use crate::model::message::{Message, Role};
    pub use crate::model::price::Usd;
    pub use crate::model::tokens;
    pub use crate::project::outline::{Signature, outline, signatures};
    pub use crate::project::ranking::kinds::weight;
    pub use crate::project::ranking::{PastCommit, Ranked, Ranking, rank, terms};
    pub use crate::record::event::Event;
    pub use crate::record::mode::SharedMode;
    pub use crate::record::tool::ToolEnd;
    pub use crate::run::past::findings::read as read_findings;
    pub use crate::secret::credentials::find;
    pub use crate::sys::interrupt::Signal;
    pub use crate::ui::present::ToolUse;
    pub use crate::ui::tui::app::App;
    pub use crate::ui::tui::composer::{Composer, ComposerOptions};
    pub use crate::ui::tui::{Entry, ToScreen};
}

use std::ffi::OsString;
use std::path::PathBuf;

use crate::commands::command::Command;
use crate::commands::command_line::requested_format;
pub use crate::commands::command_line::{Cli, CliMessage};
use crate::commands::redaction::redactor;
use crate::commands::{ProjectPlace, SummaryFile};
use crate::edit::protection::Protection;
pub use crate::exec::scratch::namespace;
pub use crate::exec::{subreaper, supervisor};
use crate::project::Project;
use crate::run::context::{Context, SandboxSetup, Stdin};
use crate::run::env_file::EnvFile;
pub use crate::run::keys::key_variables;
use crate::run::not_ready::NotReady;
use crate::run::outcome::Failure;
use crate::run::telemetry::Telemetry;
pub use crate::secret::Redactor;
pub use crate::sys::core_dump;
use crate::sys::environment::Clock;
pub use crate::sys::environment::{Environment, SystemClock};
pub use crate::sys::exit::Exit;
pub use crate::sys::interrupt::Interrupt;
pub use crate::sys::open_files;
use crate::ui::links::Links;
use crate::ui::pager::Pager;
use crate::ui::{ConsoleOptions, Output};

/// The environment of the process at start-up. Captured by `main`; nothing below reads it again.
pub struct World {
    /// The current directory with links resolved: the project's root, or a directory below it.
    pub directory: PathBuf,
    /// The environment variables.
    pub environment: Environment,
    /// The wall clock and the monotonic clock.
    pub clock: Box<dyn Clock>,
    /// A random number, from which ids are derived.
    pub seed: u128,
    /// The signals that request the process to stop.
    pub interrupt: Interrupt,
    /// The program's own executable: its absolute path with links resolved.
    pub program: Option<PathBuf>,
    /// True if stderr is a terminal.
    pub terminal: bool,
    /// True if stdout is a terminal.
    pub stdout_terminal: bool,
    /// True if stdin is a terminal.
    pub stdin_terminal: bool,
}

/// Runs the command given on the command line, and returns the exit code.
pub fn run(cli: &Cli, world: &World) -> Exit {
    let place = ProjectPlace::find(cli, &world.directory);
    let project = Project::new(place.root(), place.working_directory());
    let started = world.clock.now();
    let env_file = if cli.reads_env_file() {
        EnvFile::find(&world.directory, place.root())
    } else {
        EnvFile::default()
    };
    let environment = env_file.below(&world.environment);
    let models = crate::commands::table(&project, &environment, None, started.date_naive());
    let settings = match &cli.command {
        None => crate::commands::with_files(cli, &project, &models),
        Some(_) => Ok(cli.clone()),
    };
    let (cli, unusable) = match settings {
        Ok(settled) => (&settled.clone(), None),
        Err(problem) => (cli, Some(problem)),
    };
    let protection = Protection::new(&cli.gate.protect);
    let redactor = redactor(cli, &project, &models, &environment, &env_file);
    let mut output = Output::new(
        console_options(cli, world),
        cli.output.output_format,
        &*world.clock,
        &redactor,
    );
    output.links = Links::of(&world.environment, &world.directory);
    let context: Context<'_> = Context {
        project,
        environment: &environment,
        env_file: &env_file,
        clock: &*world.clock,
        interrupt: &world.interrupt,
        redactor: &redactor,
        reporter: &output,
        sandbox: SandboxSetup {
            program: world.program.as_deref(),
            document: None,
            hidden: Vec::new(),
            passed: cli.passed_variables(),
            allowed_sockets: &cli.sandbox().allow_socket,
        },
        scratch: None,
        protection: &protection,
        // Not from `.env`, which may name the collector of another program.
        telemetry: Telemetry::of(&world.environment, world.seed),
        models: &models,
    };
    let stdin = Stdin {
        is_terminal: world.stdin_terminal,
        is_seen: world.stdout_terminal,
    };
    let cli = &place.resolve(cli);
    let run = || {
        place.enter(&context)?;
        if let Some(problem) = unusable {
            return Err(NotReady::of(problem).into());
        }
        let scratch = crate::commands::enter_scratch(cli, &context, &world.directory)?;
        let (scratch, project) = scratch.unzip();
        let context = Context {
            project: project.unwrap_or_else(|| context.project.clone()),
            scratch: scratch.as_ref(),
            ..context.clone()
        };
        crate::commands::dispatch(cli, &context, stdin)
    };
    let (summary, done) = match SummaryFile::find(cli, &context) {
        Err(error) => (None, Err(error.into())),
        Ok(summary) => (summary, run()),
    };
    let done = done.map_err(|failure| failure.recorded(&cli.name, [started, world.clock.now()]));
    if let Some(summary) = summary {
        crate::commands::summarize(summary, &context, &done);
    }
    let pager = || Pager::of(&environment, place.root());
    let output = (&output, place.root());
    crate::commands::report_outcome(cli, output, place.seen_from(done), pager)
}

/// Reports an error that occurred before any command as a record on stdout, if these arguments ask for JSON.
pub fn print_early_error(
    message: CliMessage,
    arguments: &[OsString],
    clock: &dyn Clock,
    redactor: &Redactor,
) {
    let format = requested_format(arguments);
    let options = ConsoleOptions::new(true, (false, false), &Environment::default());
    let output = Output::new(options, format, clock, redactor);
    if let Some(error) = message.error {
        let failure = Failure::from(error).recorded("", [clock.now(); 2]);
        crate::commands::report_early(&output, &failure);
    }
}

fn console_options(cli: &Cli, world: &World) -> ConsoleOptions {
    let terminals = (world.stdout_terminal, world.terminal);
    let mirrors = cli.command.as_ref().is_some_and(Command::mirrors);
    ConsoleOptions {
        echoes: world.stdin_terminal && world.stdout_terminal,
        mirrors,
        asks: mirrors && world.stdin_terminal,
        ..ConsoleOptions::new(cli.output.quiet, terminals, &world.environment)
    }
}
