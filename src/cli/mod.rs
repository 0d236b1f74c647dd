//! The command line: clap's types, and nothing that acts.

mod dev;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum};

use self::dev::Dev;
pub use self::dev::{DevArgs, DevCommand, SessionsArgs, SessionsCommand, SessionsListArgs};
use crate::exec::sandbox::SandboxMode;
use crate::model::price::Usd;

const AFTER_HELP: &str = "\
Files:
  agent-config/query.txt               what is to be done (you write it)
  agent-config/codeRollup.txt          the code base (`code-commit rollup` writes it)
  agent-config/gemini-key.txt          the API key for gemini-2.5-pro
  agent-config/openai-key.txt          the API key for gpt-5
  agent-config/models.json             other models, and which is asked for what
  agent-config/consistency-report.txt  what --consistency-check writes
  build.sh                             must exit with 0 for a change to count
  logs/<time>-<workflow>/              every query, reply and build of a run, and result.json

Exit codes:
  0  done             build.sh passed on the applied reply, or the report was written
  1  build-failed     build.sh fails after the last repair that can be made; the edits stay, unless reverted
  2  usage            the command line is wrong; nothing was written
  3  not-ready        the project lacks something, or another run holds it; nothing was sent
  4  model-failed     no whole reply came; nothing of it was applied
  5  reply-rejected   the reply is malformed or names a disallowed path; nothing of it was applied
  6  local-io         a local read, write or log failed; the run's edits were rolled back
  129, 130, 143       interrupted by SIGHUP, SIGINT, SIGTERM; the tree is whole

Environment:
  GOOGLE_GEMINI_BASE_URL, OPENAI_BASE_URL  other servers (https, or http on this machine)
  HTTPS_PROXY, NO_PROXY                    the proxy for https
  NO_COLOR                                 no colours";

/// Flags that most users never need stand under a heading of their own.
const SELDOM: &str = "Seldom needed";

/// In one piece: a summary and a longer text would make clap set every flag's help below the flag.
const ABOUT: &str = "\
Asks a language model for a change, applies its reply all or nothing, and proves it with build.sh.

Run in a project's root, with the task in agent-config/query.txt and the code base in
agent-config/codeRollup.txt; then read `git diff`. `code-commit init` prepares a project.";

/// What the command line asks for.
#[expect(
    clippy::struct_excessive_bools,
    reason = "flags are what a command line has"
)]
#[derive(Debug, Clone, Parser)]
#[command(about = ABOUT, long_about = None, name = "code-commit", version, after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// A command besides the two workflows.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Write a report on the project's consistency instead of changing it
    #[arg(long, visible_aliases = ["consistency", "cc"])]
    pub consistency_check: bool,

    /// The language model to ask: gemini-2.5-pro, gpt-5, or one of agent-config/models.json
    /// [default: gemini-2.5-pro]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// Look whether all is ready, and what would be sent and may be paid; send nothing
    #[arg(long, conflicts_with = "replay")]
    pub dry_run: bool,

    /// Stop before a call that could make the run cost more than so many US dollars
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    pub max_cost: Option<Usd>,

    /// Let the reply come piece by piece, and count along
    #[arg(long)]
    pub stream: bool,

    /// Print the whole change as a unified diff at the end
    #[arg(long, conflicts_with_all = ["consistency_check", "dry_run"])]
    pub diff: bool,

    /// What becomes of the edits when the run fails: keep (default) or revert
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        hide_possible_values = true,
        conflicts_with = "consistency_check"
    )]
    pub on_failure: Option<OnFailureArg>,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Write the run's summary to this file, as Markdown
    #[arg(long, value_name = "PATH", conflicts_with = "dry_run")]
    pub summary_file: Option<PathBuf>,

    /// How long a call to the model may take, its retries included: 90s, 30m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30m", help_heading = SELDOM)]
    pub timeout: Duration,

    /// Take the replies from the folder of an earlier run instead of a model
    #[arg(long, value_name = "RUN", help_heading = SELDOM)]
    pub replay: Option<PathBuf>,

    /// Do not start where the rolled-up code base is not the one on the disk
    #[arg(long, help_heading = SELDOM)]
    pub require_fresh: bool,

    /// Send the query and the code base though they hold what looks like credentials; keys of this
    /// project are left out all the same
    #[arg(long, help_heading = SELDOM)]
    pub allow_secrets: bool,

    /// Accept a reply that leaves out most of a file with a comment like "rest unchanged"
    #[arg(long, conflicts_with = "consistency_check", help_heading = SELDOM)]
    pub allow_elision: bool,

    /// What every build is run with.
    #[command(flatten)]
    pub build: BuildArgs,
}

/// What becomes of the edits when a run fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnFailureArg {
    /// They stay
    Keep,
    /// They are taken back
    Revert,
}

/// Flags for builds.
#[derive(Debug, Clone, Args)]
pub struct BuildArgs {
    /// How long build.sh may run: 90s, 30m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "30m", conflicts_with = "consistency_check", help_heading = SELDOM)]
    pub build_timeout: Duration,

    /// How far builds are shut in, by bubblewrap: away from keys and other processes where that is
    /// possible (auto); from the network and the rest of the disk too, or not at all run (strict)
    #[arg(long, value_name = "HOW", value_enum, default_value_t = SandboxMode::Auto, hide_possible_values = true, conflicts_with = "consistency_check", help_heading = SELDOM)]
    pub sandbox: SandboxMode,
}

/// Flags for what is shown.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Show only the result, warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    /// What stdout gets: text (default), json at the end, or jsonl, an event a line as it happens
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = FormatArg::Text, hide_default_value = true, hide_possible_values = true)]
    pub output_format: FormatArg,
}

/// What stdout gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum FormatArg {
    /// The result as text
    Text,
    /// One document at the end
    Json,
    /// A line for each event
    JsonL,
}

/// A command besides the two workflows.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Prepare a project: .gitignore lines, agent-config with an example query, build.sh, codeRollup.sh
    Init(PlainArgs),
    /// Write the code base, as git tracks it, to agent-config/codeRollup.txt
    Rollup(RollupArgs),
    /// List the models that can be asked, and what each is missing
    Models(PlainArgs),
    /// List the runs, or tell one as a story
    Log(RunArgs),
    /// Show what a run changed as a unified diff
    Diff(DiffArgs),
    /// Write a page about a run, or about all of them
    Report(ReportArgs),
    /// Put the project back as it was before a run
    Undo(UndoArgs),
    /// Put the project in order after a run that was cut short; every run does so first
    Recover(RecoverArgs),
    /// Write a small sample project and run the whole pipeline on it, with recorded replies
    Demo(DemoArgs),
    /// Let an agent work through tools until an independent audit passes its work
    Dev(DevArgs),
    /// Print a script that completes commands and flags in a shell
    Completions(CompletionsArgs),
    /// Print the manual page of the program, or of one of its commands
    Man(ManArgs),
}

impl Command {
    /// What it was told to show, where it shows anything but what it was asked for.
    #[must_use]
    pub fn output(&self) -> Option<&OutputArgs> {
        match self {
            Self::Init(arguments) | Self::Models(arguments) => Some(&arguments.output),
            Self::Rollup(arguments) => Some(&arguments.output),
            Self::Log(arguments) => Some(&arguments.output),
            Self::Diff(arguments) => Some(&arguments.output),
            Self::Report(arguments) => Some(&arguments.output),
            Self::Undo(arguments) => Some(&arguments.output),
            Self::Recover(arguments) => Some(&arguments.output),
            Self::Demo(arguments) => Some(&arguments.output),
            Self::Dev(arguments) => Some(arguments.output()),
            Self::Completions(_) | Self::Man(_) => None,
        }
    }
}

/// What a command takes that takes nothing of its own.
#[derive(Debug, Clone, Args)]
pub struct PlainArgs {
    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What `rollup` takes.
#[derive(Debug, Clone, Args)]
pub struct RollupArgs {
    /// Take lock files too; keys, logs and binary files are never taken
    #[arg(long)]
    pub all: bool,

    /// Take only these files, and those below these directories
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Say what to leave out where the code base has more tokens than this
    #[arg(long, value_name = "TOKENS")]
    pub budget: Option<u64>,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What a command takes that is about a run, or about all.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// The run's folder, by its path or its name [default: all runs, a line each]
    pub run: Option<PathBuf>,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What `diff` takes.
#[derive(Debug, Clone, Args)]
pub struct DiffArgs {
    /// The run's folder, by its path or its name [default: the last run that changed anything]
    pub run: Option<PathBuf>,

    /// Show how many lines have changed in each file instead
    #[arg(long)]
    pub stat: bool,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What `report` takes.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The run's folder, by its path or its name [default: the last run]
    pub run: Option<PathBuf>,

    /// Write about all runs: their success, repairs and cost by day
    #[arg(long, conflicts_with = "run")]
    pub all: bool,

    /// Where to write the page [default: report.html in the run's folder, or in logs]
    #[arg(long = "output", value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What `completions` takes.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// What `man` takes.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// The command [default: the program as a whole]
    pub command: Option<String>,
}

/// What `recover` takes.
#[derive(Debug, Clone, Args)]
pub struct RecoverArgs {
    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What `undo` takes.
#[derive(Debug, Clone, Args)]
pub struct UndoArgs {
    /// The run's folder, by its path or its name [default: the last run that changed anything]
    pub run: Option<PathBuf>,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What `demo` takes.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// Where to write the project; must be empty or not there [default: code-commit-demo]
    pub directory: Option<PathBuf>,

    /// What is shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// A command line that runs nothing: help, the version, or an error.
#[derive(Debug)]
pub struct Usage {
    /// What to print, with its line end.
    pub text: String,
    /// Whether it is an error.
    pub is_error: bool,
}

impl Cli {
    /// Reads the command line.
    ///
    /// # Errors
    /// [`Usage`] where it asks for help, or is wrong.
    pub fn read(arguments: &[OsString]) -> Result<Self, Usage> {
        let read = Self::try_parse_from(arguments);
        let mut cli = read.map_err(|error| usage(&error, &Self::command(), arguments))?;
        if let Some(Command::Dev(dev)) = &mut cli.command {
            dev.settle();
        }
        Ok(cli)
    }

    /// Reads the command line of the binary `dev`.
    ///
    /// # Errors
    /// [`Usage`] where it asks for help, or is wrong.
    pub fn read_dev(arguments: &[OsString]) -> Result<Self, Usage> {
        let read = Dev::try_parse_from(arguments);
        let mut dev = read.map_err(|error| usage(&error, &Dev::command(), arguments))?;
        dev.arguments.settle();
        // The flags of the commit workflow are as nobody has given any.
        let mut cli = Self::try_parse_from(["code-commit"])
            .map_err(|error| usage(&error, &Self::command(), arguments))?;
        cli.command = Some(Command::Dev(dev.arguments));
        Ok(cli)
    }
}

fn usage(error: &clap::Error, whole: &clap::Command, arguments: &[OsString]) -> Usage {
    Usage {
        text: format!("{}{}", error.render(), hint(error, whole, arguments)),
        is_error: error.use_stderr(),
    }
}

/// What may stand in the place of what is wrong; clap itself names the values only.
fn hint(error: &clap::Error, whole: &clap::Command, arguments: &[OsString]) -> String {
    if !error.use_stderr() {
        return String::new();
    }
    if !matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
    ) {
        let program = whole.get_name();
        return format!("hint: `{program} --help` shows what is allowed\n");
    }
    let is_named = |command: &&clap::Command| {
        arguments
            .iter()
            .any(|argument| argument.to_str() == Some(command.get_name()))
    };
    // The innermost command that is named.
    let mut command = whole;
    while let Some(named) = command.get_subcommands().find(is_named) {
        command = named;
    }
    let flags = command.get_arguments().filter_map(|argument| {
        let mut names = vec![argument.get_long()?];
        names.extend(argument.get_visible_aliases().into_iter().flatten());
        Some(
            names
                .into_iter()
                .map(|name| format!("`--{name}`"))
                .collect::<Vec<_>>()
                .join(" "),
        )
    });
    let commands = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| format!("`{}`", command.get_name()));
    let names: Vec<String> = flags
        .chain(commands)
        .chain(["`--help`".to_owned()])
        .collect();
    format!("hint: allowed are {}\n", names.join(", "))
}

/// The script that completes commands and flags in `shell`.
#[must_use]
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "code-commit", &mut script);
    script
}

/// The manual page of the program, or of one of its commands; `None` where there is no such command.
#[must_use]
pub fn manual(command: Option<&str>) -> Option<Vec<u8>> {
    let mut whole = Cli::command();
    whole.build();
    let summary = ABOUT.lines().next().unwrap_or_default();
    let page = match command {
        // The name's line of a manual page is one line.
        None => whole.about(summary).long_about(ABOUT),
        Some(name) => whole
            .find_subcommand(name)
            .filter(|found| !found.is_hide_set())?
            .clone(),
    };
    let mut roff = Vec::new();
    // A vector takes all that is written.
    clap_mangen::Man::new(page).render(&mut roff).ok()?;
    Some(roff)
}

/// Reads an amount like `0.50` or `$2`.
fn parse_dollars(text: &str) -> Result<Usd, String> {
    let form = || "write it like `0.50`".to_owned();
    let number: f64 = text
        .strip_prefix('$')
        .unwrap_or(text)
        .parse()
        .map_err(|_| form())?;
    Usd::try_from(number).map_err(|_| form())
}

/// Reads `90s`, `30m` or `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    const LONGEST: u64 = 30 * 24 * 3600;
    let form = || "write it like `90s`, `30m` or `1h`".to_owned();
    let (number, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(form)?;
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(form()),
    };
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(form());
    }
    let number: u64 = number.parse().map_err(|_| form())?;
    match number.checked_mul(unit) {
        Some(0) => Err("it must be longer than nothing".to_owned()),
        Some(seconds) if seconds <= LONGEST => Ok(Duration::from_secs(seconds)),
        _ => Err("it must be at most 30 days, `720h`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Cli, Usage> {
        let all = std::iter::once("code-commit").chain(arguments.iter().copied());
        let all: Vec<OsString> = all.map(Into::into).collect();
        Cli::read(&all)
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_have_a_unit() {
        for (text, seconds) in [
            ("90s", 90),
            ("30m", 1800),
            ("1h", 3600),
            ("720h", 2_592_000),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_secs(seconds)),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "90",
            "1d",
            "0s",
            "-1s",
            "+1s",
            "1.5h",
            "1 h",
            "721h",
            "99999999999999999999h",
            "m1",
            "1µ",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_allowed() {
        for (arguments, expected) in [
            (
                &["--modle", "gpt-5"][..],
                &["'--modle'", "`--model`", "`--cc`", "`--replay`"][..],
            ),
            (&["--max-cost", "much"], &["'much'", "`0.50`"]),
            (&["--output-format", "xml"], &["'xml'", "text, json, jsonl"]),
            (&["--timeout", "soon"], &["'soon'", "`90s`"]),
            (&["dmeo"], &["'dmeo'", "`demo`"]),
            (
                &["--cc", "--build-timeout", "1m"],
                &["--build-timeout", "cannot be used with"],
            ),
            (&["--model"], &["--model", "hint: `code-commit --help`"]),
            (
                &["demo", "--model", "gpt-5"],
                &[
                    "'--model'",
                    "hint: allowed are `--quiet`, `--output-format`, `--help`",
                ],
            ),
        ] {
            let usage = read(arguments).unwrap_err();
            assert!(usage.is_error);
            for part in expected {
                assert!(usage.text.contains(part), "{arguments:?}: {}", usage.text);
            }
        }
    }

    #[test]
    fn the_report_has_three_flags() {
        for flag in ["--consistency-check", "--consistency", "--cc"] {
            assert!(read(&[flag]).unwrap().consistency_check, "{flag}");
        }
    }
}
