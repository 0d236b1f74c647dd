//! `code-commit chat`, whole: accounts, settings, permissions, instructions, commands, screen.
//!
//! The loop, the tools and the conversation are the engine's.

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
pub(crate) mod options;
pub mod outgoing;
pub mod permissions;
pub(crate) mod place;
pub(crate) mod proposals;
pub mod reminders;
pub(crate) mod request;
pub mod seen;
pub mod settings;
pub(crate) mod shell;
pub(crate) mod slash;
pub(crate) mod spending;
pub mod spent;
pub(crate) mod talk;
pub mod tools;
pub mod trust;
pub(crate) mod trusting;
