//! Opens a file in the user's editor, and waits for the editor to exit.
//!
//! Starts the program that the user has configured, with the process's own standard streams. Text without a
//! file is stored in one only while it is edited.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, ExitStatus};

use super::lent;
use crate::sys::atomic_file;
use crate::sys::environment::Environment;
use crate::sys::files::{self, Links, MIB};
use crate::sys::interrupt::Interrupt;
use crate::sys::text::printable;

/// The environment variables that name the editor; the first one set is used.
const VARIABLES: [&str; 2] = ["VISUAL", "EDITOR"];

/// The system's command for opening a file, used if none of them is set.
const SYSTEM: &str = if cfg!(target_os = "macos") {
    "open -t"
} else {
    "xdg-open"
};

/// The maximum size of the edited text, in bytes.
const LARGEST_EDITED: u64 = 10 * MIB;

/// The hint common to these errors.
const SET: &str = "set `VISUAL` or `EDITOR` to the command of an editor";

/// Errors from opening a file in the editor.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[diagnostic(code("not-ready/settings"), help("{SET}"))]
pub enum EditorProblem {
    /// No editor is configured.
    #[error("there is no editor to open: neither `VISUAL` nor `EDITOR` is set")]
    NotSet,
    /// The editor's command, as configured, cannot be split into words.
    #[error("`{}` is not a command: it is empty, or a quote is not closed", printable(.0, &[]))]
    NoCommand(String),
    /// The editor could not be started.
    #[error("cannot start the editor `{}`: {source}", printable(.command, &[]))]
    NotStarted {
        /// The command as configured.
        command: String,
        /// The operating system's error.
        source: io::Error,
    },
    /// The editor exited with an error.
    #[error("the editor `{}` failed: {status}", printable(.command, &[]))]
    Failed {
        /// The command as configured.
        command: String,
        /// The exit status.
        status: ExitStatus,
    },
}

/// Returns the command that opens a file: `$VISUAL`, `$EDITOR`, or the system's.
pub fn command(environment: &Environment) -> &str {
    chosen(environment).unwrap_or(SYSTEM)
}

/// Returns the configured command that opens a file and waits until the user is done; the system's default
/// command may not wait.
///
/// # Errors
/// Fails if no editor is configured.
pub fn chosen(environment: &Environment) -> Result<&str, EditorProblem> {
    let chosen = environment.first(&VARIABLES);
    let (_, command) = chosen.ok_or(EditorProblem::NotSet)?;
    Ok(command)
}

/// Opens `path` with `command`, which may include arguments. A persistent signal ends the editor.
///
/// # Errors
/// Fails if the editor cannot be started, or fails.
pub fn open(command: &str, path: &Path, interrupt: &Interrupt) -> Result<(), EditorProblem> {
    let no_command = || EditorProblem::NoCommand(command.to_owned());
    let words = shlex::split(command).ok_or_else(no_command)?;
    let (program, arguments) = words.split_first().ok_or_else(no_command)?;
    let mut editor = Command::new(program);
    editor.args(arguments).arg(path);
    let status = lent::run(&mut editor, interrupt, |_| {});
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(EditorProblem::Failed {
            command: command.to_owned(),
            status,
        }),
        Err(source) => Err(EditorProblem::NotStarted {
            command: command.to_owned(),
            source,
        }),
    }
}

/// Returns `text` as edited in the user's editor.
///
/// # Errors
/// Returns an error message if `draft` cannot be written or read, or the editor fails.
pub fn edited(
    command: &str,
    draft: &Path,
    text: &str,
    interrupt: &Interrupt,
) -> Result<String, String> {
    let failed = |error: io::Error| format!("cannot edit `{}`: {error}", draft.display());
    atomic_file::replace_private(draft, |file| file.write_all(text.as_bytes())).map_err(failed)?;
    let opened = open(command, draft, interrupt);
    let read = files::read(draft, Links::Refused, LARGEST_EDITED);
    let _ = fs::remove_file(draft);
    opened.map_err(|problem| problem.to_string())?;
    let mut text = String::from_utf8(read.map_err(failed)?)
        .map_err(|_| format!("cannot take `{}`: it is not UTF-8", draft.display()))?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visual_goes_before_editor_and_both_before_the_systems() {
        for (variables, expected) in [
            (
                &[("VISUAL", "code --wait"), ("EDITOR", "vi")][..],
                "code --wait",
            ),
            (&[("VISUAL", ""), ("EDITOR", "vi")], "vi"),
            (&[], SYSTEM),
        ] {
            assert_eq!(command(&Environment::of(variables)), expected);
        }
    }

    #[test]
    fn a_command_is_words_and_no_shell() {
        let interrupt = Interrupt::never().unwrap();
        let open = |command, path| super::open(command, Path::new(path), &interrupt);
        let path = "file";
        assert!(open("test x =", "x").is_ok());
        let failed = open("false && true", path);
        assert!(matches!(failed, Err(EditorProblem::Failed { .. })));
        let broken = open("'vi", path);
        assert!(matches!(broken, Err(EditorProblem::NoCommand(_))));
        let missing = open("no-such-editor-here", path);
        assert!(matches!(missing, Err(EditorProblem::NotStarted { .. })));
    }
}
