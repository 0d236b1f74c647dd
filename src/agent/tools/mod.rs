//! The implementations of the tools, and the parts they share.
//!
//! # Adding a tool
//!
//! A tool is a file with a [`ToolSpec`](super::tool::ToolSpec) and an implementation of [`Tool`](super::tool::Tool); an
//! agent has it once the [`Toolbox`](super::tool::Toolbox) in the agent's folder does. Two agents also list their tools
//! beside the toolbox, for use without a project. Permissions depend on the spec's [`Effect`](super::tool::Effect) and
//! on the kinds of the parameters, never on the name: a path that is declared as text is not checked. Verb and category
//! follow from the effect, unless the spec replaces them.
//!
//! # Adding a permission
//!
//! A rule is a [`Permissions`](super::permissions::Permissions) around others, as
//! [`DenyPaths`](super::permissions::DenyPaths) is. The compiler points out where a new effect must be handled, except
//! in [`AskFirst`](super::permissions::AskFirst), which asks only about writes and commands. The danger of a single
//! call is reported by [`Tool::hazards`](super::tool::Tool::hazards), that of a command as a reason in
//! [`judge`](super::judge); an agent that asks its user then asks even about a call that is otherwise allowed for good.

pub mod background;
pub mod command;
pub mod delete;
pub mod diff;
pub mod edit;
pub mod files;
pub mod list;
pub mod notes;
pub mod read;
pub mod renamed;
pub mod replace;
pub mod replace_all;
pub mod resolved_path;
pub mod search;
pub mod spawn;
pub mod todos;
pub mod write;
