//! Which calls may be carried out.
//!
//! Asked before every call, by what the tool does to the world rather than by its name.
//!
//! A profile that asks the user (cli-agent.md) joins as another implementation: it holds a
//! [`User`](super::tools::notes::User) and the answers that were remembered, asks where no answer is, and
//! refuses with a sentence where the user does. The loop knows nothing of that.

use std::path::{Path, PathBuf};

use super::restricted;
use super::tool::{Effect, ParameterKind, ToolCall, ToolError};
use super::tools::command;
use super::tools::place::{leads_into, quoted};

/// The tool that runs a command, by its name and its parameter.
const COMMAND: (&str, &str) = (command::COMMAND.name, "command");

/// Says which calls may be carried out.
pub trait Permissions {
    /// Whether this one may.
    ///
    /// # Errors
    /// [`ToolError::Failed`] with what may not be done, and what may; [`ToolError::Fatal`] where somebody was
    /// to be asked and the run is over.
    fn check(&self, call: &ToolCall) -> Result<(), ToolError>;
}

/// An agent that may do whatever its tools can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Everything;

impl Permissions for Everything {
    fn check(&self, _call: &ToolCall) -> Result<(), ToolError> {
        Ok(())
    }
}

/// What another allows, but for some paths and what lies below them: the agent's own settings and sessions.
#[derive(Clone, Copy)]
pub struct KeepingOut<'a> {
    /// What is allowed elsewhere.
    pub permissions: &'a dyn Permissions,
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// The paths, links resolved.
    pub paths: &'a [PathBuf],
}

impl Permissions for KeepingOut<'_> {
    fn check(&self, call: &ToolCall) -> Result<(), ToolError> {
        let mut parameters = call.tool.parameters.iter();
        let path = parameters.find(|parameter| parameter.kind == ParameterKind::Path);
        let path = path.map(|parameter| call.arguments.get(parameter.name));
        match path {
            Some(path)
                if self
                    .paths
                    .iter()
                    .any(|closed| leads_into(self.root, path, closed)) =>
            {
                Err(ToolError::Failed(format!(
                    "{} is of the settings and the sessions of this agent, which are not for it",
                    quoted(path)
                )))
            }
            _ => self.permissions.check(call),
        }
    }
}

/// An agent that may look and change nothing: an auditor. Of commands it may run the restricted ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOnly<'a> {
    /// The project's root, links resolved.
    pub root: &'a Path,
}

impl Permissions for ReadOnly<'_> {
    fn check(&self, call: &ToolCall) -> Result<(), ToolError> {
        let name = call.tool.name;
        let checked = match call.tool.effect {
            Effect::Reads | Effect::Notes | Effect::Ends => Ok(()),
            Effect::Runs if name == COMMAND.0 => {
                let command = call.arguments.get(COMMAND.1);
                restricted::words(command, self.root).map(drop)
            }
            Effect::Runs => Err(format!(
                "{name} is not for you: you run plain commands that look, and end none"
            )),
            Effect::Writes => Err(format!(
                "{name} is not for you: you judge the work and change nothing; say in your feedback what is \
                 to be changed"
            )),
            Effect::Asks => Err(format!(
                "{name} is not for you: nobody answers an auditor; judge by what you can see"
            )),
        };
        checked.map_err(ToolError::Failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::tool::{Arguments, ToolSpec};
    use crate::agent::tools::{list, notes, read, replace, write};

    static COMMAND_SPEC: ToolSpec = ToolSpec {
        name: "COMMAND",
        summary: "Runs a command.",
        parameters: &[],
        effect: Effect::Runs,
    };
    static KILL: ToolSpec = ToolSpec {
        name: "KILL_BACKGROUND_PROCESS",
        ..COMMAND_SPEC
    };

    fn call(tool: &'static ToolSpec, command: &str) -> ToolCall {
        let mut arguments = Arguments::default();
        arguments.set("command", command.to_owned());
        ToolCall {
            tool,
            arguments,
            shown: String::new(),
        }
    }

    #[test]
    fn what_is_closed_is_not_reached_however_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (root, home) = (top.join("root"), top.join("root/.agent"));
        std::fs::create_dir_all(home.join("sessions")).unwrap();
        std::os::unix::fs::symlink(&home, root.join("link")).unwrap();
        let permissions = KeepingOut {
            permissions: &Everything,
            root: &root,
            paths: &[home.join("config.json"), home.join("sessions")],
        };
        let absolute = home.join("config.json");
        for (path, may) in [
            (".agent/config.json", false),
            (".agent", true),
            ("./x/../.agent/sessions/new.json", false),
            (".agent/sessions/*", false),
            ("link/config.json", false),
            (absolute.to_str().unwrap(), false),
            (".agents/config.json", true),
            ("src/main.rs", true),
            (".", true),
        ] {
            for tool in [&read::READ_FILE, &write::WRITE_FILE, &list::LIST_DIRECTORY] {
                let mut call = call(tool, "");
                call.arguments.set("path", path.to_owned());
                assert_eq!(permissions.check(&call).is_ok(), may, "{path}");
            }
        }
    }

    #[test]
    fn an_auditor_looks_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for (tool, command, may) in [
            (&list::LIST_DIRECTORY, "", true),
            (&read::READ_FILE, "", true),
            (&notes::UPDATE_TASK_LIST, "", true),
            (&notes::DONE, "", true),
            (&notes::ASK_USER, "", false),
            (&write::WRITE_FILE, "", false),
            (&replace::FIND_AND_REPLACE_IN_FILE, "", false),
            (&COMMAND_SPEC, "git status", true),
            (&COMMAND_SPEC, "git status; rm -rf .", false),
            (&COMMAND_SPEC, "rm x", false),
            (&COMMAND_SPEC, "", false),
            (&KILL, "git status", false),
        ] {
            let call = call(tool, command);
            let checked = ReadOnly { root: &root }.check(&call);
            let is_refused = matches!(checked, Err(ToolError::Failed(_)));
            assert_eq!(is_refused, !may, "{} {command}", tool.name);
            assert!(Everything.check(&call).is_ok());
        }
    }
}
