//! Which calls may be carried out.
//!
//! Asked before every call, by what the tool does to the world rather than by its name.
//!
//! A profile that asks the user first joins as another implementation, which answers with a question.

use std::path::{Path, PathBuf};

use super::tool::{Effect, ParameterKind, ToolCall};
use super::tools::command::AllowedCommand;
use super::tools::place::{leads_into, quoted};

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// It is carried out.
    Allowed,
    /// It is not, and the model is told so: what may not be done, and what may.
    Refused(String),
    /// The user decides; the question, for them.
    Ask(String),
}

/// Says which calls may be carried out. It is asked anew before each call: its mode may have changed.
pub trait Permissions {
    /// What becomes of this one.
    fn decide(&self, call: &ToolCall) -> Permission;
}

/// An agent that may do whatever its tools can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Everything;

impl Permissions for Everything {
    fn decide(&self, _call: &ToolCall) -> Permission {
        Permission::Allowed
    }
}

/// What another allows, but for some paths and what lies below them: the agent's own settings and sessions.
/// Commands are not held against it.
#[derive(Clone, Copy)]
pub struct DenyPaths<'a> {
    /// What is allowed elsewhere.
    pub permissions: &'a dyn Permissions,
    /// The project's root, links resolved.
    pub root: &'a Path,
    /// The paths, links resolved.
    pub paths: &'a [PathBuf],
}

impl Permissions for DenyPaths<'_> {
    fn decide(&self, call: &ToolCall) -> Permission {
        let is_closed = |path: &&str| {
            let mut paths = self.paths.iter();
            paths.any(|closed| leads_into(self.root, path, closed))
        };
        match call.of_kind(ParameterKind::Path).find(is_closed) {
            Some(path) => Permission::Refused(format!(
                "{} is of the settings and the sessions of this agent, which are not for it",
                quoted(path)
            )),
            None => self.permissions.decide(call),
        }
    }
}

/// An agent that may look and change nothing: an auditor.
#[derive(Clone, Copy)]
pub struct ReadOnly<'a> {
    /// The commands that it may run; else why it may not, in a sentence for the model.
    pub commands: &'a dyn Fn(&str) -> Result<AllowedCommand, String>,
}

impl Permissions for ReadOnly<'_> {
    fn decide(&self, call: &ToolCall) -> Permission {
        let name = &call.tool.name;
        let mut commands = call.of_kind(ParameterKind::Command).peekable();
        let checked = match call.tool.effect {
            Effect::Reads | Effect::Notes | Effect::Ends => Ok(()),
            Effect::Runs if commands.peek().is_none() => Err(format!(
                "{name} is not for you: you run plain commands that look, and end none"
            )),
            Effect::Runs => commands.try_for_each(|command| (self.commands)(command).map(drop)),
            Effect::Writes => Err(format!(
                "{name} is not for you: you judge the work and change nothing; say in your feedback what is \
                 to be changed"
            )),
            Effect::Asks => Err(format!(
                "{name} is not for you: nobody answers an auditor; judge by what you can see"
            )),
        };
        checked.map_or_else(Permission::Refused, |()| Permission::Allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use crate::agent::restricted::AuditCommands;
    use crate::agent::tool::{Arguments, Parameter, ToolSpec};
    use crate::agent::tools::{background, command, list, notes, read, replace, write};

    /// Takes two paths, as no tool does yet.
    static COPY: ToolSpec = ToolSpec::new("COPY", "", &[path("path"), path("to")], Effect::Writes);

    const fn path(name: &'static str) -> Parameter {
        Parameter::new(name, ParameterKind::Path, "")
    }

    fn call(tool: &ToolSpec, argument: (&str, &str)) -> ToolCall {
        let mut arguments = Arguments::default();
        arguments.set(argument.0, argument.1);
        ToolCall {
            tool: tool.clone(),
            arguments,
        }
    }

    #[test]
    fn what_is_closed_is_not_reached_however_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (root, home) = (top.join("root"), top.join("root/.agent"));
        std::fs::create_dir_all(home.join("sessions")).unwrap();
        std::os::unix::fs::symlink(&home, root.join("link")).unwrap();
        let permissions = DenyPaths {
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
                let call = call(tool, ("path", path));
                assert_eq!(
                    permissions.decide(&call) == Permission::Allowed,
                    may,
                    "{path}"
                );
            }
            let mut call = call(&COPY, ("path", "src/main.rs"));
            call.arguments.set("to", path);
            assert_eq!(
                permissions.decide(&call) == Permission::Allowed,
                may,
                "to {path}"
            );
        }
    }

    #[test]
    fn an_auditor_looks_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join(".git")).unwrap();
        let path = std::env::var_os("PATH");
        for (tool, command, may) in [
            (&list::LIST_DIRECTORY, "", true),
            (&read::READ_FILE, "", true),
            (&notes::UPDATE_TASK_LIST, "", true),
            (&notes::DONE, "", true),
            (&notes::ASK_USER, "", false),
            (&write::WRITE_FILE, "", false),
            (&replace::FIND_AND_REPLACE_IN_FILE, "", false),
            (&command::COMMAND, "git status", true),
            (&command::RESTRICTED_COMMAND, "git status", true),
            (&command::COMMAND, "git status; rm -rf .", false),
            (&command::COMMAND, "rm x", false),
            (&command::COMMAND, "", false),
            (&background::KILL_BACKGROUND_PROCESS, "git status", false),
        ] {
            let call = call(tool, ("command", command));
            let commands = AuditCommands {
                root: &root,
                path: path.as_deref(),
                own: &[],
                check_timeout: Duration::MAX,
            };
            let checked = ReadOnly {
                commands: &|command| commands.command(command),
            }
            .decide(&call);
            let is_refused = matches!(checked, Permission::Refused(_));
            assert_eq!(is_refused, !may, "{} {command}", tool.name);
            assert_eq!(Everything.decide(&call), Permission::Allowed);
        }
    }
}
