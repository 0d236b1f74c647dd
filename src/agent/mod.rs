//! The engine of every agent: a loop that asks a model, carries out its tool calls and returns the results.
//!
//! | part | purpose |
//! |---|---|
//! | `engine`, `resuming`, `ending` | the loop itself, its resumption and its end |
//! | `host` | the run that an agent works in |
//! | `protocol` | how a reply names tools, and how tools are described to the model |
//! | [`tool`], [`tools`], `schema`, `using` | the tool trait, its implementations, their arguments and their use |
//! | `permissions`, `restricted` | the calls that are permitted, and the commands that an auditor may run |
//! | [`judge`] | the assessment of shell commands |
//! | `asking`, `memory` | requests to the model, and the handling of conversations that grow too long |
//! | `conversation`, `tagged` | the messages so far, and the tags that set them apart from the program's own words |
//! | `mcp` | a client for the servers whose tools an agent uses |
//! | `audit` | an agent that judges another's work |
//! | `session` | conversations that outlive the process |
//!
//! A system is a profile that combines these parts. In the layering, this module is above runs and records, and below
//! the commands.

mod asking;
pub(crate) mod audit;
pub(crate) mod conversation;
mod ending;
mod engine;
mod error;
mod host;
pub mod judge;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod permissions;
pub(crate) mod protocol;
pub(crate) mod restricted;
mod resuming;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod tagged;
pub mod tool;
pub mod tools;
mod using;

pub use self::ending::{Ended, Objection, ToolTries};
pub use self::engine::{Agent, Brief};
pub use self::error::AgentError;
pub use self::host::{Compressed, Env, Host, Note};
pub(crate) use self::using::ToolUse;
