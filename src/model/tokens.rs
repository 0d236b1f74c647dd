//! Counting tokens. Pure.
//!
//! Counts with OpenAI's tokenizer `o200k_base`, which takes time that grows with the text alone,
//! whatever the text is. For the models of others the count is about right: see [`MARGIN`].

use std::thread;

use crate::sys::numbers::grouped;

/// How far a count may be off for a model whose tokenizer is another: a quarter, as vendors' own
/// figures for program text differ.
pub const MARGIN: f64 = 1.25;

/// A text of fewer bytes than this is counted on one thread.
const SHARE: usize = 256 << 10;

/// How many tokens `text` has.
#[must_use]
pub fn count(text: &str) -> u64 {
    bpe_openai::o200k_base().count(text) as u64
}

/// How many tokens `texts` have together, each counted by itself; on all processors.
#[must_use]
pub fn count_each(texts: &[&str]) -> Vec<u64> {
    let total: usize = texts.iter().map(|text| text.len()).sum();
    let threads = thread::available_parallelism().map_or(1, Into::into);
    let share = (total / threads).max(SHARE);
    let mut shares: Vec<&[&str]> = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (at, text) in texts.iter().enumerate() {
        bytes += text.len();
        if bytes >= share {
            shares.push(&texts[from..=at]);
            (from, bytes) = (at + 1, 0);
        }
    }
    shares.push(&texts[from..]);
    let counted = |share: &[&str]| share.iter().map(|text| count(text)).collect::<Vec<u64>>();
    thread::scope(|scope| {
        let (last, others) = shares.split_last().unwrap_or((&texts, &[]));
        let others: Vec<_> = others
            .iter()
            .map(|share| {
                (
                    *share,
                    thread::Builder::new().spawn_scoped(scope, move || counted(share)),
                )
            })
            .collect();
        let last = counted(last);
        let mut counts = Vec::with_capacity(texts.len());
        for (share, thread) in others {
            // Where no thread is to be had, it takes longer.
            let done = thread.ok().and_then(|thread| thread.join().ok());
            counts.extend(done.unwrap_or_else(|| counted(share)));
        }
        counts.extend(last);
        counts
    })
}

/// A prompt's size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// Its parts in their order, and their tokens.
    pub parts: Vec<(&'static str, u64)>,
    /// The whole prompt's tokens.
    pub tokens: u64,
    /// Whether they were counted with the model's own tokenizer.
    pub exact: bool,
}

impl Size {
    /// The tokens that are to be reckoned with: where they are counted about, more.
    #[must_use]
    pub fn at_most(&self) -> u64 {
        if self.exact {
            return self.tokens;
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a margin need not be exact"
        )]
        let more = (self.tokens as f64 * MARGIN) as u64;
        more
    }

    /// The tokens as a text: with an honest `about`, where it is due.
    #[must_use]
    pub fn text(&self) -> String {
        let about = if self.exact { "" } else { "about " };
        format!("{about}{} tokens", grouped(self.tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_those_of_the_vendors_tokenizer() {
        // As `tiktoken-rs`, another implementation, counts them with o200k_base.
        for (text, expected) in [
            ("", 0),
            ("hello world", 2),
            ("fn main() {\n    println!(\"hi\");\n}\n", 10),
            ("def f(x):\n\treturn x  # caf\u{e9}\n", 10),
            ("\u{4f60}\u{597d}", 1),
        ] {
            assert_eq!(count(text), expected, "{text:?}");
        }
    }

    #[test]
    fn texts_are_counted_each_by_itself_whatever_threads_there_are() {
        let texts: Vec<String> = (0..50).map(|n| "word ".repeat(n * 500)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let expected: Vec<u64> = texts.iter().map(|text| count(text)).collect();
        assert_eq!(count_each(&texts), expected);
        assert_eq!(count_each(&[]), Vec::<u64>::new());
    }
}
