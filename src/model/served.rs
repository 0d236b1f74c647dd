//! Checks that the model that answered is the one that was requested. Pure.

use std::sync::LazyLock;

use regex::Regex;

use crate::sys::text::regex;

/// A version, date or release stage at the end of a model's name: `-001`, `-2025-08-07`, `-preview-06-05`, `:latest`.
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"^(?:[-@:](?:v?[0-9][0-9.]*|latest|stable|preview|exp|experimental|beta|test))*$")
});

/// Returns whether `served`, the name that the server reports, is the model `asked` or a version of it.
pub fn is_same(asked: &str, served: &str) -> bool {
    let (asked, served) = (plain(asked), plain(served));
    served
        .strip_prefix(asked.strip_suffix("-latest").unwrap_or(&asked))
        .is_some_and(|version| VERSION.is_match(version))
}

/// Strips what servers add to a model's name: `models/`, a vendor, a file's path and extension.
fn plain(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let lower = base.to_ascii_lowercase();
    lower.strip_suffix(".gguf").unwrap_or(&lower).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_or_a_date_behind_the_name_is_the_same_model() {
        for (asked, served) in [
            ("gpt-5", "gpt-5"),
            ("gpt-5", "gpt-5-2025-08-07"),
            ("gemini-2.5-pro", "models/gemini-2.5-pro-001"),
            ("gemini-2.5-pro", "gemini-2.5-pro-preview-06-05"),
            ("gemini-flash-latest", "gemini-flash-002"),
            ("openai/gpt-oss", "gpt-oss"),
            ("gpt-oss", "openai/gpt-oss"),
            ("Qwen3-Coder", "/models/qwen3-coder.gguf"),
            ("qwen3", "qwen3:latest"),
            ("model", "model@20260101"),
        ] {
            assert!(is_same(asked, served), "{asked} {served}");
        }
        for (asked, served) in [
            ("gemini-2.5-pro", "gemini-3.8-flash"),
            ("gemini-2.5-pro", "gemini-2.5-flash"),
            ("gpt-5", "gpt-5-mini"),
            ("gpt-5", "gpt-5.6-sol"),
            ("gpt-5", "gpt-50"),
            ("gpt-4", "gpt-4-32k"),
            ("gpt-5-mini", "gpt-5"),
            ("gpt-5", ""),
        ] {
            assert!(!is_same(asked, served), "{asked} {served}");
        }
    }
}
