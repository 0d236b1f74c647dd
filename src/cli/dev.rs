//! The command line of `dev`, and of the binary of that name.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use uuid::Uuid;

use super::{FormatArg, OutputArgs, PlainArgs, SELDOM, parse_dollars, parse_duration};
use crate::exec::sandbox::SandboxMode;
use crate::model::price::Usd;

const DEV_ABOUT: &str = "\
Lets an agent work in the current directory through tools, until an independent audit passes its work.

Without -p it asks what is to be done, and goes on asking; with -p it works on that alone.";

const DEV_AFTER_HELP: &str = "\
Files, in ~/.dev-agent (macOS: ~/Library/Application Support/dev-agent; Windows: %APPDATA%\\dev-agent):
  config.json                  server, model and limits; written at the first start
  sessions/<uuid>.json         what was said, as of the latest step
and in the current directory:
  logs/<time>-dev/             every query, reply and tool of a run, and result.json

Exit codes:
  0  done            the audit has passed the work
  1  audit-failed    the audit has not passed it
     tools-failed, loop-limit, over-budget: it did not get that far
  2  usage           the command line is wrong, or there is no such session
  3  not-ready       the configuration is wrong, the first call is not affordable, or another process
                     has the session or the project
  4  model-failed    no whole reply came
  5  reply-rejected  the replies could not be understood
  6  local-io        a local read, write or log failed
  129, 130, 143      interrupted by SIGHUP, SIGINT, SIGTERM; the session can be resumed

Environment:
  DEV_AGENT_API_URL, DEV_AGENT_API_KEY, DEV_AGENT_MODEL  in the place of what config.json says
  DEV_AGENT_HOME, XDG_CONFIG_HOME                        where config.json and the sessions are
  VISUAL, EDITOR                                         what `config` opens config.json with";

/// What `dev` takes.
#[derive(Debug, Clone, Args)]
#[command(about = DEV_ABOUT, long_about = None, after_help = DEV_AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct DevArgs {
    /// A command besides working.
    #[command(subcommand)]
    pub command: Option<DevCommand>,

    /// Work on this alone, without asking back; `-` reads it from standard input. With --resume or
    /// --session, an empty one goes on with what was asked for before
    #[arg(long, short, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,

    /// Go on with the last session of the current directory
    #[arg(long, conflicts_with = "session")]
    pub resume: bool,

    /// Use the session of this UUID: go on with it, or begin it
    #[arg(long, value_name = "UUID")]
    pub session: Option<Uuid>,

    /// The language model to ask, by its name in the table of models [default: the one of config.json]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Stop before a call that could make the run cost more than so many US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<Usd>,

    /// Let the agent read and write files outside the current directory
    #[arg(long)]
    pub allow_outside: bool,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,

    /// How long a call to the model may take, its retries included: 90s, 30m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
    pub timeout: Duration,

    /// Take the replies from the folder of an earlier run instead of a model
    #[arg(long, value_name = "RUN", conflicts_with_all = ["prompt", "resume", "session"], help_heading = SELDOM)]
    pub replay: Option<PathBuf>,

    /// How far commands are shut in, by bubblewrap: away from keys and other processes where that is
    /// possible (auto); from the network and the rest of the disk too, or not at all run (strict)
    #[arg(long, value_name = "HOW", value_enum, default_value_t = SandboxMode::Auto, hide_possible_values = true, help_heading = SELDOM)]
    pub sandbox: SandboxMode,
}

impl DevArgs {
    /// Carries out what one flag says of another.
    pub(super) fn settle(&mut self) {
        if let Some(DevCommand::Sessions(sessions)) = &mut self.command {
            let SessionsCommand::List(list) = &mut sessions.command;
            if list.json {
                list.output.output_format = FormatArg::Json;
            }
        }
    }

    pub(super) fn output(&self) -> &OutputArgs {
        match &self.command {
            None => &self.output,
            Some(DevCommand::Config(arguments)) => &arguments.output,
            Some(DevCommand::Sessions(arguments)) => match &arguments.command {
                SessionsCommand::List(arguments) => &arguments.output,
            },
        }
    }
}

/// A command of `dev` besides working.
#[derive(Debug, Clone, Subcommand)]
pub enum DevCommand {
    /// Look at sessions
    Sessions(SessionsArgs),
    /// Open config.json in an editor
    Config(PlainArgs),
}

/// What `dev sessions` takes.
#[derive(Debug, Clone, Args)]
pub struct SessionsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SessionsCommand,
}

/// What can be done with sessions.
#[derive(Debug, Clone, Subcommand)]
pub enum SessionsCommand {
    /// List all sessions: id, when, directory, prompt, state
    List(SessionsListArgs),
}

/// What `dev sessions list` takes.
#[derive(Debug, Clone, Args)]
pub struct SessionsListArgs {
    /// Print them as JSON; the same as --output-format json
    #[arg(long, conflicts_with = "output_format")]
    pub json: bool,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The command line of the binary `dev`, which is that of `code-commit dev`.
#[derive(Debug, Clone, Parser)]
#[command(name = "dev", version, about = DEV_ABOUT, long_about = None, after_help = DEV_AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(super) struct Dev {
    #[command(flatten)]
    pub(super) arguments: DevArgs,
}
