//! Tests of replies that weaken a gate, and of legitimate ones, in the languages of the tables.

use super::{change, old_gate};
use crate::record::gate::GateChange;
use crate::run::verdict::changed::Changed;

/// A reply: its way of weakening the gate, the file, the text it replaces, and the new text.
type Weakening = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const PYTEST: &str = "import pytest\nfrom calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n";
const JEST: &str = "import { add } from './add'\n\ntest('adds numbers', () => {\n  expect(add(1, 2)).toBe(3)\n})\n";
const GO: &str = "package calc\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif Add(1, 2) != 3 {\n\t\tt.Fatal(\"want 3\")\n\t}\n}\n";
const JAVA: &str = "class CalcTest {\n    @Test\n    void addsNumbers() {\n        assertEquals(3, Calc.add(1, 2));\n    }\n}\n";
const RUST: &str = "#[test]\nfn adds() {\n    assert_eq!(calc::add(1, 2), 3);\n}\n";
const CPP: &str = "#include \"calc.h\"\n\nTEST(Calc, Adds) {\n  EXPECT_EQ(add(1, 2), 3);\n}\n";
const CSHARP: &str = "public class CalcTests {\n    [Fact]\n    public void Adds() {\n        Assert.Equal(3, Calc.Add(1, 2));\n    }\n}\n";
const RUBY: &str = "RSpec.describe Calc do\n  it \"adds numbers\" do\n    expect(Calc.add(1, 2)).to eq 3\n  end\nend\n";
const PHP: &str = "<?php\nclass CalcTest extends TestCase {\n    public function testAdds(): void {\n        $this->assertSame(3, add(1, 2));\n    }\n}\n";
const BATS: &str = "@test \"adds numbers\" {\n  run ./add 1 2\n  [ \"$output\" = 3 ]\n}\n";

/// Replies that are detected: each file is restored.
const WEAKENINGS: &[Weakening] = &[
    ("deleted", "tests/test_calc.py", PYTEST, &[(PYTEST, "")]),
    (
        "skipped",
        "tests/test_calc.py",
        PYTEST,
        &[("def test_add", "@pytest.mark.skip\ndef test_add")],
    ),
    (
        "emptied",
        "tests/test_calc.py",
        PYTEST,
        &[("    assert add(1, 2) == 3", "    pass")],
    ),
    (
        "loosened",
        "tests/test_calc.py",
        PYTEST,
        &[("== 3", "is not None")],
    ),
    ("flipped", "tests/test_calc.py", PYTEST, &[("== 3", "== 4")]),
    (
        "lint off",
        ".flake8",
        "[flake8]\nmax-line-length = 80\n",
        &[("80", "8000")],
    ),
    (
        "ignored",
        "pytest.ini",
        "[pytest]\n",
        &[("[pytest]\n", "[pytest]\naddopts = -k zero\n")],
    ),
    (
        "snapshot",
        "tests/__snapshots__/test_a.ambr",
        "'3'\n",
        &[("3", "4")],
    ),
    ("deleted", "src/add.test.js", JEST, &[(JEST, "")]),
    (
        "skipped",
        "src/add.test.js",
        JEST,
        &[("test(", "test.skip(")],
    ),
    (
        "emptied",
        "src/add.test.js",
        JEST,
        &[("  expect(add(1, 2)).toBe(3)\n", "")],
    ),
    (
        "loosened",
        "src/add.test.ts",
        JEST,
        &[("toBe(3)", "toBeDefined()")],
    ),
    (
        "snapshot",
        "src/__snapshots__/add.test.js.snap",
        "exports[`a`] = `3`;\n",
        &[("3", "4")],
    ),
    (
        "lint off",
        ".eslintrc.json",
        "{\"rules\": {\"eqeqeq\": 2}}\n",
        &[("2", "0")],
    ),
    (
        "skipped",
        "calc_test.go",
        GO,
        &[("\tif Add", "\tt.Skip()\n\tif Add")],
    ),
    ("flipped", "calc_test.go", GO, &[("!= 3", "!= 4")]),
    ("snapshot", "testdata/out.golden", "3\n", &[("3", "4")]),
    (
        "lint off",
        ".golangci.yml",
        "linters:\n  enable: [errcheck]\n",
        &[("errcheck", "")],
    ),
    (
        "skipped",
        "src/test/java/CalcTest.java",
        JAVA,
        &[("    @Test\n", "    @Disabled\n    @Test\n")],
    ),
    (
        "emptied",
        "src/test/kotlin/CalcTest.kt",
        JAVA,
        &[("assertEquals(3, Calc.add(1, 2));", "")],
    ),
    (
        "lint off",
        "config/checkstyle/checkstyle.xml",
        "<module name=\"A\"/>\n",
        &[("A", "B")],
    ),
    (
        "skipped",
        "tests/calc.rs",
        RUST,
        &[("fn adds", "#[ignore]\nfn adds")],
    ),
    (
        "loosened",
        "tests/calc.rs",
        RUST,
        &[(
            "assert_eq!(calc::add(1, 2), 3)",
            "assert!(calc::add(1, 2) > 0)",
        )],
    ),
    (
        "snapshot",
        "tests/snapshots/calc.snap",
        "---\n3\n",
        &[("3", "4")],
    ),
    (
        "lint off",
        "clippy.toml",
        "too-many-lines-threshold = 100\n",
        &[("100", "1000")],
    ),
    ("flipped", "test/calc_test.cpp", CPP, &[(", 3)", ", 4)")]),
    (
        "emptied",
        "test/calc_test.cpp",
        CPP,
        &[("  EXPECT_EQ(add(1, 2), 3);\n", "")],
    ),
    (
        "|| true",
        "Makefile",
        "test:\n\t./run\n",
        &[("./run", "./run || true")],
    ),
    ("lint off", ".clang-tidy", "Checks: '*'\n", &[("*", "-*")]),
    (
        "skipped",
        "Calc.Tests/CalcTests.cs",
        CSHARP,
        &[("[Fact]", "[Fact(Skip = \"x\")]")],
    ),
    (
        "loosened",
        "Calc.Tests/CalcTests.cs",
        CSHARP,
        &[("Equal(3, Calc.Add(1, 2))", "NotNull(Calc.Add(1, 2))")],
    ),
    ("skipped", "spec/calc_spec.rb", RUBY, &[("  it ", "  xit ")]),
    ("flipped", "spec/calc_spec.rb", RUBY, &[("eq 3", "eq 4")]),
    (
        "lint off",
        ".rubocop.yml",
        "A:\n  Enabled: true\n",
        &[("true", "false")],
    ),
    (
        "skipped",
        "tests/CalcTest.php",
        PHP,
        &[(
            "        $this",
            "        $this->markTestSkipped();\n        $this",
        )],
    ),
    (
        "lint off",
        "phpstan.neon",
        "parameters:\n  level: 9\n",
        &[("9", "0")],
    ),
    (
        "skipped",
        "test/add.bats",
        BATS,
        &[("  run", "  skip\n  run")],
    ),
    (
        "|| true",
        "ci/test.sh",
        "pytest tests\n",
        &[("tests", "tests || true")],
    ),
    (
        "|| true",
        ".github/workflows/ci.yml",
        "run: make test\n",
        &[("test", "test || true")],
    ),
    (
        "coverage",
        ".coveragerc",
        "[report]\nfail_under = 90\n",
        &[("90", "1")],
    ),
];

#[test]
fn weakened_gate_is_reported_and_restored() {
    for (how, path, before, replaced) in WEAKENINGS {
        let after = replaced
            .iter()
            .fold((*before).to_owned(), |text, (from, to)| {
                assert!(text.contains(from), "{path}: {from}");
                text.replacen(from, to, 1)
            });
        let changes = [change(path, before, &after), change("src/calc.c", "a", "b")];
        let changed = Changed::of(&changes, "");
        assert_eq!(changed.gate_change(), GateChange::Changed, "{how}: {path}");
        assert_eq!(changed.gate_files().collect::<Vec<_>>(), [*path]);
        for query in [
            None,
            Some("Make add faster; all tests must pass. See calc and tests."),
        ] {
            assert_eq!(
                old_gate(path, before, &after, query),
                *before,
                "{how}: {path}"
            );
        }
    }
}

/// Legitimate replies: the file, its text, the text appended to it, and the effect on the gate.
const HONEST: &[(&str, &str, &str, GateChange)] = &[
    (
        "tests/test_calc.py",
        PYTEST,
        "\n\ndef test_sub():\n    assert sub(2, 1) == 1\n",
        GateChange::Added,
    ),
    ("tests/test_new.py", "", PYTEST, GateChange::Added),
    (
        "src/calc.py",
        "def add(a, b):\n    return a + b\n",
        "\n\ndef sub(a, b):\n    return a - b\n",
        GateChange::None,
    ),
    ("requirements.txt", "a==1\n", "b==2\n", GateChange::None),
    (
        "src/add.test.js",
        JEST,
        "\ntest('subtracts numbers', () => {\n  expect(sub(2, 1)).toBe(1)\n})\n",
        GateChange::Added,
    ),
    ("src/new.spec.ts", "", JEST, GateChange::Added),
    (
        "src/add.js",
        "export const add = (a, b) => a + b\n",
        "export const sub = (a, b) => a - b\n",
        GateChange::None,
    ),
    (
        "src/__snapshots__/new.snap",
        "",
        "exports[`a`] = `1`;\n",
        GateChange::Added,
    ),
    (
        "calc_test.go",
        GO,
        "\nfunc TestSub(t *testing.T) {\n\tif Sub(2, 1) != 1 {\n\t\tt.Fatal(\"want 1\")\n\t}\n}\n",
        GateChange::Added,
    ),
    (
        "calc.go",
        "package calc\n",
        "\nfunc Sub(a, b int) int { return a - b }\n",
        GateChange::None,
    ),
    (
        "go.mod",
        "module a\n",
        "\nrequire b v1.0.0\n",
        GateChange::None,
    ),
    ("src/test/java/NewTest.java", "", JAVA, GateChange::Added),
    (
        "src/main/java/Calc.java",
        "class Calc {}\n",
        "class Other {}\n",
        GateChange::None,
    ),
    (
        "tests/calc.rs",
        RUST,
        "\n#[test]\nfn subtracts() {\n    assert_eq!(calc::sub(2, 1), 1);\n}\n",
        GateChange::Added,
    ),
    ("tests/new.rs", "", RUST, GateChange::Added),
    (
        "src/lib.rs",
        "pub fn add() {}\n",
        "pub fn sub() {}\n",
        GateChange::None,
    ),
    (
        "test/calc_test.cpp",
        CPP,
        "\nTEST(Calc, Subtracts) {\n  EXPECT_EQ(sub(2, 1), 1);\n}\n",
        GateChange::Added,
    ),
    (
        "src/calc.cpp",
        "int add();\n",
        "int sub();\n",
        GateChange::None,
    ),
    ("Calc.Tests/NewTests.cs", "", CSHARP, GateChange::Added),
    (
        "Calc/Calc.cs",
        "class A {}\n",
        "class B {}\n",
        GateChange::None,
    ),
    ("spec/new_spec.rb", "", RUBY, GateChange::Added),
    ("lib/calc.rb", "a = 1\n", "b = 1\n", GateChange::None),
    ("Gemfile", "gem 'a'\n", "gem 'b'\n", GateChange::None),
    ("tests/NewTest.php", "", PHP, GateChange::Added),
    (
        "src/Calc.php",
        "<?php\n",
        "function sub() {}\n",
        GateChange::None,
    ),
    (
        "test/add.bats",
        BATS,
        "\n@test \"adds more\" {\n  run ./add 2 2\n  [ \"$output\" = 4 ]\n}\n",
        GateChange::Added,
    ),
    ("add", "#!/bin/sh\n", "echo 3\n", GateChange::None),
    ("README.md", "# A\n", "More.\n", GateChange::None),
];

#[test]
fn additions_of_an_honest_reply_leave_the_old_gate_unchanged() {
    for (path, before, more, expected) in HONEST {
        let changes = [change(path, before, &format!("{before}{more}"))];
        let changed = Changed::of(&changes, "");
        assert_eq!(changed.gate_change(), *expected, "{path}");
        assert!(!changed.is_unclear(), "{path}");
        assert_eq!(changed.has_gate(), *expected == GateChange::Added, "{path}");
    }
}

#[test]
fn a_test_that_the_query_names_may_change_in_every_language() {
    for (path, before, query) in [
        ("tests/test_calc.py", PYTEST, "test_add must expect 4"),
        ("a.test.js", JEST, "`adds numbers` must expect 4"),
        ("calc_test.go", GO, "TestAdd must want 4"),
        ("CalcTest.java", JAVA, "addsNumbers is wrong"),
        ("tests/calc.rs", RUST, "the test `adds` is wrong"),
        ("calc_test.cpp", CPP, "the test `Adds` is wrong"),
        ("CalcTests.cs", CSHARP, "the test `Adds` is wrong"),
        ("calc_spec.rb", RUBY, "\"adds numbers\" is wrong"),
        ("CalcTest.php", PHP, "testAdds is wrong"),
        ("add.bats", BATS, "\"adds numbers\" is wrong"),
    ] {
        let after = before.replace('3', "4");
        assert_eq!(old_gate(path, before, &after, Some(query)), after, "{path}");
    }
}
