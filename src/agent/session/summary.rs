//! The list of sessions, for people and for programs. Pure.

use chrono::{DateTime, FixedOffset, SecondsFormat, Utc};
use console::truncate_str;
use serde_json::{Value, json};
use uuid::Uuid;

use super::SessionState;
use crate::sys::text::escaped;
use crate::ui::columns::{self, Align::Left};

/// How many columns of a prompt are shown.
const PROMPT_WIDTH: usize = 60;

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

    fn cells(&self, zone: FixedOffset) -> Vec<String> {
        let (directory, words) = match &self.outline {
            Ok(outline) => (outline.directory.as_str(), &outline.prompt),
            Err(problem) => ("", problem),
        };
        let updated = self.updated_at.with_timezone(&zone);
        vec![
            self.id.to_string(),
            updated.format("%Y-%m-%d %H:%M").to_string(),
            self.state().to_owned(),
            escaped(directory),
            truncate_str(&escaped(words), PROMPT_WIDTH, "…").into_owned(),
        ]
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

/// A table with a line for each session, in their order; times are those of `zone`.
#[must_use]
pub fn text(sessions: &[SessionSummary], zone: FixedOffset) -> String {
    if sessions.is_empty() {
        return "no sessions".to_owned();
    }
    let head = ["session", "updated", "state", "directory", "prompt"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(sessions.iter().map(|session| session.cells(zone)));
    columns::aligned(&rows, &[Left; 5]).join("\n")
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
            text(&examples(), zone),
            r#"session                               updated           state     directory       prompt
00000000-0000-0000-0000-00000000002d  2025-01-15 12:45  complete  C:\Users\Belle  say "é" \u{1b}[31m\u{202e} long long long long long long lo…
00000000-0000-0000-0000-000000000005  2025-01-15 12:05  damaged                   line 1, column 2: x"#
        );
        assert_eq!(text(&[], zone), "no sessions");
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
