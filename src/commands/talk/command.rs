//! The commands at the prompt. Pure.

use crate::ui::tui::CommandHint;

/// A command: its name, what it takes, and what it does.
type Described = (&'static str, &'static str, &'static str);

/// All of them.
const COMMANDS: [Described; 9] = [
    ("/help", "", "lists these commands"),
    ("/undo", "", "takes back what the last request has changed"),
    ("/diff", "", "shows what the last request has changed"),
    (
        "/model",
        "[NAME]",
        "asks another model, or says which there are",
    ),
    (
        "/cost",
        "",
        "shows the tokens, the cost and the time so far",
    ),
    ("/clear", "", "begins a new session"),
    (
        "/resume",
        "[NUMBER]",
        "lists earlier sessions, and goes on with one",
    ),
    ("/exit", "", "ends, as Ctrl-D and `/quit` do"),
    ("/quit", "", "ends"),
];

/// A parsed command at the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplCommand<'l> {
    /// Lists the commands.
    Help,
    /// Undoes the changes of the last request.
    Undo,
    /// Shows the changes of the last request.
    Diff,
    /// Switches to the model of this name; "" lists the models.
    Model(&'l str),
    /// Shows the usage so far.
    Cost,
    /// Begins a new session.
    Clear,
    /// Resumes the session of this number; "" offers a list.
    Resume(&'l str),
    /// Ends the program.
    Exit,
}

impl<'l> ReplCommand<'l> {
    /// Parses a line whose first word is a slash and letters or hyphens, or `/?`; `None` if the line is a request.
    ///
    /// # Errors
    /// Where there is no such command: a sentence that names those that there are.
    pub fn read(line: &'l str) -> Option<Result<Self, String>> {
        let line = line.trim();
        let (name, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let letters = name.strip_prefix('/')?;
        // A path is a request's.
        if letters != "?"
            && (letters.is_empty() || !letters.chars().all(|c| c.is_alphabetic() || c == '-'))
        {
            return None;
        }
        let argument = argument.trim();
        Some(match (name, argument) {
            ("/help" | "/?", "") => Ok(Self::Help),
            ("/undo", "") => Ok(Self::Undo),
            ("/diff", "") => Ok(Self::Diff),
            ("/cost", "") => Ok(Self::Cost),
            ("/clear", "") => Ok(Self::Clear),
            ("/exit" | "/quit", "") => Ok(Self::Exit),
            ("/model", name) => Ok(Self::Model(name)),
            ("/resume", number) => Ok(Self::Resume(number)),
            _ if COMMANDS.iter().any(|(known, ..)| *known == name) => {
                Err(format!("`{name}` takes nothing behind it"))
            }
            _ => Err(unknown(name)),
        })
    }
}

/// Returns the error for an unknown command, with those that begin alike, or all.
fn unknown(name: &str) -> String {
    let start: String = name.chars().take(2).collect();
    let names = COMMANDS.iter().map(|(known, ..)| *known);
    let alike = names.filter(|known| known.starts_with(&start));
    let alike: Vec<String> = alike.map(|name| format!("`{name}`")).collect();
    match alike.join(", ") {
        alike if alike.is_empty() => format!("there is no command `{name}`\n{}", help()),
        alike => format!("there is no command `{name}`: did you mean {alike}?"),
    }
}

/// The commands, for who types one.
pub fn hints() -> Vec<CommandHint> {
    let hint = |(name, argument, description): Described| CommandHint {
        name: name.trim_start_matches('/').to_owned(),
        argument: argument.to_owned(),
        description: description.to_owned(),
    };
    COMMANDS.map(hint).into()
}

/// Returns the list of commands, one a line.
pub fn help() -> String {
    let rows = COMMANDS.iter().filter(|(name, ..)| *name != "/quit");
    let rows = rows.map(|(name, takes, does)| {
        let name = format!("{name} {takes}");
        format!("\n  {name:<17}  {does}")
    });
    format!(
        "say what is to be done; `/exit` or Ctrl-D ends, Ctrl-C stops what is being done{}\n  \
         {:<17}  a file or directory; Tab completes it",
        rows.collect::<String>(),
        "@path"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_letters_are_a_command_and_a_path_is_none() {
        for (line, expected) in [
            ("/help", Some(ReplCommand::Help)),
            ("/?", Some(ReplCommand::Help)),
            (" /exit ", Some(ReplCommand::Exit)),
            ("/quit", Some(ReplCommand::Exit)),
            ("/model", Some(ReplCommand::Model(""))),
            ("/model  gpt-5 ", Some(ReplCommand::Model("gpt-5"))),
            ("/resume 2", Some(ReplCommand::Resume("2"))),
            ("/etc/hosts is wrong", None),
            ("/", None),
            ("fix /undo", None),
            ("", None),
        ] {
            let read = ReplCommand::read(line).map(Result::unwrap);
            assert_eq!(read, expected, "{line:?}");
        }
    }

    #[test]
    fn what_is_no_command_is_named_with_those_that_are() {
        for (line, expected) in [
            ("/und", "there is no command `/und`: did you mean `/undo`?"),
            (
                "/clean all",
                "there is no command `/clean`: did you mean `/cost`, `/clear`?",
            ),
            ("/undo it", "`/undo` takes nothing behind it"),
        ] {
            assert_eq!(ReplCommand::read(line), Some(Err(expected.to_owned())));
        }
        let zap = ReplCommand::read("/zap").unwrap().unwrap_err();
        assert!(
            zap.starts_with("there is no command `/zap`\nsay what is to be done; "),
            "{zap}"
        );
        for (name, ..) in COMMANDS {
            assert!(ReplCommand::read(name).unwrap().is_ok(), "{name}");
        }
    }
}
