//! Directories in which agents keep settings and sessions. Reads nothing there but the files that hold keys.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::sys::environment::Environment;
use crate::sys::files::{self, Links, MIB};
use crate::sys::text::regex;

/// A key in a file of settings or accounts, or in one that is broken.
static KEY: LazyLock<Regex> = LazyLock::new(|| regex(r#""(?:api_key|apiKey)"\s*:\s*"([^"]+)""#));

/// Home of a system's agents, by the variables that say where it is.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentHome {
    /// The command whose agents it is the home of.
    pub command: &'static str,
    /// The variable that names the directory itself.
    pub variable: &'static str,
    /// The command that lists the sessions there.
    pub list_command: &'static str,
    /// The variable of the XDG standard for such directories, and the directory's name below it; `None`: it does not
    /// count.
    xdg: Option<(&'static str, &'static str)>,
    /// Path below `HOME`.
    below_home: &'static str,
    /// The file that may hold keys, and the folder in it that nothing sandboxed may read either.
    secrets: [&'static str; 2],
    /// Path below `HOME` on macOS, where the standard's variable does not count; `None` for that of Linux.
    on_mac_os: Option<&'static str>,
}

/// Home of `dev`.
pub static DEV: AgentHome = AgentHome {
    command: "dev",
    variable: "DEV_AGENT_HOME",
    list_command: "dev sessions list",
    xdg: Some(("XDG_CONFIG_HOME", "dev-agent")),
    below_home: ".dev-agent",
    secrets: [SETTINGS, SESSIONS],
    on_mac_os: Some("Library/Application Support/dev-agent"),
};

/// Home of `plan`, the same on every system, as its specification has it.
pub static PLAN: AgentHome = AgentHome {
    command: "plan",
    variable: "OLLAMA_AGENT_HOME",
    list_command: "code-commit plan sessions list",
    xdg: Some(("XDG_DATA_HOME", "ollama-agent")),
    below_home: ".local/share/ollama-agent",
    secrets: [PLAN_MODELS, SESSIONS],
    on_mac_os: None,
};

/// Home of `chat`, the same on every system, as its specification has it.
pub static CHAT: AgentHome = AgentHome {
    command: "chat",
    variable: "AGENT_HOME",
    list_command: "code-commit chat sessions list",
    xdg: None,
    below_home: ".agent",
    secrets: [ACCOUNTS, SESSIONS],
    on_mac_os: None,
};

/// The home of what every agent shares: accounts and models.
pub static SHARED: &AgentHome = &CHAT;

/// The homes of all profiles.
pub static ALL: [&AgentHome; 3] = [&DEV, &PLAN, &CHAT];

/// The texts of the files with keys that a command may meet: its own home's, and the shared one's.
#[must_use]
pub fn key_files(environment: &Environment, command: &str) -> Vec<String> {
    let met = ALL
        .iter()
        .filter(|home| home.command == command || **home == SHARED);
    let texts = met.filter_map(|home| {
        let home_directory = home.directory(environment, System::current()).ok()?;
        let content =
            files::read(&home_directory.join(home.secrets[0]), Links::Followed, MIB).ok()?;
        Some(String::from_utf8_lossy(&content).into_owned())
    });
    texts.collect()
}

/// Whatever looks like a key in the text of such a file, which may be broken.
pub fn keys_in(text: &str) -> impl Iterator<Item = &str> {
    KEY.captures_iter(text)
        .filter_map(|found| Some(found.get(1)?.as_str()))
}

/// The folder in a project with what its users set for agents.
pub const AGENT_FOLDER: &str = ".agent";
/// The folder of the sessions, in a home.
pub const SESSIONS: &str = "sessions";
/// The settings with a server's key, in a home.
pub const SETTINGS: &str = "config.json";
/// The accounts with their keys, in a home.
pub const ACCOUNTS: &str = "auth.json";
/// The plan agent's own table of models, in its home.
pub const PLAN_MODELS: &str = "config/models.json";

/// A system, by where its users expect settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux, and what is like it.
    Linux,
    /// macOS.
    MacOs,
}

impl System {
    /// The one that the program was built for.
    pub const fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

/// Errors of finding the home.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum NoHome {
    /// A variable that is needed is not there.
    #[error("there is no place for settings and sessions: `{variable}` is not set")]
    #[diagnostic(help(
        "set `{own}` to the absolute path of a directory for settings and sessions"
    ))]
    Unset {
        /// The variable that was to be set.
        variable: &'static str,
        /// The one that would name the directory itself.
        own: &'static str,
    },
    /// A variable holds no absolute path.
    #[error("`{variable}` is `{}`, which is not an absolute path", .value.escape_debug())]
    #[diagnostic(help(
        "set `{own}` to the absolute path of a directory for settings and sessions"
    ))]
    NotAbsolute {
        /// The variable that is set wrongly.
        variable: &'static str,
        /// The value, which is no absolute path.
        value: String,
        /// The one that would name the directory itself.
        own: &'static str,
    },
}

impl AgentHome {
    /// The directory: what the profile's own variable says; else the one below the standard's variable, where that is
    /// an absolute path; else the one below `HOME`.
    ///
    /// # Errors
    /// When the variable that decides is missing, or is not an absolute path.
    pub fn directory(&self, environment: &Environment, system: System) -> Result<PathBuf, NoHome> {
        if let Some(home) = self.absolute(environment, self.variable)? {
            return Ok(home.to_owned());
        }
        let on_mac_os = self.on_mac_os.filter(|_| system == System::MacOs);
        // The standard has a relative path there passed over.
        let xdg = self.xdg.and_then(|(variable, name)| {
            let directory = Path::new(environment.os(variable)?);
            directory.is_absolute().then(|| directory.join(name))
        });
        if let Some(xdg) = xdg.filter(|_| on_mac_os.is_none()) {
            return Ok(xdg);
        }
        let unset = || NoHome::Unset {
            variable: "HOME",
            own: self.variable,
        };
        let home = self.absolute(environment, "HOME")?.ok_or_else(unset)?;
        Ok(home.join(on_mac_os.unwrap_or(self.below_home)))
    }

    /// The directory, and what in it nothing sandboxed may read; nothing where there is no place for it.
    pub fn hidden(&self, environment: &Environment) -> impl Iterator<Item = PathBuf> {
        let home = self.directory(environment, System::current()).ok();
        let secrets = self.secrets.map(|name| Some(home.as_ref()?.join(name)));
        secrets.into_iter().flatten().chain(home)
    }

    fn absolute<'e>(
        &self,
        environment: &'e Environment,
        variable: &'static str,
    ) -> Result<Option<&'e Path>, NoHome> {
        match environment.os(variable).map(Path::new) {
            Some(path) if !path.is_absolute() => Err(NoHome::NotAbsolute {
                variable,
                value: path.to_string_lossy().into_owned(),
                own: self.variable,
            }),
            path => Ok(path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::error::Problem as _;
    use System::{Linux, MacOs};

    fn directory_of(
        profile: &AgentHome,
        system: System,
        variables: &[(&str, &str)],
    ) -> Result<String, NoHome> {
        let environment = Environment::of(variables);
        let directory = profile.directory(&environment, system);
        directory.map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn every_system_has_its_place() {
        let (home, mac) = (("HOME", "/home/ann"), ("HOME", "/Users/ann"));
        let (xdg, own) = (("XDG_CONFIG_HOME", "/cfg"), (DEV.variable, "/my/own"));
        for (system, variables, expected) in [
            (Linux, &[home][..], "/home/ann/.dev-agent"),
            (Linux, &[("HOME", "/")], "/.dev-agent"),
            (Linux, &[home, xdg], "/cfg/dev-agent"),
            (Linux, &[xdg], "/cfg/dev-agent"),
            (Linux, &[home, xdg, own], "/my/own"),
            (Linux, &[own], "/my/own"),
            (
                Linux,
                &[home, ("XDG_CONFIG_HOME", "cfg")],
                "/home/ann/.dev-agent",
            ),
            (
                MacOs,
                &[mac, xdg],
                "/Users/ann/Library/Application Support/dev-agent",
            ),
            (MacOs, &[mac, own], "/my/own"),
        ] {
            let found = directory_of(&DEV, system, variables);
            assert_eq!(found.as_deref(), Ok(expected), "{system:?} {variables:?}");
        }
    }

    #[test]
    fn the_plans_place_is_the_same_on_every_system() {
        let (home, dev) = (("HOME", "/home/ann"), (DEV.variable, "/dev/home"));
        let (xdg, own) = (("XDG_DATA_HOME", "/data"), (PLAN.variable, "/my/own"));
        for (variables, expected) in [
            (&[home, dev][..], "/home/ann/.local/share/ollama-agent"),
            (
                &[home, ("XDG_CONFIG_HOME", "/cfg")],
                "/home/ann/.local/share/ollama-agent",
            ),
            (
                &[home, ("XDG_DATA_HOME", "data")],
                "/home/ann/.local/share/ollama-agent",
            ),
            (&[home, xdg], "/data/ollama-agent"),
            (&[home, xdg, own], "/my/own"),
        ] {
            for system in [Linux, MacOs] {
                let found = directory_of(&PLAN, system, variables);
                assert_eq!(found.as_deref(), Ok(expected), "{system:?} {variables:?}");
            }
        }
    }

    #[test]
    fn the_keys_of_a_file_that_is_broken_are_kept_out_of_sight_too() {
        let home = tempfile::tempdir().unwrap();
        let broken = "{\"accounts\": [{\"api_key\": \"sk-one\"}, {\"api_key\" : \"sk-two\"";
        std::fs::write(home.path().join(ACCOUNTS), broken).unwrap();
        for (home, expected) in [
            (home.path(), &["sk-one", "sk-two"][..]),
            (Path::new("/nowhere/at/all"), &[]),
        ] {
            let environment = Environment::of(&[(CHAT.variable, home.to_str().unwrap())]);
            let texts = key_files(&environment, "commit");
            let keys: Vec<&str> = texts.iter().flat_map(|text| keys_in(text)).collect();
            assert_eq!(keys, expected);
        }
    }

    #[test]
    fn without_a_place_the_variable_is_named() {
        for profile in [&DEV, &PLAN] {
            let own = profile.variable;
            let unset = NoHome::Unset {
                variable: "HOME",
                own,
            };
            let relative = |variable| NoHome::NotAbsolute {
                variable,
                value: "here".to_owned(),
                own,
            };
            for (system, variables, expected) in [
                (Linux, &[][..], unset.clone()),
                (MacOs, &[("HOME", "")], unset),
                (Linux, &[("HOME", "here")], relative("HOME")),
                (
                    Linux,
                    &[("HOME", "/home/ann"), (own, "here")],
                    relative(own),
                ),
            ] {
                let problem = directory_of(profile, system, variables).unwrap_err();
                assert_eq!(problem, expected);
                assert!(problem.hint().unwrap().contains(own));
            }
        }
    }
}
