//! Captures the world, runs, and exits. All else is in the library.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use code_commit::World;
use code_commit::cli::{Cli, Usage};
use code_commit::edit::Program;
use code_commit::environment::{Environment, KEY_VARIABLES, SystemClock};
use code_commit::error::Exit;
use code_commit::interrupt::Interrupt;
use code_commit::sandbox::inside;
use code_commit::secret::Redactor;

fn main() -> ExitCode {
    let clock = SystemClock::start();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let exit = match arguments.as_slice() {
        // Nothing that a user asks for, and so no part of the command line that is described to them.
        [_, command] if command == inside::COMMAND => inside_sandbox(),
        _ => run(arguments, clock),
    };
    ExitCode::from(exit.code())
}

fn run(arguments: Vec<OsString>, clock: SystemClock) -> Exit {
    match Cli::read(arguments) {
        Ok(cli) => match capture(clock) {
            Ok(world) => code_commit::run(&cli, &world),
            Err(error) => say(
                &format!("error: cannot start: {error}\n"),
                true,
                Exit::LocalIo,
            ),
        },
        Err(Usage {
            text,
            is_error: true,
        }) => say(&without_keys(&text), true, Exit::Usage),
        Err(Usage {
            text,
            is_error: false,
        }) => say(&text, false, Exit::Done),
    }
}

/// Started by this program itself, where nobody is left to read an error.
fn inside_sandbox() -> Exit {
    match inside::run() {
        Ok(()) => Exit::Done,
        Err(_) => Exit::LocalIo,
    }
}

fn capture(clock: SystemClock) -> io::Result<World> {
    Ok(World {
        root: std::env::current_dir()?.canonicalize()?,
        environment: std::env::vars_os().collect(),
        clock: Box::new(clock),
        interrupt: Interrupt::install()?,
        program: std::env::current_exe()
            .and_then(|path| path.canonicalize())
            .ok()
            .map(|path| Program { path }),
        terminal: io::stderr().is_terminal(),
        stdout_terminal: io::stdout().is_terminal(),
    })
}

/// Somebody may have pasted a key into the command line. Files are not read for that: a wrong command
/// line touches nothing.
fn without_keys(text: &str) -> String {
    let environment: Environment = std::env::vars_os().collect();
    let keys = KEY_VARIABLES
        .iter()
        .filter_map(|name| environment.get(name));
    Redactor::new(keys).text(text).into_owned()
}

fn say(text: &str, is_error: bool, exit: Exit) -> Exit {
    // Whoever closed the stream does not want to know.
    let _ = if is_error {
        io::stderr().write_all(text.as_bytes())
    } else {
        io::stdout().write_all(text.as_bytes())
    };
    exit
}
