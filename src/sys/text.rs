//! Text for display: invisible and control characters, widths, line ends; regex patterns, and words for a shell. Pure.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::{memchr_iter, memmem};
use regex::Regex;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Compiles a constant pattern, for a `LazyLock`.
///
/// # Panics
/// Panics if the pattern is invalid.
#[expect(
    clippy::expect_used,
    reason = "patterns are constants, which the tests compile"
)]
pub(crate) fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a valid pattern")
}

/// Joins the first `most` names as part of a sentence, followed by the number of the others.
pub(crate) fn listed(names: impl IntoIterator<Item = String>, most: usize) -> String {
    let mut names = names.into_iter();
    let first = names.by_ref().take(most).collect::<Vec<_>>().join(", ");
    match names.count() {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Returns the first non-blank line, trimmed; empty if all are blank.
pub(crate) fn first_line(text: &str) -> &str {
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// Returns the first `most` lines, followed by one with the number of the others.
pub(crate) fn first_lines(lines: impl IntoIterator<Item = String>, most: usize) -> Vec<String> {
    let mut lines = lines.into_iter();
    let mut first: Vec<_> = lines.by_ref().take(most).collect();
    let more = lines.count();
    first.extend((more > 0).then(|| format!("and {more} more")));
    first
}

/// Formats lines as a list below a sentence.
pub(crate) fn below(lines: impl IntoIterator<Item = String>) -> String {
    let lines = lines.into_iter();
    lines.map(|line| format!("\n  {line}")).collect()
}

/// Returns the texts before and after each occurrence of `word` as a whole word.
pub(crate) fn around_word<'t>(
    text: &'t str,
    word: &'t str,
) -> impl Iterator<Item = (&'t str, &'t str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let places = text.match_indices(word);
    places
        .map(|(at, _)| (&text[..at], &text[at + word.len()..]))
        .filter(move |(before, after)| !before.ends_with(is_part) && !after.starts_with(is_part))
}

/// Returns the number of terminal columns that a single line takes.
pub(crate) fn text_width(text: &str) -> usize {
    text.width()
}

/// Shortens `text` to at most `columns`, replacing the end of a longer text with `…`.
pub(crate) fn truncated(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return Cow::Borrowed(text);
    }
    let room = columns.saturating_sub(1);
    let mut taken = 0;
    let mut beyond = text.char_indices().filter(|(_, c)| {
        taken += c.width().unwrap_or_default();
        taken > room
    });
    let mut cut = beyond.next().map_or(text, |(at, _)| &text[..at]);
    // Adjacent characters may be wider together than separately.
    while cut.width() > room {
        cut = cut
            .char_indices()
            .next_back()
            .map_or("", |(at, _)| &cut[..at]);
    }
    Cow::Owned(format!("{cut}…"))
}

/// Mark that some editors and servers write at the beginning of a text, and that is not part of it.
pub(crate) const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Removes a byte order mark from the beginning.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    let mark = BYTE_ORDER_MARK.as_bytes();
    bytes.strip_prefix(mark).unwrap_or(bytes)
}

/// Returns whether `c` moves the cursor, ends a line, changes the text direction, or is an invisible tag character.
/// With such characters, a text can look different from what it contains.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Replaces every deceptive character not in `kept`, so that text from elsewhere cannot move the cursor,
/// change colours or reverse its direction.
pub(crate) fn printable(text: &str, kept: &[char]) -> String {
    text.replace(|c: char| is_deceptive(c) && !kept.contains(&c), "\u{fffd}")
}

/// Commands to CI runners. GitHub recognizes them at the beginning of a line, even after blanks; Azure's, TeamCity's
/// and GitHub's older ones work anywhere.
static CI_COMMAND: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)(^\s*:)(:)|(#)(#(?:vso|teamcity)?\[)"));

/// Inserts a blank into every such command, so that it has no effect. If invisible characters hide a command, they are
/// removed from the text, because some runners ignore them when they compare.
pub(crate) fn without_ci_commands(text: &str) -> Cow<'_, str> {
    const WITH_BLANK: &str = "$1$3 $2$4";
    if text.contains(is_ignorable) {
        let seen = text.replace(is_ignorable, "");
        if let Cow::Owned(safe) = CI_COMMAND.replace_all(&seen, WITH_BLANK) {
            return Cow::Owned(safe);
        }
    }
    // A fast check: every command contains one of these, and compiling the pattern takes longer.
    if !text.contains("::") && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    CI_COMMAND.replace_all(text, WITH_BLANK)
}

/// Replaces every deceptive character with an escape sequence.
pub(crate) fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        c if is_deceptive(c) => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Returns the line end needed between `text` and a line that follows.
pub(crate) fn line_end(text: &str) -> &'static str {
    if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    }
}

/// Returns the number of the line at a byte offset, counted from 1.
pub(crate) fn line_of(text: &[u8], at: usize) -> usize {
    memchr_iter(b'\n', text.get(..at).unwrap_or(text)).count() + 1
}

/// Returns whether all lines end with CRLF; `None` if only some do, or there are no line endings.
pub(crate) fn ends_lines_with_crlf(text: &str) -> Option<bool> {
    let lines = memchr_iter(b'\n', text.as_bytes()).count();
    let crlf = memmem::find_iter(text.as_bytes(), b"\r\n").count();
    (lines > 0 && (crlf == 0 || crlf == lines)).then_some(crlf > 0)
}

/// Converts line ends to CRLF.
pub(crate) fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Converts all line ends to `\n`, whether `\r\n` or a single `\r`.
pub(crate) fn with_unix_line_ends(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Returns the first `length` characters of `text`, followed by an ellipsis if there are more.
pub(crate) fn cut(text: &str, length: usize) -> Cow<'_, str> {
    match text.char_indices().nth(length) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// Formats `text` as part of a sentence: on one line, printable, at most `length` characters.
pub(crate) fn one_line(text: &str, length: usize) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    printable(&cut(&words.join(" "), length), &[])
}

/// Quotes a word for a shell if necessary. A word with a zero byte, which no argument or variable has, becomes empty.
pub(crate) fn shell_quoted(word: &str) -> String {
    shlex::try_quote(word).unwrap_or_default().into_owned()
}

/// Returns whether `c` is in Unicode's `Default_Ignorable_Code_Point`, and thus invisible.
pub(crate) fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced_or_escaped() {
        assert_eq!(
            printable("ä\n\t\u{1b}[2J", &['\n']),
            "ä\n\u{fffd}\u{fffd}[2J"
        );
        assert_eq!(escaped("ä\n\u{1b}[2J"), "ä\\n\\u{1b}[2J");
        assert_eq!(escaped("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(printable("a\u{202e}b\u{200f}", &[]), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn no_line_is_a_command_of_a_ci_runner() {
        for (text, expected) in [
            ("::set-output name=a::b", ": :set-output name=a::b"),
            ("a\n \t\u{a0}::add-mask::b", "a\n \t\u{a0}: :add-mask::b"),
            (":::x", ": ::x"),
            ("a ##[set-env name=b]c", "a # #[set-env name=b]c"),
            ("##vso[task.x]", "# #vso[task.x]"),
            ("###teamcity[x]", "## #teamcity[x]"),
        ] {
            let safe = without_ci_commands(text);
            assert_eq!(safe, expected);
            assert_eq!(without_ci_commands(&safe), safe);
        }
        for hidden in ["#\u{ad}#[x]", "\u{feff}:\u{200d}:x", "##\u{2060}vso[x]"] {
            let safe = without_ci_commands(hidden);
            assert!(!safe.contains(is_ignorable), "{safe:?}");
            assert!(safe.contains(": :x") || safe.contains("# #"), "{safe:?}");
        }
        for harmless in [
            "std::fmt",
            "a ::b",
            "## Heading [a]",
            "#[test]",
            "a#: b",
            "# # [a]",
            "\u{26a0}\u{fe0f} a::b",
        ] {
            assert_eq!(without_ci_commands(harmless), harmless);
        }
    }

    #[test]
    fn a_text_becomes_part_of_a_sentence() {
        assert_eq!(one_line(" a\n b\tc\u{1b} ", 9), "a b c\u{fffd}");
        assert_eq!(one_line("äöü", 2), "äö…");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(
            [line_end(""), line_end("a\n"), line_end("a")],
            ["", "", "\n"]
        );
    }
}
