//! Tests of files shown whole or in part, and of unreadable ones.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::agent::tools::resolved_path::Outside;

fn read(root: &Path, path: &str) -> Result<String, String> {
    read_lines(root, path, "")
}

fn read_lines(root: &Path, path: &str, lines: &str) -> Result<String, String> {
    let outside = Outside::Refused;
    let mut arguments = Arguments::default();
    arguments.set("path", path.to_owned());
    if !lines.is_empty() {
        arguments.set("lines", lines.to_owned());
    }
    match ReadFile(ReadAccess::to(root, outside)).run(&arguments) {
        Ok(output) => Ok(output.text),
        Err(ToolError::Failed(reason)) => Err(reason.message),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_shown_byte_by_byte_up_to_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let long: String = (1..=9000).map(|line| format!("line {line}\n")).collect();
    for (name, content) in [
        ("text", b"a\r\n  b" as &[u8]),
        ("empty", b""),
        ("bad", b"caf\xe9 au lait, s'il vous plait\n"),
        ("binary", &[0, 159, 146, 150]),
        ("long", long.as_bytes()),
    ] {
        fs::write(root.join(name), content).unwrap();
    }
    symlink("text", root.join("link")).unwrap();
    assert_eq!(read(&root, "text").unwrap(), "a\r\n  b");
    assert_eq!(read(&root, "link").unwrap(), "a\r\n  b");
    assert_eq!(read(&root, "empty").unwrap(), "`empty` is empty");
    assert_eq!(
        read(&root, "binary").unwrap(),
        "`binary` is a binary file, 4 bytes"
    );
    let bad = read(&root, "bad").unwrap();
    assert!(
        bad.starts_with("[`bad` has 1 line, 30 bytes; what is not UTF-8"),
        "{bad}"
    );
    assert!(bad.contains("\ncaf\u{fffd} au lait"), "{bad}");
    let shown = read(&root, "long").unwrap();
    assert!(
        shown.starts_with("[`long` has 9,000 lines, 88,893 bytes; "),
        "{}",
        &shown[..80]
    );
    assert!(shown.ends_with(&long));
}

#[test]
fn a_range_of_lines_is_shown_and_how_to_read_on() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let long: String = (1..=9000).map(|line| format!("line {line}\n")).collect();
    fs::write(root.join("long"), &long).unwrap();
    fs::write(root.join("wide"), "x".repeat(40 << 10) + "\nend").unwrap();
    let head = "[`long` has 9,000 lines, 88,893 bytes; these are lines";
    for (lines, expected) in [
        (
            "10-12",
            format!("{head} 10-12]\nline 10\nline 11\nline 12\n"),
        ),
        (" 7 ", format!("{head} 7-7]\nline 7\n")),
        (
            "8999-",
            format!("{head} 8999-9000]\nline 8999\nline 9000\n"),
        ),
        ("9000-9900", format!("{head} 9000-9000]\nline 9000\n")),
    ] {
        assert_eq!(read_lines(&root, "long", lines), Ok(expected), "{lines}");
    }
    // Reading on repeatedly yields the whole file.
    let (mut all, mut next) = (String::new(), "1-".to_owned());
    loop {
        let shown = read_lines(&root, "long", &next).unwrap();
        assert!(shown.len() <= OUTPUT_LIMIT, "{}", shown.len());
        let (told, text) = shown.split_once("]\n").unwrap();
        all.push_str(text);
        let Some((_, on)) = told.split_once("read on with `lines` ") else {
            break;
        };
        next = on.to_owned();
    }
    assert_eq!(all, long);
    let shown = read(&root, "long").unwrap();
    let (told, _) = shown.split_once("]\n").unwrap();
    let (_, next) = told
        .split_once("the middle is left out; read on with `lines` ")
        .unwrap();
    let cut = crate::sys::excerpt::text::bounded(&shown, OUTPUT_LIMIT);
    let before: usize = next.trim_end_matches('-').parse::<usize>().unwrap() - 1;
    assert!(cut.contains(&format!("\nline {before}\n")), "{told}");
    // Reading on at a line that is too long by itself would show the same again.
    fs::write(root.join("one"), "x".repeat(40 << 10)).unwrap();
    for (path, said) in [
        ("one", "; a command shows the rest of line 1]"),
        (
            "wide",
            "; a command shows the rest of line 1; read on with `lines` 2-]",
        ),
    ] {
        let shown = read(&root, path).unwrap();
        let told = shown.lines().next().unwrap();
        assert!(told.ends_with(said), "{told}");
    }
    let wide = read_lines(&root, "wide", "1-2").unwrap();
    assert!(
        wide.contains("lines 1-1, no more fit; read on with `lines` 2-]"),
        "{}",
        &wide[..200]
    );
    for (lines, said) in [
        ("9001", "`long` has 9,000 lines"),
        ("0-5", "`0-5` is no range of lines"),
        ("5-4", "`5-4` is no range of lines"),
        ("-5", "`-5` is no range of lines"),
        (
            "all",
            "`all` is no range of lines: `lines` is like `10-80`, `10-` or `10`, counted from 1",
        ),
    ] {
        let error = read_lines(&root, "long", lines).unwrap_err();
        assert!(error.contains(said), "{lines}: {error}");
    }
}

#[test]
fn reading_a_non_file_fails_with_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("src/main.rs"), "").unwrap();
    fs::write(root.join(".env"), "KEY=1").unwrap();
    let fifo = root.join("fifo");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, kind, 0o600.into(), 0).unwrap();
    for (path, said) in [
        ("src", "is a directory; list it"),
        ("src/mian.rs", "`src` holds `main.rs`"),
        ("fifo", "is a pipe"),
        (".env", "holds credentials"),
        ("/etc/passwd", "--allow-outside"),
        ("C:\\x", "Windows"),
    ] {
        let error = read(&root, path).unwrap_err();
        assert!(error.contains(said), "{path}: {error}");
    }
}

/// Reads part of a file with input that fits the tool's schema; returns the message for the model.
fn read_part(root: &Path, input: &serde_json::Value) -> Result<String, String> {
    let outside = Outside::Refused;
    let tool = ReadPart(ReadFile(ReadAccess::to(root, outside)));
    let arguments = READ_PART.check(input)?;
    match tool.run(&arguments) {
        Ok(output) => Ok(output.text),
        Err(ToolError::Failed(reason)) => Err(reason.message),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_number_of_lines_is_shown_from_a_given_one() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let text: String = (1..=9).map(|line| format!("{line}\n")).collect();
    fs::write(root.join("a"), &text).unwrap();
    fs::write(root.join("long"), "a line\n".repeat(20_000)).unwrap();
    for (input, expected) in [
        (json!({"path": "a"}), text.as_str()),
        (
            json!({"path": "a", "offset": 8}),
            "[`a` has 9 lines, 18 bytes; these are lines 8-9]\n8\n9\n",
        ),
        (
            json!({"path": "a", "limit": 2}),
            "[`a` has 9 lines, 18 bytes; these are lines 1-2]\n1\n2\n",
        ),
        (
            json!({"path": "./a", "offset": 3, "limit": 1}),
            "[`a` has 9 lines, 18 bytes; these are lines 3-3]\n3\n",
        ),
        (
            json!({"path": "a", "offset": 9, "limit": u64::MAX}),
            "[`a` has 9 lines, 18 bytes; these are lines 9-9]\n9\n",
        ),
    ] {
        assert_eq!(read_part(&root, &input).as_deref(), Ok(expected), "{input}");
    }
    let told = read_part(&root, &json!({"path": "long", "offset": 2})).unwrap();
    assert!(
        told.contains("no more fit; read on with `offset` 4610]"),
        "{}",
        &told[..100]
    );
    let told = read_part(&root, &json!({"path": "long"})).unwrap();
    assert!(
        told.contains("the middle is left out; read on with `offset` "),
        "{}",
        &told[..100]
    );
}

#[test]
fn binary_and_forbidden_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir(root.join(".ssh")).unwrap();
    for name in ["binary", "photo.PNG", ".env", ".ssh/id_rsa", "credentials"] {
        fs::write(root.join(name), b"\0\xff").unwrap();
    }
    symlink("binary", root.join("link")).unwrap();
    let long = "x".repeat(30 << 20);
    for (input, said) in [
        (
            json!({"path": "binary"}),
            "`binary` is a binary file, 2 bytes",
        ),
        (
            json!({"path": "link", "offset": 1}),
            "`link` is a binary file",
        ),
        (
            json!({"path": "photo.PNG"}),
            "`photo.PNG` is a picture, and this tool shows text; the user can attach it: ask for `@`",
        ),
        (json!({"path": ".env"}), "holds credentials"),
        (json!({"path": ".ssh/id_rsa"}), "holds credentials"),
        (json!({"path": "credentials"}), "holds credentials"),
        (json!({"path": "none"}), "`none` does not exist"),
        (json!({"path": "a\0b"}), "has a NUL in it"),
        (json!({"path": long}), "no more than 4000 make a path"),
        (
            json!({"path": "binary", "offset": 0}),
            "`offset` must be 1 or more",
        ),
        (
            json!({"path": "binary", "offset": -1}),
            "`offset` must be 1 or more",
        ),
        (
            json!({"path": "binary", "limit": "10"}),
            "`limit` of read_file must be a JSON integer",
        ),
        (
            json!({"path": ["binary"]}),
            "`path` of read_file must be a JSON string",
        ),
        (json!({"file": "binary"}), "read_file takes no `file`"),
    ] {
        let error = read_part(&root, &input).unwrap_err();
        assert!(
            error.contains(said) && error.len() < 500,
            "{}",
            &error[..error.len().min(500)]
        );
    }
}
