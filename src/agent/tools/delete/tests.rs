//! Tests of files that are removed, and of those that are not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;

use super::super::write::tests::{Plain, REMOVED, told};
use super::*;
use crate::agent::tools::files::ReadAccess;
use crate::agent::tools::resolved_path::Outside;

fn project() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap().join("root");
    fs::create_dir_all(root.join("src")).unwrap();
    fs::write(root.join("a.txt"), "x\ny\n").unwrap();
    fs::write(root.join("binary"), b"\0\xff").unwrap();
    fs::write(root.join("no.txt"), "x").unwrap();
    fs::write(root.join(".env"), "KEY=x").unwrap();
    fs::write(root.with_file_name("beside.txt"), "x").unwrap();
    fs::create_dir(root.with_file_name("agent-config")).unwrap();
    fs::write(root.with_file_name("agent-config").join("query.txt"), "x").unwrap();
    symlink("..", root.join("up")).unwrap();
    (dir, root)
}

/// Returns the message for the model, and the preview that the user saw.
fn delete(
    files: &Plain<'_>,
    outside: Outside,
    path: &str,
) -> (Result<String, String>, Option<String>) {
    let tool = DeleteFile(FileAccess {
        read: ReadAccess::to(files.root, outside),
        files,
    });
    let mut arguments = Arguments::default();
    arguments.set("path", path);
    assert_eq!(tool.hazards(&arguments), ["deletes"]);
    let preview = tool.preview(&arguments).ok().flatten();
    (told(tool.run(&arguments)), preview)
}

#[test]
fn a_file_is_removed_by_what_can_undo_it() {
    let (_dir, root) = project();
    let files = Plain::below(&root);
    let (told, preview) = delete(&files, Outside::Refused, "./a.txt");
    assert_eq!(told.unwrap(), "removed `a.txt`");
    let diff = "diff --git a/a.txt b/a.txt\ndeleted file mode 100644\n--- a/a.txt\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-x\n-y\n";
    assert_eq!(preview.as_deref(), Some(diff));
    let (told, preview) = delete(&files, Outside::Refused, "binary");
    assert_eq!(told.unwrap(), "removed `binary`");
    assert!(
        preview
            .unwrap()
            .contains("Binary files a/binary and /dev/null differ")
    );
    let removed = ["a.txt", "binary"].map(|path| (path.to_owned(), REMOVED.to_owned()));
    assert_eq!(files.written.take(), removed);
    let told = delete(&files, Outside::Allowed, "../beside.txt").0.unwrap();
    assert!(told.contains("does not take this back"), "{told}");
    assert!(!root.with_file_name("beside.txt").exists());
    assert!(files.written.take().is_empty());
}

#[test]
fn only_files_of_the_project_are_deleted() {
    let (_dir, root) = project();
    let files = Plain::below(&root);
    for (path, said) in [
        ("src", "is a directory, and only files are removed"),
        (".", "is a directory"),
        ("none", "`none` does not exist"),
        ("", "the path is empty"),
        ("a.txt\0", "has a NUL in it"),
        (".env", "holds credentials"),
        ("no.txt", "is protected"),
        ("../beside.txt", "--allow-outside"),
        ("up/beside.txt", "--allow-outside"),
    ] {
        let told = delete(&files, Outside::Refused, path).0.unwrap_err();
        assert!(told.contains(said), "{path}: {told}");
    }
    let (told, _) = delete(&files, Outside::Allowed, "../agent-config/query.txt");
    assert!(told.unwrap_err().contains("agent-config"));
    assert!(
        root.with_file_name("agent-config")
            .join("query.txt")
            .exists()
    );
    assert!(root.join("no.txt").exists() && root.join(".env").exists());
}
