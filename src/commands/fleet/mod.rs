//! Many tasks from a list, each run as a workflow in a separate clone.
//!
//! | part | content |
//! |---|---|
//! | `args`, `command`, `error` | the command line, dispatch, and errors |
//! | `manifest`, `pins` | the tasks, and the lock file next to them |
//! | `check` | problems and likely cost of a manifest |
//! | `clone`, `child`, `process`, `task` | one task: its repository, its processes, and its results |
//! | `records`, `ledger` | files that several processes append to, and the campaign's budget |
//! | `run`, `table` | all tasks on this machine, and their display |
//! | `sum`, `report`, `publish` | the results of all tasks, and their branches |
//! | `policy` | exit codes for other engines |

pub(crate) mod args;
mod check;
mod child;
mod clone;
pub(super) mod command;
pub(crate) mod error;
mod ledger;
mod manifest;
mod pins;
mod policy;
mod process;
mod publish;
mod records;
mod report;
mod run;
mod sum;
mod table;
mod task;
