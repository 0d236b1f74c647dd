//! The verdict on the gate: the builds with the old gate and with the old code, the messages about them, and the
//! outcome of runs with a strict gate.

use std::fs;

use serde_json::{Value, json};

use crate::machine::{fits, schema};
use crate::support::{
    Finished, ModelServer, TestProject, bubblewrap_works, skipped, write_program,
};

const CODE: &str = "def add(a, b):\n    return a + b\n";
const BROKEN: &str = "def add(a, b):\n    return a - b\n";
const TESTS: &str = "import unittest\nfrom calc import add\n\n\nclass Calc(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n\n    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n";
const CHECK: &str = "set -e\npython3 -m unittest discover -s tests\nfor file in tests/*.golden; do\n    python3 -c 'import calc; print(calc.add(2, 2))' | cmp - \"$file\"\ndone\nif grep -q 'no-print = on' lint.toml && grep -n 'print(' calc.py; then\n    echo 'calc.py: error: no-print'\n    exit 1\nfi\n";
const LINTS: &str = "no-print = on\n";

/// A reply with these files; those without content are deleted.
fn reply(files: &[(&str, &str)]) -> String {
    let blocks = files.iter().map(|(path, content)| match *content {
        "" => format!("^^^{path}\n^^^delete\n"),
        content => format!("^^^{path}\n{content}^^^end\n"),
    });
    blocks.collect()
}

fn project(reply: &str) -> TestProject {
    TestProject::new()
        .file("calc.py", CODE)
        .file("tests/test_calc.py", TESTS)
        .file("tests/four.golden", "4\n")
        .file("check.sh", CHECK)
        .file(".flake8", "")
        .file("ruff.toml", LINTS)
        .build("sed 's/lint.toml/ruff.toml/' check.sh | sh")
        .with(&ModelServer::gemini(&[reply]))
}

fn judged(how: &str, query: &str, files: &[(&str, &str)]) -> (TestProject, Finished, Value) {
    let project = project(&reply(files));
    let run = project.run(&["--gate", how, "-m", query]);
    let result = run.result();
    fits(&schema("result"), &result);
    (project, run, result)
}

fn replaced(from: &str, to: &str) -> String {
    assert!(TESTS.contains(from), "{from}");
    TESTS.replacen(from, to, 1)
}

#[test]
fn a_weakened_gate_is_reported_and_fails_under_strict() {
    let golden = replaced("add(1, 2), 3", "add(1, 2), -1");
    let skip = "    @unittest.skip('later')\n    def test_add";
    let empty = replaced("        self.assertEqual(add(1, 2), 3)", "        pass");
    let one = replaced(
        "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n\n",
        "",
    );
    let four = ("tests/four.golden", "0\n");
    let printing = "def add(a, b):\n    print('adding')\n    return a + b\n";
    let lax = CHECK.replace("-s tests\n", "-s tests || true\n");
    for (how, files) in [
        (
            "flipped",
            vec![("calc.py", BROKEN), ("tests/test_calc.py", &golden), four],
        ),
        (
            "skipped",
            vec![
                ("calc.py", BROKEN),
                ("tests/test_calc.py", &replaced("    def test_add", skip)),
                four,
            ],
        ),
        (
            "emptied",
            vec![("calc.py", BROKEN), ("tests/test_calc.py", &empty), four],
        ),
        (
            "deleted",
            vec![("calc.py", BROKEN), ("tests/test_calc.py", &one), four],
        ),
        (
            "file deleted",
            vec![
                ("calc.py", BROKEN),
                ("tests/test_calc.py", ""),
                ("tests/test_new.py", &one),
                four,
            ],
        ),
        (
            "loosened",
            vec![
                ("calc.py", BROKEN),
                (
                    "tests/test_calc.py",
                    &replaced("Equal(add(1, 2), 3)", "Less(add(1, 2), 3)"),
                ),
                four,
            ],
        ),
        (
            "|| true",
            vec![("calc.py", BROKEN), ("check.sh", &lax), four],
        ),
        (
            "snapshot",
            vec![
                (
                    "calc.py",
                    "def add(a, b):\n    return 5 if a == 2 else a + b\n",
                ),
                ("tests/four.golden", "5\n"),
            ],
        ),
        (
            "lint off",
            vec![
                ("calc.py", printing),
                ("ruff.toml", "no-print = off\n"),
                ("tests/four.golden", "adding\n4\n"),
            ],
        ),
    ] {
        let query = "Make add faster; all tests must pass.";
        let (project, run, result) = judged("strict", query, &files);
        let run = run.exits(1);
        assert_eq!(
            result["exit"]["name"], "gate-weakened",
            "{how}: {}",
            run.stderr
        );
        assert_eq!(result["error"]["reason"], "gate-weakened");
        let gate = &result["gate"];
        assert_eq!(
            (&gate["change"], &gate["old_gate"]),
            (&json!("changed"), &json!("failed")),
            "{how}"
        );
        // The edits are kept, and the builds have left no trace.
        assert_eq!(project.read("calc.py"), files[0].1);
        assert!(!run.logged("old-gate-build.txt").starts_with("exit code: 0"));
        run.says(&["old gate, new code: failed: what was tested before does not hold"]);
    }
}

#[test]
fn a_flipped_expectation_is_proven_and_reported_in_log_and_page() {
    let golden = replaced("add(1, 2), 3", "add(1, 2), -1");
    let four = ("tests/four.golden", "0\n");
    let files = [
        ("calc.py", BROKEN),
        ("tests/test_calc.py", golden.as_str()),
        four,
    ];
    let (project, run, result) = judged("report", "Subtract.", &files);
    run.exits(0);
    let files = ["tests/four.golden", "tests/test_calc.py"];
    let told =
        json!({"files": files, "change": "changed", "old_gate": "failed", "new_tests": "proven"});
    assert_eq!(result["gate"], told);
    let story = project.run(&["log", "last"]).exits(0).stdout;
    assert!(
        story.contains("new tests, old code: proven: they fail without the change"),
        "{story}"
    );
    project
        .run(&["report", "last", "--output", "page.html"])
        .exits(0);
    assert!(
        project
            .read("page.html")
            .contains("old gate, new code: failed")
    );
}

#[test]
fn an_honest_change_passes_under_strict() {
    let sub = format!("{CODE}\n\ndef sub(a, b):\n    return a - b\n");
    let more = format!(
        "{}\n    def test_sub(self):\n        self.assertEqual(calc.sub(2, 1), 1)\n",
        TESTS.replace("from calc", "import calc\nfrom calc")
    );
    let new = "import unittest\nfrom calc import sub\n\n\nclass Sub(unittest.TestCase):\n    def test_sub(self):\n        self.assertEqual(sub(2, 1), 1)\n";
    let flipped = replaced("add(1, 2), 3", "add(1, 2), -1");
    let four = ("tests/four.golden", "0\n");
    let renamed = "def plus(a, b):\n    return a + b\n";
    let plus = TESTS.replace("add", "plus");
    let check = CHECK.replace("calc.add", "calc.plus");
    for (query, files, change, old, new) in [
        (
            "Speed.",
            vec![("calc.py", "def add(a, b):\n    return b + a\n")],
            "none",
            "not-run",
            "no-new-tests",
        ),
        (
            "Speed.",
            vec![("requirements.txt", "a==1\n")],
            "none",
            "not-run",
            "no-new-tests",
        ),
        (
            "Subtract.",
            vec![("calc.py", sub.as_str()), ("tests/test_calc.py", &more)],
            "added",
            "passed",
            "proven",
        ),
        (
            "Subtract.",
            vec![("calc.py", &sub), ("tests/test_sub.py", new)],
            "added",
            "passed",
            "inconclusive",
        ),
        // The query names the files to change.
        (
            "test_add and tests/four.golden are wrong.",
            vec![("calc.py", BROKEN), ("tests/test_calc.py", &flipped), four],
            "changed",
            "failed",
            "proven",
        ),
        (
            "Correct test_calc.py and four.golden.",
            vec![("calc.py", BROKEN), ("tests/test_calc.py", &flipped), four],
            "changed",
            "failed",
            "proven",
        ),
        // Renamed code is missing for the old tests.
        (
            "Rename.",
            vec![
                ("calc.py", renamed),
                ("tests/test_calc.py", &plus),
                ("check.sh", &check),
            ],
            "changed",
            "inconclusive",
            "inconclusive",
        ),
        // Tests alone prove no change, and need not.
        (
            "Test more.",
            vec![("tests/test_more.py", TESTS)],
            "added",
            "passed",
            "not-discriminating",
        ),
    ] {
        let (_, run, result) = judged("strict", query, &files);
        let gate = &result["gate"];
        let told = [&gate["change"], &gate["old_gate"], &gate["new_tests"]];
        assert_eq!(
            told,
            [change, old, new],
            "{query} {files:?}\n{}",
            run.stderr
        );
        run.exits(0);
    }
}

#[test]
fn tests_that_hold_without_the_change_prove_nothing() {
    let other = "def add(a, b):\n    return b + a\n";
    let more =
        format!("{TESTS}\n    def test_two(self):\n        self.assertEqual(add(1, 1), 2)\n");
    let files = [("calc.py", other), ("tests/test_calc.py", more.as_str())];
    let (_, run, result) = judged("report", "Fix add.", &files);
    run.exits(0);
    assert_eq!(result["gate"]["change"], "added");
    assert_eq!(result["gate"]["new_tests"], "not-discriminating");
    let (project, run, result) = judged("strict", "Fix add.", &files);
    run.exits(1);
    assert_eq!(result["exit"]["name"], "not-proven");
    assert_eq!(project.read("calc.py"), other);
    // No new assertion.
    let named = TESTS.replace("test_zero", "test_nothing");
    let (_, run, _) = judged(
        "strict",
        "Fix add.",
        &[files[0], ("tests/test_calc.py", &named)],
    );
    run.exits(0);
}

#[test]
fn the_gate_is_judged_only_if_that_is_asked_for() {
    let lax = replaced("        self.assertEqual(add(1, 2), 3)", "        pass");
    let files = [("tests/test_calc.py", lax.as_str())];
    let run = project(&reply(&files)).run(&[]).exits(0);
    assert_eq!(run.result()["gate"], Value::Null);
    assert!(!run.files().contains(&"old-gate-build.txt".to_owned()));
    // In files.
    let files = [("calc.py", BROKEN), files[0], ("tests/four.golden", "0\n")];
    for (file, content) in [
        (".code-commit.json", json!({"gate": "strict"})),
        ("agent-config/run.json", json!({"gate": "strict"})),
        (
            "agent-config/models.json",
            json!({"models": {"gemini-2.5-pro": {"gate": "strict"}}}),
        ),
    ] {
        let project = project(&reply(&files)).file(file, content.to_string());
        let run = project.run(&["--on-failure", "revert"]).exits(1);
        assert_eq!(run.result()["exit"]["name"], "gate-weakened");
        assert_eq!(run.result()["tree"], "put-back");
        assert_eq!(project.read("calc.py"), CODE);
    }
    // The project's setting can only be stricter.
    let strict =
        project(&reply(&files)).file(".code-commit.json", json!({"gate": "strict"}).to_string());
    strict.run(&["--gate", "report"]).exits(1);
    let lax =
        project(&reply(&files)).file(".code-commit.json", json!({"gate": "report"}).to_string());
    lax.run(&["--gate", "strict"]).exits(1);
}

#[test]
fn a_models_entry_asks_for_flags_that_the_command_line_overrules() {
    let lax = replaced("        self.assertEqual(add(1, 2), 3)", "        pass");
    let files = [
        ("calc.py", BROKEN),
        ("tests/test_calc.py", lax.as_str()),
        ("tests/four.golden", "0\n"),
    ];
    let entry = |entry: Value| {
        let models = json!({"models": {"gemini-2.5-pro": entry}}).to_string();
        project(&reply(&files)).file("agent-config/models.json", models)
    };
    let asks = json!({"gate": "strict", "scratch": true, "strategy": "search"});
    let strict = entry(asks.clone());
    let run = strict.run(&[]).exits(1);
    assert_eq!(run.result()["exit"]["name"], "gate-weakened");
    assert!(run.result()["scratch"]["how"].is_string());
    assert_eq!(strict.read("calc.py"), CODE);
    let strict = entry(asks);
    let reported = strict.run(&["--gate", "report"]).exits(0);
    assert_eq!(strict.read("calc.py"), BROKEN);
    // A replay is judged according to its own flags.
    let run = strict.run(&["--replay", &reported.folder]);
    assert_eq!(run.exits(0).result()["gate"], Value::Null);
    for (flag, value) in [
        ("gate", json!("lax")),
        ("scratch", json!({})),
        ("strategy", json!(["search", "x"])),
    ] {
        let wrong = entry(json!({flag: value})).run(&[]).exits(3);
        wrong.says(&["the entry `gemini-2.5-pro` in `models.json`: ", flag]);
    }
}

#[test]
fn a_verdict_is_a_result_in_each_file_of_the_gate() {
    let lax = replaced("        self.assertEqual(add(1, 2), 3)", "        pass");
    let files = [
        ("calc.py", BROKEN),
        ("tests/test_calc.py", lax.as_str()),
        ("tests/four.golden", "0\n"),
    ];
    for (how, level, code) in [("report", "warning", 0), ("strict", "error", 1)] {
        let run = project(&reply(&files)).run(&["--gate", how, "--output-format", "sarif"]);
        let log: Value = serde_json::from_str(&run.exits(code).stdout).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap();
        let judged = results
            .iter()
            .filter(|one| one["ruleId"] == "gate-weakened");
        let judged: Vec<&Value> = judged.collect();
        let places = judged.iter().map(|one| {
            assert_eq!(one["level"], level);
            assert!(one["partialFingerprints"]["primaryLocationLineHash"].is_string());
            let place = &one["locations"][0]["physicalLocation"];
            assert_eq!(place["region"], Value::Null);
            place["artifactLocation"]["uri"].as_str().unwrap()
        });
        assert_eq!(
            places.collect::<Vec<_>>(),
            ["tests/four.golden", "tests/test_calc.py"]
        );
    }
}

#[test]
fn the_builds_of_the_verdict_leave_the_project_as_it_is() {
    let more =
        format!("{TESTS}\n    def test_two(self):\n        self.assertEqual(add(1, 1), 2)\n");
    let project = project(&reply(&[("tests/test_calc.py", &more)]))
        .build("sh check.sh; touch left-$(date +%s%N)");
    project.run(&["--gate", "report"]).exits(0);
    let left = fs::read_dir(project.path("")).unwrap();
    let left = left.filter(|entry| {
        entry
            .as_ref()
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("left-")
    });
    assert_eq!(left.count(), 1);
}

#[test]
fn verdict_builds_are_sandboxed_like_the_build() {
    if !bubblewrap_works() {
        return;
    }
    // A sandbox program that works until the first build has used it.
    let tools = tempfile::tempdir().unwrap();
    let ran = tools.path().join("ran").display().to_string();
    let script = format!(
        "#!/bin/sh\n[ ! -e {ran} ] || {{ echo 'no more' >&2; exit 1; }}\nexec $(PATH={} command -v bwrap) \"$@\"\n",
        env!("PATH")
    );
    write_program(&tools.path().join("bwrap"), script);
    let path = format!("{}:{}", tools.path().display(), env!("PATH"));
    let golden = replaced("add(1, 2), 3", "add(1, 2), -1");
    let files = [
        ("calc.py", BROKEN),
        ("tests/test_calc.py", &golden),
        ("tests/four.golden", "0\n"),
    ];
    let run = project(&reply(&files))
        .variable("PATH", &path)
        .build(&format!(
            "touch {ran}; sed 's/lint.toml/ruff.toml/' check.sh | sh"
        ))
        .run(&["--gate", "strict"])
        .exits(0);
    let gate = &run.result()["gate"];
    assert_eq!(
        (&gate["old_gate"], &gate["new_tests"]),
        (&json!("inconclusive"), &json!("inconclusive")),
    );
    run.says(&["the gate is not judged: bubblewrap does not work here: no more"]);
}

#[test]
fn nothing_is_excused_by_the_query_when_the_old_gate_is_inconclusive() {
    let old = format!(
        "{TESTS}\n    def test_one(self):\n        from calc import one\n        self.assertEqual(one, 1)\n"
    );
    let new = old
        .replace("one, 1", "uno, 1")
        .replace("import one", "import uno");
    let new = new.replace("add(1, 2), 3", "add(1, 2), -1");
    let code = format!("{BROKEN}uno = 1\n");
    let run = project(&reply(&[
        ("calc.py", &code),
        ("tests/test_calc.py", &new),
        ("tests/four.golden", "0\n"),
    ]))
    .file("calc.py", format!("{CODE}one = 1\n"))
    .file("tests/test_calc.py", &old)
    .run(&[
        "--gate",
        "strict",
        "-m",
        "Change test_add, and four.golden.",
    ])
    .exits(0);
    let gate = &run.result()["gate"];
    assert_eq!(gate["old_gate"], "inconclusive", "{gate}");
    assert_eq!(gate["excused"], Value::Null);
}

#[test]
fn a_run_in_a_scratch_tree_is_judged_there() {
    let golden = replaced("add(1, 2), 3", "add(1, 2), -1");
    let reply = reply(&[
        ("calc.py", BROKEN),
        ("tests/test_calc.py", &golden),
        ("tests/four.golden", "0\n"),
    ]);
    let weakened = project(&reply);
    let run = weakened.run(&["--scratch", "--gate", "strict"]).exits(1);
    assert_eq!(
        run.result()["exit"]["name"],
        "gate-weakened",
        "{}",
        run.stderr
    );
    assert_eq!(weakened.read("calc.py"), CODE);
    let run = project(&reply)
        .run(&["--scratch", "--gate", "report"])
        .exits(0);
    let gate = &run.result()["gate"];
    assert_eq!(
        (&gate["old_gate"], &gate["new_tests"]),
        (&json!("failed"), &json!("proven")),
        "{}",
        run.stderr
    );
}

/// A project in a language: a program that its build needs, its build, its code, a defect, and its tests.
struct Language {
    tool: &'static str,
    build: &'static str,
    code: (&'static str, &'static str),
    broken: (&'static str, &'static str),
    tests: (&'static str, &'static str),
    rest: &'static [(&'static str, &'static str)],
    /// Ways to weaken the tests, each as a text and its replacement.
    weakened: &'static [(&'static str, &'static str)],
    /// Insertions of an honest change into the code and the tests, each with the text that it comes before.
    honest: [(&'static str, &'static str); 2],
    /// The result of the build with the new tests and the old code.
    new_tests: &'static str,
}

const LANGUAGES: [Language; 6] = [
    Language {
        tool: "node",
        build: "node --test",
        code: ("add.js", "exports.add = (a, b) => a + b\n"),
        broken: ("a + b", "a - b"),
        tests: (
            "add.test.js",
            "const test = require('node:test')\nconst assert = require('node:assert')\nconst calc = require('./add.js')\n\ntest('adds', () => {\n  assert.strictEqual(calc.add(1, 2), 3)\n})\n",
        ),
        rest: &[("package.json", "{}\n")],
        weakened: &[
            ("2), 3)", "2), -1)"),
            ("test('adds'", "test.skip('adds'"),
            ("strictEqual(calc.add(1, 2), 3)", "ok(calc.add)"),
        ],
        honest: [
            ("exports", "exports.sub = (a, b) => a - b\n"),
            (
                "test('adds'",
                "test('subtracts', () => {\n  assert.strictEqual(calc.sub(2, 1), 1)\n})\n\n",
            ),
        ],
        new_tests: "proven",
    },
    Language {
        tool: "gcc",
        build: "make check",
        code: ("add.c", "int add(int a, int b) { return a + b; }\n"),
        broken: ("a + b", "a - b"),
        tests: (
            "test_add.c",
            "#include <assert.h>\nint add(int, int);\nint main(void) {\n    assert(add(0, 0) == 0);\n    assert(add(1, 2) == 3);\n}\n",
        ),
        rest: &[(
            "Makefile",
            "check:\n\tgcc -Wall -Werror add.c test_add.c -o /tmp/test-$$PPID && /tmp/test-$$PPID; code=$$?; rm -f /tmp/test-$$PPID; exit $$code\n",
        )],
        weakened: &[
            ("== 3", "== -1"),
            ("    assert(add(1, 2) == 3);\n", ""),
            ("== 3", "< 3"),
        ],
        honest: [
            ("int add", "int twice(int a) { return 2 * a; }\n"),
            (
                "    assert(add(1",
                "    extern int twice(int);\n    assert(twice(2) == 4);\n",
            ),
        ],
        // The code does not compile.
        new_tests: "inconclusive",
    },
    Language {
        tool: "g++",
        build: "g++ -o \"$TMPDIR/t\" add.cpp tests/add.cpp && \"$TMPDIR/t\"",
        code: ("add.cpp", "int add(int a, int b) { return a + b; }\n"),
        broken: ("a + b", "a - b"),
        tests: (
            "tests/add.cpp",
            "#include <cstdlib>\n#include <iostream>\nint add(int, int);\nint main() {\n  if (add(1, 2) != 3) { std::cerr << \"FAIL: add\\n\"; return 1; }\n}\n",
        ),
        rest: &[],
        weakened: &[("!= 3", "!= -1"), ("return 1;", "")],
        honest: [
            ("int add", "int zero() { return 0; }\n"),
            ("int main", "int zero();\nint z = zero();\n"),
        ],
        new_tests: "inconclusive",
    },
    Language {
        tool: "javac",
        build: "javac -d \"$TMPDIR\" *.java && java -cp \"$TMPDIR\" -ea CalcTest",
        code: (
            "Calc.java",
            "class Calc {\n    static int add(int a, int b) { return a + b; }\n}\n",
        ),
        broken: ("a + b", "a - b"),
        tests: (
            "CalcTest.java",
            "class CalcTest {\n    public static void main(String[] a) {\n        assert Calc.add(1, 2) == 3;\n    }\n}\n",
        ),
        rest: &[],
        weakened: &[
            ("== 3", "== -1"),
            ("        assert Calc.add(1, 2) == 3;\n", ""),
        ],
        honest: [
            (
                "    static int add",
                "    static int zero() { return 0; }\n",
            ),
            ("        assert", "        assert Calc.zero() == 0;\n"),
        ],
        new_tests: "inconclusive",
    },
    Language {
        tool: "sh",
        build: "sh tests/run.sh",
        code: ("add.sh", "echo $(($1 + $2))\n"),
        broken: ("+ $2", "- $2"),
        tests: (
            "tests/run.sh",
            "set -e\ncheck() {\n    [ \"$1\" = \"$2\" ] || { echo \"FAIL: $1, not $2\"; exit 1; }\n}\ncheck \"$(sh add.sh 1 2)\" 3\n",
        ),
        rest: &[],
        weakened: &[
            ("2)\" 3", "2)\" -1"),
            ("set -e", "exit 0"),
            ("exit 1", "true"),
        ],
        honest: [
            ("echo", "[ $# = 2 ] || { echo two; exit; }\n"),
            ("check \"$(", "check \"$(sh add.sh 1)\" two\n"),
        ],
        new_tests: "proven",
    },
    Language {
        tool: "cargo",
        build: "cargo test --offline --quiet",
        code: (
            "src/lib.rs",
            "//! A sum.\n\n/// Adds.\npub fn add(a: i32, b: i32) -> i32 {\n    a + b\n}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    fn adds() {\n        assert_eq!(add(1, 2), 3);\n    }\n}\n",
        ),
        broken: ("a + b", "a - b"),
        tests: ("src/lib.rs", ""),
        rest: &[
            (
                "Cargo.toml",
                "[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            ("src/main.rs", "fn main() {}\n"),
        ],
        weakened: &[
            ("2), 3)", "2), -1)"),
            ("    #[test]\n    fn", "    #[test]\n    #[ignore]\n    fn"),
            ("    #[test]\n", "    #[allow(dead_code)]\n"),
            ("#[cfg(test)]", "#[cfg(any())]"),
        ],
        honest: [
            (
                "/// Adds",
                "/// None.\npub fn zero() -> i32 {\n    0\n}\n\n",
            ),
            (
                "    #[test]",
                "    #[test]\n    fn nothing() {\n        assert_eq!(zero(), 0);\n    }\n\n",
            ),
        ],
        new_tests: "inconclusive",
    },
];

#[test]
fn a_gate_is_judged_in_every_language_that_is_there() {
    for language in &LANGUAGES {
        if duct::cmd!(language.tool, "--version")
            .stdout_null()
            .stderr_null()
            .run()
            .is_err()
            && language.tool != "sh"
        {
            skipped(language.tool);
            continue;
        }
        let Language { code, tests, .. } = language;
        let judged = |edit: &dyn Fn(&str) -> String, how: &str| {
            let texts = [edit(code.1), edit(tests.1)];
            let mut files = vec![(code.0, texts[0].as_str())];
            if tests.0 != code.0 {
                files.push((tests.0, texts[1].as_str()));
            }
            let mut project = TestProject::new()
                .file(tests.0, tests.1)
                .file(code.0, code.1)
                .build(&format!("export TMPDIR=$(mktemp -d)\n{}", language.build))
                .with(&ModelServer::gemini(&[&reply(&files)]));
            for (path, text) in language.rest {
                project = project.file(path, text);
            }
            let run = project.run(&[
                "--gate",
                how,
                "--allow-stale",
                "--sandbox",
                "off",
                "-m",
                "Do it faster.",
            ]);
            (run.result(), run.stderr)
        };
        for (from, to) in language.weakened {
            let edit = |text: &str| {
                text.replacen(from, to, 1)
                    .replacen(language.broken.0, language.broken.1, 1)
            };
            let (result, told) = judged(&edit, "strict");
            assert_eq!(
                result["exit"]["name"], "gate-weakened",
                "{}, {to}: {told}",
                language.tool
            );
        }
        let honest = |text: &str| {
            let [one, other] = language
                .honest
                .map(|(at, more)| (at, format!("{more}{at}")));
            text.replacen(one.0, &one.1, usize::from(text == code.1))
                .replacen(
                    other.0,
                    &other.1,
                    usize::from(text == tests.1 || tests.1.is_empty()),
                )
        };
        let (result, told) = judged(&honest, "strict");
        assert_eq!(result["exit"]["name"], "done", "{}: {told}", language.tool);
        let gate = &result["gate"];
        assert_eq!(
            (&gate["old_gate"], &gate["new_tests"]),
            (&json!("passed"), &json!(language.new_tests)),
            "{}: {told}",
            language.tool
        );
    }
}
