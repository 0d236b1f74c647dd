//! What a reply changes about a file's bytes that a reviewer would not see, and what it leaves out.
//! Pure, but for the reader that it is given.

use std::fmt;
use std::io::{self, Read};
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

/// What a file's bytes have in common throughout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Properties {
    /// The size in bytes.
    pub size: u64,
    is_utf8: bool,
    has_bom: bool,
    ending: Option<LineEnding>,
    ends_line: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnding {
    Lf,
    Crlf,
    Mixed,
}

impl Properties {
    /// Reads a file to its end, a piece at a time: it may be large.
    ///
    /// # Errors
    /// The reader's.
    pub fn read(mut from: impl Read) -> io::Result<Self> {
        let mut found = Self {
            is_utf8: true,
            ..Self::default()
        };
        let mut buffer = vec![0; 64 << 10];
        // What was read and not yet looked at: the beginning of a character.
        let mut held = 0;
        let mut last = 0;
        loop {
            let amount = match from.read(&mut buffer[held..]) {
                Ok(amount) => amount,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let piece = &buffer[..held + amount];
            if amount == 0 {
                // A character that is cut off is none.
                found.is_utf8 &= held == 0;
                return Ok(found);
            }
            let settled = settled_utf8(piece, &mut found.is_utf8);
            found.look_at(&piece[..settled], last);
            last = piece[..settled].last().copied().unwrap_or(last);
            held = piece.len() - settled;
            buffer.copy_within(settled..settled + held, 0);
        }
    }

    fn of(text: &str) -> Self {
        let mut found = Self {
            is_utf8: true,
            ..Self::default()
        };
        found.look_at(text.as_bytes(), 0);
        found
    }

    /// Looks at the next piece; `before` is the byte before it.
    fn look_at(&mut self, piece: &[u8], before: u8) {
        if self.size == 0 {
            self.has_bom = piece.starts_with(BOM);
        }
        for at in memchr::memchr_iter(b'\n', piece) {
            let previous = if at == 0 { before } else { piece[at - 1] };
            let ending = if previous == b'\r' {
                LineEnding::Crlf
            } else {
                LineEnding::Lf
            };
            self.ending = match self.ending {
                Some(known) if known != ending => Some(LineEnding::Mixed),
                _ => Some(ending),
            };
        }
        self.size += piece.len() as u64;
        self.ends_line = piece.last().map_or(self.ends_line, |last| *last == b'\n');
    }
}

/// How many bytes of `piece` can be looked at: all but a character that may go on behind it.
fn settled_utf8(piece: &[u8], is_utf8: &mut bool) -> usize {
    match std::str::from_utf8(piece) {
        Ok(_) => piece.len(),
        Err(error) if error.error_len().is_none() && *is_utf8 => error.valid_up_to(),
        Err(_) => {
            *is_utf8 = false;
            piece.len()
        }
    }
}

/// What replacing a file by `new` changes without a reviewer seeing it.
pub fn silent_changes(old: Properties, new: &str) -> Vec<SilentChange> {
    if !old.is_utf8 {
        return vec![SilentChange::NotUtf8];
    }
    // An empty file has none of these properties.
    if old.size == 0 || new.is_empty() {
        return Vec::new();
    }
    let new = Properties::of(new);
    let bom = match (old.has_bom, new.has_bom) {
        (true, false) => Some(SilentChange::BomDropped),
        (false, true) => Some(SilentChange::BomAdded),
        _ => None,
    };
    let endings = match (old.ending, new.ending) {
        (Some(LineEnding::Crlf), Some(LineEnding::Lf)) => Some(SilentChange::CrlfToLf),
        (Some(LineEnding::Lf), Some(LineEnding::Crlf)) => Some(SilentChange::LfToCrlf),
        _ => None,
    };
    let last = match (old.ends_line, new.ends_line) {
        (true, false) => Some(SilentChange::FinalNewlineDropped),
        (false, true) => Some(SilentChange::FinalNewlineAdded),
        _ => None,
    };
    [bom, endings, last].into_iter().flatten().collect()
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
            assert_eq!(
                silent_changes(Properties::read(old).unwrap(), new),
                expected,
                "{old:?} -> {new:?}"
            );
        }
    }

    #[test]
    fn a_file_is_read_in_pieces_as_it_is_read_whole() {
        // Characters and line ends of which the pieces' borders cut some in two.
        let line = "h\u{e9}\u{1F600} and so on\r\n";
        for shift in 0..8 {
            let text = format!("{}{}", "x".repeat(shift), line.repeat(10_000));
            assert_eq!(
                Properties::read(text.as_bytes()).unwrap(),
                Properties::of(&text),
                "{shift}"
            );
            let cut = &text.as_bytes()[..text.len() - line.len() + 2];
            assert!(!Properties::read(cut).unwrap().is_utf8, "{shift}");
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
