//! What a reply changes about a file's bytes that a reviewer would not see, and what it leaves out.
//! Pure.

use std::sync::LazyLock;

use memchr::{memchr_iter, memmem};
use regex::Regex;

/// What replacing a file by `new` changes throughout without a reviewer seeing it: ends of sentences whose
/// subject is the file.
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

/// Whether all lines end with CRLF; `None` where some do, or no line ends.
fn ends_lines_with_crlf(text: &str) -> Option<bool> {
    let lines = memchr_iter(b'\n', text.as_bytes()).count();
    let crlf = memmem::find_iter(text.as_bytes(), b"\r\n").count();
    (lines > 0 && (crlf == 0 || crlf == lines)).then_some(crlf > 0)
}

/// The line of `new`, from 1 on, on which it says that it leaves out code of the file it replaces,
/// which is `old_length` bytes long. Only a file that shrinks to less than a third is looked at: a
/// comment alone may speak of something else.
pub fn elided_at(old_length: u64, new: &str) -> Option<usize> {
    if (new.len() as u64).saturating_mul(3) >= old_length {
        return None;
    }
    new.lines()
        .position(|line| ELISION.is_match(line))
        .map(|index| index + 1)
}

/// A comment, in whatever language, that stands for code: "// ... rest of the code unchanged", "#
/// existing code here", "/* … omitted for brevity */", "<!-- same as before -->".
#[expect(
    clippy::expect_used,
    reason = "the pattern is a constant, which the tests compile"
)]
static ELISION: LazyLock<Regex> = LazyLock::new(|| Regex::new(ELISION_PATTERN).expect("valid"));

const ELISION_PATTERN: &str = r"(?ix)
    ^\s* (?: // | \# | /\* | \* | -- | <!-- | ; | % | \{/\* | \(\* | ''' | \x22\x22\x22 ) .* (?:
        \b(?:rest|remainder|remaining)\b .* \b(?:code|file|function|method|class|module|implementation|content|contents|logic|tests?|above|below)\b
        | \b(?:rest|remainder|remaining|other|previous|existing|original)\b .* \b(?:unchanged|the\ same|as\ (?:is|before)|omitted|here|remains?|stays?)\b
        | (?:\.\.\.|…) \s* (?:existing|previous|other|original|unchanged|same)\b
        | \b(?:existing|previous|original)\ (?:code|implementation|content|contents|methods?|functions?|tests?)\b
        | \b(?:code|file|content|contents|implementation|everything)\b .* \b(?:unchanged|omitted|same\ as\ before|as\ before)\b
        | \b(?:omitted|unchanged|truncated|elided|snipped)\b .* \b(?:brevity|clarity|space)\b
        | \bsame\ as\ (?:before|above|original)\b
        | \bno\ changes?\ (?:here|below|above)\b
        | \brest\ of\ (?:the\ |this\ )?(?:page|template|markup|styles?|rules?|document|script|config(?:uration)?|settings|items?|list|entries|options)\b
    )
    # A comment that says nothing else.
    | ^\s* (?: // | \# | /\* | -- | <!-- | ; | % | \{/\* | \{\{!-- | ' | ! | REM\b ) [\s\[({<*-]* (?:\.\.\.|…) [\s(]* (?:unchanged|snip(?:ped)?)? [\s\])}>*/-]* $
    | ^\s* (?: // | \# | /\* | -- | <!-- | ; | % | \{/\* | \{\{!-- | ' | ! | REM\b ) [\s\[({<*-]* (?:unchanged|snip(?:ped)?|rest\ unchanged) [\s\])}>*/-]* $
    # One behind code.
    | \s (?: // | \# ) \s* (?:\.\.\.|…) \s* (?:the\ )? (?:rest|existing|remaining|unchanged|same|other)\b
    ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_throughout_is_told_and_nothing_else() {
        const CRLF_TO_LF: &str = "had CRLF line endings and now has LF throughout";
        const NEWLINE_ADDED: &str = "now has a newline at its end";
        const BOM_DROPPED: &str = "has lost its byte order mark";
        for (old, new, expected) in [
            (&b"a\r\nb\r\n"[..], "a\nc\n", vec![CRLF_TO_LF]),
            (
                b"a\nb\n",
                "a\r\nb\r\n",
                vec!["had LF line endings and now has CRLF throughout"],
            ),
            (b"a\r\nb\n", "a\nb\n", vec![]),
            (b"a\nb\n", "a\r\nb\n", vec![]),
            (b"\xef\xbb\xbfa\n", "a\n", vec![BOM_DROPPED]),
            (
                b"a\n",
                "\u{feff}a\n",
                vec!["now begins with a byte order mark"],
            ),
            (b"a\n", "a", vec!["has lost the newline at its end"]),
            (b"a", "a\n", vec![NEWLINE_ADDED]),
            (
                b"\xef\xbb\xbfa\r\nb",
                "a\nb\n",
                vec![BOM_DROPPED, CRLF_TO_LF, NEWLINE_ADDED],
            ),
            (
                b"a\xffb",
                "a",
                vec!["was not UTF-8 text and is replaced as a whole"],
            ),
            (b"", "a", vec![]),
            (b"a\n", "", vec![]),
            (b"a\n", "b\nc\n", vec![]),
        ] {
            assert_eq!(silent_changes(old, new), expected, "{old:?} -> {new:?}");
        }
    }

    #[test]
    fn an_elision_is_a_comment_that_stands_for_code() {
        for line in [
            "// ... rest of the code unchanged",
            "// rest of code remains the same",
            "    # ... existing code ...",
            "/* … omitted for brevity */",
            "<!-- same as before -->",
            "-- remaining functions here unchanged",
            "// ... other methods unchanged ...",
            "# The rest of the file stays as before",
            "// (previous implementation)",
            "{/* existing code */}",
            "; everything else unchanged",
        ] {
            assert_eq!(
                elided_at(10_000, &format!("fn a() {{}}\n{line}\n")),
                Some(2),
                "{line}"
            );
        }
        for line in [
            "// ...",
            "    //...",
            "// [...]",
            "/* … */",
            "<!-- ... -->",
            "// [unchanged]",
            "// unchanged",
            "// ... (unchanged)",
            "# --- snip ---",
            "<!-- rest of page -->",
            "{{!-- rest unchanged --}}",
            "code(); // ... rest of the code unchanged",
            "REM ...",
        ] {
            assert_eq!(elided_at(10_000, &format!("{line}\n")), Some(1), "{line}");
        }
        for line in [
            "let all = [first, ...rest];",
            "for x in 0...9 {",
            "print('...')",
            "# Loading ...",
            "// -----",
            "// changed",
            "let rest = code.unchanged();",
            "// waits for the remaining requests",
            "// The previous value is kept.",
            "# Unlike before, this returns early.",
            "// See below.",
        ] {
            assert_eq!(elided_at(10_000, &format!("{line}\n")), None, "{line}");
        }
    }

    #[test]
    fn a_file_that_keeps_a_third_of_its_size_is_not_elided() {
        let new = "// rest of the code unchanged\n";
        assert_eq!(elided_at(new.len() as u64 * 3, new), None);
        assert_eq!(elided_at(new.len() as u64 * 3 + 1, new), Some(1));
    }
}
