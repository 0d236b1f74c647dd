//! The list of sessions, for people and for programs.

use std::cmp::Reverse;

use chrono::serde::ts_milliseconds;
use chrono::{DateTime, FixedOffset, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use super::form::status_name;
use super::{FILE, LOCK, PlanSessionStore, is_directory, no_file};
use crate::agent::session::{
    self, Outline, SessionError, SessionState, first_line, modified_at, parse,
};
use crate::sys::file_lock;

/// A session, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSummary {
    /// Its name, by which it is opened.
    pub id: String,
    /// When it began; of a damaged one, when its folder was changed.
    pub started_at: DateTime<Utc>,
    /// The model of its execution; "" of a damaged one.
    pub model: String,
    /// What it is about; of a damaged one, what is wrong with it.
    pub outline: Result<Outline, String>,
}

impl PlanSummary {
    /// Whether it is one of this directory, as it stands in files.
    pub(crate) fn is_of(&self, directory: &str) -> bool {
        let outline = self.outline.as_ref();
        outline.is_ok_and(|outline| outline.directory == directory)
    }

    /// Whether anything was asked for in it.
    pub(crate) fn is_begun(&self) -> bool {
        let outline = self.outline.as_ref();
        outline.is_ok_and(|outline| !outline.prompt.is_empty())
    }

    fn status(&self) -> &'static str {
        let outline = self.outline.as_ref();
        outline.map_or("damaged", |outline| status_name(outline.state))
    }

    fn json(&self) -> Value {
        let outline = self.outline.as_ref();
        json!({
            "id": self.id,
            "startedAt": self.started_at.timestamp_millis(),
            "model": self.model,
            "status": self.status(),
            "workingDirectory": outline.ok().map(|outline| &outline.directory),
            "prompt": outline.ok().map(|outline| &outline.prompt),
            "problem": outline.err(),
        })
    }
}

/// A table with a line for each session, in their order; times are those of `zone`. It fits in so many `columns`.
#[must_use]
pub fn text(sessions: &[PlanSummary], zone: FixedOffset, columns: Option<usize>) -> String {
    let rows = sessions.iter().map(|summary| {
        let started = summary.started_at.with_timezone(&zone);
        session::cells(&summary.id, started, summary.status(), &summary.outline)
    });
    session::table("started", rows.collect(), columns)
}

/// The same for programs: `{"schema": 1, "sessions": […]}`.
#[must_use]
pub fn to_json(sessions: &[PlanSummary]) -> Value {
    let sessions: Vec<Value> = sessions.iter().map(PlanSummary::json).collect();
    json!({"schema": 1, "sessions": sessions})
}

/// What of a file a list shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OutlinedPlan {
    #[serde(with = "ts_milliseconds")]
    started_at: DateTime<Utc>,
    #[serde(default)]
    model: String,
    status: SessionState,
    #[serde(default)]
    working_directory: String,
    #[serde(default)]
    requests: Vec<String>,
}

impl PlanSessionStore<'_> {
    /// All sessions, the one that began last first. Damaged ones are among them.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Vec<PlanSummary>, SessionError> {
        let names = self.folder.names()?.into_iter();
        let mut found: Vec<_> = names.filter_map(|id| self.summary(id)).collect();
        // Of those of a millisecond, the last is the one with the largest number behind its name.
        found.sort_by_cached_key(|summary| {
            Reverse((summary.started_at, summary.id.len(), summary.id.clone()))
        });
        Ok(found)
    }

    fn summary(&self, id: String) -> Option<PlanSummary> {
        let folder = self.folder.path.join(&id);
        if !is_directory(&folder) {
            return None;
        }
        let is_held = || file_lock::is_held(&folder.join(LOCK));
        let outlined = match self.folder.read(&folder.join(FILE)) {
            // It is being made just now.
            Ok(None) if is_held() => return None,
            Ok(None) => Err(no_file()),
            Ok(Some(content)) => {
                parse::<OutlinedPlan>(&content).map_err(|mistake| mistake.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        Some(match outlined {
            Ok(outlined) => PlanSummary {
                id,
                started_at: outlined.started_at,
                model: outlined.model,
                outline: Ok(Outline {
                    directory: outlined.working_directory,
                    prompt: first_line(outlined.requests.first().map_or("", |it| it)).to_owned(),
                    state: outlined.status.seen(is_held),
                }),
            },
            Err(problem) => PlanSummary {
                id,
                started_at: modified_at(&folder)?,
                model: String::new(),
                outline: Err(problem),
            },
        })
    }
}
