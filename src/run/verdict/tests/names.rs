//! Tests of files classified by name: settings of tools, and files that are named like tests but are not.

use super::change;
use crate::record::gate::GateChange;
use crate::run::verdict::changed::Changed;
use crate::run::verdict::table::{FileKind, Form, kind};

/// A file with the name of a test, a text without tests, and one with a test.
const NAMED: &[(&str, &str, &str)] = &[
    (
        "src/SpeedTest.cs",
        "class SpeedTest { int Speed() => 1; }\n",
        "class A {\n    [Fact] void B() { }\n}\n",
    ),
    (
        "src/LoadTests.cs",
        "class LoadTests { void Run() { throw new Exception(); } }\n",
        "using NUnit.Framework;\n",
    ),
    (
        "LoadTest.java",
        "class LoadTest { void load() throws IOException { check(1); } }\n",
        "class A { void b() { assert Calc.add(1, 2) == 3; } }\n",
    ),
    (
        "app/TestDrive.java",
        "class TestDrive { }\n",
        "import static org.junit.jupiter.api.Assertions.*;\n",
    ),
    (
        "app/ContestTest.kt",
        "class ContestTest { val speed = 1 }\n",
        "class A : StringSpec({ \"b\" { f(1) shouldBe 1 } })\n",
    ),
    (
        "app/PodSpec.groovy",
        "class PodSpec { int cpus }\n",
        "class A extends Specification { }\n",
    ),
    (
        "app/Models/AbTest.php",
        "<?php\nclass AbTest extends Model { }\n",
        "<?php\nclass A extends TestCase { }\n",
    ),
    (
        "app/models/ab_test.rb",
        "class AbTest < ApplicationRecord\nend\n",
        "class A < Minitest::Test\nend\n",
    ),
    (
        "src/SpeedTest.cpp",
        "int speed() { static_assert(true); return 1; }\n",
        "TEST_CASE(\"a\") { CHECK(add(1, 2) == 3); }\n",
    ),
    (
        "src/speed_test.c",
        "int speed(void) { return 1; }\n",
        "#include <assert.h>\n",
    ),
    (
        "src/speed-test.tsx",
        "export const SpeedTest = () => <p/>\n",
        "test('a', () => {})\n",
    ),
    (
        "Sources/SpeedTest.swift",
        "struct SpeedTest { }\n",
        "import XCTest\n",
    ),
    (
        "cmd/test.go",
        "package cmd\n\nfunc Test() { run() }\n",
        "package cmd\n\nfunc testAdd(t *testing.T) { }\n",
    ),
    (
        "commands/test.py",
        "def run():\n    pass\n",
        "import add\nassert add.add(1, 2) == 3\n",
    ),
    (
        "templates/speed_test.html",
        "<p>Speed</p>\n",
        "<script>QUnit.test('a', assert => assert.ok(1))</script>\n",
    ),
    (
        "internal/testing/server.go",
        "package testing\n",
        "package testing\n\nfunc Equal(t *testing.T, a, b int) { }\n",
    ),
];

#[test]
fn a_source_file_with_the_name_of_a_test_is_one_if_it_shows_that() {
    for (path, product, test) in NAMED {
        assert_eq!(kind(path, product).0, FileKind::Named, "{path}");
        assert_eq!(kind(path, test).0, FileKind::Test, "{path}");
        // The old text counts, if there was one.
        for (before, after, expected) in [
            (*product, *test, [false, true]),
            (test, product, [true, false]),
            ("\n", test, [true, false]),
        ] {
            let changes = [change(path, before, after)];
            let changed = Changed::of(&changes, "");
            let found = [changed.has_gate(), changed.has_code()];
            assert_eq!(found, expected, "{path}: {before}");
        }
    }
    // A new file has not judged anything before, and one that the build runs may be a check.
    let [(path, product, _), ..] = NAMED else {
        panic!("no names");
    };
    let changes = [change(path, "", product)];
    assert_eq!(Changed::of(&changes, "").gate_change(), GateChange::None);
    let changes = [change("test.py", "a(1)\n", "a(2)\n")];
    let changed = Changed::of(&changes, "python3 test.py\n");
    assert!(changed.is_unclear() && changed.tree_with_check("").is_some());
    // In Rust, the attributes of the items decide.
    let within =
        "pub fn a() {}\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() { assert!(true) }\n}\n";
    for (text, expected) in [
        (within, FileKind::Parts(Form::Rust)),
        ("#[test]\nfn b() {}\n", FileKind::Test),
    ] {
        for path in ["src/ab_test.rs", "src/commands/test.rs"] {
            assert_eq!(kind(path, text).0, expected, "{path}: {text}");
        }
    }
}

#[test]
fn files_named_as_tests_are_tests() {
    for path in "a_test.py test_a.py a_test.go a-test.js a_test.mjs a.test.tsx a_spec.rb a-spec.ts a_test.sh a_test.exs test.ts \
                 a_test.dart test_a.c test.js src/integrationTest/a.kt app/src/androidTest/A.kt speed_test.json"
        .split_whitespace()
    {
        assert_eq!(kind(path, "a").0, FileKind::Test, "{path}");
    }
}

#[test]
fn main_sources_of_maven_and_gradle_are_not_tests() {
    let test = "class A {\n    @Test void b() { assert true; }\n}\n";
    for path in "src/main/java/org/LoadTest.java core/src/main/kotlin/test/A.kt src/main/scala/tests/A.scala \
                 src/commonMain/kotlin/fixtures/A.kt src/main/resources/speed-test.html src/main/resources/test/a.sql"
        .split_whitespace()
    {
        assert_eq!(kind(path, test).0, FileKind::Code, "{path}");
        let changes = [change(path, test, "class A {}\n")];
        assert!(!Changed::of(&changes, "").has_gate(), "{path}");
    }
    for (path, expected) in [
        ("src/main/resources/checkstyle.xml", FileKind::Settings),
        ("src/main/a.test.ts", FileKind::Test),
        ("roles/a/molecule/default/verify.yml", FileKind::Test),
        ("src/molecule/bond.py", FileKind::Code),
    ] {
        assert_eq!(kind(path, "").0, expected, "{path}");
    }
}

#[test]
fn the_settings_of_tools_are_the_gate() {
    for path in
        "GlobalSuppressions.cs src/GlobalSuppressions.cs BannedSymbols.txt .csharpierrc a.globalconfig a.testsettings \
         lefthook.yml .lefthook.yml lefthook.yaml lefthook.toml .husky/pre-push .githooks/pre-commit .overcommit.yml \
         .codeclimate.yml .semgrep.yml .semgrepignore .gitleaks.toml .gitleaksignore .trivyignore .jscpd.json qodana.yaml \
         Dangerfile .lycheeignore lychee.toml .coveralls.yml .clang-format-ignore CPPLINT.cfg lsan.supp \
         tools/valgrind.supp tsan_suppressions.txt iwyu.imp eslint-suppressions.json setupTests.ts \
         lint-staged.config.js stryker.conf.json .dependency-cruiser.js dprint.json web-test-runner.config.mjs \
         pytest.toml tox.toml ty.toml .pyre_configuration nose2.cfg bandit.yaml .pylintrc.toml .codespellrc .flake8 \
         .revive.toml .go-arch-lint.yml dylint.toml .deny.toml deny.exceptions.toml lint.xml app/lint-baseline.xml \
         detekt-baseline.xml settings.gradle settings.gradle.kts gradle/checks.gradle buildSrc/src/main/kotlin/a.gradle.kts \
         build-logic/a.kt .scalafmt.conf .scalafix.conf scalastyle-config.xml cpd.xml archunit.properties \
         phpunit.ci.xml pint.json deptrac.yaml captainhook.json .rspec_parallel .erb_lint.yml .haml-lint.yml \
         config/brakeman.ignore .standard_todo.yml .swiftformat .swift-format a.xctestplan .credo.exs .formatter.exs \
         coveralls.json analysis_options.yaml .luacheckrc selene.toml .hlint.yaml .tflint.hcl buf.yaml \
         .mocharc.yml vitest.config.mts .golangci.toml .editorconfig tox.ini noxfile.py .nycrc codecov.yml \
         sonar-project.properties .pre-commit-config.yaml CTestTestfile.cmake .ansible-lint .config/ansible-lint.yml"
            .split_whitespace()
    {
        assert_eq!(kind(path, "").0, FileKind::Settings, "{path}");
    }
    for path in
        "a.cabal cabal.project cabal.project.local stack.yaml package.yaml mix.exs".split(' ')
    {
        assert_eq!(kind(path, "").0, FileKind::Either, "{path}");
    }
    for path in
        "renovate.json .gitmodules PublicAPI.Unshipped.txt suppressions.py src/lint.xml.cs go.sum"
            .split_whitespace()
    {
        assert_eq!(kind(path, "").0, FileKind::Code, "{path}");
    }
}

#[test]
fn of_packages_of_dotnet_analyzers_alone_are_the_gate() {
    let packages = |more: &str| {
        format!(
            "<Project>\n  <ItemGroup>\n    <PackageVersion Include=\"a\" Version=\"1\" />\n{more}  </ItemGroup>\n</Project>\n"
        )
    };
    let analyzer = "    <GlobalPackageReference Include=\"StyleCop.Analyzers\" Version=\"1\" />\n";
    for (before, after, expected) in [
        (
            packages(""),
            packages("").replace('1', "2"),
            GateChange::None,
        ),
        (packages(analyzer), packages(""), GateChange::Changed),
    ] {
        let changes = [change("Directory.Packages.props", &before, &after)];
        assert_eq!(Changed::of(&changes, "").gate_change(), expected, "{after}");
    }
    // An element without content ends in its own tag.
    let both = "<Project><ItemGroup><Compile Remove=\"a\" /><Content Include=\"b\" /><Compile Remove=\"c\"></Compile></ItemGroup></Project>\n";
    let changes = [change("A.csproj", both, &both.replace("\"b\"", "\"d\""))];
    assert_eq!(Changed::of(&changes, "").gate_change(), GateChange::None);
}
