//! Dispatches the command line to its command. Has no effects beyond those of the commands.

use std::path::Path;
use std::time::Duration;

use super::chat::args::{ChatArgs, ChatCommand};
use super::chat::error::ChatError;
use super::cli::agent::AgentArgs;
use super::command::Command;
use super::command_line::{self, Cli};
use super::dev::args::{DevArgs, DevCommand};
use super::error::CommandError;
use super::orchestrate::args::OrchestrateArgs;
use super::orchestrate::config::ConfigFlags;
use super::orchestrate::options::OrchestrateOptions;
use super::plan::args::{PlanArgs, PlanCommand};
use super::plan::options::PlanOptions;
use super::screen::{ScreenLines, ScreenSetup, at_screen};
use super::workspace::{self, AgentOptions, SessionChoice};
use super::{
    commit, consistency, demo, diff, dry_run, init, log, mcp, models, query, report, rollup, undo,
};
use crate::agent::tools::place::Outside;
use crate::model::{Delivery, Provider};
use crate::project::home::{DEV, PLAN};
use crate::run::builds::BuildOptions;
use crate::run::context::{Context, InputOptions, ModelChoice, Stdin};
use crate::run::outcome::{Failure, Outcome};
use crate::run::recovery;
use crate::sys::error::Error;
use crate::ui::input::{self, InputError, LineReader, Lines, OpenUser};
use crate::ui::{OutputFormat, history, is_dumb};

/// Runs the command that the command line specifies; `stdin` supplies the user's answers.
///
/// # Errors
/// When the command fails.
pub fn dispatch(cli: &Cli, context: &Context<'_>, stdin: Stdin) -> Result<Outcome, Failure> {
    let Some(command) = &cli.command else {
        let choice = &choice(cli, context)?;
        return match (cli.dry_run, cli.consistency_check) {
            (true, _) => dry_run::dry_run(context, cli, choice),
            (false, true) => consistency::consistency(context, choice),
            (false, false) => commit::commit(context, cli, choice),
        };
    };
    match command {
        Command::Init => init::init(context),
        Command::Rollup(arguments) => rollup::rollup(context, arguments),
        Command::Models(arguments) => models::models(context, arguments),
        Command::Log(arguments) => log::log(context, arguments),
        Command::Diff(arguments) => diff::diff(context, arguments.run.as_deref(), arguments.stat),
        Command::Report(arguments) => report::command::report(context, arguments),
        Command::Demo(arguments) => demo::demo(context, arguments, &|context, arguments| {
            let cli = Cli::read(arguments);
            let cli = cli.map_err(|wrong| CommandError::NoSuchCommand(wrong.text))?;
            let nobody = Stdin {
                is_terminal: false,
                is_seen: false,
            };
            dispatch(&cli, context, nobody)
        }),
        Command::Recover => recovery::recover(context),
        Command::Undo(arguments) => undo::undo(context, arguments.run.as_deref()),
        Command::Dev(arguments) => dev(arguments, context, talks(cli, stdin)),
        Command::Plan(arguments) => plan(arguments, context, talks(cli, stdin)),
        Command::Orchestrate(arguments) => orchestrate(arguments, context, talks(cli, stdin)),
        Command::Mcp(arguments) => mcp::mcp(context, arguments),
        Command::Chat(arguments) => chat(arguments, context, stdin),
        Command::Completions { shell } => Ok(Outcome::verbatim(command_line::completions(*shell))),
        Command::Man { command } => {
            let unknown = || CommandError::NoSuchCommand(command.join(" "));
            let page = command_line::manual(command).ok_or_else(unknown)?;
            Ok(Outcome::verbatim(page))
        }
    }
}

fn dev(arguments: &DevArgs, context: &Context<'_>, stdin: Stdin) -> Result<Outcome, Failure> {
    match &arguments.command {
        Some(DevCommand::Config) => super::dev::command::config(context),
        Some(DevCommand::Sessions(_)) => super::dev::command::sessions(context),
        None => {
            let request = asked(arguments.prompt.as_deref(), context)?;
            let DevArgs { agent, .. } = arguments;
            let session = SessionChoice::of(arguments.session, arguments.resume);
            let choice = agent_choice(arguments.model.as_deref(), arguments.timeout, Some(agent));
            let options = agent_options(request, session, choice, agent);
            let is_asked = options.request.is_none() && options.choice.replay.is_none();
            let home = workspace::home(context, &DEV)?;
            let wants_screen = is_asked && !arguments.talk.plain;
            talk(context, &home, stdin, wants_screen, |context, open| {
                super::dev::command::dev(context, &options, open)
            })
        }
    }
}

/// Returns the options of an agent with sessions.
fn agent_options(
    request: Option<String>,
    session: SessionChoice,
    choice: ModelChoice,
    arguments: &AgentArgs,
) -> AgentOptions {
    AgentOptions {
        request,
        session,
        choice,
        sandbox: arguments.sandbox.mode,
        hosts: arguments.sandbox.allow_host.clone(),
        outside: outside(arguments),
        allowances: arguments.losses.into(),
    }
}

fn plan(arguments: &PlanArgs, context: &Context<'_>, stdin: Stdin) -> Result<Outcome, Failure> {
    match &arguments.command {
        Some(PlanCommand::Show { session, .. }) => {
            super::plan::show::show(context, session.as_deref())
        }
        Some(PlanCommand::Sessions(_)) => super::plan::show::sessions(context),
        Some(PlanCommand::Reliability(arguments)) => {
            let choice = agent_choice(arguments.model.as_deref(), arguments.timeout, None);
            super::plan::reliability::reliability(context, &choice, arguments)
        }
        None => {
            let request = asked(arguments.prompt.as_deref(), context)?;
            let options = plan_options(arguments, request);
            let is_asked = options.request.is_none() && options.choice.replay.is_none();
            let home = workspace::home(context, &PLAN)?;
            let wants_screen = is_asked && !arguments.talk.plain;
            talk(context, &home, stdin, wants_screen, |context, open| {
                super::plan::command::plan(context, &options, open)
            })
        }
    }
}

fn plan_options(arguments: &PlanArgs, request: Option<String>) -> PlanOptions {
    let PlanArgs { agent, .. } = arguments;
    PlanOptions {
        request,
        plan_only: arguments.plan_only,
        session: SessionChoice::of(arguments.session.as_ref(), arguments.resume),
        plan_file: arguments.plan_file.clone(),
        choice: agent_choice(arguments.model.as_deref(), arguments.timeout, Some(agent)),
        yes: arguments.yes,
        pull: arguments.pull,
        gate: arguments.gate,
        build: BuildOptions {
            timeout: arguments.build_timeout,
            sandbox: agent.sandbox.mode,
        },
        hosts: agent.sandbox.allow_host.clone(),
        on_failure: arguments.on_failure,
        outside: outside(agent),
        allowances: agent.losses.into(),
    }
}

fn orchestrate(
    arguments: &OrchestrateArgs,
    context: &Context<'_>,
    stdin: Stdin,
) -> Result<Outcome, Failure> {
    let task = asked(arguments.task.as_deref(), context)?;
    if task.as_deref().is_some_and(|task| task.trim().is_empty()) {
        return Err(Error::from(InputError::Blank).into());
    }
    let OrchestrateArgs {
        model,
        replay,
        timeout,
        ..
    } = arguments;
    let options = OrchestrateOptions {
        parent_branch: arguments.parent_branch_id,
        task,
        headless: arguments.headless,
        config: ConfigFlags {
            project_name: arguments.project_name.clone(),
            no_publish: arguments.no_publish,
        },
        choice: ModelChoice {
            replay: replay.clone(),
            max_cost: arguments.max_cost,
            ..agent_choice(model.as_deref(), *timeout, None)
        },
        stdin_is_terminal: stdin.is_terminal,
    };
    // A headless run has no user to talk to, so stdout carries only the report.
    let stdin = Stdin {
        is_seen: stdin.is_seen && !arguments.headless,
        ..stdin
    };
    let is_asked = !options.headless && options.choice.replay.is_none();
    let work = |context: &Context<'_>, open: OpenUser<'_>| {
        super::orchestrate::command::orchestrate(context, &options, open)
    };
    // Without a home directory there is no history to keep, and line-based input is enough.
    let home = workspace::home(context, &DEV);
    let wants_screen = home.is_ok() && is_asked && !arguments.talk.plain;
    talk(
        context,
        &home.unwrap_or_default(),
        stdin,
        wants_screen,
        work,
    )
}

fn chat(arguments: &ChatArgs, context: &Context<'_>, stdin: Stdin) -> Result<Outcome, Failure> {
    use super::chat::{command as chat, login, trusting};
    match &arguments.command {
        Some(ChatCommand::Login { given, .. }) if !given.is_empty() => {
            Err(Error::from(ChatError::KeyAsArgument).into())
        }
        Some(ChatCommand::Login {
            account, provider, ..
        }) => {
            let provider = provider.as_deref().and_then(Provider::named);
            login::login(context, account.as_deref(), provider, stdin.is_terminal)
        }
        Some(ChatCommand::Logout) => login::logout(context),
        Some(ChatCommand::Sessions(_)) => chat::sessions(context),
        Some(ChatCommand::Config) => chat::config(context),
        Some(ChatCommand::Trust { yes }) => trusting::trust(context, *yes),
        None => {
            let request = asked(arguments.prompt.as_deref(), context)?;
            let ChatArgs { agent, .. } = arguments;
            let session = SessionChoice::of(arguments.session, arguments.resume);
            let choice = ModelChoice {
                allow_secrets: arguments.allow_secrets,
                ..agent_choice(arguments.model.as_deref(), arguments.timeout, Some(agent))
            };
            let options = agent_options(request, session, choice, agent);
            let (first, mode) = (arguments.first.as_deref(), arguments.first_mode());
            chat::chat(context, &options, first, mode, stdin)
        }
    }
}

/// Returns the prompt; `-` reads it from standard input.
fn asked(prompt: Option<&str>, context: &Context<'_>) -> Result<Option<String>, Error> {
    match prompt {
        Some("-") => Ok(Some(query::from_stdin(context)?)),
        prompt => Ok(prompt.map(str::to_owned)),
    }
}

/// Returns the source of an agent's replies: a model or a recorded run.
fn agent_choice(
    model: Option<&str>,
    timeout: Duration,
    arguments: Option<&AgentArgs>,
) -> ModelChoice {
    let calls = arguments.map(|arguments| &arguments.calls);
    ModelChoice {
        model: model.map(str::to_owned),
        replay: arguments.and_then(|arguments| arguments.replay.clone()),
        resume: None,
        timeout,
        delivery: Delivery::Streamed,
        allow_secrets: true,
        inputs: InputOptions::default(),
        require_model: calls.is_some_and(|calls| calls.require_model),
        tier: calls.and_then(|calls| calls.tier),
        max_cost: calls.and_then(|calls| calls.max_cost),
    }
}

fn outside(arguments: &AgentArgs) -> Outside {
    if arguments.allow_outside {
        Outside::Allowed
    } else {
        Outside::Refused
    }
}

/// Adapts standard input to the output options: `--quiet` and machine-readable output rule out the screen.
fn talks(cli: &Cli, stdin: Stdin) -> Stdin {
    let output = &cli.output;
    Stdin {
        is_seen: stdin.is_seen && !output.quiet && output.output_format == OutputFormat::Text,
        ..stdin
    }
}

/// Runs `work` with the user at the full screen if it is wanted and the terminal supports it, otherwise line by
/// line.
fn talk(
    context: &Context<'_>,
    home: &Path,
    stdin: Stdin,
    wants_screen: bool,
    work: impl FnOnce(&Context<'_>, OpenUser<'_>) -> Result<Outcome, Failure>,
) -> Result<Outcome, Failure> {
    let has_screen = stdin.is_terminal && stdin.is_seen && !is_dumb(context.environment);
    if !wants_screen || !has_screen {
        return work(context, &|| open_input(context, stdin));
    }
    let setup = ScreenSetup {
        first: None,
        mode: None,
        mouse: true,
        history: home.join(history::FILE),
    };
    at_screen(context, setup, |screen, farewell| {
        let context = &context.with_reporter(&**screen);
        let open = || -> Result<Box<dyn LineReader>, InputError> {
            Ok(Box::new(ScreenLines::new(screen, context.interrupt)))
        };
        let done = work(context, &open);
        *farewell = screen.last_words();
        done
    })
}

/// Opens line-based input, from a user at a terminal or from whatever standard input is.
fn open_input(context: &Context<'_>, stdin: Stdin) -> Result<Box<dyn LineReader>, InputError> {
    let interrupt = context.interrupt.clone();
    let reader = input::stdin(interrupt.clone())?;
    let person = stdin.is_terminal.then_some(interrupt);
    Ok(Box::new(Lines::new(reader, person)))
}

fn choice(cli: &Cli, context: &Context<'_>) -> Result<ModelChoice, Error> {
    Ok(ModelChoice {
        model: cli.model.clone(),
        replay: cli.replay.clone(),
        resume: cli.replies.resume.clone(),
        timeout: cli.timeout,
        delivery: if cli.stream {
            Delivery::Streamed
        } else {
            Delivery::Whole
        },
        allow_secrets: cli.allow_secrets,
        inputs: query::inputs(context, &cli.inputs)?,
        require_model: cli.calls.require_model,
        tier: cli.calls.tier,
        max_cost: cli.calls.max_cost,
    })
}
