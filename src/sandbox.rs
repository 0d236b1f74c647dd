//! Shuts a build in, by bubblewrap: `bwrap`, which Linux distributions have.
//!
//! Starts `bwrap` with this program inside it, which starts the build and tells how it ends. Guarantees
//! that a build which was started here sees neither the keys nor other processes; that all of it ends
//! with the sandbox; and, where it is strict, that it has no network and writes to the project alone.

pub mod inside;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, IoSlice, PipeReader, PipeWriter, Read as _};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use rustix::event::PollFlags;
use rustix::fs::{Access, access};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::interrupt::{Interrupt, Interrupted, Woken, is_readable_within};

/// The program that shuts builds in.
const BWRAP: &str = "bwrap";
/// The sandbox's private directory for temporary files.
const TEMPORARY: &str = "/tmp";
/// How long a sandbox may take to stand.
const SET_UP: Duration = Duration::from_secs(10);
/// How long the kernel may take to end what is in it.
const TEAR_DOWN: Duration = Duration::from_secs(2);
/// More than any line has.
const LONGEST_LINE: usize = 4096;
/// What nothing in a lenient sandbox may do though it is root: look under what is put over the keys, get
/// at files or memory past their names, change the kernel.
const FORBIDDEN: [&str; 7] = [
    "CAP_SYS_ADMIN",
    "CAP_SYS_PTRACE",
    "CAP_DAC_READ_SEARCH",
    "CAP_MKNOD",
    "CAP_SYS_RAWIO",
    "CAP_SYS_MODULE",
    "CAP_SYS_BOOT",
];
/// Directories that are empty, and the build's own, in a strict sandbox. Through the sockets in some of
/// them a process could have others do what it may not.
const PRIVATE: [&str; 4] = [TEMPORARY, "/var/tmp", "/dev/shm", "/run"];
/// What of that programs are run from on NixOS.
const NIX_SYSTEM: &str = "/run/current-system";

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
    /// Something is not where it was: what was to be hidden or kept may be somewhere else.
    #[error("`{}` was made, moved or replaced while the run went on", .0.display())]
    Moved(PathBuf),
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
    /// git's folder, which may be missing.
    pub git: PathBuf,
    /// What else nothing inside a strict sandbox may write to.
    pub read_only: Vec<PathBuf>,
}

/// Which file something is: device, inode, and when it was made, since numbers of inodes are given out
/// again.
type Identity = Option<(u64, u64, Option<SystemTime>)>;

/// A way to shut builds in.
#[derive(Debug)]
pub struct Sandbox {
    bwrap: PathBuf,
    /// This program, to be started inside. Open, so that it is the same whatever becomes of its path.
    program: File,
    premises: Premises,
    strictness: Strictness,
    /// What the premises were at the beginning.
    identities: Vec<(PathBuf, Identity)>,
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
        let program = File::open(program)?;
        // It is to be inherited by bwrap, which starts it by its number.
        fcntl_setfd(&program, FdFlags::empty()).map_err(io::Error::from)?;
        Ok(Self {
            bwrap,
            program,
            identities: identities(&premises, strictness),
            premises,
            strictness,
        })
    }

    /// Sees whether what is to be hidden or kept is still where it was.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_premises(&self) -> Result<(), SandboxProblem> {
        let now = identities(&self.premises, self.strictness);
        let is_known = |(path, identity): &&(PathBuf, Identity)| {
            let then = self.identities.iter().find(|(known, _)| known == path);
            then.is_some_and(|(_, then)| then == identity)
        };
        let is_there =
            |(path, _): &&(PathBuf, Identity)| now.iter().any(|(known, _)| known == path);
        let changed = now.iter().find(|found| !is_known(found));
        let gone = || self.identities.iter().find(|known| !is_there(known));
        match changed.or_else(gone) {
            Some((path, _)) => Err(SandboxProblem::Moved(path.clone())),
            None => Ok(()),
        }
    }

    /// Sees whether it works.
    ///
    /// # Errors
    /// When it does not.
    pub fn try_out(&self, interrupt: &Interrupt) -> Result<(), SandboxProblem> {
        self.enter(interrupt, &[]).map(drop)
    }

    /// Starts the sandbox, with nothing in it yet. The variables in `hidden` are not in its environment.
    ///
    /// # Errors
    /// When it does not work here.
    pub fn enter(
        &self,
        interrupt: &Interrupt,
        hidden: &[OsString],
    ) -> Result<Inside, SandboxProblem> {
        self.check_premises()?;
        let (line, theirs) = UnixStream::pair()?;
        line.set_nonblocking(true)?;
        let (mut errors, complaints) = io::pipe()?;
        let mut command = Command::new(&self.bwrap);
        command
            .args(self.arguments())
            .arg("--")
            .arg(format!("/proc/self/fd/{}", self.program.as_raw_fd()))
            .arg(inside::COMMAND)
            .current_dir(&self.premises.root)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(complaints)
            .process_group(0);
        for variable in hidden {
            command.env_remove(variable);
        }
        let child = command.spawn()?;
        // It holds the pipe's other end.
        drop(command);
        let mut inside = Inside {
            child,
            over: false,
            line,
            received: Vec::new(),
        };
        if inside.greeting(interrupt)? {
            return Ok(inside);
        }
        inside.end();
        Err(SandboxProblem::Unusable(complaint(&mut errors)))
    }

    /// bubblewrap's arguments, in the order in which they are carried out.
    fn arguments(&self) -> Vec<OsString> {
        let mut list = Arguments::default();
        match self.strictness {
            Strictness::Lenient => {
                list.add("--dev-bind", &["/", "/"]);
                // What is mounted cannot be renamed.
                let root = &self.premises.root;
                list.add("--dev-bind", &[root, root]);
                list.add("--tmpfs", &[&resolved(&self.premises.keys)]);
                list.add("--proc", &["/proc"]);
                for capability in FORBIDDEN {
                    list.add("--cap-drop", &[capability]);
                }
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
        // The kernel's settings are the whole machine's.
        list.add("--ro-bind", &["/proc/sys", "/proc/sys"]);
        list.add("--unshare-pid", NOTHING);
        // This program's part inside is the first process in there: what it holds, nobody else holds, and
        // no signal from inside ends it.
        list.add("--as-pid-1", NOTHING);
        // Who shares a terminal with others can type for them.
        list.add("--new-session", NOTHING);
        list.add("--die-with-parent", NOTHING);
        list.add("--chdir", &[&self.premises.root]);
        list.0
    }

    fn add_strict(&self, list: &mut Arguments) {
        let Premises { root, keys, .. } = &self.premises;
        list.add("--ro-bind", &["/", "/"]);
        list.add("--dev", &["/dev"]);
        list.add("--remount-ro", &["/dev"]);
        list.add("--proc", &["/proc"]);
        for directory in PRIVATE.iter().filter(|path| Path::new(path).is_dir()) {
            list.add("--tmpfs", &[directory]);
        }
        if Path::new(NIX_SYSTEM).exists() {
            list.add("--ro-bind", &[NIX_SYSTEM, NIX_SYSTEM]);
        }
        list.add("--bind", &[root, root]);
        let nested = nested_repositories(root);
        let all_git = std::iter::once(&self.premises.git).chain(&nested);
        let linked: Vec<PathBuf> = all_git.clone().filter_map(|git| linked_git(git)).collect();
        for path in all_git.chain(&linked).chain(&self.premises.read_only) {
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

/// What must stay what and where it is, for as long as a run goes on.
fn identities(premises: &Premises, strictness: Strictness) -> Vec<(PathBuf, Identity)> {
    let identity = |metadata: io::Result<Metadata>| {
        let metadata = metadata.ok()?;
        Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
    };
    let mut identities: Vec<(PathBuf, Identity)> = [&premises.root, &premises.keys]
        .into_iter()
        .chain(&premises.key_files)
        .map(|path| (path.clone(), identity(path.metadata())))
        .collect();
    if strictness == Strictness::Strict {
        let git = &premises.git;
        identities.push((git.clone(), identity(git.symlink_metadata())));
        for git in nested_repositories(&premises.root) {
            let found = identity(git.symlink_metadata());
            identities.push((git, found));
        }
    }
    identities
}

/// git's folders and links to such in other places of the project, sorted: their hooks and settings are
/// run like its own. What builds make in `target` is theirs.
fn nested_repositories(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        let is_root = directory == root;
        // What cannot be read now, cannot be looked into by the build either.
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let name = entry.file_name();
            if name == ".git" {
                if !is_root {
                    found.push(entry.path());
                }
            } else if is_directory && !(is_root && name == "target") {
                pending.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// The folder that a `.git` file names, if it is one.
fn linked_git(git: &Path) -> Option<PathBuf> {
    if !git.is_file() {
        return None;
    }
    let content = fs::read_to_string(git).ok()?;
    let folder = content.strip_prefix("gitdir:")?.trim();
    Some(git.parent()?.join(folder))
}

fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

/// What bubblewrap has to say about why it did not work.
fn complaint(errors: &mut PipeReader) -> String {
    let mut text = vec![0; 2048];
    let mut length = 0;
    // One read: should something else still hold the other end, it is not waited for.
    if is_readable_within(errors.as_fd(), Duration::ZERO) {
        length = errors.read(&mut text).unwrap_or_default();
    }
    let text = String::from_utf8_lossy(&text[..length]);
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
    /// Whether all of it has been ended.
    over: bool,
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

    /// Waits for the word that the sandbox stands; `false` where it does not.
    fn greeting(&mut self, interrupt: &Interrupt) -> Result<bool, SandboxProblem> {
        loop {
            match self.receive()? {
                Received::Line(line) => return Ok(line == inside::READY),
                Received::End => return Ok(false),
                Received::NotYet => {}
            }
            match interrupt.poll(&[self.line.as_fd()], PollFlags::IN, Some(SET_UP)) {
                Ok(Woken::Ready) => {}
                Ok(Woken::TimedOut) => return Ok(false),
                Err(error) => {
                    interrupt.check()?;
                    return Err(error.into());
                }
            }
        }
    }

    /// How the build has ended, if it has.
    ///
    /// # Errors
    /// When that cannot be told.
    pub fn ended(&mut self) -> io::Result<Option<Ended>> {
        Ok(match self.receive()? {
            Received::NotYet => None,
            Received::End => Some(Ended::Lost),
            Received::Line(line) => Some(inside::from_line(&line).unwrap_or(Ended::Lost)),
        })
    }

    /// Asks the build to end, by a SIGTERM to all of it.
    pub fn ask_to_end(&self) {
        // Fails where nobody is left to ask.
        let _ = self.line.shutdown(Shutdown::Write);
    }

    /// Ends whatever is inside. When this returns, nothing of it is left.
    pub fn end(&mut self) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
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

    /// The next line, if it is there.
    fn receive(&mut self) -> io::Result<Received> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line = self.received.drain(..=end).collect::<Vec<_>>();
                let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                return Ok(Received::Line(line));
            }
            let mut chunk = [0; 256];
            match self.line.read(&mut chunk) {
                // Nobody of ours says as much.
                _ if self.received.len() > LONGEST_LINE => return Ok(Received::End),
                Ok(0) => return Ok(Received::End),
                Ok(amount) => self.received.extend_from_slice(&chunk[..amount]),
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return Ok(Received::NotYet),
                    io::ErrorKind::ConnectionReset => return Ok(Received::End),
                    _ => return Err(error),
                },
            }
        }
    }
}

/// What came from inside.
enum Received {
    Line(String),
    /// Nothing, or not all of a line.
    NotYet,
    /// Nothing will come any more.
    End,
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
            program: tempfile::tempfile().unwrap(),
            premises: Premises {
                root: "/no/such/project".into(),
                keys: "/no/such/project/agent-config".into(),
                key_files: Vec::new(),
                git: "/no/such/project/.git".into(),
                read_only: Vec::new(),
            },
            strictness,
            identities: Vec::new(),
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
        assert!(lenient.starts_with(
            "--dev-bind / / --dev-bind /no/such/project /no/such/project --tmpfs /no/such/project/agent-config "
        ));
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
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&planted, permissions).unwrap();
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
