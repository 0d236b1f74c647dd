//! Which new files a power cut has torn.
//!
//! Looks at what the journal names, and gives what is torn a second name in `agent-config/torn`. Guarantees
//! that a file which somebody has written to since does not count as torn.

use std::fs::File;
use std::io::{self, Seek as _};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::fstat;
use rustix::io::Errno;

use super::beneath::{OpenDirectory, PathEntry, Root, open_regular, split};
use super::digest::{Digest, FOR_EVER, Present, changed, modified};
use super::disk::linkat;
use super::error::{RecoverError, recover_failed};
use super::record::{Record, Written};
use crate::project::CONFIG;
use crate::sys::parallel::in_parallel;

/// What has become of a new file.
pub enum TornState {
    /// It is as it was written.
    Whole(Present),
    /// It is as it was written, but not all of it is there.
    Torn(Present),
    /// Somebody has written to it, or put something else there.
    Changed,
    /// It is not there.
    Gone,
}

/// Whether a file is not as the reply asked for, although nobody has changed it since it was `written`.
pub fn is_torn(root: &Root, record: &Record, written: Written) -> Result<bool, RecoverError> {
    let files = record.new_files();
    let torn: Result<_, RecoverError> = in_parallel(files.len(), |share| {
        for (path, new) in &files[share] {
            let state = written
                .state_at(root, path, *new)
                .map_err(recover_failed(path))?;
            if matches!(state, TornState::Torn(_)) {
                return Ok(true);
            }
        }
        Ok(false)
    });
    Ok(torn?.contains(&true))
}

/// Keeps what is torn, as far as there is anything of it: should it be somebody's work after all, it is
/// not lost. It may hold a key, and so lies beside the keys. Says whether there was any.
pub fn keep(root: &Root, record: &Record) -> Result<bool, RecoverError> {
    let written = record.written(FOR_EVER);
    let mut vault = None;
    for (path, new) in &record.new_files() {
        let state = written
            .state_at(root, path, *new)
            .map_err(recover_failed(path))?;
        if !matches!(state, TornState::Torn(_)) {
            continue;
        }
        let vault = match &mut vault {
            Some(vault) => vault,
            none => {
                let kept = root.ensure_directory_of_ours(&format!("{CONFIG}/torn"));
                none.insert(kept.map_err(recover_failed("agent-config/torn"))?)
            }
        };
        keep_one(root, path, vault).map_err(recover_failed(path))?;
    }
    Ok(vault.is_some())
}

/// Gives a file a second name: its own, and what tells its content from others.
fn keep_one(root: &Root, path: &str, vault: &OwnedFd) -> io::Result<()> {
    let (parent, name) = split(path);
    let directory = root.directory(parent)?;
    let Some(file) = open_regular(directory.as_fd(), name)? else {
        return Ok(());
    };
    let content = Digest::of_file(file)?.to_string();
    let room = 255 - content.len() - 1;
    let start = name.len().saturating_sub(room);
    let end = (start..name.len()).find(|at| name.is_char_boundary(*at));
    let kept = format!("{}-{content}", &name[end.unwrap_or(name.len())..]);
    match linkat(&directory, name, vault, &kept) {
        // A recovery that was cut short has done so already.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

impl Written {
    /// What has become of the new file at `path`.
    pub fn state_at(self, root: &Root, path: &str, new: Digest) -> io::Result<TornState> {
        match OpenDirectory::default().entry(root, path)? {
            PathEntry::Nothing => Ok(TornState::Gone),
            PathEntry::SomethingElse => Ok(TornState::Changed),
            PathEntry::File(file) => self.state_of(file, new),
        }
    }

    /// What has become of a new file.
    pub fn state_of(self, mut file: File, new: Digest) -> io::Result<TornState> {
        let stat = fstat(&file)?;
        let present = Present::of(&stat);
        if new.is_of(file.try_clone()?)? {
            return Ok(TornState::Whole(present));
        }
        file.rewind()?;
        let untouched = modified(&stat) == self.stamp && changed(&stat) <= self.until;
        Ok(if untouched && new.may_be_torn_to(file)? {
            TornState::Torn(present)
        } else {
            TornState::Changed
        })
    }
}
