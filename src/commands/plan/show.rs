//! Showing a plan, and the sessions.

use super::place::home;
use crate::commands::plan::document::PlanDocument;
use crate::commands::plan::file::PlanFile;
use crate::commands::plan::session;
use crate::commands::plan::session::{PlanSessionFile, PlanSessionStore};
use crate::commands::sessions::{self, KEEPS_ALL};
use crate::project::home::PLAN;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::error::Error;

/// Shows the plan of a session, of the last one of the project where none is named.
///
/// # Errors
/// If there is no such session, or its plan cannot be read.
pub fn show(context: &Context<'_>, session: Option<&str>) -> Result<Outcome, Failure> {
    let store = PlanSessionStore::at(&PLAN, &home(context)?, context.redactor)?;
    let root = context.project.root();
    let id = match session {
        Some(id) => id.to_owned(),
        None => store.last_in(root)?,
    };
    let path = session::document(&store, &id)?;
    let file = PlanFile {
        path: &path,
        is_private: false,
        clock: context.clock,
        redactor: context.redactor,
    };
    let document: PlanDocument = file.read().map_err(Error::from)?;
    let plan = serde_json::to_value(document.plan()).unwrap_or_default();
    Ok(Outcome::shown(document.text(), plan))
}

/// Lists the sessions.
///
/// # Errors
/// If they cannot be read.
pub fn sessions(context: &Context<'_>) -> Result<Outcome, Failure> {
    sessions::list::<PlanSessionFile>(context, &PLAN, &home(context)?, KEEPS_ALL)
}
