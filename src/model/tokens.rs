//! Estimates the number of tokens in a text. Pure.
//!
//! A tokenizer's table would make up three quarters of the program. This estimate splits text the way such tokenizers
//! do (words, digits in groups of three, runs of punctuation, line breaks, indentation) and counts for each piece the
//! average number of tokens that OpenAI's `o200k_base` produces. Tests check that code and prose come within 10 % of
//! that tokenizer's count; comparisons with a limit add a [`MARGIN`].

use crate::sys::numbers::grouped;

/// Safety factor on the estimate, for any text and any tokenizer: a quarter, since vendors' own figures for program
/// text differ.
pub const MARGIN: f64 = 1.25;

/// The class of a byte, as a tokenizer sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Capital,
    Letter,
    /// The first byte of a non-ASCII Latin letter.
    Accented,
    /// A byte of a character other than its first.
    Rest,
    Digit,
    Blank,
    LineEnd,
    Mark,
    /// The first byte of any other character.
    Foreign,
}

/// The class of each byte value in UTF-8.
static CLASSES: [ByteClass; 256] = {
    let mut classes = [ByteClass::Mark; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = ByteClass::of(byte);
        byte += 1;
    }
    classes
};

impl ByteClass {
    const fn of(byte: usize) -> Self {
        match byte {
            0x41..=0x5a => Self::Capital,
            0x61..=0x7a => Self::Letter,
            0x30..=0x39 => Self::Digit,
            0x09 | 0x20 => Self::Blank,
            0x0a | 0x0d => Self::LineEnd,
            0x80..=0xbf => Self::Rest,
            // 0xe1 begins the letters that Vietnamese adds.
            0xc3..=0xcb | 0xe1 => Self::Accented,
            0xc2.. => Self::Foreign,
            _ => Self::Mark,
        }
    }

    const fn is_in_word(self) -> bool {
        matches!(self, Self::Letter | Self::Accented | Self::Rest)
    }
}

/// Estimates the number of tokens in `text`: 0 if it is empty, otherwise at least 1.
pub fn count(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let class = |at: usize| bytes.get(at).map(|byte| CLASSES[usize::from(*byte)]);
    let (mut hundredths, mut at, mut before) = (0, 0, ByteClass::LineEnd);
    while let Some(first) = class(at) {
        let small = run(bytes, at, |class| class == ByteClass::Capital);
        let end = match first {
            ByteClass::Capital | ByteClass::Letter | ByteClass::Accented => {
                run(bytes, small, ByteClass::is_in_word)
            }
            ByteClass::Foreign | ByteClass::Rest => at + 1,
            _ => run(bytes, at, |class| class == first),
        };
        let piece = &bytes[at..end];
        let behind_blank = before == ByteClass::Blank;
        let cost = match first {
            ByteClass::Capital | ByteClass::Letter | ByteClass::Accented => {
                word(piece, small - at, behind_blank)
            }
            // A space is merged into the word that follows, but not into a number.
            ByteClass::Digit => piece.len().div_ceil(3) * 105 + usize::from(behind_blank) * 100,
            ByteClass::Blank => {
                let tab = usize::from(piece[0] == b'\t') * 15;
                match (piece.len(), before) {
                    (1, _) => tab,
                    (_, ByteClass::LineEnd) => 74 + tab,
                    _ => 100 + tab,
                }
            }
            // After punctuation, a line break belongs to the same token.
            ByteClass::LineEnd if before == ByteClass::Mark => 0,
            ByteClass::LineEnd => 135,
            ByteClass::Mark => {
                let is_word = matches!(class(end), Some(ByteClass::Capital | ByteClass::Letter));
                let others = piece.windows(2).filter(|two| two[0] != two[1]).count();
                // A single mark is merged into the word that follows.
                match piece.len() {
                    1 if is_word && !behind_blank => 0,
                    marks => 88 + others * 22 + marks * 3,
                }
            }
            ByteClass::Foreign => foreign(piece[0]),
            ByteClass::Rest => 0,
        };
        if first != ByteClass::Rest {
            before = first;
        }
        hundredths += cost;
        at = end;
    }
    hundredths.div_ceil(100).max(bytes.len().min(1)) as u64
}

/// Returns the end of the run of matching bytes that starts at `from`.
#[inline]
fn run(bytes: &[u8], from: usize, is_in: impl Fn(ByteClass) -> bool) -> usize {
    let other = |byte: &u8| !is_in(CLASSES[usize::from(*byte)]);
    let length = bytes[from..].iter().position(other);
    length.map_or(bytes.len(), |length| from + length)
}

/// Estimates the tokens of a non-Latin character by its first byte, in hundredths.
fn foreign(first: u8) -> usize {
    match first {
        // Greek; Cyrillic; Hebrew and Arabic; the scripts of India, and Thai.
        0xcc..=0xcf => 42,
        0xd0..=0xd4 => 30,
        0xd5..=0xdf => 39,
        0xe0 => 38,
        // Kana and some Chinese; Chinese, Korean, typographic symbols.
        0xe3 => 58,
        0xc2..=0xef => 72,
        // Emoji.
        _ => 175,
    }
}

/// Estimates the tokens of a word that starts with `capitals` capitals, in hundredths. A word after a space is prose,
/// and is in a tokenizer's table unless it is long; names in code follow punctuation or other words.
fn word(word: &[u8], capitals: usize, behind_blank: bool) -> usize {
    let accents = word
        .iter()
        .filter(|byte| (0xc3..0xcc).contains(*byte))
        .count();
    let more_capitals = capitals.saturating_sub(1);
    let cost = if more_capitals > 0 && capitals == word.len() {
        84 + more_capitals * 21
    } else if behind_blank {
        100 + word.len().saturating_sub(9) * 48
    } else {
        115 + word.len().saturating_sub(5) * 15 + more_capitals * 45
    };
    cost + accents * 85
}

/// The estimated size of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// The prompt's parts in order, each with its tokens.
    pub parts: Vec<(&'static str, u64)>,
    /// The tokens of the whole prompt.
    pub tokens: u64,
}

impl Size {
    /// Returns the number of tokens to assume where there is a limit: the estimate plus its margin of error.
    pub fn at_most(&self) -> u64 {
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a margin need not be exact"
        )]
        let more = (self.tokens as f64 * MARGIN) as u64;
        more
    }

    /// Formats the tokens for users, marked as an approximation.
    pub fn text(&self) -> String {
        format!("about {} tokens", grouped(self.tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The counts in `counts.tsv` are those of OpenAI's tokenizer `o200k_base`.
    #[test]
    fn code_and_prose_come_within_a_tenth_of_a_tokenizers_count() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/tokens");
        let counts = fs::read_to_string(format!("{folder}/counts.tsv")).unwrap();
        let within = |kind: &str, estimated: u64, counted: u64| {
            let percent = estimated * 100 / counted;
            assert!(
                (90..=110).contains(&percent),
                "{kind}: {percent} % of {counted}"
            );
        };
        let (mut all_estimated, mut all_counted) = (0, 0);
        for line in counts.lines() {
            let (kind, counted) = line.split_once('\t').unwrap();
            let counted: u64 = counted.parse().unwrap();
            let text = fs::read_to_string(format!("{folder}/{kind}.txt")).unwrap();
            within(kind, count(&text), counted);
            all_estimated += count(&text);
            all_counted += counted;
        }
        within("all", all_estimated, all_counted);
        assert!(all_counted > 15_000, "the corpus is there");
    }

    #[test]
    fn no_text_has_no_tokens_and_any_other_has_some() {
        assert_eq!(count(""), 0);
        for text in [
            " ",
            "\n",
            "a",
            "\u{0}",
            "=",
            "\u{4f60}",
            "\u{1f680}",
            "\u{301}",
        ] {
            assert!((1..=2).contains(&count(text)), "{text:?}");
        }
    }

    #[test]
    fn estimate_of_unusual_text_is_within_the_margin() {
        // Counted by the same tokenizer.
        for (text, counted) in [
            (
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                35,
            ),
            (
                "TWFuIGlzIGRpc3Rpbmd1aXNoZWQsIG5vdCBvbmx5IGJ5IGhpcyByZWFzb24sIGJ1dA==",
                42,
            ),
            (
                "----------------------------------------------------------------",
                1,
            ),
            ("3.14159,2.71828,1.41421,1.73205,2.23606,0.57721", 29),
        ] {
            let size = Size {
                parts: Vec::new(),
                tokens: count(text),
            };
            assert!(
                size.at_most() >= counted,
                "{text}: {} of {counted}",
                size.tokens
            );
        }
    }
}
