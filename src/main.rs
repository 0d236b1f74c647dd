//! Captures the world, runs, and exits. All else is in the library.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use code_commit::World;
use code_commit::cli::{Cli, Usage};
use code_commit::edit::Program;
use code_commit::environment::{Boot, SystemClock};
use code_commit::error::Exit;
use code_commit::interrupt::Interrupt;

fn main() -> ExitCode {
    let clock = SystemClock::start();
    let exit = match Cli::read(std::env::args_os()) {
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
        }) => say(&text, true, Exit::Usage),
        Err(Usage {
            text,
            is_error: false,
        }) => say(&text, false, Exit::Done),
    };
    ExitCode::from(exit.code())
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
        boot: Boot::current(),
        terminal: io::stderr().is_terminal(),
    })
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
