//! `code-commit chat`: the terminal agent.
//!
//! Contains everything specific to this agent: accounts and sign-in, settings, permissions and trust, instructions,
//! slash commands, and the conversation with the user. The loop, the tools and the history are in [`crate::agent`].

pub(crate) mod args;
pub(crate) mod attach;
pub mod briefing;
pub mod checklist;
pub(crate) mod command;
pub mod commands;
pub mod context;
pub(crate) mod entries;
pub(crate) mod error;
pub mod instructions;
pub(crate) mod login;
pub(crate) mod models;
pub mod outgoing;
pub mod permissions;
pub(crate) mod place;
pub(crate) mod proposals;
pub mod reminders;
pub(crate) mod request;
pub mod settings;
pub(crate) mod shell;
pub(crate) mod spending;
pub(crate) mod talk;
pub mod tools;
pub mod trust;
pub(crate) mod trusting;
mod welcome;
