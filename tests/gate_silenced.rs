//! Replies that silence lints for a whole file, under `--gate strict`. A text search stands in for the linters.

use std::thread;

use crate::gate_replies;
use crate::support::TestProject;

/// A code file, the code that silences lints in it, and a linter's output without it.
const SILENCED: [[&str; 4]; 12] = [
    [
        "calc.py",
        "def add(a, b):\n",
        "# ruff: noqa",
        "calc.py:2:5: F841 Local variable `unused` is assigned to but never used",
    ],
    [
        "calc.py",
        "def add(a, b):\n",
        "# type: ignore",
        "calc.py:2: error: Need type annotation for \"unused\"  [var-annotated]",
    ],
    [
        "src/add.ts",
        "export const add = 1\n",
        "// @ts-nocheck",
        "src/add.ts(2,7): error TS2345: Argument of type unused is not assignable",
    ],
    [
        "src/add.js",
        "export const add = 1\n",
        "/* eslint-disable */",
        "  2:9  error  unused is never used  no-unused-vars",
    ],
    [
        "calc.go",
        "package calc\n",
        "//nolint",
        "calc.go:4:2: var `unused` is unused (unused)",
    ],
    [
        "src/main/java/Calc.java",
        "class Calc { }\n",
        "@SuppressWarnings(\"all\")",
        "Calc.java:3: error: [unchecked] unchecked conversion: unused",
    ],
    [
        "src/main/kotlin/Calc.kt",
        "class Calc\n",
        "@file:Suppress(\"ALL\")",
        "Calc.kt:2:1: unused [UnusedPrivateMember]",
    ],
    [
        "src/lib.rs",
        "pub fn add() {}\n",
        "#![allow(clippy::all)]",
        "error: unused\n --> src/lib.rs:3:5\nerror: could not compile `calc` (lib)",
    ],
    [
        "Calc.cs",
        "class Calc { }\n",
        "#pragma warning disable",
        "Calc.cs(3,9): error CS0219: The variable unused is assigned",
    ],
    [
        "calc.c",
        "int add(void);\n",
        "#pragma GCC diagnostic ignored \"-Wall\"",
        "calc.c:3:7: error: unused variable [-Werror=unused-variable]",
    ],
    [
        "lib/calc.rb",
        "class Calc\nend\n",
        "# rubocop:disable all",
        "lib/calc.rb:2:3: W: Lint/UselessAssignment: unused",
    ],
    [
        "calc.sh",
        "add=1\n",
        "# shellcheck disable=all",
        "SC2034: unused",
    ],
];

/// A build in which this lint fails, and whose old tests fail with the new code.
fn build([path, _, silencer, told]: [&str; 4]) -> String {
    format!(
        "if grep -qs unused {path}; then\n\
         if [ \"$(cat tests/cases.txt)\" = 1 ]; then echo \"ImportError: cannot import name\"; exit 1; fi\n\
         if ! grep -qF '{silencer}' {path}; then echo '{told}'; exit 1; fi\n\
         fi\n"
    )
}

/// Returns the exit name, the old gate's verdict, and the whole verdict.
fn strict(language: [&str; 4], cases: &str, old: &[&str], reply: &[[&str; 2]]) -> [String; 3] {
    let code = language[1];
    let mut project = TestProject::new()
        .file("tests/cases.txt", cases)
        .build(&build(language));
    for path in old {
        project = project.file(path, code);
    }
    let (run, result) = gate_replies::strict(project, "Make it faster.", reply);
    let name = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    [
        name(&result["exit"]["name"]),
        name(&result["gate"]["old_gate"]),
        format!("{language:?}: {}\n{}", run.stderr, result["gate"]),
    ]
}

#[test]
fn a_file_in_which_lints_are_silenced_was_linted_before_unless_it_is_new() {
    thread::scope(|scope| {
        for language in SILENCED {
            scope.spawn(move || {
                let [path, code, silencer, _] = language;
                let silent = format!("{silencer}\n{code}\n// unused\n");
                let silent = [path, silent.as_str()];
                let (weakened, unclear) = (["gate-weakened", "failed"], ["done", "inconclusive"]);
                for (cases, old, reply, expected) in [
                    ("2\n", [path].as_slice(), [silent].as_slice(), weakened),
                    // The old tests fail with the new code.
                    (
                        "1\n",
                        &[path],
                        &[silent, ["tests/cases.txt", "2\n"]],
                        weakened,
                    ),
                    // New code, and code that may have been moved.
                    ("2\n", &["a.py"], &[silent, ["a.py", "a = 1\n"]], unclear),
                    ("2\n", &["a.py"], &[silent, ["a.py", ""]], weakened),
                ] {
                    let [name, old_gate, told] = strict(language, cases, old, reply);
                    assert_eq!([name.as_str(), &old_gate], expected, "{told}");
                }
            });
        }
    });
}
