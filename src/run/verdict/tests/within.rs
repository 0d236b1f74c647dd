//! Tests of the gate within code files: former tests, tests in sources, and silenced lints.

use super::{RUST, change, old_gate, some};
use crate::record::gate::GateChange;
use crate::run::verdict::changed::{Changed, Side};
use crate::sys::diff::{FileChange, FileState};

#[test]
fn rust_item_that_was_a_test_is_restored() {
    let broken = RUST.replace("a + b", "a - b");
    for attribute in [
        "#[cfg(any())]\n",
        "#[cfg(feature = \"x\")]\n",
        "#[cfg(never)]\n",
        "",
    ] {
        let after = broken.replace("#[cfg(test)]\n", attribute);
        let changes = [change("src/lib.rs", RUST, &after)];
        let changed = Changed::of(&changes, "");
        assert!(changed.has_gate() && !changed.is_unclear(), "{after}");
        assert_eq!(changed.gate_change(), GateChange::Changed, "{after}");
        let laid = old_gate("src/lib.rs", RUST, &after, None);
        assert_eq!(laid.replace("\n\n", "\n"), broken.replace("\n\n", "\n"));
    }
    // Another item of this name existed before.
    let both = format!("{RUST}#[cfg(unix)]\nmod tests {{}}\n");
    let after = both.replace("#[cfg(unix)]", "#[cfg(windows)]");
    assert_eq!(old_gate("src/lib.rs", &both, &after, None), after);
}

#[test]
fn tests_within_a_file_of_code_are_unclear() {
    for (path, code, test) in [
        (
            "calc.py",
            "a = 1\n",
            "class T(unittest.TestCase):\n    pass\n",
        ),
        (
            "calc.py",
            "a = 1\n",
            "def test_add():\n    assert add(1, 2) == 3\n",
        ),
        (
            "src/add.ts",
            "a = 1\n",
            "if (import.meta.vitest) {\n  it('adds', () => {})\n}\n",
        ),
        (
            "Calc.cs",
            "class A {\n",
            "    [Fact]\n    public void Adds() {}\n",
        ),
        ("calc.cpp", "int a;\n", "TEST_CASE(\"adds\") {\n}\n"),
        ("lib/calc.rb", "a = 1\n", "class T < Minitest::Test\nend\n"),
    ] {
        let before = format!("{code}{test}");
        for (after, expected) in [
            (
                format!("{}{test}", code.replace('1', "2")),
                GateChange::None,
            ),
            (code.to_owned(), GateChange::Changed),
            (
                before
                    .replace("ds", "d")
                    .replace("pass", "return")
                    .replace('3', "4")
                    + "\n",
                GateChange::Changed,
            ),
        ] {
            let changes = [change(path, &before, &after)];
            let changed = Changed::of(&changes, "");
            assert_eq!(changed.gate_change(), expected, "{path}: {after}");
            assert_eq!(
                changed.is_unclear(),
                expected == GateChange::Changed,
                "{path}"
            );
            assert!(changed.has_code() && !changed.has_gate());
        }
    }
}

#[test]
fn changes_to_test_discovery_are_not_additions() {
    for (path, before, after) in [
        (
            "tests/a.rs",
            RUST,
            RUST.replace("#[test]", "#[test]\n#[should_panic]"),
        ),
        (
            "a_test.go",
            "package a\n",
            "//go:build never\n\npackage a\n".to_owned(),
        ),
        // An empty file, or a hook, may exclude tests.
        (
            "tests/__init__.py",
            "",
            "def load_tests(loader, tests, pattern):\n    return []\n".to_owned(),
        ),
        (
            "tests/conftest.py",
            "import a\n",
            "import a\n\ndef pytest_collection_modifyitems(items):\n    items.clear()\n".to_owned(),
        ),
    ] {
        let changes = [change(path, before, &after)];
        let expected = GateChange::Changed;
        assert_eq!(Changed::of(&changes, "").gate_change(), expected, "{after}");
    }
    // New tests are added to a file that was empty, along with other changes.
    for (after, expected) in [
        ("def test_a():\n    pass\n", GateChange::Added),
        ("import a\n", GateChange::Changed),
    ] {
        let path = "tests/__init__.py".to_owned();
        let changes = [FileChange::of(path, Some(Vec::new()), some(after))];
        assert_eq!(Changed::of(&changes, "").gate_change(), expected, "{after}");
    }
}

/// A file, the file after a change that silences a lint, and the file with the new code and the old gate.
const SILENCERS: &[(&str, &str, &str, &str)] = &[
    (
        "src/a.rs",
        "fn a() {}\n",
        "#[allow(clippy::x)]\nfn a() {}\n",
        "fn a() {}\n",
    ),
    (
        "src/a.rs",
        "fn a() {}\n",
        "fn a() {\n    #[expect(\n        dead_code,\n        reason = \"a[0]\"\n    )]\n    let b = 1;\n}\n",
        "fn a() {\n    let b = 1;\n}\n",
    ),
    (
        "a.py",
        "a = 1\n",
        "import b  # noqa: F401 because\na = 2  # type: ignore[x]\n",
        "import b\na = 2\n",
    ),
    (
        "a.py",
        "a = 1\n",
        "# pylint: disable=x\na = 1  # noqa  # type: ignore\n",
        "a = 1\n",
    ),
    (
        "a.ts",
        "let a = 1\n",
        "// @ts-ignore\nlet a: b = 1 // eslint-disable-line x\n",
        "let a: b = 1\n",
    ),
    (
        "a.js",
        "a(1)\n",
        "/* eslint-disable\n   eqeqeq */\na(/* eslint-disable-line */ 1)\n",
        "a( 1)\n",
    ),
    ("a.go", "f()\n", "f() //nolint:errcheck\n", "f()\n"),
    (
        "A.java",
        "int a;\n",
        "@SuppressWarnings({\"a\",\n  \"b\"})\nint a;\n",
        "int a;\n",
    ),
    (
        "A.kt",
        "val a = 1\n",
        "@Suppress(\"x\") val a = 1\n",
        " val a = 1\n",
    ),
    (
        "A.cs",
        "int a;\n",
        "#pragma warning disable CS0168\n  int b;\n  [SuppressMessage(\"a\", \"b\")]\nint a;\n",
        "  int b;\nint a;\n",
    ),
    (
        "a.c",
        "int a;\n",
        "#pragma GCC diagnostic ignored \"-Wx(\"\nint a; // NOLINT\n",
        "int a;\n",
    ),
    (
        "a.rb",
        "a = 1\n",
        "a = 1 # rubocop:disable X/Y\n",
        "a = 1\n",
    ),
    (
        "a.php",
        "$a = 1;\n",
        "// @phpstan-ignore-next-line\n$a = 1;\n",
        "$a = 1;\n",
    ),
    (
        "a.sh",
        "a=$1\n",
        "# shellcheck disable=SC2034\na=$1\n",
        "a=$1\n",
    ),
    (
        "a.py",
        "a = 1\n",
        "# fmt: off\na = [1]  # fmt: skip\n",
        "a = [1]\n",
    ),
    (
        "a.js",
        "a(1)\n",
        "// prettier-ignore\na(1) // oxlint-disable-line\n",
        "a(1)\n",
    ),
    (
        "src/a.rs",
        "fn a() {}\n",
        "#[rustfmt::skip]\nfn a(b: [u8; 1]) {}\n",
        "fn a(b: [u8; 1]) {}\n",
    ),
    ("a.go", "f()\n", "//revive:disable:x-y\nf()\n", "f()\n"),
    (
        "A.java",
        "int a;\n",
        "// spotless:off\nint a; // NOPMD\n",
        "int a;\n",
    ),
    (
        "A.cs",
        "int a;\n",
        "#nullable disable\n[ExcludeFromCodeCoverage]\nint[] a;\n",
        "int[] a;\n",
    ),
    (
        "a.c",
        "int a;\n",
        "// clang-format off\n/* LCOV_EXCL_START */\n__attribute__((no_sanitize(\"x\"))) int a;\n",
        " int a;\n",
    ),
    (
        "a.rb",
        "a = 1\n",
        "# :nocov:\na = 1 # standard:disable X/Y\n# :nocov:\n",
        "a = 1\n",
    ),
    (
        "A.swift",
        "let a = 1\n",
        "// swiftlint:disable all\nlet a = 1\n",
        "let a = 1\n",
    ),
    // Silencers for the whole file.
    (
        "src/a.rs",
        "fn a() {}\n",
        "#![allow(clippy::all)]\nfn a() {}\n",
        "fn a() {}\n",
    ),
    (
        "src/a.rs",
        "//! A.\n\n#![deny(x)]\nfn a() {}\n",
        "//! A.\n\n#![deny(x)]\n#![cfg_attr(not(test), expect(x))]\nfn a() {}\n",
        "#![deny(x)]\n//! A.\n\nfn a() {}\n",
    ),
    ("a.py", "a = 1\n", "# ruff: noqa\na = 1\n", "a = 1\n"),
    (
        "a.py",
        "a = 1\n",
        "# type: ignore\n# mypy: disable-error-code=\"x\"\n# pyright: basic\na = 1\n",
        "a = 1\n",
    ),
    (
        "a.py",
        "a = 1\n",
        "# isort: skip_file\n# pyre-ignore-all-errors\n# yapf: disable\na = 1\n",
        "a = 1\n",
    ),
    (
        "a.ts",
        "let a = 1\n",
        "// @ts-nocheck\n/* eslint-disable */\n// deno-lint-ignore-file\n// tslint:disable\nlet a = 1\n",
        "let a = 1\n",
    ),
    (
        "A.cs",
        "class A {}\n",
        "#pragma warning disable\n// ReSharper disable All\n// <auto-generated/>\nclass A {}\n",
        "class A {}\n",
    ),
    ("a.go", "package a\n", "package a //nolint\n", "package a\n"),
    (
        "a.go",
        "package a\n",
        "// Code generated by hand. DO NOT EDIT.\npackage a\n",
        "package a\n",
    ),
    (
        "A.java",
        "class A {}\n",
        "@SuppressWarnings(\"all\")\nclass A {}\n",
        "class A {}\n",
    ),
    (
        "A.kt",
        "class A\n",
        "@file:Suppress(\"ALL\")\nclass A\n",
        "class A\n",
    ),
    // Silencers that cannot be removed stay.
    (
        "A.cs",
        "int a;\n",
        "[A, ExcludeFromCodeCoverage]\nint a;\n",
        "",
    ),
    (
        "A.cs",
        "int a;\n",
        "[A, SuppressMessage(\"a\", \"b\")]\nint a;\n",
        "",
    ),
    (
        "src/a.rs",
        "fn a() {}\n",
        "#[allow(x, reason = \"(\")]\nfn a() {}\n",
        "",
    ),
];

#[test]
fn new_lint_suppressions_are_removed() {
    for (path, before, after, expected) in SILENCERS {
        let changes = [change(path, before, after)];
        let changed = Changed::of(&changes, "");
        let is_unclear = expected.is_empty();
        assert_eq!(changed.is_unclear(), is_unclear, "{after}");
        assert_eq!(changed.has_gate(), !is_unclear, "{after}");
        assert_eq!(changed.gate_change(), GateChange::Changed, "{after}");
        assert_eq!(changed.only_silences(), !is_unclear);
        assert!(changed.tree(Side::Old, Side::New, None)[0].1.is_some());
        let expected = if is_unclear { after } else { expected };
        assert_eq!(old_gate(path, before, after, None), *expected);
        assert_eq!(old_gate(path, before, after, Some(path)), *after);
    }
}

#[test]
fn a_silenced_lint_that_was_there_or_is_named_stays() {
    let before = "#[allow(dead_code)]\nfn a() {}\n";
    for after in [
        "fn b() {}\n#[allow(dead_code)]\nfn a() {}\n",
        "#[allow(dead_code)]\nfn b() {}\n",
        "/// `#[allow(dead_code)]`\n#[allow(dead_code)]\nfn a() {}\n",
    ] {
        let changes = [change("src/a.rs", before, after)];
        assert_eq!(Changed::of(&changes, "").gate_change(), GateChange::None);
    }
    // A silencer moved to another file, and one more.
    let moved = [
        change("src/a.rs", before, "mod b;\n"),
        change("src/b.rs", "", before),
    ];
    assert_eq!(Changed::of(&moved, "").gate_change(), GateChange::None);
    let twice = format!("{before}{before}");
    assert_eq!(
        old_gate("src/a.rs", before, &twice, None),
        format!("{before}fn a() {{}}\n")
    );
    let query = Some("Silence dead_code there.");
    assert_eq!(old_gate("src/a.rs", before, &twice, query), twice);
    assert_eq!(
        old_gate(
            "src/a.rs",
            "fn a() {}\n",
            "// It is.\n#[allow(x)]\nfn a() {}\n",
            Some("It is an x.")
        ),
        "// It is.\nfn a() {}\n"
    );
}

#[test]
fn a_silencer_in_a_new_file_is_reported_and_stays_in() {
    let code = "# ruff: noqa\nimport b\n";
    let new = change("b.py", "", code);
    let [edited, removed, document] = [
        ("a.py", "a\n", "b\n"),
        ("a.py", "a\n", ""),
        ("a.md", "a\n", ""),
    ]
    .map(|(path, before, after)| change(path, before, after));
    for (other, is_taken_out) in [(edited, false), (document, false), (removed, true)] {
        let changes = [other, new.clone()];
        let changed = Changed::of(&changes, "");
        // Code that was moved may have been linted in its old place.
        assert_eq!(changed.has_gate(), is_taken_out);
        assert_eq!(changed.is_unclear(), !is_taken_out);
        assert_eq!(changed.gate_change(), GateChange::Changed);
    }
}

#[test]
fn rust_lint_levels_are_not_tests() {
    let code = "pub fn a() {}\n";
    let [deny, warn] = ["deny", "warn"].map(|level| format!("#![{level}(missing_docs)]\n{code}"));
    for (before, after) in [
        (code, &*deny),
        (&*deny, code),
        (&*deny, &*warn),
        (code, "#![allow(missing_docs)]\npub fn a() {}\n"),
    ] {
        let changes = [change("src/a.rs", before, after)];
        let changed = Changed::of(&changes, "");
        assert_eq!(changed.gate_change(), GateChange::Changed, "{after}");
        assert!(changed.has_gate() && !changed.is_unclear() && changed.tests().next().is_none());
        assert_eq!(old_gate("src/a.rs", before, after, None), before);
    }
    let query = Some("Silence missing_docs there.");
    let silent = format!("#![allow(missing_docs)]\n{code}");
    assert_eq!(old_gate("src/a.rs", code, &silent, query), silent);
}

#[test]
fn lint_suppressions_can_be_removed_alone() {
    let changes = [
        change("a.ts", "let a = 1\n", "// @ts-nocheck\nlet a = 2\n"),
        change("a.test.ts", "test('a')\n", "test('b')\n"),
        change(
            "src/a.rs",
            RUST,
            &format!("#![allow(x)]\n{}", RUST.replace("a + b", "b + a")),
        ),
    ];
    let changed = Changed::of(&changes, "");
    let text =
        |state: &Option<FileState>| String::from_utf8(state.clone().unwrap().content).unwrap();
    let loud = changed.tree_without_silencers("");
    let tree: Vec<_> = loud
        .iter()
        .map(|(path, state)| (*path, text(state)))
        .collect();
    let rust = RUST
        .replace("a + b", "b + a")
        .replace("\n\n#[cfg", "\n#[cfg");
    assert_eq!(tree[0], ("a.ts", "let a = 2\n".to_owned()));
    assert_eq!(
        (tree[1].0, tree[1].1.replace("\n\n#[cfg", "\n#[cfg")),
        ("src/a.rs", rust)
    );
    assert_eq!(tree.len(), 2);
    assert!(
        changed
            .tree_without_silencers("Change a.ts and lib.rs; allow `x`, src/a.rs.")
            .is_empty()
    );
}
