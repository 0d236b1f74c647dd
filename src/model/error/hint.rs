//! Advice on a call that failed. Pure.

use super::{ModelError, VendorError};
use crate::model::catalogue;
use crate::model::reply::End;

/// Hint for a request that is refused.
const REWORD: &str = "reword the request, or use another model with `--model`";

/// The settings of `dev` that choose a model, in the hint for an address or a name that may be wrong.
const SETTINGS: &str = "`dev config` opens the settings (`apiUrl`, `model`, `apiKey`), which the `DEV_AGENT_…` \
                        variables override; `--model NAME` asks a model of `code-commit models` instead, \
                        whose `baseUrl` is in `models.json`";

impl ModelError {
    /// Returns advice for the user.
    pub fn hint(&self) -> String {
        let hint = match self {
            Self::Status {
                vendor: VendorError {
                    hint: Some(hint), ..
                },
                ..
            } => hint,
            Self::Status { setup, .. } if self.refuses_key() => return setup.key_hint(),
            _ if self.says(VendorError::is_refilled) => {
                "the quota is spent for today: wait until tomorrow, or use another model with `--model`"
            }
            _ if self.says(|vendor| vendor.quota_spent) => {
                "the quota is spent and waiting does not refill it soon: see the vendor's billing \
                 page, or use another model with `--model`"
            }
            _ if self.refuses_tools() => {
                "the model or its server takes no tool calls, which `chat` and `orchestrate` need: \
                 ask another with `--model`; for `dev`, its entry in `models.json` may have \
                 `\"tools\": \"markdown\"`"
            }
            Self::Status {
                status: 404,
                model,
                setup,
                ..
            } => return not_found(model, setup.successor.as_deref()),
            _ if self.says(VendorError::is_flagged) => REWORD,
            _ if self.is_rejected() => {
                "the vendor rejected the request: often it is too large for the model \
                 (leave files out of the rollup)"
            }
            Self::Status { status: 429, .. } => "wait a while, or use another model with `--model`",
            Self::Status { .. } | Self::ErrorInAnswer(_) => {
                "the fault is on the vendor's side: try again later"
            }
            Self::Redirect { .. } => {
                "redirects are not followed, since the key would travel along: set the base URL to \
                 the final address"
            }
            Self::Connection { .. } => "check the network, the proxy and the base URL",
            Self::NobodyListens { .. } => {
                "start the server there, set another base URL, or use another model with `--model`: \
                 `code-commit models` lists them"
            }
            Self::Tls { .. } => {
                "check the system's certificates (`ca-certificates`, `SSL_CERT_FILE`) and the clock"
            }
            Self::Protocol { .. } => {
                "check that the base URL is that of the vendor's API, and that the proxy, if there is \
                 one, lets the call through"
            }
            Self::TimedOut(_) => "give the model longer with `--timeout`, or ask for less",
            Self::NoTimeLeft { error, .. } => {
                return format!("raise `--timeout`; or else, {}", error.hint());
            }
            Self::TooLarge => "ask for less at once",
            Self::Malformed(_) | Self::NotJson { .. } => {
                "check that the base URL is that of the vendor's API and that no proxy changes \
                 answers; if the answer was JSON, it is in the log"
            }
            Self::NoBody | Self::Empty { .. } | Self::Unfinished => "try again",
            Self::Blocked { .. } | Self::Refused { .. } => REWORD,
            Self::CutShort {
                end: End::MaxTokens,
                ..
            } => "the reply was not applied; ask for less at once, so that the reply fits",
            Self::CutShort {
                end: End::ToolCalls,
                ..
            } => {
                "the reply was not applied; if an agent's model calls tools natively, its entry in \
                 `agent-config/models.json` needs `\"tools\": \"native\"`; else use another with `--model`"
            }
            Self::CutShort { .. } => {
                "the reply was not applied; reword the request, or use another model with `--model`"
            }
            Self::Incomplete { .. } => {
                "the reply was not applied; try again, or have the model write whole files with \
                 `--reply-format whole`"
            }
            Self::OtherModel { served, .. } => return ask_by_name(served),
            Self::Recorded { hint, .. } => hint,
            Self::NotRecorded(_) => "replay a run that got this far, on the project as it was then",
            Self::Unreadable { .. } => "make the file readable",
            Self::Interrupted(_) => "start again when you like; the reply was not applied",
        };
        hint.to_owned()
    }

    /// Returns whether the request was rejected for a reason other than its key, its content or the quota.
    fn is_rejected(&self) -> bool {
        let names_reason = |vendor: &VendorError| {
            vendor.quota_spent || vendor.is_flagged() || vendor.refuses_tools()
        };
        self.is_bad_request() && !self.refuses_key() && !self.says(names_reason)
    }

    /// Returns advice for the user of an agent, which sends no rollup.
    pub fn hint_for_agent(&self) -> String {
        match self {
            _ if self.is_rejected() => {
                "the server rejected the request: often it is too large for the model, whose \
                 `contextWindow` in `agent-config/models.json` may be less"
                    .to_owned()
            }
            Self::NoTimeLeft { error, .. } => {
                format!("raise `--timeout`; or else, {}", error.hint_for_agent())
            }
            _ => self.hint(),
        }
    }

    /// Returns advice for the user of `dev`, whose `config.json` may name the server and the key.
    pub fn hint_with_config(&self) -> String {
        match self {
            _ if self.is_rejected() => {
                "the server rejected the request: often it is too large for the model; \
                 `maxContextTokens` in the agent's `config.json` may be less"
                    .to_owned()
            }
            Self::Status { vendor, .. } if vendor.hint.is_some() => self.hint(),
            Self::Status { setup, .. }
                if self.refuses_key() && setup.key.is_none() && !setup.is_keyless =>
            {
                "the server does not accept the key: put a valid one into `apiKey` of the agent's \
                 `config.json`"
                    .to_owned()
            }
            Self::Connection { .. } => format!(
                "{} (an agent's own: `apiUrl` in its `config.json`)",
                self.hint()
            ),
            Self::Status {
                status: 404, setup, ..
            } if setup.successor.is_none() => format!("{}; {SETTINGS}", self.hint()),
            Self::NobodyListens { .. } => {
                format!("start the server there, or set another base URL: {SETTINGS}")
            }
            Self::NoTimeLeft { error, .. } => {
                format!("raise `--timeout`; or else, {}", error.hint_with_config())
            }
            _ => self.hint(),
        }
    }
}

/// Returns the advice for an answer from a model other than the requested one.
fn ask_by_name(served: &str) -> String {
    format!(
        "the reply was not applied; leave out `--require-model`, or ask `{served}` by its own name: \
         `code-commit models` lists what can be asked"
    )
}

/// Returns the advice for a model that is unknown to the server.
fn not_found(model: &str, in_table: Option<&str>) -> String {
    const HINT: &str = "the vendor does not know the model or the address: has the model been retired, or is the \
                        base URL wrong?";
    match catalogue::successor(model) {
        Some(successor) => format!("{HINT} {}", catalogue::way_to(successor, in_table)),
        None => HINT.to_owned(),
    }
}
