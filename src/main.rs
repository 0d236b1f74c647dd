//! The `code-commit` binary: captures the environment, runs, and exits. Invoked as `dev`, it is `code-commit dev`;
//! invoked as `dev-agent`, it is `code-commit orchestrate`.
//!
//! The only place that reads the environment, the clock, the current directory and the state of the terminal.
//! Everything else is in the library.

use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::SystemTime;

use code_commit::supervisor::SupervisorPlace;
use code_commit::{
    Cli, CliMessage, Environment, Exit, Interrupt, Redactor, SystemClock, World, core_dump,
    namespace, open_files, supervisor,
};
use uuid::Uuid;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if let Some(done) = namespace::run(&arguments) {
        return ExitCode::from(done.map_or(Exit::LocalIo, |()| Exit::Done).code());
    }
    core_dump::forbid();
    open_files::allow();
    let clock = SystemClock::start();
    // Internal to the program, and therefore not part of the documented command line.
    let place = match arguments.as_slice() {
        [_, command] => command.to_str().and_then(|name| name.parse().ok()),
        _ => None,
    };
    let exit = match place {
        Some(place) => supervise(place, clock),
        None => run(&arguments, clock),
    };
    ExitCode::from(exit.code())
}

fn run(arguments: &[OsString], clock: SystemClock) -> Exit {
    match Cli::read(arguments) {
        Ok(cli) => match capture(clock) {
            Ok(world) => code_commit::run(&cli, &world),
            Err(message) => refuse(message, Exit::LocalIo, arguments, &clock),
        },
        Err(message) if message.is_error => refuse(message, Exit::Usage, arguments, &clock),
        Err(message) => {
            let environment: Environment = std::env::vars_os().collect();
            say(&message.folded(environment.get("COLUMNS")), Exit::Done)
        }
    }
}

/// Runs as the supervisor, an internal command. Errors are not printed, since nobody would read them.
fn supervise(place: SupervisorPlace, clock: SystemClock) -> Exit {
    let interrupt = match place {
        // Signals from inside the sandbox must not reach its first process.
        SupervisorPlace::Sandbox => Interrupt::never(),
        SupervisorPlace::Outside => Interrupt::install(),
    };
    match interrupt.and_then(|interrupt| supervisor::run(place, &clock, &interrupt)) {
        Ok(()) => Exit::Done,
        Err(_) => Exit::LocalIo,
    }
}

fn capture(clock: SystemClock) -> Result<World, CliMessage> {
    SystemClock::check(SystemTime::now())
        .map_err(|wrong| CliMessage::cannot_start(wrong, "set the clock"))?;
    let here = std::env::current_dir().and_then(|path| path.canonicalize());
    let nowhere = |error| {
        let hint = "go to a directory that is there and can be read";
        CliMessage::cannot_start(&format!("the current directory: {error}"), hint)
    };
    let limited = |error| {
        let hint = "allow for more open files, by `ulimit -n`";
        CliMessage::cannot_start(&format!("no signals can be heard: {error}"), hint)
    };
    Ok(World {
        directory: here.map_err(nowhere)?,
        environment: std::env::vars_os().collect(),
        clock: Box::new(clock),
        seed: Uuid::new_v4().as_u128(),
        interrupt: Interrupt::install().map_err(limited)?,
        program: std::env::current_exe()
            .and_then(|path| path.canonicalize())
            .ok(),
        terminal: io::stderr().is_terminal(),
        stdout_terminal: io::stdout().is_terminal(),
        stdin_terminal: io::stdin().is_terminal(),
    })
}

/// Reports an error that occurred before any command, with secrets redacted, since the user may have pasted a key into
/// the command line. Key files are not read: an invalid command line touches nothing.
fn refuse(message: CliMessage, exit: Exit, arguments: &[OsString], clock: &SystemClock) -> Exit {
    let environment: Environment = std::env::vars_os().collect();
    let keys = code_commit::key_variables().filter_map(|name| environment.get(name));
    let secrets: Vec<_> = environment.secrets().collect();
    let redactor = Redactor::with_values(keys, secrets.iter().map(AsRef::as_ref));
    let exit = say(&redactor.text(&message.text), exit);
    code_commit::print_early_error(message, arguments, clock, &redactor);
    exit
}

/// Prints `text`, to stderr unless `exit` is [`Exit::Done`]. EPIPE is ignored; any other failure to write is an error.
fn say(text: &str, exit: Exit) -> Exit {
    if exit == Exit::Done {
        let mut stdout = io::stdout().lock();
        return match stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
        {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => say(
                &format!("error: cannot write to stdout: {error}\n"),
                Exit::LocalIo,
            ),
            _ => Exit::Done,
        };
    }
    let _ = io::stderr().write_all(text.as_bytes());
    exit
}
