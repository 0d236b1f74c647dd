//! The seam between a run of agents and the session that keeps its conversation: one trait, for the forms that the
//! profiles' sessions have.

use crate::agent::Compressed;
use crate::agent::conversation::Conversation;
use crate::agent::session::SessionState;
use crate::agent::tool::Effect;
use crate::model::Purpose;
use crate::model::usage::Usage;
use crate::record::step::Action;
use crate::sys::error::Error;

/// Keeps the conversation and the progress of a run.
pub trait Keeping {
    /// The session's name.
    fn id(&self) -> String;

    /// The conversation.
    fn conversation(&self) -> Conversation;

    /// Index of the first message of the request under way, if the profile needs it.
    fn from(&self) -> usize {
        0
    }

    /// A further request follows: what is done, is not asked for any more.
    fn settle(&self);

    /// Records the progress of the work.
    ///
    /// # Errors
    /// When that cannot be kept.
    fn note_state(&self, state: SessionState) -> Result<(), Error>;

    /// Keeps what was said by an agent of this purpose and to it.
    ///
    /// # Errors
    /// When that cannot be kept.
    fn keep(&self, purpose: &Purpose, conversation: &Conversation) -> Result<(), Error>;

    /// Records the usage that the vendor reports for a call for an agent of this purpose.
    fn answered(&self, _purpose: &Purpose, _usage: &Usage) {}

    /// Notes that a tool was used, or was to be; the effect is that of the tool, where an agent has called one.
    fn acted(&self, _action: &Action, _effect: Option<Effect>) {}

    /// Notes that the agents' tools have changed these files, by their paths from the root.
    fn wrote(&self, _paths: &[String]) {}

    /// Records the tokens of a call for an agent of this purpose.
    fn count(&self, _purpose: &Purpose, _tokens: u64) {}

    /// Notes that the conversation was compressed.
    fn compressed(&self, _purpose: &Purpose, _compressed: Compressed) {}
}
