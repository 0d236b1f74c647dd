//! The state to which a session returns if the scratch tree in which it works is discarded.
//!
//! A document in the project is not saved here, since it is in the tree and discarded with it.

use super::file::PlanFile;
use super::place::OpenPlan;
use super::session::Checkpoint;
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::sys::error::Error;

/// Saves the current state and document, so that they can be restored.
///
/// # Errors
/// Fails if the document cannot be read or the session cannot be saved.
pub fn save(stored: &OpenPlan<'_>, document: &PlanFile<'_>) -> Result<(), Error> {
    let bytes = document.is_private.then(|| document.bytes()).transpose()?;
    stored.change_state(|state| {
        state.checkpoint = None;
        state.checkpoint = Some(Box::new(Checkpoint {
            state: state.clone(),
            document: bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        }));
    })
}

/// Returns to the saved state, if any, since the changes made after it were not applied, even if the process was
/// killed. The current document is first copied to a file beside it.
///
/// # Errors
/// Fails if the document or the session cannot be written; the state then remains saved.
pub fn roll_back(
    context: &Context<'_>,
    stored: &OpenPlan<'_>,
    document: &PlanFile<'_>,
) -> Result<(), Error> {
    let Some(saved) = stored.state(|state| state.checkpoint.clone()) else {
        return Ok(());
    };
    if let Some(text) = &saved.document {
        document.put_back(text).map_err(NotReady::of)?;
    }
    stored.change_state(|state| *state = saved.state)?;
    context.warn(
        "what was done in the scratch tree was not applied: the session and its plan are as they were before, and \
         `--resume` begins again there",
    );
    Ok(())
}
