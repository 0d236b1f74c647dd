//! The vendors, by provider.

use super::error::ModelError;
use super::reply::Reply;
use super::spec::{ModelSpec, Provider};
use super::tier::Tier;
use super::wire::Vendor;
use super::{anthropic, azure, gemini, ollama, openai};

impl Provider {
    /// All providers.
    pub const ALL: [Self; 5] = [
        Self::Anthropic,
        Self::Gemini,
        Self::OpenAi,
        Self::Azure,
        Self::Ollama,
    ];
    /// The provider of models on the user's machine.
    pub const LOCAL: Self = Self::Ollama;

    /// Returns the providers whose vendors need a key.
    pub fn with_keys() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|provider| provider.vendor().key_file.is_some())
    }

    /// Lists providers by name, as alternatives in a sentence.
    pub fn alternatives(providers: impl IntoIterator<Item = Self>) -> String {
        let words: Vec<_> = providers
            .into_iter()
            .map(|provider| format!("`{}`", provider.vendor().word))
            .collect();
        match words.split_last() {
            Some((last, others @ [_, ..])) => format!("{} or {last}", others.join(", ")),
            _ => words.concat(),
        }
    }

    /// Returns the provider's vendor.
    pub fn vendor(self) -> &'static Vendor {
        match self {
            Self::Gemini => &gemini::GEMINI,
            Self::OpenAi => &openai::OPENAI,
            Self::Ollama => &ollama::OLLAMA,
            Self::Azure => &azure::AZURE,
            Self::Anthropic => &anthropic::ANTHROPIC,
        }
    }

    /// Returns the provider with this name in configuration files.
    pub fn named(word: &str) -> Option<Self> {
        serde_json::from_value(word.into()).ok()
    }

    /// Checks the fields of an entry that not every vendor has.
    ///
    /// # Errors
    /// Fails if the vendor does not have a field, or does not accept its value.
    pub(super) fn check(self, spec: &ModelSpec) -> Result<(), String> {
        for (is_set, field, owner) in [
            (
                spec.num_ctx.is_some() || spec.keep_alive.is_some(),
                "`numCtx` and `keepAlive` are",
                Self::Ollama,
            ),
            (spec.api_version.is_some(), "`apiVersion` is", Self::Azure),
            (spec.thinking.is_some(), "`thinking` is", Self::Anthropic),
        ] {
            if is_set && self != owner {
                return Err(format!(
                    "{field} for the provider `{}`",
                    owner.vendor().word
                ));
            }
        }
        let vendor = self.vendor();
        vendor.wire.check_entry(spec)?;
        if spec.tier != Tier::Standard && vendor.refuses_tiers {
            let word = vendor.word;
            return Err(format!("`serviceTier` is not for the provider `{word}`"));
        }
        Ok(())
    }

    /// Creates an entry for a model known only by its name.
    pub(super) fn spec(self, name: &str) -> ModelSpec {
        let vendor = self.vendor();
        let key_file = vendor.key_file.filter(|_| vendor.key_by_default);
        ModelSpec {
            key_file: key_file.map(str::to_owned),
            max_output_tokens: vendor.max_output_tokens,
            ..ModelSpec::new(name, self)
        }
    }

    /// Reads the JSON of an answer with status 200.
    ///
    /// # Errors
    /// Fails if the answer is not a whole reply.
    pub fn read_reply(self, answer: &[u8]) -> Result<Reply, ModelError> {
        self.vendor().wire.read_reply(answer)
    }
}
