//! The program's own slash commands. Pure.

use crate::ui::tui::CommandHint;

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
const KEYS: &str = include_str!("../../../help/chat_keys.md").trim_ascii_end();

/// Parses a line: the name of a command, and what stands behind it; `None` if it is a request.
///
/// # Errors
/// Where there is no such command: a sentence. `own` says whether a user has written one of a name.
pub fn read(line: &str, own: impl Fn(&str) -> bool) -> Option<Result<(&str, &str), String>> {
    let line = line.trim();
    let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let name = name.strip_prefix('/')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-:".contains(c);
    // A path is a request's first word.
    if name.is_empty() || !name.chars().all(is_name) {
        return None;
    }
    let name = if name == "quit" { "exit" } else { name };
    if is_known(name) || own(name) {
        return Some(Ok((name, argument.trim())));
    }
    let problem = format!("there is no command `/{name}`: `/help` lists them");
    Some(Err(problem))
}

/// Tests for a command of the program's own.
pub fn is_known(name: &str) -> bool {
    COMMANDS.iter().any(|(known, ..)| *known == name)
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
            ("/clear", Some(Ok(("clear", "")))),
            (" /compact the parser ", Some(Ok(("compact", "the parser")))),
            ("/model", Some(Ok(("model", "")))),
            ("/git:commit now", Some(Ok(("git:commit", "now")))),
            ("/quit", Some(Ok(("exit", "")))),
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
            assert_eq!(read(line, own), expected, "{line}");
        }
    }

    #[test]
    fn every_command_that_is_listed_is_one() {
        for hint in hints() {
            let line = format!("/{}", hint.name);
            let read = read(&line, |_| false);
            assert!(matches!(read, Some(Ok(_))), "{}", hint.name);
            assert!(help(&hints()).contains(&format!("`/{}", hint.name)));
        }
    }
}
