//! Scratch trees: copies of the project in which files can be changed without touching the project.
//!
//! A tree is an overlay over the project, mounted at the project's own path in a mount namespace of its own, so that
//! builds find their caches and no path changes. Where that is impossible, it is a copy: a reflink if the file system
//! supports that, mounted at the project's path if a namespace can be created, or else used at its own path. The files
//! are in a place outside the project, which is removed with the tree, or by a later tree if this program was killed.
//! The namespaces live as long as the tree's descriptors; no process keeps them alive. Outside Linux, every tree is a
//! copy.

mod copy;
mod mounting;
pub mod namespace;
mod place;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{AtFlags, Mode, RawMode, fchmod, fstat, mkdirat, unlinkat};
use rustix::io::Errno;
use rustix::process::fchdir;
use serde::{Deserialize, Serialize};

use self::copy::{FileStates, bring_entry, copy_tree, states};
use self::namespace::Namespaces;
pub(in crate::exec) use self::namespace::Passed;
use self::place::{Place, TREE, UPPER, is_opaque};
use super::child_env::ChildEnv;
use super::descriptors::path_of;
use super::supervised_child::SupervisedChild;
use super::supervisor::SupervisorPlace;
use crate::sys::error::Error;
use crate::sys::files::{self, IfThere as _, Links, MIB};
use crate::sys::interrupt::Interrupt;

/// Maximum size, in bytes, of a file that is read from a tree.
const LARGEST: u64 = 128 * MIB;

/// The way in which a tree is separated from the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScratchKind {
    /// An overlay, in which only changes take up space.
    Overlay,
    /// A copy that shares its blocks with the project until they are changed.
    Reflink,
    /// A plain copy.
    Copy,
}

/// Settings to make trees with.
pub struct ScratchPlace<'a> {
    /// This program's executable, which makes namespaces; without it, every tree is a copy.
    pub program: Option<&'a Path>,
    /// Directories for the files of trees; the first that works is used. Those in the project are skipped.
    pub bases: &'a [PathBuf],
    /// Directories in the project's root that are not part of a tree. A mounted tree shows the project's own.
    pub excluded: &'static [&'static str],
    /// Interrupt that ends a copy early.
    pub interrupt: &'a Interrupt,
}

/// Neither an overlay nor a copy of the project can be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("the project cannot be copied: {0}")]
#[diagnostic(help(
    "make its files readable, or set `TMPDIR` to a directory outside the project with room for a copy of it"
))]
struct NotCopied(io::Error);

/// A file that differs from the project's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScratchChange {
    /// Path relative to the root.
    pub path: PathBuf,
    /// True if the tree has no file there.
    pub is_gone: bool,
}

/// A tree over the project.
#[derive(Debug)]
pub struct Scratch {
    /// The root of the project, which its path no longer leads to from inside the tree.
    original: File,
    kind: ScratchKind,
    place: Arc<Place>,
    /// `None` if no namespace can be made.
    namespaces: Option<Namespaces>,
    /// The root of the tree.
    view: File,
    /// True once this process has entered the tree.
    is_entered: AtomicBool,
    maker: Maker,
}

impl Scratch {
    /// Makes a tree over the project: an overlay or, where that is impossible, a copy.
    ///
    /// # Errors
    /// Fails if neither can be made, or a signal arrived.
    pub fn new(project: &Path, options: &ScratchPlace<'_>) -> Result<Self, Error> {
        let program = options
            .program
            .map(|path| files::open(path, Links::Followed));
        let outside = |base: &&PathBuf| !base.starts_with(project);
        let maker = Maker {
            project: project.to_path_buf(),
            below: Vec::new(),
            copied: None,
            interrupt: options.interrupt.clone(),
            program: program.and_then(Result::ok).map(Arc::new),
            bases: options.bases.iter().filter(outside).cloned().collect(),
            excluded: options.excluded,
        };
        maker.overlay().map_or_else(|_| maker.copy(project), Ok)
    }

    /// Makes another tree that starts from this one's current state. This one must not be written to while the other is
    /// in use.
    ///
    /// # Errors
    /// Fails if it cannot be made, or a signal arrived.
    pub fn fork(&self) -> Result<Self, Error> {
        let is_overlay = self.kind == ScratchKind::Overlay;
        // From inside this tree, the project's path leads to it.
        let is_below = is_overlay && !self.is_entered.load(Ordering::Relaxed);
        let mut maker = self.maker.clone();
        if is_below {
            maker.below.insert(0, Arc::clone(&self.place));
        }
        let overlay = is_overlay.then(|| maker.overlay().ok()).flatten();
        overlay.map_or_else(|| maker.copy(&self.root()), Ok)
    }

    /// Returns the way in which the tree is separated from the project.
    pub fn kind(&self) -> ScratchKind {
        self.kind
    }

    /// Returns the path by which this process reaches the root of the tree. Another process may not reach it.
    pub fn root(&self) -> PathBuf {
        match self.namespaces {
            Some(_) => directory_path(&self.view),
            None => self.place.tree().to_path_buf(),
        }
    }

    /// Returns the working directory of programs in the tree: the project's path, unless no namespace can be made.
    pub fn working_directory(&self) -> &Path {
        match self.namespaces {
            Some(_) => &self.maker.project,
            None => self.place.tree(),
        }
    }

    /// Returns the path by which this process reaches the project itself, even from inside the tree.
    pub fn original(&self) -> PathBuf {
        match self.namespaces {
            Some(_) => directory_path(&self.original),
            None => self.maker.project.clone(),
        }
    }

    /// Returns a directory outside the tree that this process can write to.
    pub fn private(&self) -> PathBuf {
        self.place.private()
    }

    /// Keeps the tree's files when the tree is dropped. Returns the directory to which they, or an overlay's changes,
    /// are moved.
    ///
    /// # Errors
    /// Fails if they cannot be moved.
    pub fn keep(&self) -> io::Result<PathBuf> {
        let path = self.place.keep()?;
        let is_overlay = self.kind == ScratchKind::Overlay;
        Ok(path.join(if is_overlay { UPPER } else { TREE }))
    }

    /// Reads a file; `None` if it is missing.
    ///
    /// # Errors
    /// Fails if it is not a regular file, for example a link, or cannot be read.
    pub fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        let Some((directory, name)) = entry(&self.view, Path::new(path), false).if_there()? else {
            return Ok(None);
        };
        let file = files::open_in(&directory, name).if_there()?;
        file.map(|file| files::read_open(file, LARGEST)).transpose()
    }

    /// Writes a file, with this mode or else that of the file that it replaces. Missing directories are created.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, path: &str, content: &[u8], mode: Option<RawMode>) -> io::Result<()> {
        let (directory, name) = entry(&self.view, Path::new(path), true)?;
        let before = files::open_in(&directory, name).and_then(|file| Ok(fstat(file)?));
        let mode = mode.or(before.ok().map(|before| before.st_mode & 0o7777));
        self.remove(path)?;
        let mut file = files::create_new_in(&directory, name, 0o666)?;
        io::Write::write_all(&mut file, content)?;
        mode.map_or(Ok(()), |mode| Ok(fchmod(&file, Mode::from_raw_mode(mode))?))
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// Fails if the file cannot be removed.
    pub fn remove(&self, path: &str) -> io::Result<()> {
        remove_below(&self.view, path)
    }

    /// Copies a change to the project, with its times. Pipes, sockets and devices are ignored.
    ///
    /// # Errors
    /// Fails if the change cannot be read, or cannot be made there, or a signal arrives.
    pub fn bring(&self, change: &ScratchChange) -> io::Result<()> {
        self.maker.interrupt.check()?;
        if change.is_gone {
            return remove_below(&self.original, &change.path);
        }
        let (from, name) = entry(&self.view, &change.path, false)?;
        let (to, _) = entry(&self.original, &change.path, true)?;
        bring_entry(&from, &to, name)
    }

    /// Returns the files and links that were changed in the tree, sorted. In an overlay, that includes every file that
    /// was written, even with its old content. Changes that others made to the project are not included.
    ///
    /// # Errors
    /// Fails if a directory cannot be read.
    pub fn changes(&self) -> io::Result<Vec<ScratchChange>> {
        let mut found = BTreeSet::new();
        if let Some(was) = &self.maker.copied {
            let now = states(&self.root(), self.maker.excluded)?;
            let differs = |path: &&PathBuf| was.get(*path) != now.get(*path);
            found.extend(was.keys().chain(now.keys()).filter(differs).map(|path| {
                let is_gone = !now.contains_key(path);
                let path = path.clone();
                ScratchChange { path, is_gone }
            }));
        } else {
            let places = [&self.place].into_iter().chain(&self.maker.below);
            let layers: Vec<_> = places.map(|place| place.upper()).collect();
            let sides = [&layers[..], &[self.root()], &[self.original()]];
            self.compare(sides, Path::new(""), false, &mut found)?;
        }
        Ok(found.into_iter().collect())
    }

    /// Collects the changes that an overlay has recorded for a directory: the one with this path in its layers, in the
    /// tree and in the project. If the project's directory is hidden, the layers do not record the removal of its
    /// contents separately.
    fn compare(
        &self,
        [layers, tree, project]: [&[PathBuf]; 3],
        directory: &Path,
        is_hidden: bool,
        found: &mut BTreeSet<ScratchChange>,
    ) -> io::Result<()> {
        let mut names = BTreeSet::new();
        for directory in layers.iter().chain(project.iter().filter(|_| is_hidden)) {
            names.extend(entries(directory)?);
        }
        if directory == Path::new("") {
            names.retain(|name| !self.maker.excluded.iter().any(|excluded| name == excluded));
        }
        for name in names {
            let path = directory.join(&name);
            let (layers, _) = inside(layers, &name)?;
            let (tree, has) = inside(tree, &name)?;
            let (project, had) = inside(project, &name)?;
            let is_hidden = is_hidden || tree.is_empty() || layers.iter().any(|at| is_opaque(at));
            self.compare([&layers, &tree, &project], &path, is_hidden, found)?;
            if has || had {
                let is_gone = !has;
                found.insert(ScratchChange { path, is_gone });
            }
        }
        Ok(())
    }

    /// Returns a command that runs `program` in the tree's namespaces, and what it needs to enter them, which must be
    /// held until it is started; `None` if there are no namespaces.
    pub(super) fn command(&self, program: &OsStr) -> io::Result<Option<(Command, Passed<'_>)>> {
        let (Some(namespaces), Some(own)) = (&self.namespaces, &self.maker.program) else {
            return Ok(None);
        };
        let mut command = Command::new(path_of(own));
        command.arg0("code-commit");
        let passed = namespaces.pass(&mut command, &self.maker.project)?;
        command.arg(program);
        Ok(Some((command, passed)))
    }

    /// Starts a supervisor in the tree: a process, so that builds in several trees can run at once.
    pub(super) fn supervisor(
        &self,
        env: &ChildEnv,
        interrupt: &Interrupt,
    ) -> io::Result<SupervisedChild> {
        let root = self.working_directory();
        if let Some((mut command, passed)) = self.command(OsStr::new("/proc/self/exe"))? {
            command.stderr(Stdio::null());
            let (place, passed) = (SupervisorPlace::Outside, &passed.descriptors);
            return SupervisedChild::spawn(command, place, root, env, interrupt, passed);
        }
        let known = self.maker.program.as_ref();
        let program = known.ok_or(io::ErrorKind::Unsupported)?;
        SupervisedChild::beside(&path_of(program), root, env, interrupt)
    }

    /// Moves this process into the tree, so that the project's path leads there from then on. Returns false if no
    /// namespace can be created. No other thread may run yet.
    ///
    /// # Errors
    /// Fails if the kernel refuses, or the working directory does not exist in the tree.
    pub fn enter(&self, working_directory: &Path) -> io::Result<bool> {
        let Some(namespaces) = &self.namespaces else {
            return Ok(false);
        };
        namespaces.enter()?;
        self.is_entered.store(true, Ordering::Relaxed);
        fchdir(files::open_directory(working_directory)?)?;
        Ok(true)
    }
}

/// Creates trees, each of the first kind that works.
#[derive(Debug, Clone)]
struct Maker {
    project: PathBuf,
    /// Places of the trees whose upper directories an overlay lies over.
    below: Vec<Arc<Place>>,
    /// State of the first copy when it was made; `None` for overlays.
    copied: Option<Arc<FileStates>>,
    interrupt: Interrupt,
    program: Option<Arc<File>>,
    bases: Vec<PathBuf>,
    excluded: &'static [&'static str],
}

impl Maker {
    fn overlay(&self) -> io::Result<Scratch> {
        let uppers = self.below.iter().map(|place| place.path().join(UPPER));
        let layers: Vec<_> = uppers.chain([self.project.clone()]).collect();
        self.first(|base| {
            let place = Place::new(base)?;
            place.prepare_overlay()?;
            let (namespaces, view) = self.namespaces(&place, &layers)?;
            self.made(ScratchKind::Overlay, place, Some(namespaces), view)
        })
    }

    fn copy(&self, source: &Path) -> Result<Scratch, Error> {
        let made = self.first(|base| {
            let place = Place::new(base)?;
            let is_shared = copy_tree(source, place.tree(), self.excluded, &self.interrupt)?;
            let kind = if is_shared {
                ScratchKind::Reflink
            } else {
                ScratchKind::Copy
            };
            let (namespaces, view) = self.namespaces(&place, &[]).ok().unzip();
            let view = view.map_or_else(|| files::open_directory(place.tree()), Ok)?;
            let mut maker = self.clone();
            if maker.copied.is_none() {
                maker.copied = Some(Arc::new(states(place.tree(), self.excluded)?));
            }
            maker.made(kind, place, namespaces, view)
        });
        made.map_err(|error| match self.interrupt.check() {
            Err(interrupted) => interrupted.into(),
            Ok(()) => NotCopied(error).into(),
        })
    }

    /// Calls `make` with each base until it succeeds.
    fn first<T>(&self, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
        let none = Err(io::ErrorKind::NotFound.into());
        let bases = self.bases.iter();
        bases.fold(none, |made, base| made.or_else(|_| make(base)))
    }

    fn namespaces(&self, place: &Place, layers: &[PathBuf]) -> io::Result<(Namespaces, File)> {
        let program = self.program.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        Namespaces::make(program, &self.project, place.path(), self.excluded, layers)
    }

    fn made(
        &self,
        kind: ScratchKind,
        place: Place,
        namespaces: Option<Namespaces>,
        view: File,
    ) -> io::Result<Scratch> {
        Ok(Scratch {
            original: files::open_directory(&self.project)?,
            kind,
            place: Arc::new(place),
            namespaces,
            view,
            is_entered: AtomicBool::new(false),
            maker: self.clone(),
        })
    }
}

/// Returns the path of an open directory, which works even where links are not followed.
fn directory_path(directory: &File) -> PathBuf {
    path_of(directory).join(".")
}

/// Opens the directory of a path below an open one, following no link. Returns it with the path's last name.
fn entry<'p>(root: &File, path: &'p Path, creates: bool) -> io::Result<(File, &'p OsStr)> {
    let mut directory = root.try_clone()?;
    for part in path.parent().into_iter().flatten() {
        if creates
            && let Err(errno) = mkdirat(&directory, part, Mode::from_raw_mode(0o777))
            && errno != Errno::EXIST
        {
            return Err(errno.into());
        }
        directory = files::open_directory_in(&directory, Path::new(part))?;
    }
    Ok((directory, path.file_name().unwrap_or_default()))
}

/// Removes a file below an open directory, if it is there.
fn remove_below(root: &File, path: impl AsRef<Path>) -> io::Result<()> {
    let removed = entry(root, path.as_ref(), false)
        .and_then(|(directory, name)| Ok(unlinkat(&directory, name, AtFlags::empty())?));
    removed.if_there().map(drop)
}

/// Returns the names in a directory.
fn entries(directory: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let list = fs::read_dir(directory)?;
    list.map(|entry| Ok(entry?.file_name())).collect()
}

/// Returns the directories with this name in `directories`, and `true` if one of these contains something else by that
/// name. Links are not followed.
fn inside(directories: &[PathBuf], name: &OsStr) -> io::Result<(Vec<PathBuf>, bool)> {
    let (mut found, mut has_others) = (Vec::new(), false);
    for path in directories.iter().map(|directory| directory.join(name)) {
        match path.symlink_metadata().if_there()? {
            Some(metadata) if metadata.is_dir() => found.push(path),
            other => has_others |= other.is_some(),
        }
    }
    Ok((found, has_others))
}
