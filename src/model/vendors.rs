//! The vendors' wire formats, by provider.

use super::error::ModelError;
use super::reply::Reply;
use super::spec::{ModelSpec, Provider, Vendor};
use super::wire::Wire;
use super::{anthropic, azure, gemini, ollama, openai};

impl Provider {
    /// Facts about the provider's vendor.
    pub fn vendor(self) -> &'static Vendor {
        self.wire().vendor()
    }

    /// The provider with this name in configuration files.
    pub fn named(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }

    /// Creates an entry for a model of which only the name is known.
    pub(super) fn spec(self, name: &str) -> ModelSpec {
        self.wire().entry(ModelSpec::new(name, self))
    }

    /// Reads the JSON of an answer with status 200.
    ///
    /// # Errors
    /// When the answer is not a whole reply.
    pub fn read_reply(self, answer: &[u8]) -> Result<Reply, ModelError> {
        self.wire().read_reply(answer)
    }

    pub(super) fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Gemini => &gemini::Gemini,
            Self::OpenAi => &openai::OpenAi,
            Self::Ollama => &ollama::Ollama,
            Self::Azure => &azure::Azure,
            Self::Anthropic => &anthropic::Anthropic,
        }
    }
}
