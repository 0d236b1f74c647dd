//! The exchange about tools between an agent and a model: the tools that the model is offered, the reading of its
//! replies, and the results of its calls.
//!
//! Pure. [`Protocol`] is what they have in common; one file a protocol: [`markdown`] has headings, [`tool_calls`] an object as the whole reply, [`native`] the
//! vendor's own tool calls, [`structured`] an object and no tools. Only [`tool_calls`] checks calls here: the agent holds
//! every call against its tools, and each gets its result.

mod exchange;
pub mod markdown;
pub mod native;
pub(crate) mod object;
mod results;
pub mod structured;
pub mod tool_calls;

pub use self::exchange::{Decision, Offer, Protocol, Turn};
pub use super::error::Fault;

pub(crate) use self::exchange::FAILED;
use self::markdown::{Markdown, PlainReplies};
use self::native::Native;
use crate::model::ToolForm;

/// The protocol of a form; `plain_replies` says what becomes of Markdown without a tool.
pub fn of(form: ToolForm, plain_replies: PlainReplies) -> Box<dyn Protocol> {
    match form {
        ToolForm::Markdown => Box::new(Markdown { plain_replies }),
        ToolForm::Json => Box::new(tool_calls::JSON),
        ToolForm::Native => Box::new(Native::default()),
    }
}

#[cfg(test)]
mod tests;
