//! The undo log of a run: the bytes that its replies replaced or removed, and the states that followed.
//!
//! Writes below the run's folder: the saved files as `replaced/N`, and `changes.json`, which describes them; and,
//! during the run, a file that reserves disk space for reverting its edits. A file that contains an API key is saved
//! next to the keys instead, as is `changes.json` if a path contains one. Guarantees that bytes are saved before they
//! are replaced, and that no planted link is followed.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Seek as _};
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, RawMode, fstat};
use rustix::io::Errno;

use super::attributes::{Rights, preserve_metadata};
use super::beneath::{Beneath, PathEntry, Root, open_regular, split};
use super::changes::{Before, ChangeLog, LoggedChange, SCHEMA, saved_path, vault};
use super::digest::{Digest, changed_meanwhile};
use super::disk::{self, linkat, statat};
use super::error::ApplyError;
use super::operation::{FileOperation, Operation};
use super::record::Record;
use super::spelling::PathScope;
use crate::project::run_folder::{CHANGES, REPLACED, RunFolder};
use crate::secret::Redactor;
use crate::sys::files::{MIB, PathError};
use crate::sys::identity::{Fingerprint, Stamp, changed};
use crate::sys::parallel::in_parallel;
use crate::sys::sha256;

/// Maximum size of `changes.json`, in bytes.
const LARGEST: u64 = 16 * MIB;
/// Number of bytes of a file read at a time.
const CHUNK: usize = 64 << 10;

/// An error from reading the undo log of a run.
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
    /// The changes before the last entry, until that is settled.
    previous: Option<ChangeLog>,
    /// True if a path contains a key.
    beside_keys: bool,
    /// The number of saved files.
    saved: u32,
    /// The states that replies gave files in a scratch tree, where a build may change them before they are applied.
    replied: BTreeMap<String, Digest>,
    /// True if an agent writes the files, so no reply contains them as a whole.
    pub is_agents: bool,
}

impl<'r> UndoLog<'r> {
    /// Creates the log of a run that has changed nothing yet.
    pub fn new(root: &Path, own: Arc<RunFolder>, redactor: &'r Redactor) -> Self {
        Self {
            root: root.to_path_buf(),
            folder: own.name(),
            own,
            redactor,
            changes: ChangeLog::none(),
            previous: None,
            beside_keys: false,
            saved: 0,
            replied: BTreeMap::new(),
            is_agents: false,
        }
    }

    /// Returns the run's folder, relative to the root.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Returns the run's folder through its original handle, even if it has been moved.
    pub(super) fn held(&self) -> io::Result<Root> {
        self.own.held().map(Root::from)
    }

    /// Records the contents that a reply gave these files in a scratch tree, whose files are applied next.
    pub fn replied<'e>(&mut self, files: impl Iterator<Item = (&'e str, &'e str)>) {
        let files = files.map(|(path, content)| (path.to_owned(), Digest::of(content.as_bytes())));
        self.replied = files.collect();
    }

    /// Returns the path of a saved file that no longer exists, if any.
    pub fn lost(&self) -> Option<String> {
        let files = self.changes.files.values();
        let mut kept =
            files.filter_map(|change| Some(saved_path(&self.folder, change.before.as_ref()?)));
        kept.find(|path| self.own.home().join(path).symlink_metadata().is_err())
    }

    /// Returns the changes of the run.
    pub fn changes(&self) -> &ChangeLog {
        &self.changes
    }

    /// Saves the files that `steps` replace or remove. Returns a record of each.
    pub(super) fn keep(
        &mut self,
        root: &Root,
        steps: &[FileOperation<'_>],
    ) -> Result<Vec<Option<Before>>, ApplyError> {
        let mut number = self.saved;
        let mut next = |step: &FileOperation<'_>| {
            number += u32::from(step.present.is_some());
            number
        };
        let numbers: Vec<u32> = steps.iter().map(&mut next).collect();
        self.saved = number;
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
        let mut beneath = Beneath::of(root.clone());
        let mut vaults = [None, None];
        let mut keep = |slot: usize| -> io::Result<_> {
            let step = &steps[slot];
            let Some(present) = step.present else {
                return Ok(None);
            };
            let (parent, name) = split(step.path);
            let from = beneath.at(parent).map_err(io::Error::from)?;
            let (digest, beside_keys) = self.examine(from, name)?;
            let vault = match &mut vaults[usize::from(beside_keys)] {
                Some(vault) => vault,
                none => none.insert(self.open_vault(beside_keys)?),
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
        let kept = share
            .map(|slot| Ok(keep(slot).map_err(PathError::of("keep a copy of", steps[slot].path))?));
        kept.collect()
    }

    /// Returns the digest of a file, and whether it contains a key.
    fn examine(&self, directory: BorrowedFd<'_>, name: &str) -> io::Result<(Digest, bool)> {
        let mut file = open_regular(directory, name)?.ok_or_else(changed_meanwhile)?;
        let digest = Digest::of_file(file.try_clone()?)?;
        file.rewind()?;
        let mut searched = self.redactor.writer(io::sink());
        io::copy(&mut BufReader::with_capacity(CHUNK, file), &mut searched)?;
        let (_, holds_key) = searched.finish_found()?;
        Ok((digest, holds_key))
    }

    /// Opens the directory of saved files, creating it if missing.
    fn open_vault(&self, beside_keys: bool) -> io::Result<OwnedFd> {
        if beside_keys {
            return Ok(Root::open(self.own.home())?
                .ensure_directory_of_ours(&vault(&self.folder, true))?);
        }
        Ok(self.open()?.ensure_directory_of_ours(REPLACED)?)
    }

    /// Opens the run's folder, if it still exists.
    fn open(&self) -> io::Result<Root> {
        self.own.open().map(Root::from)
    }

    /// Records the changes about to be made, and writes the log.
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
            let entry = self.changes.files.entry(step.path.to_owned());
            let change = entry.or_insert_with(|| LoggedChange {
                before: before.clone(),
                ..LoggedChange::default()
            });
            let replied = self.replied.remove(step.path);
            if let Some(replied) = replied {
                change.add(Some(replied));
            }
            change.add(*digest);
            change.stamp = record.stamp;
            let is_built = replied.is_some() && replied != *digest;
            if let (true, Operation::Write(content)) = (self.is_agents || is_built, &step.action) {
                change.sha256 = Some(sha256::of(content));
            }
        }
        self.changes.directories.extend(record.new_directories());
        if record.scope == PathScope::Agent {
            self.changes.scope = record.scope;
        }
        let saved = self.save().and_then(|size| self.reserve(size));
        let path = format!("{}/{CHANGES}", self.folder);
        Ok(saved.map_err(PathError::of("write", path))?)
    }

    /// Keeps the last entry if its edit was carried out, and otherwise removes it. If the log cannot be written, the
    /// entry stays, which undo detects.
    pub(super) fn settle(&mut self, is_done: bool) {
        if let Some(previous) = self.previous.take().filter(|_| !is_done) {
            self.changes = previous;
            let _ = if self.changes.files.is_empty() {
                self.remove(self.beside_keys)
            } else {
                self.save().map(drop)
            };
        }
    }

    /// Removes all entries; none of the edits has reached the project.
    pub fn forget(&mut self) {
        self.changes = ChangeLog::none();
        // If this fails, the file lists changes that undo finds already undone.
        let _ = self.remove(self.beside_keys);
    }

    /// Records the current modes of the files below `root` as those before the run: they may have been changed there.
    ///
    /// # Errors
    /// Fails if the log cannot be written.
    pub fn adopt_modes(&mut self, root: &Path) -> io::Result<()> {
        let (mut beneath, mut news) = (Beneath::open(root)?, false);
        for (path, change) in &mut self.changes.files {
            // The run may not replace anything but a file.
            if let Some(before) = &mut change.before
                && let Ok(PathEntry::File(file)) = beneath.entry(path)
            {
                let mode = Rights::of(&fstat(&file)?).mode;
                news |= mode != before.mode;
                before.mode = mode;
            }
        }
        if news {
            self.save()?;
        }
        Ok(())
    }

    /// Reserves disk space for the journal and the log needed to revert the run.
    fn reserve(&self, size: usize) -> io::Result<()> {
        const LEAST: usize = 64 << 10;
        self.release();
        let folder = self.open()?.directory_to_read("")?;
        let file = disk::create_new_in(folder, RESERVED, 0o666)?;
        disk::allocate(&file, (3 * size).max(LEAST))
    }

    /// Releases the reserved disk space.
    pub fn release(&self) {
        if let Ok(folder) = self.own.held() {
            let _ = rustix::fs::unlinkat(folder, RESERVED, AtFlags::empty());
        }
    }

    /// Records what a build has done to the files changed by the run: its changes count as the run's, and are undone
    /// with it. Files unchanged since `installed` are skipped.
    ///
    /// # Errors
    /// Fails if a file cannot be examined, or the log cannot be written.
    pub fn observe(&mut self, installed: Stamp) -> io::Result<()> {
        let mut beneath = Beneath::open(&self.root)?;
        let (mut news, mut unseen) = (false, None);
        for (path, change) in &mut self.changes.files {
            match change.look(&mut beneath, path, installed) {
                Ok(changed) => news |= changed,
                Err(error) => unseen = unseen.or(Some(error)),
            }
        }
        if news {
            self.save()?;
        }
        unseen.map_or(Ok(()), Err)
    }

    /// Writes the log, which maps saved files to paths, and syncs it to disk. Returns its size in bytes.
    fn save(&self) -> io::Result<usize> {
        let mut json = serde_json::to_vec(&self.changes)?;
        json.push(b'\n');
        disk::replace_in(self.place(self.beside_keys)?, CHANGES, |file| {
            disk::write_all(file, &json)?;
            disk::sync(file)
        })?;
        if self.beside_keys {
            // An earlier version may be in the run's folder.
            let _ = self.remove(false);
        }
        Ok(json.len())
    }

    /// Opens the directory that the log is written to.
    fn place(&self, beside_keys: bool) -> io::Result<OwnedFd> {
        if beside_keys {
            return self.open_vault(true);
        }
        Ok(self.open()?.directory_to_read("")?)
    }

    fn remove(&self, beside_keys: bool) -> io::Result<()> {
        let place = self.place(beside_keys)?;
        Ok(disk::unlinkat(place, CHANGES, AtFlags::empty())?)
    }
}

/// The file that reserves disk space during a run.
const RESERVED: &str = ".reserved";

/// Releases the disk space reserved by the run in `folder`, an untrusted path that may come from a journal.
pub(super) fn release(root: &Root, folder: &str) {
    if let Ok(folder) = root.directory_to_read(folder) {
        let _ = rustix::fs::unlinkat(folder, RESERVED, AtFlags::empty());
    }
}

impl LoggedChange {
    /// Adds a later run's changes to the same file.
    pub fn then(&mut self, later: &Self) {
        later.after.iter().for_each(|state| self.add(*state));
        self.sha256 = later.sha256.clone().or_else(|| self.sha256.take());
    }

    fn add(&mut self, state: Option<Digest>) {
        if self.after.last() != Some(&state) {
            self.sha256 = None;
        }
        // A repeated state becomes the latest.
        self.after.retain(|other| *other != state);
        self.after.push(state);
    }

    /// Records the file's current state if it differs from the last one written.
    fn look(&mut self, beneath: &mut Beneath, path: &str, installed: Stamp) -> io::Result<bool> {
        let (parent, name) = split(path);
        let stat = beneath
            .at(parent)
            .and_then(|directory| statat(directory, name));
        let known = self.after.last().copied();
        match stat {
            // Undo cannot reach such a path, so it is not recorded.
            Err(Errno::LOOP | Errno::XDEV) => {}
            Err(Errno::NOENT | Errno::NOTDIR) => self.add(None),
            Err(errno) => return Err(errno.into()),
            Ok(stat)
                if Fingerprint::from(&stat).modified == self.stamp
                    && changed(&stat) <= installed => {}
            Ok(_) => {
                if let PathEntry::File(mut file) = beneath.entry(path)? {
                    self.add(Some(Digest::of_file(file.try_clone()?)?));
                    if self.after.last().copied() != known {
                        file.rewind()?;
                        self.sha256 = Some(sha256::of_file(file)?);
                    }
                }
            }
        }
        Ok(self.after.last().copied() != known)
    }
}

/// Returns the path of the undo log of the run in `folder`, if it has one.
pub fn locate(root: &Path, folder: &str) -> Option<PathBuf> {
    [root.join(folder), root.join(vault(folder, true))]
        .map(|place| place.join(CHANGES))
        .into_iter()
        .find(|path| path.symlink_metadata().is_ok_and(|found| found.is_file()))
}

/// Reads the undo log of the run in `folder`, relative to the root; `None` if it has none.
///
/// # Errors
/// Fails if it cannot be read, or is not in this program's format.
pub fn read(root: &Path, folder: &str) -> Result<Option<ChangeLog>, UndoLogError> {
    let Some(path) = locate(root, folder) else {
        return Ok(None);
    };
    let parse = |json: Vec<u8>| match serde_json::from_slice::<ChangeLog>(&json) {
        Ok(changes) if changes.schema != SCHEMA => {
            Err(io::Error::other("it is of another version of this program"))
        }
        // The log may have been written by a build, or have come with a repository that contains a `logs` directory.
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

/// Saves a file by a hard link, or by a copy if that is not possible: a file with several names could be modified
/// through another one. Returns the mode of the saved file.
fn link_or_copy(from: BorrowedFd<'_>, name: &str, to: &OwnedFd, kept: &str) -> io::Result<RawMode> {
    let stat = statat(from, name)?;
    let is_only_name = stat.st_nlink <= 1;
    match is_only_name.then(|| linkat(from, name, to, kept)) {
        Some(Ok(())) => Ok(Rights::of(&stat).mode),
        // Only this program writes there, so an existing file is an error.
        Some(Err(Errno::EXIST)) => Err(Errno::EXIST.into()),
        // The file is on another file system, on one without links, or belongs to another user.
        Some(Err(_)) | None => copy(from, name, to, kept),
    }
}

/// Copies a file to one that must not exist, with as many attributes as possible, and syncs it to disk. Returns the
/// mode of the copy.
fn copy(from: BorrowedFd<'_>, name: &str, to: &OwnedFd, kept: &str) -> io::Result<RawMode> {
    let mut source = open_regular(from, name)?.ok_or_else(changed_meanwhile)?;
    let mut copy = disk::create_new_in(to, kept, 0o600)?;
    disk::copy(&mut source, &mut copy)?;
    let stat = fstat(&source)?;
    preserve_metadata(&source, stat.st_mode, &copy, Rights::of(&stat))?;
    disk::sync(&copy)?;
    Ok(Rights::of(&fstat(&copy)?).mode)
}
