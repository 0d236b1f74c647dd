//! The tokens that a call used, as reported by the vendor. Plain data.

use serde::{Deserialize, Serialize};

use crate::sys::defaults::is_default;

/// The number of tokens that a call used. Counts that the vendor does not report are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The prompt's tokens, cached ones included.
    pub input_tokens: u64,
    /// The prompt's tokens that were read from the vendor's cache.
    pub cached_tokens: u64,
    /// The prompt's tokens that were written to the vendor's cache, if that is billed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cache_write_tokens: u64,
    /// The thinking tokens, which are billed as output.
    pub thought_tokens: u64,
    /// The answer's tokens, without thinking.
    pub output_tokens: u64,
}

impl Usage {
    /// Creates the usage of a call without caching or thinking.
    pub fn plain(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            ..Self::default()
        }
    }

    /// Returns the combined usage of two calls.
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            cache_write_tokens: self
                .cache_write_tokens
                .saturating_add(other.cache_write_tokens),
            thought_tokens: self.thought_tokens.saturating_add(other.thought_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }

    /// Returns the tokens billed as output: those of the answer and of thinking.
    pub fn answered(&self) -> u64 {
        self.output_tokens.saturating_add(self.thought_tokens)
    }
}
