//! Distinguishes a private key from the mere mention of one, by the text after its first line. Pure.
//!
//! Guarantees that a verdict on the beginning of a text stays the same for every continuation.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// Pattern for the first line of a PEM or PGP key.
pub(super) const BEGIN: &str = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----";

/// Number of bytes examined after the first line; a `-----` ends them earlier.
const WINDOW: usize = 1024;
/// Minimum length of a run of letters and digits; shorter ones are parts of escapes, tags or prefixes, and are ignored.
const SHORTEST_WORD: usize = 4;
/// Minimum length at which the first run that is not ignored indicates a key.
const FIRST_RUN: usize = 16;
/// Minimum length at which any run indicates a key, even after headers and line prefixes.
const ANY_RUN: usize = 40;

static FIRST_LINE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(BEGIN).ok());

/// Returns whether a token in the form of a private key, followed by `behind`, is one; `None` if that depends on bytes
/// still to come.
pub(super) fn is_key(token: &[u8], behind: &[u8]) -> Option<bool> {
    if token.starts_with(b"-----BEGIN ") {
        has_material(behind)
    } else {
        Some(true)
    }
}

/// Returns the position of the first token for which it is still unknown whether it begins a key.
pub(super) fn undecided(bytes: &[u8]) -> Option<usize> {
    let mut first_lines = FIRST_LINE.iter().flat_map(|line| line.find_iter(bytes));
    let undecided = first_lines.find(|line| has_material(&bytes[line.end()..]).is_none());
    undecided.map(|line| line.start())
}

/// Returns whether base64 follows, however it is quoted, coloured or escaped; `None` if that depends on bytes still to
/// come.
fn has_material(behind: &[u8]) -> Option<bool> {
    let window = &behind[..behind.len().min(WINDOW)];
    let next = memchr::memmem::find(window, b"-----");
    let is_whole = next.is_some() || window.len() == WINDOW;
    let mut runs = window[..next.unwrap_or(window.len())]
        .split(|byte| !byte.is_ascii_alphanumeric() && !b"+/".contains(byte))
        .filter(|run| run.len() >= SHORTEST_WORD);
    let follows = runs.clone().next().is_some_and(begins_a_key) || runs.any(is_of_a_key);
    (follows || is_whole).then_some(follows)
}

/// Returns whether a run looks like the beginning of a key, unlike the words in code that mentions one.
fn begins_a_key(run: &[u8]) -> bool {
    let is_der = |run| memchr::memmem::find(run, b"MI").is_some();
    start(run, FIRST_RUN).is_some_and(|run| run.iter().any(u8::is_ascii_digit) || is_der(run))
}

/// Returns whether a run looks like part of a key, unlike words and checksums.
fn is_of_a_key(run: &[u8]) -> bool {
    let classes = [
        u8::is_ascii_digit,
        u8::is_ascii_uppercase,
        u8::is_ascii_lowercase,
    ];
    start(run, ANY_RUN).is_some_and(|run| classes.iter().all(|class| run.iter().any(class)))
}

/// Returns the first bytes of a run if it is long enough and not a path.
fn start(run: &[u8], length: usize) -> Option<&[u8]> {
    let start = run.get(..length)?;
    let slashes = memchr::memchr_iter(b'/', start).count();
    (slashes <= length / 8).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";

    #[test]
    fn base64_in_whatever_quotes_colors_and_escapes_is_a_key() {
        for before in [
            "",
            "\n",
            "\r\n",
            " ",
            "\u{1b}[0m\n\u{1b}[32m",
            "\\n",
            "\\\\n",
            "\\\\\\\\r\\\\\\\\n",
            "\\u000a",
            "%0A",
            "&#10;",
            "&#xA;",
            "<br>\n",
            "', '",
            "\" + \"",
            "\",\n    \"",
            "\\n\" \\\n  + \"",
            "\napp_1  | ",
            "\n2026-01-02T03:04:05.678Z stdout F ",
            "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n",
            "\nVersion: GnuPG v2\nComment: a key\n\n",
        ] {
            let text = format!("{before}{BODY}");
            assert_eq!(has_material(text.as_bytes()), Some(true), "{before:?}");
        }
        assert_eq!(has_material(b"\nMIIEowIBAAKCAQEA\n"), Some(true));
    }

    #[test]
    fn a_mention_does_not_count() {
        let paths = "/usr/lib/Python3/dist/packages/some/where/Else/again ".repeat(30);
        for behind in [
            "\")) {\n    return Err(Error::PrivateKeyIsNotAllowedHere);\n}\n-----",
            "\n-----END PRIVATE KEY-----",
            "`, PrivateKeyFormat::Pkcs1\n-----",
            "\nsha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n-----",
            &paths,
        ] {
            assert_eq!(has_material(behind.as_bytes()), Some(false), "{behind}");
        }
    }

    #[test]
    fn a_verdict_on_a_prefix_holds_for_the_whole_text() {
        let prefixed = format!("\nKey-Type: 4\n{BODY}\n");
        let mention = format!("\n{}", "ok 1 - test\n".repeat(200));
        for text in [prefixed, mention, format!("\n-----\n{BODY}")] {
            let told = |end| has_material(&text.as_bytes()[..end]);
            let whole = told(text.len());
            assert!(whole.is_some());
            for end in 0..text.len() {
                assert!(told(end).is_none_or(|told| Some(told) == whole), "{end}");
            }
        }
    }
}
