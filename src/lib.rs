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

use serde_json::Value;

use crate::agent::tools::place::Outside;
use crate::cli::{Cli, Command, DevArgs, DevCommand, FormatArg, OnFailureArg, OutputArgs};
use crate::edit::{Elision, Program};
use crate::model::{Delivery, ModelTable};
use crate::project::Project;
use crate::record::RunRecord;
use crate::sys::environment::{Clock, Environment};
use crate::sys::interrupt::Interrupt;
use crate::ui::input::{self, Editor, Input, InputError, Lines};
use crate::ui::{Colors, ConsoleOptions, Event, Format, Output, Reporter as _, json};
use crate::workflow::error::{Error, Exit};
use crate::workflow::{
    AgentOptions, BuildOptions, CommitOptions, Context, Failure, ModelChoice, OnFailure, Outcome,
    Secrets, Wanted, Which,
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
    let built_in = ModelTable::built_in();
    let mut key_files = models.as_ref().unwrap_or(&built_in).key_files();
    // Where the table cannot be used, its keys are kept out of sight all the same.
    let broken = project
        .models()
        .ok()
        .filter(|_| models.is_err())
        .unwrap_or_default();
    key_files.extend(ModelTable::named_key_files(&broken));
    // What an agent's user has set is theirs alone, and is read where an agent is asked for.
    let agents_key = matches!(cli.command, Some(Command::Dev(_)))
        .then(|| agent::settings::key_in_file(&world.environment))
        .flatten();
    let redactor = project.redactor(&world.environment, key_files, agents_key.as_ref());
    let shown = cli
        .command
        .as_ref()
        .map_or(Some(&cli.output), Command::output);
    let format = match shown.map(|shown| shown.output_format) {
        Some(FormatArg::Json) => Format::Json,
        Some(FormatArg::JsonL) => Format::JsonLines,
        Some(FormatArg::Text) | None => Format::Text,
    };
    let options = console_options(shown, world);
    let output = Output::new(options, format, &*world.clock, &redactor);
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
    let done = dispatch(cli, &context, world);
    if let (Some(path), None) = (&cli.summary_file, &cli.command) {
        workflow::summarize(&context, path, &done);
    }
    match done {
        Ok(outcome) => {
            for warning in &outcome.warnings {
                output.event(&Event::Warning(warning.clone()));
            }
            let is_run = outcome.record.is_some();
            let printed = output.result(&result_text(&outcome), || document(outcome));
            match printed {
                // What a run has done is done, and its record says so.
                Err(error) if is_run => {
                    output.event(&Event::Warning(format!("cannot write to stdout: {error}")));
                    Exit::Done
                }
                Err(error) => {
                    output.error(
                        &format!("cannot write to stdout: {error}"),
                        None,
                        None,
                        || Value::Null,
                    );
                    Exit::LocalIo
                }
                Ok(()) => Exit::Done,
            }
        }
        Err(failure) => {
            let exit = failure.error.exit();
            if let (Some(text), Format::Text) = (&failure.text, format) {
                // The error that follows is the news.
                let _ = output.result(&format!("{text}\n"), || Value::Null);
            }
            let Failure {
                error, log, record, ..
            } = &failure;
            output.error(error, failure.hint().as_deref(), log.as_deref(), || {
                let unstarted = || {
                    let mut record = RunRecord::new(command_name(cli), exit.record(), started);
                    record.end_with(exit.record(), error, failure.hint());
                    json::record(&record)
                };
                record.as_deref().map_or_else(unstarted, json::record)
            });
            exit
        }
    }
}

/// What was asked for, what was done, and where to look.
fn result_text(outcome: &Outcome) -> String {
    let said = Some(&outcome.summary).filter(|summary| !summary.is_empty());
    let log = outcome.log.as_ref().map(|log| format!("log: {log}"));
    let lines = [
        outcome.text.as_ref(),
        said,
        log.as_ref(),
        outcome.next.as_ref(),
    ];
    let line = |text: &String| {
        let line_end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        format!("{text}{line_end}")
    };
    lines.into_iter().flatten().map(line).collect()
}

/// The same for programs: a run's record, what was asked for, or that it was done.
fn document(outcome: Outcome) -> Value {
    match (outcome.record, outcome.data) {
        (Some(record), _) => json::record(&record),
        (None, Some(data)) => data,
        (None, None) => serde_json::json!({"schema": 1, "done": outcome.summary}),
    }
}

fn dispatch(cli: &Cli, context: &Context<'_>, world: &World) -> Result<Outcome, Failure> {
    match &cli.command {
        Some(Command::Init(_)) => workflow::init(context),
        Some(Command::Rollup(arguments)) => workflow::rollup(
            context,
            &workflow::RollupOptions {
                all: arguments.all,
                paths: arguments.paths.clone(),
                budget: arguments.budget,
            },
        ),
        Some(Command::Models(_)) => workflow::models(context),
        Some(Command::Log(arguments)) => workflow::log(context, arguments.run.as_deref()),
        Some(Command::Diff(arguments)) => {
            workflow::diff(context, arguments.run.as_deref(), arguments.stat)
        }
        Some(Command::Report(arguments)) => workflow::report(
            context,
            &workflow::ReportOptions {
                run: arguments.run.clone(),
                all: arguments.all,
                output: arguments.page.clone(),
            },
        ),
        Some(Command::Demo(arguments)) => workflow::demo(context, arguments.directory.as_deref()),
        Some(Command::Recover(_)) => workflow::recover(context),
        Some(Command::Undo(arguments)) => workflow::undo(context, arguments.run.as_deref()),
        Some(Command::Dev(arguments)) => dev(arguments, context, world),
        Some(Command::Completions(arguments)) => {
            Ok(Outcome::verbatim(cli::completions(arguments.shell)))
        }
        Some(Command::Man(arguments)) => workflow::manual(arguments.command.as_deref()),
        None if cli.dry_run => {
            // A report has no build.
            let build = (!cli.consistency_check).then(|| build(cli));
            workflow::dry_run(context, &choice(cli), build)
        }
        None if cli.consistency_check => workflow::consistency(context, &choice(cli)),
        None => workflow::commit(context, &commit_options(cli)),
    }
}

fn dev(arguments: &DevArgs, context: &Context<'_>, world: &World) -> Result<Outcome, Failure> {
    match &arguments.command {
        Some(DevCommand::Config(_)) => workflow::config(context),
        Some(DevCommand::Sessions(_)) => workflow::sessions(context),
        None => {
            let request = match arguments.prompt.as_deref() {
                Some("-") => {
                    let stdin = input::stdin(world.interrupt.clone()).map_err(InputError::from);
                    let read = stdin.and_then(input::prompt_from);
                    Some(read.map_err(Error::from)?)
                }
                prompt => prompt.map(str::to_owned),
            };
            let options = agent_options(arguments, request);
            workflow::dev(context, &options, &|| open_input(world))
        }
    }
}

fn agent_options(arguments: &DevArgs, request: Option<String>) -> AgentOptions {
    AgentOptions {
        wanted: Wanted::of(request),
        which: match (arguments.session, arguments.resume) {
            (Some(id), _) => Which::Named(id),
            (None, true) => Which::Last,
            (None, false) => Which::New,
        },
        choice: ModelChoice {
            model: arguments.model.clone(),
            replay: arguments.replay.clone(),
            timeout: arguments.timeout,
            delivery: Delivery::Streamed,
            secrets: Secrets::Allowed,
            require_fresh: false,
            max_cost: arguments.max_cost,
        },
        sandbox: arguments.sandbox,
        outside: if arguments.allow_outside {
            Outside::Allowed
        } else {
            Outside::Refused
        },
    }
}

/// Who is asked: somebody at a terminal, or whatever standard input is.
fn open_input(world: &World) -> Result<Box<dyn Input>, InputError> {
    if world.stdin_terminal {
        let editor = Editor::new(world.interrupt.clone(), world.stdout_terminal)?;
        return Ok(Box::new(editor));
    }
    let stdin = input::stdin(world.interrupt.clone())?;
    Ok(Box::new(Lines::new(stdin)))
}

fn choice(cli: &Cli) -> ModelChoice {
    ModelChoice {
        model: cli.model.clone(),
        replay: cli.replay.clone(),
        timeout: cli.timeout,
        delivery: if cli.stream {
            Delivery::Streamed
        } else {
            Delivery::Whole
        },
        secrets: if cli.allow_secrets {
            Secrets::Allowed
        } else {
            Secrets::Refused
        },
        require_fresh: cli.require_fresh,
        max_cost: cli.max_cost,
    }
}

fn build(cli: &Cli) -> BuildOptions {
    BuildOptions {
        timeout: cli.build.build_timeout,
        sandbox: cli.build.sandbox,
    }
}

fn commit_options(cli: &Cli) -> CommitOptions {
    CommitOptions {
        choice: choice(cli),
        build: build(cli),
        elision: if cli.allow_elision {
            Elision::Allowed
        } else {
            Elision::Rejected
        },
        on_failure: match cli.on_failure {
            Some(OnFailureArg::Revert) => OnFailure::Revert,
            Some(OnFailureArg::Keep) | None => OnFailure::Keep,
        },
        show_diff: cli.diff,
    }
}

/// What was started, for the record of what did not get as far as being a run.
fn command_name(cli: &Cli) -> &'static str {
    match &cli.command {
        None if cli.consistency_check => "consistency",
        None => "commit",
        Some(Command::Init(_)) => "init",
        Some(Command::Rollup(_)) => "rollup",
        Some(Command::Models(_)) => "models",
        Some(Command::Log(_)) => "log",
        Some(Command::Diff(_)) => "diff",
        Some(Command::Report(_)) => "report",
        Some(Command::Undo(_)) => "undo",
        Some(Command::Recover(_)) => "recover",
        Some(Command::Demo(_)) => "demo",
        Some(Command::Dev(_)) => "dev",
        Some(Command::Completions(_)) => "completions",
        Some(Command::Man(_)) => "man",
    }
}

fn console_options(shown: Option<&OutputArgs>, world: &World) -> ConsoleOptions {
    let variable = |name| world.environment.get(name);
    let dumb = variable("TERM").is_none_or(|term| term == "dumb");
    let colors = !dumb && world.environment.os("NO_COLOR").is_none();
    ConsoleOptions {
        quiet: shown.is_none_or(|shown| shown.quiet),
        terminal: world.terminal && !dumb,
        colors: Colors {
            stdout: world.stdout_terminal && colors,
            stderr: world.terminal && colors,
        },
    }
}
