//! Warnings about a change for its reviewer: tests that are gone or skipped, lints that are silenced, manifests. Pure.
//!
//! Knows the signs of each from how people write, not from a parser: it may be wrong, so what it says
//! is for a reader, and nothing may depend on it. Guarantees linear time, and that what is said is
//! bounded however large the change is. Files beyond 4 MB are known by their names only.

mod signs;
#[cfg(test)]
mod tests;

use memchr::{memchr_iter, memrchr};
use regex::bytes::{Regex, RegexBuilder};

use crate::sys::text::{cut, printable};

use crate::sys::diff::{FileChange, LineKind, hunks};
use signs::{Concern, LANGUAGES, Language, MANIFESTS};

/// The size beyond which a file is not looked into.
const MAX_BYTES: usize = 4 << 20;

/// Farther from its line's beginning, a sign is none: what has such lines was not written by hand.
const MAX_COLUMN: usize = 500;

/// The maximum number of things named in a sentence, and of sentences of a kind.
const MOST: usize = 20;

/// By concern, and last of manifests: what a file with one sign more is said to do, with several, and what the files
/// do that are not named any more.
const WORDS: [[&str; 3]; 5] = [
    ["", "", "files have fewer tests than before"],
    ["skips a test", "skips tests", "files skip tests"],
    [
        "leaves out all other tests",
        "leaves out all other tests",
        "files leave out tests",
    ],
    ["silences a lint", "silences lints", "files silence lints"],
    ["", "", "manifests have changed"],
];

/// Returns the warnings, one sentence each, without a full stop: first lost tests, then skipped ones, silenced lints,
/// and manifests.
pub fn warnings(changes: &[FileChange]) -> Vec<String> {
    let mut sentences: [Vec<String>; 5] = Default::default();
    for language in &LANGUAGES {
        let files = changes.iter().filter(|change| is_read(language, change));
        let files: Vec<&FileChange> = files.collect();
        for (concern, pattern) in language.signs.iter().filter(|_| !files.is_empty()) {
            let Some(sign) = Sign::of(language, pattern) else {
                continue;
            };
            let said = &mut sentences[*concern as usize];
            if *concern == Concern::Test {
                said.extend(sign.lost(&files));
            } else {
                let words = &WORDS[*concern as usize];
                said.extend(files.iter().filter_map(|file| sign.sentence(file, words)));
            }
        }
    }
    let manifests = changes.iter().filter(|change| is_manifest(change));
    sentences[4].extend(manifests.map(|change| {
        let path = code(&change.path);
        format!("changed manifest {path}: look at its dependencies")
    }));
    let sentences = sentences.into_iter().zip(&WORDS);
    let bounded = sentences.map(|(sentences, [.., rest])| bounded(sentences, rest));
    bounded.flatten().collect()
}

fn is_read(language: &Language, change: &FileChange) -> bool {
    let extension = change.path.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_some_and(|extension| language.extensions.contains(&extension))
        && change.before().len().max(change.after().len()) <= MAX_BYTES
}

/// Returns whether it names dependencies, by its name; one that is deleted has none.
fn is_manifest(change: &FileChange) -> bool {
    let (path, name) = (&change.path, change.path.rsplit('/').next());
    let is_pips = path.contains("requirements")
        && name.is_some_and(|name| name.split('.').next_back() == Some("txt"));
    change.after.is_some() && (is_pips || name.is_some_and(|name| MANIFESTS.contains(&name)))
}

/// The pattern of a sign in a language, and the beginnings of its comments.
struct Sign {
    pattern: Regex,
    comments: &'static [&'static str],
}

impl Sign {
    fn of(language: &Language, pattern: &str) -> Option<Self> {
        // The tables of Unicode make a pattern fifty times as dear.
        let mut pattern = RegexBuilder::new(pattern);
        let pattern = pattern.unicode(false).multi_line(true).build().ok()?;
        let comments = language.comments;
        Some(Self { pattern, comments })
    }

    /// Finds it in a text, but not in a string or behind the beginning of a comment.
    fn found<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        self.pattern.find_iter(text).filter_map(|found| {
            let from = found.start().saturating_sub(MAX_COLUMN);
            let near = &text[from..found.start()];
            let before = match memrchr(b'\n', near) {
                Some(at) => &near[at + 1..],
                None if from == 0 => near,
                None => return None,
            };
            let before = before.trim_ascii();
            let mut comments = self.comments.iter();
            let is_comment = comments.any(|sign| before.starts_with(sign.as_bytes()));
            let is_string = memchr_iter(b'"', before).count() % 2 == 1;
            (!is_comment && !is_string).then(|| found.as_bytes().trim_ascii())
        })
    }

    /// Names the files that have fewer than before, where all together have fewer: tests move.
    fn lost(&self, files: &[&FileChange]) -> Vec<String> {
        let count = |text| self.found(text).count();
        let counts = files
            .iter()
            .map(|file| (*file, count(file.before()), count(file.after())));
        let counts: Vec<(&FileChange, usize, usize)> = counts.collect();
        let before: usize = counts.iter().map(|(_, before, _)| before).sum();
        let after: usize = counts.iter().map(|(.., after)| after).sum();
        let lost = counts
            .iter()
            .filter(|(_, one, other)| after < before && other < one);
        let sentences = lost.map(|(file, before, after)| {
            let path = code(&file.path);
            match (&file.after, before) {
                (Some(_), _) => {
                    format!("{path} has fewer tests than before: {after} instead of {before}")
                }
                (None, 1) => format!("{path} is deleted, which had a test"),
                (None, _) => format!("{path} is deleted, which had {before} tests"),
            }
        });
        sentences.collect()
    }

    /// Tells what a file has more of than before: so many of those on added lines.
    fn sentence(&self, change: &FileChange, [one, several, _]: &[&str; 3]) -> Option<String> {
        // Most files have none: they need not be compared.
        self.found(change.after()).next()?;
        let (mut gone, mut new) = (0, Vec::new());
        for line in hunks(change.before(), change.after())?
            .iter()
            .flat_map(|hunk| &hunk.lines)
        {
            let found = self.found(line.text);
            match (line.kind, line.after_line) {
                (LineKind::Removed, _) => gone += found.count(),
                (LineKind::Added, Some(at)) => new.extend(found.map(|text| {
                    let text = code(&String::from_utf8_lossy(text));
                    format!("{text} at line {at}")
                })),
                _ => {}
            }
        }
        new.truncate(new.len().saturating_sub(gone));
        let does = if new.len() == 1 { one } else { several };
        (!new.is_empty()).then(|| format!("{} {does}: {}", code(&change.path), listed(&new)))
    }
}

/// No more sentences than are read. A last one counts those that are left out.
fn bounded(mut sentences: Vec<String>, rest: &str) -> Vec<String> {
    let more = sentences.len().saturating_sub(MOST);
    if more > 0 {
        sentences.truncate(MOST);
        sentences.push(format!("{more} more {rest}"));
    }
    sentences
}

fn listed(things: &[String]) -> String {
    let shown = things.iter().take(MOST).map(String::as_str);
    let shown = shown.collect::<Vec<_>>().join(", ");
    match things.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Formats a path or a quotation from a file: on one line, short, and without control characters.
fn code(text: &str) -> String {
    const LONGEST: usize = 120;
    let quoted = printable(&cut(text, LONGEST), &[]).replace('`', "'");
    format!("`{quoted}`")
}
