//! Runs in which agents work, common to all agents: the engine's host, the conversation, and the project's files.

mod commands;
mod compaction;
mod files;
mod part;
mod run;
mod worktree;

pub use self::compaction::{NOTHING_TO_COMPACT, SUMMARY, compact};
pub use self::part::FailedBuild;
pub use self::run::{AgentRun, AgentSetup};
