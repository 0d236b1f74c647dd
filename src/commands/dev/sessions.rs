//! `dev sessions` and `dev config`.

use crate::agent::session::SessionFile;
use crate::agent::settings::FILE;
use crate::commands::sessions;
use crate::commands::workspace::{home, settings};
use crate::project::home::DEV;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};

/// Lists the sessions of `dev`.
///
/// # Errors
/// When they cannot be read.
pub fn sessions(context: &Context<'_>) -> Result<Outcome, Failure> {
    let (home, settings) = settings(context)?;
    sessions::list::<SessionFile>(context, &DEV, &home, settings.session_retention_days)
}

/// Opens `config.json` in the user's editor, and checks that the result can be used.
///
/// # Errors
/// When there is no editor, or the configuration cannot be used.
pub fn config(context: &Context<'_>) -> Result<Outcome, Failure> {
    let home = home(context)?;
    // What is wrong with it now is what the editor is for.
    let _ = settings(context);
    sessions::edit(context, &home.join(FILE), || settings(context).map(drop))
}
