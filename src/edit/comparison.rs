//! What a reply changes about a file's bytes that a reviewer would not see, and what it leaves out.
//! Pure.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

/// A property of the whole file that a replacement changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilentChange {
    /// All lines ended with CRLF, and now all end with LF.
    CrlfToLf,
    /// All lines ended with LF, and now all end with CRLF.
    LfToCrlf,
    /// The file began with a byte order mark, and does no more.
    BomDropped,
    /// The file begins with a byte order mark now.
    BomAdded,
    /// The last line had a newline, and has none now.
    FinalNewlineDropped,
    /// The last line has a newline now.
    FinalNewlineAdded,
    /// What is replaced was not UTF-8: a binary file, or text in another encoding.
    NotUtf8,
}

impl fmt::Display for SilentChange {
    /// The end of a sentence whose subject is the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CrlfToLf => "had CRLF line endings and now has LF throughout",
            Self::LfToCrlf => "had LF line endings and now has CRLF throughout",
            Self::BomDropped => "has lost its byte order mark",
            Self::BomAdded => "now begins with a byte order mark",
            Self::FinalNewlineDropped => "has lost the newline at its end",
            Self::FinalNewlineAdded => "now has a newline at its end",
            Self::NotUtf8 => "was not UTF-8 text and is replaced as a whole",
        })
    }
}

/// UTF-8's byte order mark.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// What replacing `old` by `new` changes without a reviewer seeing it.
pub fn silent_changes(old: &[u8], new: &str) -> Vec<SilentChange> {
    if std::str::from_utf8(old).is_err() {
        return vec![SilentChange::NotUtf8];
    }
    // An empty file has none of these properties.
    if old.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let bom = match (old.starts_with(BOM), new.as_bytes().starts_with(BOM)) {
        (true, false) => Some(SilentChange::BomDropped),
        (false, true) => Some(SilentChange::BomAdded),
        _ => None,
    };
    let endings = match (line_ending(old), line_ending(new.as_bytes())) {
        (Some(LineEnding::Crlf), Some(LineEnding::Lf)) => Some(SilentChange::CrlfToLf),
        (Some(LineEnding::Lf), Some(LineEnding::Crlf)) => Some(SilentChange::LfToCrlf),
        _ => None,
    };
    let last = match (old.ends_with(b"\n"), new.ends_with('\n')) {
        (true, false) => Some(SilentChange::FinalNewlineDropped),
        (false, true) => Some(SilentChange::FinalNewlineAdded),
        _ => None,
    };
    [bom, endings, last].into_iter().flatten().collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnding {
    Lf,
    Crlf,
}

/// The line ending that all lines have; `None` where there is none, or more than one kind.
fn line_ending(text: &[u8]) -> Option<LineEnding> {
    let newlines = memchr::memchr_iter(b'\n', text);
    let mut kinds = newlines.map(|at| at > 0 && text[at - 1] == b'\r');
    let first = kinds.next()?;
    kinds.all(|kind| kind == first).then_some(if first {
        LineEnding::Crlf
    } else {
        LineEnding::Lf
    })
}

/// The line of `new`, from 1 on, on which it says that it leaves out code of the file it replaces,
/// which is `old_length` bytes long. Only a file that shrinks to less than a third is looked at: a
/// comment alone may speak of something else.
pub fn elided_at(old_length: usize, new: &str) -> Option<usize> {
    if new.len().saturating_mul(3) >= old_length {
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
    )";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_throughout_is_told_and_nothing_else() {
        use SilentChange::*;
        for (old, new, expected) in [
            (&b"a\r\nb\r\n"[..], "a\nc\n", vec![CrlfToLf]),
            (b"a\nb\n", "a\r\nb\r\n", vec![LfToCrlf]),
            (b"a\r\nb\n", "a\nb\n", vec![]),
            (b"a\nb\n", "a\r\nb\n", vec![]),
            (b"\xef\xbb\xbfa\n", "a\n", vec![BomDropped]),
            (b"a\n", "\u{feff}a\n", vec![BomAdded]),
            (b"a\n", "a", vec![FinalNewlineDropped]),
            (b"a", "a\n", vec![FinalNewlineAdded]),
            (
                b"\xef\xbb\xbfa\r\nb",
                "a\nb\n",
                vec![BomDropped, CrlfToLf, FinalNewlineAdded],
            ),
            (b"a\xffb", "a", vec![NotUtf8]),
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
        assert_eq!(elided_at(new.len() * 3, new), None);
        assert_eq!(elided_at(new.len() * 3 + 1, new), Some(1));
    }
}
