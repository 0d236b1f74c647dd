//! Kinds of files: source, tests, documents, examples, changelogs. Judged by the path alone.

/// The kind of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Program text.
    Source,
    /// Program text that tests or measures.
    Test,
    /// Documents, settings, data, and all else.
    Other,
    /// Examples and samples, of any form.
    Example,
    /// Lists of changes.
    Changelog,
}

/// Endings of program text.
const SOURCES: &str = "rs py pyi pyx js mjs cjs jsx ts mts cts tsx go java kt kts scala groovy clj cljs c h cc cpp cxx hh hpp hxx \
    inl m mm cs fs vb rb rake php sh bash zsh fish ps1 swift lua pl pm ex exs erl hrl hs ml mli elm dart r jl nim zig d cr v \
    vue svelte css scss less sql proto graphql asm s cu sol tcl vim el lisp scm rkt f90";
/// Names of directories with tests.
const TESTS: &str = "test tests testing testdata spec specs e2e __tests__ __mocks__ bench benches benchmark benchmarks fuzz";
/// Names of directories with examples.
const EXAMPLES: &str = "example examples demo demos sample samples fixture fixtures";
/// Names of changelogs, without ending.
const CHANGELOGS: &str = "changelog changelogs changelog.d changes history news releases release-notes release_notes whatsnew";

impl Kind {
    /// Returns the kind of the file at `path`.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let lower = path.to_ascii_lowercase();
        let (directories, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
        let is = |list: &str, word: &str| list.split_ascii_whitespace().any(|it| it == word);
        let is_in = |list| directories.split('/').any(|name| is(list, name));
        let is_source = is(SOURCES, ending);
        if !is_source && (is(CHANGELOGS, stem) || is_in(CHANGELOGS)) {
            Self::Changelog
        } else if is_in(EXAMPLES) {
            Self::Example
        } else if !is_source {
            Self::Other
        } else if is_in(TESTS) || is_test(stem, path) {
            Self::Test
        } else {
            Self::Source
        }
    }

    /// Returns the weight of a file of this kind.
    #[must_use]
    pub fn weight(self) -> f64 {
        match self {
            Self::Source => 1.0,
            Self::Test => 0.5,
            Self::Other => 0.4,
            Self::Example => 0.3,
            Self::Changelog => 0.1,
        }
    }
}

/// Returns whether a file's name is that of a test: `test_x`, `x_test`, `x.test`, `x-spec`, `XTest`.
fn is_test(stem: &str, path: &str) -> bool {
    let mut words = stem.split(['.', '_', '-']);
    let is_word = |word: &str| matches!(word, "test" | "tests" | "spec" | "conftest");
    let ends = words.clone().next().is_some_and(is_word) || words.next_back().is_some_and(is_word);
    let original = path.rsplit_once('.').map_or(path, |(stem, _)| stem);
    ends || original.ends_with("Test") || original.ends_with("Tests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_kind() {
        for (kind, paths) in [
            (
                Kind::Source,
                "src/main.rs lib/test.d/x.js src/latest.py src/Contest.java changes.py a/history.go",
            ),
            (
                Kind::Test,
                "tests/a.rs src/a/tests.rs test_a.py a_test.go a.test.ts a-spec.js AppTest.java spec_helper.rb src/test/App.java conftest.py \
                 benches/x.rs",
            ),
            (
                Kind::Other,
                "README.md docs/page.rst tests/data.txt Makefile .gitignore a.",
            ),
            (Kind::Example, "examples/a.rs docs/examples/readme.md"),
            (
                Kind::Changelog,
                "CHANGELOG.md CHANGES History.md docs/News.txt changelog.d/12.md",
            ),
        ] {
            for path in paths.split_whitespace() {
                assert_eq!(Kind::of(path), kind, "{path}");
            }
        }
    }
}
