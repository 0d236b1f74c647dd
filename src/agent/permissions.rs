//! Permissions: the calls that an agent may make.
//!
//! Checked before every call, by the tool's effect rather than by its name. Permissions can be nested: each layer
//! narrows the one inside it.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use super::tool::{Effect, ParameterKind, ToolCall};
use super::tools::resolved_path::{leads_into, quoted, resolved};
use crate::record::question::Question;

/// The decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// The call is carried out.
    Allowed,
    /// The call is refused; the text explains to the model what is allowed and what is not.
    Refused(String),
    /// The user decides.
    Ask(Question),
}

/// Decides which calls are permitted. Asked before each call, since the mode may have changed.
pub trait Permissions {
    /// Decides on a call.
    fn decide(&self, call: &ToolCall) -> Permission;
}

/// Permissions of an agent that may do whatever its tools can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Everything;

impl Permissions for Everything {
    fn decide(&self, _call: &ToolCall) -> Permission {
        Permission::Allowed
    }
}

/// Permissions that refuse some paths and everything below them, such as the agent's own settings and sessions, or a
/// file that has its own tool. Commands are not checked.
#[derive(Clone, Copy)]
pub struct DenyPaths<'a> {
    /// Permissions for all other paths.
    pub permissions: &'a dyn Permissions,
    /// The project's root, with links resolved.
    pub root: &'a Path,
    /// The refused paths, with links resolved.
    pub paths: &'a [PathBuf],
    /// Advice on how to change the paths instead, as the end of a sentence for the model; if `None`, they may not even
    /// be read.
    pub instead: Option<&'a str>,
}

impl Permissions for DenyPaths<'_> {
    fn decide(&self, call: &ToolCall) -> Permission {
        let is_meant = self.instead.is_none() || call.tool.effect == Effect::Writes;
        let is_closed = |path: &&str| {
            let mut paths = self.paths.iter();
            is_meant && paths.any(|closed| leads_into(self.root, path, closed))
        };
        let Some(path) = call
            .of_kind(ParameterKind::Path)
            .find(is_closed)
            .map(quoted)
        else {
            return self.permissions.decide(call);
        };
        Permission::Refused(match self.instead {
            Some(instead) => format!("{path}: {instead}"),
            None => format!("{path} belongs to the agents' settings and sessions, closed to tools"),
        })
    }
}

/// Returns the question about a call for a user who sees its subject.
pub fn asks(call: &ToolCall) -> &'static str {
    match call.tool.effect {
        Effect::Runs if call.tool.takes(ParameterKind::Command) => "Allow this command?",
        Effect::Writes => "Allow this change?",
        _ => "Allow this?",
    }
}

/// Files that list a project's dependencies or define its checks: changing one may run other programs, or weaken the
/// checks that the agent is judged by.
const ASKED_ABOUT: [&str; 5] = [
    "package.json",
    "Cargo.toml",
    "pyproject.toml",
    "go.mod",
    "build.sh",
];

/// The source of consent for calls that need confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// The user is asked each time.
    Asked,
    /// No user is present.
    Unattended,
    /// The user has consented to all calls: `--yes`.
    Given,
}

/// Permissions that need consent for commands that may be more than read-only, and for writes to the files in
/// `ASKED_ABOUT`. Calls that may change files are noted.
#[derive(Clone, Copy)]
pub struct AskFirst<'a> {
    /// Permissions that are checked before the user is asked.
    pub permissions: &'a dyn Permissions,
    /// The project's root, with links resolved.
    pub root: &'a Path,
    /// Returns whether a command needs no confirmation.
    pub is_harmless: &'a dyn Fn(&str) -> bool,
    /// The source of consent.
    pub consent: Consent,
    /// Set once a call is refused since there is no user to ask.
    pub lacks_consent: &'a Cell<bool>,
    /// Set once a call that may change files is not refused.
    pub may_have_changed: &'a Cell<bool>,
}

impl Permissions for AskFirst<'_> {
    fn decide(&self, call: &ToolCall) -> Permission {
        let decided = self.consented(call);
        if self.may_change(call) && !matches!(decided, Permission::Refused(_)) {
            self.may_have_changed.set(true);
        }
        decided
    }
}

impl AskFirst<'_> {
    /// Returns whether a call may change the project's files. A tool without a path, which updates a plan, does not.
    fn may_change(&self, call: &ToolCall) -> bool {
        let mut commands = call.of_kind(ParameterKind::Command);
        match call.tool.effect {
            Effect::Writes => call.tool.takes(ParameterKind::Path),
            Effect::Runs => commands.any(|command| !(self.is_harmless)(command)),
            _ => false,
        }
    }

    fn consented(&self, call: &ToolCall) -> Permission {
        let decided = self.permissions.decide(call);
        let about = match (&decided, self.consent) {
            (Permission::Allowed, Consent::Asked | Consent::Unattended) => self.about(call),
            _ => None,
        };
        match about {
            None => decided,
            Some(about) if self.consent == Consent::Asked => Permission::Ask(Question {
                sentence: format!("The agent wants to {about}. May it?"),
                tool: call.tool.name.clone().into_owned(),
                subject: call.subject().to_owned(),
                asks: asks(call),
                ..Question::default()
            }),
            Some(about) => {
                self.lacks_consent.set(true);
                Permission::Refused(format!(
                    "nobody is there to allow you to {about}; do it another way, or say in your response that it \
                     needs the user, who can start the program with `--yes`"
                ))
            }
        }
    }

    /// Describes the action that needs confirmation, as the end of a sentence; `None` if no action needs it.
    fn about(&self, call: &ToolCall) -> Option<String> {
        let mut commands = call.of_kind(ParameterKind::Command);
        if let Some(command) = commands.find(|command| !(self.is_harmless)(command)) {
            return Some(format!("run {}", quoted(command)));
        }
        let is_meant =
            |path: &&str| call.tool.effect == Effect::Writes && self.is_asked_about(path);
        let path = quoted(call.of_kind(ParameterKind::Path).find(is_meant)?);
        Some(format!(
            "change {path}, which says what the project depends on or how it is built"
        ))
    }

    /// Returns whether a path is one of these files, by its own name or by that of its link target.
    fn is_asked_about(&self, path: &str) -> bool {
        let named = path_clean::clean(self.root.join(path));
        [resolved(&named), named].iter().any(|path| {
            let name = path.file_name().unwrap_or_default();
            let mut known = ASKED_ABOUT.iter();
            known.any(|known| name.eq_ignore_ascii_case(known))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::agent::tool::{Arguments, Parameter, ToolSpec};
    use crate::agent::tools::{command, list, read, replace, write};

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
            hazards: Vec::new(),
        }
    }

    #[test]
    fn denied_paths_are_refused_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (root, home) = (top.join("root"), top.join("root/.agent"));
        std::fs::create_dir_all(home.join("sessions")).unwrap();
        std::os::unix::fs::symlink(&home, root.join("link")).unwrap();
        let permissions = DenyPaths {
            permissions: &Everything,
            root: &root,
            paths: &[home.join("config.json"), home.join("sessions")],
            instead: None,
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
    fn a_file_with_a_tool_of_its_own_is_read_but_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join("plan.md"), "").unwrap();
        std::os::unix::fs::symlink("plan.md", root.join("link.md")).unwrap();
        let permissions = DenyPaths {
            permissions: &Everything,
            root: &root,
            paths: &[root.join("plan.md")],
            instead: Some("the plan document is changed by update_plan"),
        };
        let reason = |path: &str| {
            Permission::Refused(format!(
                "`{path}`: the plan document is changed by update_plan"
            ))
        };
        for path in ["plan.md", "./x/../plan.md", "link.md"] {
            for tool in [&write::WRITE_FILE, &replace::FIND_AND_REPLACE_IN_FILE] {
                assert_eq!(
                    permissions.decide(&call(tool, ("path", path))),
                    reason(path)
                );
            }
            let read = call(&read::READ_FILE, ("path", path));
            assert_eq!(permissions.decide(&read), Permission::Allowed);
        }
        let other = call(&write::WRITE_FILE, ("path", "plans.md"));
        assert_eq!(permissions.decide(&other), Permission::Allowed);
    }

    #[test]
    fn harmful_calls_are_asked_about_unless_all_are_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::write(root.join("go.mod"), "").unwrap();
        std::os::unix::fs::symlink("go.mod", root.join("link")).unwrap();
        let is_harmless = |command: &str| command == "git status";
        for (tool, argument, about) in [
            (&command::COMMAND, ("command", "git status"), None),
            (
                &command::COMMAND,
                ("command", "npm install"),
                Some("run `npm install`"),
            ),
            (&command::COMMAND, ("command", ""), Some("run ``")),
            (&write::WRITE_FILE, ("path", "src/main.rs"), None),
            (&write::WRITE_FILE, ("path", "package.json.txt"), None),
            (
                &write::WRITE_FILE,
                ("path", "a/b/package.json"),
                Some("change `a/b/package.json`"),
            ),
            (
                &write::WRITE_FILE,
                ("path", "x/../CARGO.TOML"),
                Some("change `x/../CARGO.TOML`"),
            ),
            (
                &write::WRITE_FILE,
                ("path", "pyproject.toml/"),
                Some("change `pyproject.toml/`"),
            ),
            (
                &replace::FIND_AND_REPLACE_IN_FILE,
                ("path", "link"),
                Some("change `link`"),
            ),
            (&read::READ_FILE, ("path", "go.mod"), None),
        ] {
            let call = call(tool, argument);
            let decide = |consent| {
                let permissions = &Everything;
                let ask = AskFirst {
                    permissions,
                    root: &root,
                    is_harmless: &is_harmless,
                    consent,
                    lacks_consent: &Cell::default(),
                    may_have_changed: &Cell::default(),
                };
                ask.decide(&call)
            };
            assert_eq!(decide(Consent::Given), Permission::Allowed);
            let Some(about) = about else {
                assert_eq!(decide(Consent::Asked), Permission::Allowed, "{argument:?}");
                assert_eq!(decide(Consent::Unattended), Permission::Allowed);
                continue;
            };
            let asked = decide(Consent::Asked);
            let question = format!("The agent wants to {about}");
            assert!(
                matches!(&asked, Permission::Ask(told) if told.sentence.starts_with(&question)),
                "{asked:?}"
            );
            let refused = decide(Consent::Unattended);
            let told = matches!(&refused, Permission::Refused(told) if told.contains(about) && told.contains("`--yes`"));
            assert!(told, "{refused:?}");
        }
    }

    #[test]
    fn forbidden_actions_are_refused_without_a_question() {
        struct Nothing;

        impl Permissions for Nothing {
            fn decide(&self, _call: &ToolCall) -> Permission {
                Permission::Refused("no".to_owned())
            }
        }

        let asks = AskFirst {
            permissions: &Nothing,
            root: Path::new("/"),
            is_harmless: &|_| false,
            consent: Consent::Asked,
            lacks_consent: &Cell::default(),
            may_have_changed: &Cell::default(),
        };
        let call = call(&command::COMMAND, ("command", "rm x"));
        assert_eq!(asks.decide(&call), Permission::Refused("no".to_owned()));
    }
}
