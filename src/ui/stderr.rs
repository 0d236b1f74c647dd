//! Standard error.

use std::io::{self, Write as _};

/// Writes text for a person in one call, so that other output cannot interrupt it. A closed stderr is not an error.
pub fn print(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}
