//! Puts verified edits on the disk, all or nothing.
//!
//! Writes below the root and nowhere else. Each file is first written beside its target, under a
//! name of its own, and renamed into place when all of them are written; so nobody ever sees half a
//! file, and a full disk is noticed before anything has changed. A new directory is made as a whole
//! and gets into place by one rename. A file that is replaced takes the staged name until the end. An
//! error part-way puts everything back. All of it goes through directory handles that cannot lead
//! out of the root.

use std::fs::{File, Permissions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::ops::Range;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::beneath::Root;
use super::verify::Present;
use super::{Action, VerifiedEdit, VerifiedEdits};

/// Many files are written in this many threads, which on two cores halves the time.
const THREADS: usize = 2;
/// From this many files on.
const MANY_FILES: usize = 64;

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}{}", .path.display(), describe(.left))]
pub struct ApplyError {
    /// What was being done.
    pub action: &'static str,
    /// To what.
    pub path: PathBuf,
    /// The system's word.
    pub source: io::Error,
    /// What could not be put back; empty where the tree is as it was.
    pub left: Vec<String>,
}

fn describe(left: &[String]) -> String {
    if left.is_empty() {
        String::new()
    } else {
        format!("; putting back failed: {}", left.join("; "))
    }
}

/// Applies `edits` to the tree below `root`.
///
/// # Errors
/// When anything fails; the tree is then as it was before, unless the error says otherwise.
pub fn apply(root: &Path, edits: &VerifiedEdits) -> Result<(), ApplyError> {
    let root = Root::open(root).map_err(failed("open", root))?;
    let mut transaction = Transaction::plan(&root, edits.edits())?;
    let Err(error) = transaction.run() else {
        transaction.remove_replaced();
        return Ok(());
    };
    let left = transaction.undo();
    // What could not be put back may be in one of the staged files.
    if left.is_empty() {
        transaction.remove_staged();
    }
    Err(ApplyError { left, ..error })
}

fn failed<E: Into<io::Error>>(
    action: &'static str,
    path: impl Into<PathBuf>,
) -> impl FnOnce(E) -> ApplyError {
    let path = path.into();
    move |error| ApplyError {
        action,
        path,
        source: error.into(),
        left: Vec::new(),
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

/// The application of a reply's edits, which are sorted by path.
struct Transaction<'e> {
    root: &'e Root,
    edits: &'e [VerifiedEdit],
    units: Vec<Unit<'e>>,
    /// For each edit the path that its file is written to.
    staged: Vec<String>,
    /// The directories that were made, outer ones first.
    made: Vec<String>,
    /// The units that are in place.
    installed: Vec<Range<usize>>,
}

impl<'e> Transaction<'e> {
    /// Decides what is made where; changes nothing.
    fn plan(root: &'e Root, edits: &'e [VerifiedEdit]) -> Result<Self, ApplyError> {
        let tag = RandomState::new().build_hasher().finish();
        let mut units: Vec<Unit<'e>> = Vec::new();
        let mut staged = Vec::with_capacity(edits.len());
        let mut existing = None;
        for (slot, edit) in edits.iter().enumerate() {
            let path = edit.path();
            if let Some(unit) = units
                .last_mut()
                .filter(|unit| unit.is_directory && lies_in(path, unit.target))
            {
                unit.edits.end = slot + 1;
                staged.push(format!("{}{}", unit.staged, &path[unit.target.len()..]));
                continue;
            }
            let parent = split(path).0;
            let missing = if existing == Some(parent) {
                None
            } else {
                first_missing(root, parent).map_err(failed("open the directory of", path))?
            };
            existing = missing.is_none().then_some(parent);
            let target = missing.unwrap_or(path);
            let unit = Unit {
                target,
                staged: beside(target, &format!(".code-commit-{tag:016x}-{slot}")),
                edits: slot..slot + 1,
                is_directory: missing.is_some(),
            };
            staged.push(format!("{}{}", unit.staged, &path[target.len()..]));
            units.push(unit);
        }
        Ok(Self {
            root,
            edits,
            units,
            staged,
            made: Vec::new(),
            installed: Vec::new(),
        })
    }

    fn run(&mut self) -> Result<(), ApplyError> {
        self.make_directories()?;
        for result in in_parallel(self.edits.len(), |slots| self.stage(slots)) {
            result?;
        }
        let mut outcome = Ok(());
        for (installed, result) in in_parallel(self.units.len(), |units| self.install(units)) {
            self.installed.push(installed);
            outcome = outcome.and(result);
        }
        outcome
    }

    /// Makes the new directories, under their staged names.
    fn make_directories(&mut self) -> Result<(), ApplyError> {
        for unit in self.units.iter().filter(|unit| unit.is_directory) {
            for slot in unit.edits.clone() {
                let parent = split(&self.staged[slot]).0;
                if self.made.last().is_none_or(|last| last != parent) {
                    let made = &mut self.made;
                    self.root
                        .ensure_directory(parent, &mut |path| made.push(path.to_owned()))
                        .map_err(failed("make the directory of", self.edits[slot].path()))?;
                }
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
                let staged = directory
                    .at(self.root, parent)
                    .map_err(io::Error::from)
                    .and_then(|directory| write_new(directory, name, content, edit.present()));
                staged.map_err(failed("write", edit.path()))?;
            }
        }
        Ok(())
    }

    /// Puts units into their places, up to the first that fails, and says how far it came. One that
    /// failed counts as in place where it has changed anything.
    fn install(&self, units: Range<usize>) -> (Range<usize>, Result<(), ApplyError>) {
        let mut directory = Directory::default();
        for nth in units.clone() {
            let unit = &self.units[nth];
            let placed = match directory.at(self.root, split(unit.target).0) {
                Ok(directory) => self.place(unit, directory).put(),
                Err(errno) => Err(Failed {
                    changed: false,
                    action: "reach",
                    source: errno.into(),
                }),
            };
            if let Err(Failed {
                changed,
                action,
                source,
            }) = placed
            {
                let end = if changed { nth + 1 } else { nth };
                return (units.start..end, Err(failed(action, unit.target)(source)));
            }
        }
        (units, Ok(()))
    }

    fn place<'p>(&'p self, unit: &'p Unit<'_>, directory: BorrowedFd<'p>) -> Place<'p> {
        let change = match &self.edits[unit.edits.start] {
            _ if unit.is_directory => Change::Create,
            edit => match (edit.action(), edit.present()) {
                (Action::Write(_), None) => Change::Create,
                (Action::Write(_), Some(present)) => Change::Replace(present),
                (Action::Remove, Some(present)) => Change::Remove(present),
                // Verification drops these.
                (Action::Remove, None) => Change::Nothing,
            },
        };
        Place {
            directory,
            name: split(unit.target).1,
            staged: split(&unit.staged).1,
            change,
        }
    }

    /// Undoes everything, the latest first, and says what could not be undone.
    fn undo(&self) -> Vec<String> {
        let mut left = Vec::new();
        let mut directory = Directory::default();
        for nth in self
            .installed
            .iter()
            .rev()
            .flat_map(|units| units.clone().rev())
        {
            let unit = &self.units[nth];
            let undone = directory
                .at(self.root, split(unit.target).0)
                .and_then(|directory| self.place(unit, directory).put_back());
            if let Err(errno) = undone {
                let (target, staged) = (unit.target, &unit.staged);
                let error = io::Error::from(errno);
                left.push(format!(
                    "`{target}` ({error}); what was there before may lie in `{staged}`"
                ));
            }
        }
        left
    }

    /// Removes the files that were replaced or removed, once everything is in place.
    fn remove_replaced(&self) {
        self.unlink(|edit| edit.present().is_some());
    }

    /// Removes whatever was made on the way to an edit that failed.
    fn remove_staged(&self) {
        self.unlink(|_| true);
        for path in self.made.iter().rev() {
            let (parent, name) = split(path);
            if let Ok(parent) = self.root.directory(parent) {
                // Somebody else may have put something into it; then it is theirs.
                let _ = unlinkat(parent, name, AtFlags::REMOVEDIR);
            }
        }
    }

    fn unlink(&self, which: impl Fn(&VerifiedEdit) -> bool) {
        let mut directory = Directory::default();
        for (_, staged) in self
            .edits
            .iter()
            .zip(&self.staged)
            .filter(|(edit, _)| which(edit))
        {
            let (parent, name) = split(staged);
            if let Ok(directory) = directory.at(self.root, parent) {
                // Not there is as good as removed; and a file too many is no reason to fail.
                let _ = unlinkat(directory, name, AtFlags::empty());
            }
        }
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
            .map(|share| scope.spawn(move || work(share)))
            .collect();
        let own = work(own);
        // A panic there goes on here; nothing in `work` panics.
        let joined = others.into_iter().map(|other| {
            other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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

/// Writes a file that must not exist. One that is to replace another gets its mode and owner.
fn write_new(
    directory: BorrowedFd<'_>,
    name: &str,
    content: &str,
    replaces: Option<Present>,
) -> io::Result<()> {
    // Private until it has its mode: the file that it replaces may be.
    let mode = if replaces.is_some() { 0o600 } else { 0o666 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
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

/// Why a unit did not get into its place.
struct Failed {
    /// Whether it has changed the tree all the same, so that it must be undone.
    changed: bool,
    action: &'static str,
    source: io::Error,
}

/// What happens at a place.
#[derive(Debug, Clone, Copy)]
enum Change {
    Create,
    Replace(Present),
    Remove(Present),
    Nothing,
}

/// Where a unit goes.
struct Place<'p> {
    directory: BorrowedFd<'p>,
    name: &'p str,
    /// The name that the new file has until it is in place, and the old one from then on.
    staged: &'p str,
    change: Change,
}

impl Place<'_> {
    /// Puts the staged file into its place, or takes the removed one out.
    fn put(&self) -> Result<(), Failed> {
        let (action, moved, old) = match self.change {
            Change::Create => ("create", self.rename_new(self.staged, self.name), None),
            Change::Replace(old) => ("replace", self.exchange(), Some(old)),
            Change::Remove(old) => ("remove", self.rename_new(self.name, self.staged), Some(old)),
            Change::Nothing => return Ok(()),
        };
        moved.map_err(|errno| Failed {
            changed: false,
            action,
            source: errno.into(),
        })?;
        let checked = old.map_or(Ok(()), |old| self.check_old(old));
        checked.map_err(|source| Failed {
            changed: true,
            action,
            source,
        })
    }

    /// Undoes [`put`](Self::put): what was there is there again, and what is new has its staged name
    /// or is gone.
    fn put_back(&self) -> Result<(), Errno> {
        match self.change {
            Change::Create => self.rename_new(self.name, self.staged),
            Change::Replace(_) => renameat(self.directory, self.staged, self.directory, self.name),
            Change::Remove(_) => self.rename_new(self.staged, self.name),
            Change::Nothing => Ok(()),
        }
    }

    /// The staged file takes the name of the one that is there, and that one the staged name.
    fn exchange(&self) -> Result<(), Errno> {
        let (directory, name, staged) = (self.directory, self.name, self.staged);
        match renameat_with(directory, staged, directory, name, RenameFlags::EXCHANGE) {
            // A file system that cannot exchange: a third name keeps the old file.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                let kept = format!("{staged}-old");
                linkat(directory, name, directory, &kept, AtFlags::empty())?;
                renameat(directory, staged, directory, name)?;
                renameat(directory, &kept, directory, staged)
            }
            other => other,
        }
    }

    /// Renames to a name that must not exist.
    fn rename_new(&self, old: &str, new: &str) -> Result<(), Errno> {
        let directory = self.directory;
        match renameat_with(directory, old, directory, new, RenameFlags::NOREPLACE) {
            // A file system without that flag: a look first is the next best.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                match statat(directory, new, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => renameat(directory, old, directory, new),
                    Ok(_) => Err(Errno::EXIST),
                    Err(errno) => Err(errno),
                }
            }
            other => other,
        }
    }

    /// Whether what was taken out of the tree is the file that was verified.
    fn check_old(&self, present: Present) -> io::Result<()> {
        let stat = statat(self.directory, self.staged, AtFlags::SYMLINK_NOFOLLOW)?;
        if (u64_of(stat.st_dev), u64_of(stat.st_ino)) == present.identity {
            return Ok(());
        }
        Err(io::Error::other(
            "it was changed by somebody else in the meantime",
        ))
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The path of `name` in the directory of `path`.
fn beside(path: &str, name: &str) -> String {
    match split(path).0 {
        "" => name.to_owned(),
        parent => format!("{parent}/{name}"),
    }
}

fn lies_in(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// `st_dev` and `st_ino` have other types on other systems.
fn u64_of<T: TryInto<u64>>(value: T) -> u64 {
    value.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::edit::{PathPolicy, parse};

    struct Tree(TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            for (path, content) in files {
                let path = tree.0.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            tree
        }

        fn verified(&self, reply: &str) -> VerifiedEdits {
            let policy = PathPolicy::load(self.0.path(), None).unwrap();
            policy.verify(parse(&Arc::new(reply.to_owned()))).unwrap()
        }

        fn apply(&self, edits: &VerifiedEdits) -> Result<(), ApplyError> {
            apply(self.0.path(), edits)
        }

        /// Every file with mode and content, every directory with a slash.
        fn listing(&self) -> BTreeMap<String, String> {
            let mut listing = BTreeMap::new();
            let mut pending = vec![self.0.path().to_path_buf()];
            while let Some(dir) = pending.pop() {
                for entry in fs::read_dir(dir).unwrap() {
                    let path = entry.unwrap().path();
                    let name = path
                        .strip_prefix(self.0.path())
                        .unwrap()
                        .display()
                        .to_string();
                    let metadata = path.symlink_metadata().unwrap();
                    if metadata.is_dir() {
                        listing.insert(format!("{name}/"), String::new());
                        pending.push(path);
                    } else {
                        let content = fs::read_to_string(&path).unwrap_or_default();
                        listing.insert(name, format!("{:o} {content}", metadata.mode() & 0o7777));
                    }
                }
            }
            listing
        }
    }

    const REPLY: &str =
        "^^^a\nnew a\n^^^end\n^^^d/e/f\nnew f\n^^^end\n^^^gone\n^^^delete\n^^^z\nnew z\n^^^end\n";

    #[test]
    fn files_are_written_made_and_removed_and_modes_kept() {
        let tree = Tree::new(&[("a", "old a"), ("gone", "x"), ("other", "untouched")]);
        fs::set_permissions(tree.0.path().join("a"), Permissions::from_mode(0o4751)).unwrap();
        tree.apply(&tree.verified(REPLY)).unwrap();
        let listing = tree.listing();
        assert_eq!(listing["a"], "4751 new a\n");
        assert!(listing["d/e/f"].ends_with("new f\n"));
        assert!(!listing.contains_key("gone"));
        assert_eq!(listing.len(), 6, "nothing is left behind: {listing:?}");
    }

    #[test]
    fn another_name_of_the_file_keeps_its_bytes() {
        let tree = Tree::new(&[("a", "old a"), ("gone", "x")]);
        fs::hard_link(tree.0.path().join("a"), tree.0.path().join("other")).unwrap();
        tree.apply(&tree.verified(REPLY)).unwrap();
        assert!(tree.listing()["other"].ends_with("old a"));
    }

    #[test]
    fn whatever_fails_part_way_everything_is_put_back() {
        type Trouble = fn(&Path);
        let troubles: [(&str, Trouble); 5] = [
            ("a file appears", |root| {
                fs::write(root.join("z"), "somebody else's").unwrap();
            }),
            ("a directory appears", |root| {
                fs::create_dir(root.join("z")).unwrap();
            }),
            ("a link appears", |root| {
                symlink("/tmp", root.join("d")).unwrap();
            }),
            ("a file is replaced", |root| {
                fs::write(root.join("later"), "theirs").unwrap();
                fs::rename(root.join("later"), root.join("gone")).unwrap();
            }),
            ("a file disappears", |root| {
                fs::remove_file(root.join("gone")).unwrap();
            }),
        ];
        for (name, trouble) in troubles {
            let tree = Tree::new(&[("a", "old a"), ("gone", "x"), ("other", "untouched")]);
            let edits = tree.verified(REPLY);
            trouble(tree.0.path());
            let before = tree.listing();
            let error = tree.apply(&edits).expect_err(name);
            assert_eq!(error.left, [""; 0], "{name}");
            assert_eq!(tree.listing(), before, "{name}");
        }
    }

    #[test]
    fn many_files_are_staged_in_several_threads() {
        let tree = Tree::new(&[]);
        let reply: String = (0..500)
            .map(|n| format!("^^^d{}/f{n}\n{n}\n^^^end\n", n % 7))
            .collect();
        tree.apply(&tree.verified(&reply)).unwrap();
        let listing = tree.listing();
        assert_eq!(listing.len(), 507);
        for n in 0..500 {
            assert!(listing[&format!("d{}/f{n}", n % 7)].ends_with(&format!(" {n}\n")));
        }
    }
}
