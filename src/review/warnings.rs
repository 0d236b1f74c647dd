//! What a reviewer should look at first in a change: tests that are gone or skipped, lints that are
//! silenced, dependencies that are new. Pure.
//!
//! Knows the signs of each from how people write, not from a parser: it may be wrong, so what it says
//! is for a reader, and nothing may depend on it. Guarantees linear time, and that what is said is
//! bounded however large the change is. Files that are not UTF-8, or beyond 4 MB, are passed over.

mod manifest;
mod pattern;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use crate::record::diff::{FileChange, Kind, State, hunks};
use manifest::{Dependencies, Format};
use source::{Concern, Finding, Language};

/// The size beyond which a file is not looked into.
const MAX_BYTES: usize = 4 << 20;

/// How many things one sentence names, and how many sentences of a kind there are.
const MOST: usize = 20;

/// What is worth a look, one sentence each, without a full stop: first lost tests, then skipped ones,
/// silenced lints, and dependencies.
#[must_use]
pub fn warnings(changes: &[FileChange]) -> Vec<String> {
    let sources: Vec<Source> = changes.iter().filter_map(Source::of).collect();
    let mut warnings = bounded(lost_tests(&sources), "files have fewer tests than before");
    for (concern, rest) in [
        (Concern::Skip, "files skip tests"),
        (Concern::Only, "files leave out tests"),
        (Concern::Silence, "files silence lints"),
    ] {
        let sentences = sources.iter().filter_map(|source| source.sentence(concern));
        warnings.extend(bounded(sentences.collect(), rest));
    }
    let dependencies = changes.iter().flat_map(dependencies).collect();
    warnings.extend(bounded(dependencies, "changes of dependencies"));
    warnings
}

/// A source file that changed.
struct Source<'a> {
    change: &'a FileChange,
    language: Language,
    tests_before: usize,
    tests_after: usize,
    /// What there is more of than before.
    new: Vec<Finding<'a>>,
}

impl<'a> Source<'a> {
    fn of(change: &'a FileChange) -> Option<Self> {
        let language = Language::of(&change.path)?;
        let (before, after) = texts(change)?;
        let (before, after) = (
            source::read(language, before),
            source::read(language, after),
        );
        Some(Self {
            change,
            language,
            tests_before: before.tests,
            tests_after: after.tests,
            new: new_findings(change, &before.findings, after.findings),
        })
    }

    fn sentence(&self, concern: Concern) -> Option<String> {
        let found = self.new.iter().filter(|finding| finding.concern == concern);
        let found: Vec<String> = found
            .map(|finding| format!("{} at line {}", code(finding.text), finding.line))
            .collect();
        let does = match (concern, found.len()) {
            (_, 0) => return None,
            (Concern::Skip, 1) => "skips a test",
            (Concern::Skip, _) => "skips tests",
            (Concern::Only, _) => "leaves out all other tests",
            (Concern::Silence, 1) => "silences a lint",
            (Concern::Silence, _) => "silences lints",
        };
        let path = code(&self.change.path);
        Some(format!("{path} {does}: {}", listed(&found)))
    }
}

/// What the file has more of than before, by kind; of each kind so many of those on added lines.
fn new_findings<'a>(
    change: &FileChange,
    before: &[Finding],
    after: Vec<Finding<'a>>,
) -> Vec<Finding<'a>> {
    let mut more: BTreeMap<usize, usize> = BTreeMap::new();
    for finding in &after {
        *more.entry(finding.kind).or_default() += 1;
    }
    for finding in before {
        more.entry(finding.kind)
            .and_modify(|count| *count = count.saturating_sub(1));
    }
    if more.values().all(|count| *count == 0) {
        return Vec::new();
    }
    let added = added_lines(change);
    let is_added = |line| added.as_ref().is_none_or(|added| added.contains(&line));
    let mut is_new = |finding: &Finding| {
        let left = more.get_mut(&finding.kind).filter(|left| **left > 0);
        match left {
            Some(left) if is_added(finding.line) => {
                *left -= 1;
                true
            }
            _ => false,
        }
    };
    after
        .into_iter()
        .filter(|finding| is_new(finding))
        .collect()
}

/// The numbers of the lines that were not there before; `None` where that cannot be told.
fn added_lines(change: &FileChange) -> Option<BTreeSet<usize>> {
    let hunks = hunks(bytes(change.before.as_ref()), bytes(change.after.as_ref()))?;
    let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
    let added = lines.filter(|line| line.kind == Kind::Added);
    Some(added.filter_map(|line| line.after_line).collect())
}

/// Names the files that lost tests, where their language has fewer in all: tests move.
fn lost_tests(sources: &[Source]) -> Vec<String> {
    let mut totals: BTreeMap<Language, (usize, usize)> = BTreeMap::new();
    for source in sources {
        let (before, after) = totals.entry(source.language).or_default();
        *before += source.tests_before;
        *after += source.tests_after;
    }
    let has_lost = |source: &&Source| {
        let fewer = totals
            .get(&source.language)
            .is_some_and(|(before, after)| after < before);
        fewer && source.tests_after < source.tests_before
    };
    let sentence = |source: &Source| {
        let path = code(&source.change.path);
        match (source.tests_before, source.tests_after) {
            (1, 0) if source.change.after.is_none() => {
                format!("{path} is deleted, which had a test")
            }
            (before, _) if source.change.after.is_none() => {
                format!("{path} is deleted, which had {before} tests")
            }
            (before, after) => {
                format!("{path} has fewer tests than before: {after} instead of {before}")
            }
        }
    };
    sources.iter().filter(has_lost).map(sentence).collect()
}

/// The dependencies of a manifest that are new, or come from elsewhere.
fn dependencies(change: &FileChange) -> Vec<String> {
    let read = || {
        let format = Format::of(&change.path)?;
        let (before, after) = texts(change)?;
        let before = match change.before {
            Some(_) => manifest::read(format, before)?,
            None => Dependencies::default(),
        };
        Some((before, manifest::read(format, after)?))
    };
    // Whoever builds the project will say what is wrong with a manifest that cannot be read.
    let Some((before, after)) = read().filter(|_| change.after.is_some()) else {
        return Vec::new();
    };
    let path = code(&change.path);
    let (mut new, mut moved) = (Vec::new(), Vec::new());
    for (name, places) in &after.0 {
        let known = before.0.get(name);
        let place = places
            .iter()
            .find(|place| known.is_none_or(|known| !known.contains(*place)));
        let from = place
            .map(|place| format!(" from {}", code(place)))
            .unwrap_or_default();
        match (known, place) {
            (None, _) => new.push(format!("{}{from}", code(name))),
            (Some(_), Some(_)) => moved.push(format!("{}{from}", code(name))),
            (Some(_), None) => {}
        }
    }
    let new = (!new.is_empty()).then(|| {
        let what = if new.len() == 1 {
            "a new dependency"
        } else {
            "new dependencies"
        };
        format!("{path} has {what}: {}", listed(&new))
    });
    let moved = (!moved.is_empty()).then(|| format!("{path} now takes {}", listed(&moved)));
    new.into_iter().chain(moved).collect()
}

/// Both sides of a change as text. `None` where one of them is not looked into, or nothing changed.
fn texts(change: &FileChange) -> Option<(&str, &str)> {
    let (before, after) = (bytes(change.before.as_ref()), bytes(change.after.as_ref()));
    if before == after || before.len().max(after.len()) > MAX_BYTES {
        return None;
    }
    Some((
        std::str::from_utf8(before).ok()?,
        std::str::from_utf8(after).ok()?,
    ))
}

fn bytes(state: Option<&State>) -> &[u8] {
    state.map_or(&[], |state| &state.content)
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

/// What is quoted from a file or is a path: on one line, short, and without control characters.
fn code(text: &str) -> String {
    const LONGEST: usize = 120;
    let shown = |char: char| match char {
        '`' => '\'',
        char if char.is_control() => char::REPLACEMENT_CHARACTER,
        char => char,
    };
    let mut quoted: String = text.chars().take(LONGEST).map(shown).collect();
    if text.chars().nth(LONGEST).is_some() {
        quoted.push('…');
    }
    format!("`{quoted}`")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn state(content: &str) -> State {
        State {
            content: content.into(),
            mode: 0o644,
        }
    }

    /// A change of a file; what is empty is not there.
    fn change(path: &str, before: &str, after: &str) -> FileChange {
        let some = |content: &str| (!content.is_empty()).then(|| state(content));
        FileChange {
            path: path.to_owned(),
            before: some(before),
            after: some(after),
        }
    }

    fn one(path: &str, before: &str, after: &str) -> Vec<String> {
        warnings(&[change(path, before, after)])
    }

    const TWO: &str = "#[test]\nfn a() {}\n\n    #[tokio::test]\n    async fn b() {}\n";
    const ONE: &str = "#[test]\nfn a() {}\n";

    #[test]
    fn lost_tests_are_told() {
        for (changes, expected) in [
            (
                vec![change("a.rs", TWO, ONE)],
                vec!["`a.rs` has fewer tests than before: 1 instead of 2"],
            ),
            (
                vec![change("a.rs", TWO, "")],
                vec!["`a.rs` is deleted, which had 2 tests"],
            ),
            (
                vec![change("a.rs", ONE, "")],
                vec!["`a.rs` is deleted, which had a test"],
            ),
            (vec![change("a.rs", ONE, TWO)], vec![]),
            // Moved.
            (
                vec![change("a.rs", TWO, ""), change("b.rs", "", TWO)],
                vec![],
            ),
            (
                vec![change("a.rs", TWO, ONE), change("b.rs", ONE, TWO)],
                vec![],
            ),
            // To another language.
            (
                vec![
                    change("a.rs", ONE, ""),
                    change("b.py", "", "def test_a(): pass\n"),
                ],
                vec!["`a.rs` is deleted, which had a test"],
            ),
            // Some of them moved.
            (
                vec![change("a.rs", TWO, "//\n"), change("b.rs", "", ONE)],
                vec!["`a.rs` has fewer tests than before: 0 instead of 2"],
            ),
        ] {
            assert_eq!(warnings(&changes), expected, "{changes:?}");
        }
    }

    #[test]
    fn what_is_new_is_told_once_for_each_file() {
        for (path, before, after, expected) in [
            (
                "x.rs",
                ONE,
                "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n",
                "`x.rs` skips a test: `#[ignore = \"slow\"]` at line 2",
            ),
            (
                "x.rs",
                "fn a() {}\n",
                "#![allow(unused)]\n#[allow(dead_code)]\nfn a() {}\n",
                "`x.rs` silences lints: `#![allow(unused)]` at line 1, `#[allow(dead_code)]` at line 2",
            ),
            // The new one of two that look alike.
            (
                "x.py",
                "a() # noqa\n",
                "b() # noqa\na() # noqa\n",
                "`x.py` silences a lint: `# noqa` at line 1",
            ),
            (
                "x.js",
                "it('a', a)\n",
                "it.only('a', a)\n",
                "`x.js` leaves out all other tests: `it.only` at line 1",
            ),
            (
                "new.go",
                "",
                "package a\n\nx() //nolint:errcheck\n",
                "`new.go` silences a lint: `//nolint:errcheck` at line 3",
            ),
        ] {
            assert_eq!(one(path, before, after), [expected]);
        }
        for (path, before, after) in [
            // As many as before.
            (
                "x.rs",
                "#[allow(dead_code)]\nfn a() {}\n",
                "fn b() {}\n\n#[allow(unused)]\nfn a() {}\n",
            ),
            ("x.rs", "#[allow(dead_code)]\n", "fn b() {}\n"),
            ("x.txt", "", "#[allow(dead_code)]\n"),
            ("x", "", "# noqa\n"),
        ] {
            assert_eq!(one(path, before, after), [""; 0]);
        }
    }

    #[test]
    fn new_dependencies_and_new_places_are_told() {
        let before = "[dependencies]\nserde = '1'\n";
        for (path, before, after, expected) in [
            (
                "Cargo.toml",
                before,
                "[dependencies]\nserde = '2'\n",
                vec![],
            ),
            ("Cargo.toml", before, "[dependencies]\n", vec![]),
            (
                "Cargo.toml",
                before,
                "[dependencies]\nserde = '1'\nlog = '1'\n",
                vec!["`Cargo.toml` has a new dependency: `log`"],
            ),
            (
                "a/Cargo.toml",
                before,
                "[dependencies]\nserde = { git = 'https://me:secret@x.org/serde' }\nlog = { path = '../log' }\nrand = '1'\n",
                vec![
                    "`a/Cargo.toml` has new dependencies: `log` from `../log`, `rand`",
                    "`a/Cargo.toml` now takes `serde` from `https://x.org/serde`",
                ],
            ),
            // Nothing can be said of what cannot be read.
            ("Cargo.toml", before, "[dependencies\nlog = '1'\n", vec![]),
            ("Cargo.toml", "[", "[dependencies]\nlog = '1'\n", vec![]),
            ("Cargo.toml", before, "", vec![]),
            (
                "package.json",
                "",
                r#"{"dependencies": {"left-pad": "1"}}"#,
                vec!["`package.json` has a new dependency: `left-pad`"],
            ),
        ] {
            assert_eq!(one(path, before, after), expected, "{after}");
        }
    }

    #[test]
    fn what_is_said_is_bounded() {
        let many: String = (0..30).map(|nth| format!("d{nth:02} = '1'\n")).collect();
        let told = one(
            "Cargo.toml",
            "[dependencies]\n",
            &format!("[dependencies]\n{many}"),
        );
        assert!(told[0].ends_with("`d18`, `d19` and 10 more"), "{told:?}");
        let files: Vec<FileChange> = (0..30)
            .map(|nth| change(&format!("{nth}.rs"), TWO, ONE))
            .collect();
        let told = warnings(&files);
        assert_eq!(told.len(), MOST + 1);
        assert_eq!(told[MOST], "10 more files have fewer tests than before");
        let told = one(&format!("a\n`{}.rs", "b".repeat(500)), ONE, "//\n");
        assert!(
            told[0].starts_with("`a\u{fffd}'b") && told[0].len() < 250,
            "{told:?}"
        );
    }

    #[test]
    fn binary_and_large_files_are_passed_over() {
        let large = "#[allow(x)]\n".repeat(MAX_BYTES / 12 + 1);
        assert_eq!(one("x.rs", "", &large), [""; 0]);
        let mut binary = change("x.rs", ONE, "");
        binary.after = Some(State {
            content: vec![0xff],
            mode: 0o644,
        });
        assert_eq!(warnings(&[binary]), [""; 0]);
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(
            paths in prop::collection::vec(
                prop_oneof![
                    any::<String>(),
                    "(a/)?(Cargo.toml|package.json|pyproject.toml|requirements.txt|go.mod|Gemfile)",
                    "[a.]{0,3}\\.(rs|py|js|go|kt|cs|sh)",
                ],
                1..5,
            ),
            contents in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..200),
                    "([\\[\\]{}()\"'#@=:,/*.\n \\\\é]|dependencies|test|fn a|git|replace|require|allow|ignore|expect|noqa|it|only){0,60}".prop_map(String::into_bytes),
                ],
                10,
            ),
        ) {
            let mut contents = contents.into_iter().map(|content| (content.len() % 7 > 0).then_some(State { content, mode: 0o644 }));
            let changes: Vec<FileChange> = paths.into_iter()
                .map(|path| FileChange { path, before: contents.next().flatten(), after: contents.next().flatten() })
                .collect();
            prop_assert!(warnings(&changes).iter().all(|warning| !warning.contains('\n')));
        }
    }
}
