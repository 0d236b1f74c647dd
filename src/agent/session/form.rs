//! The seam between the store and the files of a system: where they lie, and how they are read and written.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::SessionState;
use crate::secret::Redactor;

/// A session's file, as a system has it.
pub trait SessionForm: DeserializeOwned {
    /// `true` for a folder with `session.json` in it and the system's other files beside; `false` for one file, named by a
    /// UUID.
    const IS_FOLDER: bool;
    /// Heading of the column with a session's time.
    const TIME: &'static str;
    /// The fields that a list needs.
    type Outlined: DeserializeOwned + Into<Outline>;

    /// Name among all sessions.
    fn id(&self) -> String;

    /// Working directory, as it stands in the file.
    fn directory(&self) -> &str;

    /// Takes what was read into use. The file's or folder's name decides on the id: a copy is a session of its own.
    fn opened(self, id: &str) -> Self;

    /// The file to write, without keys. Each text is redacted before it is escaped: whatever a key looks like, the file
    /// stays JSON.
    fn written(&mut self, redactor: &Redactor) -> impl Serialize;

    /// Notes the time of a change.
    fn changed(&mut self, _now: DateTime<Utc>) {}

    /// Name of a state in lists.
    fn state_name(state: SessionState) -> &'static str {
        state.name()
    }

    /// A session in the list for programs.
    fn json(summary: &SessionSummary) -> Value;
}

/// A session, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The id to resume it by.
    pub id: String,
    /// The time of the outline; of a damaged session, when its file or folder was changed.
    pub time: DateTime<Utc>,
    /// Its outline; of a damaged session, what is wrong.
    pub outline: Result<Outline, String>,
}

/// The subject and the progress of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// When it was saved last, or began.
    pub time: DateTime<Utc>,
    /// The directory it works in.
    pub directory: String,
    /// The model; "" where the list does not tell.
    pub model: String,
    /// The first line of the first request that is not blank; "" before the first request.
    pub prompt: String,
    /// Progress; never [`Active`](SessionState::Active) unless a process holds it.
    pub state: SessionState,
}

impl SessionSummary {
    /// State, as the form `F` names it.
    pub fn state<F: SessionForm>(&self) -> &'static str {
        let outline = self.outline.as_ref();
        outline.map_or("damaged", |outline| F::state_name(outline.state))
    }

    /// Tests if the session works in `directory`, as it stands in files; a damaged one works in none.
    pub fn is_of(&self, directory: &str) -> bool {
        let outline = self.outline.as_ref();
        outline.is_ok_and(|outline| outline.directory == directory)
    }

    /// Tests if it has a request.
    pub fn is_begun(&self) -> bool {
        let outline = self.outline.as_ref();
        outline.is_ok_and(|outline| !outline.prompt.is_empty())
    }
}

/// The first line of a request that is not blank; "" where there is none.
pub fn first_line(request: &str) -> &str {
    let mut lines = request.lines().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}
