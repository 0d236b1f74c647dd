//! Tests of the errors found in outputs, and of the excerpts shown.

use super::*;

#[test]
fn errors_of_many_tools_are_found() {
    for line in [
        "error[E0308]: mismatched types",
        "error: could not compile `x` (lib) due to 1 previous error",
        "  error: x",
        "ERROR: no such thing",
        "Error: it broke",
        "fatal: not a git repository",
        "src/a.c:3:5: error: expected ';'",
        "src/a.c:3:5: fatal error: x.h: No such file",
        "a.ts(3,5): error TS2322: Type",
        "a.ts:3:5 - error TS2322: Type",
        "./main.go:7:2: undefined: x",
        "test tests::a ... FAILED",
        "FAILED: '  Hello ' -> '-hello-', wanted 'hello'",
        "--- FAIL: TestX (0.00s)",
        "FAIL src/a.test.js",
        "not ok 3 - adds",
        "thread 'main' panicked at src/main.rs:1:2:",
        "Traceback (most recent call last):",
        "ModuleNotFoundError: No module named 'x'",
        "TypeError: x is not a function",
        "java.lang.IllegalStateException: x",
        "E       assert 1 == 2",
        "npm ERR! code 1",
        "npm error code 1",
        "make: *** [Makefile:2: all] Error 1",
        "make[2]: *** No rule to make target",
        "/usr/bin/ld: a.o: undefined reference to `f'",
        "./build.sh: 3: cargo: not found",
        "build.sh: line 3: cargo: command not found",
        "cat: x: No such file or directory",
        "build.sh: 7: Syntax error: \"fi\" unexpected",
        "Segmentation fault (core dumped)",
    ] {
        assert_eq!(severity(line), Some(Severity::Error), "{line}");
    }
}

#[test]
fn warnings_are_distinguished_and_other_lines_are_neither() {
    for line in [
        "warning: unused variable: `x`",
        "warning[E0001]: x",
        "a.c:1:2: warning: unused",
        "/tmp/a.py:5: DeprecationWarning: old",
        "npm WARN deprecated x",
        "WARNING: x",
    ] {
        assert_eq!(severity(line), Some(Severity::Warning), "{line}");
    }
    for line in [
        "",
        "test tests::errors_are_told ... ok",
        "test result: ok. 3 passed; 0 failed; 0 ignored",
        "Compiling thiserror v2.0.0",
        "ok: 'Hello' -> 'hello'",
        "0 errors, 0 warnings",
        "running the error tests",
        "https://x/y: fine",
    ] {
        assert_eq!(severity(line), None, "{line}");
    }
}

#[test]
fn a_failed_build_is_reported_by_its_errors_or_else_by_its_end() {
    let compiler = "warning: x\n\u{1b}[31merror[E0308]: mismatched\u{1b}[0m\n  --> a.rs:2:5\n\nerror: aborting\n";
    let panic = "thread 'x' panicked at src/lib.rs:1:2:\nassertion failed: no\nnote: y\n";
    let long: String = (1..=30).map(|n| format!("line {n}\n\n")).collect();
    let many = "error: again\n".repeat(13);
    for (output, expected) in [
        (
            compiler,
            &["error[E0308]: mismatched (a.rs:2:5)", "error: aborting"][..],
        ),
        (
            panic,
            &[
                "thread 'x' panicked at src/lib.rs:1:2:",
                "assertion failed: no",
                "note: y",
            ],
        ),
        ("10%\r\tdone\r\n", &["    done"]),
        ("", &["it printed nothing"]),
    ] {
        assert_eq!(reasons(output), expected);
    }
    let end = reasons(&long);
    assert_eq!((end[0].as_str(), end.len()), ("line 21", 10));
    let errors = reasons(&many);
    assert_eq!(errors.last().map(String::as_str), Some("and 3 more"));
    assert_eq!(errors.len(), 11);
}

#[test]
fn the_place_of_a_message_is_the_one_below_it() {
    let output = "error[E0308]: mismatched types\n  --> src/main.rs:2:5\n   |\nwarning: x\nerror: y\n --> a.rs:1:1\n";
    let lines: Vec<&str> = output.lines().collect();
    let found = find(&lines);
    let told: Vec<_> = found
        .iter()
        .map(|finding| (finding.line, finding.place.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            (0, Some("src/main.rs:2:5")),
            (3, None),
            (4, Some("a.rs:1:1"))
        ]
    );
}

/// Failed builds as reported by their tools, and the parts that must be shown.
const TOLD: [(&str, &str, &[&str]); 14] = [
    (
        "cargo, compile error",
        "   Compiling a v0.1.0 (/tmp/a)\nerror[E0425]: cannot find value `x` in this scope\n --> src/main.rs:2:5\n  |\n2 |     x\n  |     ^ not found in this scope\n\nFor more information about this error, try `rustc --explain E0425`.\nerror: could not compile `a` (bin \"a\") due to 1 previous error\n",
        &["cannot find value `x` in this scope (src/main.rs:2:5)"],
    ),
    (
        "cargo, assertion",
        "running 3 tests\ntest tests::adds ... FAILED\ntest tests::b ... ok\ntest tests::c ... ok\n\nfailures:\n\n---- tests::adds stdout ----\n\nthread 'tests::adds' (1234) panicked at src/lib.rs:8:9:\nassertion `left == right` failed\n  left: 3\n right: 4\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n\nfailures:\n    tests::adds\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored\n\nerror: test failed, to rerun pass `--lib`\n",
        &[
            "src/lib.rs:8:9",
            "`left == right` failed",
            "  left: 3",
            " right: 4",
        ],
    ),
    (
        "go test",
        "--- FAIL: TestAdd (0.00s)\n    add_test.go:6: Add(1,2) = 4, want 3\nFAIL\nFAIL\texample.com/a\t0.002s\nFAIL\n",
        &["FAIL: TestAdd", "add_test.go:6: Add(1,2) = 4, want 3"],
    ),
    (
        "go vet",
        "# example.com/a\n# [example.com/a]\n./add.go:6:2: fmt.Printf format %d has arg \"x\" of wrong type string\n",
        &["./add.go:6:2: fmt.Printf format %d has arg \"x\" of wrong type string"],
    ),
    (
        "node:test, TAP",
        "TAP version 13\n# Subtest: adds\nnot ok 1 - adds\n  ---\n  duration_ms: 1.7\n  type: 'test'\n  location: '/tmp/a/add.test.js:3:1'\n  failureType: 'testCodeFailure'\n  error: |-\n    Expected values to be strictly equal:\n    \n    3 !== 4\n    \n  code: 'ERR_ASSERTION'\n  name: 'AssertionError'\n  expected: 4\n  actual: 3\n  operator: 'strictEqual'\n  ...\n1..1\n# tests 1\n# suites 0\n# pass 0\n# fail 1\n# cancelled 0\n# skipped 0\n# todo 0\n# duration_ms 49.1\n",
        &["not ok 1 - adds", "/tmp/a/add.test.js:3:1", "3 !== 4"],
    ),
    (
        "node:test, spec",
        "✖ adds (1.2ms)\nℹ tests 1\nℹ suites 0\nℹ pass 0\nℹ fail 1\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 49\n\n✖ failing tests:\n\ntest at add.test.js:3:1\n✖ adds (1.2ms)\n  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n  \n  3 !== 4\n  \n      at TestContext.<anonymous> (/tmp/a/add.test.js:4:10)\n",
        &["add.test.js:3:1", "adds", "3 !== 4"],
    ),
    (
        "node, SyntaxError",
        "/tmp/a/add.js:3\n  let = ;\n        ^\n\nSyntaxError: Unexpected token ';'\n    at wrapSafe (node:internal/modules/cjs/loader:1281:20)\n    at node:internal/main/run_main_module:28:49\n\nNode.js v20.11.0\n",
        &["/tmp/a/add.js:3", "SyntaxError: Unexpected token ';'"],
    ),
    (
        "pytest",
        "=================================== FAILURES ===================================\n___________________________________ test_add ___________________________________\n\n    def test_add():\n>       assert add(1, 2) == 4\nE       assert 3 == 4\nE        +  where 3 = add(1, 2)\n\ntest_add.py:5: AssertionError\n=========================== short test summary info ============================\nFAILED test_add.py::test_add - assert 3 == 4\n1 failed in 0.01s\n",
        &[
            "assert 3 == 4",
            "where 3 = add(1, 2)",
            "test_add.py:5: AssertionError",
        ],
    ),
    (
        "unittest",
        "F\n======================================================================\nFAIL: test_add (test_add.T.test_add)\n----------------------------------------------------------------------\nTraceback (most recent call last):\n  File \"/tmp/a/test_add.py\", line 5, in test_add\n    self.assertEqual(add(1, 2), 4)\nAssertionError: 3 != 4\n\n----------------------------------------------------------------------\nRan 1 test in 0.000s\n\nFAILED (failures=1)\n",
        &[
            "/tmp/a/test_add.py\", line 5, in test_add",
            "AssertionError: 3 != 4",
        ],
    ),
    (
        "python, deep",
        "Traceback (most recent call last):\n  File \"/tmp/a/a.py\", line 1, in <module>\n    one()\n  File \"/tmp/a/a.py\", line 2, in one\n    one()\n  File \"/tmp/a/a.py\", line 2, in one\n    one()\n  File \"/tmp/a/a.py\", line 2, in one\n    one()\n  File \"/tmp/a/a.py\", line 2, in one\n    one()\n  File \"/tmp/a/a.py\", line 2, in one\n    one()\n  File \"/tmp/a/b.py\", line 7, in deep\n    x\nNameError: name 'x' is not defined\n",
        &[
            "/tmp/a/b.py\", line 7, in deep",
            "NameError: name 'x' is not defined",
        ],
    ),
    (
        "gcc",
        "add.c: In function 'main':\nadd.c:3:12: error: 'x' undeclared (first use in this function)\n    3 |     return x;\n      |            ^\nmake: *** [Makefile:2: all] Error 1\n",
        &["add.c:3:12: error: 'x' undeclared (first use in this function)"],
    ),
    (
        "tsc",
        "src/add.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n",
        &[
            "src/add.ts(3,5)",
            "Type 'string' is not assignable to type 'number'.",
        ],
    ),
    (
        "jest",
        "FAIL ./add.test.js\n  ✕ adds (3 ms)\n\n  ● adds\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 4\n    Received: 3\n\n      2 |\n      3 | test('adds', () => {\n    > 4 |   expect(add(1, 2)).toBe(4);\n        |                     ^\n      5 | });\n\n      at Object.toBe (add.test.js:4:21)\n\nTest Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\n",
        &["● adds", "Expected: 4", "Received: 3", "add.test.js:4:21"],
    ),
    (
        "a test that says nothing",
        "--- FAIL: TestAdd (0.00s)\nFAIL\nFAIL\texample.com/a\t0.002s\n",
        &["FAIL: TestAdd"],
    ),
];

#[test]
fn findings_of_every_tool_have_reason_and_position() {
    for (tool, output, wanted) in TOLD {
        let told = reasons(output);
        assert!(told.len() <= EXCERPT, "{tool}: {told:#?}");
        let told = told.join("\n");
        let mut from = 0;
        for part in wanted {
            let found = told[from..].find(part);
            from += found.unwrap_or_else(|| panic!("{tool}: `{part}` is missing in\n{told}"));
        }
    }
}

#[test]
fn long_lines_are_shortened() {
    for output in [format!("error: {}", "x".repeat(9000)), "y".repeat(9000)] {
        let told = reasons(&output);
        assert_eq!(told[0].chars().count(), LONGEST + 1);
    }
}
