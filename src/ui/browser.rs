//! Opens a page in the user's browser, and waits for the program that does so to exit.
//!
//! Starts `$BROWSER`, or the system's default opener, with the process's own standard streams. Guarantees that
//! the page's path is its only argument, and that the system's program is never taken from the project.

use std::path::Path;
use std::process::Command;

use crate::sys::environment::Environment;
use crate::sys::programs::program_outside;
use crate::sys::text::printable;

/// The environment variable that names the browser.
const VARIABLE: &str = "BROWSER";

/// The system's command for opening a page, used if `BROWSER` is not set.
const SYSTEM: &str = if cfg!(target_os = "macos") {
    "open"
} else {
    "xdg-open"
};

/// Opens `page`, an absolute path, in the browser; a program inside `project` is never used as the system's
/// opener.
///
/// # Errors
/// Returns a sentence if there is no such program, it cannot be started, or it fails.
pub fn open(environment: &Environment, project: &Path, page: &Path) -> Result<(), String> {
    let no_command =
        || format!("`{VARIABLE}` is not a command: it is empty, or a quote is not closed");
    let words = if let Some(command) = environment.get(VARIABLE) {
        shlex::split(command).ok_or_else(no_command)?
    } else {
        let path = environment.os("PATH").unwrap_or_default();
        let program = program_outside(SYSTEM, path, project);
        let none = || format!("`{VARIABLE}` is not set, and there is no `{SYSTEM}`");
        vec![program.ok_or_else(none)?]
    };
    let (program, arguments) = words.split_first().ok_or_else(no_command)?;
    let status = Command::new(program).args(arguments).arg(page).status();
    let program = printable(program, &[]);
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{program}` failed: {status}")),
        Err(source) => Err(format!("cannot start `{program}`: {source}")),
    }
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
        for (browser, expected) in [
            ("false && true", "`false` failed: exit status: 1"),
            ("'firefox", "`BROWSER` is not a command"),
            (
                "no-such-browser-here",
                "cannot start `no-such-browser-here`",
            ),
        ] {
            let problem = open(browser).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
