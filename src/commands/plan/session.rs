//! Sessions of the plan agent. Each has a folder with `session.json` and, unless it is in the project, the plan
//! document.

mod form;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, FixedOffset, SubsecRound as _};

use super::chat_log::CHAT_LOG;
use crate::agent::session::{Session, SessionError, SessionStore};

pub use self::form::{Checkpoint, PlanSessionFile, PlanStage, PlanState, StepsEnd, WorkEnd};

/// The maximum number of sessions that begin in the same millisecond.
const MOST_AT_ONCE: u32 = 1000;

/// A session with a plan, locked by this process for as long as the value lives.
pub type PlanSession = Session<PlanSessionFile>;
/// The sessions in the agent's home directory.
pub type PlanSessionStore<'r> = SessionStore<'r, PlanSessionFile>;

impl PlanSession {
    /// Returns the path of the chat log.
    pub fn chat_log(&self) -> PathBuf {
        self.folder().join(CHAT_LOG)
    }

    /// Returns the path of the document, in the session's folder or in the project at `root`.
    pub fn document(&self, root: &Path) -> PathBuf {
        self.file.document(self.folder(), root)
    }
}

/// Creates a session and saves it, which makes it visible to other processes. Its name is the user's local time, with
/// the abbreviation of the time zone if known.
///
/// # Errors
/// Fails if the session cannot be written or locked; its folder is then removed.
pub fn create(
    store: &PlanSessionStore<'_>,
    now: DateTime<FixedOffset>,
    zone: Option<&str>,
    state: PlanState,
) -> Result<PlanSession, SessionError> {
    let id = make_folder(store, &name(now, zone))?;
    let file = PlanSessionFile {
        id: id.clone(),
        started_at: now.to_utc().trunc_subsecs(3),
        state,
        ..PlanSessionFile::default()
    };
    let begun = store.create(file).and_then(|mut session| {
        store.save(&mut session, now.to_utc())?;
        Ok(session)
    });
    if begun.is_err() {
        let _ = fs::remove_dir_all(store.path().join(&id));
    }
    begun
}

/// Returns the path of a session's document, for reading, even while another process uses the session.
///
/// # Errors
/// Fails if there is no session of exactly that name, or it is damaged.
pub fn document(store: &PlanSessionStore<'_>, id: &str) -> Result<PathBuf, SessionError> {
    let file = store.load(id)?;
    Ok(file.document(&store.path().join(id), Path::new(&file.state.directory)))
}

/// Creates a folder with this name or the next unused one, and returns its name.
fn make_folder(store: &PlanSessionStore<'_>, name: &str) -> Result<String, SessionError> {
    store.make()?;
    let more = (2..=MOST_AT_ONCE).map(|nth| format!("{name}-{nth}"));
    for id in [name.to_owned()].into_iter().chain(more) {
        let folder = store.path().join(&id);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => {
                made.map_err(store.cannot_be("written", &folder))?;
                return Ok(id);
            }
        }
    }
    Err(SessionError::Exists(name.to_owned()))
}

/// Returns the name of a session that begins at this time in this time zone, such as `2026-01-07T10:23:21.000MST`.
/// Without an abbreviation, the UTC offset is used.
fn name(now: DateTime<FixedOffset>, zone: Option<&str>) -> String {
    let is_abbreviation = |zone: &&str| {
        let is_letter = |byte: u8| byte.is_ascii_alphabetic();
        (1..=9).contains(&zone.len()) && zone.bytes().all(is_letter)
    };
    let time = now.format("%Y-%m-%dT%H:%M:%S%.3f");
    match zone.filter(is_abbreviation) {
        Some(zone) => format!("{time}{zone}"),
        None => format!("{time}{}", now.format("%z")),
    }
}

#[cfg(test)]
mod tests;
