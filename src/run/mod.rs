//! Runs: the parts shared by the commands that start one, and past runs.
//!
//! | modules | content |
//! |---|---|
//! | `context`, `outcome`, `problems` | the inputs and outcome of every command, and the reasons not to start a run |
//! | `ready`, `not_ready`, `env_file` | the checks before a run, and the user's `.env` |
//! | `recovery`, `resumption` | recovery from a run that was cut short, and resumption of a run |
//! | `selection`, `agent_models`, `keys`, `accounts` | the models to ask, and the keys for them |
//! | `code_base`, `staged`, `sending`, `shown` | the code base as sent, checks of it, and the model's view of files |
//! | `parts` | the parts of a code base that does not fit, for a report |
//! | `code_context`, `present` | the part of the code base sent under a limit, and the files that a repair shows |
//! | `active`, `budget`, `counting`, `served`, `tiers` | a run in progress, its budget and tokens, and what served it |
//! | `tree`, `gate` | the files that a run changes, and those that its builds must not change |
//! | `builds`, `baseline`, `passed_trees`, `proof` | builds, and the proof that the project passes |
//! | `search`, `choice`, `pin` | `--strategy search`, the choice of an attempt, and the files they begin from |
//! | `closing` | the warnings and line counts at the end of a run |
//! | `verdict` | the verdict on a change of tests and of the settings that judge it |
//! | `telemetry` | the export of runs to an OpenTelemetry collector |
//! | `past` | the runs recorded in `logs` |

pub mod accounts;
pub(crate) mod active;
pub mod agent_models;
pub mod baseline;
pub mod budget;
pub mod builds;
pub mod choice;
pub mod closing;
pub mod code_base;
pub mod code_context;
pub mod context;
mod counting;
pub mod env_file;
pub mod error;
pub mod gate;
pub mod keys;
pub mod not_ready;
pub mod outcome;
pub mod parts;
pub mod passed_trees;
pub(crate) mod past;
pub mod pin;
pub mod present;
pub mod proof;
pub mod ready;
pub mod recovery;
pub mod resumption;
pub mod scratch;
pub mod search;
pub mod selection;
pub mod sending;
pub mod served;
pub mod shown;
pub mod staged;
pub(crate) mod telemetry;
pub mod tiers;
pub mod tree;
pub(crate) mod verdict;
