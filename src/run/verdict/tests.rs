//! Tests of the extent of the gate, and of trees that combine the code of one state with the gate of another.

mod names;
mod replies;
mod run;
mod sections;
mod within;

use super::changed::{Changed, Side};
use super::table::{FileKind, Form, kind};
use crate::record::gate::GateChange;
use crate::sys::diff::FileChange;

#[test]
fn a_path_shows_what_is_the_gate() {
    for (expected, paths) in [
        (
            FileKind::Test,
            "tests/a.rs src/a/tests.rs tests/data/x.json test_a.py a_test.go a.test.ts a-spec.js \
             src/test/java/App.java conftest.py spec/a_spec.rb tests/AppTest.php App.Tests/AppTests.cs a.bats \
             src/__snapshots__/a.snap src/snapshots/a.snap x.golden test/helper.sh tests/fixtures/Cargo.toml \
             test_helper.bash test.sh run_tests.sh unittest/a.c t/basic.t a/t/b/c.t",
        ),
        (
            FileKind::Settings,
            ".eslintrc.json eslint.config.js jest.config.js clippy.toml .config/nextest.toml pytest.ini tox.ini .flake8 \
             .golangci.yml checkstyle.xml config/detekt/detekt.yml .clang-tidy .rubocop.yml phpunit.xml phpstan.neon \
             sitecustomize.py lib/usercustomize.py a.pth \
             .shellcheckrc .github/workflows/ci.yml .gitlab-ci.yml codecov.yml x.runsettings check.sh check-all.sh lint_all.sh \
             .editorconfig .swiftlint.yml .pre-commit-config.yaml .importlinter behave.ini mypy-baseline.txt \
             checkstyle-suppressions.xml testng.xml behat.yml",
        ),
        (
            FileKind::Settings,
            "Makefile CMakeLists.txt cmake/x.cmake Rakefile Makefile.toml build.gradle app/build.gradle.kts \
             vite.config.mts .yarnrc gulpfile.js nx.json App.sln build.xml build.zig",
        ),
        (
            // They are imported in place of the runners.
            FileKind::Settings,
            "unittest.py src/pytest.py",
        ),
        (FileKind::Either, "setup.py mix.exs build.sbt go.work"),
        (FileKind::Document, "README.md docs/a.txt CHANGELOG.md"),
        (
            FileKind::Code,
            "src/main.py src/latest.js src/Contest.java lib/attest.go go.mod Gemfile requirements.txt src/verify.go greet.sh \
             TestimonialService.java src/check.py spectrum/a.c checkout.sh \
             verifyemail.sh t/a.c src/basic.t",
        ),
        (
            FileKind::Parts(Form::Json),
            "package.json a/tsconfig.build.json composer.json",
        ),
        (
            FileKind::Parts(Form::Sections),
            "Cargo.toml pyproject.toml setup.cfg",
        ),
        (FileKind::Parts(Form::Xml), "pom.xml App/App.csproj"),
        (
            FileKind::Parts(Form::Rust),
            "src/main.rs src/verify.rs src/lint.rs",
        ),
    ] {
        for path in paths.split_whitespace() {
            assert_eq!(kind(path, "").0, expected, "{path}");
        }
    }
}

fn some(content: &str) -> Option<Vec<u8>> {
    (!content.is_empty()).then(|| content.into())
}

fn change(path: &str, before: &str, after: &str) -> FileChange {
    FileChange::of(path.to_owned(), some(before), some(after))
}

/// Returns the file with the new code and the old gate.
fn old_gate(path: &str, before: &str, after: &str, query: Option<&str>) -> String {
    let changes = [change(path, before, after)];
    let tree = Changed::of(&changes, "").tree(Side::New, Side::Old, query);
    let Some((_, state)) = tree.first() else {
        return after.to_owned();
    };
    let content = state.as_ref().map_or(&[][..], |state| &state.content);
    String::from_utf8(content.to_vec()).unwrap()
}

#[test]
fn the_gate_of_a_manifest_is_laid_back_and_its_dependencies_are_not() {
    for (path, before, after, expected) in [
        (
            "package.json",
            r#"{"scripts": {"test": "jest"}, "jest": {"bail": 1}, "dependencies": {"a": "1"}}"#,
            r#"{"scripts": {"test": "true"}, "dependencies": {"a": "2", "b": "1"}}"#,
            "{\n\"dependencies\": {\n\"a\": \"2\",\n\"b\": \"1\"\n},\n\"scripts\": {\n\"test\": \"jest\"\n},\n\"jest\": {\n\"bail\": 1\n}\n}\n",
        ),
        (
            "tsconfig.json",
            r#"{"compilerOptions": {"strict": true, "lib": ["a"]}}"#,
            r#"{"compilerOptions": {"strict": false, "lib": ["b"]}}"#,
            "{\n\"compilerOptions\": {\n\"lib\": [\n  \"b\"\n],\n\"strict\": true\n}\n}\n",
        ),
        (
            "tsconfig.json",
            "{\n  // \"a\"\n  \"compilerOptions\": {\"strict\": true, /* b */ \"lib\": [\"//c\", \",]\",],},\n}",
            "{\n  \"compilerOptions\": {\"strict\": false, \"lib\": [\"//c\", \",]\"]} // d\n}",
            "{\"compilerOptions\": {\"lib\": [\"//c\", \",]\"], \"strict\": true}}",
        ),
        (
            "Cargo.toml",
            "[package]\nname = \"a\"\n[dependencies]\na = \"1\"\n[lints.clippy]\nall = \"deny\"\n",
            "[package]\nname = \"a\"\nautotests = false\n[dependencies]\na = \"2\"\n[lints.clippy]\nall = \"allow\"\n",
            "[package]\nname = \"a\"\n[dependencies]\na = \"2\"\n[lints.clippy]\nall = \"deny\"\n",
        ),
        (
            "package.json",
            r#"{"workspaces": ["a", "b"], "version": "1"}"#,
            r#"{"workspaces": ["a"], "version": "2"}"#,
            "{\n\"version\": \"2\",\n\"workspaces\": [\n  \"a\",\n  \"b\"\n]\n}\n",
        ),
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\n  \"a\",\n  \"b\",\n]\n[workspace.dependencies]\nx = \"1\"\n",
            "[workspace]\nmembers = [\"a\"]\n[workspace.dependencies]\nx = \"2\"\n",
            "[workspace]\nmembers = [\n  \"a\",\n  \"b\",\n]\n[workspace.dependencies]\nx = \"2\"\n",
        ),
        (
            "Cargo.toml",
            "lints.rust.\"a\" = \"deny\"\n[package]\nname = \"a\"\n",
            "lints.rust.\"a\" = \"allow\"\n[package]\nname = \"b\"\n",
            "lints.rust.\"a\" = \"deny\"\n[package]\nname = \"b\"\n",
        ),
        (
            ".yarnrc.yml",
            "plugins:\n  - path: a\n    spec: a\nnodeLinker: a\n",
            "plugins:\n  - path: b\n    spec: b\nnodeLinker: b\n",
            "plugins:\n  - path: a\n    spec: a\nnodeLinker: b\n",
        ),
        (
            ".npmrc",
            "registry=https://a\n",
            "registry=https://b\n  script-shell=/bin/true\n\"script-shell\" = /bin/true\nworkspace=a\n",
            "registry=https://b\n",
        ),
        (
            "Cargo.toml",
            "[lib]\ntest = true\n\n[dependencies]\n",
            "[lib]\npath = \"x.rs\"\n\n[dependencies]\nb = \"1\"\n",
            "[lib]\ntest = true\npath = \"x.rs\"\n\n[dependencies]\nb = \"1\"\n",
        ),
        (
            "Cargo.toml",
            "lints.rust.a = \"deny\"\nlints.rust.b = \"deny\"\n[package]\nname = \"a\"\n[dependencies]\n",
            "[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n",
            "lints.rust.a = \"deny\"\nlints.rust.b = \"deny\"\n[package]\nname = \"a\"\n[dependencies]\nb = \"1\"\n",
        ),
        (
            "pyproject.toml",
            "[project]\ndependencies = [\n  \"a\",\n]\n[tool.pytest.ini_options]\naddopts = \"-q\"\n",
            "[project]\ndependencies = [\n  \"b\",\n]\n[tool.pytest.ini_options]\naddopts = \"-k x\"\n",
            "[project]\ndependencies = [\n  \"b\",\n]\n[tool.pytest.ini_options]\naddopts = \"-q\"\n",
        ),
        (
            "pyproject.toml",
            "[tool.poetry]\na = 1\n[tool.pdm.scripts]\na = 1\n[tool.vulture]\na = 1\n",
            "[tool.poetry]\na = 2\n[tool.pdm.scripts]\na = 2\n[tool.vulture]\na = 2\n",
            "[tool.poetry]\na = 2\n[tool.pdm.scripts]\na = 1\n[tool.vulture]\na = 1\n",
        ),
        (
            "pom.xml",
            "<project>\n  <dependencies><a>1</a></dependencies>\n  <properties>\n    <v>1</v>\n    <skipTests>false</skipTests>\n  </properties>\n  <build><x/></build>\n</project>\n",
            "<project>\n  <dependencies><a>2</a></dependencies>\n  <properties>\n    <v>2</v>\n    <skipTests>true</skipTests>\n    <test>A</test>\n    <excludedGroups>b</excludedGroups>\n    <surefire.includesFile>c</surefire.includesFile>\n  </properties>\n</project>\n",
            "<project>\n  <dependencies><a>2</a></dependencies>\n  <properties>\n    <v>2</v>\n    <skipTests>false</skipTests>\n  </properties>\n<build><x/></build>\n</project>\n",
        ),
        (
            "A.csproj",
            "<Project Sdk=\"x\"><PropertyGroup><Nullable>enable</Nullable><A>1</A></PropertyGroup></Project>",
            "<Project Sdk=\"x\"><PropertyGroup><NoWarn>1</NoWarn><A>2</A></PropertyGroup><ItemGroup><PackageReference Include=\"a\"/></ItemGroup></Project>",
            "<Project Sdk=\"x\"><PropertyGroup><A>2</A><Nullable>enable</Nullable></PropertyGroup><ItemGroup><PackageReference Include=\"a\"/></ItemGroup></Project>",
        ),
    ] {
        let bare = |text: &str| text.split_whitespace().collect::<String>();
        let laid = old_gate(path, before, after, None);
        assert_eq!(bare(&laid), bare(expected), "{path}");
    }
}

#[test]
fn a_manifest_without_a_change_of_its_gate_is_code() {
    for (path, before, after) in [
        (
            "package.json",
            r#"{"scripts": {"test": "jest"}, "version": "1"}"#,
            "{\"version\": \"2\",\n\n\"scripts\": {\"test\":   \"jest\"}}",
        ),
        (
            "Cargo.toml",
            "[dependencies]\n[lints]\na = 1\n",
            "[dependencies]\nb = \"1\"\n\n[lints]\na = 1\n",
        ),
        (
            "pom.xml",
            "<p><a>1</a><build/></p>",
            "<p><a>2</a><b/><build/></p>",
        ),
    ] {
        let changes = [change(path, before, after)];
        let changed = Changed::of(&changes, "");
        assert_eq!(changed.gate_change(), GateChange::None, "{path}");
        assert!(changed.has_code() && !changed.is_unclear(), "{path}");
    }
}

const RUST: &str = "#![deny(warnings)]\n//! A file.\n\n/// Adds.\npub fn add(a: i32, b: i32) -> i32 {\n    a + b // }\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n";

#[test]
fn rust_test_code_is_restored() {
    let tests = &RUST[RUST.find("#[cfg(test)]").unwrap()..];
    for (after, expected) in [
        // Only code has changed.
        (
            RUST.replace("a + b", "b + a"),
            RUST.replace("a + b", "b + a"),
        ),
        // An inverted expectation, with a change to the code.
        (
            RUST.replace("a + b", "a - b").replace("2), 3", "2), -1"),
            RUST.replace("a + b", "a - b"),
        ),
        // Deleted tests.
        (RUST.replace(tests, ""), RUST.to_owned()),
        // Tests moved to a separate file.
        (
            RUST.replace(tests, "#[cfg(test)]\nmod tests;\n"),
            RUST.to_owned(),
        ),
        // Lints turned off.
        (
            RUST.replace("#![deny(warnings)]\n", "#![allow(unused)]\n"),
            format!(
                "#![deny(warnings)]\n{}",
                RUST.replace("#![deny(warnings)]\n", "")
            ),
        ),
        // Lints turned off by a later attribute, which takes precedence.
        (
            RUST.replace(
                "#![deny(warnings)]\n",
                "#![deny(warnings)]\n#![allow(unused)]\n",
            ),
            RUST.to_owned(),
        ),
        // A test next to the code, and literals that look like brackets.
        (
            format!(
                "{RUST}const A: char = '{{';\nconst B: &str = r#\"}}\"#;\nfn c<'a>(x: &'a str) -> &'a str {{ x }}\n#[test]\nfn b() {{}}\n"
            ),
            format!(
                "{}const A: char = '{{';\nconst B: &str = r#\"}}\"#;\nfn c<'a>(x: &'a str) -> &'a str {{ x }}\n{tests}",
                RUST.replace(tests, "")
            ),
        ),
    ] {
        let squeezed = |text: &str| text.replace("\n\n", "\n").replace("\n\n", "\n");
        let laid = old_gate("src/lib.rs", RUST, &after, None);
        assert_eq!(squeezed(&laid), squeezed(&expected), "{after}");
    }
}

#[test]
fn changes_indistinguishable_from_code_are_unclear() {
    let doc = "/// ```\n/// assert_eq!(a(), 1);\n/// ```\npub fn a() -> u8 { 1 }\n";
    let python = "def a():\n    \"\"\"\n    >>> a()\n    1\n    \"\"\"\n";
    for (path, before, after) in [
        ("src/a.rs", doc, doc.replace("1);", "2);")),
        ("a.py", python, python.replace("    1\n", "    2\n")),
        ("src/a.rs", RUST, format!("{RUST}}}\n")),
        (
            "tsconfig.json",
            "{\"strict\": 1}",
            "{\"strict\": 2".to_owned(),
        ),
        ("setup.py", "a = 1\n", "a = 2\n".to_owned()),
    ] {
        let changes = [change(path, before, &after)];
        let changed = Changed::of(&changes, "");
        assert!(changed.is_unclear() && !changed.has_gate(), "{path}");
        assert_eq!(changed.gate_files().collect::<Vec<_>>(), [path]);
        assert_eq!(old_gate(path, before, &after, None), after);
    }
}

#[test]
fn possible_rust_test_code_is_gate_or_unclear() {
    let code = "pub fn a() -> u8 { 1 }\n";
    let test = "{ assert_eq!(a(), 1); }\n";
    for attribute in [
        "#[cfg(all(unix, test))]\nmod t",
        "#[cfg(all(feature = \"a\", any(unix, windows), test))]\nmod t",
        "#[cfg(all(test, not(miri)))]\nmod t",
        "#[cfg(unix)]\n// [a]\n#[doc = \"]\"]\n#[test]\nfn t()",
        "#[wasm_bindgen_test]\nfn t()",
        "#[tokio::test(flavor = \"x\")]\nasync fn t()",
    ] {
        let [before, after] =
            ["1", "2"].map(|one| format!("{code}{attribute} {}", test.replace('1', one)));
        let changes = [change("src/a.rs", &before, &after)];
        let changed = Changed::of(&changes, "");
        assert!(
            changed.has_gate() && !changed.is_unclear() && !changed.has_code(),
            "{attribute}"
        );
        assert_eq!(old_gate("src/a.rs", &before, &after, None), before);
    }
    for (open, close) in [
        ("mod outer {\n#[cfg(test)]\nmod tests ", "}\n"),
        ("proptest! {\n#[test]\nfn t() ", "}\n"),
        ("mod outer {\n#[wasm_bindgen_test]\nfn t() ", "}\n"),
        ("#[cfg(any(test, feature = \"x\"))]\nmod t ", ""),
        ("#[cfg(all(unix, any(test, doc)))]\nmod t ", ""),
        ("#![cfg(test)]\nfn t() ", ""),
        ("#[cfg(not(test))]\nfn t() ", ""),
        ("#[cfg_attr(test, derive(Debug))]\nfn t() ", ""),
    ] {
        let [before, after] =
            ["1", "2"].map(|one| format!("{code}{open}{}{close}", test.replace('1', one)));
        let changes = [change("src/a.rs", &before, &after)];
        let changed = Changed::of(&changes, "");
        assert!(
            changed.is_unclear() && !changed.has_gate() && changed.has_code(),
            "{open}"
        );
        // Without a change to it, there is nothing to separate.
        let changes = [change(
            "src/a.rs",
            &before,
            &format!("{before}fn b() {{}}\n"),
        )];
        let is_whole = open.starts_with("#![cfg");
        assert_eq!(Changed::of(&changes, "").is_unclear(), is_whole, "{open}");
    }
    for plain in [
        "#[cfg(feature = \"test\")]\nfn t() ",
        "#[error(\"no test\")]\nfn t() ",
    ] {
        let [before, after] =
            ["1", "2"].map(|one| format!("{code}{plain}{}", test.replace('1', one)));
        let changes = [change("src/a.rs", &before, &after)];
        let changed = Changed::of(&changes, "");
        assert!(!changed.is_unclear() && !changed.has_gate(), "{plain}");
    }
}

#[test]
fn the_query_names_tests_by_path_file_or_name() {
    const BEFORE: &str = "import pytest\n\ndef test_add():\n    assert add(1, 2) == 3\n\ndef test_sub():\n    assert sub(2, 1) == 1\n";
    let flipped = BEFORE.replace("== 3", "== 4").replace("== 1", "== 5");
    let named = BEFORE.replace("== 3", "== 4");
    let skipped = BEFORE.replace("def test_sub", "@pytest.mark.skip\ndef test_sub");
    for (query, after, expected) in [
        ("Make it faster.", &flipped, BEFORE),
        ("Update `tests/test_a.py`", &flipped, &flipped),
        ("test_a.py is wrong", &flipped, &flipped),
        ("see other/test_a.py", &flipped, BEFORE),
        ("change test_add: 1 and 2 are 4", &flipped, &named),
        ("change test_add_all", &flipped, BEFORE),
        ("all tests must pass, add them in tests", &flipped, BEFORE),
        ("change test_add", &skipped, BEFORE),
        ("skip test_sub", &skipped, &skipped),
    ] {
        assert_eq!(
            old_gate("tests/test_a.py", BEFORE, after, Some(query)),
            *expected,
            "{query}"
        );
    }
    // A name that is an ordinary word counts only in quotes.
    let before = "it('adds', () => {\n  expect(add(1, 2)).toBe(3)\n})\n";
    let after = before.replace('3', "4");
    assert_eq!(
        old_gate("a.test.js", before, &after, Some("one that adds")),
        before
    );
    assert_eq!(
        old_gate("a.test.js", before, &after, Some("the test `adds`")),
        after
    );
}

#[test]
fn new_tests_next_to_the_old_ones_are_added() {
    const TEST: &str = "use a::add;\n\n#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n";
    const SHELL: &str = "set -e\ntest \"$(./add 1 2)\" = 3\n";
    for (expected, path, before, after) in [
        (GateChange::Added, "tests/a.rs", "", TEST.to_owned()),
        (
            GateChange::Added,
            "tests/a.rs",
            TEST,
            format!("{TEST}\n#[test]\nfn b() {{\n    assert!(true);\n}}\n"),
        ),
        (
            GateChange::Added,
            "tests/a.rs",
            TEST,
            format!("use a::b;\n{TEST}"),
        ),
        (
            GateChange::Added,
            "tests/a.sh",
            SHELL,
            format!("{SHELL}test \"$(./add 2 2)\" = 4\n"),
        ),
        (
            GateChange::Added,
            "tests/a.sh",
            SHELL,
            format!("{SHELL}password=1\ntrue_sum=2\n"),
        ),
        (
            GateChange::Added,
            "src/lib.rs",
            "fn a() {}\n",
            "fn a() {}\n#[cfg(test)]\nmod tests {\n#[test]\nfn b() {}\n}\n".to_owned(),
        ),
        (
            GateChange::Changed,
            "tests/a.sh",
            SHELL,
            format!("exit 0\n{SHELL}"),
        ),
        // New settings may loosen requirements of the old tests.
        (
            GateChange::Changed,
            "mypy.ini",
            "",
            "[mypy]\nignore_errors = true\n".to_owned(),
        ),
        (
            GateChange::Changed,
            "tests/a.rs",
            TEST,
            TEST.replace("    assert", "    return;\n    assert"),
        ),
        (
            GateChange::Changed,
            "tests/a.rs",
            TEST,
            TEST.replace("fn adds", "#[ignore]\nfn adds"),
        ),
        (GateChange::Changed, "tests/a.rs", TEST, String::new()),
        (
            GateChange::None,
            "src/a.rs",
            "fn a() {}\n",
            "fn a() { b() }\n".to_owned(),
        ),
    ] {
        let changes = [change(path, before, &after)];
        assert_eq!(
            Changed::of(&changes, "").gate_change(),
            expected,
            "{path}\n{after}"
        );
    }
}

#[test]
fn an_assertion_is_new_if_no_test_had_it() {
    let test = |body: &str| format!("#[test]\nfn a() {{\n{body}}}\n");
    for (expected, before, after) in [
        (true, test(""), test("assert!(a());\n")),
        (
            true,
            test("assert_eq!(\n  a(),\n  1\n);\n"),
            test("assert_eq!(\n  a(),\n  2\n);\n"),
        ),
        (
            false,
            test("assert!(a());\n"),
            test("    // assert!(b());\n    assert!(a());\n"),
        ),
        (false, test("assert!(a());\n"), test("")),
    ] {
        let changes = [change("tests/a.rs", &before, &after)];
        assert_eq!(
            Changed::of(&changes, "").has_new_assertions(),
            expected,
            "{after}"
        );
    }
    // A moved test.
    let test = test("assert!(a());\n");
    let changes = [
        change("tests/a.rs", &test, ""),
        change("tests/b.rs", "", &test),
    ];
    assert!(!Changed::of(&changes, "").has_new_assertions());
}

#[test]
fn new_tests_are_laid_over_the_old_code() {
    let before = RUST.replace("a + b", "a - b").replace("2), 3", "2), -1");
    let changes = [
        change("src/lib.rs", &before, RUST),
        change("tests/new.rs", "", "#[test]\nfn a() {}\n"),
        change("src/new.rs", "", "fn a() {}\n"),
    ];
    let changed = Changed::of(&changes, "");
    let tree = changed.tree(Side::Old, Side::New, None);
    let told: Vec<_> = tree
        .iter()
        .map(|(path, state)| {
            let text = state
                .as_ref()
                .map(|state| String::from_utf8(state.content.clone()).unwrap());
            (*path, text.map(|text| text.replace("\n\n", "\n")))
        })
        .collect();
    let laid = RUST.replace("a + b", "a - b").replace("\n\n", "\n");
    assert_eq!(told, [("src/lib.rs", Some(laid)), ("src/new.rs", None)]);
    assert!(!changed.has_orphans());
    let changes = [
        change("src/new.rs", "", "#[cfg(test)]\nmod tests;\n"),
        change("src/new/tests.rs", "", "#[test]\nfn a() {}\n"),
    ];
    assert!(Changed::of(&changes, "").has_orphans());
}

#[test]
fn build_output_shows_the_kind_of_failure() {
    use super::ending::Ending::{self, Failed, NotBuilt, TestFailed};
    use crate::exec::build_script::BuildStatus;
    for (expected, output) in [
        (
            TestFailed,
            "running 1 test\ntest adds ... FAILED\n\nerror: test failed, to rerun pass `--lib`\n",
        ),
        (
            TestFailed,
            "E       assert 3 == 4\nFAILED tests/test_a.py::test_a - assert 3 == 4\n1 failed in 0.01s\n",
        ),
        (
            TestFailed,
            "FAIL: test_add (test_add.T.test_add)\nAssertionError: 3 != 4\nFAILED (failures=1)\n",
        ),
        (
            TestFailed,
            "FAIL src/a.test.js\n  \u{2715} adds (2 ms)\nTests:       1 failed, 1 total\n",
        ),
        (
            TestFailed,
            "--- FAIL: TestAdd (0.00s)\n    add_test.go:6: want 3\nFAIL\n",
        ),
        (
            TestFailed,
            "[ERROR] Tests run: 2, Failures: 1, Errors: 0, Skipped: 0\n[ERROR] There are test failures.\n",
        ),
        (TestFailed, "[  FAILED  ] Calc.Adds (0 ms)\n"),
        (TestFailed, "Failed!  - Failed:     1, Passed:     1\n"),
        (
            TestFailed,
            "1) Calc adds\n  Failure/Error: expect(1).to eq 2\n2 examples, 1 failure\n",
        ),
        (TestFailed, "There was 1 failure:\n"),
        (TestFailed, "not ok 1 adds\n"),
        (TestFailed, "add 1 2: expected 3, got 4\n"),
        (Failed, ""),
        (
            Failed,
            "error: unused variable: `x`\n = note: `-D unused-variables` implied by `-D warnings`\nerror: could not compile `a` (lib) due to 1 previous error\n",
        ),
        (
            Failed,
            "a.c:3:5: error: unused variable 'x' [-Werror=unused-variable]\nmake: *** [Makefile:2: a.o] Error 1\n",
        ),
        (
            Failed,
            "src/a.ts(3,5): error TS7006: Parameter 'x' implicitly has an 'any' type.\n",
        ),
        (
            Failed,
            "src/a.py:1:1: F401 `os` imported but unused\nFound 1 error.\n",
        ),
        (
            Failed,
            "a.go:3:2: Error return value is not checked (errcheck)\n",
        ),
        (
            NotBuilt,
            "error[E0425]: cannot find function `plus` in this scope\nerror: could not compile `a` (test \"a\")\n",
        ),
        (
            NotBuilt,
            "ImportError: cannot import name 'plus' from 'calc'\nFAILED (errors=1)\n",
        ),
        (
            NotBuilt,
            "FAIL tests/a.test.js\n  \u{25cf} Test suite failed to run\n    Cannot find module './new'\nTests:       0 total\n",
        ),
        (
            NotBuilt,
            "./a_test.go:5:2: undefined: Sub\nFAIL\tx [build failed]\n",
        ),
        (
            NotBuilt,
            "src/a.ts(3,5): error TS2305: Module './a' has no exported member 'b'.\n",
        ),
        (
            NotBuilt,
            "[ERROR] COMPILATION ERROR : \n[ERROR] CalcTest.java:[3,5] cannot find symbol\n",
        ),
        (
            NotBuilt,
            "a.c:3:5: error: 'x' undeclared\nmake: *** [Makefile:2: a.o] Error 1\n",
        ),
        (
            NotBuilt,
            "tests/test_a.py:1: error: Module 'app' has no attribute 'x'  [attr-defined]\n",
        ),
        (NotBuilt, "sh: 1: pytest: not found\n"),
    ] {
        let found = Ending::of(BuildStatus::Exited(1), output, &["tests/test_a.py"]);
        assert_eq!(found, expected, "{output}");
    }
}
