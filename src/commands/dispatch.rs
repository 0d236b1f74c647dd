//! Dispatch of the command line to its command. Has no effects beyond those of the commands.

use std::ffi::OsString;

use super::chat::command::chat;
use super::command::Command;
use super::command_line::{self, Cli};
use super::dev::command::dev;
use super::error::CommandError;
use super::fleet::command::fleet;
use super::orchestrate::command::orchestrate;
use super::plan::command::plan;
use super::{
    attest, commit, consistency, context as context_command, demo, diff, dry_run, init, log, mcp,
    models, report, rollup, undo,
};
use crate::run::context::{Context, Stdin};
use crate::run::outcome::{Failure, Outcome};
use crate::run::recovery;
use crate::ui::OutputFormat;

/// Runs the command that the command line specifies; `stdin` supplies the user's answers.
///
/// # Errors
/// Fails if the command fails.
pub fn dispatch(cli: &Cli, context: &Context<'_>, stdin: Stdin) -> Result<Outcome, Failure> {
    let Some(command) = &cli.command else {
        let choice = &commit::choice(context, cli)?;
        return match (cli.dry_run, cli.consistency_check) {
            (true, _) => dry_run::dry_run(context, cli, choice),
            (false, true) => consistency::consistency(context, &cli.report, choice),
            (false, false) => commit::commit(context, cli, choice),
        };
    };
    match command {
        Command::Init => init::init(context),
        Command::Rollup(arguments) => rollup::rollup(context, arguments),
        Command::Context(arguments) => context_command::context(context, arguments),
        Command::Models(arguments) => models::models(context, arguments),
        Command::Log(arguments) => log::log(context, arguments),
        Command::Diff(arguments) => diff::diff(context, arguments.run.as_deref(), arguments.stat),
        Command::Report(arguments) => report::command::report(context, arguments),
        Command::Attest(arguments) => attest::attest(context, arguments),
        Command::Verify(arguments) => attest::verify(context, arguments),
        Command::Demo(arguments) => demo::demo(context, arguments, &|context, arguments| {
            let cli =
                Cli::read(arguments).map_err(|wrong| CommandError::NoSuchCommand(wrong.text))?;
            let nobody = Stdin {
                is_terminal: false,
                is_seen: false,
            };
            dispatch(&cli, context, nobody)
        }),
        Command::Recover => recovery::recover(context),
        Command::Undo(arguments) => undo::undo(context, arguments.run.as_deref()),
        Command::Dev(arguments) => dev(context, arguments, talks(cli, stdin)),
        Command::Plan(arguments) => plan(context, arguments, talks(cli, stdin)),
        Command::Orchestrate(arguments) => orchestrate(context, arguments, talks(cli, stdin)),
        Command::Mcp(command) => mcp::mcp(context, command),
        Command::Chat(arguments) => chat(context, arguments, stdin),
        Command::Fleet(command) => {
            let check = |words: &[OsString], off: &[&str]| {
                off.iter()
                    .try_for_each(|name| Cli::check_flag(words, name))?;
                Cli::read(words).map(drop).map_err(|wrong| wrong.reason())
            };
            fleet(context, command, cli.output.output_format, &check)
        }
        Command::Completions { shell } => Ok(Outcome::verbatim(command_line::completions(*shell))),
        Command::Man { command } => {
            let unknown = || CommandError::NoSuchCommand(command.join(" "));
            let is_read = context.reporter.columns().is_some();
            let page = command_line::manual(command, is_read).ok_or_else(unknown)?;
            Ok(Outcome {
                is_paged: true,
                ..Outcome::verbatim(page)
            })
        }
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
