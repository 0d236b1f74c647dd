//! The tools, one implementation each, and what they share.

/// How many bytes of a tool's output a model is shown.
pub const OUTPUT_LIMIT: usize = 32 << 10;

/// `text` as a model is shown it: whole up to [`OUTPUT_LIMIT`], else its head and its tail, with a line in
/// between that counts what was left out.
#[must_use]
pub fn bounded(text: &str) -> String {
    text.to_owned()
}
