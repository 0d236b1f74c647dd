//! Replies that weaken a gate in eight languages, legitimate replies, and files that may be checks, under `--gate
//! strict`.
//!
//! A small program stands in for the test runners and linters: it finds a language's assertions, skipped tests and
//! silenced lints, and prints what the language's tools print.

use std::thread;

use serde_json::{Value, json};

use crate::support::{Finished, ModelServer, TestProject};

/// A language: the code, the tests, a snapshot and lint settings, each as path and text, and how they are changed.
struct Language {
    code: [&'static str; 2],
    /// An additional function, at the end of the code.
    more: &'static str,
    tests: [&'static str; 2],
    /// Another test, for that function, and the path of a new file for it.
    another: [&'static str; 2],
    snapshot: &'static str,
    settings: [&'static str; 2],
    manifest: [&'static str; 2],
    /// A regular expression for assertions, with the function, its arguments and the expected value.
    equal: &'static str,
    /// The name of the test.
    name: &'static str,
    /// The attribute that skips the test, and the text before which it is inserted.
    skip: [&'static str; 2],
    /// The replacement for an assertion that matches this regular expression.
    loose: [&'static str; 2],
    /// A line of code that a linter reports, the line before it, and the attribute that silences it.
    unused: [&'static str; 3],
    silence: &'static str,
    /// The messages for a failed test, for a lint, and for a missing function.
    told: [&'static str; 3],
}

const LANGUAGES: [Language; 8] = [
    Language {
        code: ["calc.py", "def add(a, b):\n    return a + b\n"],
        more: "\n\ndef sub(a, b):\n    return a - b\n",
        tests: [
            "tests/test_calc.py",
            "def test_add():\n    assert add(1, 2) == 3\n",
        ],
        another: [
            "tests/test_sub.py",
            "def test_sub():\n    assert sub(3, 1) == 2\n",
        ],
        snapshot: "tests/__snapshots__/add.ambr",
        settings: ["ruff.toml", "select = [\"F841\"]\n"],
        manifest: ["requirements.txt", "a==1\n"],
        equal: r"assert (add|sub)\((\d), (\d)\) == (-?\d)",
        name: "test_add",
        skip: ["@pytest.mark.skip\n", "def test_add"],
        loose: ["add(1, 2) == 3", "add(1, 2) is not None"],
        unused: [
            "b):\n",
            "    unused = a\n",
            "    unused = a  # noqa: F841\n",
        ],
        silence: "# noqa",
        told: [
            "FAILED tests/test_calc.py::test_add - assert -1 == 3",
            "calc.py:2:5: F841 Local variable `unused` is assigned to but never used",
            "ImportError: cannot import name 'sub' from 'calc'",
        ],
    },
    Language {
        code: [
            "src/add.js",
            "export const add = (a, b) => {\n  return a + b\n}\n",
        ],
        more: "export const sub = (a, b) => a - b\n",
        tests: [
            "src/add.test.js",
            "test('adds numbers', () => {\n  expect(add(1, 2)).toBe(3)\n})\n",
        ],
        another: [
            "src/sub.test.js",
            "test('subtracts', () => {\n  expect(sub(3, 1)).toBe(2)\n})\n",
        ],
        snapshot: "src/__snapshots__/add.test.js.snap",
        settings: [".eslintrc.json", "{\"rules\": {\"no-unused-vars\": 2}}\n"],
        manifest: [
            "package.json",
            "{\"version\": \"1\", \"scripts\": {\"test\": \"jest\"}}\n",
        ],
        equal: r"expect\((add|sub)\((\d), (\d)\)\)\.toBe\((-?\d)\)",
        name: "`adds numbers`",
        skip: [".skip", "('adds numbers'"],
        loose: ["toBe(3)", "toBeDefined()"],
        unused: [
            "=> {\n",
            "  const unused = a\n",
            "  // eslint-disable-next-line no-unused-vars\n  const unused = a\n",
        ],
        silence: "eslint-disable",
        told: [
            "FAIL src/add.test.js\nTests:       1 failed, 1 total",
            "  2:9  error  'unused' is assigned a value but never used  no-unused-vars\n✖ 1 problem",
            "Cannot find module 'sub'",
        ],
    },
    Language {
        code: [
            "calc.go",
            "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n",
        ],
        more: "\nfunc Sub(a, b int) int { return a - b }\n",
        tests: [
            "calc_test.go",
            "package calc\n\nfunc TestAdd(t *testing.T) {\n\tif got := Add(1, 2); got != 3 {\n\t\tt.Fatal(got)\n\t}\n}\n",
        ],
        another: [
            "sub_test.go",
            "package calc\n\nfunc TestSub(t *testing.T) {\n\tif got := Sub(3, 1); got != 2 {\n\t\tt.Fatal(got)\n\t}\n}\n",
        ],
        snapshot: "testdata/add.golden",
        settings: [".golangci.yml", "enable: [unused]\n"],
        manifest: ["go.mod", "module calc\n"],
        equal: r"(Add|Sub)\((\d), (\d)\); got != (-?\d) \{\n\t\tt\.Fatal",
        name: "TestAdd",
        skip: ["\tt.Skip()\n", "\tif got := Add"],
        loose: ["t.Fatal", "t.Log"],
        unused: [
            "int {\n",
            "\tunused := a\n",
            "\tunused := a //nolint:unused\n",
        ],
        silence: "//nolint",
        told: [
            "--- FAIL: TestAdd (0.00s)\n    calc_test.go:5: -1\nFAIL",
            "calc.go:4:2: var `unused` is unused (unused)",
            "./calc_test.go:4:2: undefined: Sub\nFAIL\tcalc [build failed]",
        ],
    },
    Language {
        code: [
            "src/main/java/Calc.java",
            "class Calc {\n    static int add(int a, int b) {\n        return a + b;\n    }\n}\n",
        ],
        more: "class More {\n    static int sub(int a, int b) { return a - b; }\n}\n",
        tests: [
            "src/test/java/CalcTest.java",
            "class CalcTest {\n    @Test\n    void addsNumbers() {\n        assertEquals(3, Calc.add(1, 2));\n    }\n}\n",
        ],
        another: [
            "src/test/java/SubTest.java",
            "class SubTest {\n    @Test\n    void subtracts() {\n        assertEquals(More.sub(3, 1), 2);\n    }\n}\n",
        ],
        snapshot: "src/test/resources/add.txt",
        settings: ["checkstyle.xml", "<module name=\"UnusedLocalVariable\"/>\n"],
        manifest: [
            "pom.xml",
            "<project><version>1</version><build/></project>\n",
        ],
        equal: r"assertEquals\((?=(?:-?\d, )?\w+\.(add|sub)\((\d), (\d)\))(?:\w+\.\w+\(\d, \d\), )?(-?\d)",
        name: "addsNumbers",
        skip: ["    @Disabled\n", "    @Test"],
        loose: [
            "assertEquals(3, Calc.add(1, 2))",
            "assertNotNull(Calc.add(1, 2))",
        ],
        unused: [
            "b) {\n",
            "        int unused = a;\n",
            "        @SuppressWarnings(\"UnusedLocalVariable\")\n        int unused = a;\n",
        ],
        silence: "@Suppress",
        told: [
            "[ERROR] Tests run: 1, Failures: 1, Errors: 0, Skipped: 0",
            "[ERROR] Calc.java:3: unused (Checkstyle)\nYou have 1 Checkstyle violation.",
            "[ERROR] COMPILATION ERROR : \n[ERROR] SubTest.java:[4,22] cannot find symbol",
        ],
    },
    Language {
        code: [
            "src/lib.rs",
            "pub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n",
        ],
        more: "\npub fn sub(a: i32, b: i32) -> i32 {\n    a - b\n}\n",
        tests: [
            "tests/calc.rs",
            "#[test]\nfn adds_numbers() {\n    assert_eq!(calc::add(1, 2), 3);\n}\n",
        ],
        another: [
            "tests/sub.rs",
            "#[test]\nfn subtracts() {\n    assert_eq!(calc::sub(3, 1), 2);\n}\n",
        ],
        snapshot: "tests/snapshots/add.snap",
        settings: ["clippy.toml", "unused = \"deny\"\n"],
        manifest: [
            "Cargo.toml",
            "[package]\nname = \"calc\"\n\n[dependencies]\n",
        ],
        equal: r"assert_eq!\(calc::(add|sub)\((\d), (\d)\), (-?\d)\)",
        name: "adds_numbers",
        skip: ["#[ignore]\n", "fn adds"],
        loose: [
            "assert_eq!(calc::add(1, 2), 3)",
            "assert!(calc::add(1, 2) < 9)",
        ],
        unused: [
            "i32 {\n",
            "    let unused = a;\n",
            "    #[allow(unused_variables)]\n    let unused = a;\n",
        ],
        silence: "#[allow",
        told: [
            "test adds_numbers ... FAILED\nerror: test failed, to rerun pass `--test calc`",
            "error: unused variable: `unused`\n = note: `-D unused-variables` implied by `-D warnings`",
            "error[E0425]: cannot find function `sub` in crate `calc`",
        ],
    },
    Language {
        code: [
            "src/calc.cpp",
            "int add(int a, int b) {\n  return a + b;\n}\n",
        ],
        more: "int sub(int a, int b) { return a - b; }\n",
        tests: [
            "test/calc_test.cpp",
            "TEST(Calc, Adds) {\n  EXPECT_EQ(add(1, 2), 3);\n}\n",
        ],
        another: [
            "test/sub_test.cpp",
            "TEST(Calc, Subtracts) {\n  EXPECT_EQ(sub(3, 1), 2);\n}\n",
        ],
        snapshot: "test/golden/add.txt",
        settings: [".clang-tidy", "Checks: unused\n"],
        manifest: ["conanfile.txt", "[requires]\n"],
        equal: r"EXPECT_EQ\((add|sub)\((\d), (\d)\), (-?\d)\)",
        name: "`Adds`",
        skip: ["  GTEST_SKIP();\n", "  EXPECT_EQ"],
        loose: ["EXPECT_EQ(add(1, 2), 3)", "EXPECT_LT(add(1, 2), 9)"],
        unused: [
            "b) {\n",
            "  int unused = a;\n",
            "  int unused = a;  // NOLINT\n",
        ],
        silence: "NOLINT",
        told: [
            "[  FAILED  ] Calc.Adds (0 ms)",
            "src/calc.cpp:2:7: error: unused variable 'unused' [-Werror=unused-variable]",
            "test/sub_test.cpp:2:13: error: 'sub' was not declared in this scope",
        ],
    },
    Language {
        code: [
            "Calc/Calc.cs",
            "class Calc {\n    static int Add(int a, int b) {\n        return a + b;\n    }\n}\n",
        ],
        more: "class More {\n    static int Sub(int a, int b) { return a - b; }\n}\n",
        tests: [
            "Calc.Tests/CalcTests.cs",
            "class CalcTests {\n    [Fact]\n    public void AddsNumbers() {\n        Assert.True(Calc.Add(1, 2) == 3);\n    }\n}\n",
        ],
        another: [
            "Calc.Tests/SubTests.cs",
            "class SubTests {\n    [Fact]\n    public void Subtracts() {\n        Assert.True(More.Sub(3, 1) == 2);\n    }\n}\n",
        ],
        snapshot: "Calc.Tests/Adds.verified.txt",
        settings: [".globalconfig", "CS0219 = error\n"],
        manifest: [
            "Calc/Calc.csproj",
            "<Project><ItemGroup></ItemGroup></Project>\n",
        ],
        equal: r"True\(\w+\.(Add|Sub)\((\d), (\d)\) == (-?\d)\)",
        name: "AddsNumbers",
        skip: ["    [Fact(Skip = \"later\")]\n", "    public void"],
        loose: ["Calc.Add(1, 2) == 3", "Calc.Add(1, 2) < 9"],
        unused: [
            "b) {\n",
            "        int unused = a;\n",
            "#pragma warning disable CS0219\n        int unused = a;\n",
        ],
        silence: "#pragma",
        told: [
            "Failed!  - Failed:     1, Passed:     0",
            "Calc.cs(3,13): error CS0219: The variable 'unused' is assigned but its value is never used",
            "SubTests.cs(4,28): error CS0103: The name 'More' does not exist",
        ],
    },
    Language {
        code: ["lib/calc.rb", "def add(a, b)\n  a + b\nend\n"],
        more: "\ndef sub(a, b)\n  a - b\nend\n",
        tests: [
            "spec/calc_spec.rb",
            "describe 'calc' do\n  it 'adds numbers' do\n    expect(add(1, 2)).to eq 3\n  end\nend\n",
        ],
        another: [
            "spec/sub_spec.rb",
            "describe 'sub' do\n  it 'subtracts' do\n    expect(sub(3, 1)).to eq 2\n  end\nend\n",
        ],
        snapshot: "spec/fixtures/add.txt",
        settings: [".rubocop.yml", "Lint/UselessAssignment: true\n"],
        manifest: ["Gemfile", "gem 'a'\n"],
        equal: r"expect\((add|sub)\((\d), (\d)\)\)\.to eq (-?\d)",
        name: "'adds numbers'",
        skip: ["    skip\n", "    expect(add"],
        loose: ["to eq 3", "not_to be_nil"],
        unused: [
            "b)\n",
            "  unused = a\n",
            "  unused = a # rubocop:disable Lint/UselessAssignment\n",
        ],
        silence: "rubocop:disable",
        told: [
            "1 example, 1 failure",
            "lib/calc.rb:2:3: W: Lint/UselessAssignment: unused\n1 offense detected\n1 file inspected, 1 offenses detected",
            "NameError: uninitialized constant sub",
        ],
    },
];

const JUDGE: &str = r"
import glob, json, os, re, sys

def fail(line):
    print(line)
    sys.exit(1)

language = json.load(open('judge.json'))
failed, linted, missing = language['told']
code = open(language['code']).read()
functions = {'add': lambda a, b: a + b if 'a + b' in code else a - b, 'sub': lambda a, b: a - b}
settings, rule = language['settings']
lines = code.split('\n')
for at, line in enumerate(lines):
    near = line + lines[at - 1]
    if 'unused =' in line or 'unused :=' in line:
        if open(settings).read() == rule and language['silence'] not in near:
            fail(linted)
for path in glob.glob(language['tests']):
    text = open(path).read()
    if language['skip'] in text:
        continue
    for name, a, b, value in re.findall(language['equal'], text):
        if name.lower() == 'sub' and 'sub' not in code.lower():
            fail(missing)
        if functions[name.lower()](int(a), int(b)) != int(value):
            fail(failed)
if int(open(language['snapshot']).read()) != functions['add'](2, 2) + ('more' in code):
    fail(failed)
";

fn replaced([path, text]: [&'static str; 2], from: &str, to: &str) -> [String; 2] {
    assert!(text.contains(from), "{path}: {from}");
    [path.to_owned(), text.replacen(from, to, 1)]
}

impl Language {
    fn project(&self) -> TestProject {
        let [tests, _] = self.tests;
        let (folder, name) = tests.rsplit_once('/').unwrap_or((".", tests));
        let end = name.trim_start_matches(|c: char| c != '.');
        // If tests are next to the code, by the end of the name.
        let end = name.find("_test.").map_or(end, |at| &name[at..]);
        let judge = json!({
            "code": self.code[0],
            "tests": format!("{folder}/*{end}"),
            "settings": self.settings,
            "snapshot": self.snapshot,
            "equal": self.equal,
            "skip": self.skip[0].trim(),
            "silence": self.silence,
            "told": self.told,
        });
        let mut project = TestProject::new()
            .file("judge.json", judge.to_string())
            .file("judge.py", JUDGE)
            .file("ci/test.sh", "python3 judge.py\n")
            .file(self.snapshot, "4\n")
            .build("sh ci/test.sh");
        for [path, text] in [self.code, self.tests, self.settings, self.manifest] {
            project = project.file(path, text);
        }
        project
    }

    fn broken(&self) -> [String; 2] {
        replaced(self.code, "a + b", "a - b")
    }

    /// Returns the code with an additional function, as a correction needs it, and a comment.
    fn extended(&self) -> [String; 2] {
        [
            self.code[0].to_owned(),
            format!("{}{}", self.code[1], self.more),
        ]
    }

    /// Returns a reply that weakens the gate in this way.
    fn weakening(&self, how: &str) -> Vec<[String; 2]> {
        let test = |from: &str, to: &str| replaced(self.tests, from, to);
        let four = [self.snapshot.to_owned(), "0\n".to_owned()];
        let assertion = self.tests[1].lines().find(|line| line.contains("1, 2)"));
        let unused = |how: usize| {
            let [above, ..] = self.unused;
            let line = format!("{above}{}", self.unused[how]);
            replaced(self.code, above, &line)
        };
        let is_go = self.code[0] == "calc.go";
        match how {
            "deleted" => vec![
                self.broken(),
                [self.tests[0].to_owned(), String::new()],
                four,
            ],
            "skipped" => {
                let [skip, before] = self.skip;
                vec![
                    self.broken(),
                    test(before, &format!("{skip}{before}")),
                    four,
                ]
            }
            "emptied" if is_go => vec![self.broken(), test("t.Fatal(got)", "_ = got"), four],
            "emptied" => vec![self.broken(), test(assertion.unwrap(), ""), four],
            "loosened" => vec![self.broken(), test(self.loose[0], self.loose[1]), four],
            "flipped" => vec![self.broken(), test("3", "-1"), four],
            "snapshot" => {
                let five = [self.snapshot.to_owned(), "5\n".to_owned()];
                vec![replaced(self.code, "a + b", "a + b + more"), five]
            }
            "lint off" => vec![unused(1), [self.settings[0].to_owned(), "off\n".to_owned()]],
            "silenced" => vec![unused(2)],
            _ => vec![
                self.broken(),
                [
                    "ci/test.sh".to_owned(),
                    "python3 judge.py || true\n".to_owned(),
                ],
            ],
        }
    }

    /// Returns a legitimate reply, with its query.
    fn honest(&self, how: &str) -> (String, Vec<[String; 2]>) {
        let [more, test] = self.another;
        let (query, files) = match how {
            "code" => ("Subtract.".to_owned(), vec![self.extended()]),
            "test beside" => {
                let both = format!(
                    "{}\n{}",
                    self.tests[1],
                    test.trim_start_matches("package calc\n")
                );
                let tests = [self.tests[0].to_owned(), both];
                ("Subtract.".to_owned(), vec![self.extended(), tests])
            }
            "new file" => {
                let file = [more.to_owned(), test.to_owned()];
                ("Subtract.".to_owned(), vec![self.extended(), file])
            }
            "named" => {
                let snapshot = self.snapshot;
                let query = format!("Let {} expect -1, and {snapshot} 0.", self.name);
                (query, self.weakening("flipped"))
            }
            _ => {
                let [path, text] = self.manifest;
                let text = match path.rsplit('.').next() {
                    Some("json") => text.replace('1', "2"),
                    Some("xml") => text.replace("1<", "2<"),
                    Some("csproj") => text.replace("</Item", "<Reference Include=\"b\"/></Item"),
                    _ => format!("{text}b = \"1\"\n"),
                };
                (
                    "Update.".to_owned(),
                    vec![[path.to_owned(), text], self.extended()],
                )
            }
        };
        (query, files)
    }
}

/// Runs with a reply of these files under `--gate strict`; an empty file is deleted.
pub fn strict(
    project: TestProject,
    query: &str,
    files: &[[impl AsRef<str>; 2]],
) -> (Finished, Value) {
    let files = files.iter().map(|file| file.each_ref().map(AsRef::as_ref));
    let blocks = files.map(|[path, text]| match text {
        "" => format!("^^^{path}\n^^^delete\n"),
        text => format!("^^^{path}\n{text}^^^end\n"),
    });
    let reply: String = blocks.collect();
    let run = project.with(&ModelServer::gemini(&[&reply])).run(&[
        "--gate",
        "strict",
        "--sandbox",
        "off",
        "--allow-stale",
        "-m",
        query,
    ]);
    let result = run.result();
    (run, result)
}

const WEAKENINGS: [&str; 9] = [
    "deleted", "skipped", "emptied", "loosened", "flipped", "snapshot", "lint off", "silenced",
    "|| true",
];
const HONEST: [&str; 5] = ["code", "test beside", "new file", "named", "manifest"];

#[test]
fn every_weakening_fails_in_every_language() {
    thread::scope(|scope| {
        for (nth, language) in LANGUAGES.iter().enumerate() {
            scope.spawn(move || {
                // Five of the ways in each language, and each way in at least four languages.
                let hows = (0..5).map(|way| WEAKENINGS[(nth * 5 + way) % WEAKENINGS.len()]);
                for how in hows {
                    let files = language.weakening(how);
                    let query = "Make it faster; all tests must pass.";
                    let (run, result) = strict(language.project(), query, &files);
                    let name = language.code[0];
                    assert_eq!(
                        result["exit"]["name"], "gate-weakened",
                        "{name}, {how}: {}\n{}",
                        run.stderr, result["gate"]
                    );
                }
            });
        }
    });
}

#[test]
fn no_honest_reply_fails_in_any_language() {
    thread::scope(|scope| {
        for language in &LANGUAGES {
            scope.spawn(move || {
                for how in HONEST {
                    let (query, files) = language.honest(how);
                    let (run, result) = strict(language.project(), &query, &files);
                    let name = language.code[0];
                    let told = format!("{name}, {how}: {}\n{}", run.stderr, result["gate"]);
                    assert_eq!(result["exit"]["name"], "done", "{told}");
                    let gate = &result["gate"];
                    let expected = match how {
                        "code" | "manifest" => ["none", "not-run"],
                        "named" => ["changed", "failed"],
                        _ => ["added", "passed"],
                    };
                    let judged = [&gate["change"], &gate["old_gate"]];
                    assert_eq!(judged, expected, "{told}");
                }
            });
        }
    });
}

const CALC: &str = "def add(a, b):\n    return a + b\n";
const BROKEN: &str = "def add(a, b):\n    return a - b\n";
const CHECK: &str = "from calc import add\nassert add(1, 2) == 3, 'add'\n";
const NO_CHECK: &str = "from calc import add\n";
const CASES: &str = "import json, unittest\nfrom calc import add\n\n\nclass T(unittest.TestCase):\n    def test_cases(self):\n        for a, b, c in json.load(open('data/cases.json')):\n            self.assertEqual(add(a, b), c)\n";

/// A reply to a project with `calc.py`: the build, the files, those of the reply, and the expected end.
type Case<'c> = (
    &'c str,
    &'c [[&'c str; 2]],
    &'c [[&'c str; 2]],
    [&'c str; 2],
);

const FAILED: [&str; 2] = ["gate-weakened", "failed"];
const UNCLEAR: [&str; 2] = ["done", "inconclusive"];

const CASES_OF_CHECKS: &[Case<'_>] = &[
    (
        "python3 check.py",
        &[["check.py", CHECK]],
        &[["calc.py", BROKEN], ["check.py", NO_CHECK]],
        FAILED,
    ),
    (
        "PYTHONPATH=. python3 scripts/verify.py",
        &[["scripts/verify.py", CHECK]],
        &[["calc.py", BROKEN], ["scripts/verify.py", NO_CHECK]],
        FAILED,
    ),
    (
        "sh tools/all",
        &[
            ["tools/all", "python3 selftest.py\n"],
            ["selftest.py", CHECK],
        ],
        &[["calc.py", BROKEN], ["selftest.py", NO_CHECK]],
        FAILED,
    ),
    (
        "sh ./verify",
        &[[
            "verify",
            "[ \"$(python3 -c 'import calc; print(calc.add(1, 2))')\" = 3 ] || exit 1\n",
        ]],
        &[["calc.py", BROKEN], ["verify", "true\n"]],
        FAILED,
    ),
    // Data that only the gate reads.
    (
        "python3 -c 'import calc; print(calc.add(1, 2))' | diff - expected.txt",
        &[["expected.txt", "3\n"]],
        &[["calc.py", BROKEN], ["expected.txt", "-1\n"]],
        FAILED,
    ),
    (
        "python3 -m unittest discover -s tests -t .",
        &[
            ["tests/__init__.py", "\n"],
            ["tests/test_a.py", CASES],
            ["data/cases.json", "[[1, 2, 3]]\n"],
        ],
        &[["calc.py", BROKEN], ["data/cases.json", "[[1, 2, -1]]\n"]],
        FAILED,
    ),
    (
        "PYTHONPATH=. python3 -m unittest discover -s tests -t .",
        &[
            ["tests/__init__.py", "\n"],
            ["tests/test_a.py", CASES],
            ["data/cases.json", "[[1, 2, 3]]\n"],
        ],
        &[
            ["calc.py", BROKEN],
            [
                "sitecustomize.py",
                "import unittest\nunittest.TestCase.assertEqual = print\n",
            ],
        ],
        FAILED,
    ),
    // A valid check, and one in the file that it checks.
    (
        "python3 check.py",
        &[["check.py", CHECK]],
        &[
            ["calc.py", "def add(a, b):\n    return b + a\n"],
            ["check.py", NO_CHECK],
        ],
        UNCLEAR,
    ),
    (
        "python3 self.py",
        &[["self.py", "def a():\n    return 1\n\n\nassert a() == 1\n"]],
        &[["self.py", "def a():\n    return 2\n\n\nassert a() == 2\n"]],
        UNCLEAR,
    ),
    // A program, with another call to its code.
    (
        "python3 main.py",
        &[["main.py", "from calc import add\nprint(add(1, 2))\n"]],
        &[
            ["calc.py", "def add(a, b, c):\n    return a + b + c\n"],
            ["main.py", "from calc import add\nprint(add(1, 2, 3))\n"],
        ],
        UNCLEAR,
    ),
    (
        "python3 main.py",
        &[["main.py", "from calc import add\nprint(add(1, 2))\n"]],
        &[["main.py", "from calc import add\nprint(add(2, 2))\n"]],
        UNCLEAR,
    ),
    // Classes of a product with names like tests.
    (
        "sh tests/run.sh",
        &[
            [
                "src/main/java/LoadTest.java",
                "class LoadTest { int speed = 1; }\n",
            ],
            ["tests/run.sh", "true\n"],
        ],
        &[
            ["calc.py", "# Adds.\n"],
            [
                "src/main/java/LoadTest.java",
                "class LoadTest { int speed = 2; }\n",
            ],
            [
                "tests/run.sh",
                "grep -q 'speed = 2' src/main/java/LoadTest.java || { echo FAILED; exit 1; }\n",
            ],
        ],
        ["done", "passed"],
    ),
    (
        "sh tests/run.sh",
        &[
            ["src/SpeedTest.cs", "class SpeedTest { int speed = 1; }\n"],
            ["tests/run.sh", "true\n"],
        ],
        &[
            ["calc.py", "# Adds.\n"],
            ["src/SpeedTest.cs", "class SpeedTest { int speed = 2; }\n"],
            [
                "tests/run.sh",
                "grep -q 'speed = 2' src/SpeedTest.cs || { echo FAILED; exit 1; }\n",
            ],
        ],
        UNCLEAR,
    ),
    // Tests in a source file.
    (
        "python3 -m doctest doc.py",
        &[[
            "doc.py",
            "def a():\n    \"\"\"\n    >>> a()\n    1\n    \"\"\"\n    return 1\n",
        ]],
        &[[
            "doc.py",
            "def a():\n    \"\"\"\n    >>> a()\n    2\n    \"\"\"\n    return 2\n",
        ]],
        UNCLEAR,
    ),
    (
        "python3 -m unittest part",
        &[[
            "part.py",
            "import unittest\n\n\ndef a():\n    return 1\n\n\nclass T(\n    unittest.TestCase\n):\n    def test_a(self):\n        self.assertEqual(a(), 1)\n",
        ]],
        &[[
            "part.py",
            "import unittest\n\n\ndef a():\n    return 2\n\n\nclass T(\n    unittest.TestCase\n):\n    def test_a(self):\n        self.assertEqual(a(), 2)\n",
        ]],
        UNCLEAR,
    ),
    (
        "python3 -m unittest part",
        &[["part.py", CASES], ["data/cases.json", "[[1, 2, 3]]\n"]],
        &[[
            "part.py",
            "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_none(self):\n        pass\n",
        ]],
        UNCLEAR,
    ),
];

#[test]
fn files_run_by_the_build_may_be_checks() {
    for (build, before, reply, [name, old]) in CASES_OF_CHECKS {
        let mut project = TestProject::new().file("calc.py", CALC).build(build);
        for [path, text] in *before {
            project = project.file(path, text);
        }
        let files = reply.iter().map(|file| file.map(str::to_owned));
        let (run, result) = strict(project, "Make it faster.", &files.collect::<Vec<_>>());
        let told = format!("{build}: {}\n{}", run.stderr, result["gate"]);
        assert_eq!(result["exit"]["name"], *name, "{told}");
        assert_eq!(result["gate"]["old_gate"], *old, "{told}");
        let files = result["gate"]["files"].as_array().unwrap();
        assert!(!files.is_empty(), "{told}");
    }
}
