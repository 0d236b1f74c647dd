//! Conversations that outlive the process: one store for systems that keep each session in a JSON file and for those
//! that keep it in a folder.

mod clean;
mod directory_map;
mod error;
mod file;
mod form;
mod history;
mod redacted;
mod state;
mod store;

pub use self::error::SessionError;
pub use self::file::SessionFile;
pub use self::form::{Outline, SessionForm, SessionSummary};
pub use self::redacted::redacted_conversation;
pub use self::state::{Compression, SessionState};
pub use self::store::{LARGEST, Session, SessionStore};
