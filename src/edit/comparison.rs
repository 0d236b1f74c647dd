//! What a reply changes about a file's bytes that a reviewer would not see, and what it leaves out.
//! Pure.

use std::sync::LazyLock;

use memchr::{memchr_iter, memmem};
use regex::Regex;

use crate::sys::text::regex;

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
static ELISION: LazyLock<Regex> = LazyLock::new(|| regex(ELISION_PATTERN));

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
mod tests;
