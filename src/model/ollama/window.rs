//! The context size that Ollama loads a model with, and the share of it that a prompt may use. Pure.
//!
//! Ollama reloads a model whenever `num_ctx` changes, so the value depends on the model's entry alone.

use crate::model::{ModelSpec, Provider};

/// Maximum context loaded unless the entry sets `numCtx`, in tokens: it takes up memory, used or not.
const LARGEST_CONTEXT: u64 = 32_768;
/// Context loaded if the window is unknown, in tokens: about what a 7B model can use next to other programs on 8 GB.
const USUAL_CONTEXT: u64 = 8_192;

/// Returns the size of the context that Ollama loads the model with, in tokens: its entry's `numCtx`, or else its
/// context window, within limits.
pub fn num_ctx(spec: &ModelSpec) -> u64 {
    let by_window = spec.context_window.unwrap_or(USUAL_CONTEXT);
    let known = spec.num_ctx.map(u64::from);
    known.unwrap_or(by_window.min(LARGEST_CONTEXT))
}

/// Returns the limit on an answer's tokens: `wanted`, or else a quarter of the context. Without a limit, a model
/// constrained to a schema can emit whitespace forever.
pub fn num_predict(spec: &ModelSpec, wanted: Option<u32>) -> u64 {
    wanted.map_or(num_ctx(spec) / 4, u64::from).max(1)
}

impl ModelSpec {
    /// Returns the limit on a prompt's tokens; `None` if unknown. For Ollama it is the loaded context less the longest
    /// answer, but at least half of the context.
    pub fn prompt_window(&self) -> Option<u64> {
        if self.provider != Provider::Ollama {
            return self.context_window;
        }
        let context = num_ctx(self);
        Some(context - num_predict(self, self.max_output_tokens).min(context / 2))
    }

    /// Returns the number of tokens of Ollama's context that are reserved for an answer; 0 for other providers.
    pub fn answer_share(&self) -> u64 {
        let ollamas = |_: &u64| self.provider == Provider::Ollama;
        let prompt = self.prompt_window().filter(ollamas);
        prompt.map_or(0, |prompt| num_ctx(self) - prompt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_context_is_the_entrys_or_its_window_within_limits() {
        for (own, window, output, context, answer, prompt) in [
            (None, None, None, 8_192, 2_048, 6_144),
            (None, Some(4_096), None, 4_096, 1_024, 3_072),
            (None, Some(131_072), None, 32_768, 8_192, 24_576),
            (Some(65_536), Some(131_072), None, 65_536, 16_384, 49_152),
            (Some(16_384), None, Some(1_000), 16_384, 1_000, 15_384),
            (None, Some(8_192), Some(8_192), 8_192, 8_192, 4_096),
            (Some(1), None, None, 1, 1, 1),
        ] {
            let spec = ModelSpec {
                num_ctx: own,
                context_window: window,
                max_output_tokens: output,
                ..ModelSpec::new("m", Provider::Ollama)
            };
            assert_eq!(num_ctx(&spec), context);
            assert_eq!(num_predict(&spec, output), answer);
            assert_eq!(spec.prompt_window(), Some(prompt));
        }
        let other = ModelSpec::new("m", Provider::OpenAi);
        assert_eq!(other.prompt_window(), None);
    }
}
