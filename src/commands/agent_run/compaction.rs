//! `/compact`: replaces a session's conversation with a summary, in a separate run.

use super::run::{AgentRun, AgentSetup};
use crate::agent::Host as _;
use crate::agent::memory::Frame;
use crate::agent::memory::truncate::{Meter, summarize};
use crate::agent::protocol::Protocol;
use crate::model::Purpose;
use crate::run::context::Context;
use crate::run::outcome::{Failure, Outcome};
use crate::run::recovery;

/// Instructions for the summary.
pub const SUMMARY: &str = include_str!("../../../prompts/chat_compact.txt");
/// Result if there is no conversation yet.
pub const NOTHING_TO_COMPACT: &str = "there is nothing to compact yet";

/// Asks the model for a summary that follows these instructions, with particular attention to `focus` unless it is
/// blank, and replaces the conversation with it. The project is locked during that time.
///
/// # Errors
/// Fails if no summary can be made.
pub fn compact(
    context: &Context<'_>,
    setup: AgentSetup<'_>,
    protocol: &dyn Protocol,
    (instructions, focus): (&str, &str),
) -> Result<Outcome, Failure> {
    let _lock = recovery::take(context)?;
    let window = setup.limits.context();
    let run = AgentRun::start(context, setup, None)?;
    let result = run.work(|conversation| {
        let frame = Frame {
            host: &run,
            system: &[],
            protocol,
        };
        let meter = Meter::default();
        let asked = (instructions, focus);
        let compressed = summarize(frame, &meter, window, asked, conversation)?;
        run.save(&Purpose::STEP, conversation)?;
        run.compressed(&Purpose::STEP, compressed);
        Ok(compressed.message())
    });
    run.finish(result)
}
