//! Directories in which agents keep settings and sessions. Only the files that hold keys are read here.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

use crate::sys::environment::Environment;
use crate::sys::excerpt::lossy;
use crate::sys::files::{self, Links, MIB};
use crate::sys::home_file::{self, HomeFileProblem};
use crate::sys::text::regex;

/// Matches a key in a settings or accounts file, even if the file is malformed.
static KEY: LazyLock<Regex> = LazyLock::new(|| regex(r#""(?:api_key|apiKey)"\s*:\s*"([^"]+)""#));

/// Home directory of a command's agents, and the variables that determine it.
#[derive(Debug, PartialEq, Eq)]
pub struct AgentHome {
    /// Command whose agents use this home.
    pub command: &'static str,
    /// Variable that names the directory itself.
    pub variable: &'static str,
    /// Variable that holds the agents' key, in addition to the vendors' own; `None` if there is no such variable.
    pub key_variable: Option<&'static str>,
    /// Command that lists the sessions in this home.
    pub list_command: &'static str,
    /// Variable of the XDG standard that applies, and the directory's name below it; `None` if the standard does not
    /// apply.
    xdg: Option<(&'static str, &'static str)>,
    /// Path below `HOME`.
    below_home: &'static str,
    /// The file that may hold keys and the sessions folder. Both are hidden in a sandbox.
    secrets: [&'static str; 2],
    /// Path below `HOME` on macOS, where the XDG variable is ignored; `None` if macOS is treated like Linux.
    on_mac_os: Option<&'static str>,
}

/// Variable that holds the key of `dev`.
pub const DEV_KEY: &str = "DEV_AGENT_API_KEY";
/// The environment variable with the token for an MCP server.
pub const MCP_TOKEN: &str = "MCP_BEARER_TOKEN";
/// The environment variable with the token for `git push`.
pub const GITHUB_TOKEN: &str = "GITHUB_TOKEN";
/// The environment variable with an MCP server's URL, whose query may contain a key.
pub const MCP_URL: &str = "MCP_BASE_URL";

/// Home of `dev`.
pub static DEV: AgentHome = AgentHome {
    command: "dev",
    variable: "DEV_AGENT_HOME",
    key_variable: Some(DEV_KEY),
    list_command: "dev sessions list",
    xdg: Some(("XDG_CONFIG_HOME", "dev-agent")),
    below_home: ".dev-agent",
    secrets: [SETTINGS, SESSIONS],
    on_mac_os: Some("Library/Application Support/dev-agent"),
};

/// Home of `plan`; its specification requires the same path on every system.
pub static PLAN: AgentHome = AgentHome {
    command: "plan",
    variable: "OLLAMA_AGENT_HOME",
    key_variable: None,
    list_command: "code-commit plan sessions list",
    xdg: Some(("XDG_DATA_HOME", "ollama-agent")),
    below_home: ".local/share/ollama-agent",
    secrets: [PLAN_MODELS, SESSIONS],
    on_mac_os: None,
};

/// Home of `chat`; its specification requires the same path on every system.
pub static CHAT: AgentHome = AgentHome {
    command: "chat",
    variable: "AGENT_HOME",
    key_variable: None,
    list_command: "code-commit chat sessions list",
    xdg: None,
    below_home: ".agent",
    secrets: [ACCOUNTS, SESSIONS],
    on_mac_os: None,
};

/// Home for what all agents share: accounts and models.
pub static SHARED: &AgentHome = &CHAT;

/// Home of the agent that reads only the parts of a project that it needs.
pub static FRUGAL: &AgentHome = &DEV;

/// All homes.
pub static ALL: [&AgentHome; 3] = [&DEV, &PLAN, &CHAT];

/// Reads the key files that a command may use: the one in its own home and the shared one.
pub fn key_files(environment: &Environment, command: &str) -> Vec<String> {
    let text = |home: &&AgentHome| {
        let directory = home.directory(environment).ok()?;
        let path = directory.join(home.secrets[0]);
        Some(lossy(files::read(&path, Links::Followed, MIB).ok()?))
    };
    let is_used = |home: &&&AgentHome| home.command == command || **home == SHARED;
    ALL.iter().filter(is_used).filter_map(text).collect()
}

/// Returns everything that looks like a key in the text of such a file, which may be malformed.
pub fn keys_in(text: &str) -> impl Iterator<Item = &str> {
    KEY.captures_iter(text)
        .filter_map(|found| Some(found.get(1)?.as_str()))
}

/// Folder in a project with its users' settings for agents.
pub const AGENT_FOLDER: &str = ".agent";
/// File in a project with its users' permissions for agents.
pub const PERMISSIONS: &str = ".agent/permissions.json";
/// Folder in a project with its users' slash commands, which can run programs.
pub const SLASH_COMMANDS: &str = ".agent/commands";
/// Folder with the sessions in a home.
pub const SESSIONS: &str = "sessions";
/// Settings file in a home, which may contain a server's key.
pub const SETTINGS: &str = "config.json";
/// File with the accounts and their keys in a home.
pub const ACCOUNTS: &str = "auth.json";
/// Consequence of removing that file, for hints.
pub const WITHOUT_ACCOUNTS: &str = "`code-commit chat login` then signs in anew";
/// The plan agent's own table of models in its home.
pub const PLAN_MODELS: &str = "config/models.json";

impl AgentHome {
    /// Creates a file with this content in the home. Returns `false`, and changes nothing, if it already exists.
    ///
    /// # Errors
    /// Fails if the file cannot be created.
    pub fn create(&self, path: &Path, content: &[u8]) -> Result<bool, HomeFileProblem> {
        let own = self.variable;
        home_file::create(path, content)
            .map_err(|problem| HomeFileProblem::NotMade { own, problem })
    }

    /// Returns the home directory: the value of the home's own variable, else a directory below the XDG variable if
    /// that is an absolute path, else a directory below `HOME`.
    ///
    /// # Errors
    /// Fails if the variable that decides is not set or not an absolute path.
    pub fn directory(&self, environment: &Environment) -> Result<PathBuf, HomeFileProblem> {
        self.directory_on(environment, cfg!(target_os = "macos"))
    }

    fn directory_on(
        &self,
        environment: &Environment,
        is_mac_os: bool,
    ) -> Result<PathBuf, HomeFileProblem> {
        if let Some(home) = self.absolute(environment, self.variable)? {
            return Ok(home.to_owned());
        }
        let on_mac_os = self.on_mac_os.filter(|_| is_mac_os);
        // The XDG standard requires relative paths to be ignored.
        let xdg = self.xdg.and_then(|(variable, name)| {
            let directory = Path::new(environment.os(variable)?);
            directory.is_absolute().then(|| directory.join(name))
        });
        if let Some(xdg) = xdg.filter(|_| on_mac_os.is_none()) {
            return Ok(xdg);
        }
        let unset = || HomeFileProblem::NoPlace {
            variable: "HOME",
            own: self.variable,
        };
        let home = self.absolute(environment, "HOME")?.ok_or_else(unset)?;
        Ok(home.join(on_mac_os.unwrap_or(self.below_home)))
    }

    /// Returns the paths that are hidden in a sandbox: key file, sessions and home; empty if the home is unknown.
    pub fn hidden(&self, environment: &Environment) -> impl Iterator<Item = PathBuf> {
        let home = self.directory(environment).ok();
        let secrets = self.secrets.map(|name| Some(home.as_ref()?.join(name)));
        secrets.into_iter().flatten().chain(home)
    }

    fn absolute<'e>(
        &self,
        environment: &'e Environment,
        variable: &'static str,
    ) -> Result<Option<&'e Path>, HomeFileProblem> {
        match environment.os(variable).map(Path::new) {
            Some(path) if !path.is_absolute() => Err(HomeFileProblem::NotAbsolute {
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

    /// Linux and similar systems.
    const LINUX: bool = false;
    const MAC_OS: bool = true;

    fn directory_of(
        profile: &AgentHome,
        is_mac_os: bool,
        variables: &[(&str, &str)],
    ) -> Result<String, HomeFileProblem> {
        let environment = Environment::of(variables);
        let directory = profile.directory_on(&environment, is_mac_os);
        directory.map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn every_system_has_its_place() {
        let (home, mac) = (("HOME", "/home/ann"), ("HOME", "/Users/ann"));
        let (xdg, own) = (("XDG_CONFIG_HOME", "/cfg"), (DEV.variable, "/my/own"));
        for (is_mac_os, variables, expected) in [
            (LINUX, &[home][..], "/home/ann/.dev-agent"),
            (LINUX, &[("HOME", "/")], "/.dev-agent"),
            (LINUX, &[home, xdg], "/cfg/dev-agent"),
            (LINUX, &[xdg], "/cfg/dev-agent"),
            (LINUX, &[home, xdg, own], "/my/own"),
            (LINUX, &[own], "/my/own"),
            (
                LINUX,
                &[home, ("XDG_CONFIG_HOME", "cfg")],
                "/home/ann/.dev-agent",
            ),
            (
                MAC_OS,
                &[mac, xdg],
                "/Users/ann/Library/Application Support/dev-agent",
            ),
            (MAC_OS, &[mac, own], "/my/own"),
        ] {
            let found = directory_of(&DEV, is_mac_os, variables).unwrap();
            assert_eq!(found, expected, "{is_mac_os} {variables:?}");
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
            for is_mac_os in [LINUX, MAC_OS] {
                let found = directory_of(&PLAN, is_mac_os, variables).unwrap();
                assert_eq!(found, expected, "{is_mac_os} {variables:?}");
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
            let unset = "there is no place for settings and sessions: `HOME` is not set";
            let relative =
                |variable| format!("`{variable}` is `here`, which is not an absolute path");
            for (is_mac_os, variables, expected) in [
                (LINUX, &[][..], unset.to_owned()),
                (MAC_OS, &[("HOME", "")], unset.to_owned()),
                (LINUX, &[("HOME", "here")], relative("HOME")),
                (
                    LINUX,
                    &[("HOME", "/home/ann"), (own, "here")],
                    relative(own),
                ),
            ] {
                let problem = directory_of(profile, is_mac_os, variables).unwrap_err();
                assert_eq!(problem.to_string(), expected);
                assert!(problem.hint().unwrap().contains(own));
            }
        }
    }
}
