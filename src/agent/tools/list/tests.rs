//! Tests of listings of directories and globs, and of their limits.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::agent::error::AgentError;
use crate::agent::tools::resolved_path::Outside;
use crate::agent::tools::write::tests::told;

fn project(files: &[&str]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for file in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    (dir, root)
}

fn list(root: &Path, path: &str) -> String {
    let outside = Outside::Refused;
    let tool = ListDirectory(ReadAccess::to(root, outside));
    tool.list(path).unwrap().0
}

#[test]
fn a_tree_looks_like_the_specifications() {
    let (_dir, root) = project(&[
        "src/index.ts",
        "src/routes/users.ts",
        "src/routes/posts.ts",
        "src/middleware/logger.ts",
        "src/middleware/notes.md",
    ]);
    let expected = "\
src/
├── index.ts
├── middleware/
│   └── logger.ts
└── routes/
    ├── posts.ts
    └── users.ts
";
    assert_eq!(list(&root, "src/**/*.ts"), expected);
    assert_eq!(list(&root, "./src/**/*.ts"), expected);
    let absolute = format!("{}/src/**/*.ts", root.display());
    assert_eq!(list(&root, &absolute), expected);
    let whole = expected.replace("└── logger.ts\n", "├── logger.ts\n│   └── notes.md\n");
    assert_eq!(list(&root, "src"), whole);
    assert_eq!(list(&root, "src/"), whole);
}

#[test]
fn a_glob_matches_whole_paths_below_its_directory() {
    let (_dir, root) = project(&["a.rs", "b/c.rs", "b/d/e.rs", "b/d/f.txt", "b/[x].rs"]);
    for (glob, expected) in [
        ("*.rs", "./\n└── a.rs\n"),
        ("*/c.rs", "./\n└── b/\n    └── c.rs\n"),
        ("b/*", "b/\n├── [x].rs\n├── c.rs\n└── d/\n"),
        ("b/{c,d/e}.rs", "b/\n├── c.rs\n└── d/\n    └── e.rs\n"),
        ("**/f.*", "./\n└── b/\n    └── d/\n        └── f.txt\n"),
        (
            "b/**/",
            "b/\n├── [x].rs\n├── c.rs\n└── d/\n    ├── e.rs\n    └── f.txt\n",
        ),
        ("*.py", "no files in `.` match `*.py`\n"),
    ] {
        assert_eq!(list(&root, glob), expected, "{glob}");
    }
    assert!(list(&root, "b/[x].rs").contains("is a file of 0 bytes"));
}

#[test]
fn a_glob_that_is_too_much_is_a_fault_of_the_models() {
    let (_dir, root) = project(&["a.rs"]);
    let tool = ListDirectory(ReadAccess::to(&root, Outside::Refused));
    let nested = |depth: usize| format!("{}a{}", "{".repeat(depth), ",b}".repeat(depth));
    for (glob, expected) in [
        (nested(150), "is no glob: "),
        (nested(200_000), "is longer than 1000 bytes"),
        ("[a-z]".repeat(200_000), "is longer than 1000 bytes"),
        ("{".repeat(900), "is no glob: "),
        ("[".repeat(900), "is no glob: "),
    ] {
        let told = tool.list(&glob).unwrap_err();
        assert!(told.contains(expected) && told.len() < 1500, "{told}");
    }
    for glob in [
        nested(20),
        "[a-z]".repeat(190),
        "*".repeat(900),
        "**/".repeat(300) + "x",
    ] {
        tool.list(&glob).unwrap();
    }
}

#[test]
fn ignored_paths_are_left_out_unless_named() {
    let (_dir, root) = project(&[
        ".git/config",
        "kept.rs",
        "target/debug/x",
        "agent-config/key.txt",
        "half/left.out",
        "half/stays",
    ]);
    fs::write(
        root.join(".gitignore"),
        "target/\n/agent-config\nhalf/*.out\n",
    )
    .unwrap();
    let expected = "./\n├── .gitignore\n├── kept.rs\n└── half/\n    └── stays\n";
    assert_eq!(list(&root, "."), expected);
    assert_eq!(list(&root, "**/x"), "no files in `.` match `**/x`\n");
    assert_eq!(list(&root, "target"), "target/\n└── debug/\n    └── x\n");
}

#[test]
fn links_are_shown_and_not_entered_and_odd_names_are_escaped() {
    let (_dir, root) = project(&["a/b", "we\nird", "esc\u{1b}[2J"]);
    symlink("a", root.join("link")).unwrap();
    symlink(".", root.join("a/loop")).unwrap();
    let expected = "./\n├── esc\\u{1b}[2J\n├── link -> a\n├── we\\nird\n└── a/\n    ├── b\n    └── loop -> .\n";
    assert_eq!(list(&root, "."), expected);
    assert_eq!(list(&root, "link"), "link/\n├── b\n└── loop -> .\n");
}

#[test]
fn nothing_a_file_and_what_is_missing_are_distinguished() {
    let (_dir, root) = project(&["src/main.rs"]);
    fs::create_dir(root.join("empty")).unwrap();
    assert_eq!(
        list(&root, "empty"),
        "`empty` is empty, or all in it is ignored by git\n"
    );
    assert!(list(&root, "src/main.rs").contains("read it"));
    let outside = Outside::Refused;
    let tool = ListDirectory(ReadAccess::to(&root, outside));
    for (path, said) in [
        (
            "source",
            "`source` does not exist; `.` holds `src`, `empty`",
        ),
        ("none/*.rs", "`none` does not exist"),
        ("src/main.rs/*", "is not a directory"),
        ("a[", "is no glob"),
        ("*/../x", "`..` after a wildcard"),
        ("..", "--allow-outside"),
        ("../**", "--allow-outside"),
        ("", "empty"),
    ] {
        let error = tool.list(path).unwrap_err();
        assert!(error.contains(said), "{path}: {error}");
    }
}

#[test]
fn a_directory_in_which_git_ignores_everything_is_left_out() {
    let (_dir, root) = project(&["logs/run/x", "logs/.gitignore", "kept"]);
    fs::write(root.join("logs/.gitignore"), "*\n").unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    assert_eq!(list(&root, "."), "./\n├── kept\n└── empty/\n");
    assert!(list(&root, "logs").contains("ignored by git"));
}

#[test]
fn a_large_tree_shows_what_is_near_and_counts_the_rest() {
    let (_dir, root) = project(&["near/file"]);
    fs::create_dir_all(root.join("many/deep/er")).unwrap();
    for n in 0..1500 {
        fs::write(root.join(format!("many/{n:04}")), "").unwrap();
    }
    let text = list(&root, ".");
    assert!(text.contains("└── near/\n    └── file\n"), "{text}");
    assert!(text.contains("[... 1,002 more ...]"), "{text}");
    assert!(text.lines().count() < SHOWN + 10);
    assert!(!text.contains("er/"), "{text}");
    let matched = list(&root, "many/*");
    assert!(matched.contains("[... 501 more ...]"), "{matched}");
}

#[test]
fn nothing_is_looked_at_beyond_a_depth() {
    let (_dir, root) = project(&[]);
    let deep = "d/".repeat(300);
    fs::create_dir_all(root.join(&deep)).unwrap();
    fs::write(root.join(deep).join("leaf"), "").unwrap();
    let tree = list(&root, ".");
    assert_eq!(tree.matches("d/").count(), DEEPEST, "{tree}");
    assert!(tree.contains("not looked into"), "{tree}");
    assert!(list(&root, "**/leaf").contains("too large to be searched whole"));
}

#[test]
fn outside_no_rules_of_git_hold_but_a_repositorys() {
    let (_dir, root) = project(&["x"]);
    let (_other, elsewhere) = project(&["ignored", "kept"]);
    fs::write(elsewhere.join(".gitignore"), "ignored\n").unwrap();
    let outside = Outside::Allowed;
    let tool = ListDirectory(ReadAccess::to(&root, outside));
    let listed = || tool.list(elsewhere.to_str().unwrap()).unwrap();
    assert!(listed().0.contains("── ignored\n"), "{}", listed().0);
    fs::create_dir(elsewhere.join(".git")).unwrap();
    assert!(!listed().0.contains("── ignored\n"), "{}", listed().0);
}

#[test]
fn a_directory_and_a_glob_are_taken_apart_or_together() {
    let (_dir, root) = project(&["src/a.rs", "src/deep/b.rs", "src/c.md", "d[1]/e.rs"]);
    let outside = Outside::Refused;
    let list = |input: serde_json::Value| {
        let tool = ListDirectory(ReadAccess::to(&root, outside));
        let arguments = LIST_FILES.check(&input)?;
        told(tool.run(&arguments))
    };
    for (input, expected) in [
        (json!({"path": "src/deep"}), "src/deep/\n└── b.rs\n"),
        (
            json!({"path": "src", "pattern": "*.rs"}),
            "src/\n└── a.rs\n",
        ),
        (
            json!({"path": "./src/", "pattern": "**/*.rs"}),
            "src/\n├── a.rs\n└── deep/\n    └── b.rs\n",
        ),
        (json!({"pattern": "*/*.md"}), "./\n└── src/\n    └── c.md\n"),
        (json!({"path": "src/*.md"}), "src/\n└── c.md\n"),
        (json!({"path": "d[1]", "pattern": "*"}), "d[1]/\n└── e.rs\n"),
        (json!({"pattern": "*.py"}), "no files in `.` match `*.py`\n"),
    ] {
        assert_eq!(list(input.clone()).as_deref(), Ok(expected), "{input}");
    }
    for (input, said) in [
        (
            json!({"path": "src/a.rs", "pattern": "*"}),
            "`src/a.rs` is not a directory",
        ),
        (json!({"pattern": "../*"}), "has a `..` after a wildcard"),
        (json!({"pattern": "["}), "is no glob"),
        (json!({"path": ".."}), "--allow-outside"),
        (
            json!({"pattern": 1}),
            "`pattern` of list_files must be a JSON string",
        ),
    ] {
        let error = list(input).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn a_stop_ends_a_listing() {
    let (_dir, root) = project(&["a.rs", "deep/b.rs"]);
    let access = ReadAccess::to(&root, Outside::Refused);
    let tool = ListDirectory(access);
    let place = ResolvedPath::Inside(String::new());
    access.interrupt.raise();
    assert!(matches!(
        tool.run(&Arguments::default()),
        Err(ToolError::Fatal(AgentError::Interrupted(_)))
    ));
    let (files, is_cut_short) = files_below(&access, &place).unwrap();
    assert!(files.is_empty() && is_cut_short);
}
