//! From the command line to the workflow that it asks for. Pure but for what the workflows do.

use super::dev as work;
use super::{
    AgentOptions, BuildOptions, CommitOptions, Context, Failure, ModelChoice, Outcome,
    ReportOptions, RequestInput, RollupOptions, Secrets, SessionChoice,
};
use crate::agent::tools::place::Outside;
use crate::cli::{self, Cli, Command, DevArgs, DevCommand};
use crate::edit::Elision;
use crate::model::Delivery;
use crate::ui::input::{self, Editor, Input, InputError, Lines};
use crate::workflow::error::Error;

/// Starts what the command line asks for; `stdin` is where whoever is asked answers.
///
/// # Errors
/// When it was not done.
pub fn dispatch(cli: &Cli, context: &Context<'_>, stdin: Stdin) -> Result<Outcome, Failure> {
    match &cli.command {
        Some(Command::Init) => super::init(context),
        Some(Command::Rollup { all, paths, budget }) => super::rollup(
            context,
            &RollupOptions {
                all: *all,
                paths: paths.clone(),
                budget: *budget,
            },
        ),
        Some(Command::Models) => super::models(context),
        Some(Command::Log { run }) => super::log(context, run.as_deref()),
        Some(Command::Diff { run, stat }) => super::diff(context, run.as_deref(), *stat),
        Some(Command::Report { run, all, page }) => super::report(
            context,
            &ReportOptions {
                run: run.clone(),
                all: *all,
                output: page.clone(),
            },
        ),
        Some(Command::Demo { directory }) => super::demo(context, directory.as_deref()),
        Some(Command::Recover) => super::recover(context),
        Some(Command::Undo { run }) => super::undo(context, run.as_deref()),
        Some(Command::Dev(arguments)) => dev(arguments, context, stdin),
        Some(Command::Completions { shell }) => Ok(Outcome::verbatim(cli::completions(*shell))),
        Some(Command::Man { command }) => super::manual(command.as_deref()),
        None if cli.dry_run => {
            // A report has no build.
            let build = (!cli.consistency_check).then(|| build(cli));
            super::dry_run(context, &choice(cli), build)
        }
        None if cli.consistency_check => super::consistency(context, &choice(cli)),
        None => super::commit(context, &commit_options(cli)),
    }
}

fn dev(arguments: &DevArgs, context: &Context<'_>, stdin: Stdin) -> Result<Outcome, Failure> {
    match &arguments.command {
        Some(DevCommand::Config) => super::config(context),
        Some(DevCommand::Sessions(_)) => super::sessions(context),
        None => {
            let request = match arguments.prompt.as_deref() {
                Some("-") => {
                    let stdin = input::stdin(context.interrupt.clone()).map_err(InputError::from);
                    let read = stdin.and_then(input::prompt_from);
                    Some(read.map_err(Error::from)?)
                }
                prompt => prompt.map(str::to_owned),
            };
            let options = agent_options(arguments, request);
            work(context, &options, &|| open_input(context, stdin))
        }
    }
}

fn agent_options(arguments: &DevArgs, request: Option<String>) -> AgentOptions {
    AgentOptions {
        input: RequestInput::of(request),
        session: match (arguments.session, arguments.resume) {
            (Some(id), _) => SessionChoice::Named(id),
            (None, true) => SessionChoice::Last,
            (None, false) => SessionChoice::New,
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

/// What standard input is.
#[derive(Debug, Clone, Copy)]
pub struct Stdin {
    /// Whether somebody types there.
    pub is_terminal: bool,
    /// Whether they see what they type: stdout is a terminal, too.
    pub is_seen: bool,
}

/// Who is asked: somebody at a terminal, or whatever standard input is.
fn open_input(context: &Context<'_>, stdin: Stdin) -> Result<Box<dyn Input>, InputError> {
    let interrupt = context.interrupt.clone();
    if stdin.is_terminal {
        return Ok(Box::new(Editor::new(interrupt, stdin.is_seen)?));
    }
    Ok(Box::new(Lines::new(input::stdin(interrupt)?)))
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
        on_failure: cli.on_failure,
        show_diff: cli.diff,
    }
}

/// What was started, for the record of what did not get as far as being a run.
pub(super) fn command_name(cli: &Cli) -> &'static str {
    match &cli.command {
        None if cli.consistency_check => "consistency",
        None => "commit",
        Some(Command::Init) => "init",
        Some(Command::Rollup { .. }) => "rollup",
        Some(Command::Models) => "models",
        Some(Command::Log { .. }) => "log",
        Some(Command::Diff { .. }) => "diff",
        Some(Command::Report { .. }) => "report",
        Some(Command::Undo { .. }) => "undo",
        Some(Command::Recover) => "recover",
        Some(Command::Demo { .. }) => "demo",
        Some(Command::Dev(_)) => "dev",
        Some(Command::Completions { .. }) => "completions",
        Some(Command::Man { .. }) => "man",
    }
}
