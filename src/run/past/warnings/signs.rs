//! Patterns for tests, skipped tests and silenced lints in source code, and the names of manifests.

use Concern::{Only, Silence, Skip, Test};

/// The meaning of a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// The start of a test.
    Test,
    /// A test is skipped.
    Skip,
    /// All other tests are skipped.
    Only,
    /// A lint or compiler error is silenced.
    Silence,
}

/// A family of languages whose tests look alike and may move between its files.
#[derive(Debug)]
pub struct Language {
    /// File extensions.
    pub extensions: &'static [&'static str],
    /// Byte-based patterns, for lines or whole texts, each with words at least one of which is in every match.
    pub signs: &'static [(Concern, &'static [&'static str], &'static str)],
}

impl Language {
    /// Returns whether the file at `path` is in one of these languages, by its extension.
    pub fn reads(&self, path: &str) -> bool {
        let extension = path.rsplit_once('.').map(|(_, extension)| extension);
        extension.is_some_and(|extension| self.extensions.contains(&extension))
    }
}

/// All supported languages.
#[rustfmt::skip]
pub const LANGUAGES: [Language; 13] = [
    Language {
        extensions: &["rs"],
        signs: &[
            (Test, &["#["], r"#\[\s*(?:(?:\w+\s*::\s*)*(?:test|rstest|proptest|test_case|quickcheck|gtest)\s*[\](]|cfg_attr\(.*,\s*(?:\w+::)*test\s*[,()])"),
            (Skip, &["ignore", "cfg("], r"#\[\s*(?:(?:cfg_attr\(.*)?\bignore\b[^\]\n]*\]?|cfg\(\s*(?:any\(\s*\)|false)\s*\))"),
            (Silence, &["allow(", "expect(", "rustfmt::skip"], r"#!?\[\s*(?:cfg_attr\(.*)?\b(?:(?:allow|expect)\(|rustfmt::skip\b)[^\]\n]*\]?"),
        ],
    },
    Language {
        extensions: &["py", "pyi"],
        signs: &[
            (Test, &["def"], r"^[ \t]*(?:async\s+)?def\s+test\w*\s*\("),
            (Skip, &["skip", "xfail", "expectedFailure"], r"(?:@|^pytestmark\b.*?)(?:pytest\.)?mark\.(?:skip(?:if)?|xfail)\b|@(?:unittest\.)?(?:skip(?:If|Unless)?|expectedFailure)\b|\b(?:pytest\.(?:skip|xfail)|self\.skipTest)\("),
            (Silence, &["#"], r"#\s*(?:(?:ruff:\s*|flake8:\s*)?(?i:noqa)\b(?::\s*[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)?|(?:type|pyright|ty):\s*ignore\b(?:\[[^\]\n]*\])?|pyre-(?:ignore|fixme)[\w-]*|mypy:\s*(?:ignore-errors|disable-error-code|allow-)|pyright:\s*(?:basic|standard|\w+\s*=\s*(?:false|none))\b|pragma:\s*no\s*(?:cover|branch)|fmt:\s*(?:off|skip)\b|yapf:\s*disable\b|isort:\s*(?:off|skip)|nosec\b|pylint:\s*(?:skip-file|disable(?:-[a-z]+)?)\b(?:\s*=\s*[\w-]+(?:,\s*[\w-]+)*)?)"),
        ],
    },
    Language {
        extensions: &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"],
        signs: &[
            (Test, &["it", "test", "specify"], r"(?:^|[{;>])[ \t]*(?:Deno\.test|[xf]?(?:it|test|specify))(?:\.\w+)*\s*[(`<]"),
            (Skip, &["skip", "todo", "xit", "xtest", "xspecify", "xdescribe", "xcontext"], r"^[ \t]*(?:(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.(?:skip|todo|skipIf)\b|(?:xit|xtest|xspecify|xdescribe|xcontext)\b)"),
            (Only, &["only", "fit", "fdescribe"], r"^[ \t]*(?:(?:it|test|describe|context|suite|specify)(?:\.\w+)*\.only\b|(?:fit|fdescribe)\b)"),
            (Silence, &["//", "/*"], r"(?://|/\*)\s*(?:(?:es|ox)lint-disable(?:-next-line|-line)?(?:\s+[\w@/-]+)?|@ts-(?:ignore|nocheck|expect-error)\b|(?:istanbul|c8|v8)\s+ignore\b|prettier-ignore\b|deno-lint-ignore\b[\w-]*|tslint:disable\b[\w:-]*|biome-ignore(?:-all)?\b(?:\s+[\w/]+)?)"),
        ],
    },
    Language {
        extensions: &["go"],
        signs: &[
            (Test, &["func"], r"^func\s+(?:\([^)\n]*\)\s*)?(?:Test|Fuzz|Benchmark|Example)(?:[^a-z\n]\w*)?\s*\("),
            (Skip, &["Skip"], r"\b[tbf]\.Skip(?:f|Now)?\("),
            (Silence, &["//"], r"//\s*(?:nolint\b(?::[\w,-]+)?|lint:(?:file-)?ignore\s+\w+|#nosec\b(?:\s+G[0-9]+)*|revive:disable\b[\w:-]*|Code generated .*DO NOT EDIT)"),
        ],
    },
    Language {
        extensions: &["java", "kt", "kts"],
        signs: &[
            (Test, &["@"], r"@(?:[\w.]+\.)?(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)\b"),
            (Skip, &["Disabled", "Ignore"], r"@(?:[\w.]+\.)?(?:Disabled|Ignore)\b"),
            (Silence, &["Suppress", "//"], r"@(?:file:)?Suppress(?:FB)?(?:Warnings)?\b(?:\([^)\n]*\)?)?|//\s*(?:NOSONAR|NOPMD|CHECKSTYLE:OFF|spotless:off|@formatter:off|noinspection\s+\w+)"),
        ],
    },
    Language {
        extensions: &["cs"],
        signs: &[
            (Test, &["["], r"^[ \t]*\[\s*(?:[^\]\n]*,\s*)?(?:Fact|Theory|Test|TestCase|TestCaseSource|TestMethod|DataTestMethod)\s*[\](,]"),
            (Skip, &["Skip", "Ignore"], r"\b(?:Fact|Theory)\s*\(\s*Skip\s*=[^\]\n]*|\[\s*(?:[^\]\n]*,\s*)?Ignore\b[^\]\n]*\]?"),
            (Silence, &["#pragma", "#nullable", "ReSharper", "<auto", "SuppressMessage(", "ExcludeFromCodeCoverage"], r"#pragma\s+warning\s+disable\b(?:\s+\w+)*|#nullable\s+disable\b|//\s*(?:ReSharper\s+disable\b|<auto-?generated\b)|\bSuppressMessage\([^\]\n]*|\bExcludeFromCodeCoverage(?:\([^\]\n]*|\s*\])"),
        ],
    },
    Language {
        extensions: &["c", "cc", "cpp", "cxx", "h", "hpp"],
        signs: &[
            (Test, &["TEST", "SCENARIO", "Test(", "test_"], r"^[ \t]*(?:(?:TYPED_|BOOST_AUTO_|START_)?TEST(?:_F|_P|_CASE|_METHOD)?|SCENARIO|Test)\s*\(|^(?:static\s+)?(?:void|int|bool)\s+test_\w+\s*\("),
            (Skip, &["SKIP", "DISABLED_", "IGNORE"], r"\bGTEST_SKIP\(|\bDISABLED_\w+|\bTEST_IGNORE\w*|\bSKIP\("),
            (Silence, &["#pragma", "NOLINT", "cppcheck-suppress", "clang-format off", "LCOV_EXCL_", "no_sanitize"], r"#pragma\s+(?:GCC|clang)\s+diagnostic\s+ignored\b[^\n]*|#pragma\s+warning\s*\(\s*disable[^\n]*|(?://|/\*)\s*(?:NOLINT\w*|cppcheck-suppress\b|clang-format off\b|LCOV_EXCL_\w+)|__attribute__\s*\(\(\s*no_sanitize\w*(?:\([^)\n]*\))?\s*\)\)"),
        ],
    },
    Language {
        extensions: &["rb"],
        signs: &[
            (Test, &["it", "test", "specify", "scenario"], r#"^[ \t]*(?:(?:it|specify|scenario|test)[ (]+["']|def\s+test_\w+)"#),
            (Skip, &["xit", "xdescribe", "xcontext", "xspecify", "pending", "skip"], r"^[ \t]*(?:xit|xdescribe|xcontext|xspecify|pending|skip)\b"),
            (Only, &["fit", "fdescribe", "fcontext", "focus"], r"^[ \t]*(?:fit|fdescribe|fcontext)\b|\bfocus: true"),
            (Silence, &["rubocop:", "standard:disable", ":nocov:"], r"#\s*(?:(?:rubocop:(?:disable|todo)|standard:disable)\b(?:\s+[\w/]+)?|:nocov:)"),
        ],
    },
    Language {
        extensions: &["php"],
        signs: &[
            (Test, &["test", "Test", "it("], r"\bfunction\s+test\w*\s*\(|#\[(?:\w+\\)*Test\]|^[ \t]*(?:it|test)\s*\("),
            (Skip, &["markTest", "->skip(", "->todo("], r"\bmarkTest(?:Skipped|Incomplete)\(|->(?:skip|todo)\("),
            (Silence, &["phpcs:", "@phpstan-ignore", "@psalm-suppress", "@codeCoverageIgnore"], r"(?://|#|/\*+)\s*(?:phpcs:(?:ignore|disable)\b|@phpstan-ignore[\w-]*|@psalm-suppress\s+\w+|@codeCoverageIgnore\w*)"),
        ],
    },
    Language {
        extensions: &["sh", "bash", "bats"],
        signs: &[
            (Test, &["test"], r"^[ \t]*(?:@test\s|(?:function\s+)?test_\w+\s*\(\))"),
            (Skip, &["skip"], r"^[ \t]*skip\b"),
            (Silence, &["shellcheck"], r"#\s*shellcheck\s+disable\s*=\s*\S+"),
        ],
    },
    Language {
        extensions: &["swift"],
        signs: &[
            (Test, &["func", "@Test"], r"^[ \t]*(?:@?\w+(?:\([^)\n]*\))?[ \t]+)*func\s+test\w*\s*\(|@Test\b"),
            (Skip, &["XCTSkip", ".disabled("], r"\bXCTSkip\w*\(|@(?:Test|Suite)\(.*\.disabled\("),
            (Silence, &["swiftlint:disable"], r"//\s*swiftlint:disable\b[\w: ]*"),
        ],
    },
    Language {
        extensions: &["ex", "exs"],
        signs: &[
            (Test, &["test", "property"], r#"^[ \t]*(?:test|property)\s+""#),
            (Skip, &["tag"], r"^[ \t]*@(?:module|describe)?tag\s+:?skip\b"),
            (Silence, &["credo:"], r"#\s*credo:disable-for[\w-]*(?:\s+[\w.]+)?"),
        ],
    },
    Language {
        extensions: &["hs"],
        signs: &[
            (Test, &["it", "prop", "specify", "test"], r#"^[ \t]*[\[,(]?[ \t]*(?:it|prop|specify|testCase|testProperty)\s+""#),
            (Skip, &["xit", "xdescribe", "xspecify", "pending"], r#"^[ \t]*(?:xit|xdescribe|xspecify)\s+"|(?:^[ \t]*|[$"][ \t]+)pending(?:[ \t]*$|With\s+")"#),
            (Silence, &["OPTIONS_GHC", "HLINT"], r"\{-#\s*OPTIONS_GHC\s+[^#\n]*-(?:Wno|fno-warn|w\b)[\w-]*|(?:--|\{-#?)\s*HLINT\s+ignore\b[^\n]*"),
        ],
    },
];

/// Names of files that list a project's dependencies.
#[rustfmt::skip]
pub const MANIFESTS: &[&str] = &[
    "Cargo.toml", "package.json", "pyproject.toml", "Pipfile", "go.mod", "Gemfile", "composer.json", "deno.json",
    "pom.xml", "build.gradle", "build.gradle.kts", "libs.versions.toml", "Package.swift", "mix.exs", "pubspec.yaml",
    "Directory.Packages.props",
];
