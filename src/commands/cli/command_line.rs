//! The command line: clap's types, and nothing that acts.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind::{InvalidSubcommand, UnknownArgument};
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use super::agent::AgentArgs;
use super::build::{BuildArgs, check_allowed};
use super::command::Command;
use super::inputs::{InputArgs, OutputArgs, PlaceArgs};
use super::replies::{LossArgs, OnFailure, ReplyArgs};
use super::values::{PROGRAM, SELDOM, parse_dollars, parse_duration};
use crate::commands::chat::args::ChatArgs;
use crate::commands::dev::args::{Dev, DevArgs};
use crate::commands::orchestrate::args::DevAgent;
use crate::commands::plan::args::PlanArgs;

use crate::model::Tier;
use crate::model::price::Usd;
use crate::sys::text::{printable, without_ci_commands};
use crate::ui::OutputFormat;

const AFTER_HELP: &str = "\
Files:
  agent-config/query.txt               the change to make, without -m or --edit
  agent-config/codeRollup.txt          the code base, without --rollup; written by
                                       `code-commit rollup`
  agent-config/gemini-key.txt          API key for gemini-2.5-pro
  agent-config/openai-key.txt          API key for gpt-5
  agent-config/models.json             other models, and which model does what
  agent-config/consistency-report.txt  the report from --consistency-check
  build.sh                             must exit with 0 for a change to count
  logs/<time>-<workflow>/              every query, reply and build of a run

Exit codes (also in the run's result.json):
  0  done             build.sh passed, or the report was written
  1  build-failed     build.sh failed after the last repair; the edits are
                      kept, unless --on-failure is revert
     gate-changed     a build changed build.sh or another protected file
  2  usage            invalid command line; nothing was written
  3  not-ready        something is missing or another run is active; nothing
                      was sent
  4  model-failed     no complete reply; nothing of it was applied
  5  reply-rejected   malformed reply, protected path, or a file that changed
                      meanwhile; nothing was applied
  6  local-io         a read, write or log failed; the edits were rolled back
  129, 130, 143       interrupted by SIGHUP, SIGINT or SIGTERM; no reply is
                      half applied

Environment:
  GEMINI_API_KEY, GOOGLE_API_KEY, OPENAI_API_KEY, AZURE_OPENAI_API_KEY,
  ANTHROPIC_API_KEY
                          API keys, where the key file is missing
  GOOGLE_GEMINI_BASE_URL  API server for Gemini (https, or http on localhost)
  OPENAI_BASE_URL         API server for OpenAI models, likewise
  ANTHROPIC_BASE_URL      API server for Anthropic models, likewise
  AZURE_OPENAI_BASE_URL   resource for models on Azure, likewise
  HTTPS_PROXY, NO_PROXY   proxy for https, and hosts to reach without it
  NO_COLOR                disables colors";

/// In one piece: a summary and a longer text would make clap set every flag's help below the flag.
const ABOUT: &str = "\
Ask a language model for a change, apply it all or nothing, and build it.

Run it in a project: code-commit -m \"Add a --verbose flag\" --rollup

It reads the task from -m or agent-config/query.txt and the code base from the
files that git tracks or agent-config/codeRollup.txt, applies the reply, runs
build.sh and asks for up to three repairs. `code-commit init` sets a project up.";

/// The command line of `code-commit`.
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags are what a command line has"
)]
#[derive(Debug, Clone, Parser)]
#[command(about = ABOUT, long_about = None, name = PROGRAM, version, after_help = AFTER_HELP, max_term_width = 80, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// A command other than the two workflows.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Input flags.
    #[command(flatten)]
    pub inputs: InputArgs,

    /// Write a consistency report instead of changing the project
    #[arg(long, visible_aliases = ["consistency", "cc"], conflicts_with_all = ["allow_elision", "allow_shrink", "allow_form"])]
    pub consistency_check: bool,

    /// Model to ask: gemini-2.5-pro, gpt-5, or one listed in agent-config/models.json; the default
    /// is gemini-2.5-pro
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Check that everything is ready and estimate tokens and cost, without sending anything
    #[arg(long, conflicts_with = "replay")]
    pub dry_run: bool,

    /// Make no call that could take the cost of the run above this many US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<Usd>,

    /// Service tier to ask for: flex (half the price, but slower, and standard if there is no room) or
    /// standard
    #[arg(long, value_name = "TIER", value_enum, hide_possible_values = true)]
    pub tier: Option<Tier>,

    /// Fail with exit code 4 if another model answers than the one that was asked
    #[arg(long)]
    pub require_model: bool,

    /// Stream the reply and show its tokens as they arrive
    #[arg(long)]
    pub stream: bool,

    /// Print the change as a unified diff when done
    #[arg(long, conflicts_with_all = ["consistency_check", "dry_run"])]
    pub diff: bool,

    /// What to do with the edits when the run fails: keep (default) or revert
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnFailure::Keep, hide_default_value = true, hide_possible_values = true, conflicts_with = "consistency_check")]
    pub on_failure: OnFailure,

    /// Output flags.
    #[command(flatten)]
    pub output: OutputArgs,

    /// The project's flag.
    #[command(flatten)]
    pub place: PlaceArgs,

    /// Write a Markdown summary of the run to PATH
    #[arg(long, value_name = "PATH", conflicts_with = "dry_run")]
    pub summary_file: Option<PathBuf>,

    /// Time limit of a model call, retries included, such as 90s, 30m or 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
    pub timeout: Duration,

    /// Take the replies from an earlier run, named as for `log`, instead of a model
    #[arg(long, value_name = "RUN", allow_negative_numbers = true, help_heading = SELDOM)]
    pub replay: Option<PathBuf>,

    /// Send the query and the code base even if they seem to contain credentials; the project's own
    /// keys are redacted regardless
    #[arg(long, help_heading = SELDOM)]
    pub allow_secrets: bool,

    /// Flags for replies.
    #[command(flatten)]
    pub replies: ReplyArgs,

    /// What replies may lose.
    #[command(flatten)]
    pub losses: LossArgs,

    /// Build flags.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// A command line that runs nothing: help, the version, or an error.
#[derive(Debug)]
pub struct CliMessage {
    /// What to print, with its line end.
    pub text: String,
    /// Whether it is an error.
    pub is_error: bool,
}

impl Cli {
    /// Reads the command line.
    ///
    /// # Errors
    /// A [`CliMessage`] where it asks for help, or is wrong.
    pub fn read(arguments: &[OsString]) -> Result<Self, CliMessage> {
        let read = Self::try_parse_from(arguments);
        let read = read.or_else(|error| Self::with_flags_in_front(arguments).ok_or(error));
        let read = read.and_then(Self::with_sandbox_checked);
        let cli = read.map_err(|error| message(&error, Self::command(), arguments))?;
        Ok(cli.settled())
    }

    /// Reads the command line of the binary `dev`.
    ///
    /// # Errors
    /// A [`CliMessage`] where it asks for help, or is wrong.
    pub fn read_dev(arguments: &[OsString]) -> Result<Self, CliMessage> {
        let read = Dev::try_parse_from(arguments).and_then(Dev::with_sandbox_checked);
        let dev = read.map_err(|error| message(&error, Dev::command(), arguments))?;
        Self::of_command(Command::Dev(dev.arguments), dev.output, dev.place)
    }

    /// Reads the command line of the binary `dev-agent`.
    ///
    /// # Errors
    /// A [`CliMessage`] where it asks for help, or is wrong.
    pub fn read_dev_agent(arguments: &[OsString]) -> Result<Self, CliMessage> {
        let read = DevAgent::try_parse_from(arguments);
        let agent = read.map_err(|error| message(&error, DevAgent::command(), arguments))?;
        Self::of_command(
            Command::Orchestrate(agent.arguments),
            agent.output,
            agent.place,
        )
    }

    /// A command by itself: the flags of the commit workflow are as nobody has given any.
    fn of_command(
        command: Command,
        output: OutputArgs,
        place: PlaceArgs,
    ) -> Result<Self, CliMessage> {
        let cli = Self::try_parse_from([PROGRAM]);
        let cli = cli.map_err(|error| message(&error, Self::command(), &[]))?;
        Ok(Self {
            command: Some(command),
            output,
            place,
            ..cli
        }
        .settled())
    }

    /// A subcommand behind flags that all commands have; the workflows' own exclude one.
    fn with_flags_in_front(arguments: &[OsString]) -> Option<Self> {
        let command = Self::command().args_conflicts_with_subcommands(false);
        let matches = command.clone().try_get_matches_from(arguments).ok()?;
        matches.subcommand()?;
        let mut own = command
            .get_arguments()
            .filter(|argument| !argument.is_global_set());
        let is_given = |argument: &clap::Arg| {
            matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        if own.any(is_given) {
            return None;
        }
        Self::from_arg_matches(&matches).ok()
    }

    /// The same, if the hosts and sockets that it allows can be.
    fn with_sandbox_checked(self) -> Result<Self, clap::Error> {
        let (sandbox, hosts) = match self.agent() {
            Some(agent) => (agent.sandbox, &agent.allow_host),
            None => (self.build.sandbox, &self.build.allow_host),
        };
        check_allowed(sandbox, hosts, self.allowed_sockets(), Self::command)?;
        Ok(self)
    }

    /// The sockets that a sandbox does not hide.
    #[must_use]
    pub fn allowed_sockets(&self) -> &[PathBuf] {
        let agent = self.agent();
        agent.map_or(&self.build.allow_socket, |agent| &agent.allow_socket)
    }

    /// The variables that a sandbox, or an MCP server, gets though their names say that they hold a secret.
    #[must_use]
    pub fn passed_variables(&self) -> &[String] {
        match &self.command {
            Some(Command::Mcp(mcp)) => mcp.command.passed_variables(),
            _ => self
                .agent()
                .map_or(&self.build.pass_env, |agent| &agent.pass_env),
        }
    }

    /// Whether the command takes variables from a `.env`: those that talk to servers which no file of the project names.
    #[must_use]
    pub fn reads_env_file(&self) -> bool {
        matches!(
            self.command,
            Some(Command::Orchestrate(_) | Command::Mcp(_))
        )
    }

    /// What replies may lose of the files that they replace.
    #[must_use]
    pub fn losses(&self) -> LossArgs {
        self.agent().map_or(self.losses, |agent| agent.losses)
    }

    /// The flags of the agent that is started, if one is.
    fn agent(&self) -> Option<&AgentArgs> {
        match &self.command {
            Some(
                Command::Dev(DevArgs { agent, .. })
                | Command::Plan(PlanArgs { agent, .. })
                | Command::Chat(ChatArgs { agent, .. }),
            ) => Some(agent),
            _ => None,
        }
    }

    /// Applies flags that stand for others: `--json` is `--output-format json`. What prints a script or a page
    /// prints nothing else.
    fn settled(mut self) -> Self {
        match &self.command {
            Some(Command::Dev(dev)) if dev.lists_json() => {
                self.output.output_format = OutputFormat::Json;
            }
            Some(Command::Chat(chat)) if chat.lists_json() => {
                self.output.output_format = OutputFormat::Json;
            }
            Some(Command::Plan(plan)) if plan.shows_json() => {
                self.output.output_format = OutputFormat::Json;
            }
            Some(Command::Completions { .. } | Command::Man { .. }) => {
                self.output = OutputArgs {
                    quiet: true,
                    output_format: OutputFormat::Text,
                };
            }
            _ => {}
        }
        self
    }
}

fn message(error: &clap::Error, mut whole: clap::Command, arguments: &[OsString]) -> CliMessage {
    whole.build();
    let is_error = error.use_stderr();
    let rendered = error.render().to_string();
    let rendered = if is_error {
        without_tips(&rendered, suggestion(error))
    } else {
        rendered
    };
    let mut text = format!("{rendered}{}", hint(error, &whole, arguments));
    if is_error {
        // What it quotes may be anybody's.
        text = without_ci_commands(&printable(&text, &['\n'])).into_owned();
    }
    CliMessage { text, is_error }
}

/// What clap says of an error in a form of its own: what is `meant` stands behind the error, and the way out in the hint.
fn without_tips(rendered: &str, meant: Option<String>) -> String {
    let is_tip = |line: &str| {
        let line = line.trim_start();
        line.starts_with("tip: ") || line.starts_with("For more information")
    };
    let mut lines: Vec<String> = rendered
        .lines()
        .filter(|line| !is_tip(line))
        .map(str::to_owned)
        .collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    if let (Some(meant), Some(error)) = (meant, lines.first_mut()) {
        error.push_str(&format!("; did you mean `{meant}`?"));
    }
    format!("{}\n", lines.join("\n").trim_end())
}

/// What may stand in the place of what is wrong; clap itself names the values only.
fn hint(error: &clap::Error, whole: &clap::Command, arguments: &[OsString]) -> String {
    if !error.use_stderr() {
        return String::new();
    }
    let message = crate::commands::cli::inputs::as_message(error, whole, arguments);
    if let Some((message, true)) = message {
        return format!("hint: {message}\n");
    }
    if !matches!(error.kind(), UnknownArgument | InvalidSubcommand) {
        let program = whole.get_name();
        return format!("hint: see `{program} --help`\n");
    }
    let is_named = |command: &&clap::Command| {
        let name = command.get_name();
        arguments.iter().any(|argument| argument == name)
    };
    // The innermost command that is named.
    let mut command = whole;
    while let Some(named) = command.get_subcommands().find(is_named) {
        command = named;
    }
    let flags = command.get_arguments().filter_map(|argument| {
        let aliases = argument.get_visible_aliases().into_iter().flatten();
        let names = std::iter::once(argument.get_long()?).chain(aliases);
        let names: Vec<String> = names.map(|name| format!("`--{name}`")).collect();
        Some(names.join(" "))
    });
    let commands = command.get_subcommands();
    let commands = commands
        .filter(|command| !command.is_hide_set())
        .map(|command| format!("`{}`", command.get_name()));
    let names: Vec<String> = flags.chain(commands).collect();
    let allowed = format!("allowed are {}", names.join(", "));
    match message {
        // The command stays on one line.
        Some((message, _)) => format!("hint: {message};\n  {}\n", wrapped(&allowed)),
        None => format!("{}\n", wrapped(&format!("hint: {allowed}"))),
    }
}

/// What clap takes for a slip of the pen.
fn suggestion(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
    let meant = match kinds.into_iter().find_map(|kind| error.get(kind))? {
        ContextValue::String(meant) => meant,
        ContextValue::Strings(meant) => meant.first()?,
        _ => return None,
    };
    Some(meant.clone())
}

/// A long sentence on lines that fit a terminal, the second and later ones indented.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 77 => *line += &format!(" {word}"),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n  ")
}

/// The script that completes commands and flags in `shell`.
#[must_use]
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), PROGRAM, &mut script);
    script
}

/// The manual page of the program, or of one of its commands; `None` where there is no such command.
#[must_use]
pub fn manual(command: &[String]) -> Option<Vec<u8>> {
    let mut whole = Cli::command();
    whole.build();
    let summary = ABOUT.lines().next().unwrap_or_default();
    // The name's line of a manual page is one line.
    let whole = whole.about(summary).long_about(ABOUT);
    let mut names = command.iter();
    let page = names.try_fold(&whole, |page, name| page.find_subcommand(name))?;
    let mut roff = Vec::new();
    // A vector takes all that is written.
    clap_mangen::Man::new(page.clone()).render(&mut roff).ok()?;
    Some(roff)
}

#[cfg(test)]
mod tests;
