//! Code shared by the tests: a project to run in, and a server in place of the vendors'.

pub mod agent;
pub mod anthropic;
pub mod azure;
pub mod chat;
mod clock;
pub mod orchestra;
pub mod plan;
mod project;
pub mod screen;
mod server;
pub mod terminal;
pub mod tmux;

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGQUIT};
use tempfile::TempDir;

pub use clock::StoppedClock;
pub use project::{Finished, GEMINI_KEY, OPENAI_KEY, TestProject};
pub use server::{Answer, ModelServer, Recorded, gemini, ollama, openai, receive};
pub use terminal::in_terminal;

/// Reports that a test was skipped, bypassing libtest, which captures the output of passing tests. If all tests are
/// required, as in CI, panics.
pub fn skipped(why: &str) {
    assert!(
        std::env::var_os("NO_SKIPPED_TESTS").is_none(),
        "skipped: {why}"
    );
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    // A closed stream is not an error.
    let _ = writeln!(std::io::stderr(), "skipped {name}: {why}");
}

/// Creates a directory that every user may enter.
pub fn open_directory() -> TempDir {
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
    directory
}

/// Copies a program into a directory where every user may start it, and returns its path, since the clone may be in a
/// directory that only its owner may enter.
pub fn for_every_user(program: &Path, directory: &Path) -> PathBuf {
    let place = directory.join(program.file_name().unwrap());
    let is_open = program.metadata().unwrap().permissions().mode() & 0o5 == 0o5;
    if !is_open || fs::hard_link(program, &place).is_err() {
        fs::copy(program, &place).unwrap();
        fs::set_permissions(&place, Permissions::from_mode(0o755)).unwrap();
    }
    place
}

/// Lets programs started by tests receive the signals that the tests themselves ignore because they run in a script's
/// background or under `nohup`. Child processes inherit an ignored signal, but not a handler.
pub fn hear_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
        for signal in [SIGINT, SIGQUIT, SIGHUP] {
            if ignored & (1 << (signal - 1)) != 0 {
                signal_hook::flag::register(signal, Arc::default()).unwrap();
            }
        }
    });
}

/// Writes a program that a test runs, by a process of its own. If the tests' own process wrote it, a child started by
/// another test meanwhile would hold it open for writing until its own `exec`, and the system would refuse to run it
/// (ETXTBSY).
pub fn write_program(path: &Path, content: impl AsRef<[u8]>) {
    let mut writer = Command::new("sh")
        .args(["-c", r#"cat > "$1" && chmod 755 "$1""#, "sh"])
        .arg(path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = writer.stdin.take().unwrap();
    input.write_all(content.as_ref()).unwrap();
    drop(input);
    assert!(writer.wait().unwrap().success(), "{}", path.display());
}

/// A command that runs a program in a PID namespace of its own, in the session of a process that it cannot see.
pub const BUBBLEWRAP: [&str; 8] = [
    "bwrap",
    "--die-with-parent",
    "--dev-bind",
    "/",
    "/",
    "--unshare-pid",
    "--proc",
    "/proc",
];

/// Returns whether bubblewrap works on this machine.
pub fn bubblewrap_works() -> bool {
    let tried = Command::new(BUBBLEWRAP[0])
        .args(&BUBBLEWRAP[1..])
        .args(["--unshare-net", "true"])
        .output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        skipped("bubblewrap does not work on this machine");
    }
    works
}

/// Waits until a process that was sent SIGKILL has ended; returns whether it has.
pub fn ends(process: &str) -> bool {
    within_a_minute(|| {
        let state = std::fs::read_to_string(format!("/proc/{process}/stat"));
        state.map_or(true, |state| state.contains(") Z "))
    })
}

/// Polls until the condition holds, for things that raise no event; returns whether it does within a minute.
pub fn within_a_minute(mut is_so: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !is_so() {
        if began.elapsed() > Duration::from_mins(1) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
