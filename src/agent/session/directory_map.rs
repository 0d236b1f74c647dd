//! The last session of each directory: `directory-map.json`.
//!
//! The file only repeats data of the sessions: if it is damaged or missing, it is rebuilt from them.

use std::collections::BTreeMap;

use super::store::is_missing;
use super::{SessionError, SessionForm, SessionStore};
use crate::sys::file_lock::FileLock;
use crate::sys::home_file::parse_json;

const FILE: &str = "directory-map.json";
const LOCK: &str = "directory-map.lock";

/// Session ids by directory.
type DirectoryMap = BTreeMap<String, String>;

impl<F: SessionForm> SessionStore<'_, F> {
    /// Returns the current map. The sessions it names may have been removed.
    pub(super) fn directory_map(&self) -> Result<DirectoryMap, SessionError> {
        let content = self.read(&self.path.join(FILE)).ok().flatten();
        if let Some(map) =
            content.and_then(|content| parse_json::<BTreeMap<_, uuid::Uuid>>(&content).ok())
        {
            return Ok(map
                .into_iter()
                .map(|(directory, id)| (directory, id.to_string()))
                .collect());
        }
        let mut map = DirectoryMap::new();
        for summary in self.list()? {
            if let Ok(outline) = summary.outline {
                // The list is sorted from newest to oldest.
                map.entry(outline.directory).or_insert(summary.id);
            }
        }
        Ok(map)
    }

    /// Records the id of the session used last in a directory, if one is given, and drops the entries of removed
    /// sessions. The map is locked meanwhile, so that no concurrent change is lost.
    pub(super) fn update(&self, used: Option<(String, String)>) -> Result<(), SessionError> {
        let path = self.path.join(LOCK);
        let _lock = FileLock::wait(&path).map_err(|source| self.unlockable(&path, source))?;
        let mut map = self.directory_map()?;
        map.extend(used);
        map.retain(|_, id| !is_missing(&self.file(id)));
        self.write(&self.path.join(FILE), &map)
    }
}
