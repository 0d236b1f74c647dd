//! Patterns of program text. Pure.

use regex::Regex;

/// Compiles a pattern whose classes of words, digits and blanks mean ASCII: the tables of Unicode make a
/// pattern fifty times as dear, and no sign of any language needs them.
#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, which the tests compile"
)]
pub fn pattern(pattern: &str) -> Regex {
    let ascii = pattern
        .replace(r"\b", r"(?-u:\b)")
        .replace(r"\w", "[0-9A-Za-z_]")
        .replace(r"\s", r"[\t-\r ]")
        .replace(r"\S", r"[^\t-\r ]");
    Regex::new(&ascii).expect("valid")
}
