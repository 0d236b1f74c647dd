//! The facts about an agent's session that its user sees. Plain data.

use crate::model::ModelSpec;
use crate::record::mode::Mode;

/// The name shown in place of a vendor's for a server of the user's own that speaks OpenAI's format.
const COMPATIBLE: &str = "OpenAI-compatible";

/// The facts about an agent's session that are shown to its user.
#[derive(Debug, Default)]
pub struct SessionFacts {
    /// The session's id; `None` before its first request.
    pub session: Option<String>,
    /// The current model.
    pub model: String,
    /// The name of the model's vendor.
    pub vendor: &'static str,
    /// The size of the model's context window, in tokens.
    pub window: u64,
    /// The tokens that the session has used; `None` to use the sum of its runs.
    pub tokens: Option<u64>,
    /// The tokens of the conversation; `None` to use the count of the last call, which a status line shows after each
    /// request.
    pub used: Option<u64>,
    /// The mode, for agents that have modes.
    pub mode: Option<Mode>,
}

impl SessionFacts {
    /// Creates the facts about a session with this model that has not begun.
    pub fn of(spec: &ModelSpec, window: u64) -> Self {
        let vendor = spec.provider.vendor();
        let is_compatible = vendor.is_shared && spec.base_url.is_some();
        Self {
            model: spec.name.clone(),
            vendor: if is_compatible {
                COMPATIBLE
            } else {
                vendor.name
            },
            window,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Provider;

    #[test]
    fn a_server_of_the_users_is_not_called_openais() {
        let mut spec = ModelSpec::new("m", Provider::OpenAi);
        assert_eq!(SessionFacts::of(&spec, 0).vendor, "OpenAI");
        spec.base_url = Some("http://127.0.0.1:8080/v1".to_owned());
        assert_eq!(SessionFacts::of(&spec, 0).vendor, "OpenAI-compatible");
        spec.provider = Provider::Anthropic;
        assert_eq!(SessionFacts::of(&spec, 0).vendor, "Anthropic");
    }
}
