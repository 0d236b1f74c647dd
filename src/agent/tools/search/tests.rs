//! Tests of search results and their limits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::agent::error::AgentError;
use crate::agent::tools::resolved_path::Outside;
use crate::agent::tools::write::tests::told;

fn project(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("root");
    for (file, content) in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    (dir, root)
}

fn files<'a>(root: &'a Path, closed: &'a [PathBuf]) -> SearchFiles<'a> {
    SearchFiles(ReadAccess {
        closed,
        ..ReadAccess::to(root, Outside::Refused)
    })
}

fn search(root: &Path, pattern: &str, path: &str) -> Result<String, String> {
    let mut arguments = Arguments::default();
    arguments.set("pattern", pattern);
    arguments.set("path", path);
    told(files(root, &[]).run(&arguments))
}

#[test]
fn a_stop_ends_a_search() {
    let (_dir, root) = project(&[("a.rs", "fn one() {}\n"), ("b.rs", "fn two() {}\n")]);
    let files = files(&root, &[]);
    let mut arguments = Arguments::default();
    arguments.set("pattern", "fn ");
    arguments.set("path", ".");
    let mut read = 0;
    let is_whole = files.each_file(".", |_, _| {
        read += 1;
        files.0.interrupt.raise();
        true
    });
    assert_eq!((is_whole, read), (Ok(false), 1));
    assert!(matches!(
        files.run(&arguments),
        Err(ToolError::Fatal(AgentError::Interrupted(_)))
    ));
}

#[test]
fn lines_are_found_wherever_git_ignores_nothing() {
    let (_dir, root) = project(&[
        (".gitignore", "target/\n*.log\n"),
        ("a.rs", "fn one() {}\n\n  fn two() {}\r\n"),
        ("src/deep/b.rs", "// fn three\n"),
        ("src/binary", "fn \0"),
        ("src/latin", "fn \u{e9}t\u{e9}"),
        ("target/c.rs", "fn four() {}\n"),
        ("x.log", "fn five\n"),
        (".env", "KEY=fn six\n"),
        (".git/config", "fn seven\n"),
    ]);
    fs::write(root.join("src/latin"), b"fn \xe9t\xe9").unwrap();
    symlink("a.rs", root.join("link.rs")).unwrap();
    symlink("..", root.join("up")).unwrap();
    let all = "a.rs:1: fn one() {}\na.rs:3: fn two() {}\nsrc/latin:1: fn \u{fffd}t\u{fffd}\nsrc/deep/b.rs:1: // fn three\n";
    assert_eq!(search(&root, "fn ", ".").unwrap(), all);
    assert_eq!(
        search(&root, r"^\s*fn t\w+", "./").unwrap(),
        "a.rs:3: fn two() {}\n"
    );
    assert_eq!(
        search(&root, "three", "src").unwrap(),
        "src/deep/b.rs:1: // fn three\n"
    );
    assert_eq!(
        search(&root, "o", "a.rs").unwrap(),
        "a.rs:1: fn one() {}\na.rs:3: fn two() {}\n"
    );
    assert_eq!(
        search(&root, "FN", "src").unwrap(),
        "no line in 3 files matches `FN`\n"
    );
    let absolute = root.join("src/deep");
    let found = search(&root, "fn", absolute.to_str().unwrap()).unwrap();
    assert_eq!(found, "src/deep/b.rs:1: // fn three\n");
}

#[test]
fn impossible_search_is_reported() {
    let (_dir, root) = project(&[("a.rs", "x"), (".env", "KEY=x")]);
    for (pattern, path, expected) in [
        ("", ".", "the pattern is empty"),
        ("fn(", ".", "is no regular expression"),
        ("x{1000}{1000}", ".", "is no regular expression"),
        (&"x".repeat(1001), ".", "longer than 1000 bytes"),
        ("x", "b.rs", "`b.rs` does not exist; `.` holds"),
        ("x", "..", "--allow-outside"),
        ("x", ".env", "credentials"),
        ("x", "", "the path is empty"),
    ] {
        let problem = search(&root, pattern, path).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn results_are_limited() {
    let long = format!("{}\n", "y".repeat(10_000));
    let (_dir, root) = project(&[("a", &"x\n".repeat(1000)), ("b", &long), ("c", "x")]);
    let found = search(&root, "x", ".").unwrap();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), SHOWN + 1);
    assert!(lines[SHOWN].starts_with("[there is more"), "{found}");
    let found = search(&root, "y", ".").unwrap();
    assert_eq!(
        found.chars().count(),
        "b:1: ".len() + LONGEST_LINE + "…\n".chars().count()
    );
}

#[test]
fn lines_around_are_shown_once_and_distinguished_from_those_that_match() {
    let text: String = (1..=12).map(|line| format!("    {line}\n")).collect();
    let (_dir, root) = project(&[("a", &text), ("b", "x 3\n"), ("closed/c", "3\n")]);
    let closed = [root.join("closed")];
    let search = |input: serde_json::Value| {
        let tool = files(&root, &closed);
        let arguments = SEARCH_PROJECT.check(&input)?;
        told(tool.run(&arguments))
    };
    for (input, expected) in [
        (json!({"pattern": "3"}), "a:3:     3\nb:1: x 3\n"),
        (
            json!({"pattern": "3|5|9", "context": 1, "path": "a"}),
            "a-2-     2\na:3:     3\na-4-     4\na:5:     5\na-6-     6\n--\na-8-     8\na:9:     9\na-10-     10\n",
        ),
        (
            json!({"pattern": "^ +[12]$|x", "context": 1}),
            "a:1:     1\na:2:     2\na-3-     3\n--\nb:1: x 3\n",
        ),
        (
            json!({"pattern": "12", "context": 20, "path": "a"}),
            &format!(
                "{}a:12:     12\n",
                (1..12)
                    .map(|line| format!("a-{line}-     {line}\n"))
                    .collect::<String>()
            ),
        ),
    ] {
        assert_eq!(search(input.clone()).as_deref(), Ok(expected), "{input}");
    }
    for (input, said) in [
        (
            json!({"pattern": "x", "context": 21}),
            "`context` must be 20 or less",
        ),
        (
            json!({"pattern": "x", "context": -1}),
            "`context` must be 0 or more",
        ),
        (
            json!({"pattern": "x", "context": true}),
            "`context` of search_project must be a JSON integer",
        ),
        (json!({}), "search_project needs `pattern`"),
    ] {
        let error = search(input).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}
