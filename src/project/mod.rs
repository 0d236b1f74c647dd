//! The project on disk: its well-known paths, what git says of it, and what is sent of it.
//!
//! | part | what it is for |
//! |---|---|
//! | `files` | the well-known paths, and the inputs that must be there |
//! | [`place`], `lock` | where the project is, and that one run at a time holds it |
//! | [`repository`], [`repositories`], [`index`], [`dirty`] | git: its folders, what it tracks, and what is not committed |
//! | [`gitignore`], [`walk`] | what git ignores, and the walk of a tree without that |
//! | [`rollup`], [`conventions`] | what is sent of it |
//! | [`kind`], [`configured`], `home` | how it is built, what its tools read, and where the users of its agents keep theirs |

pub(crate) mod changed_files;
pub mod configured;
pub mod conventions;
pub mod dirty;
mod files;
pub mod gitignore;
pub(crate) mod home;
pub mod index;
pub mod kind;
mod lock;
pub mod place;
pub mod repositories;
pub mod repository;
pub mod rollup;
pub mod run_folder;
pub mod walk;

pub use self::files::{CONFIG, DRAFT, EXAMPLE_QUERY, LOGS, Project, ProjectProblem, QUERY, ROLLUP};
pub use self::lock::ProjectLock;
