//! The signs of tests, skipped tests and silenced lints in source code. Pure.

use std::sync::{LazyLock, OnceLock};

use memchr::memmem;
use regex::Regex;

use super::pattern::pattern;

/// A family of languages whose tests look alike and may move among its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    Rust,
    Python,
    JavaScript,
    Go,
    Jvm,
    CSharp,
    Shell,
}

impl Language {
    /// The language of a file, by its name's end.
    pub fn of(path: &str) -> Option<Self> {
        let (_, extension) = path.rsplit_once('.')?;
        Some(match extension {
            "rs" => Self::Rust,
            "py" | "pyi" => Self::Python,
            "js" | "jsx" | "mjs" | "cjs" | "ts" | "tsx" | "mts" | "cts" | "vue" | "svelte" => {
                Self::JavaScript
            }
            "go" => Self::Go,
            "java" | "kt" | "kts" => Self::Jvm,
            "cs" => Self::CSharp,
            "sh" | "bash" | "bats" => Self::Shell,
            _ => return None,
        })
    }

    /// Whether a line, without its indentation, holds nothing but a comment.
    fn is_comment(self, line: &str) -> bool {
        match self {
            Self::Python | Self::Shell => line.starts_with('#'),
            // A line of a long comment mostly begins with a star.
            _ => ["//", "/*", "* "].iter().any(|sign| line.starts_with(sign)) || line == "*",
        }
    }
}

/// What is to be said of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// A test is skipped.
    Skip,
    /// All other tests are skipped.
    Only,
    /// A lint, or a compiler's error, is silenced.
    Silence,
}

/// A sign of something that is worth a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding<'a> {
    pub concern: Concern,
    /// Equal for findings of the same sort.
    pub kind: usize,
    /// From 1 on.
    pub line: usize,
    /// The sign as it is written.
    pub text: &'a str,
}

/// What is found in a file.
#[derive(Debug, Default)]
pub struct Reading<'a> {
    /// How many tests it has.
    pub tests: usize,
    /// First to last.
    pub findings: Vec<Finding<'a>>,
}

/// Where a sign is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// In code. In a comment it may be an example.
    Code,
    /// Anywhere: it is a comment itself.
    Comment,
}

/// The signs. A dot, or a letter, in front of what is a function's name makes another name of it:
/// hence the groups named `sign`, which are shown; elsewhere it is the whole.
#[rustfmt::skip]
const SIGNS: [(Language, Concern, Within, &str); 33] = {
    use Concern::{Only, Silence, Skip};
    use Language::{CSharp, Go, JavaScript, Jvm, Python, Rust, Shell};
    use Within::{Code, Comment};
    [
        (Rust, Skip, Code, r"#\[\s*ignore\b[^\]]*\]?"),
        (Rust, Skip, Code, r"#\[\s*cfg_attr\(.*\bignore\b[^\]]*\]?"),
        (Rust, Silence, Code, r"#\[\s*(?:cfg_attr\(.*\b)?allow\([^\]]*\]?"),
        (Rust, Silence, Code, r"#!\[\s*(?:cfg_attr\(.*\b)?allow\([^\]]*\]?"),
        (Rust, Silence, Code, r"#!?\[\s*(?:cfg_attr\(.*\b)?expect\([^\]]*\]?"),

        (Python, Skip, Code, r"@(?:pytest\.)?mark\.skip(?:if)?\b"),
        (Python, Skip, Code, r"@(?:pytest\.)?mark\.xfail\b"),
        (Python, Skip, Code, r"@(?:unittest\.)?(?:skip(?:If|Unless)?|expectedFailure)\b"),
        (Python, Skip, Code, r"\b(?:pytest\.(?:skip|xfail)|self\.skipTest)\("),
        (Python, Silence, Comment, r"(?i)#\s*(?:ruff:\s*|flake8:\s*)?noqa\b(?::\s*[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)?"),
        (Python, Silence, Comment, r"#\s*type:\s*ignore\b(?:\[[^\]]*\])?"),
        (Python, Silence, Comment, r"#\s*(?:pyright:\s*ignore\b(?:\[[^\]]*\])?|mypy:\s*ignore-errors)"),
        (Python, Silence, Comment, r"#\s*pylint:\s*disable(?:-[a-z]+)?\b(?:\s*=\s*[\w-]+(?:,\s*[\w-]+)*)?"),

        (JavaScript, Skip, Code, r"(?:^|[^.\w$])(?P<sign>(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|todo|skipIf)\b)"),
        (JavaScript, Skip, Code, r"(?:^|[^.\w$])(?P<sign>(?:xit|xtest|xspecify|xdescribe|xcontext))\s*\("),
        (JavaScript, Only, Code, r"(?:^|[^.\w$])(?P<sign>(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.only)\b\s*[(`.]"),
        (JavaScript, Only, Code, r"(?:^|[^.\w$])(?P<sign>(?:fit|fdescribe))\s*\("),
        (JavaScript, Silence, Comment, r"\beslint-disable(?:-next-line|-line)?(?:\s+[\w@/-]+)?"),
        (JavaScript, Silence, Comment, r"(?://|/\*)\s*(?P<sign>@ts-(?:ignore|nocheck|expect-error))\b"),
        (JavaScript, Silence, Comment, r"\bbiome-ignore(?:-all)?\b(?:\s+[\w/]+)?"),

        (Go, Skip, Code, r"\b[tbf]\.Skip(?:f|Now)?\("),
        (Go, Silence, Comment, r"//\s*nolint\b(?::[\w,-]+)?"),
        (Go, Silence, Comment, r"//\s*lint:(?:file-)?ignore\s+\w+"),
        (Go, Silence, Comment, r"#nosec\b(?:\s+G[0-9]+)*"),

        (Jvm, Skip, Code, r"@(?:[\w.]+\.)?(?:Disabled|Ignore)\b"),
        (Jvm, Silence, Code, r"@(?:file:)?Suppress(?:Warnings)?\b(?:\([^)]*\)?)?"),
        (Jvm, Silence, Comment, r"//\s*(?:NOSONAR|noinspection\s+\w+)"),

        (CSharp, Skip, Code, r"\b(?:Fact|Theory)\s*\(\s*Skip\s*=[^\]]*"),
        (CSharp, Skip, Code, r"\[\s*(?:[^\]]*,\s*)?Ignore\b[^\]]*\]?"),
        (CSharp, Silence, Code, r"#pragma\s+warning\s+disable\b(?:\s+[\w,\s]+)?"),
        (CSharp, Silence, Code, r"\bSuppressMessage\([^\]]*"),

        (Shell, Skip, Code, r"^skip\b"),
        (Shell, Silence, Comment, r"#\s*shellcheck\s+disable\s*=\s*\S+"),
    ]
};

/// Compiled where a file of their language is read.
static SIGN_PATTERNS: [OnceLock<Regex>; SIGNS.len()] = [const { OnceLock::new() }; SIGNS.len()];

/// Words of which a line has at least one where it has a sign, or begins a test. Most lines have none.
fn triggers(language: Language) -> &'static [&'static str] {
    match language {
        Language::Rust => &["#[", "#![", "fn "],
        Language::Python => &["test", "skip", "xfail", "Failure", "#"],
        Language::JavaScript => &[
            "it", "test", "spec", "suite", "describe", "context", "-disable", "@ts-", "-ignore",
        ],
        Language::Go => &["func ", ".Skip", "lint", "#nosec"],
        Language::Jvm => &["@", "NOSONAR", "noinspection"],
        Language::CSharp => &["[", "(", "#pragma"],
        Language::Shell => &["skip", "test", "shellcheck"],
    }
}

/// What begins a test, but for Rust's.
#[rustfmt::skip]
const TESTS: [(Language, &str); 6] = [
    (Language::Python, r"^(?:async\s+)?def\s+test\w*\s*\("),
    (Language::JavaScript, r"(?:^|[{;]\s*|=>\s*)(?:Deno\.test|[xf]?(?:it|test|specify))(?:\.\w+)*\s*[(`<]"),
    (Language::Go, r"^func\s+(?:\([^)]*\)\s*)?(?:Test|Fuzz|Benchmark|Example)(?:[^a-z]\w*)?\s*\("),
    (Language::Jvm, r"(?:^|\s)@(?:[\w.]+\.)?(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)\b"),
    (Language::CSharp, r"^\[\s*(?:[^\]]*,\s*)?(?:Fact|Theory|Test|TestCase|TestCaseSource|TestMethod|DataTestMethod)\s*[\](,]"),
    (Language::Shell, r"^(?:@test\s|(?:function\s+)?test_\w+\s*\(\))"),
];

static TEST_PATTERNS: [OnceLock<Regex>; TESTS.len()] = [const { OnceLock::new() }; TESTS.len()];

/// An attribute that makes a test of the function behind it.
static RUST_TEST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"#\[\s*(?:(?:\w+\s*::\s*)*(?:test|rstest|proptest|test_case|quickcheck|wasm_bindgen_test|gtest)\s*[\](]|cfg_attr\(.*,\s*(?:\w+::)*test\s*[,()])",
    )
});

static RUST_FUNCTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bfn\s+\w+"));

/// A function in `proptest!`, which may do without the attribute.
static RUST_PROPERTY: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bfn\s+\w+\s*\([^{]*\sin\s"));

/// Looks through a file, line by line.
pub fn read(language: Language, text: &str) -> Reading<'_> {
    let words: Vec<memmem::Finder<'_>> =
        triggers(language).iter().map(memmem::Finder::new).collect();
    let has_trigger = |text: &str| {
        words
            .iter()
            .any(|word| word.find(text.as_bytes()).is_some())
    };
    if !has_trigger(text) {
        return Reading::default();
    }
    let mut tests = Tests::of(language);
    let of_language = |kind: &usize| SIGNS[*kind].0 == language;
    let compiled = |kind: usize| SIGN_PATTERNS[kind].get_or_init(|| pattern(SIGNS[kind].3));
    let signs = (0..SIGNS.len()).filter(of_language);
    let signs: Vec<(usize, &Regex)> = signs.map(|kind| (kind, compiled(kind))).collect();
    let mut reading = Reading::default();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_ascii();
        let is_comment = language.is_comment(line);
        if !has_trigger(line) {
            continue;
        }
        if !is_comment {
            reading.tests += tests.begun_on(line);
        }
        for (kind, pattern) in &signs {
            let (_, concern, within, _) = SIGNS[*kind];
            if is_comment && within == Within::Code {
                continue;
            }
            let found = found(pattern, line).map(|text| Finding {
                concern,
                kind: *kind,
                line: index + 1,
                text,
            });
            reading.findings.extend(found);
        }
    }
    reading
}

/// Where a pattern is in a line, but not in a string.
fn found<'a>(pattern: &Regex, line: &'a str) -> impl Iterator<Item = &'a str> {
    let mut quotes = Quotes::default();
    pattern
        .captures_iter(line)
        .filter_map(|captures| captures.name("sign").or_else(|| captures.get(0)))
        .filter(move |sign| !quotes.are_open_at(sign.start(), line))
        .map(|sign| sign.as_str().trim_ascii_end())
}

/// Tells whether a place in a line is within a string. Of strings, it knows those between double
/// quotes.
#[derive(Debug, Default)]
struct Quotes {
    at: usize,
    open: bool,
    escaped: bool,
}

impl Quotes {
    /// The places that are asked for must come in order: no byte is looked at twice.
    fn are_open_at(&mut self, place: usize, line: &str) -> bool {
        for byte in &line.as_bytes()[self.at..place] {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.open = !self.open,
                _ => {}
            }
        }
        self.at = place;
        self.open
    }
}

/// Counts tests, line by line.
enum Tests {
    /// In Rust, whether an attribute has announced one.
    Rust { announced: bool },
    /// Elsewhere, what begins one.
    Other(Option<&'static Regex>),
}

impl Tests {
    fn of(language: Language) -> Self {
        if language == Language::Rust {
            return Self::Rust { announced: false };
        }
        let place = TESTS.iter().position(|(of, _)| *of == language);
        let compiled = |place: usize| TEST_PATTERNS[place].get_or_init(|| pattern(TESTS[place].1));
        Self::Other(place.map(compiled))
    }

    /// How many begin on this line.
    fn begun_on(&mut self, line: &str) -> usize {
        match self {
            Self::Other(pattern) => pattern.map_or(0, |pattern| found(pattern, line).count()),
            Self::Rust { announced } => {
                *announced |= found(&RUST_TEST, line).next().is_some();
                if found(&RUST_FUNCTION, line).next().is_none() {
                    return 0;
                }
                let is_test = std::mem::take(announced) || RUST_PROPERTY.is_match(line);
                usize::from(is_test)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Concern::{Only, Silence, Skip};
    use Language::{CSharp, Go, JavaScript, Jvm, Python, Rust, Shell};

    #[test]
    fn tests_are_counted() {
        for (language, expected, text) in [
            (Rust, 1, "#[test]\nfn a() {}\nfn b() {}\n"),
            (
                Rust,
                2,
                "#[tokio::test(flavor = \"multi_thread\")]\nasync fn a() {}\n#[rstest]\n#[case(1)]\n#[case(2)]\nfn b() {}",
            ),
            (
                Rust,
                1,
                "#[test_case(1; \"a\")]\n#[test_case(2)]\nfn a(x: u8) {}",
            ),
            (Rust, 1, "#[test] #[should_panic] fn a() {}"),
            (Rust, 1, "#[cfg_attr(not(windows), test)]\nfn a() {}"),
            (
                Rust,
                3,
                "proptest! {\n    #[test]\n    fn a(x in 0..9) {}\n    fn b(x in any::<u8>(), y in 0..9) {}\n    #[test]\n    fn c(\n        x in 0..9,\n    ) {}\n}",
            ),
            (
                Rust,
                0,
                "#[cfg(test)]\nmod tests {\n    fn a() { for x in y {} }\n}\n// #[test]\nfn b() {}\nlet x = \"#[test] fn a() {}\";",
            ),
            (
                Python,
                3,
                "def test_a():\n    pass\nclass TestB:\n    def test_b(self):\n        pass\n    async def test_c(self): pass\n    def help(self): pass\n# def test_d():",
            ),
            (
                JavaScript,
                5,
                "describe('a', () => {\n  it('b', () => {});\n  test.each([1])('c', f);\n  xit('d', f); it.only('e', f)\n  // it('f', f)\n});\nDeno.test('g', f);\n/x/.test('h'); x.it('i');",
            ),
            (JavaScript, 1, "describe('a', () => { it(\"b\", f) })"),
            (
                Go,
                3,
                "func TestA(t *testing.T) {}\nfunc (s *Suite) TestB() {}\nfunc FuzzC(f *testing.F) {}\nfunc Testimony() {}\nfunc help() {}",
            ),
            (
                Jvm,
                3,
                "@Test\nvoid a() {}\n@Test fun `b c`() {}\n  @org.junit.jupiter.api.ParameterizedTest\n  void c() {}\n// @Test\n@TestInstance class X",
            ),
            (
                CSharp,
                4,
                "[Fact]\n[Theory]\n[Test, Order(1)]\n[Category(\"x\"), TestMethod]\n[TestFixture]",
            ),
            (Shell, 2, "@test \"a\" {\n}\ntest_b() {\n}\ntest -f c\n"),
        ] {
            assert_eq!(read(language, text).tests, expected, "{text}");
        }
    }

    /// What is found in one line.
    fn signs(language: Language, line: &str) -> Vec<(Concern, &str)> {
        let findings = read(language, line).findings;
        findings
            .into_iter()
            .map(|finding| (finding.concern, finding.text))
            .collect()
    }

    /// Lines with a sign, and the sign.
    #[rustfmt::skip]
    const WRITTEN: [(Language, Concern, &str, &str); 37] = [
        (Rust, Skip, "#[ignore]", "#[ignore]"),
        (Rust, Skip, "#[test] #[ignore = \"slow\"] fn a() {}", "#[ignore = \"slow\"]"),
        (Rust, Skip, "#[cfg_attr(miri, ignore)]", "#[cfg_attr(miri, ignore)]"),
        (Rust, Silence, "    #[allow(dead_code)]", "#[allow(dead_code)]"),
        (Rust, Silence, "#![allow(clippy::all)]", "#![allow(clippy::all)]"),
        (Rust, Silence, "#[expect(", "#[expect("),
        (Rust, Silence, "#[cfg_attr(test, allow(unused))]", "#[cfg_attr(test, allow(unused))]"),
        (Python, Skip, "@pytest.mark.skip(reason='x')", "@pytest.mark.skip"),
        (Python, Skip, "@pytest.mark.xfail", "@pytest.mark.xfail"),
        (Python, Skip, "@unittest.skipIf(x, 'y')", "@unittest.skipIf"),
        (Python, Skip, "    pytest.skip('x')", "pytest.skip("),
        (Python, Silence, "import a  # noqa: E402,F401", "# noqa: E402,F401"),
        (Python, Silence, "# NOQA", "# NOQA"),
        (Python, Silence, "x = 1  # type: ignore[assignment]", "# type: ignore[assignment]"),
        (Python, Silence, "# pylint: disable=no-member, unused-import", "# pylint: disable=no-member, unused-import"),
        (Python, Silence, "x # pyright: ignore", "# pyright: ignore"),
        (JavaScript, Skip, "it.skip('a', f)", "it.skip"),
        (JavaScript, Skip, "  describe.skip('a', f)", "describe.skip"),
        (JavaScript, Skip, "test.concurrent.skip('a', f)", "test.concurrent.skip"),
        (JavaScript, Skip, "xdescribe('a', f)", "xdescribe"),
        (JavaScript, Only, "test.only('a', f)", "test.only"),
        (JavaScript, Only, "fit('a', f)", "fit"),
        (JavaScript, Silence, "// eslint-disable-next-line no-console", "eslint-disable-next-line no-console"),
        (JavaScript, Silence, "/* eslint-disable */", "eslint-disable"),
        (JavaScript, Silence, "// @ts-expect-error: x", "@ts-expect-error"),
        (JavaScript, Silence, "{/* @ts-ignore */}", "@ts-ignore"),
        (Go, Skip, "t.Skip(\"x\")", "t.Skip("),
        (Go, Silence, "x() //nolint:errcheck,gosec // why", "//nolint:errcheck,gosec"),
        (Jvm, Skip, "@Disabled(\"x\")", "@Disabled"),
        (Jvm, Skip, "@org.junit.Ignore", "@org.junit.Ignore"),
        (Jvm, Silence, "@SuppressWarnings(\"unchecked\")", "@SuppressWarnings(\"unchecked\")"),
        (Jvm, Silence, "@file:Suppress(\"x\")", "@file:Suppress(\"x\")"),
        (CSharp, Skip, "[Fact(Skip = \"x\")]", "Fact(Skip = \"x\")"),
        (CSharp, Skip, "[Test, Ignore(\"x\")]", "[Test, Ignore(\"x\")]"),
        (CSharp, Silence, "#pragma warning disable CS0168", "#pragma warning disable CS0168"),
        (Shell, Skip, "  skip 'x'", "skip"),
        (Shell, Silence, "# shellcheck disable=SC2086", "# shellcheck disable=SC2086"),
    ];

    #[test]
    fn every_sign_is_found_as_it_is_written() {
        for (language, concern, line, shown) in WRITTEN {
            assert_eq!(signs(language, line), [(concern, shown)], "{line}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        for (language, line) in [
            (Rust, "// #[ignore]"),
            (Rust, "/// #[allow(dead_code)]"),
            (Rust, "assert_eq!(x, \"#[allow(dead_code)]\");"),
            (Rust, "#[derive(Debug)] struct Ignore;"),
            (Rust, "let x = option.expect(\"x\");"),
            (Python, "# @pytest.mark.skip"),
            (Python, "print(\"# noqa\")"),
            (Python, "# types: ignored"),
            (JavaScript, "model.fit(x)"),
            (JavaScript, "split.only(x)"),
            (JavaScript, "// it.skip('a')"),
            (JavaScript, " * it.only('a')"),
            (JavaScript, "exit(1)"),
            (Go, "rest.Skip(1)"),
            (Jvm, "// @Disabled"),
            (Jvm, "@IgnoreCase"),
            (CSharp, "x[IgnoreCase]"),
            (Shell, "skipped=1"),
            (Shell, "# skip"),
        ] {
            assert_eq!(signs(language, line), [], "{line}");
        }
    }

    #[test]
    fn lines_are_numbered_from_one() {
        let findings = read(Language::Rust, "\n\r\n  #[ignore]\r\n").findings;
        assert_eq!(findings[0].line, 3);
    }
}
