//! The command line: clap's types, without any actions.

mod correction;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::Resettable;
use clap::error::ErrorKind::ArgumentConflict;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum as _};

pub use self::correction::CliMessage;
use self::correction::message;
use super::cli::agent::CallArgs;
use super::cli::build::{BuildArgs, SandboxArgs};
use super::cli::consistency::ConsistencyArgs;
use super::cli::gate::GateArgs;
use super::cli::inputs::{InputArgs, OutputArgs, PlaceArgs};
use super::cli::replies::{LossArgs, OnFailure, ReplyArgs};
use super::cli::values::{PROGRAM, SELDOM, parse_duration};
use super::command::Command;
use super::dev::args::{DEV_ABOUT, DevArgs};
use super::fleet::args::FleetCommand;
use super::orchestrate::args::{ORCHESTRATE_ABOUT, OrchestrateArgs};
use crate::run::scratch::ScratchMode;
use crate::ui::OutputFormat;

const AFTER_HELP: &str = include_str!("command_line/after_help.txt").trim_ascii_end();

/// The version; in a release, also the commit and the target of the build.
const BUILD: &str = include_str!(concat!(env!("OUT_DIR"), "/version.txt"));

/// A single text for both helps: if a separate summary were given, clap would print the help of each flag below the
/// flag.
const ABOUT: &str = include_str!("command_line/about.txt").trim_ascii_end();

/// Flags that do not apply to a consistency report.
const CHANGE_FLAGS: &str = "context include exclude ci protect deny_warnings gate require_clean allow_elision \
    allow_shrink allow_form diff on_failure scratch baseline build_timeout sandbox allow_socket pass_env reask \
    reply_format require_edits strategy attempts first_pass";

/// The command line of `code-commit`.
#[derive(Debug, Clone, Parser)]
#[command(about = ABOUT, long_about = None, name = PROGRAM, version, long_version = BUILD, help_template = include_str!("command_line/short_help.txt").trim_ascii_end(), after_help = AFTER_HELP, max_term_width = 80, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// The name of the command or the workflow.
    #[arg(skip)]
    pub name: String,

    /// The arguments that were parsed.
    #[arg(skip)]
    words: Vec<OsString>,

    /// The flags among them, by clap's names.
    #[arg(skip)]
    given: Vec<String>,

    /// A command other than the two workflows.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Input flags.
    #[command(flatten)]
    pub inputs: InputArgs,

    /// Write a consistency report instead of changing the project
    #[arg(long, visible_aliases = ["consistency", "cc"], conflicts_with_all = CHANGE_FLAGS.split(' '))]
    pub consistency_check: bool,

    /// Flags for the report.
    #[command(flatten)]
    pub report: ConsistencyArgs,

    /// Model to ask: gemini-2.5-pro, gpt-5, or any that `code-commit models` lists; the default is the
    /// one that `models.json` selects, or gemini-2.5-pro; several, as a,b,c, are each asked for one attempt
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Check that everything is ready and estimate tokens and cost, without sending anything
    #[arg(long, conflicts_with = "replay")]
    pub dry_run: bool,

    /// Flags for calls.
    #[command(flatten)]
    pub calls: CallArgs,

    /// Stream the reply and show its tokens as they arrive
    #[arg(long)]
    pub stream: bool,

    /// Print the change as a unified diff when done
    #[arg(long, conflicts_with = "dry_run")]
    pub diff: bool,

    /// What to do with the edits when the run fails: keep (default) or revert (default with --scratch)
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true)]
    pub on_failure: Option<OnFailure>,

    /// Work in a scratch tree over the project, and copy the files that replies changed back once the
    /// build passes; with =keep-ignored, also ignored files that builds have left
    #[arg(long, value_name = "WHAT", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "drop", hide_possible_values = true)]
    pub scratch: Option<ScratchMode>,

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
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
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

    /// Flags for the gate.
    #[command(flatten)]
    pub gate: GateArgs,

    /// Flags for losses.
    #[command(flatten)]
    pub losses: LossArgs,

    /// Build flags.
    #[command(flatten)]
    pub build: BuildArgs,
}

impl Cli {
    /// Returns the treatment of edits if the run fails: by default they are kept, or reverted with `--scratch`.
    pub(crate) fn on_failure(&self) -> OnFailure {
        let default = self.scratch.map_or(OnFailure::Keep, |_| OnFailure::Revert);
        self.on_failure.unwrap_or(default)
    }

    /// Parses the command line. The binaries `dev` and `dev-agent` act as the commands of those names.
    ///
    /// # Errors
    /// Returns a [`CliMessage`] if the command line asks for help or is invalid.
    pub fn read(arguments: &[OsString]) -> Result<Self, CliMessage> {
        match arguments.first().map(Path::new) {
            Some(program) if program.ends_with("dev") => {
                Self::read_alone::<DevArgs>(("dev", DEV_ABOUT), "dev", arguments)
            }
            Some(program) if program.ends_with("dev-agent") => {
                let binary = ("dev-agent", ORCHESTRATE_ABOUT);
                Self::read_alone::<OrchestrateArgs>(binary, "orchestrate", arguments)
            }
            _ => Self::parse_all(arguments)
                .map_err(|error| message(&error, Self::command(), arguments)),
        }
    }

    /// Parses the command line of a binary with this name and description, which is an alias of `command`.
    fn read_alone<A: Args>(
        (name, about): (&'static str, &'static str),
        command: &str,
        arguments: &[OsString],
    ) -> Result<Self, CliMessage> {
        let named = clap::Command::default()
            .name(name)
            .version(env!("CARGO_PKG_VERSION"))
            .long_version(BUILD);
        let binary = PlaceArgs::augment_args(OutputArgs::augment_args(A::augment_args(named)))
            .about(about)
            .long_about(None);
        let mut parser = with_help(binary.clone(), arguments);
        let parsed = parser.try_get_matches_from_mut(arguments);
        parsed.map_err(|error| message(&error, binary, arguments))?;
        let given = arguments.iter().skip(1).cloned();
        let names = [PROGRAM, command].map(OsString::from).into_iter();
        Self::read(&names.chain(given).collect::<Vec<_>>())
    }

    /// Parses the command line, and expands shorthand flags: `--json` stands for `--output-format json`. Commands that
    /// print a script or a manual page print nothing else.
    fn parse_all(arguments: &[OsString]) -> Result<Self, clap::Error> {
        let matches = with_help(Self::command(), arguments)
            .try_get_matches_from(arguments)
            .or_else(|error| flags_in_front(arguments).ok_or(error))?;
        let mut cli = Self::from_arg_matches(&matches)?;
        cli.words = arguments.to_vec();
        let given = matches
            .ids()
            .map(clap::Id::as_str)
            .filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
        cli.given = given.map(str::to_owned).collect();
        let workflow = if cli.consistency_check {
            "consistency"
        } else {
            "commit"
        };
        let called = matches.subcommand_name().unwrap_or(workflow);
        called.clone_into(&mut cli.name);
        let mut innermost = &matches;
        while let Some((_, command)) = innermost.subcommand() {
            innermost = command;
        }
        if let Ok(Some(true)) = innermost.try_get_one("json") {
            cli.output.output_format = OutputFormat::Json;
        }
        let prints_alone = match &cli.command {
            Some(Command::Completions { .. }) => true,
            Some(Command::Man { command }) => page(command).is_some(),
            _ => false,
        };
        if prints_alone {
            cli.output = OutputArgs {
                quiet: true,
                output_format: OutputFormat::Text,
            };
        }
        if cli.gate.ci {
            cli.build.baseline = true;
            cli.gate.require_clean = true;
            cli.gate.deny_warnings.push("tests".to_owned());
            cli.replies.require_edits = true;
            if !cli.given.iter().any(|id| id == "reask") {
                cli.replies.reask = 1;
            }
        }
        let has_run = !cli.dry_run && cli.command.as_ref().is_none_or(Command::has_run);
        let is_report = matches!(
            &cli.command,
            Some(Command::Fleet(FleetCommand::Report { .. }))
        );
        let checked = match cli.output.output_format {
            OutputFormat::Sarif if !has_run && !is_report => {
                Err("`--output-format sarif` is for runs, and for `fleet report`")
            }
            format if cli.diff && format != OutputFormat::Text => {
                Err("`--diff` is for `--output-format text`")
            }
            OutputFormat::Csv if !is_report => Err("`--output-format csv` is for `fleet report`"),
            _ => cli.sandbox().check(),
        };
        checked.map_err(|reason| {
            let mut whole = Self::command();
            whole.build();
            let mut command = correction::innermost(&whole, arguments).clone();
            command.error(ArgumentConflict, reason)
        })?;
        Ok(cli)
    }

    /// Parses the command line with additional flags in front, each given by its name and as an argument. Flags on the
    /// command line take precedence and exclude conflicting ones; restrictions add up.
    ///
    /// # Errors
    ///
    /// Fails if the flags are invalid.
    pub(crate) fn with_flags(&self, flags: &[(String, OsString)]) -> Result<Self, CliMessage> {
        let command = Self::command();
        let own = |argument: &&clap::Arg| self.given.iter().any(|id| argument.get_id() == id);
        let is_overruled = |(name, _): &&(String, OsString)| {
            let Some(argument) = flag(&command, name) else {
                return false;
            };
            let ruled_out = command.get_arg_conflicts_with(argument);
            let is_for_other_format = match argument.get_id().as_str() {
                "diff" => self.output.output_format != OutputFormat::Text,
                "output_format" => self.diff,
                _ => false,
            };
            let mut given = command.get_arguments().filter(own);
            is_for_other_format
                || given.any(|other| {
                    let rules_out = command.get_arg_conflicts_with(other);
                    let adds_up = matches!(argument.get_id().as_str(), "protect" | "deny_warnings");
                    other == argument && !adds_up
                        || ruled_out.contains(&other)
                        || rules_out.contains(&argument)
                })
        };
        let (program, own) = self.words.split_first().unzip();
        let more = flags.iter().filter(|flag| !is_overruled(flag));
        let words = program
            .into_iter()
            .chain(more.map(|(_, word)| word))
            .chain(own.unwrap_or_default())
            .cloned();
        Self::read(&words.collect::<Vec<_>>())
    }

    /// Checks that the agent named in `words`, or else the workflows, have a flag of this name, given without dashes.
    pub(crate) fn check_flag(words: &[OsString], name: &str) -> Result<(), String> {
        let command = Self::command();
        let agent = words.get(1).and_then(|word| command.find_subcommand(word));
        let known = flag(agent.unwrap_or(&command), name).map(drop);
        known.ok_or_else(|| format!("there is no flag `--{}`", name.escape_debug()))
    }

    /// Returns whether this flag of the workflows requires a value.
    pub(crate) fn needs_value(name: &str) -> bool {
        let command = Self::command();
        let known = flag(&command, name);
        // An optional value follows an `=`.
        known.is_some_and(|flag| flag.get_action().takes_values() && !flag.is_require_equals_set())
    }

    /// Returns the flags for the sandbox of builds and commands.
    pub fn sandbox(&self) -> &SandboxArgs {
        let agent = self.command.as_ref().and_then(Command::agent);
        agent.map_or(&self.build.sandbox, |agent| &agent.sandbox)
    }

    /// Returns the environment variables passed to the sandbox or MCP server although their names look like secrets.
    pub fn passed_variables(&self) -> &[String] {
        match &self.command {
            Some(Command::Mcp(mcp)) => &mcp.server().pass_env,
            _ => &self.sandbox().pass_env,
        }
    }

    /// Returns `true` if the command reads variables from `.env`.
    pub fn reads_env_file(&self) -> bool {
        self.command.as_ref().is_some_and(Command::reads_env_file)
    }
}

/// Returns the flag of this name or alias.
fn flag<'c>(command: &'c clap::Command, name: &str) -> Option<&'c clap::Arg> {
    command.get_arguments().find(|argument| {
        let aliases = argument.get_all_aliases().unwrap_or_default();
        argument.get_long() == Some(name) || aliases.contains(&name)
    })
}

/// Parses a subcommand preceded by global flags, which would otherwise be rejected: the workflows' own flags conflict
/// with subcommands.
fn flags_in_front(arguments: &[OsString]) -> Option<ArgMatches> {
    let command = Cli::command().args_conflicts_with_subcommands(false);
    let matches = command.clone().try_get_matches_from(arguments).ok()?;
    matches.subcommand()?;
    let is_given = |argument: &clap::Arg| {
        matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let mut own = command
        .get_arguments()
        .filter(|argument| !argument.is_global_set());
    (!own.any(is_given)).then(|| matches.clone())
}

/// Prepares a command for the help that these arguments request, if any.
fn with_help(mut command: clap::Command, arguments: &[OsString]) -> clap::Command {
    let asks = |word: &str| arguments.iter().any(|argument| argument == word);
    let is_short = asks("-h");
    if !is_short && !asks("--help") && !asks("help") {
        return command;
    }
    command.build();
    helping(command, is_short)
}

/// Prepares a built command and all its subcommands for their short help, which follows their templates or ends before
/// the advanced options, or for their full help, which has no template.
fn helping(command: clap::Command, is_short: bool) -> clap::Command {
    let form = if is_short {
        command.after_help(Resettable::Reset).mut_args(|argument| {
            let is_seldom = argument.get_help_heading() == Some(SELDOM);
            argument.hide_short_help(is_seldom)
        })
    } else {
        command.help_template(Resettable::Reset)
    };
    form.mut_subcommands(|below| helping(below, is_short))
}

/// Finds the output format in an invalid command line.
pub fn requested_format(arguments: &[OsString]) -> OutputFormat {
    let words: Vec<_> = arguments.iter().map(|it| it.to_string_lossy()).collect();
    let value = words.iter().enumerate().find_map(|(nth, word)| {
        match word.strip_prefix("--output-format")? {
            "" => words.get(nth + 1).map(|next| &**next),
            value => value.strip_prefix('='),
        }
    });
    let format = value.and_then(|value| OutputFormat::from_str(value, false).ok());
    format.unwrap_or_default()
}

/// Generates the completion script for `shell`.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), PROGRAM, &mut script);
    if shell == clap_complete::Shell::Bash {
        // clap writes the hyphen of the program's name in two ways, and then finds none of its subcommands.
        return bstr::ByteSlice::replace(&*script, "code__subcmd__commit", "code__commit");
    }
    script
}

/// Renders the manual page of the program or of one of its commands, as text if it `is_read` at a terminal; `None` if
/// there is no such command.
pub fn manual(command: &[String], is_read: bool) -> Option<Vec<u8>> {
    let mut page = page(command)?;
    if is_read {
        return Some(page.render_long_help().to_string().into_bytes());
    }
    let mut roff = Vec::new();
    // Writing to a vector cannot fail.
    clap_mangen::Man::new(page).render(&mut roff).ok()?;
    Some(roff)
}

/// Returns the program, or the one of its commands that has a manual page of this name.
fn page(command: &[String]) -> Option<clap::Command> {
    let mut built = Cli::command();
    built.build();
    let summary = ABOUT.lines().next().unwrap_or_default();
    // The NAME section of a manual page takes a single line.
    let titled = helping(built, false).about(summary).long_about(ABOUT);
    let mut names = command.iter();
    let page = names.try_fold(&titled, |page, name| page.find_subcommand(name));
    page.cloned()
}

#[cfg(test)]
mod tests;
