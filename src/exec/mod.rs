//! Running other programs: one runner for `build.sh` and for an agent's commands, and the sandbox around them.
//!
//! A command is started, watched and ended by its [`supervisor`], which is a process inside the sandbox, a process next
//! to the command, or a thread of this program. In each case, `runner` waits for the command and reads its output. A
//! strict sandbox reaches the network only through `proxy`.

pub(crate) mod build_script;
pub mod child_env;
mod descriptors;
pub(crate) mod hosts;
mod mounts;
mod output;
pub(crate) mod pipes;
pub mod process;
mod process_error;
mod process_tree;
mod proxy;
mod runner;
pub mod sandbox;
pub mod scratch;
pub mod subreaper;
mod supervised_child;
pub mod supervisor;
mod wire;
