//! Tests of changes, and of the warnings about them.

use proptest::prelude::*;

use super::signs::Concern::{Only, Silence, Skip, Test};
use super::*;
use crate::sys::diff::FileState;

fn state(content: &str) -> FileState {
    FileState {
        content: content.into(),
        mode: 0o644,
    }
}

/// Returns a change of a file; an empty text stands for a missing file.
fn change(path: &str, before: &str, after: &str) -> FileChange {
    let some = |content: &str| (!content.is_empty()).then(|| state(content));
    FileChange {
        path: path.to_owned(),
        before: some(before),
        after: some(after),
    }
}

fn one(path: &str, before: &str, after: &str) -> Vec<String> {
    sentences(&[change(path, before, after)])
}

fn sentences(changes: &[FileChange]) -> Vec<String> {
    let found = warnings(changes, "").into_iter();
    found.map(|warning| warning.message).collect()
}

const TWO: &str = "#[test]\nfn a() {}\n\n    #[tokio::test]\n    async fn b() {}\n";
const ONE: &str = "#[test]\nfn a() {}\n";

#[test]
fn lost_tests_are_reported() {
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
        // Tests that were moved.
        (
            vec![change("a.rs", TWO, ""), change("b.rs", "", TWO)],
            vec![],
        ),
        (
            vec![change("a.rs", TWO, ONE), change("b.rs", ONE, TWO)],
            vec![],
        ),
        // Tests that were moved to another language.
        (
            vec![
                change("a.rs", ONE, ""),
                change("b.py", "", "def test_a(): pass\n"),
            ],
            vec!["`a.rs` is deleted, which had a test"],
        ),
        // Some of the tests were moved.
        (
            vec![change("a.rs", TWO, "//\n"), change("b.rs", "", ONE)],
            vec!["`a.rs` has fewer tests than before: 0 instead of 2"],
        ),
    ] {
        assert_eq!(sentences(&changes), expected, "{changes:?}");
    }
}

#[test]
fn new_warnings_are_reported_once_per_file() {
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
        // The new one of two identical signs.
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
        // As many signs as before.
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
fn manifests_are_reported_by_name() {
    let manifest = |path: &str| format!("changed manifest `{path}`: look at its dependencies");
    for path in [
        "Cargo.toml",
        "a/package.json",
        "go.mod",
        "dev-requirements.txt",
        "requirements/base.txt",
    ] {
        for (before, after) in [("", "a\n"), ("a\n", "b\n")] {
            assert_eq!(one(path, before, after), [manifest(path)]);
        }
        assert_eq!(one(path, "a\n", ""), [""; 0]);
    }
    for path in ["cargo.toml", "Cargo.lock", "x.txt", ""] {
        assert_eq!(one(path, "a\n", "b\n"), [""; 0], "{path}");
    }
}

#[test]
fn warnings_are_limited() {
    let many = "#[allow(x)]\n".repeat(30);
    let told = one("x.rs", "", &many);
    assert!(told[0].ends_with("at line 20 and 10 more"), "{told:?}");
    let files: Vec<FileChange> = (0..30)
        .map(|nth| change(&format!("{nth}.rs"), TWO, ONE))
        .collect();
    let told = sentences(&files);
    assert_eq!(told.len(), MOST + 1);
    assert_eq!(told[MOST], "10 more files have fewer tests than before");
    let told = one(&format!("a\n`{}.rs", "b".repeat(500)), ONE, "//\n");
    assert!(
        told[0].starts_with("`a\u{fffd}'b") && told[0].len() < 250,
        "{told:?}"
    );
}

#[test]
fn large_files_and_long_lines_are_passed_over() {
    let large = "#[allow(x)]\n".repeat(MAX_BYTES / 12 + 1);
    assert_eq!(one("x.rs", "", &large), [""; 0]);
    let long = "x(); ".repeat(101) + " #[allow(x)]\n";
    assert_eq!(one("x.rs", "", &long), [""; 0]);
}

#[test]
fn tests_are_counted() {
    for (extension, expected, text) in [
        ("rs", 1, "#[test]\nfn a() {}\nfn b() {}\n"),
        (
            "rs",
            2,
            "#[tokio::test(flavor = \"multi_thread\")]\nasync fn a() {}\n#[rstest]\n#[case(1)]\n#[case(2)]\nfn b() {}",
        ),
        (
            "rs",
            2,
            "#[test_case(1; \"a\")]\n#[test_case(2)]\nfn a(x: u8) {}",
        ),
        ("rs", 1, "#[test] #[should_panic] fn a() {}"),
        ("rs", 1, "#[cfg_attr(not(windows), test)]\nfn a() {}"),
        (
            "rs",
            2,
            "proptest! {\n    #[test]\n    fn a(x in 0..9) {}\n    fn b(x in any::<u8>(), y in 0..9) {}\n    #[test]\n    fn c(\n        x in 0..9,\n    ) {}\n}",
        ),
        (
            "rs",
            0,
            "#[cfg(test)]\nmod tests {\n    fn a() { for x in y {} }\n}\n// #[test]\nfn b() {}\nlet x = \"#[test] fn a() {}\";",
        ),
        (
            "py",
            3,
            "def test_a():\n    pass\nclass TestB:\n    def test_b(self):\n        pass\n    async def test_c(self): pass\n    def help(self): pass\n# def test_d():",
        ),
        (
            "js",
            5,
            "describe('a', () => {\n  it('b', () => {});\n  test.each([1])('c', f);\n  xit('d', f); it.only('e', f)\n  // it('f', f)\n});\nDeno.test('g', f);\n/x/.test('h'); x.it('i');",
        ),
        ("js", 1, "describe('a', () => { it(\"b\", f) })"),
        (
            "go",
            3,
            "func TestA(t *testing.T) {}\nfunc (s *Suite) TestB() {}\nfunc FuzzC(f *testing.F) {}\nfunc Testimony() {}\nfunc help() {}",
        ),
        (
            "java",
            3,
            "@Test\nvoid a() {}\n@Test fun `b c`() {}\n  @org.junit.jupiter.api.ParameterizedTest\n  void c() {}\n// @Test\n@TestInstance class X",
        ),
        (
            "cs",
            4,
            "[Fact]\n[Theory]\n[Test, Order(1)]\n[Category(\"x\"), TestMethod]\n[TestFixture]",
        ),
        (
            "swift",
            4,
            "func testA() {}\n    override public func test_b() async {}\n@Test func c() {}\nfunc attest() {}\n@available(iOS 15, *) @MainActor func testD() {}",
        ),
        (
            "exs",
            2,
            "test \"a\" do\nend\n  test \"b\", %{x: x} do\nassert test(1)",
        ),
        (
            "hs",
            2,
            "spec = do\n  it \"a\" $ 1\n  , testCase \"b\" x\nitem \"c\"",
        ),
        ("sh", 2, "@test \"a\" {\n}\ntest_b() {\n}\ntest -f c\n"),
    ] {
        let told = one(&format!("x.{extension}"), text, "");
        let expected = match expected {
            0 => vec![],
            1 => vec![format!("`x.{extension}` is deleted, which had a test")],
            many => vec![format!(
                "`x.{extension}` is deleted, which had {many} tests"
            )],
        };
        assert_eq!(told, expected, "{text}");
    }
}

/// Lines with a sign, and the sign.
#[rustfmt::skip]
const WRITTEN: [(&str, Concern, &str, &str); 55] = [
    ("rs", Skip, "#[ignore]", "#[ignore]"),
    ("rs", Skip, "#[test] #[ignore = \"slow\"] fn a() {}", "#[ignore = \"slow\"]"),
    ("rs", Skip, "#[cfg_attr(miri, ignore)]", "#[cfg_attr(miri, ignore)]"),
    ("rs", Silence, "    #[allow(dead_code)]", "#[allow(dead_code)]"),
    ("rs", Silence, "#![allow(clippy::all)]", "#![allow(clippy::all)]"),
    ("rs", Silence, "#[expect(", "#[expect("),
    ("rs", Silence, "#[cfg_attr(test, allow(unused))]", "#[cfg_attr(test, allow(unused))]"),
    ("py", Skip, "@pytest.mark.skip(reason='x')", "@pytest.mark.skip"),
    ("py", Skip, "pytestmark = pytest.mark.skip", "pytestmark = pytest.mark.skip"),
    ("py", Skip, "pytestmark = [pytest.mark.skipif(x)]", "pytestmark = [pytest.mark.skipif"),
    ("rs", Skip, "#[cfg(any())]", "#[cfg(any())"),
    ("py", Skip, "@pytest.mark.xfail", "@pytest.mark.xfail"),
    ("py", Skip, "@unittest.skipIf(x, 'y')", "@unittest.skipIf"),
    ("py", Skip, "    pytest.skip('x')", "pytest.skip("),
    ("py", Silence, "import a  # noqa: E402,F401", "# noqa: E402,F401"),
    ("py", Silence, "# NOQA", "# NOQA"),
    ("py", Silence, "x = 1  # type: ignore[assignment]", "# type: ignore[assignment]"),
    ("py", Silence, "# pylint: disable=no-member, unused-import", "# pylint: disable=no-member, unused-import"),
    ("py", Silence, "x # pyright: ignore", "# pyright: ignore"),
    ("js", Skip, "it.skip('a', f)", "it.skip"),
    ("js", Skip, "  describe.skip('a', f)", "describe.skip"),
    ("js", Skip, "test.concurrent.skip('a', f)", "test.concurrent.skip"),
    ("js", Skip, "xdescribe('a', f)", "xdescribe"),
    ("js", Only, "test.only('a', f)", "test.only"),
    ("js", Only, "fit('a', f)", "fit"),
    ("js", Silence, "// eslint-disable-next-line no-console", "// eslint-disable-next-line no-console"),
    ("js", Silence, "/* eslint-disable */", "/* eslint-disable"),
    ("js", Silence, "// @ts-expect-error: x", "// @ts-expect-error"),
    ("js", Silence, "{/* @ts-ignore */}", "/* @ts-ignore"),
    ("rs", Skip, "/* slow */ #[ignore]", "#[ignore]"),
    ("js", Silence, "// deno-lint-ignore-file", "// deno-lint-ignore-file"),
    ("py", Silence, "# mypy: disable-error-code=\"x\"", "# mypy: disable-error-code"),
    ("py", Silence, "# pyright: basic", "# pyright: basic"),
    ("cs", Silence, "// ReSharper disable All", "// ReSharper disable"),
    ("go", Skip, "t.Skip(\"x\")", "t.Skip("),
    ("go", Silence, "x() //nolint:errcheck,gosec // why", "//nolint:errcheck,gosec"),
    ("java", Skip, "@Disabled(\"x\")", "@Disabled"),
    ("java", Skip, "@org.junit.Ignore", "@org.junit.Ignore"),
    ("java", Silence, "@SuppressWarnings(\"unchecked\")", "@SuppressWarnings(\"unchecked\")"),
    ("java", Silence, "@file:Suppress(\"x\")", "@file:Suppress(\"x\")"),
    ("cs", Skip, "[Fact(Skip = \"x\")]", "Fact(Skip = \"x\")"),
    ("cs", Skip, "[Test, Ignore(\"x\")]", "[Test, Ignore(\"x\")]"),
    ("cs", Silence, "#pragma warning disable CS0168", "#pragma warning disable CS0168"),
    ("swift", Skip, "throw XCTSkip(\"x\")", "XCTSkip("),
    ("swift", Skip, "@Test(.disabled())", "@Test(.disabled("),
    ("exs", Skip, "  @tag :skip", "@tag :skip"),
    ("exs", Skip, "@moduletag skip: true", "@moduletag skip"),
    ("ex", Silence, "# credo:disable-for-this-file", "# credo:disable-for-this-file"),
    ("hs", Skip, "  xit \"a\" $ x", "xit \""),
    ("hs", Skip, "  it \"a\" $ pending", "$ pending"),
    ("hs", Silence, "{-# HLINT ignore \"a\" #-}", "{-# HLINT ignore \"a\" #-}"),
    ("hs", Silence, "{-# OPTIONS_GHC -Wno-orphans #-}", "{-# OPTIONS_GHC -Wno-orphans"),
    ("hs", Silence, "-- HLINT ignore a", "-- HLINT ignore a"),
    ("sh", Skip, "  skip 'x'", "skip"),
    ("sh", Silence, "# shellcheck disable=SC2086", "# shellcheck disable=SC2086"),
];

#[test]
fn every_sign_is_found_as_it_is_written() {
    for (extension, concern, line, shown) in WRITTEN {
        let told = one(&format!("x.{extension}"), "\n", &format!("\n{line}\n"));
        let does = match concern {
            Skip => "skips a test",
            Only => "leaves out all other tests",
            Silence => "silences a lint",
            Test => "",
        };
        let expected = format!("`x.{extension}` {does}: `{shown}` at line 2");
        assert_eq!(told, [expected], "{line}");
    }
}

#[test]
fn every_pattern_compiles() {
    for language in &LANGUAGES {
        for (_, _, pattern) in language.signs {
            assert!(Sign::of(language, pattern).is_some(), "{pattern}");
        }
    }
}

#[test]
fn text_that_only_resembles_a_suppression_is_ignored() {
    for (extension, line) in [
        ("rs", "// #[ignore]"),
        ("rs", "/// #[allow(dead_code)]"),
        ("rs", "assert_eq!(x, \"#[allow(dead_code)]\");"),
        ("rs", "#[derive(Debug)] struct Ignore;"),
        ("rs", "let x = option.expect(\"x\");"),
        ("py", "# @pytest.mark.skip"),
        ("py", "print(\"# noqa\")"),
        ("py", "# types: ignored"),
        ("js", "model.fit(x)"),
        ("js", "split.only(x)"),
        ("js", "// it.skip('a')"),
        ("js", " * it.only('a')"),
        ("js", "exit(1)"),
        ("go", "rest.Skip(1)"),
        ("java", "// @Disabled"),
        ("java", "@IgnoreCase"),
        ("cs", "x[IgnoreCase]"),
        ("swift", "Button().disabled(x)"),
        ("exs", "@tag :slow"),
        ("hs", "pendingJobs = 1"),
        ("hs", "  pending <- readTVar q"),
        ("hs", "pending :: Int"),
        ("sh", "skipped=1"),
        ("sh", "# skip"),
    ] {
        let new = format!("\n{line}\n");
        assert_eq!(
            one(&format!("x.{extension}"), "\n", &new),
            [""; 0],
            "{line}"
        );
    }
}

proptest! {
    // Each case compiles its patterns.
    #![proptest_config(ProptestConfig::with_cases(64))]

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
        let mut contents = contents.into_iter().map(|content| (content.len() % 7 > 0).then_some(FileState { content, mode: 0o644 }));
        let changes: Vec<FileChange> = paths.into_iter()
            .map(|path| FileChange { path, before: contents.next().flatten(), after: contents.next().flatten() })
            .collect();
        prop_assert!(sentences(&changes).iter().all(|warning| !warning.contains('\n')));
    }
}

#[test]
fn warnings_are_data_too() {
    let skipped = "\n#[test]\n#[ignore]\nfn a() {}\n";
    for (path, before, after, code, line) in [
        ("a.rs", TWO, ONE, "tests-fewer", None),
        ("a.rs", TWO, "", "test-file-deleted", None),
        ("a.rs", ONE, skipped, "test-skipped", Some(3)),
        (
            "a.js",
            "it('a', a)\n",
            "it.only('a', a)\n",
            "test-focused",
            Some(1),
        ),
        ("a.py", "a()\n", "a() # noqa\n", "lint-silenced", Some(1)),
        ("go.mod", "a\n", "b\n", "manifest-changed", None),
        ("ci/test.sh", "a\n", "b\n", "gate-script-changed", None),
    ] {
        let found = warnings(&[change(path, before, after)], "set -e\n./ci/test.sh\n");
        let [found] = &found[..] else {
            panic!("{path}: {found:?}");
        };
        assert_eq!((&*found.code, found.line), (code, line), "{path}");
        assert_eq!(found.path.as_deref(), Some(path));
        assert!(is_denied(&[check_code(code).unwrap()], code));
        let denied = ["all", "tests"].map(|group| is_denied(&[group.to_owned()], code));
        assert_eq!(denied, [true, code.starts_with("test")], "{code}");
    }
    assert!(
        check_code("test-skiped")
            .unwrap_err()
            .contains("test-skipped")
    );
}

#[test]
fn files_run_by_the_build_script_are_found_by_its_words() {
    let one = r#"{"scripts": {"test": "jest"}}"#;
    for (script, path, before, after, is_run) in [
        ("make check", "Makefile", "a\n", "b\n", true),
        ("# make check\ncmake .", "Makefile", "a\n", "b\n", false),
        (
            "sh \"tools/gate\" || exit 1",
            "tools/gate",
            "a\n",
            "b\n",
            true,
        ),
        (
            "npm test",
            "package.json",
            one,
            r#"{"scripts": {"test": "true"}}"#,
            true,
        ),
        (
            "npm test",
            "package.json",
            one,
            r#"{"scripts":{"test":"jest"},"a":1}"#,
            false,
        ),
        ("cargo test", "package.json", one, "{}", false),
        (
            "if ! ci/lint.sh; then exit 1; fi",
            "ci/lint.sh",
            "a\n",
            "b\n",
            true,
        ),
        (
            "cargo test && \"./ci/lint.sh\" -v",
            "ci/lint.sh",
            "a\n",
            "b\n",
            true,
        ),
        ("sh test.sh", "test.sh", "a\n", "b\n", true),
        ("./check.sh", "check.sh", "a\n", "b\n", true),
        ("if ! bash -e run.sh; then", "run.sh", "a\n", "b\n", true),
        ("time python3 check.py -v", "check.py", "a\n", "b\n", true),
        ("A=. B= node ci/a.mjs", "ci/a.mjs", "a\n", "b\n", true),
        ("all:\n\t@-./verify", "verify", "a\n", "b\n", true),
        ("sh -n check.sh", "check.sh", "a\n", "b\n", false),
        ("cat ./check.sh", "check.sh", "a\n", "b\n", false),
        ("if grep -q a file", "file", "a\n", "b\n", false),
        ("test -e x", "test", "a\n", "b\n", false),
        (
            "echo x >> src/main.rs; exit 1",
            "src/main.rs",
            "a\n",
            "b\n",
            false,
        ),
        (
            "test -e src/main.rs && cat < src/main.rs",
            "src/main.rs",
            "a\n",
            "b\n",
            false,
        ),
    ] {
        let is_told = warnings(&[change(path, before, after)], script)
            .iter()
            .any(|warning| warning.code == "gate-script-changed");
        assert_eq!(is_told, is_run, "{script} {path}");
    }
}

#[test]
fn files_run_indirectly_are_found_as_they_were_before_the_changes() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("build.sh", "make test && sh ci/all.sh\n"),
        ("Makefile", "test:\n\t@npm test\n"),
        (
            "package.json",
            r#"{"scripts": {"test": "node verify.mjs"}}"#,
        ),
        (
            "ci/all.sh",
            "sh build.sh\nout=$(sh add.sh 1 2)\n. ci/more\n",
        ),
        ("ci/more", "python3 selftest.py\n"),
    ] {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let changes = [
        change(
            "package.json",
            r#"{"scripts": {"test": "node old.mjs"}}"#,
            "{}",
        ),
        change("ci/more", "python3 old.py\n", ""),
    ];
    for (changes, path, is_run) in [
        (&changes[..0], "verify.mjs", true),
        (&changes[..0], "selftest.py", true),
        (&changes[..0], "add.sh", false),
        (&changes[..0], "old.py", false),
        (&changes, "old.mjs", true),
        (&changes, "old.py", true),
        (&changes, "selftest.py", false),
    ] {
        let commands = build_commands(root.path(), changes);
        let found = run_by(&commands).any(|run| run == path);
        assert_eq!(found, is_run, "{path}: {commands}");
    }
}
