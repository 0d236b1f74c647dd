//! Which session was used last in which directory: `directory-map.json`.
//!
//! The file only repeats what the sessions say: where it is damaged or missing, it is made from them.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{SessionError, SessionStore, is_missing, parse};
use crate::sys::file_lock::FileLock;

const FILE: &str = "directory-map.json";
const LOCK: &str = "directory-map.lock";

/// Sessions by their directories.
pub type DirectoryMap = BTreeMap<String, Uuid>;

impl SessionStore<'_> {
    /// The map as it stands. Sessions that it names may be gone.
    pub(crate) fn directory_map(&self) -> Result<DirectoryMap, SessionError> {
        let content = self.folder.read(&self.folder.path.join(FILE));
        match content
            .ok()
            .flatten()
            .and_then(|content| parse(&content).ok())
        {
            Some(map) => Ok(map),
            None => self.rebuilt(),
        }
    }

    /// Notes that `id` was used last in `directory`.
    pub(crate) fn note(&self, directory: &str, id: Uuid) -> Result<(), SessionError> {
        self.update(|map| {
            map.insert(directory.to_owned(), id);
        })
    }

    /// Drops the entries whose session is gone.
    pub(crate) fn forget_removed(&self) -> Result<(), SessionError> {
        self.update(|_| {})
    }

    /// Changes the map. Others that do so wait, so that no change is lost.
    fn update(&self, change: impl FnOnce(&mut DirectoryMap)) -> Result<(), SessionError> {
        let path = self.folder.path.join(LOCK);
        let lock = FileLock::wait(&path);
        let _lock = lock.map_err(|source| self.folder.unlockable(&path, source))?;
        let mut map = self.directory_map()?;
        change(&mut map);
        map.retain(|_, id| !is_missing(&self.file(*id)));
        self.folder.write(&self.folder.path.join(FILE), &map)
    }

    fn rebuilt(&self) -> Result<DirectoryMap, SessionError> {
        let mut map = DirectoryMap::new();
        for summary in self.list()? {
            if let Ok(outline) = summary.outline {
                // The list begins with the newest.
                map.entry(outline.directory).or_insert(summary.id);
            }
        }
        Ok(map)
    }
}
