//! Tests of texts in another edit format, and of files in which that format is legitimate.

use super::*;

#[test]
fn another_edit_format_is_reported_unless_it_is_the_files_own() {
    use EditForm::{Diff, Fenced, Marked, Numbered};
    let fenced = "```js\na();\n```\n";
    let conflict = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other\n";
    let search = "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n";
    let dashes = "------- SEARCH\na\n=======\nb\n+++++++ REPLACE\n";
    let hunk = "@@ -1,2 +1,2 @@\n a\n-b\n+c\n";
    let unified = "--- a/x.js\n+++ b/x.js\n@@ -1 +1 @@\n-a\n+b\n";
    let git = "diff --git a/x.js b/x.js\n--- a/x.js\n";
    let patch = "*** Begin Patch\n*** Update File: x.js\n";
    let update = "*** Update File: x.js\n@@ def a():\n-b\n";
    let without_numbers = "@@ ... @@\n-a\n+b\n";
    let bars = "1 | a();\n2 | b();\n3 | c();\n4 | d();\n";
    let tabs = "   98\ta();\n   99\t\n  100\tc();\n";
    let colons = "1: a();\n2: b();\n3:\n";
    for (new, expected) in [
        (fenced, (1, Fenced)),
        (conflict, (2, Marked)),
        (search, (1, Marked)),
        (dashes, (1, Marked)),
        (hunk, (1, Diff)),
        (unified, (1, Diff)),
        (git, (1, Diff)),
        (patch, (1, Diff)),
        (update, (1, Diff)),
        (without_numbers, (1, Diff)),
        (bars, (1, Numbered)),
        (tabs, (1, Numbered)),
        (colons, (1, Numbered)),
    ] {
        for old in [None, Some("a();\n"), Some("")] {
            assert_eq!(
                foreign("x.js", old, new),
                Some(expected),
                "{old:?} -> {new}"
            );
        }
        assert_eq!(foreign("x.js", Some(new), new), None, "{new}");
    }
    for (path, old, new) in [
        ("x.md", None, fenced),
        ("x.patch", None, git),
        ("x.diff", Some("a"), unified),
        ("x.tsv", None, tabs),
        ("x.md", Some("# A\n"), "# A\n\n```js\na();\n```\n"),
        ("x.md", Some("# A\n"), "A\n=======\n\nB\n-------\n"),
        ("x.yaml", Some("a: 1\n"), "--- \na: 1\n"),
        ("x.md", Some("# A\n"), "1. a\n2. b\n3. c\n"),
        ("x.c", Some("a"), "a\n1: b\n2: c\n"),
        ("x.c", Some("a"), "case 1: a;\ncase 2: b;\ncase 3: c;\n"),
        ("x.txt", Some("a"), "07: a\n08: b\n09: c\n"),
    ] {
        assert_eq!(foreign(path, old, new), None, "{path}: {new}");
    }
    assert_eq!(foreign("x.md", Some("# A\n"), fenced), Some((1, Fenced)));
}
