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
//! | [`workflow`] | what a user starts: commit, consistency, demo, recover, undo |
//! | [`prompt`], [`model`], [`edit`], [`build_script`], [`run_log`], [`report`] | the stages |
//! | [`project`], [`secret`], [`environment`], [`interrupt`], [`gitignore`], [`atomic_file`], [`sandbox`], [`credentials`] | the ground |
//! | [`message`], [`record`], [`run_files`], [`excerpt`] | plain data that stages share |
//! | [`diff`], [`review`] | what changed, and what of it to look at first |
//! | [`cli`], [`error`] | the two ends: flags in, exit codes out |
//!
//! # The dependency rule
//!
//! `main → lib → workflow → stages → ground`. A stage imports no workflow and no other stage; what
//! two of them share is a plain data type. Only [`error`] knows every stage's error. Nothing below
//! `main` asks for the time, the current directory or the environment: they arrive as arguments.

pub mod atomic_file;
pub mod build_script;
pub mod cli;
pub mod credentials;
pub mod diff;
pub mod edit;
pub mod environment;
pub mod error;
pub mod excerpt;
pub mod gitignore;
pub mod interrupt;
pub mod message;
pub mod model;
pub mod project;
pub mod prompt;
pub mod record;
pub mod report;
pub mod review;
pub mod run_files;
pub mod run_log;
pub mod sandbox;
pub mod secret;
pub mod workflow;

use std::path::PathBuf;

use crate::cli::{Cli, Command, OnFailureArg, OutputArgs, SandboxArg};
use crate::edit::{Elision, Program};
use crate::environment::{Clock, Environment};
use crate::error::Exit;
use crate::interrupt::Interrupt;
use crate::model::{MODELS, ModelSpec};
use crate::project::Project;
use crate::report::{Console, ConsoleOptions, Reporter as _};
use crate::workflow::{
    BuildOptions, CommitOptions, Containment, Context, Failure, ModelChoice, OnFailure, Outcome,
    Secrets,
};

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
}

/// Runs what the command line asks for, and says how the process ends.
#[must_use]
pub fn run(cli: &Cli, world: &World) -> Exit {
    let project = Project::new(world.root.clone());
    let redactor = project.redactor(&world.environment, MODELS.map(|spec| spec.key_file));
    let console = Console::new(console_options(output_args(cli), world), &redactor);
    let context = Context {
        project,
        environment: &world.environment,
        clock: &*world.clock,
        interrupt: &world.interrupt,
        redactor: &redactor,
        reporter: &console,
        program: world.program.as_ref(),
    };
    match dispatch(cli, &context) {
        Ok(Outcome { summary, log, next }) => {
            let log = log.map(|log| format!("log: {log}"));
            let lines: Vec<String> = [Some(summary), log, next].into_iter().flatten().collect();
            console.result(&lines.join(
                "
",
            ));
            Exit::Done
        }
        Err(failure) => {
            let hint = failure.hint();
            console.error(&failure.error, hint.as_deref(), failure.log.as_deref());
            failure.error.exit()
        }
    }
}

fn dispatch(cli: &Cli, context: &Context<'_>) -> Result<Outcome, Failure> {
    let choice = ModelChoice {
        secrets: if cli.allow_secrets {
            Secrets::Allowed
        } else {
            Secrets::Refused
        },
        model: cli.model.as_deref().and_then(ModelSpec::named),
        replay: cli.replay.clone(),
        timeout: cli.timeout,
    };
    match &cli.command {
        Some(Command::Demo(arguments)) => workflow::demo(context, arguments.directory.as_deref()),
        Some(Command::Recover(_)) => workflow::recover(context),
        Some(Command::Undo(arguments)) => workflow::undo(context, arguments.run.as_deref()),
        None if cli.consistency_check => workflow::consistency(context, &choice),
        None => {
            let elision = if cli.allow_elision {
                Elision::Allowed
            } else {
                Elision::Rejected
            };
            workflow::commit(
                context,
                &CommitOptions {
                    choice,
                    build: BuildOptions {
                        timeout: cli.build.build_timeout,
                        containment: match cli.build.sandbox {
                            SandboxArg::Auto => Containment::WherePossible,
                            SandboxArg::Strict => Containment::Strict,
                            SandboxArg::Off => Containment::Off,
                        },
                    },
                    elision,
                    on_failure: match cli.on_failure {
                        Some(OnFailureArg::Revert) => OnFailure::Revert,
                        Some(OnFailureArg::Keep) | None => OnFailure::Keep,
                    },
                },
            )
        }
    }
}

fn output_args(cli: &Cli) -> &OutputArgs {
    match &cli.command {
        Some(Command::Demo(arguments)) => &arguments.output,
        Some(Command::Undo(arguments)) => &arguments.output,
        Some(Command::Recover(arguments)) => &arguments.output,
        None => &cli.output,
    }
}

fn console_options(output: &OutputArgs, world: &World) -> ConsoleOptions {
    let dumb = world
        .environment
        .get("TERM")
        .is_none_or(|term| term == "dumb");
    ConsoleOptions {
        quiet: output.quiet,
        terminal: world.terminal && !dumb,
        colors: world.terminal && !dumb && world.environment.os("NO_COLOR").is_none(),
    }
}
