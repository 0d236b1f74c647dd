//! Unescapes a JSON string without an intermediate copy.
//!
//! Pure. serde_json builds a string with escapes in a scratch buffer and then copies it; for an answer of 50 MB, that
//! is one copy too many. Here the raw literal, which serde_json has already validated, is unescaped straight into the
//! text it becomes part of.

use memchr::memchr;
use serde_json::value::RawValue;

/// Appends the string denoted by `literal` to `text`.
///
/// # Errors
/// Fails if the literal is not a string, or contains half a surrogate pair.
pub fn append(text: &mut String, literal: &RawValue) -> serde_json::Result<()> {
    let whole = literal.get();
    let Some(mut rest) = whole
        .strip_prefix('"')
        .and_then(|inner| inner.strip_suffix('"'))
    else {
        // For anything but a string, serde_json's own error is the best one.
        return serde_json::from_str::<String>(whole).map(|other| text.push_str(&other));
    };
    text.reserve(rest.len());
    while let Some(backslash) = memchr(b'\\', rest.as_bytes()) {
        text.push_str(&rest[..backslash]);
        let escape = &rest[backslash..];
        let length = append_escape(text, escape)?;
        rest = &escape[length..];
    }
    text.push_str(rest);
    Ok(())
}

/// Appends the character denoted by the escape at the start of `rest`, and returns the escape's length in bytes.
fn append_escape(text: &mut String, rest: &str) -> serde_json::Result<usize> {
    let simple = match rest.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'/') => '/',
        _ => return append_rare_escape(text, rest),
    };
    text.push(simple);
    Ok(2)
}

/// Appends `\u` escapes and other rare ones with serde_json: one at a time, or two together for a surrogate pair.
fn append_rare_escape(text: &mut String, rest: &str) -> serde_json::Result<usize> {
    let is_pair = matches!(rest.get(2..4), Some(high) if high.eq_ignore_ascii_case("d8")
        || high.eq_ignore_ascii_case("d9") || high.eq_ignore_ascii_case("da") || high.eq_ignore_ascii_case("db"));
    let length = match rest.as_bytes().get(1) {
        Some(b'u') if is_pair => 12,
        Some(b'u') => 6,
        _ => 2,
    };
    let escape = rest.get(..length).unwrap_or(rest);
    text.push_str(&serde_json::from_str::<String>(&format!("\"{escape}\""))?);
    Ok(escape.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unescape(json: &str) -> serde_json::Result<String> {
        let literal: &RawValue = serde_json::from_str(json)?;
        let mut text = String::new();
        append(&mut text, literal).map(|()| text)
    }

    #[test]
    fn every_escape_is_read_as_serde_json_reads_it() {
        for json in [
            r#""""#,
            r#""plain""#,
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\u00e9\u0000\uFFFF""#,
            r#""\ud83d\ude00 and \uD83D\uDE00""#,
            r#""\\u0041 \\\\n""#,
        ] {
            assert_eq!(
                unescape(json).unwrap(),
                serde_json::from_str::<String>(json).unwrap()
            );
        }
    }

    #[test]
    fn half_a_surrogate_pair_and_other_types_are_errors() {
        for json in [
            r#""\ud83d""#,
            r#""\ud83d x2345678""#,
            r#""\ude00""#,
            "1",
            "[]",
            "null",
        ] {
            assert!(unescape(json).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn any_string_survives(text in any::<String>()) {
            prop_assert_eq!(unescape(&serde_json::to_string(&text).unwrap()).unwrap(), text);
        }

        #[test]
        fn any_json_like_literal_gets_serde_jsons_verdict(inner in r#"([a-z]|\\u[dD][89a-fA-F0-9][0-9]{2}|\\[nbu"\\])*"#) {
            let json = format!("\"{inner}\"");
            let expected = serde_json::from_str::<String>(&json).ok();
            prop_assert_eq!(unescape(&json).ok(), expected);
        }
    }
}
