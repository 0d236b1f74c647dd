//! Errors of the terminal agent, with their exit codes and hints. Pure.

use super::permissions::NotPermitted;
use crate::agent::AgentError;
use crate::model::estimate::OverBudget;
use crate::model::{End, KeySource, ModelError};
use crate::run::accounts::NoAccount;
use crate::secret::KeyProblem;
use crate::sys::error::Error;
use crate::ui::tui::attachment::ImageProblem;

/// Errors of the terminal agent.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ChatError {
    /// The model's entry selects a form of tool calls that is not native.
    #[error("`chat` needs native tool calls, and the entry of `{0}` has other `tools`")]
    #[diagnostic(
        code("usage"),
        help("choose another model, or set `\"tools\": \"native\"` in its `models.json` entry")
    )]
    NoNativeTools(String),
    /// The vendor has no service tiers.
    #[error("`--tier` does not apply to {0}'s models, which have one tier")]
    #[diagnostic(code("usage"), help("leave it out"))]
    NoTiers(&'static str),
    /// The account does not exist.
    #[error(transparent)]
    #[diagnostic(
        code("usage"),
        help("`/login` lists the accounts; `code-commit chat login --account NAME` adds one")
    )]
    Account(#[from] NoAccount),
    /// The given text cannot be a key.
    #[error("the key {0}")]
    #[diagnostic(
        code("usage"),
        help("give the API key alone, as the vendor's console shows it")
    )]
    NotAKey(#[from] KeyProblem),
    /// The command line contains an argument that may be a key.
    #[error("`chat login` takes no key as an argument, since others could see it there")]
    #[diagnostic(
        code("usage"),
        help("pass it on standard input, or type it when `code-commit chat login` asks for it")
    )]
    KeyAsArgument,
    /// The vendor rejects the key.
    #[error("the key was rejected: {0}")]
    #[diagnostic(
        code("model-failed/key-rejected"),
        help("nothing was stored; check that the key is complete, and that it is for this server")
    )]
    KeyRefused(String),
    /// Calls of the agent were refused because no user was present to allow them.
    #[error(transparent)]
    #[diagnostic(transparent)]
    NotPermitted(#[from] NotPermitted),
    /// An image named by the request cannot be attached.
    #[error(transparent)]
    #[diagnostic(code("usage"), help("without the `@`, the request only names it"))]
    Image(#[from] ImageProblem),
    /// The request is an unknown command.
    #[error("there is no command `/{0}`")]
    #[diagnostic(
        code("usage"),
        help("`.agent/commands/NAME.md` and `~/.agent/commands/NAME.md` define custom commands")
    )]
    UnknownCommand(String),
    /// A user-defined command needs a mode, a flag or a permission that it does not have.
    #[error("`/{name}` was not run: {problem}")]
    #[diagnostic(
        code("not-permitted"),
        help(
            "a mode or flag that it needs is yours to give: `--mode`, `--auto-pilot`, `--allow-outside`; shell commands alone are allowed by `.agent/permissions.json`, if you trust it and the command's file (`code-commit chat trust`)"
        )
    )]
    NotExpanded {
        /// The name of the command.
        name: String,
        /// The reason.
        problem: String,
    },
    /// No full-screen terminal is available.
    #[error("`chat` needs a terminal: {0}")]
    #[diagnostic(
        code("not-ready"),
        help("`chat --plain` talks by lines; `chat -p TEXT` answers one request")
    )]
    NoTerminal(&'static str),
}

/// Returns the hint for an error that other agents share, adapted to the settings of `chat`.
pub(crate) fn hint_in_chat(error: &Error) -> Option<String> {
    let hint = match AgentError::of(error) {
        Some(AgentError::Model(error)) => return Some(model_hint(error)),
        Some(AgentError::TooLong { .. }) => TOO_LONG,
        Some(AgentError::LoopLimit(_)) => {
            "a request takes no more calls: `--resume` continues the session and another one"
        }
        Some(AgentError::NotCompressed { .. }) => {
            "the session is unchanged: `/clear` begins a new one"
        }
        Some(AgentError::OverBudget(OverBudget::Unpriced { .. })) => {
            "give the model an entry with a `price` in `models.json` in `~/.agent`; `--resume` continues the session"
        }
        _ => return error.hint(),
    };
    Some(hint.to_owned())
}

fn model_hint(error: &ModelError) -> String {
    let hint = match error {
        _ if error.setup().is_some_and(|setup| setup.is_keyless) && error.refuses_key() => {
            return error.hint();
        }
        _ if error.refuses_key() => {
            let key = error.setup().and_then(|setup| setup.key.as_ref());
            let before = key
                .filter(|key| !matches!(key, KeySource::Account(_)))
                .map(|key| format!(", and `{key}` goes before what is stored"));
            return format!(
                "the vendor does not accept the key: `/login` or `code-commit chat login` stores another{}",
                before.unwrap_or_default()
            );
        }
        _ if error.refuses_tools() => return error.hint(),
        _ if error.is_context_exceeded() => TOO_LONG,
        _ if error.is_refusal() => {
            "the request is not in the session any more, and the next one goes without it; files that were changed for \
             it stay so, unless `/undo` takes that back or they were in a scratch tree"
        }
        _ if error.is_bad_request() => {
            "the vendor did not accept the request, which stays in the session only if some of it was done: often it is \
             too large (`/compact` makes a conversation shorter) or shows a picture that cannot be read, or an entry of \
             `models.json` in `~/.agent` asks for what the model does not do"
        }
        ModelError::Status { status: 404, .. } => {
            "the vendor does not know the model or the address: `/model` lists the models, `--model NAME` asks one"
        }
        ModelError::CutShort {
            end: End::MaxTokens,
            ..
        } => "nothing of the reply was done: ask for less at once",
        error => return error.hint(),
    };
    hint.to_owned()
}

/// The hint for a prompt that is too long.
const TOO_LONG: &str = "ask for less at once, or choose a model with a larger window: `/model`; `/compact` makes a long \
                        conversation shorter, `/clear` begins a new one. The request stays in the session only if some \
                        of it was done";
