//! API keys, and the redactor for everything that leaves the process.
//!
//! Pure. Guarantees that an [`ApiKey`] is never printed in full, and that a
//! [`Redactor`] finds each of its keys in every form that `forms` lists: in a stream however it is split into chunks,
//! and in a complete text even if escape sequences split the key.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;

use super::escapes::SeenText;

/// Prefix of every mark that replaces a secret.
pub const ANY_MARK: &str = "[REDACTED";

/// Prefix of every mark that replaces a key.
pub const MARK: &str = "[REDACTED]";

/// A vendor's API key: one line of visible ASCII. Its `Debug` and `Display` show at most the last two characters.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// Errors from parsing a key file. They never contain the file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyProblem {
    /// The file contains only white space.
    #[error("is empty")]
    Empty,
    /// The file has more than one line.
    #[error("has more than one line")]
    MultiLine,
    /// The key contains a byte that is not allowed in the value of an HTTP header.
    #[error("has a blank, a control character or a character that is not ASCII")]
    NotVisibleAscii,
    /// The key is in quotes.
    #[error("is in quotes")]
    Quoted,
    /// The key is preceded by a variable's name.
    #[error("begins with a variable's name and `=`")]
    Assigned,
    /// The text is a placeholder for a key.
    #[error("is a placeholder")]
    Placeholder,
    /// The text is a JSON object, such as the file of a service account.
    #[error("is a JSON object")]
    Object,
}

impl ApiKey {
    /// Parses a key file's content, ignoring white space around the key.
    ///
    /// # Errors
    /// Fails if the key is not one line of visible ASCII.
    pub fn parse(content: &[u8]) -> Result<Self, KeyProblem> {
        let key = content.trim_ascii();
        if key.is_empty() {
            return Err(KeyProblem::Empty);
        }
        if key.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
            return Err(KeyProblem::MultiLine);
        }
        match std::str::from_utf8(key) {
            Ok(text) if key.iter().all(u8::is_ascii_graphic) => Ok(Self(text.to_owned())),
            _ => Err(KeyProblem::NotVisibleAscii),
        }
    }

    /// Parses the content of a key file, which users write by hand and which must contain only a key.
    ///
    /// # Errors
    /// Fails if the key is missing, is not one line of visible ASCII, or is written in quotes or as a variable.
    pub fn of_file(content: &[u8]) -> Result<Self, KeyProblem> {
        let text = String::from_utf8_lossy(content);
        let line = text.trim();
        let is_line = !line.contains(['\n', '\r']);
        match bare(line) {
            key if key != line && is_line && line.starts_with(QUOTES) => Err(KeyProblem::Quoted),
            key if key != line && is_line => Err(KeyProblem::Assigned),
            key if !key.is_empty() && is_placeholder(key) => Err(KeyProblem::Placeholder),
            key if key.starts_with('{') => Err(KeyProblem::Object),
            _ => Self::parse(content),
        }
    }

    /// Returns the key itself, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// The quotes that a key may be written in.
const QUOTES: [char; 3] = ['"', '\'', '`'];

/// Strips the variable's name, in capitals, and the quotes from a line like `export NAME="key"`.
pub fn bare(line: &str) -> &str {
    let line = line.trim();
    let assigned = line.strip_prefix("export ").unwrap_or(line);
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        !name.is_empty() && bytes.all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'))
    };
    // A key in Base64 may end with `=`.
    let line = match assigned.split_once('=') {
        Some((name, value)) if is_name(name) && !value.trim_matches('=').is_empty() => value.trim(),
        _ => line,
    };
    let unquoted = |quote| line.strip_prefix(quote)?.strip_suffix(quote);
    QUOTES.into_iter().find_map(unquoted).unwrap_or(line)
}

/// Words of placeholders. In a real key, none of them stands alone between punctuation.
const PLACEHOLDERS: &str =
    "your yours paste replace replaceme todo fixme dummy example placeholder changeme";

/// Returns whether the text is a placeholder for a key.
fn is_placeholder(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let filler = lower.trim_start_matches("sk-");
    filler.len() != 1 && filler.bytes().all(|byte| matches!(byte, b'x' | b'*'))
        || lower.starts_with(['<', '$', '(', '['])
        || lower.contains("xxxxxxxx")
        || lower.contains("...")
        || lower.contains("your") && lower.contains("key")
        || lower
            .split(|separator: char| !separator.is_ascii_alphanumeric())
            .any(|part| PLACEHOLDERS.split(' ').any(|word| word == part))
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&replacement(&self.0))
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({self})")
    }
}

/// Minimum length in bytes of a key to search for. Shorter ones would match everywhere.
pub const SHORTEST_KEY: usize = 6;

/// Kind of a secret that a redactor has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// One of the keys to redact.
    Key,
    /// The value of another secret variable.
    Variable,
}

/// Text to search for, its replacement and its kind.
type Pattern = (String, String, SecretKind);

/// Number of bytes of a stream searched at a time, so that a long text is not held twice.
const PIECE: usize = 64 << 10;

/// Replaces keys and the values of secret variables with `[REDACTED]` and their last two characters. Its `Debug` output
/// reveals none of them. Below, "keys" includes those values.
#[derive(Clone, Default)]
pub struct Redactor {
    patterns: Option<AhoCorasick>,
    /// Texts to search for, sorted.
    forms: Arc<[String]>,
    /// Replacements, by the index of the pattern.
    replacements: Vec<String>,
    /// Kinds, by the index of the pattern.
    kinds: Vec<SecretKind>,
    /// Length of the longest pattern in bytes.
    longest: usize,
}

impl Redactor {
    /// Creates a redactor for these keys. Duplicates are harmless, and keys of fewer than `SHORTEST_KEY` bytes are
    /// ignored.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a str>) -> Self {
        Self::with_values(keys, [])
    }

    /// Creates a redactor for these keys and the values of other secret variables.
    pub fn with_values<'a>(
        keys: impl IntoIterator<Item = &'a str>,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let is_long = |key: &&str| key.len() >= SHORTEST_KEY;
        let keys: Vec<&str> = keys.into_iter().filter(is_long).collect();
        // A value that contains a key is as secret as the key.
        let kind = |value: &str| {
            if keys.iter().any(|key| value.contains(key)) {
                SecretKind::Key
            } else {
                SecretKind::Variable
            }
        };
        let values = values.into_iter().filter(is_long);
        let mut patterns: Vec<Pattern> = Vec::new();
        for secret in keys.iter().copied().chain(values) {
            let pattern = |form| (form, replacement(secret), kind(secret));
            patterns.extend(forms(secret).into_iter().map(pattern));
        }
        Self::of(patterns)
    }

    /// Returns a redactor with additional keys.
    pub fn and<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Self {
        let known = self.forms.iter().zip(&self.replacements).zip(&self.kinds);
        let own =
            known.map(|((form, replacement), kind)| (form.clone(), replacement.clone(), *kind));
        let keys = keys.into_iter().filter(|key| key.len() >= SHORTEST_KEY);
        let further = keys.flat_map(|key| {
            let forms = forms(key).into_iter();
            forms.map(|form| (form, replacement(key), SecretKind::Key))
        });
        Self::of(further.chain(own).collect())
    }

    fn of(mut patterns: Vec<Pattern>) -> Self {
        // The sort is stable, so that of equal forms a key's comes first.
        patterns.sort_by(|a, b| a.0.cmp(&b.0));
        patterns.dedup_by(|a, b| a.0 == b.0);
        let (forms, replacements, kinds): (Vec<_>, Vec<_>, Vec<_>) = patterns.into_iter().collect();
        let longest = forms.iter().map(String::len).max().unwrap_or(0);
        // The longest match must win: if one key is a prefix of another, the rest must not remain visible.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&forms);
        // Building fails only beyond 2^31 states, far more than a few hundred bytes of patterns need.
        Self {
            patterns: automaton.ok().filter(|_| longest > 0),
            forms: forms.into(),
            replacements,
            kinds,
            longest,
        }
    }

    /// Returns the marks that replace the keys, without duplicates.
    pub fn marks(&self) -> BTreeSet<String> {
        self.replacements.iter().cloned().collect()
    }

    /// Returns the length of the longest suffix of `bytes` that may be the beginning of a key.
    fn unsettled(&self, bytes: &[u8]) -> usize {
        let longest = bytes.len().min(self.longest.saturating_sub(1));
        let begins_a_form = |end: &[u8]| {
            let at = self.forms.partition_point(|form| form.as_bytes() <= end);
            let next = self.forms.get(at);
            next.is_some_and(|form| form.as_bytes().starts_with(end))
        };
        let begins = |length: &usize| begins_a_form(&bytes[bytes.len() - length..]);
        (1..=longest).rev().find(begins).unwrap_or(0)
    }

    /// Returns the positions of keys in `text`, and the kind of each.
    pub fn find<'t>(
        &'t self,
        text: &'t str,
    ) -> impl Iterator<Item = (Range<usize>, SecretKind)> + 't {
        let patterns = self.patterns.iter();
        let found = patterns.flat_map(move |all| all.find_iter(text));
        found.map(|found| (found.range(), self.kinds[found.pattern()]))
    }

    /// Returns `text` without the keys, borrowed if it contained none. Also finds keys that are split by escape
    /// sequences, since these may be removed later.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(patterns) = &self.patterns else {
            return Cow::Borrowed(text);
        };
        let mut redacted = Cow::Borrowed(text);
        if patterns.is_match(text) {
            redacted = Cow::Owned(patterns.replace_all(text, &self.replacements));
        }
        let seen = SeenText::of(&redacted);
        match seen.filter(|seen| patterns.is_match(&seen.text)) {
            Some(seen) => Cow::Owned(self.seen(&redacted, &seen)),
            None => redacted,
        }
    }

    /// Returns `text` without the keys in its visible part.
    fn seen(&self, text: &str, seen: &SeenText) -> String {
        let (mut out, mut done) = (String::with_capacity(text.len()), 0);
        let patterns = self.patterns.iter();
        for found in patterns.flat_map(|all| all.find_iter(&seen.text)) {
            let range = seen.whole(&found.range());
            out.push_str(&text[done..range.start]);
            out.push_str(&self.replacements[found.pattern()]);
            done = range.end;
        }
        out.push_str(&text[done..]);
        out
    }

    /// Returns `piece` without the keys, avoiding a copy if it contains none.
    pub fn piece<'a>(&self, piece: Cow<'a, str>) -> Cow<'a, str> {
        match piece {
            Cow::Borrowed(text) => self.text(text),
            Cow::Owned(text) => match self.text(&text) {
                Cow::Borrowed(_) => Cow::Owned(text),
                Cow::Owned(redacted) => Cow::Owned(redacted),
            },
        }
    }

    /// Creates a writer that passes its input on to `inner` without the keys.
    pub fn writer<W: Write>(&self, inner: W) -> RedactingWriter<'_, W> {
        RedactingWriter {
            redactor: self,
            held: Vec::new(),
            found: false,
            inner,
        }
    }

    /// Removes the keys from every string in a JSON value, including the names of members. This is done before the
    /// strings are escaped, so the result is valid JSON whatever a key looks like.
    pub fn json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into_owned().into(),
            Value::Array(values) => values.iter().map(|value| self.json(value)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (self.text(name), self.json(value)))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redactor({} forms)", self.forms.len())
    }
}

/// Redacts a stream, including keys that are split between chunks. [`finish`](Self::finish) must be called at the
/// end, because up to the length of a pattern is held back until then.
#[derive(Debug)]
pub struct RedactingWriter<'a, W: Write> {
    redactor: &'a Redactor,
    /// End of the input that may be the beginning of a key.
    held: Vec<u8>,
    /// True if a key has been found.
    found: bool,
    inner: W,
}

/// Passes on a stream, but holds back its end while that may be the beginning of a secret.
pub(super) trait HoldingBack {
    /// Returns the bytes that are held back.
    fn held(&mut self) -> &mut Vec<u8>;

    /// Returns the number of bytes of `held` that can already be decided on.
    fn settled(&self, held: &[u8]) -> usize;

    /// Passes on `bytes` up to about `settled`, and returns the number of processed bytes.
    fn emit(&mut self, bytes: &[u8], settled: usize) -> io::Result<usize>;

    /// Processes a piece of `chunk`, and returns its length.
    fn take_in(&mut self, chunk: &[u8]) -> io::Result<usize> {
        let chunk = &chunk[..chunk.len().min(PIECE)];
        let mut held = std::mem::take(self.held());
        held.extend_from_slice(chunk);
        let settled = self.settled(&held);
        let done = self.emit(&held, settled)?;
        held.drain(..done);
        *self.held() = held;
        Ok(chunk.len())
    }

    /// Passes on the bytes held back, at the end of the stream.
    fn flush_held(&mut self) -> io::Result<()> {
        let held = std::mem::take(self.held());
        self.emit(&held, held.len()).map(drop)
    }
}

impl<W: Write> RedactingWriter<'_, W> {
    /// Returns the inner writer.
    pub fn inner(&self) -> &W {
        &self.inner
    }

    /// Writes the bytes held back, flushes, and returns the inner writer.
    ///
    /// # Errors
    /// Returns any error of the inner writer.
    pub fn finish(self) -> io::Result<W> {
        self.finish_found().map(|(inner, _)| inner)
    }

    /// Like [`finish`](Self::finish), but also returns whether a key was found.
    ///
    /// # Errors
    /// Returns any error of the inner writer.
    pub fn finish_found(mut self) -> io::Result<(W, bool)> {
        self.flush_held()?;
        self.inner.flush()?;
        Ok((self.inner, self.found))
    }

    /// Writes as much as possible of the bytes held back: everything except the beginning of a possible key. Meant for
    /// showing output live; [`finish`](Self::finish) must still be called.
    ///
    /// # Errors
    /// Returns any error of the inner writer.
    pub fn release(&mut self) -> io::Result<()> {
        let mut held = std::mem::take(&mut self.held);
        loop {
            let settled = held.len() - self.redactor.unsettled(&held);
            if settled == 0 {
                break;
            }
            // A key may extend beyond `settled`, so the remainder is examined again.
            let done = self.emit(&held, settled)?;
            held.drain(..done);
        }
        self.held = held;
        self.inner.flush()
    }
}

impl<W: Write> HoldingBack for RedactingWriter<'_, W> {
    fn held(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }

    fn settled(&self, held: &[u8]) -> usize {
        let longest = self.redactor.longest;
        held.len().saturating_sub(longest.saturating_sub(1))
    }

    /// Replaces every match that begins before `settled`, even if it ends later. Later matches are still undecided.
    fn emit(&mut self, bytes: &[u8], settled: usize) -> io::Result<usize> {
        let mut done = 0;
        if let Some(patterns) = &self.redactor.patterns {
            let begun = patterns.find_iter(bytes);
            for found in begun.take_while(|found| found.start() < settled) {
                self.found = true;
                self.inner.write_all(&bytes[done..found.start()])?;
                let replacement = &self.redactor.replacements[found.pattern()];
                self.inner.write_all(replacement.as_bytes())?;
                done = found.end();
            }
        }
        if done < settled {
            self.inner.write_all(&bytes[done..settled])?;
            done = settled;
        }
        Ok(done)
    }
}

impl<W: Write> Write for RedactingWriter<'_, W> {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        self.take_in(chunk)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn replacement(key: &str) -> String {
    let last = key.char_indices().nth_back(1);
    let tail = last.map_or(key, |(at, _)| &key[at..]);
    format!("{MARK}{tail}")
}

/// Returns the ways in which a key is commonly written: raw, JSON-escaped, percent-encoded, base64 and base64url
/// at all three offsets, and hexadecimal.
fn forms(key: &str) -> Vec<String> {
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![key.to_owned(), hex.to_uppercase(), hex];
    forms.extend(json_forms(key));
    forms.extend(percent_forms(key));
    for shift in 0..3 {
        forms.push(base64_inner(&STANDARD_NO_PAD, key, shift));
        forms.push(base64_inner(&URL_SAFE_NO_PAD, key, shift));
    }
    // An escaped key inside a JSON string is escaped a second time.
    let twice = forms
        .iter()
        .filter(|form| form.contains('\\'))
        .map(|form| form.replace('\\', "\\\\"));
    forms.extend(twice.collect::<Vec<_>>());
    forms
}

/// Returns the key as different JSON writers escape it. Besides what must be escaped, they escape nothing; `/`; the
/// characters special in HTML, in several variants; everything but letters and digits; or everything.
fn json_forms(key: &str) -> Vec<String> {
    const HTML: [&str; 5] = ["/", "<>&", "<>&'", "<>&='", "<>&'+`\""];
    const NUMBERS: [fn(char) -> String; 2] = [
        |c| format!("\\u{:04x}", u32::from(c)),
        |c| format!("\\u{:04X}", u32::from(c)),
    ];
    let plain = key.replace('\\', "\\\\").replace('"', "\\\"");
    let mut forms = vec![plain.replace('/', "\\/"), plain];
    let mut escape = |is_number: &dyn Fn(char) -> bool| {
        for number in NUMBERS {
            let escaped = key.chars().map(|c| match c {
                _ if is_number(c) => number(c),
                '"' | '\\' => format!("\\{c}"),
                _ => c.to_string(),
            });
            forms.push(escaped.collect());
        }
    };
    for characters in HTML {
        escape(&|c| characters.contains(c));
    }
    escape(&|c| !c.is_ascii_alphanumeric());
    escape(&|_| true);
    forms
}

/// Returns the key percent-encoded as in RFC 3986; with `/` or `+` unchanged, as is common; with every sign encoded;
/// and with every byte encoded. The digits are in either case.
fn percent_forms(key: &str) -> Vec<String> {
    const LEFT_ALONE: [Option<&str>; 5] =
        [None, Some(""), Some("-._~"), Some("-._~/"), Some("-._~+")];
    const NUMBERS: [fn(u8) -> String; 2] = [|b| format!("%{b:02x}"), |b| format!("%{b:02X}")];
    let encode = |left_alone: Option<&str>, number: fn(u8) -> String| {
        let encoded = key.bytes().map(|byte| match left_alone {
            Some(signs) if byte.is_ascii_alphanumeric() || signs.contains(char::from(byte)) => {
                char::from(byte).to_string()
            }
            _ => number(byte),
        });
        encoded.collect()
    };
    LEFT_ALONE
        .into_iter()
        .flat_map(|left_alone| NUMBERS.map(|number| encode(left_alone, number)))
        .collect()
}

/// Returns the characters of the base64 text that depend only on `key` if it is `shift` bytes into a group of three.
fn base64_inner(engine: &impl base64::Engine, key: &str, shift: usize) -> String {
    let mut bytes = vec![0; shift];
    bytes.extend_from_slice(key.as_bytes());
    let encoded = engine.encode(&bytes);
    // A character holds six bits. Those that share a byte before or after the key are left out.
    let first = (shift * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    encoded[first..last].to_owned()
}

#[cfg(test)]
mod tests;
