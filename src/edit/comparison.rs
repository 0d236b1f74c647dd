//! Changes to a file's bytes that a reviewer would not see. Pure.

use crate::sys::text::ends_lines_with_crlf;

/// Describes changes throughout a file that a reviewer would not see in a diff, as sentence fragments to follow the
/// file's name.
pub fn silent_changes(old: &[u8], new: &str) -> Vec<&'static str> {
    let Ok(old) = std::str::from_utf8(old) else {
        return vec!["was not UTF-8 text and is replaced as a whole"];
    };
    // An empty file has none of these properties.
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let change =
        |property: fn(&str) -> Option<bool>, lost, gained| match (property(old), property(new)) {
            (Some(true), Some(false)) => Some(lost),
            (Some(false), Some(true)) => Some(gained),
            _ => None,
        };
    let changes = [
        change(
            |text| Some(text.starts_with('\u{feff}')),
            "has lost its byte order mark",
            "now begins with a byte order mark",
        ),
        change(
            ends_lines_with_crlf,
            "had CRLF line endings and now has LF throughout",
            "had LF line endings and now has CRLF throughout",
        ),
        change(
            |text| Some(text.ends_with('\n')),
            "has lost the newline at its end",
            "now has a newline at its end",
        ),
    ];
    changes.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests;
