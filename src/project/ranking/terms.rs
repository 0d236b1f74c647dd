//! The terms of a text: the parts of identifiers, and identifiers of several parts as a whole. Pure.
//!
//! Terms contain no ASCII capitals. Nothing is stemmed, and no word is left out. A text is read byte by byte without
//! allocating.

use std::borrow::Cow;
use std::collections::HashMap;

use super::bm25::Document;

/// The class of a byte in identifiers. Bytes of characters other than ASCII are lower-case letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Lower,
    Upper,
    Underscore,
    Other,
}

static CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Other; 256];
    let mut byte = 0_u8;
    loop {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'0'..=b'9' | 0x80.. => ByteClass::Lower,
            b'A'..=b'Z' => ByteClass::Upper,
            b'_' => ByteClass::Underscore,
            _ => ByteClass::Other,
        };
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
    classes
};

/// Parameters of FNV-1a.
const SEED: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// A term in a text.
#[derive(Clone, Copy)]
struct Term {
    start: usize,
    end: usize,
    /// Hash of its bytes in lower case.
    hash: u64,
}

/// An iterator over the terms of a text: the parts of each identifier, then the whole if it has several.
struct Terms<'t> {
    bytes: &'t [u8],
    at: usize,
    /// The current identifier so far.
    whole: Term,
    /// Number of its parts.
    parts: usize,
}

impl<'t> Terms<'t> {
    fn of(text: &'t str) -> Self {
        let whole = Term {
            start: 0,
            end: 0,
            hash: SEED,
        };
        Self {
            bytes: text.as_bytes(),
            at: 0,
            whole,
            parts: 0,
        }
    }

    #[inline]
    fn class(&self, at: usize) -> ByteClass {
        let byte = self.bytes.get(at);
        byte.map_or(ByteClass::Other, |&byte| CLASSES[usize::from(byte)])
    }

    /// Adds the next byte to the identifier.
    #[inline]
    fn take(&mut self, part: &mut u64) {
        let byte = u64::from(self.bytes[self.at].to_ascii_lowercase());
        *part = (*part ^ byte).wrapping_mul(PRIME);
        self.whole.hash = (self.whole.hash ^ byte).wrapping_mul(PRIME);
        self.at += 1;
    }
}

impl Iterator for Terms<'_> {
    type Item = Term;

    #[inline]
    fn next(&mut self) -> Option<Term> {
        loop {
            while self.class(self.at) == ByteClass::Underscore {
                self.take(&mut 0);
            }
            let mut before = self.class(self.at);
            if before != ByteClass::Other {
                let (start, mut hash) = (self.at, SEED);
                loop {
                    self.take(&mut hash);
                    let class = self.class(self.at);
                    let is_next = match class {
                        ByteClass::Lower => false,
                        // `aB` has two parts, and so has `ABc`.
                        ByteClass::Upper => {
                            before == ByteClass::Lower
                                || self.class(self.at + 1) == ByteClass::Lower
                        }
                        ByteClass::Underscore | ByteClass::Other => true,
                    };
                    if is_next {
                        break;
                    }
                    before = class;
                }
                self.parts += 1;
                let end = self.at;
                return Some(Term { start, end, hash });
            }
            let whole = Term {
                end: self.at,
                ..self.whole
            };
            let is_several = self.parts > 1;
            while self.at < self.bytes.len() && self.class(self.at) == ByteClass::Other {
                self.at += 1;
            }
            self.whole = Term {
                start: self.at,
                end: self.at,
                hash: SEED,
            };
            self.parts = 0;
            if is_several {
                return Some(whole);
            }
            if self.at == self.bytes.len() {
                return None;
            }
        }
    }
}

/// Returns the terms of a text, in lower case.
pub fn terms(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    Terms::of(text).map(|term| {
        let term = &text[term.start..term.end];
        if term.bytes().any(|byte| byte.is_ascii_uppercase()) {
            term.to_ascii_lowercase().into()
        } else {
            term.into()
        }
    })
}

/// The different terms of a query.
pub struct Words {
    /// The terms, in the query's order.
    pub list: Vec<String>,
    /// The index of each term, by its hash.
    indices: HashMap<u64, usize>,
}

impl Words {
    pub fn of(query: &str) -> Self {
        let (mut list, mut indices) = (Vec::new(), HashMap::new());
        for (term, text) in Terms::of(query).zip(terms(query)) {
            indices.entry(term.hash).or_insert_with(|| {
                list.push(text.into_owned());
                list.len() - 1
            });
        }
        Self { list, indices }
    }

    /// Creates a counter of these words.
    pub fn counter(&self) -> Counter<'_> {
        Counter {
            words: self,
            counts: vec![0; self.list.len()],
        }
    }
}

/// A counter of a query's words in texts.
pub struct Counter<'w> {
    words: &'w Words,
    counts: Vec<u32>,
}

impl Counter<'_> {
    /// Counts the words in a text.
    pub fn count(&mut self, text: &str) -> Document {
        let mut length = 0_u32;
        for term in Terms::of(text) {
            length = length.saturating_add(1);
            if let Some(&index) = self.words.indices.get(&term.hash) {
                self.counts[index] = self.counts[index].saturating_add(1);
            }
        }
        let counts = self.counts.iter_mut().enumerate();
        let found = counts.filter(|(_, count)| **count > 0);
        let taken = found.map(|(word, count)| (word, f64::from(std::mem::take(count))));
        Document {
            length: f64::from(length),
            counts: taken.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_have_parts_and_a_whole() {
        for (text, expected) in [
            ("", ""),
            ("Plain words, plain.", "plain words plain"),
            ("snake_case_word", "snake case word snake_case_word"),
            ("camelCaseWord", "camel case word camelcaseword"),
            (
                "HTTPServer2 getURL",
                "http server2 httpserver2 get url geturl",
            ),
            ("aB ABc A", "a b ab a bc abc a"),
            ("__init__ _x __ a__b", "init x a b a__b"),
            ("kebab-case --dry-run=1", "kebab case dry run 1"),
            ("src/utf8.rs:12", "src utf8 rs 12"),
            ("größe_Ä 中文", "größe Ä größe_Ä 中文"),
            ("MAX_SIZE\r\n\tlet x;", "max size max_size let x"),
        ] {
            let found: Vec<_> = terms(text).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
    }

    #[test]
    fn words_are_counted_in_any_case() {
        let words = Words::of("Foo bar fooBar foo");
        assert_eq!(words.list, ["foo", "bar", "foobar"]);
        let counted = words.counter().count("foo FOO barFoo fooBar foobar other");
        let counts = vec![(0, 4.0), (1, 2.0), (2, 2.0)];
        assert_eq!(
            counted,
            Document {
                length: 10.0,
                counts
            }
        );
        let nothing = Words::of("").counter().count("foo");
        assert_eq!((nothing.length, nothing.counts.len()), (1.0, 0));
    }
}
