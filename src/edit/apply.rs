//! Puts verified edits on the disk, all or nothing, even if the program is killed part-way.
//!
//! Writes below the root, the journal, and the undo log. Each file is first written beside its target, under a
//! name of its own, and renamed into place when all of them are written; so nobody ever sees half a
//! file, and a full disk is noticed before anything has changed. A new directory is made as a whole
//! and gets into place by one rename. A file that is replaced takes the staged name until the end.
//! The journal says what is under way from before the first change until after the last, so that an
//! error or a kill part-way is undone: see `recovery`. All of it goes through directory handles that
//! cannot lead out of the root.
//!
//! For power cuts, only the journal and the undo log are flushed to the disk before anything changes,
//! which costs next to nothing; they, and the file system's keeping of the order of renames (ext4, XFS, Btrfs), see to it that
//! the old tree can be had back. A reply's new files follow later, commonly while the build runs. Until they
//! are there, the journal stays: should a power cut tear one of them, all of them are undone.

use std::collections::BTreeSet;
use std::fs::{File, FileTimes, Permissions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Seek as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::beneath::{Directory, Root, split};
use super::digest::{Digest, Stamp};
use super::journal::{Journal, JournalError};
use super::place::{Failed, Place};
use super::record::{Change, Old, Record, RecordedUnit, STAGED};
use super::undo_log::{Before, UndoLog, open_regular};
use super::verify::Present;
use super::{Action, VerifiedEdits, disk, recovery};

/// Many files are written in this many threads, which on two cores halves the time.
const THREADS: usize = 2;
/// From this many files on.
const MANY_FILES: usize = 64;

/// Why a reply was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Something failed; everything was put back.
    #[error("cannot {action} `{}`: {source}", .path.display())]
    RolledBack {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// Something failed, and something else while it was being put back.
    #[error("{error}; and not everything could be put back: {obstacle}")]
    NotRolledBack {
        /// What failed first.
        error: Box<ApplyError>,
        /// What stands in the way of putting back the rest.
        obstacle: recovery::RecoverError,
    },
    /// The journal could not be written; nothing was changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What an earlier application has left could not be put in order; nothing was changed.
    #[error(transparent)]
    Earlier(#[from] recovery::RecoverError),
}

/// Where edits go.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'t> {
    /// The project's root.
    pub root: &'t Path,
    /// Where the journal is kept: a directory that no reply may write to.
    pub journal: &'t Path,
    /// The time; every new file says that it was written then.
    pub now: SystemTime,
}

/// What is to be done to one file.
pub(super) struct Step<'e> {
    /// The path, relative to the root.
    pub path: &'e str,
    /// What is to be there.
    pub new: New<'e>,
    /// What is there now.
    pub present: Option<Present>,
}

/// What is to be at a path.
pub(super) enum New<'e> {
    /// A file with this content.
    Text(&'e str),
    /// The file whose bytes are kept at `path`, relative to the root.
    Kept { path: String, before: &'e Before },
    /// Nothing.
    Nothing,
}

/// When new files are on the disk for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Durability {
    /// Before they count.
    AtOnce,
    /// When somebody has called [`Applied::flush`]; until then they count only as far as they are whole.
    Later,
}

/// An application whose new tree counts.
#[derive(Debug)]
pub struct Applied {
    journal: Journal,
    record: Record,
    /// What kept the files that were replaced from being removed: the next run removes them.
    pub left: Option<recovery::RecoverError>,
}

impl Applied {
    /// Sees that the new files are on the disk, and removes the journal; says whether that is done: it
    /// is left to the next run when `stop` says so, or when something could not be removed.
    ///
    /// # Errors
    /// When the system does not get them there.
    pub fn flush(&self, root: &Path, stop: &AtomicBool) -> Result<bool, recovery::RecoverError> {
        if self.left.is_some() {
            return Ok(false);
        }
        let root = Root::open(root).map_err(recovery::failed("."))?;
        let flushed = recovery::flush(&root, &self.record, stop)?;
        if flushed {
            self.journal.remove()?;
        }
        Ok(flushed)
    }

    /// When it was complete.
    #[must_use]
    pub fn installed(&self) -> Stamp {
        // Where that cannot be told, everything later counts as somebody's change, and is looked at.
        self.journal.own_until().unwrap_or_default()
    }

    /// How many files were written.
    #[must_use]
    pub fn files(&self) -> usize {
        self.record.new_files().len()
    }

    /// Notes that the run has come to its end.
    ///
    /// # Errors
    /// When that cannot be noted; the next run then takes this one for cut short.
    pub fn end(mut self) -> Result<(), JournalError> {
        self.journal.end()
    }
}

/// Applies `edits`. What they replace is kept in `undo_log` first.
///
/// # Errors
/// When anything fails; the tree is then as it was before, unless the error says otherwise.
pub fn apply(
    tree: Tree<'_>,
    edits: &VerifiedEdits,
    undo_log: &mut UndoLog<'_>,
) -> Result<Option<Applied>, ApplyError> {
    if edits.edits().is_empty() {
        return Ok(None);
    }
    // An earlier reply of this run must be on the disk for good: there is no way back behind it.
    recovery::settle(tree)?;
    let steps = steps_of(edits);
    let whole = Whole {
        steps: &steps,
        directories: Vec::new(),
        durability: Durability::Later,
    };
    take(tree, &whole, Some(undo_log), Journalling::On).map(Some)
}

fn steps_of(edits: &VerifiedEdits) -> Vec<Step<'_>> {
    let steps = edits.edits().iter().map(|edit| Step {
        path: edit.path(),
        new: match edit.action() {
            Action::Write(content) => New::Text(content),
            Action::Remove => New::Nothing,
        },
        present: edit.present(),
    });
    steps.collect()
}

/// All that is to be done at once.
pub(super) struct Whole<'w, 's> {
    /// File by file, sorted by path.
    pub steps: &'w [Step<'s>],
    /// Directories to remove in the end, inner ones first, as far as they are empty.
    pub directories: Vec<String>,
    /// When new files are on the disk for good.
    pub durability: Durability,
}

/// Whether there is a journal of what is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Journalling {
    /// There is, so that a kill leaves nothing half done.
    On,
    /// There is none: the last resort of a run that takes its edits back on a disk that takes no more.
    Off,
}

/// Does all of it, or nothing.
pub(super) fn take(
    tree: Tree<'_>,
    whole: &Whole<'_, '_>,
    mut undo_log: Option<&mut UndoLog<'_>>,
    journalling: Journalling,
) -> Result<Applied, ApplyError> {
    let root = Root::open(tree.root).map_err(failed("open", tree.root))?;
    let plan = Plan::of(&root, whole.steps, tree.now, whole.durability)?;
    let done = plan
        .record(whole.directories.clone(), undo_log.as_deref_mut())
        .and_then(|record| plan.carry_out_recorded(tree, record, journalling));
    match (&done, undo_log) {
        (Ok(_), Some(undo_log)) => undo_log.confirm(),
        (Err(_), Some(undo_log)) => undo_log.retract(),
        (_, None) => {}
    }
    done
}

pub(super) fn failed<E: Into<io::Error>>(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(E) -> ApplyError {
    let path = path.into();
    move |error| ApplyError::RolledBack {
        action,
        path,
        source: error.into(),
    }
}

/// What gets into place by one rename: a file, or a new directory with all the files in it.
struct Unit<'e> {
    /// Where it goes.
    target: &'e str,
    /// Where it is made: the same directory, under a name of its own.
    staged: String,
    /// The steps that are part of it.
    steps: Range<usize>,
    is_directory: bool,
}

/// What is to be made where, and renamed to what. The steps are sorted by path.
struct Plan<'e> {
    root: &'e Root,
    steps: &'e [Step<'e>],
    units: Vec<Unit<'e>>,
    /// For each step the path that its file is written to.
    staged: Vec<String>,
    now: SystemTime,
    durability: Durability,
}

impl<'e> Plan<'e> {
    /// Looks which directories are there; changes nothing.
    fn of(
        root: &'e Root,
        steps: &'e [Step<'e>],
        now: SystemTime,
        durability: Durability,
    ) -> Result<Self, ApplyError> {
        let tag = RandomState::new().build_hasher().finish();
        let mut plan = Self {
            root,
            steps,
            units: Vec::new(),
            staged: Vec::with_capacity(steps.len()),
            now,
            durability,
        };
        let mut existing = None;
        for (slot, step) in steps.iter().enumerate() {
            if plan.joins_last_unit(slot, step.path) {
                continue;
            }
            let parent = split(step.path).0;
            let missing = if existing == Some(parent) {
                None
            } else {
                first_missing(root, parent).map_err(failed("open the directory of", step.path))?
            };
            if missing.is_some() && step.present.is_some() {
                let gone = io::Error::other("its directory was removed in the meantime");
                return Err(failed("change", step.path)(gone));
            }
            existing = missing.is_none().then_some(parent);
            // Where nothing is to be and nothing is, no directory is to be made for it.
            let made = missing.filter(|_| !matches!(step.new, New::Nothing));
            let target = made.unwrap_or(step.path);
            let unit = Unit {
                target,
                staged: beside(target, &format!("{STAGED}{tag:016x}-{slot}")),
                steps: slot..slot + 1,
                is_directory: made.is_some(),
            };
            plan.staged
                .push(format!("{}{}", unit.staged, &step.path[target.len()..]));
            plan.units.push(unit);
        }
        Ok(plan)
    }

    /// Whether a file lies in the new directory that is the last unit, and so becomes part of it.
    fn joins_last_unit(&mut self, slot: usize, path: &str) -> bool {
        let Some(unit) = self.units.last_mut().filter(|unit| unit.is_directory) else {
            return false;
        };
        let Some(below) = path
            .strip_prefix(unit.target)
            .filter(|below| below.starts_with('/'))
        else {
            return false;
        };
        unit.steps.end = slot + 1;
        self.staged.push(format!("{}{below}", unit.staged));
        true
    }

    /// What the journal is to say. What is replaced is kept on the way.
    fn record(
        &self,
        directories: Vec<String>,
        undo_log: Option<&mut UndoLog<'_>>,
    ) -> Result<Record, ApplyError> {
        let digests = in_parallel(self.steps.len(), |slots| {
            let digests = self.steps[slots].iter().map(|step| match &step.new {
                New::Text(content) => Some(Digest::of(content.as_bytes())),
                New::Kept { before, .. } => Some(before.digest),
                New::Nothing => None,
            });
            digests.collect::<Vec<_>>()
        });
        let digests: Vec<Option<Digest>> = digests.into_iter().flatten().collect();
        let stamp = stamp(self.now);
        let mut folder = None;
        let kept = match undo_log {
            None => vec![None; self.steps.len()],
            Some(log) => {
                folder = Some(log.folder().to_owned());
                let kept = log.keep(self.root, self.steps)?;
                log.note(self.steps, &kept, &digests, stamp, self.new_directories())?;
                let located = |before: Before| (log.kept_path(&before), before);
                kept.into_iter().map(|kept| kept.map(located)).collect()
            }
        };
        let units = self.units.iter().map(|unit| RecordedUnit {
            target: unit.target.to_owned(),
            staged: unit.staged.clone(),
            change: self.change(unit, &digests, &kept),
        });
        let durable = self.durability == Durability::AtOnce;
        Ok(Record::new(
            folder,
            durable,
            stamp,
            units.collect(),
            directories,
        ))
    }

    fn change(
        &self,
        unit: &Unit<'_>,
        digests: &[Option<Digest>],
        kept: &[Option<(String, Before)>],
    ) -> Change {
        if unit.is_directory {
            let below = |slot: usize| self.steps[slot].path[unit.target.len() + 1..].to_owned();
            let slots = unit.steps.clone();
            let files = slots.filter_map(|slot| Some((below(slot), digests[slot]?)));
            return Change::CreateDirectory {
                files: files.collect(),
            };
        }
        let slot = unit.steps.start;
        let old = self.steps[slot].present.map(|present| Old {
            fingerprint: present.fingerprint,
            kept: kept[slot].clone(),
        });
        match (digests[slot], old) {
            (Some(new), None) => Change::Create { new },
            (Some(new), Some(old)) => Change::Replace { old, new },
            (None, old) => Change::Remove { old },
        }
    }

    /// The directories that are made, outer ones first.
    fn new_directories(&self) -> BTreeSet<String> {
        let mut made = BTreeSet::new();
        for unit in self.units.iter().filter(|unit| unit.is_directory) {
            for slot in unit.steps.clone() {
                let path = self.steps[slot].path;
                let below = path.match_indices('/').map(|(slash, _)| slash);
                let own = below.filter(|slash| *slash >= unit.target.len());
                made.extend(own.map(|slash| path[..slash].to_owned()));
            }
        }
        made
    }

    /// Does it, and undoes it where something fails.
    fn carry_out_recorded(
        &self,
        tree: Tree<'_>,
        record: Record,
        journalling: Journalling,
    ) -> Result<Applied, ApplyError> {
        let mut journal = match journalling {
            Journalling::On => Journal::arm(tree.journal, &record)?,
            Journalling::Off => Journal::without_file(),
        };
        let done = self
            .stage_all()
            .and_then(|()| Ok(journal.begin_installing()?))
            .and_then(|()| self.install_all())
            .and_then(|()| Ok(journal.install()?));
        match done {
            // The tree is the new one, whatever comes now.
            Ok(()) => Ok(Applied {
                left: recovery::remove_leftovers(self.root, &record)
                    .or_else(|_| recovery::remove_leftovers(self.root, &record))
                    .err(),
                journal,
                record,
            }),
            Err(error) => match recovery::roll_back(self.root, &record, &mut journal) {
                Ok(_) => {
                    // Nothing is left to do but this: where it fails, the next run does it.
                    let _ = journal.remove();
                    Err(error)
                }
                Err(obstacle) => Err(ApplyError::NotRolledBack {
                    error: Box::new(error),
                    obstacle,
                }),
            },
        }
    }

    fn stage_all(&self) -> Result<(), ApplyError> {
        self.make_directories()?;
        for staged in in_parallel(self.steps.len(), |slots| self.stage(slots)) {
            staged?;
        }
        Ok(())
    }

    fn install_all(&self) -> Result<(), ApplyError> {
        for installed in in_parallel(self.units.len(), |units| self.install(units)) {
            installed?;
        }
        Ok(())
    }

    /// Makes the new directories, under their staged names.
    fn make_directories(&self) -> Result<(), ApplyError> {
        let in_new = self.units.iter().filter(|unit| unit.is_directory);
        let mut last = None;
        for slot in in_new.flat_map(|unit| unit.steps.clone()) {
            let parent = split(&self.staged[slot]).0;
            if last != Some(parent) {
                self.root
                    .ensure_directory(parent)
                    .map_err(failed("make the directory of", self.steps[slot].path))?;
                last = Some(parent);
            }
        }
        Ok(())
    }

    /// Writes new files under their staged names.
    fn stage(&self, slots: Range<usize>) -> Result<(), ApplyError> {
        let mut directory = Directory::default();
        for slot in slots {
            let step = &self.steps[slot];
            if matches!(step.new, New::Nothing) {
                continue;
            }
            let (parent, name) = split(&self.staged[slot]);
            let staged = directory.at(self.root, parent).map_err(io::Error::from);
            staged
                .and_then(|directory| self.stage_one(directory, name, step))
                .map_err(failed("write", step.path))?;
        }
        Ok(())
    }

    /// Makes a file that must not exist. One that is to replace another gets its mode and owner.
    fn stage_one(&self, directory: BorrowedFd<'_>, name: &str, step: &Step<'_>) -> io::Result<()> {
        let (file, mode_and_owner) = match &step.new {
            New::Nothing => return Ok(()),
            New::Text(content) => {
                // Private until it has its mode: the file that it replaces may be.
                let mode = if step.present.is_some() { 0o600 } else { 0o666 };
                let mut file = create_new(directory, name, mode)?;
                disk::write_all(&mut file, content.as_bytes())?;
                (
                    file,
                    step.present.map(|present| (present.mode, present.owner)),
                )
            }
            New::Kept { path, before } => {
                let file = self.bring_back(path, before, directory, name)?;
                (file, Some((before.mode, before.owner)))
            }
        };
        if let Some((mode, (user, group))) = mode_and_owner {
            // Somebody else's file stays theirs where we may give files away; the owner first, as a
            // change of owner clears mode bits.
            let _ = fchown(&file, Some(user), Some(group));
            disk::set_permissions(&file, Permissions::from_mode(mode))?;
        }
        // Not to the nanosecond everywhere; then a file that a power cut has torn is not known for ours.
        disk::set_times(&file, FileTimes::new().set_modified(self.now))?;
        if self.durability == Durability::AtOnce {
            disk::sync(&file)?;
        }
        Ok(())
    }

    /// A copy of a file that was kept.
    fn bring_back(
        &self,
        path: &str,
        before: &Before,
        directory: BorrowedFd<'_>,
        name: &str,
    ) -> io::Result<File> {
        let (parent, kept) = split(path);
        let vault = self.root.directory_of_ours(parent)?;
        let mut source = open_regular(vault.as_fd(), kept)?
            .ok_or_else(|| io::Error::other(format!("`{path}`, which keeps it, is gone")))?;
        let copied = create_new(directory, name, 0o600).and_then(|mut copy| {
            disk::copy(&mut source, &mut copy)?;
            Ok(copy)
        });
        source.rewind()?;
        let file = if let Ok(copy) = copied {
            copy
        } else {
            // The kept file itself takes no room.
            match disk::unlinkat(directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
            disk::linkat(&vault, kept, directory, name)?;
            source.try_clone()?
        };
        if before.digest.is_of(source)? {
            Ok(file)
        } else {
            Err(io::Error::other(format!(
                "`{path}`, which keeps it, was changed"
            )))
        }
    }

    /// Puts units into their places, up to the first that fails.
    fn install(&self, units: Range<usize>) -> Result<(), ApplyError> {
        let mut directory = Directory::default();
        for unit in &self.units[units] {
            let parent = directory
                .at(self.root, split(unit.target).0)
                .map_err(failed("open the directory of", unit.target))?;
            let place = Place {
                directory: parent,
                name: split(unit.target).1,
                staged: split(&unit.staged).1,
            };
            let step = &self.steps[unit.steps.start];
            let put = match step.new {
                _ if unit.is_directory => place.create(),
                New::Text(_) | New::Kept { .. } => place.write(step.present),
                New::Nothing => place.remove(step.present),
            };
            put.map_err(|Failed { action, source }| failed(action, unit.target)(source))?;
        }
        Ok(())
    }
}

fn create_new(directory: BorrowedFd<'_>, name: &str, mode: u32) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = disk::openat(directory, name, flags, Mode::from_raw_mode(mode))?;
    Ok(File::from(file))
}

/// The time as a file's metadata has it.
fn stamp(time: SystemTime) -> Stamp {
    let (past, since) = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => (false, since),
        Err(before) => (true, before.duration()),
    };
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let nanoseconds = i64::from(since.subsec_nanos());
    match (past, nanoseconds) {
        (false, _) => (seconds, nanoseconds),
        (true, 0) => (-seconds, 0),
        (true, _) => (-seconds - 1, 1_000_000_000 - nanoseconds),
    }
}

/// Does `work` on parts of `0..count`, several at once where there is much to do.
pub(super) fn in_parallel<T: Send>(
    count: usize,
    work: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let size = if count < MANY_FILES {
        count
    } else {
        count.div_ceil(THREADS)
    };
    let mut shares: Vec<Range<usize>> = (0..count)
        .step_by(size.max(1))
        .map(|start| start..count.min(start + size))
        .collect();
    let own = shares.pop().unwrap_or_default();
    thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> = shares
            .into_iter()
            .map(|share| {
                let part = share.clone();
                // Where no thread is to be had, this one does that part too.
                thread::Builder::new()
                    .spawn_scoped(scope, move || work(part))
                    .map_err(|_| share)
            })
            .collect();
        let own = work(own);
        // A panic there goes on here; nothing in `work` panics.
        let joined = others.into_iter().map(|other| match other {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(share) => work(share),
        });
        joined.chain([own]).collect()
    })
}

/// The outermost directory on the way to `directory`, itself included, that is not there.
fn first_missing<'p>(root: &Root, directory: &'p str) -> Result<Option<&'p str>, Errno> {
    let ends = directory
        .match_indices('/')
        .map(|(slash, _)| slash)
        .chain([directory.len()]);
    for path in ends.map(|end| &directory[..end]) {
        match root.directory(path) {
            Ok(_) => {}
            Err(Errno::NOENT) => return Ok(Some(path)),
            Err(errno) => return Err(errno),
        }
    }
    Ok(None)
}

/// The path of `name` in the directory of `path`.
fn beside(path: &str, name: &str) -> String {
    match split(path).0 {
        "" => name.to_owned(),
        parent => format!("{parent}/{name}"),
    }
}

#[cfg(test)]
mod tests;
