//! Shuts a build in, by bubblewrap: `bwrap`, which Linux distributions have.
//!
//! Starts `bwrap` with this program inside it, which starts the build and tells how it ends. Guarantees
//! that a build which was started here sees neither the keys nor other processes; that all of it ends
//! with the sandbox; and, where it is strict, that it has no network and writes to the project alone.

pub mod inside;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IoSlice, PipeReader, PipeWriter, Read as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::fs::{Access, access};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::environment::hide_keys;
use crate::interrupt::{Interrupt, Interrupted, Woken, is_readable_within};

/// The program that shuts builds in.
const BWRAP: &str = "bwrap";
/// The sandbox's private directory for temporary files.
const TEMPORARY: &str = "/tmp";
/// How long a sandbox may take to stand.
const SET_UP: Duration = Duration::from_secs(10);
/// How long the kernel may take to end what is in it.
const TEAR_DOWN: Duration = Duration::from_secs(2);
/// Through these a process could have others do what it may not.
const SERVICES: [&str; 6] = [
    "/run/user",
    "/run/dbus",
    "/run/containerd",
    "/run/podman",
    "/run/systemd",
    "/run/docker",
];
/// The same, as sockets of their own.
const SOCKETS: [&str; 1] = ["/run/docker.sock"];

/// How far a build is shut in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// It sees and does what it always does, but for the keys and other processes.
    Lenient,
    /// Besides, it has no network, and writes to the project and to temporary files alone.
    Strict,
}

/// Why a build cannot be shut in.
#[derive(Debug, thiserror::Error)]
pub enum SandboxProblem {
    /// There is no `bwrap`.
    #[error("bubblewrap (`bwrap`) is not installed")]
    NotInstalled,
    /// It is there, and does not work here.
    #[error("bubblewrap does not work here: {0}")]
    Unusable(String),
    /// The system refused something else.
    #[error("bubblewrap cannot be started: {0}")]
    Io(#[from] io::Error),
    /// A signal came.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// What is to be shut in, and away from what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Premises {
    /// The project's root.
    pub root: PathBuf,
    /// The folder with the keys, which is empty inside.
    pub keys: PathBuf,
    /// Key files, which may be links to somewhere else.
    pub key_files: Vec<PathBuf>,
    /// What nothing inside a strict sandbox may write to.
    pub read_only: Vec<PathBuf>,
}

/// A way to shut builds in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    bwrap: PathBuf,
    /// This program, to be started inside.
    program: PathBuf,
    premises: Premises,
    strictness: Strictness,
}

impl Sandbox {
    /// Looks for `bwrap` in the directories of `path`; relative ones, and those in the project, are
    /// passed over.
    ///
    /// # Errors
    /// When it is not there.
    pub fn find(
        path: Option<&OsStr>,
        program: &Path,
        premises: Premises,
        strictness: Strictness,
    ) -> Result<Self, SandboxProblem> {
        let trusted =
            |directory: &PathBuf| directory.is_absolute() && !directory.starts_with(&premises.root);
        let bwrap = std::env::split_paths(path.unwrap_or_default())
            .filter(trusted)
            .map(|directory| directory.join(BWRAP))
            .find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok());
        let Some(bwrap) = bwrap else {
            return Err(SandboxProblem::NotInstalled);
        };
        Ok(Self {
            bwrap,
            program: program.to_path_buf(),
            premises,
            strictness,
        })
    }

    /// Sees whether it works.
    ///
    /// # Errors
    /// When it does not.
    pub fn try_out(&self, interrupt: &Interrupt) -> Result<(), SandboxProblem> {
        self.enter(interrupt).map(drop)
    }

    /// Starts the sandbox, with nothing in it yet.
    ///
    /// # Errors
    /// When it does not work here.
    pub fn enter(&self, interrupt: &Interrupt) -> Result<Inside, SandboxProblem> {
        let (line, theirs) = UnixStream::pair()?;
        let (mut errors, complaints) = io::pipe()?;
        let mut command = Command::new(&self.bwrap);
        command
            .args(self.arguments())
            .arg("--")
            .arg(&self.program)
            .arg(inside::COMMAND)
            .current_dir(&self.premises.root)
            .stdin(std::os::fd::OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(complaints)
            .process_group(0);
        hide_keys(&mut command);
        let child = command.spawn()?;
        // It holds the pipe's other end.
        drop(command);
        let mut inside = Inside {
            child,
            line,
            received: Vec::new(),
        };
        match interrupt.poll(&[inside.line.as_fd()], PollFlags::IN, Some(SET_UP)) {
            Ok(Woken::Ready) if inside.receive()? == Some(inside::READY.to_owned()) => Ok(inside),
            Ok(_) => {
                inside.end();
                Err(SandboxProblem::Unusable(complaint(&mut errors)))
            }
            Err(error) => {
                interrupt.check()?;
                Err(error.into())
            }
        }
    }

    /// bubblewrap's arguments, in the order in which they are carried out.
    fn arguments(&self) -> Vec<OsString> {
        let mut list = Arguments::default();
        match self.strictness {
            Strictness::Lenient => {
                list.add("--dev-bind", &["/", "/"]);
                list.add("--tmpfs", &[&resolved(&self.premises.keys)]);
                list.add("--proc", &["/proc"]);
                // Who is root would otherwise be able to look under what is put over the keys.
                list.add("--cap-drop", &["CAP_SYS_ADMIN"]);
            }
            Strictness::Strict => self.add_strict(&mut list),
        }
        // A link among the key files leads out of the folder that is hidden.
        for key in &self.premises.key_files {
            let target = resolved(key);
            if target.exists() && !target.starts_with(resolved(&self.premises.keys)) {
                list.add("--ro-bind", &[Path::new("/dev/null"), &target]);
            }
        }
        list.add("--unshare-pid", NOTHING);
        list.add("--die-with-parent", NOTHING);
        list.add("--chdir", &[&self.premises.root]);
        list.0
    }

    fn add_strict(&self, list: &mut Arguments) {
        let Premises { root, keys, .. } = &self.premises;
        list.add("--ro-bind", &["/", "/"]);
        list.add("--dev", &["/dev"]);
        list.add("--remount-ro", &["/dev"]);
        list.add("--tmpfs", &["/dev/shm"]);
        list.add("--proc", &["/proc"]);
        for service in SERVICES.iter().filter(|path| Path::new(path).is_dir()) {
            list.add("--tmpfs", &[service]);
            list.add("--remount-ro", &[service]);
        }
        for socket in SOCKETS.iter().filter(|path| Path::new(path).exists()) {
            list.add("--ro-bind", &["/dev/null", socket]);
        }
        list.add("--tmpfs", &[TEMPORARY]);
        list.add("--ro-bind", &[&self.program, &self.program]);
        list.add("--bind", &[root, root]);
        for path in &self.premises.read_only {
            let path = resolved(path);
            if path.exists() {
                list.add("--ro-bind", &[&path, &path]);
            }
        }
        list.add("--tmpfs", &[&resolved(keys)]);
        list.add("--remount-ro", &[&resolved(keys)]);
        list.add("--setenv", &["TMPDIR", TEMPORARY]);
        list.add("--unshare-net", NOTHING);
        list.add("--unshare-ipc", NOTHING);
        list.add("--cap-drop", &["ALL"]);
    }
}

const NOTHING: &[&str] = &[];

#[derive(Default)]
struct Arguments(Vec<OsString>);

impl Arguments {
    fn add(&mut self, option: &str, values: &[impl AsRef<OsStr>]) {
        self.0.push(option.into());
        self.0
            .extend(values.iter().map(|value| value.as_ref().to_owned()));
    }
}

fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// What bubblewrap has to say about why it did not work.
fn complaint(errors: &mut PipeReader) -> String {
    const LONGEST: u64 = 2048;
    let mut text = Vec::new();
    // Whoever holds the other end has ended; should something else hold it, so be it.
    if is_readable_within(errors.as_fd(), Duration::ZERO) {
        let _ = errors.take(LONGEST).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let first = text.lines().next().unwrap_or_default();
    let reason = first.strip_prefix("bwrap: ").unwrap_or(first).trim();
    if reason.is_empty() {
        "it does not say why".to_owned()
    } else {
        reason.to_owned()
    }
}

/// How a build has ended, by the word of who started it inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It could not be started: the system's error number.
    NotStarted(i32),
    /// The sandbox is gone, and the build with it.
    Lost,
}

/// A sandbox that stands. When this is dropped, nothing of it is left.
#[derive(Debug)]
pub struct Inside {
    child: Child,
    /// To this program's part inside, and back.
    line: UnixStream,
    /// What came that is no whole line yet.
    received: Vec<u8>,
}

impl Inside {
    /// Starts `program`, a path without line ends, in the project's root. What it prints goes to `output`.
    ///
    /// # Errors
    /// When the sandbox is gone.
    pub fn start(&self, program: &str, output: &PipeWriter) -> io::Result<()> {
        let fds = [output.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        // The space is made for this.
        let _ = control.push(SendAncillaryMessage::ScmRights(&fds));
        let start = [IoSlice::new(program.as_bytes())];
        sendmsg(&self.line, &start, &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// How the build has ended, if it has.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn ended(&mut self) -> io::Result<Option<Ended>> {
        if !is_readable_within(self.line.as_fd(), Duration::ZERO) {
            return Ok(None);
        }
        Ok(Some(match self.receive()? {
            None => Ended::Lost,
            Some(line) => inside::read(&line).unwrap_or(Ended::Lost),
        }))
    }

    /// Asks the build to end, by a SIGTERM to all of it.
    pub fn ask_to_end(&self) {
        // Fails where nobody is left to ask.
        let _ = self.line.shutdown(Shutdown::Write);
    }

    /// Ends whatever is inside. When this returns, nothing of it is left.
    pub fn end(&mut self) {
        // The kernel ends what is inside when the first process in there ends; then bwrap ends by itself,
        // and leaves no orphan. All of them hold the line.
        if let Some(first) = self.first_process() {
            let _ = kill_process(first, Signal::KILL);
        } else if let Some(group) = pid(self.child.id()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let mut rest = [0; 256];
        while is_readable_within(self.line.as_fd(), TEAR_DOWN)
            && matches!(self.line.read(&mut rest), Ok(1..))
        {}
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The sandbox's first process, which is bwrap's only child.
    fn first_process(&self) -> Option<Pid> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
        pid(children.split_whitespace().next()?.parse().ok()?)
    }

    /// The next line that comes; `None` where nothing will come any more.
    fn receive(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line = self.received.drain(..=end).collect::<Vec<_>>();
                return Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()));
            }
            let mut chunk = [0; 256];
            match self.line.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(amount) => self.received.extend_from_slice(&chunk[..amount]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

impl AsFd for Inside {
    /// Readable when the build has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(strictness: Strictness) -> Sandbox {
        Sandbox {
            bwrap: "/usr/bin/bwrap".into(),
            program: "/usr/bin/code-commit".into(),
            premises: Premises {
                root: "/no/such/project".into(),
                keys: "/no/such/project/agent-config".into(),
                key_files: Vec::new(),
                read_only: Vec::new(),
            },
            strictness,
        }
    }

    fn arguments(strictness: Strictness) -> String {
        let list = sandbox(strictness).arguments();
        let list: Vec<_> = list.iter().map(|word| word.to_string_lossy()).collect();
        list.join(" ")
    }

    #[test]
    fn the_keys_are_put_away_last() {
        let lenient = arguments(Strictness::Lenient);
        assert!(lenient.starts_with("--dev-bind / / --tmpfs /no/such/project/agent-config "));
        let strict = arguments(Strictness::Strict);
        let place = |part: &str| strict.find(part).unwrap();
        let writable = place("--bind /no/such/project /no/such/project");
        assert!(place("--ro-bind / /") < place("--tmpfs /tmp"));
        assert!(place("--tmpfs /tmp") < writable);
        assert!(writable < place("--tmpfs /no/such/project/agent-config"));
        assert!(strict.contains("--unshare-net"));
    }

    #[test]
    fn bwrap_is_not_looked_for_in_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let planted = dir.path().join(BWRAP);
        std::fs::write(&planted, "#!/bin/sh\n").unwrap();
        std::os::unix::fs::PermissionsExt::set_mode(
            &mut planted.metadata().unwrap().permissions(),
            0o755,
        );
        let premises = Premises {
            root: dir.path().to_path_buf(),
            ..sandbox(Strictness::Lenient).premises
        };
        let path = std::env::join_paths([Path::new("."), dir.path()]).unwrap();
        let found = Sandbox::find(
            Some(&path),
            Path::new("/program"),
            premises,
            Strictness::Lenient,
        );
        assert!(matches!(found, Err(SandboxProblem::NotInstalled)));
    }
}
