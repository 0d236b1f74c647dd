//! Every language model behind one trait, and the table of known models.
//!
//! `http` and `server` use the network, and `pace` files; everything else is pure. Guarantees that a [`Reply`] is
//! whole: one that was blocked, refused, empty or cut short is a [`ModelError`].
//!
//! # Adding a vendor
//!
//! A vendor is a file, with `gemini` as an example and `azure` as one that shares another's wire format: its facts as a
//! [`Vendor`], and its wire format as an implementation of `wire::Wire`. `RawReply::checked` turns an answer into a
//! [`Reply`], and `wire::object` leaves out fields that are not set. Outside its file, the vendor is a variant of
//! [`Provider`] in `spec`, an element of `Provider::ALL` in `vendors`, and an arm of the match there that selects a
//! wire format. Fields of `models.json` that it alone has are assigned to it in `Provider::check`. One test fails if
//! the list lacks the vendor, others until the help and `docs/models.md` name its key and its server.

mod anthropic;
mod azure;
pub(crate) mod catalogue;
pub(crate) mod endpoint;
mod error;
pub(crate) mod estimate;
mod fields;
mod gemini;
mod http;
mod json_text;
mod manner;
pub mod message;
mod ollama;
mod openai;
pub(crate) mod pace;
pub(crate) mod price;
pub(crate) mod prompt;
mod raw_reply;
mod reply;
mod request;
pub(crate) mod served;
mod server;
mod setup;
mod spec;
mod step_id;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod thoughts;
mod tier;
pub mod tokens;
pub(crate) mod usage;
mod vendor_error;
mod vendors;
mod wire;

pub(crate) use crate::sys::http::endpoint::{Endpoint, EndpointProblem, Proxies};
pub use azure::{azure_spec, is_plain as is_plain_in_url};
pub(crate) use catalogue::retired;
pub use error::ModelError;
pub(crate) use error::after_tries;
pub(crate) use error::human_duration;
pub use fields::FEWEST_TOKENS;
pub use http::HttpModel;
pub use reply::{Answer, End, Reply, Spent};
pub use request::{Delivery, Form, ReplyFormat, Request, ToolChoice, ToolSchema};
pub use server::{ListedModel, PullProgress, Route, ServerProblem, VendorServer};
pub use setup::{KeySource, Setup};
pub use spec::{ModelSpec, Origin, Place, Provider, ReasoningEffort, Thinking, ToolForm};
pub use step_id::{Purpose, REPAIRS, StepId};
pub(crate) use table::{CHAT_MODELS, ModelTable, TableFile, TableProblem, TaskType, Unselected};
pub use tier::Tier;
pub use vendor_error::{FailureKind, VendorError};
pub use wire::{Listener, Model, Vendor};
