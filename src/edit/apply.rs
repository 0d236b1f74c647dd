//! Puts verified edits on the disk, all or nothing, even if the program is killed part-way.
//!
//! Writes below the root, and the journal. Each file is first written beside its target, under a
//! name of its own, and renamed into place when all of them are written; so nobody ever sees half a
//! file, and a full disk is noticed before anything has changed. A new directory is made as a whole
//! and gets into place by one rename. A file that is replaced takes the staged name until the end.
//! The journal says what is under way from before the first change until after the last, so that an
//! error or a kill part-way is undone: see `recovery`. (Nothing is flushed to the disk on the way: a
//! power cut may still lose what the kernel has not written.) All of it goes through directory
//! handles that cannot lead out of the root.

use std::fs::{File, Permissions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::beneath::{Root, split};
use super::journal::{Change, Digest, Journal, JournalError, Record, RecordedUnit};
use super::place::{Failed, Place};
use super::verify::Present;
use super::{Action, VerifiedEdit, VerifiedEdits, recovery};
use crate::environment::Boot;

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
}

/// Where edits go.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'t> {
    /// The project's root.
    pub root: &'t Path,
    /// Where the journal is kept: a directory that no reply may write to.
    pub journal: &'t Path,
    /// The machine's present boot.
    pub boot: &'t Boot,
}

/// Applies `edits`. Gives what kept the files that were replaced from being removed: the next run
/// removes them.
///
/// # Errors
/// When anything fails; the tree is then as it was before, unless the error says otherwise.
pub fn apply(
    tree: Tree<'_>,
    edits: &VerifiedEdits,
) -> Result<Option<recovery::RecoverError>, ApplyError> {
    if edits.edits().is_empty() {
        return Ok(None);
    }
    let root = Root::open(tree.root).map_err(failed("open", tree.root))?;
    let plan = Plan::of(&root, edits.edits())?;
    let record = plan.record(tree.boot);
    let journal = Journal::arm(tree.journal, &record)?;
    match plan.carry_out().and_then(|()| Ok(journal.commit()?)) {
        // The tree is the new one, whatever comes now.
        Ok(committed) => Ok(recovery::remove_leftovers(&root, &record)
            .and_then(|()| Ok(committed.remove()?))
            .err()),
        Err(error) => match recovery::roll_back(&root, &record, tree.boot) {
            Ok(()) => {
                journal.remove()?;
                Err(error)
            }
            Err(obstacle) => Err(ApplyError::NotRolledBack {
                error: Box::new(error),
                obstacle,
            }),
        },
    }
}

fn failed<E: Into<io::Error>>(
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
    /// The edits that are part of it.
    edits: Range<usize>,
    is_directory: bool,
}

/// What is to be made where, and renamed to what. The edits are sorted by path.
struct Plan<'e> {
    root: &'e Root,
    edits: &'e [VerifiedEdit],
    units: Vec<Unit<'e>>,
    /// For each edit the path that its file is written to.
    staged: Vec<String>,
}

impl<'e> Plan<'e> {
    /// Looks which directories are there; changes nothing.
    fn of(root: &'e Root, edits: &'e [VerifiedEdit]) -> Result<Self, ApplyError> {
        let tag = RandomState::new().build_hasher().finish();
        let mut plan = Self {
            root,
            edits,
            units: Vec::new(),
            staged: Vec::with_capacity(edits.len()),
        };
        let mut existing = None;
        for (slot, edit) in edits.iter().enumerate() {
            if plan.joins_last_unit(slot, edit.path()) {
                continue;
            }
            let parent = split(edit.path()).0;
            let missing = if existing == Some(parent) {
                None
            } else {
                first_missing(root, parent).map_err(failed("open the directory of", edit.path()))?
            };
            if missing.is_some() && edit.present().is_some() {
                let gone = io::Error::other("its directory was removed in the meantime");
                return Err(failed("change", edit.path())(gone));
            }
            existing = missing.is_none().then_some(parent);
            let target = missing.unwrap_or(edit.path());
            let unit = Unit {
                target,
                staged: beside(target, &format!(".code-commit-{tag:016x}-{slot}")),
                edits: slot..slot + 1,
                is_directory: missing.is_some(),
            };
            plan.staged
                .push(format!("{}{}", unit.staged, &edit.path()[target.len()..]));
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
        unit.edits.end = slot + 1;
        self.staged.push(format!("{}{below}", unit.staged));
        true
    }

    /// What the journal is to say.
    fn record(&self, boot: &Boot) -> Record {
        let digests = in_parallel(self.edits.len(), |slots| {
            let digest = |edit: &VerifiedEdit| match edit.action() {
                Action::Write(content) => Digest::of(content.as_bytes()),
                Action::Remove => Digest::of(b""),
            };
            self.edits[slots].iter().map(digest).collect::<Vec<_>>()
        });
        let digests: Vec<Digest> = digests.into_iter().flatten().collect();
        let units = self.units.iter().map(|unit| RecordedUnit {
            target: unit.target.to_owned(),
            staged: unit.staged.clone(),
            change: self.change(unit, &digests),
        });
        Record::new(boot, units.collect())
    }

    fn change(&self, unit: &Unit<'_>, digests: &[Digest]) -> Change {
        if unit.is_directory {
            let below = |slot: usize| self.edits[slot].path()[unit.target.len() + 1..].to_owned();
            let files = unit.edits.clone().map(|slot| (below(slot), digests[slot]));
            return Change::CreateDirectory {
                files: files.collect(),
            };
        }
        let edit = &self.edits[unit.edits.start];
        let new = digests[unit.edits.start];
        match (edit.action(), edit.present()) {
            (Action::Write(_), None) => Change::Create { new },
            (Action::Write(_), Some(present)) => Change::Replace {
                old: present.fingerprint,
                new,
            },
            (Action::Remove, present) => Change::Remove {
                old: present.map(|p| p.fingerprint),
            },
        }
    }

    fn carry_out(&self) -> Result<(), ApplyError> {
        self.make_directories()?;
        for staged in in_parallel(self.edits.len(), |slots| self.stage(slots)) {
            staged?;
        }
        for installed in in_parallel(self.units.len(), |units| self.install(units)) {
            installed?;
        }
        Ok(())
    }

    /// Makes the new directories, under their staged names.
    fn make_directories(&self) -> Result<(), ApplyError> {
        let in_new = self.units.iter().filter(|unit| unit.is_directory);
        let mut last = None;
        for slot in in_new.flat_map(|unit| unit.edits.clone()) {
            let parent = split(&self.staged[slot]).0;
            if last != Some(parent) {
                self.root
                    .ensure_directory(parent)
                    .map_err(failed("make the directory of", self.edits[slot].path()))?;
                last = Some(parent);
            }
        }
        Ok(())
    }

    /// Writes new files under their staged names.
    fn stage(&self, slots: Range<usize>) -> Result<(), ApplyError> {
        let mut directory = Directory::default();
        for slot in slots {
            let edit = &self.edits[slot];
            if let Action::Write(content) = edit.action() {
                let (parent, name) = split(&self.staged[slot]);
                let staged = directory.at(self.root, parent).map_err(io::Error::from);
                staged
                    .and_then(|directory| Self::write_new(directory, name, content, edit.present()))
                    .map_err(failed("write", edit.path()))?;
            }
        }
        Ok(())
    }

    /// Writes a file that must not exist. One that is to replace another gets its mode and owner.
    fn write_new(
        directory: BorrowedFd<'_>,
        name: &str,
        content: &str,
        replaces: Option<Present>,
    ) -> io::Result<()> {
        // Private until it has its mode: the file that it replaces may be.
        let mode = if replaces.is_some() { 0o600 } else { 0o666 };
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(directory, name, flags, Mode::from_raw_mode(mode))?);
        file.write_all(content.as_bytes())?;
        if let Some(present) = replaces {
            // Somebody else's file stays theirs where we may give files away; the owner first, as a
            // change of owner clears mode bits.
            let (user, group) = present.owner;
            let _ = fchown(&file, Some(user), Some(group));
            file.set_permissions(Permissions::from_mode(present.mode))?;
        }
        Ok(())
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
            let put = match self.edits[unit.edits.start].action() {
                _ if unit.is_directory => place.create(),
                Action::Write(_) => place.write(self.edits[unit.edits.start].present()),
                Action::Remove => place.remove(self.edits[unit.edits.start].present()),
            };
            put.map_err(|Failed { action, source }| failed(action, unit.target)(source))?;
        }
        Ok(())
    }
}

/// Does `work` on parts of `0..count`, several at once where there is much to do.
fn in_parallel<T: Send>(count: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
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

/// The directory that was opened last: the edits are sorted, so one handle serves all its files.
#[derive(Default)]
struct Directory {
    open: Option<(String, OwnedFd)>,
}

impl Directory {
    fn at(&mut self, root: &Root, path: &str) -> Result<BorrowedFd<'_>, Errno> {
        let is_open = self.open.as_ref().is_some_and(|(open, _)| open == path);
        if !is_open {
            self.open = Some((path.to_owned(), root.directory(path)?));
        }
        self.open
            .as_ref()
            .map(|(_, handle)| handle.as_fd())
            .ok_or(Errno::BADF)
    }
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
