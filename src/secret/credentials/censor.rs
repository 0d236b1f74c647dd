//! Removes likely credentials from a stream. Pure.
//!
//! Guarantees that at most [`MAX_LINE`] bytes and one chunk are buffered, whatever the stream contains; that a private
//! key is removed as a whole; and that a replacement reveals only the kind of the credential.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::private_key;
use super::search::{PRIVATE_KEY, WORDS, kinds, next_credential};
use crate::secret::Redactor;
use crate::secret::redactor::HoldingBack;

/// Beginning of a credential's replacement; its kind and a bracket follow.
const MARKER: &str = "[REDACTED: ";

/// Length in bytes above which a line is searched in parts.
const MAX_LINE: usize = 64 << 10;
/// Number of bytes by which the parts overlap: no token is longer.
const OVERLAP: usize = 8 << 10;

/// Matches the last line of a private key in any of the known formats.
static END: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let end = r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|---- END SSH2 (?:ENCRYPTED )?PRIVATE KEY ----|Private-MAC: [0-9a-f]+";
    Regex::new(end).ok()
});

/// Returns the marks that replace this redactor's keys, and those that replace credentials of each kind.
pub fn marks(redactor: &Redactor) -> BTreeSet<String> {
    let mut marks = redactor.marks();
    marks.extend(kinds().map(|kind| format!("{MARKER}{kind}]")));
    marks
}

/// Writer that replaces each credential with its kind. [`finish`](Self::finish) must be called at the end, because the
/// last line is held back until then.
#[derive(Debug)]
pub struct Censor<W: Write> {
    held: Vec<u8>,
    /// Number of bytes already removed from a private key whose end has not arrived; `None` outside a key.
    private_key: Option<u64>,
    kinds: BTreeSet<&'static str>,
    /// Text that precedes the kind in a replacement.
    marker: &'static str,
    /// True if nothing is removed.
    is_open: bool,
    inner: W,
}

impl<W: Write> Censor<W> {
    /// Creates a censor that writes to `inner`.
    pub fn new(inner: W) -> Self {
        Self::marking(inner, MARKER)
    }

    /// Creates a censor whose replacements begin with `marker`.
    pub fn marking(inner: W, marker: &'static str) -> Self {
        Self {
            marker,
            is_open: false,
            held: Vec::new(),
            private_key: None,
            kinds: BTreeSet::new(),
            inner,
        }
    }

    /// Disables the censor if `is_open`, so that everything passes unchanged.
    pub fn opened(self, is_open: bool) -> Self {
        Self { is_open, ..self }
    }

    /// Returns the kinds of credentials removed so far.
    pub fn kinds(&self) -> &BTreeSet<&'static str> {
        &self.kinds
    }

    /// Returns the part of an incomplete line that is held back, for showing output live; empty if it may contain a
    /// credential.
    pub fn pending(&self) -> &[u8] {
        let mut words = WORDS.iter();
        let may_hold_any = words.any(|all| all.find(&self.held, 0).is_some());
        match self.private_key {
            None if !may_hold_any => &self.held,
            _ => &[],
        }
    }

    /// Writes the bytes held back, flushes, and returns the inner writer and the kinds of removed credentials.
    ///
    /// # Errors
    /// Returns any error of the inner writer.
    pub fn finish(mut self) -> io::Result<(W, BTreeSet<&'static str>)> {
        self.flush_held()?;
        if let Some(left_out @ 1..) = self.private_key {
            writeln!(self.inner, " [without an end: {left_out} bytes left out]")?;
        }
        self.inner.flush()?;
        Ok((self.inner, self.kinds))
    }

    /// Returns the number of bytes that belong to the private key in progress, looking for its end before `settled`.
    /// `left_out` bytes of the key were removed before.
    fn pass_over(&mut self, bytes: &[u8], settled: usize, left_out: u64) -> usize {
        let end = END.as_ref().and_then(|end| end.find(bytes));
        if let Some(end) = end.filter(|end| end.start() < settled) {
            return end.end();
        }
        self.private_key = Some(left_out + settled as u64);
        settled
    }
}

impl<W: Write> HoldingBack for Censor<W> {
    fn held(&mut self) -> &mut Vec<u8> {
        &mut self.held
    }

    /// Holds back the first line of a possible key until it is known whether a key follows.
    fn settled(&self, held: &[u8]) -> usize {
        if self.is_open {
            return held.len();
        }
        let settled = match memchr::memrchr(b'\n', held) {
            Some(newline) => newline + 1,
            None if held.len() > MAX_LINE => held.len() - OVERLAP,
            None => 0,
        };
        private_key::undecided(held).map_or(settled, |begin| settled.min(begin))
    }

    /// Removes a credential that begins before `settled` as a whole, even if it ends later.
    fn emit(&mut self, bytes: &[u8], settled: usize) -> io::Result<usize> {
        if self.is_open {
            self.inner.write_all(bytes)?;
            return Ok(bytes.len());
        }
        let mut done = 0;
        while done < settled {
            if let Some(left_out) = self.private_key.take() {
                done += self.pass_over(&bytes[done..], settled - done, left_out);
                continue;
            }
            let found = next_credential(bytes, done);
            let Some((place, kind)) = found.filter(|(place, _)| place.start < settled) else {
                self.inner.write_all(&bytes[done..settled])?;
                return Ok(settled);
            };
            self.inner.write_all(&bytes[done..place.start])?;
            write!(self.inner, "{}{kind}]", self.marker)?;
            self.kinds.insert(kind);
            self.private_key = (kind == PRIVATE_KEY).then_some(0);
            done = place.end;
        }
        Ok(done)
    }
}

impl<W: Write> Write for Censor<W> {
    fn write(&mut self, chunk: &[u8]) -> io::Result<usize> {
        self.take_in(chunk)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn token() -> String {
        format!("ghp_{}", "a0".repeat(18))
    }

    fn private_key(lines: usize) -> String {
        let body = format!("{}\n", "Ab0+".repeat(16)).repeat(lines);
        format!(
            "-----BEGIN {0}-----\n{body}-----END {0}-----",
            "RSA PRIVATE KEY"
        )
    }

    fn censored(chunks: &[&[u8]]) -> (String, Vec<&'static str>) {
        let mut censor = Censor::new(Vec::new());
        for chunk in chunks {
            censor.write_all(chunk).unwrap();
            assert!(censor.held.len() <= 2 * MAX_LINE);
        }
        let (written, kinds) = censor.finish().unwrap();
        (
            String::from_utf8_lossy(&written).into_owned(),
            kinds.into_iter().collect(),
        )
    }

    #[test]
    fn each_credential_gives_way_to_its_kind() {
        let (token, key) = (token(), private_key(20));
        let on_a_line = key.replace('\n', "\\n");
        let prefixed = key.replace('\n', "\napp_1 | ");
        for (text, expected) in [
            ("nothing\nat all".to_owned(), "nothing\nat all"),
            (format!("a {token} b"), "a [REDACTED: a GitHub token] b"),
            (
                format!("x_{token}\n\"{token}\""),
                "x_[REDACTED: a GitHub token]\n\"[REDACTED: a GitHub token]\"",
            ),
            (
                format!("\u{1b}[32m{token}\u{1b}[0m\"a\\n{token}\\n\""),
                "\u{1b}[32m[REDACTED: a GitHub token]\u{1b}[0m\"a\\n[REDACTED: a GitHub token]\\n\"",
            ),
            (format!("a\n{key}\nb"), "a\n[REDACTED: a private key]\nb"),
            (
                format!("{{\"key\": \"{on_a_line}\\n\"}}"),
                "{\"key\": \"[REDACTED: a private key]\\n\"}",
            ),
            (
                format!("app_1 | {prefixed}\nb"),
                "app_1 | [REDACTED: a private key]\nb",
            ),
            (
                format!("AWS_SECRET_ACCESS_KEY=\"{}\"\n", "a0/+".repeat(10)),
                "[REDACTED: an AWS secret key]\"\n",
            ),
            ("your ghp_ token".to_owned(), "your ghp_ token"),
        ] {
            assert_eq!(censored(&[text.as_bytes()]).0, expected);
        }
        let both = format!("{key}\n{token}\n{token}");
        let kinds = censored(&[both.as_bytes()]).1;
        assert_eq!(kinds, ["a GitHub token", "a private key"]);
        // Invalid UTF-8 does not stop the search, and is kept.
        let mut censor = Censor::new(Vec::new());
        let text = [b"\xff", token.as_bytes(), b"\xfe"].concat();
        censor.write_all(&text).unwrap();
        let written = censor.finish().unwrap().0;
        assert_eq!(written, b"\xff[REDACTED: a GitHub token]\xfe");
    }

    #[test]
    fn a_private_key_goes_as_a_whole_however_long_it_is() {
        let text = format!("a\n{}\nb\n", private_key(30_000));
        let (shown, _) = censored(&[text.as_bytes()]);
        assert_eq!(shown, "a\n[REDACTED: a private key]\nb\n");
    }

    #[test]
    fn a_private_key_is_taken_out_however_its_lines_are_written() {
        let key = private_key(3);
        for (line_end, before_body) in [
            ("\u{1b}[0m\n\u{1b}[31m", ""),
            ("\\\\n", ""),
            ("', '", ""),
            ("\" +\n \"", ""),
            ("&#10;", ""),
            ("", ""),
            ("\n", "Proc-Type: 4,ENCRYPTED\n\n"),
        ] {
            let key = key.replacen('\n', &format!("\n{before_body}"), 1);
            let text = format!("a {}\nb\n", key.replace('\n', line_end));
            let expected = "a [REDACTED: a private key]\nb\n";
            assert_eq!(censored(&[text.as_bytes()]).0, expected, "{line_end:?}");
        }
    }

    #[test]
    fn a_first_line_alone_is_not_a_key_and_nothing_of_what_follows_is_lost() {
        let first_line = format!("-----BEGIN {}-----", "PRIVATE KEY");
        let results = "test parses_a_key ... ok\n".repeat(100);
        for text in [
            format!("{first_line}\n"),
            format!("test {first_line} ... ok\n{results}"),
            format!("{first_line}\n{results}{}\n", token().replace('_', "-")),
            format!("{first_line}\n{first_line}\n{results}"),
        ] {
            for size in [1, 7, text.len()] {
                let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
                assert_eq!(censored(&chunks).0, text);
            }
        }
        let key = private_key(2);
        let (shown, _) = censored(&[format!("{first_line}\n{key}\n").as_bytes()]);
        assert_eq!(shown, format!("{first_line}\n[REDACTED: a private key]\n"));
    }

    #[test]
    fn a_private_key_without_an_end_takes_all_that_follows_and_says_how_much() {
        let key = private_key(30_000);
        let (key, _) = key.split_once("-----END").unwrap();
        let (shown, kinds) = censored(&[b"a\n", key.as_bytes()]);
        let marker = "a\n[REDACTED: a private key] [without an end: 1950001 bytes left out]\n";
        assert_eq!((shown.as_str(), kinds), (marker, vec!["a private key"]));
    }

    #[test]
    fn an_incomplete_line_is_passed_on_unless_it_may_contain_a_credential() {
        let (token, key) = (token(), private_key(2));
        let mut censor = Censor::new(Vec::new());
        for (chunk, pending) in [
            ("one\nPassword: ", "Password: "),
            ("x\n", ""),
            (&token[..20], ""),
            (&token[20..], ""),
            ("\n", ""),
            (&key[..80], ""),
            (&key[80..], ""),
            ("\n$ ", "$ "),
        ] {
            censor.write_all(chunk.as_bytes()).unwrap();
            assert_eq!(String::from_utf8_lossy(censor.pending()), pending);
        }
    }

    #[test]
    fn a_line_without_end_is_searched_all_the_same() {
        let token = token();
        for before in [MAX_LINE - OVERLAP, MAX_LINE - 20, MAX_LINE, 3 * MAX_LINE] {
            let text = format!("{} {token} {}", "x".repeat(before), "y".repeat(MAX_LINE));
            let (shown, _) = censored(&[text.as_bytes()]);
            let expected = text.replace(&token, "[REDACTED: a GitHub token]");
            assert!(shown == expected, "{before}");
        }
    }

    proptest! {
        #[test]
        fn chunks_make_no_difference(
            parts in prop::collection::vec(prop_oneof![
                Just(token()), Just(private_key(2)), "[a-z \n]{0,40}", Just("-----BEGIN PRIVATE".to_owned()),
                Just(format!("-----BEGIN {}-----\n", "PRIVATE KEY")),
            ], 0..8),
            size in 1usize..200,
        ) {
            let text = parts.concat();
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            prop_assert_eq!(censored(&chunks), censored(&[text.as_bytes()]));
        }
    }
}
