//! Tests of replacements, and of the messages if there are none.

use std::fs;

use proptest::prelude::*;

use super::super::write::tests::Plain;
use super::*;
use crate::agent::tools::files::ReadAccess;
use crate::agent::tools::resolved_path::Outside;

/// Replaces a passage that must occur once.
fn replaced(text: &str, find: &str, replace: &str) -> Result<Replaced, String> {
    let mut arguments = Arguments::default();
    arguments.set("find", find);
    arguments.set("replace", replace);
    super::replaced(text, &arguments, &FIND)
}

#[test]
fn one_passage_is_replaced_and_all_else_stays() {
    for (text, find, replace, expected) in [
        ("a b c", "b", "x", "a x c"),
        ("a b c", "a b c", "", ""),
        ("a\nb\nc", "b\n", "", "a\nc"),
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "x\ny", "x\ny\r\n"),
        ("a\nb\nc\n", "a\r\nb", "x\r\ny\r\nz", "x\ny\nz\nc\n"),
        ("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"),
        ("a\r\nb\nc\n", "b", "x\ny", "a\r\nx\ny\nc\n"),
        ("a\r\nb\nc\n", "a\nb", "x\ny", "x\r\ny\nc\n"),
        ("äöü", "ö", "€", "ä€ü"),
        ("\u{feff}a", "a", "b", "\u{feff}b"),
        ("a", "a", "$1\\0", "$1\\0"),
    ] {
        let change = replaced(text, find, replace).map(|change| change.text);
        assert_eq!(change.as_deref(), Ok(expected), "{text:?} {find:?}");
    }
}

#[test]
fn text_not_found_exactly_once_is_reported_with_its_lines() {
    let many = "x\n".repeat(500);
    for (text, find, replace, said) in [
        ("a", "", "b", "`find` is empty"),
        ("a", "a", "a", "changes nothing"),
        (
            "a\nb\na",
            "a",
            "b",
            "is found 2 times: lines 1 and 3; add lines around it",
        ),
        ("aaa", "aa", "b", "is found 2 times: lines 1 and 1"),
        (
            "a\r\nb\r\na\r\nb",
            "a\nb",
            "c",
            "is found 2 times: lines 1 and 3",
        ),
        (
            &many,
            "x",
            "y",
            "500 times: lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and more",
        ),
        ("a\nb", "c", "d", "nor is its first line"),
        (
            "fn a() {\n\tb\n}\n",
            "fn a() {\n    b\n}",
            "c",
            "its first line is at line 1, but",
        ),
        ("  x = 1", "    x = 1", "y", "often in blanks"),
        ("a", "\n", "b", "nor is its first line"),
    ] {
        let problem = replaced(text, find, replace).unwrap_err();
        assert!(problem.contains(said), "{find:?}: {problem}");
    }
}

#[test]
fn counting_matches_of_a_long_passage_ends() {
    let text = "a".repeat(2 << 20);
    let problem = replaced(&text, &text[..1 << 20], "b").unwrap_err();
    assert!(problem.contains("2 times: lines 1 and 1;"), "{problem}");
}

#[test]
fn the_excerpt_shows_the_change_and_what_is_around_it() {
    let text: String = (1..=12).map(|line| format!("line {line}\n")).collect();
    let change = replaced(&text, "line 9\n", "new\nlines\n").unwrap();
    let expected =
        "  7 | line 7\n  8 | line 8\n> 9 | new\n>10 | lines\n 11 | line 10\n 12 | line 11\n";
    assert_eq!(excerpt(&change), expected);
    let change = replaced("a\nb\nc\n", "b\n", "").unwrap();
    assert_eq!(excerpt(&change), " 1 | a\n>2 | c\n");
    let change = replaced("a", "a", "").unwrap();
    assert_eq!(excerpt(&change), "");
}

#[test]
fn a_file_is_changed_on_the_disk_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::write(root.join("a.rs"), "let a = 1;\r\nlet b = 2;\r\n").unwrap();
    fs::write(root.join("bad"), b"x\n\xff").unwrap();
    let files = Plain::below(&root);
    let read = ReadAccess::to(&root, Outside::Refused);
    let files = &files;
    let tool = FindAndReplace(FileAccess { read, files }, &FIND);
    let run = |path: &str, find: &str| {
        let mut arguments = Arguments::default();
        arguments.set("path", path.to_owned());
        arguments.set("find", find.to_owned());
        arguments.set("replace", "let c = 3;".to_owned());
        tool.run(&arguments)
    };
    for (path, find, said) in [
        ("bad", "x", "`bad`: it is not UTF-8, see line 2"),
        ("none", "x", "does not exist"),
        (
            "a.rs",
            "let",
            "`a.rs`: `find` is found 2 times: lines 1 and 2",
        ),
    ] {
        let Err(ToolError::Failed(problem)) = run(path, find) else {
            panic!("{path} is not changed");
        };
        assert!(problem.message.contains(said), "{problem}");
    }
    assert!(files.written.borrow().is_empty());
    let output = run("a.rs", "let b = 2;").unwrap();
    assert_eq!(
        output.text,
        "changed `a.rs`:\n 1 | let a = 1;\n>2 | let c = 3;"
    );
    let content = fs::read_to_string(root.join("a.rs")).unwrap();
    assert_eq!(content, "let a = 1;\r\nlet c = 3;\r\n");
}

proptest! {
    #[test]
    fn a_passage_that_is_there_once_is_the_only_thing_that_changes(
        before in "[ab\r\n ]{0,30}", find in "[abä\n]{1,8}", behind in "[ab\r\n ]{0,30}", replace in "[xy\n]{0,8}",
    ) {
        prop_assume!(find != replace);
        let text = format!("{before}{find}{behind}");
        match replaced(&text, &find, &replace) {
            Ok(change) => {
                // New lines may get the file's line endings.
                let expected = format!("{before}{replace}{behind}");
                prop_assert_eq!(change.text.replace('\r', ""), expected.replace('\r', ""));
            }
            Err(_) => prop_assert!(text.find(&find) != text.rfind(&find)),
        }
    }
}
