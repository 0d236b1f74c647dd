//! The tokens that a call took, as a vendor tells them. Plain data.

use serde::{Deserialize, Serialize};

/// The number of tokens a call took. What a vendor does not tell counts as 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The prompt's tokens, cached ones included.
    pub input_tokens: u64,
    /// Those of the prompt's tokens that came from the vendor's cache.
    pub cached_tokens: u64,
    /// Those of the prompt's tokens that were written to the vendor's cache, where that is billed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub cache_write_tokens: u64,
    /// Tokens that the model thought with; billed like output.
    pub thought_tokens: u64,
    /// The answer's tokens, without the thoughts.
    pub output_tokens: u64,
}

impl Usage {
    /// The tokens of a call without cache and thoughts.
    pub fn plain(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            ..Self::default()
        }
    }

    /// The tokens of two calls together.
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

    /// Returns the tokens billed as output: the answer and the thoughts.
    pub fn answered(&self) -> u64 {
        self.output_tokens.saturating_add(self.thought_tokens)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_none(tokens: &u64) -> bool {
    *tokens == 0
}
