//! Sandboxes builds and commands, by bubblewrap: `bwrap`, which Linux distributions have.
//!
//! Starts `bwrap` with this program inside it, which starts the command and tells how it ends. Guarantees
//! that a command which was started here sees neither the keys nor other processes; that all of it ends
//! with the sandbox; and, where it is strict, that it has no network and writes to the project alone.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::{self, PipeReader, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use clap::ValueEnum;
use rustix::fs::{Access, access};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

use super::hosts::AllowedHost;
use super::proxy::HostProxy;
use super::supervised_child::SupervisedChild;
use super::supervisor::SupervisorPlace;
use crate::sys::files::{Links, MIB, open, read};
use crate::sys::interrupt::{Interrupt, Interrupted, is_readable_within};

/// The program that makes sandboxes.
const BWRAP: &str = "bwrap";
/// The sandbox's private directory for temporary files.
const TEMPORARY: &str = "/tmp";
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

/// How far builds and commands are sandboxed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Away from keys and other processes, where that is possible
    Auto,
    /// Away from the network and the rest of the disk too; else nothing is run
    Strict,
    /// Not at all
    #[default]
    Off,
}

/// Why a command cannot be sandboxed.
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

/// What is to be sandboxed, and away from what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxPolicy {
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
type FileIdentity = Option<(u64, u64, Option<SystemTime>)>;

/// Where a key file leads, and the directory there.
#[derive(Debug, PartialEq, Eq)]
struct KeyTarget {
    target: PathBuf,
    directory: FileIdentity,
}

/// A way to sandbox commands.
#[derive(Debug)]
pub struct Sandbox {
    bwrap: PathBuf,
    /// This program, to be started inside. Open, so that it is the same whatever becomes of its path.
    program: File,
    policy: SandboxPolicy,
    mode: SandboxMode,
    /// What the paths of the policy were at the beginning.
    identities: BTreeMap<PathBuf, FileIdentity>,
    /// Of the key files, then.
    key_targets: Vec<KeyTarget>,
    /// Whether repositories may come up in the project while a run goes on: they cannot be written to from then on.
    /// Else nothing is sandboxed any more.
    keeps_new_repositories: bool,
    /// What a strict one may reach of the network.
    proxy: Option<Arc<HostProxy>>,
}

impl Sandbox {
    /// Looks for `bwrap` in the directories of `path`; relative ones, and those in the project, are
    /// passed over. `mode` is not to be [`SandboxMode::Off`], which is taken for the lenient one.
    ///
    /// # Errors
    /// When it is not there.
    pub fn find(
        path: Option<&OsStr>,
        program: &Path,
        policy: SandboxPolicy,
        mode: SandboxMode,
    ) -> Result<Self, SandboxProblem> {
        let trusted =
            |directory: &PathBuf| directory.is_absolute() && !directory.starts_with(&policy.root);
        let bwrap = std::env::split_paths(path.unwrap_or_default())
            .filter(trusted)
            .map(|directory| directory.join(BWRAP))
            .find(|file| file.is_file() && access(file, Access::EXEC_OK).is_ok());
        let Some(bwrap) = bwrap else {
            return Err(SandboxProblem::NotInstalled);
        };
        let program = open(program, Links::Followed)?;
        // It is to be inherited by bwrap, which starts it by its number.
        fcntl_setfd(&program, FdFlags::empty()).map_err(io::Error::from)?;
        Ok(Self {
            bwrap,
            program,
            identities: identities(&policy, mode),
            key_targets: policy.key_files.iter().map(key_target).collect(),
            policy,
            mode,
            keeps_new_repositories: false,
            proxy: None,
        })
    }

    /// The same whose commands may reach these hosts, if it is a strict one, and no others.
    #[must_use]
    pub fn with_hosts(self, hosts: &[AllowedHost]) -> Self {
        let is_strict = self.mode == SandboxMode::Strict && !hosts.is_empty();
        Self {
            proxy: is_strict.then(|| Arc::new(HostProxy::new(hosts))),
            ..self
        }
    }

    /// Which connections were refused since this was asked last: each once, in sentences without an end.
    pub fn new_refusals(&self) -> Vec<String> {
        let proxy = self.proxy.as_ref();
        proxy.map_or_else(Vec::new, |proxy| proxy.new_refusals())
    }

    /// The same for commands that may make repositories below the project's root. What was made cannot be
    /// written to by those that come later.
    #[must_use]
    pub fn with_new_repositories(self) -> Self {
        Self {
            keeps_new_repositories: true,
            ..self
        }
    }

    /// Sees whether what is to be hidden or kept is still where it was.
    ///
    /// # Errors
    /// When it is not.
    pub fn check_unmoved(&self) -> Result<(), SandboxProblem> {
        let now = identities(&self.policy, self.mode);
        let is_changed = |path: &&PathBuf| match self.identities.get(*path) {
            Some(then) => now.get(*path) != Some(then),
            // All else was looked at in the beginning, whether it was there or not.
            None => !self.keeps_new_repositories,
        };
        match self.identities.keys().chain(now.keys()).find(is_changed) {
            Some(path) => Err(SandboxProblem::Moved(path.clone())),
            None => Ok(()),
        }
    }

    /// Takes the key files for what they are now, as far as they are where they were: their user has saved
    /// them. To be called while nothing is sandboxed. Nothing that was sandboxed can have done that: it cannot
    /// rename over what is mounted, and what it can do, to carry off a file's directory or lead a link to
    /// somewhere else, is still noticed.
    pub fn renew(&mut self) {
        for (file, then) in self.policy.key_files.iter().zip(&self.key_targets) {
            if let Some(known) = self.identities.get_mut(file)
                && key_target(file) == *then
            {
                *known = identity(file.metadata());
            }
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
    pub(super) fn enter(
        &self,
        interrupt: &Interrupt,
        hidden: &[OsString],
    ) -> Result<SupervisedChild, SandboxProblem> {
        self.check_unmoved()?;
        let (mut errors, complaints) = io::pipe()?;
        let mut command = Command::new(&self.bwrap);
        command
            .args(self.arguments())
            .arg("--")
            .arg(format!("/proc/self/fd/{}", self.program.as_raw_fd()))
            .stderr(complaints);
        let root = &self.policy.root;
        match SupervisedChild::spawn(command, SupervisorPlace::Sandbox, root, hidden, interrupt) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                Err(SandboxProblem::Unusable(complaint(&mut errors)))
            }
            Err(error) => {
                interrupt.check()?;
                Err(error.into())
            }
            Ok(child) => Ok(child.with_proxy(self.proxy.clone())),
        }
    }

    /// bubblewrap's arguments, in the order in which they are carried out.
    fn arguments(&self) -> Vec<OsString> {
        let mut list = Vec::new();
        match self.mode {
            SandboxMode::Auto | SandboxMode::Off => {
                add(&mut list, "--dev-bind", &["/", "/"]);
                // What is mounted cannot be renamed.
                let root = &self.policy.root;
                add(&mut list, "--dev-bind", &[root, root]);
                add(&mut list, "--tmpfs", &[&resolved(&self.policy.keys)]);
                add(&mut list, "--proc", &["/proc"]);
                for capability in FORBIDDEN {
                    add(&mut list, "--cap-drop", &[capability]);
                }
            }
            SandboxMode::Strict => self.add_strict(&mut list),
        }
        // A link among the key files leads out of the folder that is hidden.
        for key in &self.policy.key_files {
            let target = resolved(key);
            if target.exists() && !target.starts_with(resolved(&self.policy.keys)) {
                add(&mut list, "--ro-bind", &[Path::new("/dev/null"), &target]);
            }
        }
        // The kernel's settings are the whole machine's.
        add(&mut list, "--ro-bind", &["/proc/sys", "/proc/sys"]);
        // This program's part inside is the first process in there: what it holds, nobody else holds, and
        // no signal from inside ends it.
        add(&mut list, "--unshare-pid", &["--as-pid-1"]);
        // Who shares a terminal with others can type for them.
        add(&mut list, "--new-session", &["--die-with-parent"]);
        add(&mut list, "--chdir", &[&self.policy.root]);
        list
    }

    fn add_strict(&self, list: &mut Vec<OsString>) {
        let SandboxPolicy { root, keys, .. } = &self.policy;
        add(list, "--ro-bind", &["/", "/"]);
        add(list, "--dev", &["/dev"]);
        add(list, "--remount-ro", &["/dev"]);
        add(list, "--proc", &["/proc"]);
        for directory in PRIVATE.iter().filter(|path| Path::new(path).is_dir()) {
            add(list, "--tmpfs", &[directory]);
        }
        if Path::new(NIX_SYSTEM).exists() {
            add(list, "--ro-bind", &[NIX_SYSTEM, NIX_SYSTEM]);
        }
        add(list, "--bind", &[root, root]);
        let nested = nested_repositories(root).into_iter();
        let (old, new): (Vec<PathBuf>, Vec<PathBuf>) =
            nested.partition(|git| self.identities.contains_key(git));
        let old = with_linked(std::iter::once(&self.policy.git).chain(&old));
        for path in old.iter().chain(&self.policy.read_only) {
            let path = resolved(path);
            if path.exists() {
                add(list, "--ro-bind", &[&path, &path]);
            }
        }
        for path in with_linked(&new) {
            let path = resolved(&path);
            // The command that has made it is not to be shown anything by a link.
            if path.starts_with(root) {
                // What still runs may remove it meanwhile.
                add(list, "--ro-bind-try", &[&path, &path]);
            }
        }
        add(list, "--tmpfs", &[&resolved(keys)]);
        add(list, "--remount-ro", &[&resolved(keys)]);
        add(list, "--setenv", &["TMPDIR", TEMPORARY]);
        add(list, "--unshare-net", &["--unshare-ipc"]);
        for variable in self.proxy.iter().flat_map(|proxy| proxy.variables()) {
            add(list, "--setenv", &variable);
        }
        add(list, "--cap-drop", &["ALL"]);
    }
}

fn add(list: &mut Vec<OsString>, option: &str, values: &[impl AsRef<OsStr>]) {
    list.push(option.into());
    list.extend(values.iter().map(|value| value.as_ref().to_owned()));
}

fn identity(metadata: io::Result<Metadata>) -> FileIdentity {
    let metadata = metadata.ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.created().ok()))
}

fn key_target(key_file: impl AsRef<Path>) -> KeyTarget {
    let target = resolved(key_file.as_ref());
    let directory = target.parent().unwrap_or(&target);
    KeyTarget {
        directory: identity(directory.metadata()),
        target,
    }
}

/// What must stay what and where it is, for as long as a run goes on.
fn identities(policy: &SandboxPolicy, mode: SandboxMode) -> BTreeMap<PathBuf, FileIdentity> {
    let mut identities: BTreeMap<PathBuf, FileIdentity> = [&policy.root, &policy.keys]
        .into_iter()
        .chain(&policy.key_files)
        .map(|path| (path.clone(), identity(path.metadata())))
        .collect();
    if mode == SandboxMode::Strict {
        let nested = nested_repositories(&policy.root);
        for git in [policy.git.clone()].into_iter().chain(nested) {
            let found = identity(git.symlink_metadata());
            identities.insert(git, found);
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

/// These, and the folders that those of them name which are files.
fn with_linked<'g>(all_git: impl IntoIterator<Item = &'g PathBuf>) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = all_git.into_iter().cloned().collect();
    let linked: Vec<PathBuf> = found.iter().filter_map(|git| linked_git(git)).collect();
    found.extend(linked);
    found
}

/// The folder that a `.git` file names, if it is one.
fn linked_git(git: &Path) -> Option<PathBuf> {
    let content = String::from_utf8(read(git, Links::Refused, MIB).ok()?).ok()?;
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
    match reason {
        "" => "it does not say why".to_owned(),
        reason => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(mode: SandboxMode) -> Sandbox {
        Sandbox {
            bwrap: "/usr/bin/bwrap".into(),
            program: tempfile::tempfile().unwrap(),
            policy: SandboxPolicy {
                root: "/no/such/project".into(),
                keys: "/no/such/project/agent-config".into(),
                key_files: Vec::new(),
                git: "/no/such/project/.git".into(),
                read_only: Vec::new(),
            },
            mode,
            identities: BTreeMap::new(),
            key_targets: Vec::new(),
            keeps_new_repositories: false,
            proxy: None,
        }
    }

    fn arguments(mode: SandboxMode) -> String {
        let list = sandbox(mode).arguments();
        let list: Vec<_> = list.iter().map(|word| word.to_string_lossy()).collect();
        list.join(" ")
    }

    #[test]
    fn the_keys_are_put_away_last() {
        let lenient = arguments(SandboxMode::Auto);
        assert!(lenient.starts_with(
            "--dev-bind / / --dev-bind /no/such/project /no/such/project --tmpfs /no/such/project/agent-config "
        ));
        let strict = arguments(SandboxMode::Strict);
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
        let policy = SandboxPolicy {
            root: dir.path().to_path_buf(),
            ..sandbox(SandboxMode::Auto).policy
        };
        let path = std::env::join_paths([Path::new("."), dir.path()]).unwrap();
        let found = Sandbox::find(
            Some(&path),
            Path::new("/program"),
            policy,
            SandboxMode::Auto,
        );
        assert!(matches!(found, Err(SandboxProblem::NotInstalled)));
    }
}
