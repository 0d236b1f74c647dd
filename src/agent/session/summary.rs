//! The list of sessions, for people and for programs. Pure.

use std::fmt::Display;

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use console::truncate_str;
use serde_json::{Value, json};
use uuid::Uuid;

use super::SessionState;
use crate::sys::text::escaped;
use crate::ui::columns::{self, Align::Left};

/// How many columns of a prompt are shown.
const PROMPT_WIDTH: usize = 60;
/// The same of a directory by its name.
const NAME_WIDTH: usize = 16;
/// Where the directory stands in a row.
const DIRECTORY: usize = 3;

/// A session, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionSummary {
    /// What `--resume` is given to go on with it.
    pub id: Uuid,
    /// When it was saved last; of a damaged one, when its file was changed.
    pub updated_at: DateTime<Utc>,
    /// What it says; of a damaged one, what is wrong with it.
    pub outline: Result<Outline, String>,
}

/// What a session is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The directory it works in.
    pub directory: String,
    /// The original prompt's first line that is not blank; "" where nothing was asked yet.
    pub prompt: String,
    /// How far it has come; never [`Active`](SessionState::Active) unless a process holds it.
    pub state: SessionState,
}

impl SessionSummary {
    fn state(&self) -> &'static str {
        let outline = self.outline.as_ref();
        outline.map_or("damaged", |outline| outline.state.name())
    }

    /// When it was used last, how far it has come, and what it is about.
    #[must_use]
    pub fn line(&self, zone: FixedOffset) -> String {
        let updated = self.updated_at.with_timezone(&zone);
        let prompt = self.outline.as_ref().map_or("", |outline| &outline.prompt);
        format!(
            "{}  {:<11}  {}",
            updated.format("%Y-%m-%d %H:%M"),
            self.state(),
            truncate_str(&escaped(prompt), PROMPT_WIDTH, "…")
        )
    }

    fn json(&self) -> Value {
        let outline = self.outline.as_ref();
        json!({
            "id": self.id,
            "updatedAt": self.updated_at.to_rfc3339_opts(SecondsFormat::AutoSi, true),
            "state": self.state(),
            "workingDirectory": outline.ok().map(|outline| &outline.directory),
            "prompt": outline.ok().map(|outline| &outline.prompt),
            "problem": outline.err(),
        })
    }
}

/// A table with a line for each session, in their order; times are those of `zone`. Where it does not fit in so many
/// `columns`, of the directories only the names are left, and the request keeps its room.
#[must_use]
pub fn text(sessions: &[SessionSummary], zone: FixedOffset, columns: Option<usize>) -> String {
    let rows = sessions.iter().map(|session| {
        let updated = session.updated_at.with_timezone(&zone);
        cells(session.id, updated, session.state(), &session.outline)
    });
    table("updated", rows.collect(), columns)
}

/// A session's row of the table.
pub(crate) fn cells(
    id: impl Display,
    time: DateTime<FixedOffset>,
    state: &str,
    outline: &Result<Outline, String>,
) -> Vec<String> {
    let (directory, words) = match outline {
        Ok(outline) => (outline.directory.as_str(), &outline.prompt),
        Err(problem) => ("", problem),
    };
    vec![
        id.to_string(),
        time.format("%Y-%m-%d %H:%M").to_string(),
        state.to_owned(),
        escaped(directory),
        truncate_str(&escaped(words), PROMPT_WIDTH, "…").into_owned(),
    ]
}

/// The table of these rows; `time` is what their time is of.
pub(crate) fn table(
    time: &'static str,
    sessions: Vec<Vec<String>>,
    columns: Option<usize>,
) -> String {
    if sessions.is_empty() {
        return "no sessions".to_owned();
    }
    let mut head = ["session", time, "state", "directory", "prompt"]
        .map(|name| (name, Left))
        .to_vec();
    let mut rows = vec![head.iter().map(|(name, _)| (*name).to_owned()).collect()];
    rows.extend(sessions);
    let whole = columns::aligned(&rows, &[Left; 5]).join("\n");
    let Some(columns) = columns.filter(|columns| columns::cut(&whole, Some(*columns)) != whole)
    else {
        return whole;
    };
    for row in rows.iter_mut().skip(1) {
        row[DIRECTORY] = name_of(&row[DIRECTORY]);
    }
    columns::make_room(&mut head, &mut rows, &[time, "state"], columns);
    let table = columns::aligned(&rows, &[Left; 5][..head.len()]).join("\n");
    columns::cut(&table, Some(columns))
}

/// A directory by its name alone: `…/name`, not too long.
fn name_of(directory: &str) -> String {
    match directory.trim_end_matches('/').rsplit_once('/') {
        Some((above, name)) if !above.is_empty() => {
            truncate_str(&format!("…/{name}"), NAME_WIDTH, "…").into_owned()
        }
        _ => directory.to_owned(),
    }
}

/// The same for programs: `{"schema": 1, "sessions": […]}`.
#[must_use]
pub fn to_json(sessions: &[SessionSummary]) -> Value {
    let sessions: Vec<Value> = sessions.iter().map(SessionSummary::json).collect();
    json!({"schema": 1, "sessions": sessions})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(minute: u32, outline: Result<Outline, String>) -> SessionSummary {
        let updated_at = format!("2025-01-15T11:{minute:02}:30Z");
        SessionSummary {
            id: Uuid::from_u128(minute.into()),
            updated_at: updated_at.parse().unwrap(),
            outline,
        }
    }

    fn examples() -> [SessionSummary; 2] {
        let outline = Outline {
            directory: r"C:\Users\Belle".to_owned(),
            prompt: format!("say \"é\" \u{1b}[31m\u{202e} {}", "long ".repeat(20)),
            state: SessionState::Complete,
        };
        [
            summary(45, Ok(outline)),
            summary(5, Err("line 1, column 2: x".to_owned())),
        ]
    }

    #[test]
    fn a_list_is_a_table_that_no_text_can_disturb() {
        let zone = FixedOffset::east_opt(3600).unwrap();
        assert_eq!(
            text(&examples(), zone, None),
            r#"session                               updated           state     directory       prompt
00000000-0000-0000-0000-00000000002d  2025-01-15 12:45  complete  C:\Users\Belle  say "é" \u{1b}[31m\u{202e} long long long long long long lo…
00000000-0000-0000-0000-000000000005  2025-01-15 12:05  damaged                   line 1, column 2: x"#
        );
        assert_eq!(text(&[], zone, Some(80)), "no sessions");
    }

    #[test]
    fn a_narrow_terminal_has_the_name_of_the_directory_and_the_request() {
        let zone = FixedOffset::east_opt(0).unwrap();
        let sessions = [(1, "one"), (2, "two")].map(|(minute, name)| {
            let outline = Outline {
                directory: format!("/home/belle/work/a/long/way/{name}"),
                prompt: format!("Add a flag to {name} {}", "long ".repeat(20)),
                state: SessionState::Interrupted,
            };
            summary(minute, Ok(outline))
        });
        assert_eq!(
            text(&sessions, zone, Some(80)),
            "session                               directory  prompt\n\
             00000000-0000-0000-0000-000000000001  …/one      Add a flag to one long long lo…\n\
             00000000-0000-0000-0000-000000000002  …/two      Add a flag to two long long lo…"
        );
        assert_eq!(
            text(&sessions, zone, Some(500)),
            text(&sessions, zone, None)
        );
    }

    #[test]
    fn programs_get_the_whole_of_it() {
        let [sound, damaged] = examples();
        let prompt = sound.outline.as_ref().unwrap().prompt.clone();
        assert_eq!(
            to_json(&[sound, damaged]),
            json!({"schema": 1, "sessions": [
                {
                    "id": "00000000-0000-0000-0000-00000000002d", "updatedAt": "2025-01-15T11:45:30Z",
                    "state": "complete", "workingDirectory": "C:\\Users\\Belle", "prompt": prompt, "problem": null,
                },
                {
                    "id": "00000000-0000-0000-0000-000000000005", "updatedAt": "2025-01-15T11:05:30Z",
                    "state": "damaged", "workingDirectory": null, "prompt": null, "problem": "line 1, column 2: x",
                },
            ]})
        );
    }
}
