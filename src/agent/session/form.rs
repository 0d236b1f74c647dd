//! The interface between the store and the session files of a system: their location, and how they are read and
//! written.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::SessionState;
use crate::secret::Redactor;

/// The format of a system's session files.
pub trait SessionForm: DeserializeOwned {
    /// `true` if a session is a folder with `session.json` and the system's other files; `false` if it is a single file
    /// named by a UUID.
    const IS_FOLDER: bool;
    /// The heading of the column with a session's time.
    const TIME: &'static str;
    /// The fields that a list needs.
    type Outlined: DeserializeOwned + Into<Outline>;

    /// Returns the name of the session, unique among all sessions.
    fn id(&self) -> String;

    /// Returns the working directory, in the form used in files.
    fn directory(&self) -> &str;

    /// Prepares a session that was read for use. The name of the file or folder determines the id, so a copy is a
    /// separate session.
    fn opened(self, id: &str) -> Self;

    /// Returns the content to write, with keys removed. Each text is redacted before it is escaped, so that the file
    /// stays valid JSON whatever a key looks like.
    fn written(&mut self, redactor: &Redactor) -> impl Serialize;

    /// Returns the model that the session asks, or asked last; empty if there was none.
    fn model(&mut self) -> &mut String;

    /// Records the time of a change.
    fn changed(&mut self, _now: DateTime<Utc>) {}

    /// Returns the name of a state in lists.
    fn state_name(state: SessionState) -> &'static str {
        state.into_str()
    }

    /// Renders a session as an entry of the machine-readable list.
    fn json(summary: &SessionSummary) -> Value;
}

/// A session as shown in lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// The id by which the session is resumed.
    pub id: String,
    /// The time of the outline; for a damaged session, the modification time of its file or folder.
    pub time: DateTime<Utc>,
    /// The outline; for a damaged session, a description of the damage.
    pub outline: Result<Outline, String>,
}

/// The subject and the progress of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The time when the session was last saved, or started.
    pub time: DateTime<Utc>,
    /// The working directory.
    pub directory: String,
    /// The model; empty if the list does not show it.
    pub model: String,
    /// The first non-blank line of the first request; empty before the first request.
    pub prompt: String,
    /// The progress; [`Active`](SessionState::Active) only while a process holds the session.
    pub state: SessionState,
}

impl SessionSummary {
    /// Returns the name of the state in the form `F`.
    pub fn state<F: SessionForm>(&self) -> &'static str {
        let outline = self.outline.as_ref();
        outline.map_or("damaged", |outline| F::state_name(outline.state))
    }

    /// Returns whether the session belongs to `directory`, in the form used in files; a damaged one belongs to none.
    pub fn is_in(&self, directory: &str) -> bool {
        let outline = self.outline.as_ref();
        outline.is_ok_and(|outline| outline.directory == directory)
    }

    /// Returns whether the session has a request.
    pub fn is_begun(&self) -> bool {
        let outline = self.outline.as_ref();
        outline.is_ok_and(|outline| !outline.prompt.is_empty())
    }
}
