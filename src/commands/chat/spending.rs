//! Spending of the agent at the terminal: recorded for the account that pays, and shown by `/cost`.

use super::place::ChatPlace;
use super::spent;
use crate::commands::last::{self, Spent};
use crate::record::result::RunRecord;
use crate::run::context::Context;
use crate::run::not_ready::NotReady;
use crate::sys::error::Error;

/// Records the spending of a run, unless its replies were recorded.
pub fn count(context: &Context<'_>, place: &ChatPlace<'_>, record: &RunRecord) {
    let spent = Spent::in_run(record);
    let Some(account) = place.account().filter(|_| !place.models.is_replay) else {
        return;
    };
    if spent == Spent::default() {
        return;
    }
    if let Err(problem) = spent::add(&place.home, &account, spent) {
        context.warn(problem.to_string());
    }
}

/// Returns the spending of the session and of the account, in words.
///
/// # Errors
/// When that cannot be read.
pub fn told(context: &Context<'_>, place: &ChatPlace<'_>) -> Result<String, Error> {
    let session = Spent {
        tokens: place.tokens(),
        ..last::spent_in(context, &place.id())?
    };
    let account = place.account();
    let account = account.map(|account| spent::by(&place.home, &account));
    let account = account.transpose().map_err(NotReady::of)?;
    Ok(format!(
        "this session: {session}\n\nthis account: {}",
        account.unwrap_or_default()
    ))
}
