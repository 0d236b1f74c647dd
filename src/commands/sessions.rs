//! Lists an agent's sessions, and opens files in its home in the user's editor.

use std::path::Path;

use chrono::FixedOffset;

use crate::agent::session::{SessionForm, SessionStore, SessionSummary};
use crate::project::home::AgentHome;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::error::Error;
use crate::sys::text::{escaped, truncated};
use crate::ui::columns::{self, Align::Left};
use crate::ui::editor;

/// Retention of sessions, in days: 0 keeps all of them.
pub const KEEPS_ALL: u32 = 0;
/// Maximum width of a prompt, in columns.
const PROMPT_WIDTH: usize = 60;
/// Maximum width of a directory that is shown by name only, in columns.
const NAME_WIDTH: usize = 16;
/// Index of the directory in a row.
const DIRECTORY: usize = 3;

/// Opens the session store of this home, and removes sessions unused for `days` days; 0 keeps all of them.
pub fn store<'c, F: SessionForm>(
    context: &'c Context<'_>,
    agent: &'static AgentHome,
    home: &Path,
    days: u32,
) -> SessionStore<'c, F> {
    let store = SessionStore::at(agent, home, context.redactor);
    if !F::IS_FOLDER
        && store.path().exists()
        && let Err(problem) = store.clean(context.clock.now().to_utc(), days)
    {
        // A failure to remove old sessions is no reason to refuse a new one.
        context.warn(problem.to_string());
    }
    store
}

/// Lists the sessions of an agent; the arguments are those of [`store`].
///
/// # Errors
/// Fails if the sessions cannot be read.
pub fn list<F: SessionForm>(
    context: &Context<'_>,
    agent: &'static AgentHome,
    home: &Path,
    days: u32,
) -> Result<Outcome, Failure> {
    let sessions = store::<F>(context, agent, home, days).list()?;
    let zone = *context.clock.now().offset();
    let text = text::<F>(&sessions, zone, context.reporter.columns());
    Ok(Outcome::shown(text, SessionStore::<F>::json(&sessions)))
}

/// Opens a settings file in the user's editor, then validates the result with `check`.
///
/// # Errors
/// Fails if there is no editor, or the settings cannot be used.
pub fn edit(
    context: &Context<'_>,
    path: &Path,
    check: impl FnOnce() -> Result<(), Error>,
) -> Result<Outcome, Failure> {
    let command = editor::command(context.environment);
    editor::open(command, path, context.interrupt)?;
    check()?;
    Ok(Outcome::new(format!(
        "done: `{}` can be used",
        path.display()
    )))
}

/// Formats time, state and prompt of a session on one line.
pub fn line<F: SessionForm>(session: &SessionSummary, zone: FixedOffset) -> String {
    let [_, time, state, _, prompt] = cells::<F>(session, zone);
    // The cell of a damaged session holds the error instead of a prompt.
    let prompt = if session.outline.is_ok() { &prompt } else { "" };
    format!("{time}  {state:<11}  {prompt}")
}

/// Formats the sessions as a table in the given order, with times in `zone`. If the table is wider than `columns`,
/// directories are shortened to their names, which leaves room for the prompt.
fn text<F: SessionForm>(
    sessions: &[SessionSummary],
    zone: FixedOffset,
    columns: Option<usize>,
) -> String {
    if sessions.is_empty() {
        return "no sessions".to_owned();
    }
    let head = ["session", F::TIME, "state", "directory", "prompt"]
        .map(|name| (name, Left))
        .to_vec();
    let mut rows = vec![head.iter().map(|(name, _)| (*name).to_owned()).collect()];
    let row = |session| cells::<F>(session, zone).to_vec();
    rows.extend(sessions.iter().map(row));
    let whole = columns::aligned(&rows, &[Left; 5]).join("\n");
    let Some(columns) = columns.filter(|columns| columns::cut(&whole, Some(*columns)) != whole)
    else {
        return whole;
    };
    for row in rows.iter_mut().skip(1) {
        row[DIRECTORY] = name_of(&row[DIRECTORY]);
    }
    columns::table(head, rows, &[F::TIME, "state"], Some(columns))
}

/// Returns the row of a session in the table.
fn cells<F: SessionForm>(session: &SessionSummary, zone: FixedOffset) -> [String; 5] {
    let (directory, words) = match &session.outline {
        Ok(outline) => (outline.directory.as_str(), &outline.prompt),
        Err(problem) => ("", problem),
    };
    let time = session.time.with_timezone(&zone);
    [
        session.id.clone(),
        time.format("%Y-%m-%d %H:%M").to_string(),
        session.state::<F>().to_owned(),
        escaped(directory),
        truncated(&escaped(words), PROMPT_WIDTH).into_owned(),
    ]
}

/// Shortens a directory to its name, `…/name`, truncated if it is too long.
fn name_of(directory: &str) -> String {
    match directory.trim_end_matches('/').rsplit_once('/') {
        Some((above, name)) if !above.is_empty() => {
            truncated(&format!("…/{name}"), NAME_WIDTH).into_owned()
        }
        _ => directory.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::session::SessionFile;
    use crate::agent::session::{Outline, SessionState};
    use chrono::DateTime;
    use serde_json::json;
    use uuid::Uuid;

    fn summary(minute: u32, outline: Result<Outline, String>) -> SessionSummary {
        let time = format!("2025-01-15T11:{minute:02}:30Z");
        SessionSummary {
            id: Uuid::from_u128(minute.into()).to_string(),
            time: time.parse().unwrap(),
            outline,
        }
    }

    fn examples() -> [SessionSummary; 2] {
        let outline = Outline {
            time: DateTime::default(),
            model: String::new(),
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
            text::<SessionFile>(&examples(), zone, None),
            r#"session                               updated           state     directory       prompt
00000000-0000-0000-0000-00000000002d  2025-01-15 12:45  complete  C:\Users\Belle  say "é" \u{1b}[31m\u{202e} long long long long long long lo…
00000000-0000-0000-0000-000000000005  2025-01-15 12:05  damaged                   line 1, column 2: x"#
        );
        assert_eq!(text::<SessionFile>(&[], zone, Some(80)), "no sessions");
    }

    #[test]
    fn a_narrow_terminal_has_the_name_of_the_directory_and_the_request() {
        let zone = FixedOffset::east_opt(0).unwrap();
        let sessions = [(1, "one"), (2, "two")].map(|(minute, name)| {
            let outline = Outline {
                time: DateTime::default(),
                model: String::new(),
                directory: format!("/home/belle/work/a/long/way/{name}"),
                prompt: format!("Add a flag to {name} {}", "long ".repeat(20)),
                state: SessionState::Interrupted,
            };
            summary(minute, Ok(outline))
        });
        assert_eq!(
            text::<SessionFile>(&sessions, zone, Some(80)),
            "session                               directory  prompt\n\
             00000000-0000-0000-0000-000000000001  …/one      Add a flag to one long long lo…\n\
             00000000-0000-0000-0000-000000000002  …/two      Add a flag to two long long lo…"
        );
        assert_eq!(
            text::<SessionFile>(&sessions, zone, Some(500)),
            text::<SessionFile>(&sessions, zone, None)
        );
    }

    #[test]
    fn programs_get_the_whole_of_it() {
        let [sound, damaged] = examples();
        let prompt = sound.outline.as_ref().unwrap().prompt.clone();
        assert_eq!(
            SessionStore::<SessionFile>::json(&[sound, damaged]),
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
