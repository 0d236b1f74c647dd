//! The undo log of a run: the bytes that its replies replaced or removed, and the state that replaced them.
//!
//! Writes below the run's folder: `replaced/N`, a file each, and `changes.json`, which says what they
//! are; and while the run goes on, a file that keeps room on the disk for taking its edits back. A file
//! that holds an API key is kept beside the keys instead, and so is `changes.json` where a path holds
//! one. Guarantees that the bytes are kept before they are replaced, and that no link that somebody
//! planted is followed.

use std::io::{self, BufReader, Seek as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, fstat};
use rustix::io::Errno;

use super::attributes::{Rights, hand_on};
use super::beneath::{OpenDirectory, PathEntry, Root, create_new, open_regular, split};
use super::changes::{Before, ChangeLog, LoggedChange, SCHEMA, kept_path, vault};
use super::digest::{Digest, Stamp, changed, changed_meanwhile, modified};
use super::disk::{self, linkat, statat};
use super::error::{ApplyError, apply_failed};
use super::operation::FileOperation;
use super::record::Record;
use super::spelling::PathScope;
use crate::project::run_folder::{CHANGES, REPLACED, RunFolder};
use crate::secret::Redactor;
use crate::sys::files::{MIB, PathError};
use crate::sys::parallel::in_parallel;

/// No log of changes is larger, in bytes.
const LARGEST: u64 = 16 * MIB;
/// The bytes of a file that are read at once.
const CHUNK: usize = 64 << 10;

/// The undo log of a run could not be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(transparent)]
#[diagnostic(help("put the files back by hand: `replaced` in the run's folder holds them"))]
pub struct UndoLogError(#[from] PathError);

/// The undo log of one run.
#[derive(Debug)]
pub struct UndoLog<'r> {
    root: PathBuf,
    own: Arc<RunFolder>,
    /// The run's folder, relative to the root.
    folder: String,
    redactor: &'r Redactor,
    changes: ChangeLog,
    /// The same before what was noted last, until that is done.
    previous: Option<ChangeLog>,
    /// True if a path holds a key.
    beside_keys: bool,
    /// The number of files that are kept.
    kept: u32,
}

impl<'r> UndoLog<'r> {
    /// The log of a run that has changed nothing yet.
    pub fn new(root: &Path, own: Arc<RunFolder>, redactor: &'r Redactor) -> Self {
        Self {
            root: root.to_path_buf(),
            folder: own.name(),
            own,
            redactor,
            changes: ChangeLog::none(),
            previous: None,
            beside_keys: false,
            kept: 0,
        }
    }

    /// The run's folder, relative to the root.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// The run's folder as it was made, wherever it is now.
    pub(super) fn held(&self) -> io::Result<Root> {
        self.own.held().map(Root::at)
    }

    /// The files that were saved, where one of them is there no more.
    pub fn lost(&self) -> Option<String> {
        let files = self.changes.files.values();
        let mut kept =
            files.filter_map(|change| Some(kept_path(&self.folder, change.before.as_ref()?)));
        kept.find(|path| self.root.join(path).symlink_metadata().is_err())
    }

    /// The changes of the run.
    pub fn changes(&self) -> &ChangeLog {
        &self.changes
    }

    /// Keeps what `steps` replace or remove; for each where, and what it was.
    pub(super) fn keep(
        &mut self,
        root: &Root,
        steps: &[FileOperation<'_>],
    ) -> Result<Vec<Option<Before>>, ApplyError> {
        let mut number = self.kept;
        let numbers = steps.iter().map(|step| {
            number += u32::from(step.present.is_some());
            number
        });
        let numbers: Vec<u32> = numbers.collect();
        self.kept = number;
        let this = &*self;
        let kept = in_parallel(steps.len(), |share| {
            this.keep_share(root, steps, &numbers, share)
        });
        Ok(kept?.concat())
    }

    fn keep_share(
        &self,
        root: &Root,
        steps: &[FileOperation<'_>],
        numbers: &[u32],
        share: Range<usize>,
    ) -> Result<Vec<Option<Before>>, ApplyError> {
        let mut directory = OpenDirectory::default();
        let mut vaults = [None, None];
        let mut keep = |slot: usize| -> io::Result<_> {
            let step = &steps[slot];
            let Some(present) = step.present else {
                return Ok(None);
            };
            let (parent, name) = split(step.path);
            let from = directory.at(root, parent).map_err(io::Error::from)?;
            let (digest, beside_keys) = self.examine(from, name)?;
            let vault = match &mut vaults[usize::from(beside_keys)] {
                Some(vault) => vault,
                none => none.insert(self.open_vault(root, beside_keys)?),
            };
            let kept = numbers[slot].to_string();
            let mode = link_or_copy(from, name, vault, &kept)?;
            present.check(&statat(from, name)?)?;
            Ok(Some(Before {
                kept: numbers[slot],
                beside_keys,
                mode,
                digest,
            }))
        };
        let kept =
            share.map(|slot| keep(slot).map_err(apply_failed("keep a copy of", steps[slot].path)));
        kept.collect()
    }

    /// The digest of a file, and whether it holds a key.
    fn examine(&self, directory: BorrowedFd<'_>, name: &str) -> io::Result<(Digest, bool)> {
        let mut file = open_regular(directory, name)?.ok_or_else(changed_meanwhile)?;
        let digest = Digest::of_file(file.try_clone()?)?;
        file.rewind()?;
        let mut searched = self.redactor.writer(io::sink());
        io::copy(&mut BufReader::with_capacity(CHUNK, file), &mut searched)?;
        let (_, holds_key) = searched.finish_found()?;
        Ok((digest, holds_key))
    }

    /// The directory that keeps files; made where it is missing.
    fn open_vault(&self, root: &Root, beside_keys: bool) -> io::Result<OwnedFd> {
        if beside_keys {
            return Ok(root.ensure_directory_of_ours(&vault(&self.folder, true))?);
        }
        Ok(self.open()?.ensure_directory_of_ours(REPLACED)?)
    }

    /// The run's folder, if it is still there.
    fn open(&self) -> io::Result<Root> {
        self.own.open().map(Root::at)
    }

    /// Notes what is about to be done, and writes that down.
    pub(super) fn note(
        &mut self,
        steps: &[FileOperation<'_>],
        kept: &[Option<Before>],
        digests: &[Option<Digest>],
        record: &Record,
    ) -> Result<(), ApplyError> {
        self.previous = Some(self.changes.clone());
        let holds_key = |path: &str| self.redactor.find(path).next().is_some();
        self.beside_keys |= steps.iter().any(|step| holds_key(step.path));
        for ((step, before), digest) in steps.iter().zip(kept).zip(digests) {
            let change = self.changes.files.entry(step.path.to_owned());
            let change = change.or_insert_with(|| LoggedChange {
                before: before.clone(),
                ..LoggedChange::default()
            });
            change.add(*digest);
            change.stamp = record.stamp;
        }
        self.changes.directories.extend(record.new_directories());
        if record.scope == PathScope::Agent {
            self.changes.scope = record.scope;
        }
        self.save()
            .and_then(|size| self.reserve(size))
            .map_err(apply_failed("write", format!("{}/{CHANGES}", self.folder)))
    }

    /// Takes back what was noted last: it was not done. Where that cannot be written down, the file says
    /// too much, which undoing finds out by itself.
    pub(super) fn retract(&mut self) {
        let Some(previous) = self.previous.take() else {
            return;
        };
        self.changes = previous;
        if self.changes.files.is_empty() {
            let _ = self.remove(self.beside_keys);
        } else {
            let _ = self.save();
        }
    }

    /// Keeps what was noted last: it is done.
    pub(super) fn confirm(&mut self) {
        self.previous = None;
    }

    /// Keeps room on the disk for the journal and the log of taking it all back.
    fn reserve(&self, size: usize) -> io::Result<()> {
        const LEAST: usize = 64 << 10;
        self.release();
        let folder = self.open()?.directory_to_read("")?;
        let file = create_new(folder.as_fd(), RESERVED, 0o666)?;
        disk::allocate(&file, (3 * size).max(LEAST))
    }

    /// Gives that room free.
    pub fn release(&self) {
        if let Ok(folder) = self.own.held() {
            let _ = rustix::fs::unlinkat(folder, RESERVED, AtFlags::empty());
        }
    }

    /// Looks what a build has made of the files that the run has changed, and notes that too: it is
    /// the run's doing, and undone with it. What has not changed since `installed`, need not be looked at.
    ///
    /// # Errors
    /// When the files cannot be looked at, or what was found not be written down.
    pub fn observe(&mut self, installed: Stamp) -> io::Result<()> {
        let root = Root::open(&self.root)?;
        let mut directory = OpenDirectory::default();
        let (mut news, mut unseen) = (false, None);
        for (path, change) in &mut self.changes.files {
            match change.look(&root, &mut directory, path, installed) {
                Ok(changed) => news |= changed,
                Err(error) => unseen = unseen.or(Some(error)),
            }
        }
        if news {
            self.save()?;
        }
        unseen.map_or(Ok(()), Err)
    }

    /// Writes it down, and to the disk: without it, what was kept has no names. Gives its size in bytes.
    fn save(&self) -> io::Result<usize> {
        let mut json = serde_json::to_vec(&self.changes)?;
        json.push(b'\n');
        disk::replace_in(self.place(self.beside_keys)?, CHANGES, |file| {
            disk::write_all(file, &json)?;
            disk::sync(file)
        })?;
        if self.beside_keys {
            // It may have been written beside the others before.
            let _ = self.remove(false);
        }
        Ok(json.len())
    }

    /// Where it is written down.
    fn place(&self, beside_keys: bool) -> io::Result<OwnedFd> {
        if beside_keys {
            return self.open_vault(&Root::open(&self.root)?, true);
        }
        Ok(self.open()?.directory_to_read("")?)
    }

    fn remove(&self, beside_keys: bool) -> io::Result<()> {
        let place = self.place(beside_keys)?;
        Ok(disk::unlinkat(place, CHANGES, AtFlags::empty())?)
    }
}

/// The file that keeps room on the disk while a run goes on.
const RESERVED: &str = ".reserved";

/// Gives the room free that the run in `folder` has kept. The folder may be what a journal says, and lead anywhere.
pub(super) fn release(root: &Root, folder: &str) {
    if let Ok(folder) = root.directory_to_read(folder) {
        let _ = rustix::fs::unlinkat(folder, RESERVED, AtFlags::empty());
    }
}

impl LoggedChange {
    fn add(&mut self, state: Option<Digest>) {
        // A state that comes again is the latest again.
        self.after.retain(|other| *other != state);
        self.after.push(state);
    }

    /// Notes the file's present state, where it is another one than was written last.
    fn look(
        &mut self,
        root: &Root,
        directory: &mut OpenDirectory,
        path: &str,
        installed: Stamp,
    ) -> io::Result<bool> {
        let (parent, name) = split(path);
        let stat = directory
            .at(root, parent)
            .and_then(|directory| statat(directory, name));
        let known = self.after.last().copied();
        match stat {
            // No undoing finds its way there.
            Err(Errno::LOOP | Errno::XDEV) => {}
            Err(Errno::NOENT | Errno::NOTDIR) => self.add(None),
            Err(errno) => return Err(errno.into()),
            Ok(stat) if modified(&stat) == self.stamp && changed(&stat) <= installed => {}
            Ok(_) => {
                if let PathEntry::File(file) = directory.entry(root, path)? {
                    self.add(Some(Digest::of_file(file)?));
                }
            }
        }
        Ok(self.after.last().copied() != known)
    }
}

/// Where the undo log of the run in `folder` lies, if it has one.
pub fn locate(root: &Path, folder: &str) -> Option<PathBuf> {
    let places = [root.join(folder), root.join(vault(folder, true))];
    places
        .map(|place| place.join(CHANGES))
        .into_iter()
        .find(|path| path.symlink_metadata().is_ok_and(|found| found.is_file()))
}

/// Reads the undo log of the run in `folder`, relative to the root; `None` where it has none.
///
/// # Errors
/// When it cannot be read, or is not what this program writes.
pub fn read(root: &Path, folder: &str) -> Result<Option<ChangeLog>, UndoLogError> {
    let Some(path) = locate(root, folder) else {
        return Ok(None);
    };
    let parse = |json: Vec<u8>| match serde_json::from_slice::<ChangeLog>(&json) {
        Ok(changes) if changes.schema != SCHEMA => {
            Err(io::Error::other("it is of another version of this program"))
        }
        // It lies where a build may write, and comes with a repository that has a `logs` of its own.
        Ok(changes) => match changes.forbidden() {
            None => Ok(changes),
            Some(path) => Err(io::Error::other(format!(
                "it names `{}`, which no run may change",
                path.escape_debug()
            ))),
        },
        Err(error) => Err(error.into()),
    };
    let read = disk::read(&path, LARGEST).and_then(parse);
    Ok(Some(read.map_err(PathError::of("read", path))?))
}

/// Gives a file a second name; or, where that cannot be, its bytes to a new file. A file that has
/// several names already could be written to through one of them. Gives what is kept its mode, and says which.
fn link_or_copy(from: BorrowedFd<'_>, name: &str, to: &OwnedFd, kept: &str) -> io::Result<u32> {
    let stat = statat(from, name)?;
    let is_only_name = stat.st_nlink <= 1;
    match is_only_name.then(|| linkat(from, name, to, kept)) {
        Some(Ok(())) => Ok(Rights::of(&stat).mode),
        // There is something: nobody but us writes there.
        Some(Err(Errno::EXIST)) => Err(Errno::EXIST.into()),
        // Another file system, one without links, or somebody else's file.
        Some(Err(_)) | None => copy(from, name, to, kept),
    }
}

/// Copies a file to one that must not exist, with its attributes as far as that can be, and to the disk. Says which mode
/// the copy has.
fn copy(from: BorrowedFd<'_>, name: &str, to: &OwnedFd, kept: &str) -> io::Result<u32> {
    let mut source = open_regular(from, name)?.ok_or_else(changed_meanwhile)?;
    let mut copy = create_new(to.as_fd(), kept, 0o600)?;
    disk::copy(&mut source, &mut copy)?;
    let stat = fstat(&source)?;
    hand_on(&source, stat.st_mode, &copy, Rights::of(&stat))?;
    disk::sync(&copy)?;
    Ok(Rights::of(&fstat(&copy)?).mode)
}
