//! Why the agent at the terminal does not do what it is told, its exit codes and what to do about it. Pure.

use super::Exit;
use crate::agent::chat::accounts::NoAccount;
use crate::agent::chat::permissions::NotPermitted;
use crate::secret::KeyProblem;
use crate::ui::tui::composer::ImageProblem;

/// Why the agent at the terminal does not do what it is told.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// The model that was asked for is not in its table.
    #[error("there is no model `{name}`: known are {known}")]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The names of those that are known.
        known: String,
    },
    /// Its vendor does not serve the model any more.
    #[error("the model `{name}` is retired: `{successor}` is its successor")]
    RetiredModel {
        /// What was asked for.
        name: String,
        /// What its vendor names in its place.
        successor: &'static str,
    },
    /// There is no such account.
    #[error(transparent)]
    Account(#[from] NoAccount),
    /// What is to be a key cannot be one.
    #[error("the key {0}")]
    NotAKey(#[from] KeyProblem),
    /// The vendor does not take the key.
    #[error("the key is refused: {reason}")]
    KeyRefused {
        /// What the vendor says.
        reason: String,
    },
    /// Calls of the agent's were refused, since nobody was there to ask.
    #[error(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// A picture that the request names cannot be attached.
    #[error(transparent)]
    Image(#[from] ImageProblem),
    /// A full-screen terminal is wanted, and there is none.
    #[error("`chat` needs a terminal: {0}")]
    NoTerminal(&'static str),
}

impl ChatError {
    /// How the process ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            Self::UnknownModel { .. }
            | Self::RetiredModel { .. }
            | Self::Account(_)
            | Self::Image(_)
            | Self::NotAKey(_) => Exit::Usage,
            Self::KeyRefused { .. } => Exit::ModelFailed,
            Self::NotPermitted(_) => Exit::NotPermitted,
            Self::NoTerminal(_) => Exit::NotReady,
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::UnknownModel { .. } => {
                "`/model` lists them; `models.json` in `~/.agent` adds others"
            }
            Self::RetiredModel { successor, .. } => {
                return format!("`--model {successor}` asks it, and so does `/model {successor}`");
            }
            Self::NotPermitted(refused) => return refused.hint(),
            Self::NoTerminal(_) => "ask one request without a terminal: `code-commit chat -p TEXT`",
            Self::Account(_) => {
                "`/login` lists the accounts; `code-commit chat login --account NAME` adds one"
            }
            Self::Image(_) => "without the `@`, the request only names it",
            Self::NotAKey(_) => "give the API key alone, as the vendor's console shows it",
            Self::KeyRefused { .. } => {
                "nothing was stored; see that the key is whole, and made for the server that is asked"
            }
        };
        hint.to_owned()
    }
}
