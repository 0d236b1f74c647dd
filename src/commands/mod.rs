//! The commands, and the code that they share.
//!
//! | part | content |
//! |---|---|
//! | `cli`, `settings`, `dispatch`, [`error`] | the command line, flags from files, dispatch, and commands' errors |
//! | `chat`, `dev`, `orchestrate`, `plan` | the agents, one folder each |
//! | `fleet` | many tasks from a list |
//! | `agent_run` | the runs in which agents work |
//! | `workspace`, `stored_session`, `answers` | an agent's setup, its session, and the answers to its questions |
//! | `sessions`, `mcp_server` | the list of sessions, and MCP servers |
//! | `talk`, `screen` | the conversation with the user, by lines or on the screen |
//! | `commit`, `consistency`, `sections`, `dry_run`, `query` | a change, a report, an estimate, and the query |
//! | `init`, `add_model`, `models`, `mcp`, `rollup`, `context`, `demo` | commands for setting up and trying out |
//! | `log`, `diff`, `undo`, `report`, `attest`, `last`, `spent` | commands about past runs, the choice of one, and what they have cost |
//! | `place`, `redaction` | the project that a command works on, and the keys to redact |
//! | `reporting`, `summary`, `output_file` | the outcome, a run's summary, and user-specified output files |
//!
//! A command decides the order of the work and the meaning of each outcome; the modules below do the work itself.
//!
//! # Adding an agent
//!
//! An agent is a folder, with `dev` as the smallest example: `args` with the flags and the two help texts, and `command`
//! with the profile, which combines parts of [`crate::agent`] and implements [`talk::Talker`]. `workspace` opens its
//! session, `agent_run` is its run, and `screen` finds its user. The flags of [`cli::agent::AgentArgs`] refer to its own
//! `prompt`, `resume` and `session`. Outside its folder, it is named three times:
//!
//! - in [`command`], as a variant, in `Command::agent` and in `Command::named_runs`;
//! - in `dispatch`, with its function;
//! - in [`crate::project::home`], if it has a home, as a static and in `ALL`. The keys there are then redacted, and hidden
//!   from commands.
//!
//! The tests of `command_line` fail if one of these is missing, and `tests/docs.rs` until `docs/commands.md` has the
//! command. `tests/architecture.rs` lists it in `SYSTEMS`.
//!
//! # Adding a slash command
//!
//! A row in [`talk::slash`], and in `COMMON` there if every agent has it. `Talk::execute` answers those of every agent,
//! and the agent's own `Talker::execute` the others; a command that neither answers does nothing.

mod add_model;
mod agent_run;
mod answers;
mod attest;
pub(crate) mod chat;
pub(crate) mod cli;
pub(crate) mod command;
pub mod command_line;
mod commit;
mod consistency;
mod context;
mod demo;
pub(crate) mod dev;
mod diff;
pub(crate) mod dispatch;
mod dry_run;
pub mod error;
pub(crate) mod fleet;
mod init;
pub(crate) mod last;
mod log;
mod mcp;
pub(crate) mod mcp_server;
pub(crate) mod models;
pub(crate) mod orchestrate;
mod output_file;
mod place;
pub(crate) mod plan;
mod query;
pub(crate) mod redaction;
pub(crate) mod report;
mod reporting;
mod rollup;
mod scratch;
mod screen;
mod sections;
mod sessions;
mod settings;
mod spent;
mod stored_session;
mod summary;
mod talk;
mod undo;
mod workspace;

pub(crate) use dispatch::dispatch;
pub(crate) use models::table;
pub(crate) use place::ProjectPlace;
pub(crate) use reporting::{report_early, report_outcome};
pub(crate) use scratch::enter_scratch;
pub(crate) use settings::with_files;
pub(crate) use summary::{SummaryFile, summarize};
