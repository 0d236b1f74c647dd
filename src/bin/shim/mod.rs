//! Starts `code-commit` under another name, which selects one of its commands.
//!
//! Does not link the library, so that the program is stored on disk only once.

use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const PROGRAM: &str = "code-commit";
/// The exit code of `code-commit` when it cannot start.
const LOCAL_IO: u8 = 6;

/// Replaces the process with `code-commit` under this name; prints an error if that fails.
pub fn start_as(name: &str) -> ExitCode {
    let program = beside().unwrap_or_else(|| PROGRAM.into());
    let error = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .arg0(name)
        .exec();
    let message = format!(
        "error: cannot start `{}`: {error}\nhint: install `{PROGRAM}` beside `{name}`, or in a directory of `PATH`\n",
        program.display()
    );
    // A closed stream is not an error: EPIPE is ignored.
    let _ = io::stderr().write_all(message.as_bytes());
    ExitCode::from(LOCAL_IO)
}

/// The program in the same directory as this one, if any; otherwise `PATH` is searched for it.
fn beside() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    program.is_file().then_some(program)
}
