//! Ranks the files of a code base by their relevance to a query.
//!
//! Pure: no model, no network, no clock; the same inputs give the same ranking. A file's score is its kind's weight
//! times the sum of three fields, each divided by the query's best: its text, its path, and the messages of earlier
//! commits that touched it. Each field is scored by BM25. Documents are read once, on two threads, and only the query's
//! own terms are counted, so that the memory needed is a small part of the texts.

mod bm25;
pub mod kinds;
mod terms;

use std::collections::HashMap;
use std::convert::Infallible;

use self::bm25::{Document, Field};
use self::terms::Words;
pub use self::terms::terms;
use crate::sys::parallel::in_parallel;

/// Weight of the path's score, relative to that of the text.
const PATH: f64 = 0.3;
/// Weight of the score of earlier commits' messages, relative to that of the text.
const MESSAGES: f64 = 0.35;
/// Maximum number of files in a commit; the message of a larger one says little about each file.
const MANY_PATHS: usize = 100;
/// Maximum number of words that explain a file's rank.
const EXPLAINED: usize = 5;

/// An earlier commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCommit {
    /// The commit's whole message.
    pub message: String,
    /// Paths of the files that it touched, relative to the root.
    pub paths: Vec<String>,
}

/// A ranked file.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranked {
    /// Index into the sources.
    pub index: usize,
    /// Score: 0 if the file contains no term of the query.
    pub score: f64,
    /// Words of the query that contributed most to the score, best first.
    pub why: Vec<String>,
}

/// A ranking of all files.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// Files, best first; equal scores are ordered by path.
    pub files: Vec<Ranked>,
    /// Weight of each term of the query: the rarer in the code base, the higher.
    pub weights: HashMap<String, f64>,
}

/// Ranks files, given as paths relative to the root and texts, for `query`. `history` has the project's last commits.
pub fn rank(query: &str, sources: &[(&str, &str)], history: &[PastCommit]) -> Ranking {
    let words = Words::of(query);
    let (texts, paths) = read(&words, sources);
    let messages = messages(&words, sources, history);
    let size = words.list.len();
    let texts = Field::new(1.0, texts, size);
    let weighed = words.list.iter().cloned().zip(texts.weights.clone());
    let weights = weighed.collect();
    let fields = [
        texts,
        Field::new(PATH, paths, size),
        Field::new(MESSAGES, messages, size),
    ];
    let mut shares = vec![0.0; size];
    let mut files: Vec<Ranked> = (0..sources.len())
        .map(|index| {
            shares.fill(0.0);
            for (word, share) in fields.iter().flat_map(|field| field.shares(index)) {
                shares[word] += share;
            }
            Ranked {
                index,
                score: kinds::weight(sources[index].0) * shares.iter().sum::<f64>(),
                why: explained(&words, &shares),
            }
        })
        .collect();
    files.sort_by(|a, b| {
        let by_path = || sources[a.index].0.cmp(sources[b.index].0);
        b.score.total_cmp(&a.score).then_with(by_path)
    });
    Ranking { files, weights }
}

/// Counts the words in each text and in each path. A path's terms count in its text, too.
fn read(words: &Words, sources: &[(&str, &str)]) -> (Vec<Document>, Vec<Document>) {
    let read = in_parallel(sources.len(), |range| {
        let mut counter = words.counter();
        let documents = sources[range].iter().map(|(path, text)| {
            let path = counter.count(path);
            let mut text = counter.count(text);
            text.add(&path);
            (text, path)
        });
        Ok::<Vec<_>, Infallible>(documents.collect())
    });
    let Ok(halves) = read;
    halves.into_iter().flatten().unzip()
}

/// Gives the messages of earlier commits to the files that they touched.
fn messages(words: &Words, sources: &[(&str, &str)], history: &[PastCommit]) -> Vec<Document> {
    let mut documents = vec![Document::default(); sources.len()];
    let indices: HashMap<&str, usize> = sources.iter().map(|(path, _)| *path).zip(0..).collect();
    let mut counter = words.counter();
    for commit in history.iter().filter(|it| it.paths.len() <= MANY_PATHS) {
        let message = counter.count(&commit.message);
        for path in &commit.paths {
            if let Some(&index) = indices.get(path.as_str()) {
                documents[index].add(&message);
            }
        }
    }
    documents
}

/// Returns the words with the largest shares, best first.
fn explained(words: &Words, shares: &[f64]) -> Vec<String> {
    let mut best: Vec<usize> = (0..shares.len()).filter(|&at| shares[at] > 0.0).collect();
    best.sort_by(|&a, &b| shares[b].total_cmp(&shares[a]));
    best.truncate(EXPLAINED);
    best.into_iter().map(|at| words.list[at].clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(query: &str, files: &[(&'static str, &str)], history: &[PastCommit]) -> Vec<String> {
        let ranking = rank(query, files, history);
        let path = |file: &Ranked| files[file.index].0.to_owned();
        ranking.files.iter().map(path).collect()
    }

    #[test]
    fn text_path_and_history_each_bring_a_file_up() {
        let files = [
            ("a.rs", "fn other() {}"),
            ("b.rs", "fn other() {}"),
            ("c.rs", "fn parseReply() {}"),
            ("reply.rs", "fn other() {}"),
        ];
        assert_eq!(paths("Parse it", &files, &[])[0], "c.rs");
        assert_eq!(
            paths("the PARSE_REPLY", &files, &[])[..2],
            ["c.rs", "reply.rs"]
        );
        let history = [PastCommit {
            message: "Count words".into(),
            paths: vec!["gone.rs".into(), "b.rs".into()],
        }];
        assert_eq!(paths("count", &files, &history)[0], "b.rs");
    }

    #[test]
    fn a_commit_of_very_many_files_says_nothing_about_them() {
        let files = [("a.rs", ""), ("b.rs", "")];
        let mut commit = PastCommit {
            message: "Format".into(),
            paths: vec!["b.rs".into(); MANY_PATHS],
        };
        assert_eq!(paths("format", &files, &[commit.clone()])[0], "b.rs");
        commit.paths.push("c.rs".into());
        assert_eq!(paths("format", &files, &[commit])[0], "a.rs");
    }

    #[test]
    fn equals_are_ordered_by_kind_then_by_path() {
        let text = "same words";
        let files = [
            "docs/a.md",
            "src/b.rs",
            "tests/a.rs",
            "src/a.rs",
            "CHANGELOG.md",
        ];
        let expected = [
            "src/a.rs",
            "src/b.rs",
            "tests/a.rs",
            "docs/a.md",
            "CHANGELOG.md",
        ];
        assert_eq!(
            paths("words", &files.map(|path| (path, text)), &[]),
            expected
        );
        let files = ["b", "c", "a"].map(|path| (path, text));
        for query in ["", "unknown", "?!"] {
            assert_eq!(paths(query, &files, &[]), ["a", "b", "c"]);
        }
        assert!(paths("words", &[], &[]).is_empty());
    }

    #[test]
    fn a_ranking_names_its_words_and_their_weights() {
        let texts = ["the fence", "the the", "the end"];
        let sources = texts.map(|text| ("x", text));
        let ranking = rank("The the fence, missing", &sources, &[]);
        let (best, second) = (&ranking.files[0], &ranking.files[1]);
        assert_eq!(
            (best.index, &best.why[..]),
            (0, &["fence".into(), "the".into()][..])
        );
        assert_eq!((second.index, &second.why[..]), (1, &["the".into()][..]));
        let weight = |word: &str| ranking.weights[word];
        assert!(weight("missing") > weight("fence") && weight("fence") > weight("the"));
        assert_eq!(ranking.weights.len(), 3);
    }

    #[test]
    fn two_threads_rank_as_one_does() {
        let texts: Vec<String> = (0..200)
            .map(|n| format!("word{n} common {}", n % 7))
            .collect();
        let sources = texts.iter().map(|text| (&**text, &**text));
        let ranking = rank("common word150 3", &sources.collect::<Vec<_>>(), &[]);
        assert_eq!((ranking.files[0].index, ranking.files.len()), (150, 200));
    }
}
