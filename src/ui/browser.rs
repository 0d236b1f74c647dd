//! Opens a page in the user's browser, and waits until the program that does so has ended.
//!
//! Starts `$BROWSER`, or what the system opens pages with, with the process's own standard streams. Guarantees that
//! the page's path is all that it is told, and that the system's program is not taken from the project.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};

use crate::sys::environment::Environment;
use crate::sys::git::program_outside;
use crate::sys::text::printable;

/// The variable that names the browser.
const VARIABLE: &str = "BROWSER";

/// The system's own command to open a page, for when none is set.
const SYSTEM: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Why a page was not opened.
#[derive(Debug, thiserror::Error)]
pub enum BrowserProblem {
    /// No browser is set, and the system has nothing for it.
    #[error("`{VARIABLE}` is not set, and there is no `{SYSTEM}`")]
    NoBrowser,
    /// The variable holds no command.
    #[error("`{VARIABLE}` is not a command: it is empty, or a quote is not closed")]
    NoCommand,
    /// It cannot be started.
    #[error("cannot start `{}`: {source}", printable(.program, &[]))]
    NotStarted {
        /// The program, as it was looked for.
        program: String,
        /// The system's word.
        source: io::Error,
    },
    /// It ran, and ended with an error.
    #[error("`{}` failed: {status}", printable(.program, &[]))]
    Failed {
        /// The program, as it was looked for.
        program: String,
        /// The exit status.
        status: ExitStatus,
    },
}

/// Opens `page`, an absolute path, in the browser; the system's program is not taken from `project`.
///
/// # Errors
/// When there is none, it cannot be started, or fails.
pub fn open(environment: &Environment, project: &Path, page: &Path) -> Result<(), BrowserProblem> {
    let words = words(environment, project)?;
    let (program, arguments) = words.split_first().ok_or(BrowserProblem::NoCommand)?;
    let program = || program.clone();
    let status = Command::new(program()).args(arguments).arg(page).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(BrowserProblem::Failed {
            program: program(),
            status,
        }),
        Err(source) => Err(BrowserProblem::NotStarted {
            program: program(),
            source,
        }),
    }
}

/// The program and the arguments that it has of its own.
fn words(environment: &Environment, project: &Path) -> Result<Vec<String>, BrowserProblem> {
    if let Some(command) = environment.get(VARIABLE) {
        return shlex::split(command).ok_or(BrowserProblem::NoCommand);
    }
    let path = environment.os("PATH").unwrap_or_default();
    let program = program_outside(SYSTEM, path, project);
    Ok(vec![program.ok_or(BrowserProblem::NoBrowser)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_is_words_and_no_shell() {
        let open = |browser| {
            let environment = Environment::of(&[("BROWSER", browser)]);
            open(&environment, Path::new("/nowhere"), Path::new("/page"))
        };
        assert!(open("test /page =").is_ok());
        let failed = open("false && true");
        assert!(matches!(failed, Err(BrowserProblem::Failed { .. })));
        let broken = open("'firefox");
        assert!(matches!(broken, Err(BrowserProblem::NoCommand)));
        let missing = open("no-such-browser-here");
        assert!(matches!(missing, Err(BrowserProblem::NotStarted { .. })));
    }
}
