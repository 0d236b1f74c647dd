//! The engine of every agent: a loop that asks a model, does what it asks for, and tells it what came of it.
//!
//! | part | what it is for |
//! |---|---|
//! | `engine` | the loop itself |
//! | `protocol` | how a reply names tools, and how they are described to the model |
//! | [`tool`], [`tools`], `schema`, `using` | what a tool is, one implementation of each, what they are given, and how one is used |
//! | `permissions`, `restricted` | which calls may be carried out, and which commands of an auditor |
//! | `asking`, `memory` | how the model is asked, and what becomes of a conversation that grows too long |
//! | `conversation`, `tagged` | what was said so far, and how it is told from the program's own words |
//! | `mcp` | servers whose tools it uses |
//! | `audit` | an agent that judges another's work |
//! | `session`, `settings` | conversations that outlive the process, and what the user has set |
//!
//! A workflow is a profile over these: it chooses the parts, and has none of its own. Stands above the
//! stages and below the workflows.

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
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod tagged;
mod taking_up;
pub mod tool;
pub mod tools;
mod using;

pub use self::ending::{Ended, Objection, ToolTries};
pub use self::engine::{Agent, Brief};
pub use self::error::{AgentError, Unsaid};
pub use self::host::{Compressed, Env, Host, Note};
pub(crate) use self::using::ToolUse;
