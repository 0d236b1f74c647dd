//! What the agent at the terminal has of its own: accounts, settings, permissions, instructions, commands.
//!
//! The loop, the tools and the conversation are the engine's; `workflow::chat` puts the parts together.

pub mod accounts;
pub mod briefing;
pub mod checklist;
pub mod commands;
pub mod context;
pub mod home_file;
pub mod instructions;
pub mod outgoing;
pub mod permissions;
pub mod reminders;
pub mod seen;
pub mod settings;
pub mod spent;
pub mod tools;
pub mod trust;
