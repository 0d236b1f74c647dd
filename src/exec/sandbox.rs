//! Sandboxes builds and commands, by bubblewrap: `bwrap`, which Linux distributions have.
//!
//! Starts `bwrap` with this program inside it, which starts the command and tells how it ends. Guarantees
//! that a command which was started here sees neither the keys, under whatever name the folder is mounted, nor other
//! processes; that it writes neither to what is protected, nor to git's settings and hooks, nor to this program's
//! own files; that it has no known service of the user's run anything outside; that all of it ends with the sandbox; and, where it is strict, that it has no network, reaches no service of the machine, sees no
//! credentials in their known places, and writes to the project alone.

mod arguments;
mod elsewhere;
mod mounts;
mod policy;
mod repositories;
pub mod services;
#[cfg(target_os = "linux")]
mod syscalls;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use rustix::fs::{Access, access};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

use self::arguments::{add, add_empty, add_read_only};
use self::mounts::MountTable;
pub use self::policy::SandboxPolicy;
use self::policy::own_files;
pub use self::repositories::settings;
use self::repositories::{Nested, with_linked};
use self::targets::{KeyTarget, key_target, present, resolved};
use super::child_env::ChildEnv;
use super::hosts::AllowedHost;
use super::proxy::HostProxy;
use super::supervised_child::SupervisedChild;
use super::supervisor::SupervisorPlace;
use crate::sys::files::{Links, open};
use crate::sys::identity::{FileIdentity, identity};
use crate::sys::interrupt::{Interrupt, Interrupted, is_readable_within};

/// The program that makes sandboxes.
const BWRAP: &str = "bwrap";
/// The sandbox's private directory for temporary files.
const TEMPORARY: &str = "/tmp";
/// Capabilities denied to everything in a lenient sandbox, even to root: looking under the mounts that cover the keys,
/// reaching files or memory other than by name, changing the kernel.
const FORBIDDEN: &str = "CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_MKNOD CAP_SYS_RAWIO \
    CAP_SYS_MODULE CAP_SYS_BOOT";
/// Directories that are empty, and the build's own, in a strict sandbox. Through the sockets in some of
/// them a process could have others do what it may not.
const PRIVATE: [&str; 4] = [TEMPORARY, "/var/tmp", "/dev/shm", "/run"];
/// The directory below `/run` that programs run from on NixOS.
const NIX_SYSTEM: &str = "/run/current-system";

/// The extent to which builds and commands are sandboxed.
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

/// The way out where there is no sandbox.
const MEND: &str = "mend the cause, or use `--sandbox off`";

/// Why a command cannot be sandboxed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SandboxProblem {
    /// There is no `bwrap`.
    #[error("bubblewrap (`bwrap`) is not installed")]
    #[diagnostic(help("{MEND}"))]
    NotInstalled,
    /// It is there, and does not work here.
    #[error("bubblewrap does not work here: {0}")]
    #[diagnostic(help("{MEND}"))]
    Unusable(String),
    /// Something is not where it was: what was to be hidden or kept may be somewhere else.
    #[error("`{}` was made, moved or replaced while the run went on", .0.display())]
    #[diagnostic(help(
        "see who did that, build.sh or a command perhaps, and put it back as it was"
    ))]
    Moved(PathBuf),
    /// The system refused something else.
    #[error("bubblewrap cannot be started: {0}")]
    #[diagnostic(help("{MEND}"))]
    Io(#[from] io::Error),
    /// A signal came.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
}

/// A way to sandbox commands.
#[derive(Debug)]
pub struct Sandbox {
    bwrap: PathBuf,
    /// This program, to be started inside. Open, so that it is the same whatever becomes of its path.
    program: File,
    /// Its path, and those of its other names beside it: nothing inside may write there.
    own: Vec<PathBuf>,
    policy: SandboxPolicy,
    mode: SandboxMode,
    /// Other paths that must stay as they are, existing or not: directories that are hidden, and settings that git
    /// would take from new files.
    watched: Vec<PathBuf>,
    /// The keys of other projects in this one.
    nested_keys: Vec<PathBuf>,
    /// The identities of the policy's paths at the start.
    identities: BTreeMap<PathBuf, FileIdentity>,
    /// Where the key files led then.
    key_targets: Vec<KeyTarget>,
    /// True if repositories may appear in the project during a run: they become read-only at once. Otherwise nothing is
    /// sandboxed from then on.
    keeps_new_repositories: bool,
    /// The proxy through which a strict sandbox reaches the network.
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
        let own = own_files(program);
        let program = open(program, Links::Followed)?;
        // It is to be inherited by bwrap, which starts it by its number.
        fcntl_setfd(&program, FdFlags::empty()).map_err(io::Error::from)?;
        let nested = Nested::find(&policy.root, &policy.keys);
        let mut sandbox = Self {
            bwrap,
            program,
            own,
            watched: watched(&policy, mode, &nested),
            nested_keys: nested.keys,
            identities: BTreeMap::new(),
            key_targets: policy.key_files.iter().map(key_target).collect(),
            policy,
            mode,
            keeps_new_repositories: false,
            proxy: None,
        };
        sandbox.identities = sandbox.identities_with(nested.repositories);
        Ok(sandbox)
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
        let repositories = match self.mode {
            SandboxMode::Strict => self.nested_repositories(),
            SandboxMode::Auto | SandboxMode::Off => Vec::new(),
        };
        let now = self.identities_with(repositories);
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

    fn nested_repositories(&self) -> Vec<PathBuf> {
        Nested::find(&self.policy.root, &self.policy.keys).repositories
    }

    /// Returns the identities of everything that must stay what and where it is during a run; `repositories` count in a
    /// strict sandbox only.
    fn identities_with(&self, repositories: Vec<PathBuf>) -> BTreeMap<PathBuf, FileIdentity> {
        let policy = &self.policy;
        let places = [&policy.root, &policy.keys].into_iter();
        let mut identities: BTreeMap<PathBuf, FileIdentity> = places
            .chain(&policy.key_files)
            .map(|path| (path.clone(), identity(path.metadata())))
            .collect();
        let mut links = self.watched.clone();
        if self.mode == SandboxMode::Strict {
            links.push(policy.git.clone());
            links.extend(repositories);
        }
        identities.extend(links.into_iter().map(|path| {
            let found = identity(path.symlink_metadata());
            (path, found)
        }));
        identities
    }

    /// Takes the key files for what they are now, as far as they are where they were: their user has saved
    /// them. To be called while nothing is sandboxed. Nothing that was sandboxed can have done that: it cannot
    /// rename over what is mounted, and what it can do, to carry off a file's directory or lead a link to
    /// somewhere else, is still noticed.
    pub fn renew(&mut self) {
        let keys = self.policy.key_files.iter().zip(&self.key_targets);
        for (file, _) in keys.filter(|(file, then)| key_target(file) == **then) {
            self.identities
                .insert(file.clone(), identity(file.metadata()));
        }
    }

    /// Sees whether it works.
    ///
    /// # Errors
    /// When it does not.
    pub fn try_out(&self, interrupt: &Interrupt) -> Result<(), SandboxProblem> {
        self.enter(interrupt, &ChildEnv::default()).map(drop)
    }

    /// Starts the sandbox, with nothing in it yet.
    ///
    /// # Errors
    /// When it does not work here.
    pub(super) fn enter(
        &self,
        interrupt: &Interrupt,
        env: &ChildEnv,
    ) -> Result<SupervisedChild, SandboxProblem> {
        self.check_unmoved()?;
        let mut arguments = self.arguments();
        loop {
            match self.enter_with(&arguments, interrupt, env) {
                // Other projects, say, may have come or gone meanwhile.
                Err(SandboxProblem::Unusable(reason)) => {
                    let before = std::mem::replace(&mut arguments, self.arguments());
                    if before == arguments {
                        return Err(SandboxProblem::Unusable(reason));
                    }
                }
                entered => return entered,
            }
        }
    }

    fn enter_with(
        &self,
        arguments: &[OsString],
        interrupt: &Interrupt,
        env: &ChildEnv,
    ) -> Result<SupervisedChild, SandboxProblem> {
        let (mut errors, complaints) = io::pipe()?;
        let mut command = Command::new(&self.bwrap);
        command.args(arguments);
        #[cfg(target_os = "linux")]
        let _inherited = self.add_filter(&mut command)?;
        command
            .arg("--")
            .arg(format!("/proc/self/fd/{}", self.program.as_raw_fd()))
            .stderr(complaints);
        let root = &self.policy.root;
        match SupervisedChild::spawn(command, SupervisorPlace::Sandbox, root, env, interrupt) {
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

    /// Has bubblewrap filter system calls, where it is strict; what it reads must be open until it is started.
    #[cfg(target_os = "linux")]
    fn add_filter(&self, command: &mut Command) -> io::Result<Option<PipeReader>> {
        if self.mode != SandboxMode::Strict {
            return Ok(None);
        }
        let (reader, mut writer) = io::pipe()?;
        // A pipe holds more than this.
        writer.write_all(&syscalls::filter()?)?;
        fcntl_setfd(&reader, FdFlags::empty())?;
        let number = reader.as_raw_fd().to_string();
        command.args(["--seccomp", &number]);
        Ok(Some(reader))
    }

    /// bubblewrap's arguments, in the order in which they are carried out.
    fn arguments(&self) -> Vec<OsString> {
        let mut list = Vec::new();
        let mounts = MountTable::read();
        let others = elsewhere::other_projects(&self.policy.root, &self.policy.keys);
        match self.mode {
            SandboxMode::Auto | SandboxMode::Off => self.add_lenient(&mut list, &mounts, &others),
            SandboxMode::Strict => self.add_strict(&mut list, &mounts, &others),
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

    fn add_lenient(&self, list: &mut Vec<OsString>, mounts: &MountTable, others: &[PathBuf]) {
        let SandboxPolicy { root, git, .. } = &self.policy;
        add(list, "--dev-bind", &["/", "/"]);
        // What is mounted cannot be renamed.
        let services = self.hidden_services();
        let sockets = services.iter().filter(|path| !path.is_dir());
        let directories: BTreeSet<_> = sockets.filter_map(|path| path.parent()).collect();
        for directory in directories {
            add(list, "--dev-bind-try", &[directory, directory]);
        }
        add(list, "--dev-bind", &[root, root]);
        if let Some(directory) = self.own_directory() {
            add(list, "--dev-bind-try", &[directory, directory]);
        }
        for folder in with_linked([git]).iter().map(|path| resolved(path)) {
            if folder.is_dir() {
                add(list, "--dev-bind", &[&folder, &folder]);
            }
        }
        for other in others {
            let project = other.parent().unwrap_or(other);
            if !root.starts_with(project) {
                add(list, "--dev-bind-try", &[project, project]);
            }
        }
        let closed = [self.inside(), self.policy.read_only.clone()];
        add_read_only(list, mounts, &closed.concat());
        self.add_services(list, mounts, &services);
        self.add_hidden(list, mounts, others);
        add(list, "--proc", &["/proc"]);
        for capability in FORBIDDEN.split(' ') {
            add(list, "--cap-drop", &[capability]);
        }
    }

    fn add_strict(&self, list: &mut Vec<OsString>, mounts: &MountTable, others: &[PathBuf]) {
        let root = &self.policy.root;
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
        if let Some(directory) = self.own_directory().filter(|own| own.starts_with(root)) {
            add(list, "--bind-try", &[directory, directory]);
        }
        let nested = self.nested_repositories().into_iter();
        let (old, new): (Vec<PathBuf>, Vec<PathBuf>) =
            nested.partition(|git| self.identities.contains_key(git));
        let mut closed = with_linked(std::iter::once(&self.policy.git).chain(&old));
        // A file in the project names a folder elsewhere: what is no repository is not to be shown again.
        closed.retain(|path| resolved(path).starts_with(root) || path.join("HEAD").is_file());
        closed.extend(present(&self.inside()).filter(|path| path.starts_with(root)));
        closed.extend_from_slice(&self.policy.read_only);
        add_read_only(list, mounts, &closed);
        for path in with_linked(&new) {
            let path = resolved(&path);
            // The command that has made it is not to be shown anything by a link.
            if path.starts_with(root) {
                // What still runs may remove it meanwhile.
                add(list, "--ro-bind-try", &[&path, &path]);
            }
        }
        self.add_hidden(list, mounts, others);
        add(list, "--setenv", &["TMPDIR", TEMPORARY]);
        add(list, "--unshare-net", &["--unshare-ipc"]);
        for variable in self.proxy.iter().flat_map(|proxy| proxy.variables()) {
            add(list, "--setenv", &variable);
        }
        add(list, "--cap-drop", &["ALL"]);
    }

    /// What git runs, what judges a build, and this program.
    fn inside(&self) -> Vec<PathBuf> {
        let policy = &self.policy;
        [&*policy.settings(), &policy.protected, &self.own].concat()
    }

    /// The directory of this program's own files, unless the project is in there.
    fn own_directory(&self) -> Option<&Path> {
        let directory = self.own.first()?.parent()?;
        (!self.policy.root.starts_with(directory)).then_some(directory)
    }

    /// Has everything empty that is hidden, by whatever name. Later than all else: nothing is to show it again.
    fn add_hidden(&self, list: &mut Vec<OsString>, mounts: &MountTable, others: &[PathBuf]) {
        let hidden = self.hidden(others).into_iter();
        for name in hidden.flat_map(|path| mounts.names(&path)) {
            let is_directory = add_empty(list, &name);
            if is_directory && self.mode == SandboxMode::Strict {
                add(list, "--remount-ro", &[&name]);
            }
        }
    }

    /// The user's services that are there, but for those that are allowed.
    fn hidden_services(&self) -> Vec<PathBuf> {
        let mut found = services::found(&self.policy.services);
        let allowed = self.allowed_sockets();
        found.retain(|path| {
            let is_allowed = allowed.iter().any(|socket| path.starts_with(socket));
            !is_allowed && !self.policy.root.starts_with(path)
        });
        found
    }

    fn allowed_sockets(&self) -> Vec<PathBuf> {
        let sockets = self.policy.allowed_sockets.iter();
        sockets.map(|path| resolved(path)).collect()
    }

    /// Hides these services. A strict sandbox need not: no socket leads out of it.
    fn add_services(&self, list: &mut Vec<OsString>, mounts: &MountTable, services: &[PathBuf]) {
        for name in services.iter().flat_map(|path| mounts.names(path)) {
            add_empty(list, &name);
        }
        let is_hidden = |socket: &&PathBuf| services.iter().any(|path| socket.starts_with(path));
        for socket in self.allowed_sockets().iter().filter(is_hidden) {
            add(list, "--bind-try", &[socket, socket]);
        }
    }

    /// Returns the hidden paths, with links resolved: a link among the key files leads out of the folder with the keys.
    fn hidden(&self, others: &[PathBuf]) -> Vec<PathBuf> {
        let SandboxPolicy { root, keys, .. } = &self.policy;
        let mut wanted = self.policy.hidden.clone();
        wanted.extend(self.nested_keys.iter().cloned());
        wanted.extend_from_slice(others);
        if let (SandboxMode::Strict, Some(home)) = (self.mode, &self.policy.home) {
            wanted.extend(elsewhere::credentials(home));
        }
        wanted.extend(self.policy.key_files.iter().cloned());
        let mut hidden = vec![resolved(keys)];
        for path in wanted.iter().map(|path| resolved(path)) {
            let is_hidden = hidden.iter().any(|directory| path.starts_with(directory));
            // A directory that holds the project cannot be empty.
            if path.exists() && !is_hidden && !root.starts_with(&path) {
                hidden.push(path);
            }
        }
        hidden
    }
}

/// Returns the paths outside the policy that must stay as they are.
fn watched(policy: &SandboxPolicy, mode: SandboxMode, nested: &Nested) -> Vec<PathBuf> {
    let directories = policy.hidden.iter().map(|path| resolved(path));
    let mut watched: Vec<PathBuf> = directories.filter(|path| path.is_dir()).collect();
    watched.extend(nested.keys.iter().cloned());
    // A strict sandbox lets nobody write beside them.
    if mode != SandboxMode::Strict {
        let settings = policy.settings().into_iter();
        watched.extend(settings.filter(|path| path.symlink_metadata().is_err()));
    }
    watched
}

/// Returns bubblewrap's own message on why it failed.
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
            own: Vec::new(),
            policy: SandboxPolicy {
                root: "/no/such/project".into(),
                keys: "/no/such/project/agent-config".into(),
                git: "/no/such/project/.git".into(),
                ..SandboxPolicy::default()
            },
            mode,
            watched: Vec::new(),
            nested_keys: Vec::new(),
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
        std::fs::set_permissions(&planted, permissions).unwrap();
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
