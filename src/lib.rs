//! `code-commit`: asks a language model for whole-file edits, verifies every byte of the answer,
//! applies all or nothing, and proves the result with the project's own `build.sh`.
//!
//! # The pipeline
//!
//! ```text
//! main → cli → workflow ─┬─ ready      is all there? (project, build_script, model::endpoint)
//!                        ├─ prompt     query + code base → messages
//!                        ├─ model      messages → reply, over a vendor's wire or from a recording
//!                        ├─ edit       reply → parse → verify → apply
//!                        ├─ build_script   runs build.sh
//!                        └─ run_log    keeps everything, less the keys
//! ```
//!
//! # The modules
//!
//! | module | what it is for |
//! |---|---|
//! | [`workflow`] | what a user starts: commit, consistency, undo, rollup, log, report, … |
//! | [`prompt`], [`model`], [`edit`], [`build_script`], [`run_log`], [`report`] | the stages |
//! | [`project`], [`secret`], [`environment`], [`interrupt`], [`input`], [`editor`], [`gitignore`], [`atomic_file`], [`file_lock`], [`positions`], [`sandbox`], [`process`], [`credentials`], [`git`] | the ground |
//! | [`agent`] | the engine of agents: loop, protocol, tools, memory, permissions, sessions |
//! | [`rollup`], [`estimate`], [`tokens`], [`price`] | what is to be sent: how fresh, how large, how dear |
//! | [`diff`], [`review`] | what has changed, and what a reviewer should look at |
//! | [`history`], [`page`] | the runs that were, and how they are shown in a browser |
//! | [`message`], [`record`], [`tasks`], [`run_files`], [`excerpt`], [`columns`] | plain data that stages share |
//! | [`cli`], [`error`] | the two ends: flags in, exit codes out |
//!
//! # The dependency rule
//!
//! `main → lib → workflow → stages → ground`. [`estimate`], [`review`], [`history`] and [`page`] stand between the
//! workflows and the stages: they read what several stages have made, and do nothing. So does [`agent`],
//! which acts through what a workflow lends it. A stage imports no workflow and no other stage; what
//! two of them share is a plain data type. Only [`error`] knows every stage's error. Nothing below
//! `main` asks for the time, the current directory or the environment: they arrive as arguments.

pub mod agent;
pub mod cli;
pub mod edit;
pub mod exec;
pub mod model;
pub mod project;
pub mod record;
pub mod review;
pub mod secret;
pub mod sys;
pub mod ui;
pub mod workflow;

use std::path::PathBuf;

use crate::cli::{Cli, OutputFormat};
use crate::edit::Program;
use crate::project::Project;
use crate::sys::environment::{Clock, Environment};
use crate::sys::interrupt::Interrupt;
use crate::ui::{ConsoleOptions, Output};
use crate::workflow::dispatch::Stdin;
use crate::workflow::error::Exit;
use crate::workflow::{Context, redactor};

/// What the process was started in. `main` captures it; nothing below asks for it again.
pub struct World {
    /// The current directory, links resolved: the project's root.
    pub root: PathBuf,
    /// The environment variables.
    pub environment: Environment,
    /// The clocks.
    pub clock: Box<dyn Clock>,
    /// The signals.
    pub interrupt: Interrupt,
    /// The program's own file.
    pub program: Option<Program>,
    /// Whether stderr is a terminal.
    pub terminal: bool,
    /// Whether stdout is a terminal.
    pub stdout_terminal: bool,
    /// Whether stdin is a terminal.
    pub stdin_terminal: bool,
}

/// Runs what the command line asks for, and says how the process ends.
#[must_use]
pub fn run(cli: &Cli, world: &World) -> Exit {
    let project = Project::new(world.root.clone());
    let models = workflow::table(&project);
    let redactor = redactor(cli, &project, &models, &world.environment);
    let format = cli
        .shown()
        .map_or(OutputFormat::Text, |shown| shown.output_format);
    let output = Output::new(
        console_options(cli, world),
        format,
        &*world.clock,
        &redactor,
    );
    let started = world.clock.now();
    let context = Context {
        project,
        environment: &world.environment,
        clock: &*world.clock,
        interrupt: &world.interrupt,
        redactor: &redactor,
        reporter: &output,
        program: world.program.as_ref(),
        models: &models,
    };
    let stdin = Stdin {
        is_terminal: world.stdin_terminal,
        is_seen: world.stdout_terminal,
    };
    let done = workflow::dispatch(cli, &context, stdin);
    workflow::summarize(cli, &context, &done);
    workflow::tell(cli, &output, started, done)
}

fn console_options(cli: &Cli, world: &World) -> ConsoleOptions {
    let quiet = cli.shown().is_none_or(|shown| shown.quiet);
    let terminals = (world.stdout_terminal, world.terminal);
    ConsoleOptions::new(quiet, terminals, &world.environment)
}
