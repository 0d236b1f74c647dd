//! What there is to see and to set of agents, besides their work: the sessions, and `config.json`.

use std::path::Path;

use super::workspace::{self, home, settings};
use crate::agent::session;
use crate::agent::settings::FILE;
use crate::project::home::{AgentHome, DEV};
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::ui::editor;

/// Lists the sessions.
///
/// # Errors
/// When they cannot be read.
pub fn sessions(context: &Context<'_>) -> Result<Outcome, Failure> {
    let (home, settings) = settings(context)?;
    list(context, &DEV, &home, settings.session_retention_days)
}

/// Lists the sessions of an agent with this home, less those that were not used for so many days.
///
/// # Errors
/// When they cannot be read.
pub fn list(
    context: &Context<'_>,
    agent: &'static AgentHome,
    home: &Path,
    days: u32,
) -> Result<Outcome, Failure> {
    let store = workspace::sessions(context, agent, home, days)?;
    let sessions = store.list()?;
    let zone = *context.clock.now().offset();
    Ok(Outcome::shown(
        session::text(&sessions, zone, context.reporter.columns()),
        session::to_json(&sessions),
    ))
}

/// Opens `config.json` in the user's editor, and sees whether what they made of it can be used.
///
/// # Errors
/// When there is no editor, or the configuration cannot be used.
pub fn config(context: &Context<'_>) -> Result<Outcome, Failure> {
    let home = home(context)?;
    // What is wrong with it now is what the editor is for.
    let _ = settings(context);
    let path = home.join(FILE);
    let command = editor::command(context.environment);
    editor::open(command, &path, context.interrupt)?;
    settings(context)?;
    Ok(Outcome::said(format!(
        "done: `{}` can be used",
        path.display()
    )))
}
