//! Protocols for tool use between an agent and a model: the tools offered to the model, the parsing of its replies, and
//! the results of its calls.
//!
//! Pure. [`Protocol`] is the common interface, and each protocol has its own module: [`markdown`] uses headings,
//! [`tool_calls`] a JSON object as the whole reply, [`native`] the vendor's own tool calls, and [`structured`] an
//! object without tools. Only [`tool_calls`] checks calls here: the agent checks every call against its tools, and each
//! call gets a result.

mod exchange;
pub mod markdown;
pub mod native;
pub(crate) mod object;
mod results;
pub mod structured;
pub mod tool_calls;

pub use self::exchange::{Decision, Offer, Protocol, Turn};
pub use super::error::Fault;

pub(crate) use self::exchange::{FAILED, MAX_CALLS};
use self::markdown::{Markdown, PlainReplies};
use self::native::Native;
use crate::model::ToolForm;

/// Returns the protocol for a tool form; `plain_replies` determines how Markdown replies without a tool are treated.
pub fn of(form: ToolForm, plain_replies: PlainReplies) -> Box<dyn Protocol> {
    match form {
        ToolForm::Markdown => Box::new(Markdown { plain_replies }),
        ToolForm::Json => Box::new(tool_calls::JSON),
        ToolForm::Native => Box::new(Native::default()),
    }
}

#[cfg(test)]
mod tests;
