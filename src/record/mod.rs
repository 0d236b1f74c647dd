//! A run as data, and the folder that stores it.
//!
//! | part | purpose |
//! |---|---|
//! | [`result`] | `result.json`, as the contract defines it; a change in meaning raises `SCHEMA` |
//! | `finding` | a problem in the output of a build |
//! | `choice` | the attempts of a commit, and the one that was taken |
//! | `search` | the states of a commit that searches |
//! | `step` | one step: a call to the model and its outcome |
//! | `logged` | reading a run's folder |
//! | `gate` | the verdict on the tests and settings that judged a change |
//! | [`run_log`], [`run_files`] | writing a run's folder, and the names of its files |
//! | [`replay`] | a model that answers from such a folder |
//! | [`orchestration`], [`branches`] | an orchestration's report, and the branches that its agents worked on |
//! | [`tool`] | the action of a tool, and how the command that it ran ended |
//! | [`tasks`], [`verdict`] | an agent's task list, and an auditor's judgement of its work |
//!
//! Writes below `logs/` and nowhere else.

pub mod branches;
pub(crate) mod choice;
pub mod event;
pub(crate) mod finding;
pub(crate) mod gate;
pub(crate) mod logged;
pub mod mode;
pub mod orchestration;
pub mod question;
pub mod replay;
pub(crate) mod result;
pub mod run_files;
pub mod run_log;
pub(crate) mod search;
pub(crate) mod seconds;
pub(crate) mod step;
pub mod tasks;
pub mod todos;
pub mod tool;
pub mod verdict;
