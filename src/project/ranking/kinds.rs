//! Weights of the kinds of files: source, tests, documents, examples, changelogs. Judged by the path alone.

/// File extensions of program text.
const SOURCES: &str = "rs py pyi pyx js mjs cjs jsx ts mts cts tsx go java kt kts scala groovy clj cljs c h cc cpp cxx hh hpp hxx \
    inl m mm cs fs vb rb rake php sh bash zsh fish ps1 swift lua pl pm ex exs erl hrl hs ml mli elm dart r jl nim zig d cr v \
    vue svelte css scss less sql proto graphql asm s cu sol tcl vim el lisp scm rkt f90";
/// Names of directories with tests.
const TESTS: &str = "test tests testing testdata spec specs e2e __tests__ __mocks__ bench benches benchmark benchmarks fuzz";
/// Names of directories with examples.
const EXAMPLES: &str = "example examples demo demos sample samples fixture fixtures";
/// Names of changelogs, without extension.
const CHANGELOGS: &str = "changelog changelogs changelog.d changes history news releases release-notes release_notes whatsnew";

/// Returns the weight of the file at `path`: 1 for program text, less for tests and everything else.
pub fn weight(path: &str) -> f64 {
    let lower = path.to_ascii_lowercase();
    let (directories, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, ""));
    let is = |list: &str, word: &str| list.split_ascii_whitespace().any(|it| it == word);
    let is_in = |list| directories.split('/').any(|name| is(list, name));
    let is_source = is(SOURCES, ending);
    if !is_source && (is(CHANGELOGS, stem) || is_in(CHANGELOGS)) {
        0.1
    } else if is_in(EXAMPLES) {
        0.3
    } else if !is_source {
        0.4
    } else if is_in(TESTS) || is_test(stem, path) {
        0.5
    } else {
        1.0
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
    fn a_path_shows_the_weight_of_its_kind() {
        for (expected, paths) in [
            (
                1.0,
                "src/main.rs lib/test.d/x.js src/latest.py src/Contest.java changes.py a/history.go",
            ),
            (
                0.5,
                "tests/a.rs src/a/tests.rs test_a.py a_test.go a.test.ts a-spec.js AppTest.java spec_helper.rb src/test/App.java conftest.py \
                 benches/x.rs",
            ),
            (
                0.4,
                "README.md docs/page.rst tests/data.txt Makefile .gitignore a.",
            ),
            (0.3, "examples/a.rs docs/examples/readme.md"),
            (
                0.1,
                "CHANGELOG.md CHANGES History.md docs/News.txt changelog.d/12.md",
            ),
        ] {
            for path in paths.split_whitespace() {
                assert!((weight(path) - expected).abs() < 1e-9, "{path}");
            }
        }
    }
}
