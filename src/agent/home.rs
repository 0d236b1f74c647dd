//! Where an agent keeps its settings and its sessions. Pure.

use std::path::{Path, PathBuf};

use crate::sys::environment::Environment;

/// The variable that names the directory itself.
pub const HOME_VARIABLE: &str = "DEV_AGENT_HOME";

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
    #[must_use]
    pub const fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

/// Why there is no such place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoHome {
    /// A variable that is needed is not there.
    #[error("there is no place for settings and sessions: `{variable}` is not set")]
    Unset {
        /// The variable that was to be set.
        variable: &'static str,
    },
    /// A variable holds no absolute path.
    #[error("`{variable}` is `{}`, which is not an absolute path", .value.escape_debug())]
    NotAbsolute {
        /// The variable that is set wrongly.
        variable: &'static str,
        /// What it is set to, which is no absolute path.
        value: String,
    },
}

impl NoHome {
    /// What the user can do about it.
    #[must_use]
    pub fn hint() -> String {
        format!(
            "set `{HOME_VARIABLE}` to the absolute path of a directory for settings and sessions"
        )
    }
}

/// The directory of an agent's settings and sessions: what `DEV_AGENT_HOME` says; else, on Linux,
/// `$XDG_CONFIG_HOME/dev-agent` where that variable is an absolute path; else the system's own place, which is
/// `~/.dev-agent` or `~/Library/Application Support/dev-agent`.
///
/// # Errors
/// When the variable that decides is missing, or is not an absolute path.
pub fn directory(environment: &Environment, system: System) -> Result<PathBuf, NoHome> {
    if let Some(home) = absolute(environment, HOME_VARIABLE)? {
        return Ok(home.to_owned());
    }
    // The standard has a relative path there passed over.
    let config = environment.os("XDG_CONFIG_HOME").map(Path::new);
    if let Some(config) = config.filter(|path| system == System::Linux && path.is_absolute()) {
        return Ok(config.join("dev-agent"));
    }
    let home = absolute(environment, "HOME")?.ok_or(NoHome::Unset { variable: "HOME" })?;
    Ok(home.join(match system {
        System::Linux => ".dev-agent",
        System::MacOs => "Library/Application Support/dev-agent",
    }))
}

fn absolute<'e>(
    environment: &'e Environment,
    variable: &'static str,
) -> Result<Option<&'e Path>, NoHome> {
    match environment.os(variable).map(Path::new) {
        Some(path) if !path.is_absolute() => Err(NoHome::NotAbsolute {
            variable,
            value: path.to_string_lossy().into_owned(),
        }),
        path => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use System::{Linux, MacOs};

    fn directory_of(system: System, variables: &[(&str, &str)]) -> Result<String, NoHome> {
        let variables = variables.iter();
        let environment = variables
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        directory(&environment, system).map(|path| path.to_str().unwrap().to_owned())
    }

    #[test]
    fn every_system_has_its_place() {
        let (home, mac) = (("HOME", "/home/ann"), ("HOME", "/Users/ann"));
        let (xdg, own) = (("XDG_CONFIG_HOME", "/cfg"), (HOME_VARIABLE, "/my/own"));
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
            let found = directory_of(system, variables);
            assert_eq!(found.as_deref(), Ok(expected), "{system:?} {variables:?}");
        }
    }

    #[test]
    fn without_a_place_the_variable_is_named() {
        let relative = |variable| NoHome::NotAbsolute {
            variable,
            value: "here".to_owned(),
        };
        for (system, variables, expected) in [
            (Linux, &[][..], NoHome::Unset { variable: "HOME" }),
            (MacOs, &[("HOME", "")], NoHome::Unset { variable: "HOME" }),
            (Linux, &[("HOME", "here")], relative("HOME")),
            (
                Linux,
                &[("HOME", "/home/ann"), (HOME_VARIABLE, "here")],
                relative(HOME_VARIABLE),
            ),
        ] {
            let problem = directory_of(system, variables).unwrap_err();
            assert_eq!(problem, expected);
            assert!(NoHome::hint().contains(HOME_VARIABLE));
        }
    }
}
