//! Explains mistakes in a command line: clap's message, the name that was probably meant, and a
//! hint. Pure.

use std::ffi::OsString;
use std::io;

use clap::error::ErrorKind::{InvalidSubcommand, UnknownArgument};
use clap::error::{ContextKind, ContextValue};

use crate::commands::cli::inputs::as_message;
use crate::commands::cli::values::PROGRAM;
use crate::commands::error::CommandError;
use crate::sys::text::{printable, without_ci_commands};
use crate::ui::{columns, paint};

/// The minimum similarity, from 0 to 1, for suggesting a name in place of a mistyped one.
const NEAR: f64 = 0.6;

/// Width of a list of names, in columns.
const WIDTH: usize = 79;

/// Additional indentation of wrapped lines of help, in columns; deeper than the next line of a table's entry.
const HANG: usize = 4;

/// A message to print instead of running a command: help, the version, or an error.
#[derive(Debug)]
pub struct CliMessage {
    /// The text, including the final newline.
    pub text: String,
    /// `true` if the message is an error.
    pub is_error: bool,
    /// The same error as data.
    pub(crate) error: Option<CommandError>,
}

impl CliMessage {
    /// Returns the error in one line, without a hint; empty if the message is not an error.
    pub(crate) fn reason(&self) -> String {
        let error = self.error.as_ref().map(ToString::to_string);
        let lines = error.unwrap_or_default();
        lines.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns the text, wrapped to `columns`, the value of `COLUMNS`, or else to the terminal's
    /// width.
    pub fn folded(&self, columns: Option<&str>) -> String {
        let given = columns.and_then(|columns| columns.parse().ok());
        let columns = given.or_else(|| paint::columns(io::stdout()));
        columns::folded(self.text.trim_end(), columns, HANG) + "\n"
    }

    /// Creates the message of a program that cannot start.
    pub fn cannot_start(problem: &str, hint: &str) -> Self {
        let (message, hint) = (format!("cannot start: {problem}"), hint.to_owned());
        Self {
            text: format!("error: {message}\nhint: {hint}\n"),
            is_error: true,
            error: Some(CommandError::CannotStart { message, hint }),
        }
    }
}

/// Returns the message for clap's error about these arguments of the program `whole`.
pub(super) fn message(
    error: &clap::Error,
    mut whole: clap::Command,
    arguments: &[OsString],
) -> CliMessage {
    whole.build();
    let rendered = error.render().to_string();
    if !error.use_stderr() {
        return CliMessage {
            text: rendered,
            is_error: false,
            error: None,
        };
    }
    let command = innermost(&whole, arguments);
    let allowed = allowed(error, command);
    let meant = allowed
        .as_ref()
        .and_then(|(wrong, names)| nearest(wrong, names));
    let hint = match (as_message(error, &whole, arguments), &allowed) {
        (Some((message, true)), _) => message,
        (message, Some((_, names))) if meant.is_none() => {
            let names = format!("allowed are `{}`", names.join("`, `"));
            match message {
                // Keep the suggested command on one line.
                Some((message, _)) => {
                    let names = columns::folded(&format!("  {names}"), Some(WIDTH), 0);
                    format!("{message};\n{names}")
                }
                None => columns::folded(&format!("hint: {names}"), Some(WIDTH), 2)
                    .split_off("hint: ".len()),
            }
        }
        _ => lacking(error, arguments).unwrap_or_else(|| {
            let name = command.get_bin_name().unwrap_or(PROGRAM);
            format!("see `{name} --help`")
        }),
    };
    let rendered = without_tips(&rendered, meant);
    let text = format!("{rendered}hint: {hint}\n");
    // The usage follows a blank line.
    let said = rendered.split("\n\n").next().unwrap_or_default();
    let message = said.trim_start_matches("error: ").trim_end().to_owned();
    CliMessage {
        // The message may quote untrusted text.
        text: without_ci_commands(&printable(&text, &['\n'])).into_owned(),
        is_error: true,
        error: Some(CommandError::CommandLine { message, hint }),
    }
}

/// Returns the hint for a flag of consistency reports that is missing flags it requires.
fn lacking(error: &clap::Error, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::Strings(lacking)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let lacks = |flag: &str| lacking.iter().any(|name| name.starts_with(flag));
    let has_findings = arguments
        .iter()
        .any(|word| word.as_encoded_bytes().starts_with(b"--findings"));
    let hint = match (lacks("--consistency-check"), lacks("--findings")) {
        (true, true) => "add `--cc --findings sarif`",
        (true, false) if has_findings => {
            "add `--cc`; `--output-format sarif` prints the findings of a change"
        }
        (true, false) => "add `--cc`",
        (false, true) => "add `--findings sarif`",
        (false, false) => return None,
    };
    Some(hint.to_owned())
}

/// Rewrites clap's error message: the suggestion `meant` follows the error, and the usage advice moves to the
/// hint.
fn without_tips(rendered: &str, meant: Option<&str>) -> String {
    let is_tip = |line: &str| {
        let line = line.trim_start();
        line.starts_with("tip: ") || line.starts_with("For more information")
    };
    let kept = rendered.lines().filter(|line| !is_tip(line));
    let mut lines: Vec<String> = kept.map(str::to_owned).collect();
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    if let (Some(meant), Some(error)) = (meant, lines.first_mut()) {
        error.push_str(&format!("; did you mean `{meant}`?"));
    }
    format!("{}\n", lines.join("\n").trim_end())
}

/// Returns the innermost command that the arguments name.
pub(super) fn innermost<'w>(whole: &'w clap::Command, arguments: &[OsString]) -> &'w clap::Command {
    // The words after `help` name subcommands of the command before it; those after a flag may be its value.
    let is_named = |command: &&clap::Command| {
        let name = command.get_name();
        let mut named = (1..arguments.len()).filter(|at| arguments[*at] == name);
        name != "help" && named.any(|at| !takes_value(whole, &arguments[at - 1]))
    };
    let mut command = whole;
    while let Some(named) = command.get_subcommands().find(is_named) {
        command = named;
    }
    command
}

/// Returns whether a word is a flag of the program, or of one of its commands, whose value may be the next word.
fn takes_value(command: &clap::Command, word: &OsString) -> bool {
    let is_it = |flag: &clap::Arg| {
        let long = flag
            .get_long()
            .is_some_and(|long| *word == *format!("--{long}"));
        let short = flag
            .get_short()
            .is_some_and(|short| *word == *format!("-{short}"));
        (long || short) && flag.get_action().takes_values()
    };
    let mut commands = command.get_subcommands();
    command.get_arguments().any(is_it) || commands.any(|inner| takes_value(inner, word))
}

/// Returns an unknown flag or command and the names allowed in its place, flags for a flag; clap itself names only
/// values.
fn allowed<'e>(error: &'e clap::Error, command: &clap::Command) -> Option<(&'e str, Vec<String>)> {
    let kind = match error.kind() {
        UnknownArgument => ContextKind::InvalidArg,
        InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return None,
    };
    let Some(ContextValue::String(wrong)) = error.get(kind) else {
        return None;
    };
    let mut arguments: Vec<_> = command.get_arguments().collect();
    // The command's own flags come first.
    arguments.sort_by_key(|argument| argument.is_global_set());
    let flags = arguments
        .into_iter()
        .filter_map(|argument| {
            let aliases = argument.get_visible_aliases().into_iter().flatten();
            Some(std::iter::once(argument.get_long()?).chain(aliases))
        })
        .flatten()
        .map(|name| format!("--{name}"));
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    let commands = shown.map(|command| command.get_name().to_owned());
    let (flags, commands): (Vec<_>, Vec<_>) = (flags.collect(), commands.collect());
    let is_flag = wrong.starts_with('-') || commands.is_empty();
    let names = if is_flag { flags } else { commands };
    // The flag exists, but is in the wrong place.
    let is_known = |name: &String| wrong.split('=').next() == Some(name);
    (!names.iter().any(is_known)).then_some((wrong, names))
}

/// Returns the name that a mistyped one probably stands for: the only one that begins with it, or else the most similar
/// if it is similar enough. Swapped letters count as one mistake, unlike in [`crate::agent::schema::nearest`].
fn nearest<'n>(wrong: &str, names: &'n [String]) -> Option<&'n str> {
    let mut begun = names.iter().filter(|name| name.starts_with(wrong));
    if let (Some(only), None) = (begun.next(), begun.next()) {
        return Some(only);
    }
    let bare = |name: &'n str| name.trim_start_matches('-');
    let wrong = wrong.trim_start_matches('-');
    let likeness = |name| strsim::normalized_damerau_levenshtein(wrong, bare(name));
    let rated = names.iter().map(|name| (likeness(name), &**name));
    let best = rated.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (best.0 >= NEAR).then_some(best.1)
}
