//! The flags for input, and a hint for users who give a message without its flag.

use crate::run::code_context::CodeLimit;
use crate::ui::OutputFormat;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clap::error::{ContextKind, ContextValue};

use super::values::{PROGRAM, SELDOM, parse_text, parse_tokens};

// Flags for what is sent.
#[derive(Debug, Clone, Args)]
pub struct InputArgs {
    /// Ask for this change, not for the one in agent-config/query.txt; `-` reads it from standard
    /// input
    #[arg(
        long,
        short,
        value_name = "TEXT",
        allow_hyphen_values = true,
        value_parser = parse_text,
        conflicts_with = "edit"
    )]
    pub message: Option<String>,

    /// Describe the change in your editor ($VISUAL or $EDITOR), not in agent-config/query.txt
    #[arg(long)]
    pub edit: bool,

    /// Roll the code base up for this run, and do not read agent-config/codeRollup.txt
    #[arg(long)]
    pub rollup: bool,

    /// Send at most N tokens of the code base (`40k`): the files that rank first for the query, and an
    /// outline of all; the model may ask for more
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = parse_tokens)]
    pub context: Option<u64>,

    /// The files chosen.
    #[command(flatten)]
    pub chosen: ChosenArgs,

    /// With --cc, read a code base that does not fit the model's context window in parts: one call per
    /// part, and one to merge their findings
    #[arg(long, requires = "consistency_check")]
    pub parts: bool,

    /// With --cc, report on what is staged: the files of git's index, not those on disk
    #[arg(long, requires = "consistency_check", conflicts_with_all = ["rollup", "allow_stale", "require_fresh", "resume"])]
    pub staged: bool,

    /// Send the rollup though it differs from the files on disk, and replace files that change
    /// meanwhile
    #[arg(long, conflicts_with = "require_fresh", help_heading = SELDOM)]
    pub allow_stale: bool,

    /// Refuse a rollup that cannot be compared with the files on disk, too
    #[arg(long, help_heading = SELDOM)]
    pub require_fresh: bool,
}

// Flags that choose files of the code base.
#[derive(Debug, Clone, Args)]
pub struct ChosenArgs {
    /// With a limit on the code base: send these files, or those below this directory, first
    #[arg(long, value_name = "PATH", help_heading = SELDOM)]
    pub include: Vec<PathBuf>,

    /// With a limit on the code base: leave out these files, or those below this directory
    #[arg(long, value_name = "PATH", help_heading = SELDOM)]
    pub exclude: Vec<PathBuf>,
}

impl ChosenArgs {
    /// Returns the paths, relative to the current directory.
    pub fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.include.iter_mut().chain(&mut self.exclude)
    }

    /// Returns the limit on the code to send: these files, and this many tokens.
    pub fn limit(&self, tokens: Option<u64>) -> CodeLimit {
        CodeLimit {
            tokens,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            shown: None,
        }
    }
}

// The flag for the project.
#[derive(Debug, Clone, Args)]
pub struct PlaceArgs {
    /// Root of the project, instead of the one found from the current directory
    #[arg(long, global = true, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

/// Suggests how to pass a message that was given without a flag, if the error looks like one. The second value is true
/// if the text can be nothing else, since commands and flags contain no spaces.
pub(crate) fn as_message(
    error: &clap::Error,
    whole: &clap::Command,
    arguments: &[OsString],
) -> Option<(String, bool)> {
    let wrong = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg]
        .into_iter()
        .find_map(|kind| error.get(kind));
    let Some(ContextValue::String(wrong)) = wrong else {
        return None;
    };
    let mut words = arguments.iter().skip(1).map(|word| word.to_string_lossy());
    let mut before = words.by_ref().take_while(|word| word != wrong);
    // Words after a command's name belong to that command.
    let is_commands = before.any(|word| whole.find_subcommand(&*word).is_some());
    if is_commands || wrong.starts_with('-') || whole.get_name() != PROGRAM {
        return None;
    }
    let more = words.take_while(|word| !word.starts_with('-'));
    let text = std::iter::once(wrong.as_str().into())
        .chain(more)
        .collect::<Vec<_>>()
        .join(" ");
    let is_plain = !text.contains(['"', '\\', '$', '`', '!']);
    let quoted = if is_plain {
        format!("\"{text}\"")
    } else {
        shlex::try_quote(&text).ok()?.into_owned()
    };
    let hint = format!("ask for a change by `code-commit -m {quoted} --rollup`");
    Some((hint, wrong.contains(' ')))
}

// Flags for the output.
#[derive(Debug, Clone, Args)]
pub struct OutputArgs {
    /// Print only the result, warnings and errors
    #[arg(long, short, global = true)]
    pub quiet: bool,

    /// Output format: text (default), json (one document at the end), jsonl (one event per line), sarif
    /// (findings of runs) or csv (`fleet report` only)
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Text, hide_default_value = true, hide_possible_values = true)]
    pub output_format: OutputFormat,
}
