//! Locates mistakes in a JSON file by line and column. Pure.
//!
//! A file is parsed in parts, which are slices of its text; a mistake in a part is reported with its place in the file.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::sys::text::{BYTE_ORDER_MARK, cut, line_of};

/// Maximum number of characters shown of serde's error.
const REASON_LIMIT: usize = 300;

/// A mistake in a text, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("line {line}, column {column}: {reason}")]
pub struct Misplaced {
    /// Line, counted from 1.
    pub line: usize,
    /// Column in bytes, counted from 1.
    pub column: usize,
    /// Description of the mistake.
    pub reason: String,
}

/// Known fields of an object, as slices of the text, and all its other fields.
pub type Fields<'t, const N: usize> = ([Option<&'t str>; N], Map<String, Value>);

/// Converts positions in parts of a text to positions in the whole text, which it holds.
#[derive(Debug, Clone, Copy)]
pub struct Positions<'t>(pub &'t str);

impl Positions<'_> {
    /// Parses a part of the text, which must be a slice of it.
    ///
    /// # Errors
    /// Fails if the part is invalid; the error has its position in the whole text.
    pub fn parse<'p, T: Deserialize<'p>>(&self, part: &'p str) -> Result<T, Misplaced> {
        serde_json::from_str(part).map_err(|error| {
            // serde's position is relative to the beginning of the part.
            let lines = error.line().saturating_sub(1);
            let line_start: usize = part.split_inclusive('\n').take(lines).map(str::len).sum();
            let offset = if error.is_eof() {
                part.trim_ascii_end().len()
            } else {
                line_start + error.column().saturating_sub(1)
            };
            let text = error.to_string();
            let reason = match text.rsplit_once(" at line ") {
                _ if part.trim_ascii().is_empty() && part.len() < self.0.len() => {
                    "the line is blank"
                }
                _ if part.trim_ascii().is_empty() => "the file is empty",
                Some((reason, _)) => reason,
                None => &text,
            };
            // The message may quote a value of any length.
            self.problem_at(self.offset(part) + offset, cut(reason, REASON_LIMIT))
        })
    }

    /// Parses a part of the text that must be an object; serde alone would also accept an array.
    ///
    /// # Errors
    /// Fails if the part is invalid; the error has its position in the whole text.
    pub fn object<'p, T: Deserialize<'p>>(&self, part: &'p str) -> Result<T, Misplaced> {
        let begin = part.trim_ascii_start();
        if begin.is_empty() || begin.starts_with('{') {
            return self.parse(part);
        }
        Err(self.problem(begin, "an object is expected here, in `{` and `}`"))
    }

    /// Splits an object into the fields with these names, as slices of the text, and all others.
    ///
    /// # Errors
    /// Fails if the part is invalid or contains a field twice.
    pub fn fields<'p, const N: usize>(
        &self,
        part: &'p str,
        names: [&str; N],
    ) -> Result<Fields<'p, N>, Misplaced> {
        let (mut known, mut further) = ([None; N], Map::new());
        for (name, value) in self.object::<Entries<'p>>(part)?.0 {
            match names.iter().position(|known| *known == name) {
                Some(at) => known[at] = Some(value.get()),
                None => {
                    further.insert(name, self.parse(value.get())?);
                }
            }
        }
        Ok((known, further))
    }

    /// Creates a mistake at the beginning of `part`, which must be a slice of the text.
    pub fn problem(&self, part: &str, reason: impl Into<String>) -> Misplaced {
        self.problem_at(self.offset(part), reason)
    }

    /// Creates a mistake at a byte offset, or at the end of the text if that is beyond it.
    pub fn problem_at(&self, offset: usize, reason: impl Into<String>) -> Misplaced {
        let text = self.0.as_bytes();
        let before = text.get(..offset).unwrap_or(text);
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        Misplaced {
            line: line_of(text, offset),
            column: before.len() - line_start + 1,
            reason: reason.into(),
        }
    }

    /// Returns the byte offset of `part`, which must be a slice of the text.
    fn offset(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.0.as_ptr() as usize)
    }
}

/// Returns the text of a JSON file, without the byte order mark that some editors write.
///
/// # Errors
/// Fails if `content` is not UTF-8; the error has the position of the first invalid byte.
pub fn text(content: &[u8]) -> Result<&str, Misplaced> {
    let text = std::str::from_utf8(content).map_err(|error| {
        let valid = content.get(..error.valid_up_to()).unwrap_or_default();
        let before = String::from_utf8_lossy(valid);
        Positions(&before).problem_at(before.len(), "this is not UTF-8")
    })?;
    Ok(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
}

/// The entries of an object, in order. Duplicate names are rejected.
#[derive(Debug, Default)]
pub struct Entries<'a>(pub Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;
        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut entries: Vec<(String, &'de RawValue)> = Vec::new();
                let mut names = std::collections::BTreeSet::new();
                while let Some((name, entry)) = map.next_entry::<String, &'de RawValue>()? {
                    if !names.insert(name.clone()) {
                        let name = name.escape_debug();
                        return Err(A::Error::custom(format!("`{name}` is there twice")));
                    }
                    entries.push((name, entry));
                }
                Ok(Entries(entries))
            }
        }
        input.deserialize_map(EntriesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_reported_with_its_position_in_the_whole() {
        let json = "{\n  \"a\": {\"b\":\n 1},\n \"c\": x}";
        let at = Positions(json);
        let whole = at.parse::<Entries<'_>>(json).unwrap_err();
        assert_eq!((whole.line, whole.column), (4, 7));
        let part = &json[json.find("{\"b\"").unwrap()..json.rfind(',').unwrap()];
        let parsed = at.parse::<std::collections::BTreeMap<String, String>>(part);
        let mistake = parsed.unwrap_err();
        assert_eq!((mistake.line, mistake.column), (3, 2));
        assert!(mistake.reason.starts_with("invalid type"), "{mistake}");
    }

    #[test]
    fn an_end_that_comes_too_soon_is_reported_with_its_position() {
        for (json, place) in [
            ("", (1, 1)),
            ("{", (1, 2)),
            ("{\"a\": 1", (1, 8)),
            ("{\n \"a\": [1,\n", (2, 10)),
            ("{\n \"a\": \"b", (2, 9)),
        ] {
            let problem = Positions(json).parse::<Entries<'_>>(json).unwrap_err();
            assert_eq!((problem.line, problem.column), place, "{json}");
        }
    }

    #[test]
    fn a_byte_that_is_not_text_is_reported_with_its_position() {
        let problem = text(b"{\n \xff").unwrap_err();
        assert_eq!(problem.to_string(), "line 2, column 2: this is not UTF-8");
        assert_eq!(text(b"\xef\xbb\xbf{}").unwrap(), "{}");
    }

    #[test]
    fn a_value_of_any_length_makes_a_short_message() {
        let json = format!("\"{}\"", "é".repeat(10_000));
        let problem = Positions(&json).parse::<u64>(&json).unwrap_err();
        assert_eq!(problem.reason.chars().count(), REASON_LIMIT + 1);
    }

    #[test]
    fn no_place_is_beyond_the_text() {
        let end = Positions("ab\nc").problem_at(99, "x");
        assert_eq!((end.line, end.column), (2, 2));
    }
}
