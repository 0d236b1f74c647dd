//! Renames that move one entry into place, or back.
//!
//! Renames within one directory, by its handle. Guarantees that nothing is overwritten by mistake: a new name must not
//! exist, and a replaced or removed file is kept under the staged name and checked there.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::digest::Present;
use super::disk::{renameat, renameat_with, statat};

/// An entry to move into place.
pub struct StagedEntry<'p> {
    /// The directory of both names.
    pub directory: BorrowedFd<'p>,
    /// The final name.
    pub name: &'p str,
    /// The staged name: the new file has it until it is in place, and the old file afterwards.
    pub staged: &'p str,
}

impl StagedEntry<'_> {
    /// Moves the staged entry to its final name, which must be free.
    pub fn create(&self) -> io::Result<()> {
        Ok(self.rename_new(self.staged, self.name)?)
    }

    /// Moves the staged file to its final name, and the `present` file to the staged name.
    pub fn replace(&self, present: Present) -> io::Result<()> {
        self.exchange()?;
        self.check(present)
    }

    /// Takes the `present` file out of the tree by moving it to the staged name.
    pub fn remove(&self, present: Present) -> io::Result<()> {
        self.rename_new(self.name, self.staged)?;
        self.check(present)
    }

    /// Renames to a name that must not exist.
    pub fn rename_new(&self, old: &str, new: &str) -> Result<(), Errno> {
        let directory = self.directory;
        match renameat_with(directory, old, new, RenameFlags::NOREPLACE) {
            // The file system does not support the flag: checking first is the next best.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match statat(directory, new) {
                Err(Errno::NOENT) => renameat(directory, old, new),
                Ok(_) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            },
            other => other,
        }
    }

    /// Exchanges the staged file with the one in place.
    fn exchange(&self) -> Result<(), Errno> {
        let (directory, name, staged) = (self.directory, self.name, self.staged);
        match renameat_with(directory, staged, name, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.exchange_in_turn(),
            other => other,
        }
    }

    /// Exchanges the files on a file system without an exchange operation, keeping the old file under a third name in
    /// between. If a step fails, the roll-back knows where to find it.
    fn exchange_in_turn(&self) -> Result<(), Errno> {
        let kept = old_name(self.staged);
        self.rename_new(self.name, &kept)?;
        self.rename_new(self.staged, self.name)?;
        self.rename_new(&kept, self.staged)
    }

    /// Checks that the file taken out of the tree is the verified one.
    fn check(&self, present: Present) -> io::Result<()> {
        present.check(&statat(self.directory, self.staged)?)
    }
}

/// Returns the name of the old file while another takes its place, if the two cannot be exchanged.
pub fn old_name(staged: &str) -> String {
    format!("{staged}-old")
}
