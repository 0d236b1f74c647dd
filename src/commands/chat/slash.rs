//! The program's own slash commands. Pure.

use crate::ui::tui::CommandHint;

/// A parsed slash command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashCommand {
    /// A new session.
    Clear,
    /// A summary in the place of what was said, with this in mind.
    Compact(String),
    /// Help on the commands.
    Help,
    /// A proposal for `AGENTS.md`.
    Init,
    /// Another account, or a key; "" offers a choice or asks for one.
    Login(String),
    /// The active account is removed.
    Logout,
    /// The model of this name; "" offers a choice.
    Model(String),
    /// A new command of this name, and what it is to do.
    New(String),
    /// The mode of this name; "" is the next one.
    Mode(String),
    /// The last request's files as they were before.
    Undo,
    /// Another session of this directory.
    Resume,
    /// The permanent permissions.
    Permissions,
    /// The tokens and dollars spent.
    Cost,
    /// The last reply in the clipboard.
    Copy,
    /// All that was said, in the pager.
    Transcript,
    /// The end of the program.
    Exit,
    /// A command that a user has written, and what stands behind its name.
    Own(String, String),
}

/// A command: its name, what it takes, and what it does.
type Described = (&'static str, &'static str, &'static str);

/// The program's own commands.
const COMMANDS: [Described; 16] = [
    ("clear", "", "begin a new session"),
    (
        "command",
        "NAME DESCRIPTION",
        "have a slash command written",
    ),
    ("compact", "[FOCUS]", "replace what was said by a summary"),
    ("copy", "", "copy the last reply to the clipboard"),
    ("cost", "", "show tokens and dollars"),
    ("exit", "", "leave"),
    ("help", "", "show keys and commands"),
    ("init", "", "have AGENTS.md written"),
    ("login", "[KEY|NAME]", "sign in, or switch accounts"),
    ("logout", "", "remove the active account"),
    (
        "mode",
        "[NAME]",
        "switch to regular, auto-pilot or planning",
    ),
    ("model", "[NAME]", "switch models"),
    ("permissions", "", "show what is allowed for good"),
    ("resume", "", "go on with another session"),
    ("transcript", "", "read all of it in $PAGER"),
    ("undo", "", "take back what the last request changed"),
];

/// The keys, for `/help`.
const KEYS: &str = "\
| key | does |
|---|---|
| Enter | send |
| Ctrl-J, Alt-Enter, Shift-Enter, `\\` Enter | begin a line |
| Up, Down, Ctrl-R | go through what was sent before |
| Shift+Tab | switch modes |
| Esc Esc | stop the agent |
| Ctrl-C | clear the input, stop, leave |
| Ctrl-D | leave |
| Ctrl-Z | stop for the shell |
| Ctrl-G | edit in $EDITOR |
| Ctrl-O | unfold results |
| Ctrl-V | attach an image |
| PageUp, PageDown, wheel | scroll |
| `@path` | attach a file |
| `!command` | run a command yourself |";

impl SlashCommand {
    /// Parses a line; `None` if it is a request.
    ///
    /// # Errors
    /// Where there is no such command: a sentence. `own` says whether a user has written one of a name.
    pub fn read(line: &str, own: impl Fn(&str) -> bool) -> Option<Result<Self, String>> {
        let line = line.trim();
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let name = name.strip_prefix('/')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-:".contains(c);
        // A path is a request's first word.
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        let argument = argument.trim().to_owned();
        Some(Ok(match name {
            "clear" => Self::Clear,
            "compact" => Self::Compact(argument),
            "help" => Self::Help,
            "init" => Self::Init,
            "login" => Self::Login(argument),
            "logout" => Self::Logout,
            "model" => Self::Model(argument),
            "command" => Self::New(argument),
            "mode" => Self::Mode(argument),
            "undo" => Self::Undo,
            "resume" => Self::Resume,
            "permissions" => Self::Permissions,
            "cost" => Self::Cost,
            "copy" => Self::Copy,
            "transcript" => Self::Transcript,
            "exit" | "quit" => Self::Exit,
            own_name if own(own_name) => Self::Own(own_name.to_owned(), argument),
            unknown => {
                return Some(Err(format!(
                    "there is no command `/{unknown}`: `/help` lists them"
                )));
            }
        }))
    }
}

/// The program's own commands, for who types one.
pub fn hints() -> Vec<CommandHint> {
    let hint = |(name, argument, description): Described| CommandHint {
        name: name.to_owned(),
        argument: argument.to_owned(),
        description: description.to_owned(),
    };
    COMMANDS.map(hint).into()
}

/// Returns the text of `/help`, in Markdown.
pub fn help(commands: &[CommandHint]) -> String {
    let lines = commands.iter().map(|command| {
        let argument = match &*command.argument {
            "" => String::new(),
            // A bar would begin another cell.
            argument => format!(" {}", argument.replace('|', "\\|")),
        };
        format!(
            "| `/{}{argument}` | {} |\n",
            command.name, command.description
        )
    });
    format!(
        "| command | does |\n|---|---|\n{}\n{KEYS}\n",
        lines.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_command_or_a_request() {
        let own = |name: &str| name == "git:commit";
        for (line, expected) in [
            ("/clear", Some(Ok(SlashCommand::Clear))),
            (
                " /compact the parser ",
                Some(Ok(SlashCommand::Compact("the parser".into()))),
            ),
            ("/model", Some(Ok(SlashCommand::Model(String::new())))),
            (
                "/git:commit now",
                Some(Ok(SlashCommand::Own("git:commit".into(), "now".into()))),
            ),
            ("/quit", Some(Ok(SlashCommand::Exit))),
            (
                "/nothing",
                Some(Err(
                    "there is no command `/nothing`: `/help` lists them".to_owned()
                )),
            ),
            ("/usr/bin/env is what?", None),
            ("/", None),
            ("fix /clear", None),
        ] {
            assert_eq!(SlashCommand::read(line, own), expected, "{line}");
        }
    }

    #[test]
    fn every_command_that_is_listed_is_one() {
        for hint in hints() {
            let read = SlashCommand::read(&format!("/{}", hint.name), |_| false);
            assert!(matches!(read, Some(Ok(_))), "{}", hint.name);
            assert!(help(&hints()).contains(&format!("`/{}", hint.name)));
        }
    }
}
