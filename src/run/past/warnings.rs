//! Warnings about a change for its reviewer: tests removed or skipped, lints silenced, manifests changed. Pure.
//!
//! The signs are textual patterns, not the result of parsing: they may be wrong, so the warnings are meant for a
//! reader, and nothing may depend on them. Guarantees linear time and a bounded number of warnings, however large the
//! change is. Files beyond 4 MiB are judged by name only.

mod commands;
mod signs;
#[cfg(test)]
mod tests;

use std::ops::Range;

use memchr::{memchr_iter, memmem, memrchr};
use regex::bytes::{Regex, RegexBuilder};

use crate::edit::comments;
use crate::record::result::WarningRecord;
use crate::sys::text::{cut, line_of, listed, printable};

use crate::sys::diff::{FileChange, LineKind, hunks};
pub(crate) use commands::{build_commands, is_run, run_by};
pub(crate) use signs::Concern;
use signs::{LANGUAGES, Language, MANIFESTS};

/// Maximum size, in bytes, of a file that is searched.
const MAX_BYTES: usize = 4 << 20;

/// Maximum column, in bytes, at which a sign counts: longer lines are usually generated.
const MAX_COLUMN: usize = 500;

/// Maximum number of items named in a sentence, and of sentences of a kind.
const MOST: usize = 20;

/// The texts of a kind of warning.
struct Words {
    /// The stable code.
    code: &'static str,
    /// The words for a file with one more sign, and for a file with several; empty if they are not used.
    one: &'static str,
    several: &'static str,
    /// The words for files that are only counted.
    rest: &'static str,
}

/// The texts of each concern.
#[rustfmt::skip]
static WORDS: [Words; 4] = [
    Words { code: "tests-fewer", one: "", several: "", rest: "files have fewer tests than before" },
    Words { code: "test-skipped", one: "skips a test", several: "skips tests", rest: "files skip tests" },
    Words { code: "test-focused", one: "leaves out all other tests", several: "leaves out all other tests", rest: "files leave out tests" },
    Words { code: "lint-silenced", one: "silences a lint", several: "silences lints", rest: "files silence lints" },
];

/// The texts for manifests.
#[rustfmt::skip]
static MANIFEST: Words = Words { code: "manifest-changed", one: "", several: "", rest: "manifests have changed" };

/// The texts for files that `build.sh` runs.
#[rustfmt::skip]
static SCRIPT: Words = Words { code: "gate-script-changed", one: "", several: "", rest: "files that build.sh runs have changed" };

impl Concern {
    fn words(self) -> &'static Words {
        &WORDS[self as usize]
    }
}

/// The code for a deleted file that had tests.
const DELETED: &str = "test-file-deleted";

/// The names for groups of codes: those about tests, and all.
const GROUPS: [&str; 2] = ["tests", "all"];

/// Checks the name of a warning's code, or of several: `tests` or `all`.
///
/// # Errors
/// The valid names.
pub fn check_code(name: &str) -> Result<String, String> {
    let words = WORDS.iter().chain([&MANIFEST, &SCRIPT]);
    let codes = words.map(|words| words.code).chain([DELETED]);
    let names: Vec<&str> = GROUPS.into_iter().chain(codes).collect();
    let is_known = names.contains(&name);
    is_known
        .then(|| name.to_owned())
        .ok_or_else(|| format!("name one or more of {}", names.join(", ")))
}

/// Returns whether these names include the code.
pub fn is_denied(names: &[String], code: &str) -> bool {
    names.iter().any(|name| match name.as_str() {
        "all" => true,
        "tests" => code.starts_with("test"),
        name => name == code,
    })
}

/// Returns the warnings, one sentence each, without a full stop: removed tests first, then skipped ones, silenced
/// lints, manifests, and what the `commands` of the build run.
pub fn warnings(changes: &[FileChange], commands: &str) -> Vec<WarningRecord> {
    let mut sentences: [Vec<WarningRecord>; 4] = Default::default();
    for language in &LANGUAGES {
        let files: Vec<&FileChange> = changes
            .iter()
            .filter(|change| is_read(language, change))
            .collect();
        for (concern, words, pattern) in language.signs {
            // A pattern takes longer to build than to search many files. If all files are new, no test was lost.
            let texts = files.iter().map(|file| match concern {
                Concern::Test => file.before(),
                _ => file.after(),
            });
            let words: Vec<_> = words.iter().map(memmem::Finder::new).collect();
            let mut found = texts.filter(|text| words.iter().any(|word| word.find(text).is_some()));
            let Some(sign) = found.next().and_then(|_| Sign::of(language, pattern)) else {
                continue;
            };
            let said = &mut sentences[*concern as usize];
            if *concern == Concern::Test {
                said.extend(sign.lost(&files));
            } else {
                let words = concern.words();
                said.extend(files.iter().filter_map(|file| sign.sentence(file, words)));
            }
        }
    }
    let manifests = changes.iter().filter(|change| is_manifest(change));
    let manifests = manifests.map(|change| {
        let path = code(&change.path);
        let message = format!("changed manifest {path}: look at its dependencies");
        record(MANIFEST.code, &change.path, None, message)
    });
    let scripts = changes.iter().filter(|change| is_run(change, commands));
    let scripts = scripts.map(|change| {
        let path = code(&change.path);
        let message = format!("{path} has changed, which build.sh runs: it judges what comes next");
        record(SCRIPT.code, &change.path, None, message)
    });
    let of_tests = &mut sentences[Concern::Test as usize];
    if of_tests.len() > MOST {
        // These come first, because those that are only counted lose their code.
        of_tests.sort_by_key(|warning| warning.code != DELETED);
    }
    let others = [
        (manifests.collect(), &MANIFEST),
        (scripts.collect(), &SCRIPT),
    ];
    let sentences = sentences.into_iter().zip(&WORDS).chain(others);
    sentences
        .flat_map(|(sentences, words)| bounded(sentences, words))
        .collect()
}

/// Returns the numbers of the lines, counted from 1, at which a file of this name has signs of the concern.
pub(crate) fn signed_lines(path: &str, text: &[u8], concern: Concern) -> Vec<usize> {
    let found = signs(path, text, concern).into_iter();
    found.map(|sign| line_of(text, sign.start)).collect()
}

/// Returns where a file of this name has signs of the concern.
pub(crate) fn signs(path: &str, text: &[u8], concern: Concern) -> Vec<Range<usize>> {
    let language = LANGUAGES.iter().find(|language| language.reads(path));
    let signs = language
        .map_or(&[][..], |language| language.signs)
        .iter()
        .filter(|(known, ..)| *known == concern)
        .filter_map(|(.., pattern)| Sign::of(language?, pattern));
    let range = |found: &[u8]| {
        let start = found.as_ptr().addr() - text.as_ptr().addr();
        start..start + found.len()
    };
    let mut ranges: Vec<Range<usize>> = signs
        .flat_map(|sign| sign.found(text).map(range).collect::<Vec<_>>())
        .collect();
    ranges.sort_unstable_by_key(|range| range.start);
    ranges
}

fn is_read(language: &Language, change: &FileChange) -> bool {
    language.reads(&change.path) && change.before().len().max(change.after().len()) <= MAX_BYTES
}

fn record(code: &'static str, path: &str, line: Option<usize>, message: String) -> WarningRecord {
    WarningRecord {
        code: code.into(),
        path: Some(path.to_owned()),
        line,
        message,
    }
}

/// Returns whether the file is a manifest of dependencies, by its name; a deleted file is not.
pub(crate) fn is_manifest(change: &FileChange) -> bool {
    let (path, name) = (&change.path, change.path.rsplit('/').next());
    let is_pips = path.contains("requirements")
        && name.is_some_and(|name| name.split('.').next_back() == Some("txt"));
    change.after.is_some() && (is_pips || name.is_some_and(|name| MANIFESTS.contains(&name)))
}

/// The pattern of a sign in a language, and the language's comments.
struct Sign {
    pattern: Regex,
    comments: comments::Language,
}

impl Sign {
    fn of(language: &Language, pattern: &str) -> Option<Self> {
        // Unicode tables would make the pattern fifty times as expensive.
        let pattern = RegexBuilder::new(pattern)
            .unicode(false)
            .multi_line(true)
            .build()
            .ok()?;
        let comments = comments::Language::of(language.extensions[0]);
        Some(Self { pattern, comments })
    }

    /// Finds the sign in a text, outside of strings and comments.
    fn found<'t>(&self, text: &'t [u8]) -> impl Iterator<Item = &'t [u8]> {
        self.pattern.find_iter(text).filter_map(|found| {
            let from = found.start().saturating_sub(MAX_COLUMN);
            let near = &text[from..found.start()];
            let start = match memrchr(b'\n', near) {
                Some(at) => from + at + 1,
                None if from == 0 => 0,
                None => return None,
            };
            let before = text[start..found.start()].trim_ascii();
            // A comment may end before the sign, or begin with it.
            let is_comment = !before.is_empty()
                && [before, &text[start..found.end()]]
                    .map(String::from_utf8_lossy)
                    .iter()
                    .all(|line| self.comments.begins(line));
            let is_string = memchr_iter(b'"', before).count() % 2 == 1;
            (!is_comment && !is_string).then(|| found.as_bytes().trim_ascii())
        })
    }

    /// Names the files with fewer tests than before, unless the total has not dropped: tests may move.
    fn lost(&self, files: &[&FileChange]) -> Vec<WarningRecord> {
        let count = |text| self.found(text).count();
        let counts: Vec<(&FileChange, usize, usize)> = files
            .iter()
            .map(|file| (*file, count(file.before()), count(file.after())))
            .collect();
        let before: usize = counts.iter().map(|(_, before, _)| before).sum();
        let after: usize = counts.iter().map(|(.., after)| after).sum();
        let lost = counts
            .iter()
            .filter(|(_, one, other)| after < before && other < one);
        let sentences = lost.map(|(file, before, after)| {
            let path = code(&file.path);
            let message = match (&file.after, before) {
                (Some(_), _) => {
                    format!("{path} has fewer tests than before: {after} instead of {before}")
                }
                (None, 1) => format!("{path} is deleted, which had a test"),
                (None, _) => format!("{path} is deleted, which had {before} tests"),
            };
            let code = if file.after.is_some() {
                Concern::Test.words().code
            } else {
                DELETED
            };
            record(code, &file.path, None, message)
        });
        sentences.collect()
    }

    /// Describes the signs added to a file: those on added lines, less the number on removed lines.
    fn sentence(&self, change: &FileChange, words: &Words) -> Option<WarningRecord> {
        // Most files have no signs and need no diff.
        self.found(change.after()).next()?;
        let (mut gone, mut new, mut first) = (0, Vec::new(), None);
        for line in hunks(change.before(), change.after())?
            .iter()
            .flat_map(|hunk| &hunk.lines)
        {
            let found = self.found(line.text);
            match (line.kind, line.after_line) {
                (LineKind::Removed, _) => gone += found.count(),
                (LineKind::Added, Some(at)) => new.extend(found.map(|text| {
                    first.get_or_insert(at);
                    let text = code(&String::from_utf8_lossy(text));
                    format!("{text} at line {at}")
                })),
                _ => {}
            }
        }
        new.truncate(new.len().saturating_sub(gone));
        let does = if new.len() == 1 {
            words.one
        } else {
            words.several
        };
        (!new.is_empty()).then(|| {
            let message = format!("{} {does}: {}", code(&change.path), listed(new, MOST));
            record(words.code, &change.path, first, message)
        })
    }
}

/// Limits the number of sentences; a final one counts those left out.
fn bounded(mut sentences: Vec<WarningRecord>, words: &Words) -> Vec<WarningRecord> {
    let more = sentences.len().saturating_sub(MOST);
    if more > 0 {
        sentences.truncate(MOST);
        sentences.push(WarningRecord {
            code: words.code.into(),
            path: None,
            line: None,
            message: format!("{more} more {}", words.rest),
        });
    }
    sentences
}

/// Formats a path or a quotation from a file: as a short single line without control characters.
fn code(text: &str) -> String {
    const LONGEST: usize = 120;
    let quoted = printable(&cut(text, LONGEST), &[]).replace('`', "'");
    format!("`{quoted}`")
}
