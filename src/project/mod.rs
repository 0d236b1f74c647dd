//! The project on disk: its well-known paths, git's view of it, and what is sent to models.
//!
//! | part | purpose |
//! |---|---|
//! | `files`, `problem` | well-known paths and required inputs, and errors from reading the project |
//! | [`place`], `lock` | finding the project, and locking it for one run at a time |
//! | [`repository`], [`repositories`], [`index`], [`dirty`] | git: its folders, tracked files and uncommitted changes |
//! | [`gitignore`], [`walk`] | git's ignore rules, and walking a tree without ignored files |
//! | [`rollup`], [`conventions`] | project content that is sent to models |
//! | [`ranking`], [`history`] | which files a query is about, and earlier commits |
//! | [`outline`], [`excerpts`] | the parts of the project that are sent if the whole is too large |
//! | [`kind`], [`configured`], `home` | how to build the project, paths its configuration names, and agents' homes |

pub(crate) mod changed_files;
pub mod configured;
pub mod conventions;
pub mod dirty;
pub mod excerpts;
mod files;
pub mod gitignore;
pub mod history;
pub(crate) mod home;
pub mod index;
pub mod kind;
mod lock;
pub mod outline;
pub mod place;
mod problem;
pub mod ranking;
pub mod repositories;
pub mod repository;
pub mod rollup;
pub mod run_folder;
pub mod walk;

pub use self::files::{
    CONFIG, DRAFT, EXAMPLE_QUERY, LOGS, OUTLINE, PROJECT_GATE, Project, QUERY, RATES, ROLLUP,
    USER_FLAGS,
};
pub use self::lock::ProjectLock;
pub use self::problem::ProjectProblem;
