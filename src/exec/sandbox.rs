//! Runs builds and commands in a sandbox made by bubblewrap (`bwrap`), which Linux distributions package, or, on macOS,
//! by the system's own `sandbox-exec`, under which other processes stay visible. The latter is untested.
//!
//! Starts `bwrap` with this program inside, which starts the command and reports how it ends. Guarantees that a
//! sandboxed command sees neither the keys, under whatever name their folder is mounted, nor other processes; that it
//! cannot write to protected files, git's settings and hooks, or this program's own files; that it cannot make a known
//! user service run anything outside; that all of it ends with the sandbox; and, in strict mode, that it has no
//! network, reaches no service of the machine, sees no credentials in known places, and writes only to the project.

mod arguments;
mod elsewhere;
mod policy;
mod repositories;
mod seatbelt;
pub mod services;
#[cfg(target_os = "linux")]
mod syscalls;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, PipeReader, Read as _};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

use self::arguments::Arguments;
pub use self::policy::SandboxPolicy;
use self::policy::own_files;
pub use self::repositories::settings;
use self::repositories::{Nested, with_linked};
use self::seatbelt::Seatbelt;
use self::targets::{KeyTarget, key_target, present, resolved};
use super::child_env::ChildEnv;
use super::descriptors::path_of;
use super::hosts::AllowedHost;
use super::proxy::HostProxy;
use super::scratch::Scratch;
use super::supervised_child::SupervisedChild;
use super::supervisor::SupervisorPlace;
use crate::sys::files::{Links, open};
use crate::sys::identity::{FileIdentity, identity};
use crate::sys::interrupt::{Interrupt, Interrupted, is_readable_within};
use crate::sys::programs::program_outside;

/// True if macOS's sandbox replaces bubblewrap.
const IS_SEATBELT: bool = cfg!(target_os = "macos");
/// Program that creates sandboxes.
const BWRAP: &str = if IS_SEATBELT { "sandbox-exec" } else { "bwrap" };
/// Private directory for temporary files in the sandbox.
const TEMPORARY: &str = "/tmp";
/// Capabilities dropped in a lenient sandbox, even for root: they would allow looking under the mounts that cover the
/// keys, reaching files or memory other than by name, or changing the kernel.
const FORBIDDEN: &str = "CAP_SYS_ADMIN CAP_SYS_PTRACE CAP_DAC_READ_SEARCH CAP_MKNOD CAP_SYS_RAWIO \
    CAP_SYS_MODULE CAP_SYS_BOOT";
/// Directories that are empty and private in a strict sandbox. Through sockets in some of them, a process could make
/// others do things that the sandbox forbids.
const PRIVATE: [&str; 4] = [TEMPORARY, "/var/tmp", "/dev/shm", "/run"];
/// Directory below `/run` from which NixOS runs programs.
const NIX_SYSTEM: &str = "/run/current-system";

/// The extent to which builds and commands are sandboxed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// Isolated from keys and other processes, if possible
    Auto,
    /// Also isolated from the network and the rest of the disk; runs nothing if that is impossible
    Strict,
    /// Not at all
    #[default]
    Off,
}

/// Hint for when sandboxing fails.
const MEND: &str = "fix the cause, or use `--sandbox off`";

/// Errors from sandboxing a command.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum SandboxProblem {
    /// `bwrap` is not installed.
    #[error("bubblewrap (`bwrap`) is not installed")]
    #[diagnostic(code("/sandbox"), help("{MEND}"))]
    NotInstalled,
    /// `bwrap` is installed but does not work here.
    #[error("bubblewrap does not work here: {0}")]
    #[diagnostic(code("/sandbox"), help("{MEND}"))]
    Unusable(String),
    /// A watched path has changed, so a hidden or protected file may now be elsewhere.
    #[error("`{}` was created, moved or replaced during the run", .0.display())]
    #[diagnostic(
        code("/sandbox"),
        help(
            "find out what did that, perhaps build.sh, a command or your own git in another worktree, and restore it, unless it was you"
        )
    )]
    Moved(PathBuf),
    /// Another I/O error.
    #[error("bubblewrap cannot be started: {0}")]
    #[diagnostic(code("/sandbox"), help("{MEND}"))]
    Io(#[from] io::Error),
    /// A signal arrived.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Interrupted(#[from] Interrupted),
}

/// A configured sandbox, in which commands can be started.
#[derive(Debug)]
pub struct Sandbox {
    bwrap: PathBuf,
    /// This program, to be started inside. Held open so that it stays the same even if its path changes.
    program: File,
    /// Paths of this program and of its other names in the same directory: read-only inside.
    own: Vec<PathBuf>,
    policy: SandboxPolicy,
    /// True if the network and the rest of the disk are closed, too.
    is_strict: bool,
    /// Other paths that must not change, existing or not: hidden directories, and settings files that git would
    /// read if they were created.
    watched: Vec<PathBuf>,
    /// Key folders of other projects inside this one.
    nested_keys: Vec<PathBuf>,
    /// Identities of the policy's paths at the start.
    identities: BTreeMap<PathBuf, FileIdentity>,
    /// Targets of the key files at the start.
    key_targets: Vec<KeyTarget>,
    /// True if commands may create repositories in the project: those become read-only for later commands. Otherwise
    /// a new repository prevents further commands.
    keeps_new_repositories: bool,
    /// Proxy through which a strict sandbox reaches the network.
    proxy: Option<Arc<HostProxy>>,
}

impl Sandbox {
    /// Looks for `bwrap` in `path`, a list of directories, skipping relative ones and programs in the project. `mode`
    /// must not be [`SandboxMode::Off`], which is treated as lenient.
    ///
    /// # Errors
    /// Fails if `bwrap` is not found.
    pub fn find(
        path: Option<&OsStr>,
        program: &Path,
        policy: SandboxPolicy,
        mode: SandboxMode,
    ) -> Result<Self, SandboxProblem> {
        let bwrap = path.and_then(|path| program_outside(BWRAP, path, &policy.root));
        let bwrap = bwrap.ok_or(SandboxProblem::NotInstalled)?.into();
        let own = own_files(program);
        let program = open(program, Links::Followed)?;
        // bwrap inherits the descriptor and starts the program through it.
        fcntl_setfd(&program, FdFlags::empty()).map_err(io::Error::from)?;
        let nested = Nested::find(&policy.root, &policy.keys);
        let is_strict = mode == SandboxMode::Strict;
        let mut sandbox = Self {
            bwrap,
            program,
            own,
            watched: watched(&policy, is_strict, &nested),
            nested_keys: nested.keys,
            identities: BTreeMap::new(),
            key_targets: policy.key_files.iter().map(key_target).collect(),
            policy,
            is_strict,
            keeps_new_repositories: false,
            proxy: None,
        };
        sandbox.identities = sandbox.identities_with(nested.repositories);
        Ok(sandbox)
    }

    /// Lets commands in a strict sandbox reach these hosts, and no others.
    pub fn with_hosts(self, hosts: &[AllowedHost]) -> Self {
        // The proxy's port would have to be inside, which Seatbelt cannot express.
        let has_proxy = self.is_strict && !hosts.is_empty() && !IS_SEATBELT;
        Self {
            proxy: has_proxy.then(|| Arc::new(HostProxy::new(hosts))),
            ..self
        }
    }

    /// Returns the refused connections since the last call, each once, as sentences without a full stop.
    pub fn new_refusals(&self) -> Vec<String> {
        let proxy = self.proxy.as_ref();
        proxy.map_or_else(Vec::new, |proxy| proxy.new_refusals())
    }

    /// Lets commands create repositories below the project's root. Later commands cannot write to the new
    /// repositories. The directories and links on the way to what is read-only must stay in place: a mount keeps only
    /// the path itself from being replaced.
    pub fn with_new_repositories(mut self) -> Self {
        let closed = self.closed();
        let resolved: Vec<PathBuf> = present(&closed).collect();
        for path in closed.iter().chain(&resolved) {
            for place in path.ancestors().skip(usize::from(!path.is_symlink())) {
                let found = identity(place.symlink_metadata());
                if found.is_some() && !self.identities.contains_key(place) {
                    self.identities.insert(place.to_path_buf(), found);
                    self.watched.push(place.to_path_buf());
                }
            }
        }
        self.keeps_new_repositories = true;
        self
    }

    /// Checks that hidden and protected paths are still where they were.
    ///
    /// # Errors
    /// Fails if one of them has changed.
    pub fn check_unmoved(&self) -> Result<(), SandboxProblem> {
        let nested = self.is_strict.then(|| self.nested_repositories());
        let now = self.identities_with(nested.unwrap_or_default());
        let is_changed = |path: &&PathBuf| match self.identities.get(*path) {
            Some(then) => now.get(*path) != Some(then),
            // Every other path was recorded at the start, whether it existed or not.
            None => !self.keeps_new_repositories,
        };
        let moved = self.identities.keys().chain(now.keys()).find(is_changed);
        moved.map_or(Ok(()), |path| Err(SandboxProblem::Moved(path.clone())))
    }

    fn nested_repositories(&self) -> Vec<PathBuf> {
        Nested::find(&self.policy.root, &self.policy.keys).repositories
    }

    /// Returns the identities of everything that must not change during a run; `repositories` are passed in strict mode
    /// only.
    fn identities_with(&self, repositories: Vec<PathBuf>) -> BTreeMap<PathBuf, FileIdentity> {
        let policy = &self.policy;
        let places = [&policy.root, &policy.keys].into_iter();
        let mut identities: BTreeMap<PathBuf, FileIdentity> = places
            .chain(&policy.key_files)
            .map(|path| (path.clone(), identity(path.metadata())))
            .collect();
        let mut links = self.watched.clone();
        if self.is_strict {
            links.push(policy.git.clone());
            links.extend(repositories);
        }
        identities.extend(links.into_iter().map(|path| {
            let found = identity(path.symlink_metadata());
            (path, found)
        }));
        identities
    }

    /// Accepts the current key files, which the user has just saved, if their paths are unchanged. Must be called only
    /// while nothing is sandboxed. No sandboxed command can have made the change: it cannot rename over a mount point,
    /// and moving a file's directory or redirecting a link is still detected.
    pub fn renew(&mut self) {
        let keys = self.policy.key_files.iter().zip(&self.key_targets);
        for (file, _) in keys.filter(|(file, then)| key_target(file) == **then) {
            self.identities
                .insert(file.clone(), identity(file.metadata()));
        }
    }

    /// Checks that the sandbox works.
    ///
    /// # Errors
    /// Fails if the sandbox does not work.
    pub fn try_out(&self, interrupt: &Interrupt) -> Result<(), SandboxProblem> {
        self.enter(interrupt, &ChildEnv::default(), None).map(drop)
    }

    /// Starts the sandbox without a command, with this scratch tree in place of the project if there is one.
    ///
    /// # Errors
    /// Fails if the sandbox does not work here.
    pub(super) fn enter(
        &self,
        interrupt: &Interrupt,
        env: &ChildEnv,
        scratch: Option<&Scratch>,
    ) -> Result<SupervisedChild, SandboxProblem> {
        self.check_unmoved()?;
        let source = scratch.map_or(&*self.policy.root, Scratch::working_directory);
        let mut arguments = self.arguments(source);
        loop {
            match self.enter_with(&arguments, interrupt, env, scratch) {
                // Retry if the arguments have changed in the meantime, for example because another project came or
                // went.
                Err(SandboxProblem::Unusable(reason)) => {
                    let before = std::mem::replace(&mut arguments, self.arguments(source));
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
        scratch: Option<&Scratch>,
    ) -> Result<SupervisedChild, SandboxProblem> {
        let (mut errors, complaints) = io::pipe()?;
        let inside = scratch.map(|scratch| scratch.command(self.bwrap.as_os_str()));
        let (mut command, passed) = match inside.transpose()?.flatten() {
            Some((command, passed)) => (command, Some(passed)),
            None => (Command::new(&self.bwrap), None),
        };
        command.args(arguments);
        #[cfg(target_os = "linux")]
        let _inherited = self.add_filter(&mut command)?;
        let (program, place, root) = self.inner_program(scratch);
        command.arg("--").arg(program).stderr(complaints);
        let passed = passed
            .as_ref()
            .map_or(&[][..], |passed| &passed.descriptors);
        match SupervisedChild::spawn(command, place, root, env, interrupt, passed) {
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

    /// Returns the path at which this program starts inside, its place as a supervisor, and the directory that it
    /// starts in. Under Seatbelt, processes and paths are those outside.
    fn inner_program<'a>(
        &'a self,
        scratch: Option<&'a Scratch>,
    ) -> (OsString, SupervisorPlace, &'a Path) {
        let root = self.policy.root.as_path();
        if IS_SEATBELT {
            let program = self.own.first().map_or(OsString::new(), Into::into);
            let root = scratch.map_or(root, Scratch::working_directory);
            (program, SupervisorPlace::Outside, root)
        } else {
            (
                path_of(&self.program).into(),
                SupervisorPlace::Sandbox,
                root,
            )
        }
    }

    /// Passes bubblewrap the system call filter in strict mode. The returned pipe must stay open until bwrap starts.
    #[cfg(target_os = "linux")]
    fn add_filter(&self, command: &mut Command) -> io::Result<Option<PipeReader>> {
        if !self.is_strict {
            return Ok(None);
        }
        let (reader, mut writer) = io::pipe()?;
        // The filter fits into the pipe's buffer, so this cannot block.
        io::Write::write_all(&mut writer, &syscalls::filter()?)?;
        fcntl_setfd(&reader, FdFlags::empty())?;
        command.args(["--seccomp", &reader.as_raw_fd().to_string()]);
        Ok(Some(reader))
    }

    /// Returns bubblewrap's arguments, in the order in which it applies them, with `source` at the project's path.
    fn arguments(&self, source: &Path) -> Vec<OsString> {
        let mut list = Arguments::new();
        let others = elsewhere::other_projects(&self.policy.root, &self.policy.keys);
        if IS_SEATBELT {
            list.add("-p", &[self.profile(source, &others)]);
            return list.list;
        }
        if self.is_strict {
            self.add_strict(&mut list, source, &others);
        } else {
            self.add_lenient(&mut list, source, &others);
        }
        // Kernel settings apply to the whole machine.
        list.add("--ro-bind", &["/proc/sys", "/proc/sys"]);
        // As the first process, this program is safe inside: no other process can obtain its descriptors, and
        // no signal from inside ends it.
        list.add("--unshare-pid", &["--as-pid-1"]);
        // A process that shares a terminal can inject input into it.
        list.add("--new-session", &["--die-with-parent"]);
        list.add("--chdir", &[&self.policy.root]);
        list.list
    }

    /// Returns macOS's profile, for a project whose files are in `source`.
    fn profile(&self, source: &Path, others: &[PathBuf]) -> String {
        let closed = self.closed();
        let source = resolved(source);
        let seatbelt = Seatbelt {
            hidden: &self.hidden(others),
            read_only: &present(&closed).collect::<Vec<_>>(),
            only: self.is_strict.then_some(&source),
            around: self.policy.campaign.as_deref().map(|path| (path, &*source)),
        };
        seatbelt.profile()
    }

    fn add_lenient(&self, list: &mut Arguments, source: &Path, others: &[PathBuf]) {
        let SandboxPolicy { root, git, .. } = &self.policy;
        list.add("--dev-bind", &["/", "/"]);
        // A mount point cannot be renamed, so these directories stay in place.
        let services = self.hidden_services();
        let sockets = services.iter().filter(|path| !path.is_dir());
        let directories: BTreeSet<_> = sockets.filter_map(|path| path.parent()).collect();
        for directory in directories {
            list.add("--dev-bind-try", &[directory, directory]);
        }
        list.add_names("--tmpfs", self.policy.campaign.as_ref());
        list.add("--dev-bind", &[source, root]);
        if let Some(directory) = self.own_directory() {
            list.add("--dev-bind-try", &[directory, directory]);
        }
        for folder in with_linked([git]).iter().map(|path| resolved(path)) {
            if folder.is_dir() {
                list.add("--dev-bind", &[&folder, &folder]);
            }
        }
        for other in others {
            let project = other.parent().unwrap_or(other);
            if !root.starts_with(project) {
                list.add("--dev-bind-try", &[project, project]);
            }
        }
        list.add_read_only(&self.closed());
        self.add_services(list, &services);
        self.add_hidden(list, others);
        list.add("--proc", &["/proc"]);
        for capability in FORBIDDEN.split(' ') {
            list.add("--cap-drop", &[capability]);
        }
    }

    fn add_strict(&self, list: &mut Arguments, source: &Path, others: &[PathBuf]) {
        let root = &self.policy.root;
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
        list.add_names("--tmpfs", self.policy.campaign.as_ref());
        list.add("--bind", &[source, root]);
        if let Some(directory) = self.own_directory().filter(|own| own.starts_with(root)) {
            list.add("--bind-try", &[directory, directory]);
        }
        let nested = self.nested_repositories().into_iter();
        let (old, new): (Vec<PathBuf>, Vec<PathBuf>) =
            nested.partition(|git| self.identities.contains_key(git));
        let mut closed = with_linked(std::iter::once(&self.policy.git).chain(&old));
        // A `.git` file can name any folder elsewhere; unless that is a repository, it must not become visible.
        closed.retain(|path| resolved(path).starts_with(root) || path.join("HEAD").is_file());
        closed.extend(present(&self.inside()).filter(|path| path.starts_with(root)));
        closed.extend_from_slice(&self.policy.read_only);
        list.add_read_only(&closed);
        for path in with_linked(&new) {
            let path = resolved(&path);
            // The command that created it must not use a link to make something outside visible.
            if path.starts_with(root) {
                // `-try`, because a running command may remove it in the meantime.
                list.add("--ro-bind-try", &[&path, &path]);
            }
        }
        self.add_hidden(list, others);
        list.add_names("--remount-ro", self.policy.campaign.as_ref());
        list.add("--setenv", &["TMPDIR", TEMPORARY]);
        list.add("--unshare-net", &["--unshare-ipc"]);
        for variable in self.proxy.iter().flat_map(|proxy| proxy.variables()) {
            list.add("--setenv", &variable);
        }
        list.add("--cap-drop", &["ALL"]);
    }

    /// Returns the paths that are read-only inside.
    fn closed(&self) -> Vec<PathBuf> {
        [self.inside(), self.policy.read_only.clone()].concat()
    }

    /// Returns git's settings and hooks, the protected files and this program's files.
    fn inside(&self) -> Vec<PathBuf> {
        let policy = &self.policy;
        [&*policy.settings(), &policy.protected, &self.own].concat()
    }

    /// Returns the directory of this program's own files, unless it contains the project.
    fn own_directory(&self) -> Option<&Path> {
        let directory = self.own.first()?.parent()?;
        (!self.policy.root.starts_with(directory)).then_some(directory)
    }

    /// Empties all hidden paths, under every name they are mounted at. Comes last, so that no mount reveals them.
    fn add_hidden(&self, list: &mut Arguments, others: &[PathBuf]) {
        let hidden = self.hidden(others).into_iter();
        let names: Vec<_> = hidden.flat_map(|path| list.mounts.names(&path)).collect();
        for name in names {
            let is_directory = list.add_empty(&name);
            if is_directory && self.is_strict {
                list.add("--remount-ro", &[&name]);
            }
        }
    }

    /// Returns the user's services that exist, except allowed ones.
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

    /// Hides these services. Not needed in a strict sandbox, where no socket leads outside.
    fn add_services(&self, list: &mut Arguments, services: &[PathBuf]) {
        for service in services {
            for name in list.mounts.names(service) {
                list.add_empty(&name);
            }
        }
        let is_hidden = |socket: &&PathBuf| services.iter().any(|path| socket.starts_with(path));
        for socket in self.allowed_sockets().iter().filter(is_hidden) {
            list.add("--bind-try", &[socket, socket]);
        }
    }

    /// Returns the hidden paths, with links resolved, since a linked key file lies outside the key folder.
    fn hidden(&self, others: &[PathBuf]) -> Vec<PathBuf> {
        let SandboxPolicy { root, keys, .. } = &self.policy;
        let mut wanted = self.policy.hidden.clone();
        wanted.extend(self.nested_keys.iter().cloned());
        wanted.extend_from_slice(others);
        if let Some(home) = self.policy.home.as_ref().filter(|_| self.is_strict) {
            wanted.extend(elsewhere::credentials(home));
        }
        wanted.extend(self.policy.key_files.iter().cloned());
        let mut hidden = vec![resolved(keys)];
        for path in wanted.iter().map(|path| resolved(path)) {
            let is_hidden = hidden.iter().any(|directory| path.starts_with(directory));
            // A directory that contains the project cannot be emptied.
            if path.exists() && !is_hidden && !root.starts_with(&path) {
                hidden.push(path);
            }
        }
        hidden
    }
}

/// Returns the paths outside the policy that must not change.
fn watched(policy: &SandboxPolicy, is_strict: bool, nested: &Nested) -> Vec<PathBuf> {
    let directories = policy.hidden.iter().map(|path| resolved(path));
    let mut watched: Vec<PathBuf> = directories.filter(|path| path.is_dir()).collect();
    watched.extend(nested.keys.iter().cloned());
    // In a strict sandbox, new files cannot be created next to them.
    if !is_strict {
        let settings = policy.settings().into_iter();
        watched.extend(settings.filter(|path| path.symlink_metadata().is_err()));
    }
    watched
}

/// Returns bubblewrap's own message on why it failed.
fn complaint(errors: &mut PipeReader) -> String {
    let mut text = vec![0; 2048];
    let mut length = 0;
    // A single read, to avoid waiting for another process that may still hold the other end.
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
mod tests;
