//! Shows a plan, and lists the sessions.

use std::path::Path;

use super::document::{PlanDocument, PlanDocumentError};
use super::file::{PlanFile, PlanFileError};
use super::session::{self, PlanSessionFile, PlanSessionStore};
use crate::agent::session::SessionError;
use crate::commands::sessions::{self, KEEPS_ALL};
use crate::commands::workspace::home;
use crate::project::home::PLAN;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::sys::error::Error;

/// The project has no plan to show.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("there is no plan in `{}` yet", .0.escape_debug())]
#[diagnostic(
    code("usage"),
    help("`code-commit plan` makes one; `code-commit plan sessions list` lists those elsewhere")
)]
struct NoPlan(String);

/// Shows the plan in the file `named`, or that of a session, or else that of the project's last
/// session.
///
/// # Errors
/// Fails if there is no such session, or its plan cannot be read.
pub fn show(
    context: &Context<'_>,
    session: Option<&str>,
    named: Option<&Path>,
) -> Result<Outcome, Failure> {
    let root = context.project.root();
    let path = if let Some(path) = named {
        let file = Some(root.join(path)).filter(|file| file.is_file());
        file.ok_or_else(|| PlanFileError::Outside(path.to_owned()))?
    } else {
        let store = PlanSessionStore::at(&PLAN, &home(context, &PLAN)?, context.redactor);
        let last = || match store.last_in(root) {
            Err(SessionError::NoneIn { directory, .. }) => Err(NoPlan(directory).into()),
            found => found.map_err(Error::from),
        };
        let id = session.map_or_else(last, |id| Ok(id.to_owned()))?;
        session::document(&store, &id)?
    };
    let file = PlanFile {
        path,
        is_private: false,
        clock: context.clock,
        redactor: context.redactor,
    };
    let read = file.read();
    if let (Some(path), Err(PlanFileError::Unreadable { source, .. })) = (named, &read)
        && *source == PlanDocumentError::NoHeading
    {
        return Err(PlanFileError::NoPlan(path.to_owned()).into());
    }
    let document: PlanDocument = read?;
    let plan = serde_json::to_value(document.plan()).unwrap_or_default();
    Ok(Outcome::shown(document.text(), plan))
}

/// Lists the sessions.
///
/// # Errors
/// Fails if the sessions cannot be read.
pub fn sessions(context: &Context<'_>) -> Result<Outcome, Failure> {
    sessions::list::<PlanSessionFile>(context, &PLAN, &home(context, &PLAN)?, KEEPS_ALL)
}
