//! Removal of old sessions, and of files left behind by killed processes.

use std::fs;
use std::path::Path;

use chrono::{DateTime, TimeDelta, Utc};

use super::store::{is_missing, modified_at};
use super::{Outline, SessionError, SessionForm, SessionStore};
use crate::sys::atomic_file;
use crate::sys::home_file::parse_json;

impl<F: SessionForm> SessionStore<'_, F> {
    /// Removes the sessions that have not been changed for more than `days` days, and returns their number; 0 days
    /// removes none. Sessions in use remain. Files left behind by killed processes are removed as well, and nothing
    /// else.
    ///
    /// # Errors
    /// The first error. Everything that can be removed is removed all the same.
    pub fn clean(&self, now: DateTime<Utc>, days: u32) -> Result<usize, SessionError> {
        let mut problem = None;
        let oldest = now.checked_sub_signed(TimeDelta::days(days.into()));
        let mut removed = 0;
        if let Some(oldest) = oldest.filter(|_| days > 0) {
            for id in self.named(".json")? {
                match self.remove_older(&id, oldest) {
                    Ok(is_removed) => removed += usize::from(is_removed),
                    Err(error) => problem = problem.or(Some(error)),
                }
            }
        }
        // A running process may need a staged file for a moment.
        if let Some(oldest) = now.checked_sub_signed(TimeDelta::hours(1)) {
            let swept = atomic_file::sweep(&self.path, Some(oldest.into()))
                .map_err(self.cannot_be("written", &self.path));
            problem = problem.or(swept.err());
        }
        for id in self.named(".lock")? {
            if is_missing(&self.file(&id)) {
                // Releasing the lock removes its file, unless a session is just being created.
                let _ = self.hold(&id);
            }
        }
        if removed > 0 {
            problem = problem.or(self.update(None).err());
        }
        problem.map_or(Ok(removed), Err)
    }

    /// Removes a session that was last changed before `oldest`, unless it is in use.
    fn remove_older(&self, id: &str, oldest: DateTime<Utc>) -> Result<bool, SessionError> {
        let path = self.file(id);
        let is_old = || self.updated_at(&path).is_some_and(|at| at < oldest);
        if !is_old() {
            return Ok(false);
        }
        let _hold = match self.hold(id) {
            Err(SessionError::InUse { .. }) => return Ok(false),
            held => held?,
        };
        // Another process may have used the session in the meantime.
        if !is_old() {
            return Ok(false);
        }
        fs::remove_file(&path).map_err(self.cannot_be("written", &path))?;
        Ok(true)
    }

    /// Returns the time of a session's last change, as recorded in its file, or otherwise that of the file itself.
    fn updated_at(&self, path: &Path) -> Option<DateTime<Utc>> {
        let content = self.read(path).ok()??;
        let outlined: Option<Outline> = parse_json::<F::Outlined>(&content).ok().map(Into::into);
        outlined.map_or_else(|| modified_at(path), |outline| Some(outline.time))
    }
}
