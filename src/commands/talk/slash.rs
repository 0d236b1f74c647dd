//! Slash commands: one table, one parser and one help text for all interactive agents. Pure.

use crate::commands::error::CommandError;
use crate::ui::tui::CommandHint;

macro_rules! slash_commands {
    ($($command:ident $name:literal $argument:literal $description:literal;)*) => {
        /// A built-in slash command.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Slash {
            $(#[doc = $description] $command,)*
        }

        impl Slash {
            /// All commands.
            pub const ALL: &'static [Self] = &[$(Self::$command,)*];

            /// Returns the name, without the slash.
            pub fn name(self) -> &'static str {
                COMMANDS[self as usize].1
            }
        }

        /// All commands, each with its name, argument and description. An agent supports the ones that it lists.
        const COMMANDS: &[(Slash, &str, &str, &str)] =
            &[$((Slash::$command, $name, $argument, $description),)*];
    };
}

slash_commands! {
    Clear "clear" "" "begin a new session";
    Command "command" "NAME DESCRIPTION" "have a slash command written";
    Compact "compact" "[FOCUS]" "replace what was said by a summary";
    Copy "copy" "" "copy the last reply to the clipboard";
    Cost "cost" "" "show tokens and dollars";
    Diff "diff" "" "show what the last request changed";
    Exit "exit" "" "quit, as `/quit` does";
    Help "help" "" "show this help";
    Init "init" "" "have AGENTS.md written";
    Login "login" "[KEY|NAME]" "sign in, or switch accounts";
    Logout "logout" "" "remove the active account";
    Mode "mode" "[NAME]" "switch to regular, auto-pilot or planning";
    Model "model" "[NAME]" "switch models";
    Permissions "permissions" "" "show permanent permissions";
    Resume "resume" "[NUMBER]" "resume another session";
    Transcript "transcript" "" "read all of it in $PAGER";
    Undo "undo" "" "take back what the last request changed";
}

/// The commands that every agent has.
pub const COMMON: [Slash; 9] = [
    Slash::Compact,
    Slash::Clear,
    Slash::Cost,
    Slash::Diff,
    Slash::Exit,
    Slash::Help,
    Slash::Model,
    Slash::Resume,
    Slash::Undo,
];

/// Aliases of commands.
const ALIASES: [(&str, &str); 2] = [("quit", "exit"), ("?", "help")];

/// The keys that work on the screen of every agent, as listed by `/help`.
const KEYS: &str = "\
| key | does |
|---|---|
| Enter | send |
| Ctrl-J, Alt-Enter, Shift-Enter, `\\` Enter | begin a line |
| Up, Down, Ctrl-R | go through what was sent before |
| Esc Esc | {stop} |
| Ctrl-C | clear the input, {stop}, quit |
| Ctrl-D | quit |
| Ctrl-Z | stop for the shell |
| Ctrl-G | edit in $EDITOR |
| Ctrl-O | unfold results |
| PageUp, PageDown, wheel | scroll |
| `@` | complete a path |";

/// The answer to `!command` if the agent runs no commands for its user.
const NO_SHELL: &str = "`!` runs no command here: run it in your shell, or ask the agent to";

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashLine<'l> {
    /// A request.
    Request,
    /// A built-in command and its argument.
    Command(Slash, &'l str),
    /// A user-defined command and its argument.
    Own(&'l str, &'l str),
    /// Not a valid command, for this reason.
    Refused(String),
}

/// Splits a line into a command's name and its argument; `None` for a request, such as one that begins with a path.
pub fn split(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (word, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = word.strip_prefix('/')?;
    let is_name = |c: char| c.is_alphanumeric() || "_-:".contains(c);
    let is_command = name == "?" || !name.is_empty() && name.chars().all(is_name);
    is_command.then_some((name, argument.trim()))
}

/// Checks that a request given in advance is not a command for interactive use: a key after `/login` must not be sent
/// to the model. User-defined commands are accepted if the agent `has_own`.
///
/// # Errors
/// Fails if the request is such a command.
pub fn check_request(request: &str, has_own: bool) -> Result<(), CommandError> {
    if request.trim_start().starts_with('!') {
        return Err(CommandError::PromptCommand("!".to_owned()));
    }
    let Some((name, _)) = split(request) else {
        return Ok(());
    };
    match row(name) {
        Some(_) => Err(CommandError::PromptCommand(format!("/{name}"))),
        None if has_own => Ok(()),
        None => Err(CommandError::NoSlashCommand(name.to_owned())),
    }
}

/// Parses a line. `commands` are the built-in commands that are answered here; `hints` also list user-defined ones. A
/// line that begins with `!` is refused: an agent that runs commands for its user has already handled it.
pub fn read<'l>(line: &'l str, commands: &[Slash], hints: &[CommandHint]) -> SlashLine<'l> {
    if line.trim_start().starts_with('!') {
        return SlashLine::Refused(NO_SHELL.to_owned());
    }
    let Some((name, argument)) = split(line) else {
        return SlashLine::Request;
    };
    match named(name, commands) {
        Some((command, "")) if !argument.is_empty() => {
            SlashLine::Refused(format!("`/{}` takes no arguments", command.name()))
        }
        Some((command, _)) => SlashLine::Command(command, argument),
        None if hints.iter().any(|own| own.name == name) => SlashLine::Own(name, argument),
        None => SlashLine::Refused(unknown(name, hints)),
    }
}

/// Finds the command with this name or alias, and the argument that it takes.
pub fn named(name: &str, commands: &[Slash]) -> Option<(Slash, &'static str)> {
    let (command, _, argument, _) = row(name)?;
    commands.contains(command).then_some((*command, argument))
}

/// Finds the row of the command with this name or alias.
fn row(name: &str) -> Option<&'static (Slash, &'static str, &'static str, &'static str)> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    let name = alias.map_or(name, |(_, meant)| meant);
    COMMANDS.iter().find(|(_, known, ..)| *known == name)
}

/// Returns the error for an unknown command. It suggests commands with the same first letter or, if there are none,
/// lists all.
fn unknown(name: &str, hints: &[CommandHint]) -> String {
    let first = name.chars().next();
    let names = |is_wanted: &dyn Fn(&str) -> bool| {
        let wanted = hints.iter().filter(|hint| is_wanted(&hint.name));
        let names = wanted.map(|hint| format!("`/{}`", hint.name));
        names.collect::<Vec<_>>().join(", ")
    };
    match names(&|known| known.chars().next() == first) {
        alike if alike.is_empty() => format!(
            "there is no command `/{name}` here, only {}; `/exit` ends",
            names(&|_| true)
        ),
        alike => format!("there is no command `/{name}`: did you mean {alike}?"),
    }
}

/// Lists an agent's commands for help and completion: these built-in ones, then the user-defined ones.
pub fn listed(commands: &[Slash], own: &[CommandHint]) -> Vec<CommandHint> {
    let there = COMMANDS
        .iter()
        .filter(|(command, ..)| commands.contains(command));
    let hints = there.map(|(_, name, argument, description)| CommandHint {
        name: (*name).to_owned(),
        argument: (*argument).to_owned(),
        description: (*description).to_owned(),
    });
    hints.chain(own.iter().cloned()).collect()
}

/// Returns the text of `/help` on the screen, in Markdown; `keys` are rows for the keys that only this agent has. If
/// `is_one_task`, stopping the agent ends its run.
pub fn screen_help(hints: &[CommandHint], keys: &str, is_one_task: bool) -> String {
    let lines = hints.iter().map(|hint| {
        // A bare `|` would begin another table cell.
        let usage = usage(hint).replace('|', "\\|");
        format!("| `{usage}` | {} |\n", hint.description)
    });
    let stop = if is_one_task {
        "end the run"
    } else {
        "stop the agent"
    };
    let shared = KEYS.replace("{stop}", stop);
    format!(
        "| command | does |\n|---|---|\n{}\n{shared}\n{keys}",
        lines.collect::<String>()
    )
}

/// The introduction of `/help` while the agent waits for a request.
pub const AT_REQUEST: &str = "describe the task in one line (`-p -` reads several); `/exit` or Ctrl-D ends; Ctrl-C stops what is being \
                              done, and ends where it is pressed twice";

/// Returns the text of `/help` in line mode.
pub fn help(intro: &str, hints: &[CommandHint]) -> String {
    let rows = hints
        .iter()
        .map(|hint| format!("\n  {:<17}  {}", usage(hint), hint.description));
    format!("{intro}{}", rows.collect::<String>())
}

/// Formats a command's usage, such as `/model [NAME]`.
fn usage(hint: &CommandHint) -> String {
    let usage = format!("/{} {}", hint.name, hint.argument);
    usage.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &[Slash] = &[
        Slash::Clear,
        Slash::Cost,
        Slash::Exit,
        Slash::Help,
        Slash::Model,
        Slash::Resume,
        Slash::Undo,
    ];

    fn own() -> [CommandHint; 1] {
        ["git:commit"].map(|name| CommandHint {
            name: name.to_owned(),
            argument: String::new(),
            description: String::new(),
        })
    }

    #[test]
    fn a_line_is_a_command_or_a_request() {
        for (line, expected) in [
            ("/help", SlashLine::Command(Slash::Help, "")),
            ("/?", SlashLine::Command(Slash::Help, "")),
            (" /exit ", SlashLine::Command(Slash::Exit, "")),
            ("/quit", SlashLine::Command(Slash::Exit, "")),
            ("/model", SlashLine::Command(Slash::Model, "")),
            ("/model  gpt-5 ", SlashLine::Command(Slash::Model, "gpt-5")),
            ("/resume 2", SlashLine::Command(Slash::Resume, "2")),
            ("/git:commit now", SlashLine::Own("git:commit", "now")),
            ("/etc/hosts is wrong", SlashLine::Request),
            ("/usr/bin/env is what?", SlashLine::Request),
            ("/", SlashLine::Request),
            ("fix /undo", SlashLine::Request),
            ("", SlashLine::Request),
        ] {
            assert_eq!(
                read(line, SOME, &listed(SOME, &own())),
                expected,
                "{line:?}"
            );
        }
    }

    #[test]
    fn refusal_of_an_unknown_command_suggests_known_ones() {
        for (line, expected) in [
            ("/und", "there is no command `/und`: did you mean `/undo`?"),
            (
                "/clean all",
                "there is no command `/clean`: did you mean `/clear`, `/cost`?",
            ),
            ("/undo it", "`/undo` takes no arguments"),
            ("/quit now", "`/exit` takes no arguments"),
            (
                "/login",
                "there is no command `/login` here, only `/clear`, `/cost`, `/exit`, `/help`, `/model`, `/resume`, \
                 `/undo`, `/git:commit`; `/exit` ends",
            ),
        ] {
            let refused = SlashLine::Refused(expected.to_owned());
            assert_eq!(read(line, SOME, &listed(SOME, &own())), refused);
        }
    }

    #[test]
    fn a_command_for_the_shell_is_not_a_request() {
        for line in ["!ls", " !rm -rf x"] {
            let refused = SlashLine::Refused(NO_SHELL.to_owned());
            assert_eq!(read(line, SOME, &listed(SOME, &own())), refused);
        }
        assert_eq!(read("ls!", SOME, &[]), SlashLine::Request);
    }

    #[test]
    fn every_command_that_is_listed_is_one() {
        let hints = listed(Slash::ALL, &[]);
        for (at, ((command, name, ..), hint)) in COMMANDS.iter().zip(&hints).enumerate() {
            assert_eq!((*command as usize, &*hint.name), (at, *name));
            let line = format!("/{name}");
            assert_eq!(
                read(&line, Slash::ALL, &hints),
                SlashLine::Command(*command, "")
            );
            let usage = usage(hint).replace('|', "\\|");
            assert!(screen_help(&hints, "", false).contains(&format!("| `{usage}` |")));
        }
    }
}
