//! Redacts likely credentials before tool results, attached files, output and pastes are sent to the vendor. Pure.

use std::io::Write as _;

use crate::secret::credentials::{Censor, kinds};

/// The beginning of the mark for a redacted credential, followed by the kind of credential.
const OURS: &str = "[redacted: ";

/// Replaces each credential in `text` with `[redacted: KIND]`.
pub fn censored(text: &str) -> String {
    let mut censor = Censor::marking(Vec::new(), OURS);
    // Writing to a vector cannot fail.
    let _ = censor.write_all(text.as_bytes());
    let (written, _) = censor.finish().unwrap_or_default();
    in_our_words(String::from_utf8_lossy(&written).into_owned())
}

/// Checks that `text` may be written to a file: it must not contain the mark of a redacted credential, unless the
/// replaced text contained it as well.
///
/// # Errors
/// Returns a hint that tells the model what to do instead.
pub fn check_marks(text: &str, before: &str) -> Result<(), String> {
    let marks = kinds().map(|kind| format!("{OURS}{kind}]"));
    let mut new = marks.filter(|mark| text.contains(mark.as_str()) && !before.contains(mark));
    new.next().map_or(Ok(()), |mark| {
        Err(format!(
            "`{mark}` stands for a credential that was kept from you, and would be written in its place; change what \
             is around it, with edit_file"
        ))
    })
}

/// Replaces the marks of other redactors in the output of commands with this module's own.
fn in_our_words(mut text: String) -> String {
    const THEIRS: &str = "[REDACTED: ";
    if text.contains(THEIRS) {
        for kind in kinds() {
            text = text.replace(&format!("{THEIRS}{kind}]"), &format!("{OURS}{kind}]"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_does_not_take_a_credentials_place() {
        let mark = "[redacted: a GitHub token]";
        for (text, before, may) in [
            (mark, "", false),
            (mark, mark, true),
            (mark, "[redacted: an npm token]", false),
            ("[redacted: KIND]", "", true),
            ("", mark, true),
        ] {
            assert_eq!(check_marks(text, before).is_ok(), may, "{text} {before}");
        }
    }

    #[test]
    fn a_credential_gives_way_to_its_kind_and_all_else_stays() {
        let token = format!("ghp_{}", "a0".repeat(18));
        for (text, expected) in [
            ("", ""),
            ("nothing\r\nä", "nothing\r\nä"),
            (&format!("ä {token}!\n"), "ä [redacted: a GitHub token]!\n"),
            (
                "[REDACTED: a GitHub token] [REDACTED: x]",
                "[redacted: a GitHub token] [REDACTED: x]",
            ),
        ] {
            assert_eq!(censored(text), expected);
        }
    }
}
