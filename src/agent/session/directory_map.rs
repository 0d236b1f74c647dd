//! The last session of each directory: `directory-map.json`.
//!
//! The file only repeats what the sessions say: where it is damaged or missing, it is made from them.

use std::collections::BTreeMap;

use super::store::{is_missing, parse};
use super::{SessionError, SessionForm, SessionStore};
use crate::sys::file_lock::FileLock;

const FILE: &str = "directory-map.json";
const LOCK: &str = "directory-map.lock";

/// Sessions by their directories.
type DirectoryMap = BTreeMap<String, String>;

impl<F: SessionForm> SessionStore<'_, F> {
    /// The map as it stands. Sessions that it names may be gone.
    pub(super) fn directory_map(&self) -> Result<DirectoryMap, SessionError> {
        let content = self.read(&self.path.join(FILE)).ok().flatten();
        if let Some(map) =
            content.and_then(|content| parse::<BTreeMap<_, uuid::Uuid>>(&content).ok())
        {
            return Ok(map
                .into_iter()
                .map(|(directory, id)| (directory, id.to_string()))
                .collect());
        }
        let mut map = DirectoryMap::new();
        for summary in self.list()? {
            if let Ok(outline) = summary.outline {
                // The list begins with the newest.
                map.entry(outline.directory).or_insert(summary.id);
            }
        }
        Ok(map)
    }

    /// Notes that `id` was used last in `directory`.
    pub(super) fn note(&self, directory: &str, id: &str) -> Result<(), SessionError> {
        self.update(|map| {
            map.insert(directory.to_owned(), id.to_owned());
        })
    }

    /// Drops the entries whose session is gone.
    pub(super) fn forget_removed(&self) -> Result<(), SessionError> {
        self.update(|_| {})
    }

    /// Changes the map. Others that do so wait, so that no change is lost.
    fn update(&self, change: impl FnOnce(&mut DirectoryMap)) -> Result<(), SessionError> {
        let path = self.path.join(LOCK);
        let lock = FileLock::wait(&path);
        let _lock = lock.map_err(|source| self.unlockable(&path, source))?;
        let mut map = self.directory_map()?;
        change(&mut map);
        map.retain(|_, id| !is_missing(&self.file(id)));
        self.write(&self.path.join(FILE), &map)
    }
}
