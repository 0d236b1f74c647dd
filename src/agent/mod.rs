//! The engine of every agent: a loop that asks a model, does what it asks for, and tells it what came of it.
//!
//! | part | what it is for |
//! |---|---|
//! | [`protocol`] | how a reply names tools, and how they are described to the model |
//! | [`tool`], [`tools`] | what a tool is, and one implementation of each |
//! | [`permissions`] | which calls may be carried out |
//! | [`memory`] | what becomes of a conversation that grows too long |
//! | [`conversation`] | what was said so far |
//! | [`audit`] | an agent that judges another's work |
//! | [`session`] | conversations that outlive the process |
//!
//! A workflow is a profile over these: it chooses the parts, and has none of its own. Stands above the
//! stages and below the workflows.

pub mod conversation;
pub mod protocol;
pub mod tagged;
pub mod tool;
pub mod tools;
