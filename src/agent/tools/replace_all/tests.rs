//! Tests that replacements in several files are all or nothing.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::super::write::tests::{Plain, told};
use super::*;

fn project(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for (file, content) in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    (dir, root)
}

/// Returns the message for the model, and the preview shown to the user; `closed` is skipped.
fn replace(
    files: &Plain<'_>,
    closed: &[PathBuf],
    [pattern, replacement, path]: [&str; 3],
) -> (Result<String, String>, Option<String>) {
    let read = ReadAccess {
        closed,
        ..ReadAccess::to(files.root, Outside::Allowed)
    };
    let tool = ReplaceInFiles(FileAccess { read, files });
    let input = json!({"pattern": pattern, "replacement": replacement, "path": path});
    let arguments = REPLACE_IN_FILES.check(&input).unwrap();
    let preview = tool.preview(&arguments).ok().flatten();
    assert!(files.written.borrow().is_empty());
    (told(tool.run(&arguments)), preview)
}

fn read(root: &Path, file: &str) -> String {
    fs::read_to_string(root.join(file)).unwrap()
}

#[test]
fn after_a_stop_nothing_is_replaced() {
    let (_dir, root) = project(&[("a.rs", "one(1)")]);
    let files = Plain::below(&root);
    let read = ReadAccess::to(&root, Outside::Refused);
    let tool = ReplaceInFiles(FileAccess {
        read,
        files: &files,
    });
    let input = json!({"pattern": "one", "replacement": "two"});
    let arguments = REPLACE_IN_FILES.check(&input).unwrap();
    read.interrupt.raise();
    assert!(matches!(tool.run(&arguments), Err(ToolError::Fatal(_))));
    assert!(matches!(tool.preview(&arguments), Err(ToolError::Fatal(_))));
    assert!(files.written.borrow().is_empty());
}

#[test]
fn all_files_that_are_the_projects_are_changed_together() {
    let (_dir, root) = project(&[
        (".gitignore", "target/\n"),
        ("a.rs", "one(1);\r\nlet x = one(2) + one(3);\r\n"),
        ("src/b.rs", "one(4)"),
        ("src/c.rs", "nothing"),
        ("target/d.rs", "one(5)"),
        (".env", "one(6)"),
        ("closed/e", "one(7)"),
        ("binary", "\0one(8)"),
    ]);
    let latin = b"one(9) \xe9";
    fs::write(root.join("latin"), latin).unwrap();
    let files = Plain::below(&root);
    let words = [r"\bone\((\d)\)", "two(${1}0, $$)", "."];
    let (told, preview) = replace(&files, &[root.join("closed")], words);
    assert_eq!(
        told.unwrap(),
        "replaced 4 places in 2 files:\n3 in `a.rs`\n1 in `src/b.rs`"
    );
    let after = "two(10, $);\r\nlet x = two(20, $) + two(30, $);\r\n";
    assert_eq!(
        (&*read(&root, "a.rs"), &*read(&root, "src/b.rs")),
        (after, "two(40, $)")
    );
    for file in ["target/d.rs", ".env", "closed/e", "binary"] {
        assert!(read(&root, file).contains("one("), "{file}");
    }
    assert_eq!(fs::read(root.join("latin")).unwrap(), latin);
    let preview = preview.unwrap();
    for line in [
        "--- a/a.rs\n",
        "-one(1);\r\n",
        "+two(10, $);\r\n",
        "--- a/src/b.rs\n",
    ] {
        assert!(preview.contains(line), "{preview}");
    }
}

#[test]
fn nothing_is_changed_where_one_file_may_not_be() {
    let (_dir, root) = project(&[("a", "x"), ("no", "x"), ("z", "x")]);
    let files = Plain::below(&root);
    let (told, _) = replace(&files, &[], ["x", "y", "."]);
    assert_eq!(told.unwrap_err(), "`no` is protected");
    for file in ["a", "no", "z"] {
        assert_eq!(read(&root, file), "x");
    }
}

#[test]
fn impossible_replacement_is_reported() {
    let (_dir, root) = project(&[("a", "x y\n"), (".env", "x")]);
    let files = Plain::below(&root);
    for (words, said) in [
        (["", "y", "."], "the pattern is empty"),
        (["(", "y", "."], "is no regular expression"),
        (["z*", "y", "."], "matches the empty text"),
        (["^", "y", "."], "matches the empty text"),
        (["z", "y", "."], "no line of a text file matches `z`"),
        (["x", "x", "."], "it changes nothing"),
        (
            ["(x)", "$1a", "."],
            "names the group `1a`, which the pattern has not",
        ),
        (["(x)", "$$$2", "."], "names the group `2`"),
        (["(?<n>x)", "${m}", "."], "names the group `m`"),
        (["x\ny", "z", "."], "no line of a text file matches"),
        (["x", "y", "none"], "`none` does not exist"),
        (["x", "y", ".env"], "holds credentials"),
        (["x", "y", "/"], "leads out of the project"),
    ] {
        let (told, preview) = replace(&files, &[], words);
        let problem = told.unwrap_err();
        assert!(problem.contains(said), "{words:?}: {problem}");
        assert_eq!(preview, None);
    }
    let known = replace(&files, &[], ["(?<n>x) (y)", "${n}_${2}$ $1 $n", "a"]);
    assert_eq!(known.0.unwrap(), "replaced 1 place in 1 file:\n1 in `a`");
    assert_eq!(read(&root, "a"), "x_y$ x x\n");
}

#[test]
fn no_more_files_are_changed_than_can_be_looked_through() {
    let (_dir, root) = project(&[]);
    for file in 0..=MOST_FILES {
        fs::write(root.join(format!("{file}")), "x").unwrap();
    }
    let files = Plain::below(&root);
    let (told, preview) = replace(&files, &[], ["x", "y", "."]);
    assert!(told.unwrap_err().contains("name a directory"));
    assert_eq!((preview, files.written.take()), (None, vec![]));
}

proptest! {
    #[test]
    fn line_ends_stay_and_lines_change_by_themselves(lines in prop::collection::vec("[ab ]{0,4}(\n|\r\n|\r)?", 0..6)) {
        let text = lines.concat();
        let (after, places) = replaced(&Regex::new("a+").unwrap(), "x", &text);
        prop_assert_eq!(after.replace('x', "a").replace("aa", "a").len(), {
            let mut squeezed = text.clone();
            while squeezed.contains("aa") { squeezed = squeezed.replace("aa", "a"); }
            squeezed.len()
        });
        prop_assert_eq!(after.matches('x').count(), places);
        prop_assert_eq!(after.replace(['x', ' ', 'b'], ""), text.replace(['a', ' ', 'b'], ""));
    }
}
