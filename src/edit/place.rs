//! One rename into place, and back.
//!
//! Renames within one directory, by its handle. Guarantees that nothing is overwritten that was not
//! meant to be: what is new must not exist, and what is replaced or removed is kept under the staged
//! name and checked there.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::RenameFlags;
use rustix::io::Errno;

use super::digest::Present;
use super::disk::{renameat, renameat_with, statat};

/// Where something goes.
pub struct StagedEntry<'p> {
    /// The directory of both names.
    pub directory: BorrowedFd<'p>,
    /// The name that it is to have.
    pub name: &'p str,
    /// The name that the new file has until it is in place, and the old one from then on.
    pub staged: &'p str,
}

impl StagedEntry<'_> {
    /// Gives what is staged its name, which must be free.
    pub fn create(&self) -> io::Result<()> {
        Ok(self.rename_new(self.staged, self.name)?)
    }

    /// Gives the staged file its name; what is `present` takes the staged one.
    pub fn replace(&self, present: Present) -> io::Result<()> {
        self.exchange()?;
        self.check(present)
    }

    /// Takes what is `present` out of the tree, by giving it the staged name.
    pub fn remove(&self, present: Present) -> io::Result<()> {
        self.rename_new(self.name, self.staged)?;
        self.check(present)
    }

    /// Renames to a name that must not exist.
    pub fn rename_new(&self, old: &str, new: &str) -> Result<(), Errno> {
        let directory = self.directory;
        match renameat_with(directory, old, new, RenameFlags::NOREPLACE) {
            // A file system without that flag: a look first is the next best.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => match statat(directory, new) {
                Err(Errno::NOENT) => renameat(directory, old, new),
                Ok(_) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            },
            other => other,
        }
    }

    /// The staged file takes the name of the one that is there, and that one the staged name.
    fn exchange(&self) -> Result<(), Errno> {
        let (directory, name, staged) = (self.directory, self.name, self.staged);
        match renameat_with(directory, staged, name, RenameFlags::EXCHANGE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => self.exchange_in_turn(),
            other => other,
        }
    }

    /// The same on a file system that cannot exchange: a third name keeps the old file meanwhile.
    /// Should one of the steps fail, the roll-back knows where it lies.
    fn exchange_in_turn(&self) -> Result<(), Errno> {
        let kept = kept_name(self.staged);
        self.rename_new(self.name, &kept)?;
        self.rename_new(self.staged, self.name)?;
        self.rename_new(&kept, self.staged)
    }

    /// Returns whether what was taken out of the tree is the file that was verified.
    fn check(&self, present: Present) -> io::Result<()> {
        present.check(&statat(self.directory, self.staged)?)
    }
}

/// The name that keeps a file while another takes its place, where the two cannot be exchanged.
pub fn kept_name(staged: &str) -> String {
    format!("{staged}-old")
}
